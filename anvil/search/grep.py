"""Lines of pages that contain an exact text or match a regular expression, in linear time.

A pattern from a client must not stall a server. A fixed text is found by :meth:`str.find`. Regular expressions run in
RE2, which does not backtrack. Its time per character is at worst proportional to the size of the pattern's automaton.
That size is limited, and a caller with a deadline matches a text in parts.
"""

from __future__ import annotations

import bisect
import itertools
import posixpath
import re
import time
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from anvil.errors import ConfigError
from anvil.formats import patterns, version_names
from anvil.formats.characters import LINE_END, is_unicode
from anvil.formats.patterns import lazy_pattern
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import is_parallel
from anvil.requests import GrepRequest, still_wanted
from anvil.results import GrepMatch, GrepResult
from anvil.search import pages
from anvil.values import MAX_PATH_CHARS, Section
from anvil.wording import counted

MAX_PATTERN_CHARS = 1_000
MAX_PROGRAM_INSTRUCTIONS = 10_000
"""The size of a pattern's automaton; ``\\pL{1,20}`` has 9,000."""
PART_CHARS = 8_192
"""Characters that are matched at once, about. So at worst half a second passes between two checks of a deadline."""
MAX_REGEX_LINE_CHARS = 32_768
"""A longer line is matched in pieces: a match of a regular expression across two of them is not found."""

READ_LITERALLY = "No line has this text as it stands, and regex is off, so it is not read as an expression."
_EXPRESSION = lazy_pattern(r"[.\])][*+?]|\[[^\]]+\]|\\[bBdDsSwW.]|\w\||\(\?")
"""Signs that regular expressions have, and few texts."""
_APART = r"[^\pL\pM\pN_]"
"""A character beside a word. ``\\b`` of RE2 knows ASCII only."""
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


def compile(request: GrepRequest) -> LineMatcher:
    """The matcher for a request. Raises :class:`ConfigError` if the pattern is empty, too long or not valid."""
    pattern = unicodedata.normalize("NFC", request.pattern)  # as keyboards type letters with marks
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
    if request.regex or request.word:
        return _Regex(pattern if request.regex else re.escape(pattern), request.ignore_case, request.word)
    return _FixedText(pattern, request.ignore_case)


def is_read_literally(request: GrepRequest) -> bool:
    """Whether a pattern that looks like a regular expression is searched for as it stands."""
    return not request.regex and _EXPRESSION.search(request.pattern) is not None


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
        """The text in parts that take :meth:`lines` little time, each with the number of its first line."""
        yield 0, text

    def lines(self, text: str) -> Iterator[int]:
        """The 0-based numbers of the lines that match. Lines of ``text`` end in a line feed."""
        folded = self._folded(text)  # has the same lines
        number, line_start = 0, 0
        while (at := folded.find(self._pattern, line_start)) >= 0:
            number += folded.count("\n", line_start, at)
            yield number
            number, line_start = number + 1, folded.find("\n", at) + 1
            if not line_start:
                return

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """(start, end) of each match in a line, one after the other: a caller that wants the first one does not wait
        for others."""
        folded = self._folded(line)
        unfolded: Callable[[int], int] = int  # position in the folded line -> position in the line
        if len(folded) != len(line):  # "ß" folds to "ss"
            ends = array("I", itertools.accumulate(len(character.casefold()) for character in line))
            unfolded = partial(bisect.bisect_right, ends)
        at = folded.find(self._pattern)
        while at >= 0:
            end = at + len(self._pattern)
            yield unfolded(at), unfolded(end - 1) + 1
            at = folded.find(self._pattern, end)


class _Regex:
    """A regular expression, with the methods of :class:`_FixedText`. ``word``: only matches without a letter, a number
    or an underscore next to them."""

    def __init__(self, pattern: str, ignore_case: bool, word: bool) -> None:
        import re2  # takes 10 ms

        options = re2.Options()
        options.case_sensitive = not ignore_case
        options.never_nl = True  # no match spans lines, whatever the pattern
        options.never_capture = True
        options.log_errors = False
        self._group = int(word)
        try:
            self._compiled = re2.compile(f"(?m){pattern}".encode(), options)
            if word:
                options.never_capture = False
                self._compiled = re2.compile(f"(?m)(?:^|{_APART})({pattern})(?:{_APART}|$)".encode(), options)
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
        end = at = counted_bytes = 0
        while (match := self._compiled.search(data, at)) is not None:
            first, last = match.span(self._group)
            start = end + _characters(data[counted_bytes:first])
            end, counted_bytes = start + _characters(data[first:last]), last
            yield start, end
            at = max(last, match.start() + 1)  # a character next to a word can be next to two words


LineMatcher: TypeAlias = _FixedText | _Regex


def _characters(data: bytes) -> int:
    """The number of characters that begin in a piece of UTF-8."""
    return len(data.translate(None, _CONTINUATION_BYTES))


def _advice(pattern: str, error: Exception) -> str:
    reason = error.args[0] if error.args else "it is not valid"
    reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    reason = reason.replace("(?m)", "", 1)
    hint = " Look-around and backreferences are not supported." if "(?" in pattern or "\\" in pattern else ""
    return f"The regular expression is not valid: {reason}.{hint} Correct it, or search for a fixed text."


MAX_LINE_CHARS = 500
"""Characters of a line in a bounded answer. A longer line is cut around its first match."""
CHARS_BEFORE_MATCH = 100
TIME_LIMIT_S = 5.0
"""After this time the other pages are not searched: for very large indexes, and for slow expressions."""
CUT = "…"


def grep(reader: IndexReader, matcher: LineMatcher, request: GrepRequest, docs_root: Path | None = None) -> GrepResult:
    """The first matching lines of the requested pages, by path and line, up to the last that :func:`bounded` may leave.

    Matches are counted in all these pages, also after the limit. Without a path, each page is searched in its newest
    version that matches. ``matcher``: of the request's pattern. Raises :class:`NotFound` if no page is in the path.
    """
    stop_at = time.monotonic() + TIME_LIMIT_S
    matches: list[GrepMatch] = []
    total = total_pages = 0
    documents = _documents(reader, request.path, docs_root)
    chunks_of_pages = reader.chunks_of_pages(id_ for *_, id_ in documents)
    notes: list[str] = []
    found: set[str] = set()
    left_out = "", ""
    for number, ((newest, path, id_), chunks) in enumerate(zip(documents, chunks_of_pages, strict=True)):
        if newest in found:
            left_out = newest, path
            continue
        text = pages.page_text(chunks)
        page: _PageLines | None = None
        composed = unicodedata.normalize("NFC", with_line_feeds(text))  # has the same lines
        for line in _matching_lines(matcher, composed, stop_at):
            if page is None:
                page = _PageLines(path, id_, text, reader)
                total_pages += 1
                found.add(newest)
            total += 1
            if len(matches) < request.offset + request.max_matches:
                matches.append(page.match(line, matcher, request, stop_at))
        if time.monotonic() > stop_at and number + 1 < len(documents):
            left = counted(len(documents) - number - 1, "page")
            notes.append(
                f"Stopped after {TIME_LIMIT_S:.0f} seconds in {path}; {left} after it not searched. "
                "Give a folder as path, or a simpler pattern."
            )
            break
    newest, folder = left_out
    if folder:
        while posixpath.basename(newest) == posixpath.basename(folder):
            newest, folder = posixpath.dirname(newest), posixpath.dirname(folder)
        notes.append(f"Older versions of these pages are left out. To search one, give its path, such as {folder}.")
    return GrepResult(tuple(matches), total, total_pages, notes=tuple(notes) or None)


def bounded(matches: Sequence[GrepMatch], request: GrepRequest) -> list[GrepMatch]:
    """The matches that the answer shows: after ``offset``, and within the limits, but at least one."""
    shown: list[GrepMatch] = []
    chars = 0
    for match in matches[request.offset : request.offset + request.max_matches]:
        chars += sum(map(len, (match.text, *(match.before or ()), *(match.after or ()))))
        if shown and request.max_chars is not None and chars > request.max_chars:
            break
        shown.append(match)
    return shown


def _documents(reader: IndexReader, path: str | None, docs_root: Path | None) -> Sequence[tuple[str, str, int]]:
    """(path of the newest version, path, id) of the pages that ``path`` names: a folder, a glob or one page.

    Without one these are all pages, each one in all its versions, newest first. For a ``path`` no page counts as a
    version of another. Raises :class:`NotFound`.
    """
    if not path:
        ids = {own_path: id_ for id_, own_path in reader.paths()}
        return [(own[0], each, ids[each]) for own in sorted(version_names.by_page(ids)) for each in own]
    if len(path) <= MAX_PATH_CHARS and is_unicode(path):
        is_selected = patterns.selects(path)
        if documents := sorted((own, own, id_) for id_, own in reader.paths() if is_selected(own)):
            return documents
    document = pages.find_document(reader, path, docs_root)  # an absolute path; else the error names the closest pages
    return [(document.file_path, document.file_path, document.id)]


def _matching_lines(matcher: LineMatcher, text: str, stop_at: float) -> Iterator[int]:
    """0-based numbers of matching lines, until the time is up."""
    last = -1
    for first, part in matcher.parts(text):
        still_wanted()
        if time.monotonic() > stop_at:
            return
        for line in matcher.lines(part):
            if first + line != last:  # a long line is matched in pieces
                last = first + line
                yield last


class _PageLines:
    """The lines of a page and their sections."""

    def __init__(self, path: str, id_: int, text: str, reader: IndexReader) -> None:
        self._path, self._id, self._text, self._reader = path, id_, text, reader
        self.lines = with_line_feeds(text).split("\n")

    @cached_property
    def _sections(self) -> Sequence[Section]:
        """Read for the first line that is shown: most matches of a common word are only counted."""
        return self._reader.sections(self._id)

    @cached_property
    def _is_made(self) -> bool:
        """Whether the text was made from HTML."""
        document = self._reader.document(self._path)
        return document is not None and document.metadata.get("rendered") is True

    @cached_property
    def _first_lines(self) -> Sequence[int]:
        first_lines = []
        first = start = 0
        for section in self._sections:
            first += with_line_feeds(self._text[start : section.start]).count("\n")
            start = section.start
            first_lines.append(first)
        return first_lines

    def place(self, number: int) -> tuple[str, int | None]:
        """The breadcrumb and the source line of a 0-based line.

        The line is None if a page of a site has other lines than its source. For text from an included file it is the
        line before that text.
        """
        section = self._sections[bisect.bisect_right(self._first_lines, number) - 1]
        first, last = section.start_line, section.end_line
        if first is None or last is None:
            return section.heading_path, None
        if self._is_made and not is_parallel(self._text[section.start : section.end], first, last):
            return section.heading_path, first if first == last else None
        return section.heading_path, min(first + number - self._first_lines[section.ordinal], last)

    def match(self, number: int, matcher: LineMatcher, request: GrepRequest, stop_at: float) -> GrepMatch:
        """A 0-based line as a match."""
        heading_path, source_line = self.place(number)
        is_cut, context = request.max_chars is not None, request.context
        text = self.lines[number]
        start = max(0, _first_match(text, matcher, stop_at) - CHARS_BEFORE_MATCH) if is_cut else 0
        before, after = self.lines[max(0, number - context) : number], self.lines[number + 1 : number + 1 + context]
        return GrepMatch(
            file_path=self._path,
            line=source_line,
            text=_cut(text, start) if is_cut else text,
            heading_path=heading_path,
            before=tuple(map(_cut, before) if is_cut else before) if context else None,
            after=tuple(map(_cut, after) if is_cut else after) if context else None,
        )


def _cut(line: str, start: int = 0) -> str:
    """A line of at most :data:`MAX_LINE_CHARS` as it is, a longer one cut from ``start`` on."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    end = start + MAX_LINE_CHARS
    return (CUT if start else "") + line[start:end] + (CUT if end < len(line) else "")


def _first_match(line: str, matcher: LineMatcher, stop_at: float) -> int:
    """The position of the first match in a long line; 0 in a shorter one, and when the time is up."""
    start = 0
    for _, part in matcher.parts(line) if len(line) > MAX_LINE_CHARS else ():
        still_wanted()
        if time.monotonic() > stop_at:
            break
        for first, _ in matcher.spans(part):
            return start + first
        start += len(part)
    return 0
