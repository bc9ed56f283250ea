"""Search in a library, whose documents several processes add, replace and remove.

Pages and vectors are read into memory at the first query, and again at the first one after a change: less than a second
for 100,000 passages.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anvil.index_file import table_rows
from anvil.index_file.fts_table import tokenizer
from anvil.library.library_file import Damage
from anvil.library.metadata_filter import Filter
from anvil.library.stored_documents import LibraryReader
from anvil.library.values import Passages
from anvil.search import confidence, ranking
from anvil.search.candidates import KeywordTables, VectorIndex, nearness
from anvil.search.ranking import CANDIDATES, Nearness
from anvil.search.searcher import QueryVector, semantic_obstacle, unread_note
from anvil.text import query as lexicon
from anvil.text.query import Stemmer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.embedding.provider import EmbeddingProvider

MAX_RESULTS = 100
MAX_FILTERS = 16
"""Filters whose selection is kept."""
_COMPARED = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class SelectedPassages(NamedTuple):
    """The passages that a filter lets through: a mask over the rows, and the filter itself for SQL."""

    mask: NDArray[np.bool_]
    filter: Filter


class LibraryIndex(KeywordTables):
    """The candidates of a library file."""

    def __init__(self, reader: LibraryReader) -> None:
        super().__init__(reader)
        self.reader = reader
        self.stem = Stemmer(tokenizer(reader.connection))
        self.average_length = reader.average_length()
        self.version = reader.version()
        table = np.array(reader.pages_of_chunks(), np.int64).reshape(-1, 2)
        table = table[np.argsort(table[:, 0])]
        self.rows, self.pages = table[:, 0], table[:, 1].astype(np.int32)
        self.documents = self.rows >> table_rows.CHUNK_BITS
        """The document of each row."""
        self._selections: dict[Filter, SelectedPassages] = {}

    @cached_property
    def vectors(self) -> VectorIndex:
        """All vectors, by the place of their passage in :attr:`rows`."""
        owners, vectors = self.reader.matrix()
        return VectorIndex(vectors, self._places(owners), self.documents)

    def _places(self, owners: NDArray[np.int64]) -> NDArray[np.intp]:
        """The places of the passages that vectors belong to."""
        places = np.searchsorted(self.rows, owners)
        if len(owners) and (not len(self.rows) or (self.rows[np.minimum(places, len(self.rows) - 1)] != owners).any()):
            raise Damage("a vector belongs to no passage")
        return places

    def select(self, filter: Filter) -> SelectedPassages | None:
        """The passages that a filter lets through; None: all."""
        if not filter.of_documents and not filter.passages:
            return None
        if filter not in self._selections:
            if len(self._selections) >= MAX_FILTERS:
                self._selections.clear()
            mask = np.ones(len(self.rows), bool)
            if filter.of_documents:
                chosen = np.zeros(1 << table_rows.DOCUMENT_BITS, bool)
                chosen[self.reader.fitting(filter)] = True
                mask = chosen[self.documents]
            for name, comparison, value in filter.passages:
                # the low bits of a row are the number of the passage in its document
                numbers = self.pages if name == "page" else self.rows & (table_rows.most_chunks() - 1)
                mask &= _COMPARED[comparison](numbers, value)
            self._selections[filter] = SelectedPassages(mask, filter)
        return self._selections[filter]

    def count(self, selection: SelectedPassages | None = None) -> int:
        return len(self.rows) if selection is None else int(selection.mask.sum())

    def rows_in(self, selection: SelectedPassages | None) -> list[int]:
        rows: list[int] = (self.rows if selection is None else self.rows[selection.mask]).tolist()
        return rows

    def in_order(self, rows: Collection[int]) -> list[int]:
        return sorted(rows)

    def matching(self, words: Sequence[str], count: int, selection: SelectedPassages | None) -> list[int]:
        expression = lexicon.any_of(words)
        if selection is None:
            return self.reader.matching(expression, ranking.FIELD_WEIGHTS, count, None)
        return self.reader.matching_within(expression, ranking.FIELD_WEIGHTS, count, selection.filter)

    def with_nearest(
        self, vector: NDArray[np.float32], named: Collection[int], count: int, selection: SelectedPassages | None
    ) -> Nearness:
        by_words = np.searchsorted(self.rows, np.fromiter(named, np.int64))
        return nearness(self.vectors, self.rows, vector, by_words, count, None if selection is None else selection.mask)


class LibrarySearcher:
    """Queries against one library file. Each query and :meth:`refresh` want to be inside one read transaction."""

    def __init__(self, reader: LibraryReader, provider: EmbeddingProvider) -> None:
        self.reader, self.provider = reader, provider
        self._read()

    def _read(self) -> None:
        self.index, meta = LibraryIndex(self.reader), self.reader.meta()
        self._obstacle = semantic_obstacle(meta, self.provider)
        self._fits = confidence.fits_for(meta["embedding_model_digest"])

    def refresh(self) -> None:
        """Read the library again if any process changed it since the last query."""
        if self.reader.version() != self.index.version:
            self._read()

    def find(self, query: str, top_k: int, filter: Filter, question: QueryVector | None) -> Passages:
        """The best ``top_k`` (clamped to 1..100) passages that the filter lets through, by words and vectors.

        ``question``: the query embedded, where it could be.
        """
        top_k = min(max(top_k, 1), MAX_RESULTS)
        notes = [self._obstacle] if self._obstacle else []
        vector = None
        if not self._obstacle and question is not None:
            vector = question.vector
            if question.error is not None:
                notes.append(f"Semantic search is off: {question.error}")
            elif question.unread:
                vector = None
                notes.append(unread_note(self.provider, "hybrid"))
        selection = self.index.select(filter)
        if not self.index.count(selection):
            return Passages((), tuple(notes))
        if vector is not None and not len(self.index.vectors.rows):  # no passage could be embedded
            vector = None
        weights = ranking.weights(self.index, query)
        results = ranking.rank(self.index, weights, vector, selection, max(top_k, CANDIDATES))[:top_k]
        confidences = [self._fits.confidence(result.evidence) for result in results]
        if unlikely := confidence.note(confidences):
            notes.append(unlikely)
        passages = self.index.reader.passages([result.row for result in results])
        if len(passages) < len(results):
            raise Damage("a passage belongs to no document")
        ranked = zip(results, confidences, strict=True)
        return Passages(
            tuple(replace(passages[result.row], score=result.score, confidence=likely) for result, likely in ranked),
            tuple(notes),
        )
