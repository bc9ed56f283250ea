"""What a line is in Markdown, and what marks code."""

from __future__ import annotations

import re
from itertools import accumulate

LINE_END = re.compile(r"\r\n|\r|\n")
"""Only these end a line in Markdown; ``str.splitlines`` knows eight more."""
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with its end; the last one may have none."""
_BACKTICKS = re.compile("`+")


def backticks(text: str, shortest: int = 1) -> str:
    """More backticks than ``text`` has in one place, to put around it as code."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(longest + 1, shortest)


def line_starts(text: str) -> list[int]:
    """The offset of each line. The end of the last line begins no further one; an empty text has one line."""
    if "\r" in text:
        starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    else:
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts
