"""The pages as the evidence asks for them: passages that hold a phrase, and the section and line of a place in them."""

from __future__ import annotations

import bisect
import posixpath
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import is_parallel
from anvil.text import query as lexicon
from anvil.values import Section

MAX_HOLDERS = 400
"""Passages with a phrase that are read. A phrase that more have says nothing."""


class IndexedChunk(NamedTuple):
    """A chunk of a page. ``start``: where its text begins in that of the page."""

    row: int
    document: int
    path: str
    text: str
    heading_path: str
    start: int
    first_line: int | None
    last_line: int | None


class SectionLine(NamedTuple):
    """A place in the pages: the breadcrumb of its section, and its 1-based source line, if that is known."""

    heading_path: str
    line: int | None


class IndexedPages(Protocol):
    """The pages of an index."""

    @property
    def passages(self) -> int:
        """The number of passages."""

    @property
    def titles(self) -> dict[str, str]:
        """Path -> title of each page, by path."""

    def holding(self, phrases: Sequence[str]) -> list[IndexedChunk] | None:
        """The passages with any of these phrases, by words and their stems; None for more than
        :data:`MAX_HOLDERS`."""

    def spot(self, passage: IndexedChunk, offset: int) -> SectionLine:
        """The section and line at a character of a passage."""

    def sections(self, path: str) -> Sequence[Section]:
        """The sections of a page, in order; none of an unknown page."""

    def hidden(self) -> list[tuple[str, str]]:
        """(path, what readers do not see, such as the targets of links) of each page that has such text."""


class IndexDocumentation:
    """The pages of an index file, or of a copy in memory."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.passages = reader.counts()["chunks"]
        self._documents = {document.file_path: document for document in reader.documents()}
        self.titles = {path: document.title for path, document in self._documents.items()}
        self._passages: dict[int, IndexedChunk] = {}
        self._sections: dict[int, tuple[Section, ...]] = {}
        self._starts: dict[int, list[int]] = {}

    def holding(self, phrases: Sequence[str]) -> list[IndexedChunk] | None:
        """See :class:`IndexedPages`."""
        expression = lexicon.any_of(phrase for phrase in phrases if phrase)
        if not expression:
            return []
        rows = self._reader.holding(expression, MAX_HOLDERS + 1)
        if len(rows) > MAX_HOLDERS:
            return None
        new = [row for row in rows if row not in self._passages]
        for chunk in self._reader.chunks(new).values() if new else ():
            place = chunk.metadata
            self._passages[chunk.row] = IndexedChunk(
                chunk.row,
                chunk.document_id,
                place.file_path,
                chunk.content,
                place.heading_path,
                chunk.start,
                place.start_line,
                place.end_line,
            )
        return [self._passages[row] for row in sorted(rows)]

    def spot(self, passage: IndexedChunk, offset: int) -> SectionLine:
        """See :class:`IndexedPages`."""
        sections = self._of(passage.document)
        starts = self._starts[passage.document]
        section = sections[max(0, bisect.bisect_right(starts, passage.start + offset) - 1)] if sections else None
        line = passage.first_line
        if line is not None and is_parallel(passage.text, passage.first_line, passage.last_line):
            line += passage.text.count("\n", 0, offset)
        elif section is not None:
            line = section.start_line
        return SectionLine(section.heading_path if section is not None else passage.heading_path, line)

    def sections(self, path: str) -> Sequence[Section]:
        """See :class:`IndexedPages`."""
        document = self._documents.get(path)
        return self._of(document.id) if document is not None else ()

    def hidden(self) -> list[tuple[str, str]]:
        """See :class:`IndexedPages`."""
        paths = {document.id: path for path, document in self._documents.items()}
        return [(paths[page.id], page.hidden) for page in self._reader.page_texts() if page.hidden.strip()]

    def _of(self, document: int) -> tuple[Section, ...]:
        if document not in self._sections:
            self._sections[document] = self._reader.sections(document)
            self._starts[document] = [section.start for section in self._sections[document]]
        return self._sections[document]


def page_words(path: str) -> list[str]:
    """The words of a page's path, in lower case."""
    return [word.lower() for word in lexicon.words(posixpath.splitext(path)[0])]
