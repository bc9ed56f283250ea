"""A document in pieces: pages of a paged one, slices of a long one; no more than a piece is taken apart at once.

Pure. The pieces' texts, joined, are the document's text; so are its head and the contents of its chunks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from anvil.core.chunking import chunker
from anvil.core.config.schema import ChunkingOptions
from anvil.core.markdown import parser
from anvil.models.documents import ROOT, SEPARATOR, Chunk, Section

MAX_PART_CHARACTERS = 500_000
"""Characters of the longest text that is taken apart at once."""
PACK_FROM_CHARACTERS = 4_000_000
"""Characters of a document from which on its short passages are put together: it has numbers for so many only."""

_BORDER = re.compile(r"^(?: {0,3}(?P<fence>`{3,}|~{3,})|(?P<heading>#{1,6})(?=[ \t])|(?P<blank>[ \t]*$))", re.M)
Headings = tuple[tuple[int, str], ...]
"""(level, breadcrumb) of headings that are open, the highest first."""
_UNFIT = ("---", "\ufeff")
"""What stands for front matter at the beginning of a text, and only there."""


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Some Markdown of a document, and the page it is of; 0 when there are no pages."""

    text: str
    page: int = 0


def sliced(text: str, size: int = MAX_PART_CHARACTERS) -> Iterator[str]:
    """Cut a text into slices of at most ``size`` characters: before a heading, the higher the better, else at a blank
    line outside fences, else at a line's end."""
    at, held = 0, ""
    while at < len(text):
        cut = _cut(text, at, at + size) if len(text) - at > size else len(text)
        piece, at = text[at:cut], cut
        if held and held.strip() and piece.strip():
            yield held
            held = ""
        held += piece  # what is blank goes with a neighbour
    if held:
        yield held


def _cut(text: str, at: int, end: int) -> int:
    best, rank, fence = 0, 9, ""
    for found in _BORDER.finditer(text, at + 1, end):
        if mark := found["fence"]:
            fence = "" if fence and mark.startswith(fence) else fence or mark
        elif not fence and found.start() > at + (end - at) // 2 and not text.startswith(_UNFIT, found.start()):
            level = len(found["heading"]) if found["heading"] else 7
            if level <= rank:
                best, rank = found.start(), level
    if best:
        return best
    line = text.rfind("\n", at + 1, end) + 1
    cut = line or end
    while text.startswith(_UNFIT, cut) and cut > at + 1:  # never the first characters of a slice
        cut -= 1
    return cut


class IncrementalChunker:
    """Cuts one document into chunks, a piece at a time, in order."""

    def __init__(self, options: ChunkingOptions) -> None:
        self._options = options
        self.head: str | None = None
        """What stands before the text of the first piece: byte order mark and front matter. None before it came."""
        self.title: str | None = None
        """The document's title, as front matter or the first h1 of the first piece says."""
        self.characters = 0
        """Of the text so far, without :attr:`head`."""
        self._chunks = 0
        self._lines = 0
        self._above: Headings = ()

    def cut(self, text: str) -> list[Chunk]:
        """The chunks of the next piece; numbers, offsets and breadcrumbs go on from the pieces before."""
        first = self.head is None
        if not first and text.startswith(_UNFIT):
            text = "\n" + text
        page = parser.parse(text, slugs=self._options.slugs)
        if first:
            self.head, self.title = text[: len(text) - len(page.text)], page.title
        if not page.text.strip():  # of a document of several pieces, only the first can be blank but for its head
            self.head = text if not self._chunks else self.head
            return []
        made: Sequence[Chunk] = chunker.chunks(page, self._options)
        if self.characters > PACK_FROM_CHARACTERS:
            made = packed(made, self._options.max_chunk_size)
        before = _openings(page.sections, self._above)
        starts = [section.start for section in page.sections]
        placed = [self._placed(chunk, page.first_line, before[bisect_right(starts, chunk.start) - 1]) for chunk in made]
        self._above = _open_at_end(page.sections, before, self._above)
        self._chunks += len(placed)
        self.characters += len(page.text)
        self._lines += page.text.count("\n") + page.first_line - 1
        return placed

    def _placed(self, chunk: Chunk, first_line: int, above: str) -> Chunk:
        """A chunk of a piece as one of the document's."""
        path = chunk.heading_path
        if above:
            path = above + (path.removeprefix(ROOT) if chunk.heading_level == 0 else SEPARATOR + path)
        return replace(
            chunk,
            ordinal=self._chunks + chunk.ordinal,
            heading_path=path,
            start=self.characters + chunk.start,
            end=self.characters + chunk.end,
            start_line=self._lines + chunk.start_line,
            end_line=self._lines + chunk.end_line,
        )


def packed(chunks: Sequence[Chunk], limit: int) -> list[Chunk]:
    """Neighbours put together while they fit ``limit`` characters: on average, more than half of it."""
    found: list[Chunk] = []
    for chunk in chunks:
        last = found[-1] if found else None
        if last is not None and chunk.end - last.start <= limit:
            masked = None
            if last.masked is not None or chunk.masked is not None:
                masked = (last.masked or last.content) + (chunk.masked or chunk.content)
            content = last.content + chunk.content
            found[-1] = replace(last, content=content, end=chunk.end, end_line=chunk.end_line, masked=masked)
        else:
            found.append(replace(chunk, ordinal=len(found)))
    return found


def _openings(sections: Sequence[Section], above: Headings) -> list[str]:
    """The breadcrumb, out of ``above``, that each section goes on under; empty where there is none."""
    highest, found = 7, []
    for section in sections:
        highest = min(highest, section.heading_level or highest)
        paths = [path for level, path in above if section.heading_level == 0 or level < highest]
        found.append(paths[-1] if paths else "")
    return found


def _open_at_end(sections: Sequence[Section], before: Sequence[str], above: Headings) -> Headings:
    """The headings that the next piece goes on under."""
    open_ = list(above)
    for section, path in zip(sections, before, strict=True):
        if section.heading_level:
            open_ = [each for each in open_ if each[0] < section.heading_level]
            full = f"{path}{SEPARATOR}{section.heading_path}" if path else section.heading_path
            open_.append((section.heading_level, full))
    return tuple(open_)
