"""Chunking of a document of any length, one part at a time: a page, or a slice of a long text.

The parts joined are the document's text, and so are its head and the contents of its chunks.
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
"""Characters of a document after which chunks are filled with several sections, because a document has a limited number
of row ids (``CHUNK_BITS`` in :mod:`anvil.index_file.table_rows`)."""

_BORDER = re.compile(r"^(?: {0,3}(?P<fence>`{3,}|~{3,})|(?P<heading>#{1,6})(?=[ \t])|(?P<blank>[ \t]*$))", re.M)
Headings = tuple[tuple[int, str], ...]
"""(level, breadcrumb) of the headings above a position, the highest first."""
_SPECIAL_STARTS = ("---", "\ufeff")
"""At the beginning of a text these are front matter and a byte order mark. So no later part may begin with them."""


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A part of a document as Markdown. ``page``: from 1; 0 for a document without pages. ``note``: a warning."""

    text: str
    page: int = 0
    note: str = ""


def slices(text: str, size: int = MAX_PART_CHARACTERS) -> Iterator[str]:
    """Split a text into slices of at most ``size`` characters.

    A slice ends before a heading, as high a one as there is; else at a blank line outside fences; else at a line end.
    """
    at, slice_ = 0, ""
    while at < len(text):
        cut = _cut(text, at, at + size) if len(text) - at > size else len(text)
        piece, at = text[at:cut], cut
        if slice_ and slice_.strip() and piece.strip():
            yield slice_
            slice_ = ""
        slice_ += piece  # a blank piece is joined with a neighbour: alone it has no chunk, and its text would be lost
    if slice_:
        yield slice_


def _cut(text: str, at: int, end: int) -> int:
    # The rank of a heading is its level, that of a blank line 7. The lowest rank is best, and the last one of that.
    best, best_rank, fence = 0, 9, ""
    for border in _BORDER.finditer(text, at + 1, end):
        if mark := border["fence"]:
            fence = "" if fence and mark.startswith(fence) else fence or mark
        # In the second half only: otherwise a single h1 near the beginning wins over all headings of a long slice.
        elif (
            not fence and border.start() > at + (end - at) // 2 and not text.startswith(_SPECIAL_STARTS, border.start())
        ):
            rank = len(border["heading"]) if border["heading"] else 7
            if rank <= best_rank:
                best, best_rank = border.start(), rank
    if best:
        return best
    line = text.rfind("\n", at + 1, end) + 1
    cut = line or end
    while text.startswith(_SPECIAL_STARTS, cut) and cut > at + 1:
        cut -= 1
    return cut


class DocumentChunker:
    """Chunks one document, a part at a time, in order."""

    def __init__(self, options: ChunkingOptions) -> None:
        self._options = options
        self.head: str | None = None
        """Byte order mark and front matter of the first part. None before the first call of :meth:`cut`."""
        self.title: str | None = None
        """The document's title, from the front matter or the first h1 of the first part."""
        self.characters = 0
        """Characters of the text so far, without :attr:`head`."""
        self._chunks = 0
        self._lines = 0
        self._above: Headings = ()

    def cut(self, text: str) -> list[Chunk]:
        """The chunks of the next part. Numbers, offsets and breadcrumbs continue those of the parts before."""
        first = self.head is None
        if not first and text.startswith(_SPECIAL_STARTS):  # as a page of a document may
            text = "\n" + text
        page = markdown_sections.parse(text, self._options)
        if first:
            self.head, self.title = text[: len(text) - len(page.text)], page.title
        if not page.text.strip():  # only the first of several parts can have front matter and no text
            self.head = text if not self._chunks else self.head
            return []
        chunks = chunker.chunks(page, self._options)
        before = _breadcrumbs_above(page.sections, self._above)
        starts = [section.start for section in page.sections]
        placed = [self._in_document(chunk, before[bisect_right(starts, chunk.start) - 1]) for chunk in chunks]
        self._above = _headings_at_end(page.sections, before, self._above)
        self._chunks += len(placed)
        self.characters += len(page.text)
        if self.characters > PACK_FROM_CHARACTERS:
            longest = self._options.max_chunk_size
            self._options = replace(self._options, merge_short_sections=True, min_chunk_size=longest)
        self._lines += page.text.count("\n") + page.first_line - 1
        return placed

    def _in_document(self, chunk: Chunk, above: str) -> Chunk:
        """A chunk of this part, with its numbers and offsets in the document. ``above``: the breadcrumb above it."""
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


def _breadcrumbs_above(sections: Sequence[Section], above: Headings) -> list[str]:
    """The breadcrumb in ``above`` under which each section is; empty if there is none. ``above``: the headings that are
    open at the beginning of the part."""
    highest, breadcrumbs = 7, []  # the highest level so far in this part: its heading closes equal and deeper ones
    for section in sections:
        highest = min(highest, section.heading_level or highest)
        paths = [path for level, path in above if section.heading_level == 0 or level < highest]
        breadcrumbs.append(paths[-1] if paths else "")
    return breadcrumbs


def _headings_at_end(sections: Sequence[Section], before: Sequence[str], above: Headings) -> Headings:
    """The headings that are open at the end of a part."""
    open_ = list(above)
    for section, path in zip(sections, before, strict=True):
        if section.heading_level:
            open_ = [heading for heading in open_ if heading[0] < section.heading_level]
            full = f"{path}{SEPARATOR}{section.heading_path}" if path else section.heading_path
            open_.append((section.heading_level, full))
    return tuple(open_)
