"""What a line is in Markdown."""

from __future__ import annotations

import re
from itertools import accumulate

LINE_END = re.compile(r"\r\n|\r|\n")
"""Only these end a line in Markdown; ``str.splitlines`` knows eight more."""


def line_starts(text: str) -> list[int]:
    """The offset of each line. The end of the last line begins no further one; an empty text has one line."""
    if "\r" in text:
        starts = [0, *(end.end() for end in LINE_END.finditer(text))]
    else:
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()
    return starts
