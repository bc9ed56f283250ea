"""Lines of a ``.gitattributes`` file: added and taken out without touching any other."""

from __future__ import annotations

import re

DRIVERS = "-text diff=anvil merge=anvil"
"""``-text``: no line ending in an index is ever converted, whatever the other rules say."""


def line(path: str) -> str:
    """The line that gives the index at ``path`` (POSIX, relative to the repository's root) its drivers."""
    spelled = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"/{re.sub(r'[ ]', '[[:space:]]', spelled)} {DRIVERS}"


def with_line(text: str, wanted: str) -> str:
    """``text`` with the line, added at the end, where it outweighs those before; the line endings are the file's."""
    if wanted in text.splitlines():
        return text
    ending = "\r\n" if "\r\n" in text else "\n"
    return text + (ending if text and not text.endswith("\n") else "") + wanted + ending


def without_line(text: str, wanted: str) -> str:
    """``text`` without the line."""
    return "".join(each for each in text.splitlines(keepends=True) if each.rstrip("\r\n") != wanted)
