"""Search in a library: its index in memory, filters, results within a budget of characters, and reasons for none.

Several processes change the documents. Rows and vectors are in memory in the order of the rows, so those of a document
are one run. When the library's version has changed, only the runs of changed documents are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ConfigError
from anvil.index_file import table_rows
from anvil.index_file.table_rows import VectorRows, vector_rows
from anvil.library.library_file import Damage
from anvil.library.metadata_filter import Filter, document_filter
from anvil.library.stored_documents import LibraryReader
from anvil.library.values import Passage, Passages
from anvil.results import Hit
from anvil.search import confidence, ranking, result_texts
from anvil.search.candidates import SqliteIndex, VectorIndex
from anvil.search.query_preparation import QueryVector, comparable_vector, semantic_obstacle
from anvil.search.ranking import CANDIDATES, RankedChunk
from anvil.search.result_texts import SectionSpan
from anvil.text import query as lexicon
from anvil.values import ChunkMetadata
from anvil.wording import first_of

MAX_RESULTS = 100
CHARS_PER_RESULT, MAX_DEFAULT_CHARS = 1000, 30_000
"""The budget of a search that gives none, in characters: for each result, and at most."""
MAX_CHARS = 1_000_000_000
"""The largest budget: more characters than the results of any search have."""
MAX_CHANGED = 2000
"""If more documents than this have changed, everything is read again: each changed one takes queries of its own."""
MAX_FILTERS = 16
"""Filters whose selections are cached."""
MAX_NAMED = 5
"""Libraries that one sentence names."""


@dataclass(frozen=True)
class LibrarySearch:
    """A search. Raises :class:`ConfigError` if the query is blank, or if the library or the filter is not valid."""

    query: str
    top_k: int = 5
    """Results; clamped to 1..100."""
    library: str | None = None
    """Only this library; None: all."""
    filter: Mapping[str, Any] | None = None
    """Field -> value or range. A result meets all of them; they apply before the ranking."""
    max_chars: int | None = None
    """The budget for all contents together, of which the likely ones get most; None: 1,000 a result, at most 30,000."""
    conditions: Filter = field(init=False)
    budget: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conditions", document_filter(self.filter, self.library))
        if not self.query.strip():
            raise ConfigError("query parameter is required")
        object.__setattr__(self, "top_k", min(max(self.top_k, 1), MAX_RESULTS))
        budget = min(CHARS_PER_RESULT * self.top_k, MAX_DEFAULT_CHARS) if self.max_chars is None else self.max_chars
        object.__setattr__(self, "budget", min(max(budget, 1), MAX_CHARS))


class LibraryIndex(SqliteIndex):
    reader: LibraryReader

    def __init__(self, reader: LibraryReader) -> None:
        super().__init__(reader)
        self._selections: dict[Filter, NDArray[np.bool_]] = {}
        self._load()

    def _load(self) -> None:
        self.version = self.reader.version()
        self.rows = np.array(self.reader.chunk_rows(), np.int64)
        self.documents = self.rows >> table_rows.CHUNK_BITS
        """The document of each row."""
        self._vectors: VectorIndex | None = None
        self._owners: NDArray[np.int64] = np.empty(0, np.int64)
        """The row of each vector's passage."""
        self._stored: VectorRows = vector_rows(b"", 1)
        """The vectors, in the same order."""

    def refresh(self) -> bool:
        """Read what has changed since the last query. Returns whether anything has."""
        version = self.reader.version()
        if version == self.version:
            return False
        changed = np.array(self.reader.changed_since(self.version), np.int64)
        self._selections.clear()
        self.forget()
        self.average_length = self.reader.average_length()
        if len(changed) > MAX_CHANGED:
            self._load()
        else:
            self.version = version
            self._reload(changed)
        return True

    def _reload(self, changed: NDArray[np.int64]) -> None:
        """Read rows and vectors of the changed documents."""
        new_rows = [np.array(self.reader.chunk_rows(int(id_)), np.int64) for id_ in changed]
        self.rows = replace_runs(self.rows, self.documents, changed, new_rows)
        self.documents = self.rows >> table_rows.CHUNK_BITS
        if self._vectors is None:
            return
        vectors, width = self._stored, int(self.reader.meta()["embedding_dimensions"])
        if width != vectors.shape[1]:  # another model: the next search reads all vectors
            self._vectors = None
            return
        new = [self.reader.document_vectors(int(id_), width) for id_ in changed]
        vector_documents = self._owners >> table_rows.CHUNK_BITS
        self._owners = replace_runs(self._owners, vector_documents, changed, [owners for owners, _ in new])
        self._stored = replace_runs(vectors, vector_documents, changed, [part for _, part in new])
        self._vectors = VectorIndex(
            self._stored, self._positions(self._owners), self.documents, before=self._vectors, changed=changed
        )

    @property
    def vectors(self) -> VectorIndex:
        if self._vectors is None:
            owners, vectors = self.reader.matrix()
            order = np.argsort(owners, kind="stable")
            self._owners, self._stored = owners[order], vectors[order]
            self._vectors = VectorIndex(self._stored, self._positions(self._owners), self.documents)
        return self._vectors

    def _positions(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        positions = np.searchsorted(self.rows, rows)
        if len(rows) and (not len(self.rows) or (self.rows[np.minimum(positions, len(self.rows) - 1)] != rows).any()):
            raise Damage("a vector or a word belongs to no passage")
        return positions

    def select(self, filter: Filter) -> NDArray[np.bool_] | None:
        """The passages that pass a filter; None: all of them."""
        if filter == Filter():
            return None
        if filter not in self._selections:
            if len(self._selections) >= MAX_FILTERS:
                self._selections.clear()
            mask = np.ones(len(self.rows), bool)
            if filter.documents:
                chosen = np.zeros(1 << table_rows.DOCUMENT_BITS, bool)
                chosen[self.reader.rows_passing("documents", filter.documents)] = True
                mask = chosen[self.documents]
            if filter.passages:
                mask &= np.isin(self.rows, np.array(self.reader.rows_passing("chunks", filter.passages), np.int64))
            self._selections[filter] = mask
        return self._selections[filter]

    def in_order(self, rows: Collection[int]) -> list[int]:
        return sorted(rows)

    def matching(self, words: Sequence[str], count: int, selection: NDArray[np.bool_] | None) -> list[int]:
        expression, weights = lexicon.any_of(words), ranking.FIELD_WEIGHTS
        if selection is None:
            return self.reader.matching(expression, weights, count)
        documents = np.unique(self.documents[selection])
        if np.isin(self.documents, documents).sum() > selection.sum():  # only some passages of a document
            return self.reader.matching_rows(expression, weights, count, self.rows_in(selection))
        return self.reader.matching(expression, weights, count, documents.tolist())


class LibrarySearcher:
    """Queries against one library file. Call :meth:`refresh` and a query inside one read transaction."""

    def __init__(self, reader: LibraryReader, provider: EmbeddingProvider) -> None:
        self.index = LibraryIndex(reader)
        self.provider = provider
        self._read_model(reader.meta())

    def _read_model(self, meta: dict[str, str]) -> None:
        self._obstacle = semantic_obstacle(meta, self.provider)
        self._fits = confidence.fits_for(meta["embedding_model_digest"])

    def refresh(self) -> None:
        """Read what has changed since the last query."""
        if self.index.refresh():
            self._read_model(self.index.reader.meta())

    def find(self, search: LibrarySearch, question: QueryVector | None) -> Passages:
        """The best passages, by words and vectors. ``question``: the vector of the query; None without a model."""
        notes = [self._obstacle] if self._obstacle else []
        vector = None
        if not self._obstacle and question is not None:
            vector, note = comparable_vector(question, self.provider, "hybrid")
            notes += [note] if note else []
        selection, results = self.index.select(search.conditions), list[RankedChunk]()
        if self.index.count(selection):
            if vector is not None and not len(self.index.vectors.rows):  # no passage could be embedded
                vector = None
            weights, count = ranking.query_weights(self.index, search.query), max(search.top_k, CANDIDATES)
            results = ranking.rank(self.index, weights, vector, [selection], count)[: search.top_k]
        if not results:
            return Passages((), (*notes, *self._why_none(search)))
        confidences = [self._fits.confidence(result.evidence) for result in results]
        passages = self.index.reader.passages([result.row for result in results])
        if len(passages) < len(results):
            raise Damage("a passage belongs to no document")
        is_named = confidence.has_name(search.query, (passage.content for passage in passages.values()))
        if unlikely := confidence.note(confidences, is_named=is_named):
            notes.append(unlikely)
        ranked = zip(results, confidences, strict=True)
        best = [replace(passages[result.row], score=result.score, confidence=likely) for result, likely in ranked]
        return Passages(_within_budget(best, search), tuple(notes))

    def _why_none(self, search: LibrarySearch) -> Iterator[str]:
        """The reason why a search found nothing, if it is known."""
        names = [summary.library for summary in self.index.reader.libraries()]
        if not names:
            yield "There is no document yet. Add some, as with 'anvil ingest FOLDER' or ingest_file."
        elif search.library is not None and search.library not in names:
            yield f"There is no library {search.library!r}. There are: {first_of(names, MAX_NAMED)}."
        elif search.filter:
            yield "No passage fits the question and the filter. Search without the filter, or see list_documents."


def _within_budget(passages: Sequence[Passage], search: LibrarySearch) -> tuple[Passage, ...]:
    """The passages with contents of at most ``search.budget`` characters together."""
    hits = []
    for passage in passages:
        size = len(passage.content)
        place = ChunkMetadata(passage.source, "", 0, passage.last_modified, size, None, None)
        hits.append((Hit(passage.content, passage.score, place), SectionSpan(0, size, None, False)))
    shortened = result_texts.within_budget(hits, (), search.query, search.budget)
    return tuple(
        replace(passage, content=hit.content, truncated=hit.truncated)
        for passage, (hit, _) in zip(passages, shortened, strict=True)
    )


def replace_runs(
    values: NDArray[Any], documents: NDArray[np.int64], changed: NDArray[np.int64], new_runs: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """``values`` with new runs for the documents ``changed``, which are ascending. ``documents``: the document of each
    value, ascending; so the values of a document are one run."""
    firsts, lasts = np.searchsorted(documents, changed), np.searchsorted(documents, changed, side="right")
    pieces, at = [], 0
    for first, last, run in zip(firsts.tolist(), lasts.tolist(), new_runs, strict=True):
        pieces += [values[at:first], run]
        at = last
    return np.concatenate([*pieces, values[at:]])
