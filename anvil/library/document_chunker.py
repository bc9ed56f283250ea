"""Chunking of a document in parts: its pages, or slices of a long text. Only one part is parsed at a time.

The texts of the parts, joined, are the document's text. So are its head and the contents of its chunks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from anvil.settings.schema import ChunkingOptions
from anvil.text import chunker, markdown_sections
from anvil.values import ROOT, SEPARATOR, Chunk, Section

MAX_PART_CHARACTERS = 500_000
"""Characters of the longest text that is parsed at once."""
PACK_FROM_CHARACTERS = 4_000_000
"""Characters of a document from which on all sections are short ones, because the row ids of a document are limited
(``CHUNK_BITS`` in :mod:`anvil.index_file.table_rows`)."""

_BORDER = re.compile(r"^(?: {0,3}(?P<fence>`{3,}|~{3,})|(?P<heading>#{1,6})(?=[ \t])|(?P<blank>[ \t]*$))", re.M)
Headings = tuple[tuple[int, str], ...]
"""(level, breadcrumb) of the headings above a position, the highest first."""
_UNFIT = ("---", "\ufeff")
"""These begin front matter or are a byte order mark, but only at the beginning of a text."""


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Markdown of a document, its page, 0 for a document without pages, and what people should know of its reading."""

    text: str
    page: int = 0
    note: str = ""


def sliced(text: str, size: int = MAX_PART_CHARACTERS) -> Iterator[str]:
    """Split a text into slices of at most ``size`` characters: before a heading, of the highest level there is, else at
    a blank line outside fences, else at the end of a line."""
    at, slice_ = 0, ""
    while at < len(text):
        cut = _cut(text, at, at + size) if len(text) - at > size else len(text)
        piece, at = text[at:cut], cut
        if slice_ and slice_.strip() and piece.strip():
            yield slice_
            slice_ = ""
        slice_ += piece  # a blank slice is joined with a neighbour: alone it would have no chunk, and its text be lost
    if slice_:
        yield slice_


def _cut(text: str, at: int, end: int) -> int:
    best, rank, fence = 0, 9, ""  # a heading has its level as rank, a blank line 7: lower is better, of equals the last
    for border in _BORDER.finditer(text, at + 1, end):
        if mark := border["fence"]:
            fence = "" if fence and mark.startswith(fence) else fence or mark
        # Only in the second half: a single h1 near the beginning would else win over all headings of a long slice.
        elif not fence and border.start() > at + (end - at) // 2 and not text.startswith(_UNFIT, border.start()):
            level = len(border["heading"]) if border["heading"] else 7
            if level <= rank:
                best, rank = border.start(), level
    if best:
        return best
    line = text.rfind("\n", at + 1, end) + 1
    cut = line or end
    while text.startswith(_UNFIT, cut) and cut > at + 1:  # a slice must not begin with these
        cut -= 1
    return cut


class DocumentChunker:
    """Chunks one document, a part at a time, in order."""

    def __init__(self, options: ChunkingOptions) -> None:
        self._options = options
        self.head: str | None = None
        """Byte order mark and front matter of the first part. None before the first call."""
        self.title: str | None = None
        """The document's title, from the front matter or the first h1 of the first part."""
        self.characters = 0
        """Characters of the text so far, without :attr:`head`."""
        self._chunks = 0
        self._lines = 0
        self._above: Headings = ()

    def cut(self, text: str) -> list[Chunk]:
        """The chunks of the next part. Numbers, offsets and breadcrumbs continue from the parts before."""
        first = self.head is None
        if not first and text.startswith(_UNFIT):  # as a page of a document may
            text = "\n" + text
        page = markdown_sections.parse(text, self._options)
        if first:
            self.head, self.title = text[: len(text) - len(page.text)], page.title
        if not page.text.strip():  # only the first of several parts can have front matter and no text
            self.head = text if not self._chunks else self.head
            return []
        chunks = chunker.chunks(page, self._options)
        before = _openings(page.sections, self._above)
        starts = [section.start for section in page.sections]
        placed = [self._placed(chunk, before[bisect_right(starts, chunk.start) - 1]) for chunk in chunks]
        self._above = _open_at_end(page.sections, before, self._above)
        self._chunks += len(placed)
        self.characters += len(page.text)
        if self.characters > PACK_FROM_CHARACTERS:
            longest = self._options.max_chunk_size
            self._options = replace(self._options, merge_short_sections=True, min_chunk_size=longest)
        self._lines += page.text.count("\n") + page.first_line - 1
        return placed

    def _placed(self, chunk: Chunk, above: str) -> Chunk:
        """A chunk of a part, with the numbers and offsets of the document."""
        path = chunk.heading_path
        if above:
            path = above + (path.removeprefix(ROOT) if chunk.heading_level == 0 else SEPARATOR + path)
        return replace(
            chunk,
            ordinal=self._chunks + chunk.ordinal,
            heading_path=path,
            start=self.characters + chunk.start,
            end=self.characters + chunk.end,
            start_line=self._lines + (chunk.start_line or 0),
            end_line=self._lines + (chunk.end_line or 0),
        )


def _openings(sections: Sequence[Section], above: Headings) -> list[str]:
    """For each section the breadcrumb in ``above`` that it is under; empty without one."""
    highest, breadcrumbs = 7, []  # the highest level so far: a heading of this part ends what is above it and deeper
    for section in sections:
        highest = min(highest, section.heading_level or highest)
        paths = [path for level, path in above if section.heading_level == 0 or level < highest]
        breadcrumbs.append(paths[-1] if paths else "")
    return breadcrumbs


def _open_at_end(sections: Sequence[Section], before: Sequence[str], above: Headings) -> Headings:
    """The headings above the next part."""
    open_ = list(above)
    for section, path in zip(sections, before, strict=True):
        if section.heading_level:
            open_ = [heading for heading in open_ if heading[0] < section.heading_level]
            full = f"{path}{SEPARATOR}{section.heading_path}" if path else section.heading_path
            open_.append((section.heading_level, full))
    return tuple(open_)
