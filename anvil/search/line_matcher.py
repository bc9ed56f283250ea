"""Lines of a text that contain an exact text or match a regular expression, in linear time.

A pattern from a client must not stall a server. A fixed text is found by :meth:`str.find`. Regular expressions run in
RE2, which does not backtrack. Its time per character is at worst proportional to the size of the pattern's automaton.
That is limited, and a caller with a deadline matches a text in :meth:`LineMatcher.parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from anvil.errors import ConfigError
from anvil.formats.characters import LINE_END

MAX_PATTERN_CHARS = 1_000
MAX_PROGRAM_INSTRUCTIONS = 10_000
"""The size of a pattern's automaton; ``\\pL{1,20}`` has 9,000."""
PART_CHARS = 8_192
"""About so many characters are matched at once, so at worst half a second passes between two checks of a deadline."""
MAX_REGEX_LINE_CHARS = 32_768
"""A longer line is matched in pieces: a match of a regular expression across two of them is not found."""

FOLDED_STEP = 4_096
"""Characters that are folded at once to find a place."""
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class LineMatcher(Protocol):
    """A compiled pattern."""

    def parts(self, text: str) -> Iterator[tuple[int, str]]:
        """The text in parts that :meth:`lines` takes little time for, each with the number of its first line."""

    def lines(self, text: str) -> Iterator[int]:
        """The 0-based numbers of the lines that match, of a text whose lines end in a line feed."""

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """The (start, end) of each match in one line. The first one takes no time for the others."""


def compile(pattern: str, *, regex: bool = False, ignore_case: bool = True) -> LineMatcher:
    """The matcher for a pattern. Raises :class:`ConfigError` for one that is empty, too long or not valid."""
    if not pattern:
        raise ConfigError("pattern parameter is required")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ConfigError(
            f"The pattern has {len(pattern):,} characters; {MAX_PATTERN_CHARS:,} are allowed. Shorten it."
        )
    if LINE_END.search(pattern):
        raise ConfigError(
            "The pattern has a line break, and lines are matched one by one. Search for one of its lines."
        )
    return _Regex(pattern, ignore_case) if regex else _FixedText(pattern, ignore_case)


def with_line_feeds(text: str) -> str:
    """The text with a line feed at the end of each line, as Markdown has lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class _FixedText:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        self._pattern = self._folded(pattern)

    def _folded(self, text: str) -> str:
        return text.casefold() if self._ignore_case else text

    def parts(self, text: str) -> Iterator[tuple[int, str]]:
        yield 0, text

    def lines(self, text: str) -> Iterator[int]:
        folded = self._folded(text)  # has the same lines
        number, line_start = 0, 0
        while (at := folded.find(self._pattern, line_start)) >= 0:
            number += folded.count("\n", line_start, at)
            yield number
            number, line_start = number + 1, folded.find("\n", at) + 1
            if not line_start:
                return

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        folded = self._folded(line)
        place = _folded_places(line) if len(folded) != len(line) else int
        at = folded.find(self._pattern)
        while at >= 0:
            end = at + len(self._pattern)
            yield place(at), place(end - 1) + 1
            at = folded.find(self._pattern, end)


def _folded_places(line: str) -> Callable[[int], int]:
    """The place in a line of offsets in its folded form, which are asked for in ascending order."""
    place = folded = 0

    def of(offset: int) -> int:
        nonlocal place, folded
        step = FOLDED_STEP
        while step:
            size = len(line[place : place + step].casefold())
            if folded + size > offset:
                step //= 2
            else:
                place, folded = place + step, folded + size
        return place

    return of


class _Regex:
    def __init__(self, pattern: str, ignore_case: bool) -> None:
        import re2  # takes 10 ms

        options = re2.Options()
        options.case_sensitive = not ignore_case
        options.never_nl = True  # no match spans lines, whatever the pattern
        options.never_capture = True
        options.log_errors = False
        try:
            self._compiled = re2.compile(f"(?m){pattern}".encode(), options)
        except (re2.error, UnicodeEncodeError) as error:
            raise ConfigError(_advice(pattern, error)) from None
        if self._compiled.programsize > MAX_PROGRAM_INSTRUCTIONS:
            raise ConfigError("The regular expression is too large. Use smaller repetitions, or a shorter expression.")

    def parts(self, text: str) -> Iterator[tuple[int, str]]:
        """Whole lines of about :data:`PART_CHARS`, or pieces of a line of over :data:`MAX_REGEX_LINE_CHARS`."""
        start = number = 0
        while start < len(text):
            end = text.find("\n", start + PART_CHARS, start + MAX_REGEX_LINE_CHARS) + 1
            end = end or min(start + MAX_REGEX_LINE_CHARS, len(text))
            part = text[start:end]
            yield number, part
            number, start = number + part.count("\n"), end

    def lines(self, text: str) -> Iterator[int]:
        data = text.encode("utf-8", "surrogatepass")
        number, at = 0, 0
        while at < len(data) and (match := self._compiled.search(data, at)) is not None:
            if match.start() == len(data) and data.endswith(b"\n"):
                return  # an empty match after the last line
            number += data.count(b"\n", at, match.start())
            yield number
            number, at = number + 1, data.find(b"\n", match.start()) + 1
            if not at:
                return

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        data = line.encode("utf-8", "surrogatepass")
        place = at = 0
        for match in self._compiled.finditer(data):
            start = place + _characters(data[at : match.start()])
            place, at = start + _characters(data[match.start() : match.end()]), match.end()
            yield start, place


def _characters(data: bytes) -> int:
    """How many characters begin in a piece of UTF-8."""
    return len(data.translate(None, _CONTINUATION_BYTES))


def _advice(pattern: str, error: Exception) -> str:
    reason = error.args[0] if error.args else "it is not valid"
    reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    reason = reason.replace("(?m)", "", 1)
    hint = " Look-around and backreferences are not supported." if "(?" in pattern or "\\" in pattern else ""
    return f"The regular expression is not valid: {reason}.{hint} Correct it, or search for a fixed text."
