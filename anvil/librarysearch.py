"""Search in a library: the same ranking as ever, over documents that several processes add, replace and take away.

What is in memory (places, pages, vectors) is kept in the order of the rows, so that a document's part is one run; when
the library's version moved on, the parts of the documents that changed are exchanged and nothing else is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anvil import ranking
from anvil.errors import ConfigError
from anvil.filters import Filter
from anvil.holdings import Passages
from anvil.searching import CANDIDATES, Question, Searcher
from anvil.store import identity
from anvil.store.library_reading import LibraryReader
from anvil.vectors import VectorTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.embedding import EmbeddingProvider

MOST = 100
"""Results that can be asked for."""
ANEW = 2000
"""Changed documents from which on all is read again."""
REMEMBERED_FILTERS = 16


class LibrarySearcher(Searcher):
    """Search over one library file. Each question and :meth:`refresh` want to be inside one read transaction."""

    reader: LibraryReader

    def __init__(self, reader: LibraryReader, provider: EmbeddingProvider) -> None:
        self.version = -1
        self._filters: dict[Filter, NDArray[np.bool_]] = {}
        self._filter = Filter()
        super().__init__(reader, provider)

    def _loaded(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self.version = self.reader.version()
        found = np.array(self.reader.pages_of_chunks(), np.int64).reshape(-1, 2)
        found = found[np.argsort(found[:, 0])]
        self.pages = found[:, 1].astype(np.int32)
        self._vectors: tuple[NDArray[np.int64], NDArray[np.int8]] | None = None
        return found[:, 0], found[:, 0] >> identity.CHUNK_BITS

    def refresh(self) -> None:
        """Take in what changed since the last question."""
        version = self.reader.version()
        if version == self.version:
            return
        changed = np.array(self.reader.changed_since(self.version), np.int64)
        self._filters.clear()
        self._fields.clear()
        self._frequencies.clear()
        self.average = self.reader.average_length()
        self._why_not = self._obstacle()
        if len(changed) > ANEW:
            self._table = None
            self.rows, self.documents = self._loaded()
            return
        self.version = version
        fresh = [self.reader.pages_of_chunks(int(each)) for each in changed]
        found = np.array([row for each in fresh for row in each], np.int64).reshape(-1, 2)
        kept = ~np.isin(self.documents, changed)
        rows = np.concatenate([self.rows[kept], found[:, 0]])
        order = np.argsort(rows, kind="stable")
        self.rows = rows[order]
        self.pages = np.concatenate([self.pages[kept], found[:, 1].astype(np.int32)])[order]
        self.documents = self.rows >> identity.CHUNK_BITS
        if self._vectors is not None and self._table is not None:
            self._exchange(changed, self._table)

    def _exchange(self, changed: NDArray[np.int64], before: VectorTable) -> None:
        assert self._vectors is not None
        owners, vectors = self._vectors
        dimensions = vectors.shape[1]
        parts = [self.reader.document_vectors(int(each), dimensions) for each in changed]
        kept = ~np.isin(owners >> identity.CHUNK_BITS, changed)
        owners = np.concatenate([owners[kept], *(part for part, _ in parts)])
        order = np.argsort(owners, kind="stable")
        vectors = np.concatenate([vectors[kept], *(part for _, part in parts)])[order]
        owners = owners[order]
        self._vectors = owners, vectors
        self._table = VectorTable(vectors, np.searchsorted(self.rows, owners), self.documents, before, changed)

    @property
    def table(self) -> VectorTable:
        """All vectors, by place."""
        if self._table is None:
            owners, vectors = self.reader.matrix()
            order = np.argsort(owners, kind="stable")
            self._vectors = owners[order], vectors[order]
            self._table = VectorTable(
                self._vectors[1], np.searchsorted(self.rows, self._vectors[0]), self.documents
            )
        return self._table

    # --- a question ----------------------------------------------------------------------------------------

    def find(self, query: str, top_k: int, wanted: Filter, question: Question | None) -> Passages:
        """The best ``top_k`` (clamped to 1..100) passages that the filter lets through, by words and vectors.

        ``question``: the query embedded, where it could be. Raises :class:`ConfigError` for a blank query.
        """
        if not query.strip():
            raise ConfigError("query parameter is required")
        top_k = min(max(top_k, 1), MOST)
        notes = [self._why_not] if self._why_not else []
        vector = None
        if not self._why_not and question is not None:
            vector = question.vector
            if question.error is not None:
                notes.append(f"Semantic search is off: {question.error}")
        allowed = self._let_through(wanted)
        if not len(self.rows) or (allowed is not None and not allowed.any()):
            return Passages((), tuple(notes))
        if vector is not None and not len(self.table.rows):
            vector = None
        self._filter = wanted
        scored = self._ranked(query, vector, allowed, max(top_k, CANDIDATES))[:top_k]
        rows = [int(self.rows[place]) for _, place in scored]
        found = self.reader.passages(rows)
        results = (replace(found[row], score=score) for row, (score, _) in zip(rows, scored, strict=True))
        return Passages(tuple(results), tuple(notes))

    def _let_through(self, wanted: Filter) -> NDArray[np.bool_] | None:
        """The places that a filter lets through; None: all."""
        if not wanted.of_documents and wanted.page is None:
            return None
        if wanted not in self._filters:
            if len(self._filters) >= REMEMBERED_FILTERS:
                self._filters.clear()
            allowed = np.ones(len(self.rows), bool)
            if wanted.of_documents:
                chosen = np.zeros(1 << identity.DOCUMENT_BITS, bool)
                chosen[self.reader.fitting(wanted)] = True
                allowed = chosen[self.documents]
            if wanted.page is not None:
                allowed &= self.pages == wanted.page
            self._filters[wanted] = allowed
        return self._filters[wanted]

    def _matching(self, expression: str, count: int, allowed: NDArray[np.bool_] | None) -> list[int]:
        if allowed is None:
            return super()._matching(expression, count, None)
        return self.reader.matching_within(expression, ranking.FIELD_WEIGHTS, count, self._filter)

    def _places_of(self, rows: list[int]) -> set[int]:
        return {int(place) for place in np.searchsorted(self.rows, rows)}
