"""An exported index and, above it, the pages that changed since the export, as one reader.

A page that changed or was removed is masked: its rows on the server are not used. Changed and new pages are in a small
index in memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from itertools import islice
from operator import attrgetter

from anvil.index_file import connection, table_rows
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, SectionPlace, StoredChunk, StoredDocument
from anvil.index_file.writer import Writer
from anvil.milvus.milvus_reader import BATCH_PAGES, MilvusReader
from anvil.text.page_links import PageLinks, links_of
from anvil.values import PageChunk, Section


class _OverlayReader(Reader):
    def __init__(self, overlay: Writer, below: MilvusReader) -> None:
        super().__init__(overlay.connection)
        self._below = below

    def times(self) -> dict[str, tuple[str, str]]:
        return {**self._below.times(), **super().times()}


class Overlay(Writer):
    """The pages that changed since the export, at first none. A page has its id of the server; a new page has an unused
    id."""

    def __init__(self, below: MilvusReader) -> None:
        super().__init__(connection.open_scratch(":memory:"))
        self.reader = _OverlayReader(self, below)
        self._below = below
        meta = below.meta()
        connection.lay_out(self.connection, int(meta["embedding_dimensions"]))
        self.set_meta({key: meta[key] for key in (*SETTINGS, "commit") if key in meta})
        self.seal()

    def new_id(self, library: str, path: str, besides: Container[int] = ()) -> int:
        exported = self._below.pages.get(path)
        return exported.id if exported else super().new_id(library, path, self._below.path_of)


class LayeredReader:
    """An :class:`anvil.index_file.reader.IndexReader` over the export below and the overlay above. ``masked``: ids of
    the documents below that are not used."""

    def __init__(self, below: MilvusReader, above: Reader, masked: frozenset[int]) -> None:
        self.below, self.above, self.masked = below, above, masked

    @cached_property
    def listed(self) -> list[tuple[str, int, int]]:
        """(path, document id, chunks) of all pages, by path."""
        rows = [(path, e.id, e.chunks) for path, e in self.below.pages.items() if e.id not in self.masked]
        sizes = self.above.page_sizes()
        return sorted(rows + [(d.file_path, d.id, sizes.get(d.id, (0, 0))[0]) for d in self.above.documents()])

    def is_above(self, document: int) -> bool:
        """Whether a document is in the overlay."""
        return document in self.masked or document not in self.below.path_of

    def _of_both(self, documents: Iterable[int], shift: int = 0) -> tuple[list[int], list[int]]:
        """Document ids, or row ids with a document id above ``shift`` bits, as those below and those above."""
        below: list[int] = []
        above: list[int] = []
        for id_ in map(int, documents):
            (above if self.is_above(id_ >> shift) else below).append(id_)
        return below, above

    # --- the whole index -------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        return self.below.meta()

    def counts(self) -> dict[str, int]:
        """Documents and chunks of both, the other counts of the export."""
        chunks = sum(chunks for _, _, chunks in self.listed)
        return {**self.below.counts(), "documents": len(self.listed), "chunks": chunks}

    def excluded_hashes(self) -> frozenset[str] | None:
        return self.below.excluded_hashes()

    def average_length(self) -> float:
        """Mean number of words per chunk, of the export: a few pages do not change it much."""
        return self.below.average_length()

    def links(self) -> PageLinks:
        """The links between the pages of both, as if they were in one file."""
        exported = {page: links for page, links in self.below.links().items() if page.id not in self.masked}
        new = self.above.addresses()
        links = {page.id: links for page, links in exported.items()} | links_of(new, self.above.page_texts())
        return PageLinks(sorted([*exported, *new], key=attrgetter("path")), links)

    # --- documents -------------------------------------------------------------------------------------------

    def blob_ids(self) -> dict[str, str]:
        blobs = {path: e.blob_id for path, e in self.below.pages.items() if e.blob_id and e.id not in self.masked}
        return dict(sorted({**blobs, **self.above.blob_ids()}.items()))

    def identities(self) -> dict[str, str]:
        identities = {path: e.blob_id for path, e in self.below.pages.items() if e.id not in self.masked}
        return dict(sorted({**identities, **self.above.identities()}.items()))

    def paths(self) -> Iterator[tuple[int, str]]:
        yield from ((id_, path) for id_, path in self.below.path_of.items() if id_ not in self.masked)
        yield from self.above.paths()

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        new = list(self.above.documents(prefix))
        for exported in self.below.documents(prefix):
            if exported.id not in self.masked:
                while new and new[0].file_path < exported.file_path:
                    yield new.pop(0)
                yield exported
        yield from new

    def document(self, file_path: str) -> StoredDocument | None:
        document = self.above.document(file_path)
        if document is None and (page := self.below.pages.get(file_path)) and page.id not in self.masked:
            document = self.below.document(file_path)
        return document

    def _of(self, document: int) -> MilvusReader | Reader:
        return self.above if self.is_above(document) else self.below

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        return self._of(document_id).page_chunks(document_id)

    def chunks_of_pages(self, documents: Iterable[int]) -> Iterator[tuple[PageChunk, ...]]:
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH_PAGES)):
            below, above = self._of_both(batch)
            chunks = dict(zip(below, self.below.chunks_of_pages(below), strict=True))
            chunks |= zip(above, self.above.chunks_of_pages(above), strict=True)
            yield from (chunks[id_] for id_ in batch)

    def sections(self, document_id: int) -> tuple[Section, ...]:
        return self._of(document_id).sections(document_id)

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        requested = list(spans)
        below = [span for span in requested if not self.is_above(span[0])]
        places = dict(zip(below, self.below.sections_in(below), strict=True))
        above = [span for span in requested if self.is_above(span[0])]
        places |= zip(above, self.above.sections_in(above), strict=True)
        return [places[span] for span in requested]

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        return {**self.below.page_sizes(), **self.above.page_sizes()}

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        below, above = self._of_both(documents)
        return {**self.below.top_headings(below), **self.above.top_headings(above)}

    # --- search ----------------------------------------------------------------------------------------------

    def rows_of(self, documents: Iterable[int]) -> list[int]:
        below, above = self._of_both(documents)
        return self.below.rows_of(below) + [row for document in above for row in self.above.chunk_rows(document)]

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        below, above = self._of_both(rows, table_rows.CHUNK_BITS)
        return {**self.below.searched_text(below), **self.above.searched_text(above)}

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        return self._of(row >> table_rows.CHUNK_BITS).windows_of(row)

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        below, above = self._of_both(rows, table_rows.CHUNK_BITS)
        return {**self.below.chunks(below), **self.above.chunks(above)}
