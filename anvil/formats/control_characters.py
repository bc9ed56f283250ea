"""Control characters of documents, which could change a terminal's title, hide text or forge a line of a log."""

from __future__ import annotations

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tab and newline."""


def without_control(text: str) -> str:
    """Text to print: line ends are newlines, other control characters than tabs are replaced."""
    return _CONTROL.sub(REPLACEMENT, text.replace("\r\n", "\n").replace("\r", "\n"))


def log_line(text: str) -> str:
    """The same for an entry of a log: further lines are indented, so that none looks like an entry."""
    return without_control(text).replace("\n", "\n  ")


def json_line(text: str) -> str:
    """JSON with control characters escaped, also those that JSON allows."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
