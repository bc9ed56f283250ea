"""Search in a library: the same ranking as ever, over documents that several processes add, replace and take away.

What is in memory (places, pages, vectors) is kept in the order of the rows, so that a document's part is one run; when
the library's version moved on, the parts of the documents that changed are exchanged and nothing else is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anvil import lexicon, ranking
from anvil.errors import ConfigError
from anvil.filters import Filter
from anvil.holdings import Passages
from anvil.searching import CANDIDATES, Question, Searcher
from anvil.store import identity
from anvil.store.library_reading import LibraryReader
from anvil.store.stored import SearchedText
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
    _texts: dict[int, SearchedText]
    _frequencies: dict[str, int]

    def __init__(self, reader: LibraryReader, provider: EmbeddingProvider) -> None:
        self.version = -1
        self._filters: dict[Filter, NDArray[np.bool_]] = {}
        self._filter = Filter()
        self._moved = 0
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
        self._forget(changed)
        self.average = self.reader.average_length()
        self._why_not = self._obstacle()
        if len(changed) > ANEW:
            self._table = None
            self.rows, self.documents = self._loaded()
            return
        self.version = version
        parts = [np.array(self.reader.pages_of_chunks(int(each)), np.int64).reshape(-1, 2) for each in changed]
        before = self.documents
        self.rows = spliced(self.rows, before, changed, [part[:, 0] for part in parts])
        self.pages = spliced(self.pages, before, changed, [part[:, 1].astype(np.int32) for part in parts])
        self.documents = self.rows >> identity.CHUNK_BITS
        if self._vectors is not None and self._table is not None:
            owners, vectors = self._vectors
            held, width = owners >> identity.CHUNK_BITS, int(self.reader.meta()["embedding_dimensions"])
            if width != vectors.shape[1]:
                self._table = None
                return
            made = [self.reader.document_vectors(int(each), width) for each in changed]
            owners = spliced(owners, held, changed, [part for part, _ in made])
            vectors = spliced(vectors, held, changed, [part for _, part in made])
            self._vectors = owners, vectors
            places = np.searchsorted(self.rows, owners)
            self._table = VectorTable(vectors, places, self.documents, self._table, changed)

    def _forget(self, changed: NDArray[np.int64]) -> None:
        """Drop what was learnt of documents that changed, and, when that adds up, how frequent words are."""
        gone = set(changed.tolist())
        self._texts = {row: each for row, each in self._texts.items() if row >> identity.CHUNK_BITS not in gone}
        self._moved += len(changed)
        if self._moved * 100 > len(self.documents):
            self._moved = 0
            self._frequencies.clear()
        else:  # a word that nobody used is the one that may have come
            self._frequencies = {token: count for token, count in self._frequencies.items() if count}

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
        rows = [int(self.rows[place]) for _, place, _ in scored]
        found = self.reader.passages(rows)
        results = (replace(found[row], score=score) for row, (score, _, _) in zip(rows, scored, strict=True))
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

    def _matching(self, wanted: Sequence[str], count: int, allowed: NDArray[np.bool_] | None) -> list[int]:
        if allowed is None:
            return super()._matching(wanted, count, None)
        return self.reader.matching_within(lexicon.any_of(wanted), ranking.FIELD_WEIGHTS, count, self._filter)

    def _places_of(self, rows: list[int]) -> set[int]:
        return {int(place) for place in np.searchsorted(self.rows, rows)}


def spliced(
    values: NDArray[Any], documents: NDArray[np.int64], changed: NDArray[np.int64], parts: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """``values``, in the order of their ``documents``, with the runs of those ``changed`` (ascending) exchanged."""
    firsts, lasts = np.searchsorted(documents, changed), np.searchsorted(documents, changed, side="right")
    pieces, at = [], 0
    for first, last, part in zip(firsts.tolist(), lasts.tolist(), parts, strict=True):
        pieces += [values[at:first], part]
        at = last
    return np.concatenate([*pieces, values[at:]])
