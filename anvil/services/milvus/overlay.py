"""An index on a server and, over it, the pages that moved on since: both as one, to whoever asks.

A page that changed, or is gone, is masked: nothing of it is answered from the server any more. What the documents say
now of the pages that changed or came lies in a small index in memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from anvil.backends.milvus.reader import MilvusReader
from anvil.backends.store import connection, row_ids
from anvil.backends.store.reader import Reader
from anvil.backends.store.rows import SearchedText, SectionPlace, StoredChunk, StoredDocument
from anvil.backends.store.writer import Writer
from anvil.models.documents import PageChunk, Section


class _OverlayReader(Reader):
    """Queries against the pages of an overlay."""

    def __init__(self, overlay: Writer, below: MilvusReader) -> None:
        super().__init__(overlay.connection)
        self._below = below

    def times(self) -> dict[str, tuple[str, str]]:
        return {**self._below.times(), **super().times()}


class Overlay(Writer):
    """The pages that moved on. A page has the id that it has on the server, a new one an id that none has there."""

    def __init__(self, below: MilvusReader) -> None:
        super().__init__(connection.open_scratch(":memory:"))
        self.reader = _OverlayReader(self, below)
        self._below = below

    def new_id(self, library: str, path: str, besides: Container[int] = ()) -> int:
        stands = self._below.pages.get(path)
        return stands.id if stands else super().new_id(library, path, self._below.paths)


@dataclass(frozen=True)
class LayeredReader:
    """What :class:`anvil.backends.store.reader_protocol.IndexReader` asks, of both."""

    below: MilvusReader
    above: Reader | None = None
    masked: frozenset[int] = frozenset()
    """Ids of the documents that are not answered from below."""
    _listed: list[tuple[str, int, int]] = field(default_factory=list)

    def close(self) -> None:
        """Close what lies above."""
        if self.above is not None:
            self.above.close()

    def listed(self) -> list[tuple[str, int, int]]:
        """(path, document id, chunks) of all pages, by path."""
        if not self._listed:
            found = [(path, e.id, e.chunks) for path, e in self.below.pages.items() if e.id not in self.masked]
            if self.above is not None:
                sizes = self.above.page_sizes()
                found += [(d.file_path, d.id, sizes.get(d.id, (0, 0))[0]) for d in self.above.documents()]
            self._listed.extend(sorted(found))
        return self._listed

    def is_above(self, document: int) -> bool:
        """Whether a document is answered from above."""
        return self.above is not None and (document in self.masked or document not in self.below.paths)

    def _of_both(self, documents: Iterable[int], shift: int = 0) -> tuple[list[int], list[int]]:
        """Document ids, or with ``shift`` what they are the upper bits of: those below, those above."""
        below: list[int] = []
        above: list[int] = []
        for each in map(int, documents):
            (above if self.is_above(each >> shift) else below).append(each)
        return below, above

    # --- what it is ------------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """The manifest of what lies below."""
        return self.below.meta()

    def counts(self) -> dict[str, int]:
        """Documents and chunks as they are answered from, the rest as it was exported."""
        listed = self.listed()
        return {**self.below.counts(), "documents": len(listed), "chunks": sum(chunks for _, _, chunks in listed)}

    def excluded_hashes(self) -> frozenset[str] | None:
        return self.below.excluded_hashes()

    def average_length(self) -> float:
        """Words a chunk, as exported: a few pages more or less do not change it."""
        return self.below.average_length()

    # --- documents -------------------------------------------------------------------------------------------

    def blob_ids(self) -> dict[str, str]:
        found = {path: e.blob_id for path, e in self.below.pages.items() if e.blob_id and e.id not in self.masked}
        if self.above is None:
            return found
        return dict(sorted({**found, **self.above.blob_ids()}.items()))

    def identities(self) -> dict[str, str]:
        found = {path: e.blob_id for path, e in self.below.pages.items() if e.id not in self.masked}
        return found if self.above is None else dict(sorted({**found, **self.above.identities()}.items()))

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        if self.above is None:
            yield from self.below.documents(prefix)
            return
        new = list(self.above.documents(prefix))
        for each in self.below.documents(prefix):
            if each.id not in self.masked:
                while new and new[0].file_path < each.file_path:
                    yield new.pop(0)
                yield each
        yield from new

    def document(self, file_path: str) -> StoredDocument | None:
        found = self.above.document(file_path) if self.above is not None else None
        if found is None and (stands := self.below.pages.get(file_path)) and stands.id not in self.masked:
            found = self.below.document(file_path)
        return found

    def _of(self, document: int) -> MilvusReader | Reader:
        return self.above if self.above is not None and self.is_above(document) else self.below

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        return self._of(document_id).page_chunks(document_id)

    def sections(self, document_id: int) -> tuple[Section, ...]:
        return self._of(document_id).sections(document_id)

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        wanted = list(spans)
        below = [span for span in wanted if not self.is_above(span[0])]
        found = dict(zip(below, self.below.sections_in(below), strict=True))
        if self.above is not None and len(below) < len(wanted):
            above = [span for span in wanted if self.is_above(span[0])]
            found |= zip(above, self.above.sections_in(above), strict=True)
        return [found[span] for span in wanted]

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        return {**self.below.page_sizes(), **(self.above.page_sizes() if self.above is not None else {})}

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        below, above = self._of_both(documents)
        found = self.below.top_headings(below)
        return found if self.above is None else {**found, **self.above.top_headings(above)}

    # --- search ----------------------------------------------------------------------------------------------

    def rows_of(self, documents: Iterable[int]) -> list[int]:
        """The chunk rows of some documents."""
        below, above = self._of_both(documents)
        found = self.below.rows_of(below)
        for document in above:
            found += self.above.chunk_rows(document) if self.above is not None else []
        return found

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        below, above = self._of_both(rows, row_ids.CHUNK_BITS)
        found = self.below.searched_text(below)
        return found if self.above is None else {**found, **self.above.searched_text(above)}

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        return self._of(row >> row_ids.CHUNK_BITS).windows_of(row)

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        below, above = self._of_both(rows, row_ids.CHUNK_BITS)
        found = self.below.chunks(below)
        return found if self.above is None else {**found, **self.above.chunks(above)}
