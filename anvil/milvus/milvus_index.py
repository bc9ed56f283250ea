"""Search of an index in Milvus: the candidates by words, phrases and vectors, and an overlay of pages that changed.

Before each query the current generation is asked from the server. If there are documents here, they are compared with
it by content. Changed pages are read into a small index in memory, the overlay, and their exported rows are masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anvil.build.row_updates import Indexer
from anvil.formats import patterns
from anvil.index_file import connection, table_rows
from anvil.index_file.fts_table import tokenizer
from anvil.index_file.table_rows import SearchedText
from anvil.index_file.writer import Writer
from anvil.live import site_view
from anvil.live.memory_copy import MemoryCopy
from anvil.milvus import milvus_collections
from anvil.milvus import milvus_reader as reader
from anvil.milvus.milvus_client import Client
from anvil.milvus.milvus_reader import LayeredReader, MilvusReader, Overlay, Words
from anvil.project_indexes import IndexLocation
from anvil.search import ranking
from anvil.search.candidates import VectorIndex
from anvil.search.page_weights import PageFactors, factors
from anvil.search.ranking import SCORE_DIGITS, NearCandidates, NearChunk, RowSet
from anvil.search.searcher import Searcher
from anvil.settings import index_url
from anvil.text import query as lexicon
from anvil.text.link_popularity import PageLinks
from anvil.text.query import Stemmer
from anvil.values import Changes


class MilvusCollection(IndexLocation):
    """One exported collection, and the reader of its current generation."""

    is_file = False

    def __init__(self, source: str, folder: Path) -> None:
        """``folder``: the folder of a relative path of a Milvus Lite file."""
        address = index_url.milvus(source)
        super().__init__(folder / address.collection)
        self.client = Client(address, folder)
        self.origin = address.shown
        self._reader: MilvusReader | None = None

    def reader(self) -> MilvusReader:
        """The reader of the current generation, which is kept until there is a newer one. Raises :class:`ArtifactError`
        if no generation can be used, and :class:`FetchError` if the server cannot be reached."""
        generation = milvus_collections.current_generation(self.client)
        if self._reader is None or self._reader.generation != generation:
            self._reader = None
            self._reader = reader.open_current(self.client)
        return self._reader

    def open(self) -> AbstractContextManager[MilvusReader]:
        return nullcontext(self.reader())

    @property
    def copy_class(self) -> type[MilvusMemoryCopy]:
        return MilvusMemoryCopy

    def close(self) -> None:
        self._reader = None
        self.client.close()


class MilvusMemoryCopy(MemoryCopy):
    """The index for queries: the export on the server, and the overlay in memory instead of a copy of a whole file."""

    _artifact: MilvusReader | None  # type: ignore[assignment]
    _copy: Overlay | None

    location: MilvusCollection
    _overlaid: LayeredReader | None = None

    @property
    def where(self) -> str:
        return self.location.origin or ""

    @property
    def reader(self) -> LayeredReader:  # type: ignore[override]
        assert self._artifact is not None
        if self._overlaid is None:
            pages = self._artifact.pages
            # Masked are pages that were removed, whose file has changed, or that the overlay has.
            outdated = {e.id for path, e in pages.items() if e.blob_id and self.indexed.get(path) != e.blob_id}
            above = (self._copy or Overlay(self._artifact)).reader
            masked = outdated | {pages[path].id for path in above.identities() if path in pages}
            self._overlaid = LayeredReader(self._artifact, above, frozenset(masked))
        return self._overlaid

    @property
    def searcher(self) -> Searcher:
        if self._searcher is None:
            self._searcher = Searcher(MilvusIndex(self.reader), self.provider)
        return self._searcher

    def _open(self) -> None:
        artifact = self.location.reader()
        if artifact is self._artifact:
            return
        self.close()
        self._artifact = artifact
        self.indexed = artifact.blob_ids()
        self.source = self._tree and site_view.view_of(self._tree, artifact)

    def _text_changed(self, copy: Writer, changes: Changes) -> None:
        touched = set(changes.paths)
        kept = {path: blob for path, blob in self.indexed.items() if path not in touched}
        self.indexed = dict(sorted({**kept, **copy.reader.blob_ids()}.items()))
        self._searcher = self._pending = self._overlaid = None

    def _indexer(self) -> Indexer:
        return Indexer(self._writable(), self.provider, self._chunking(), (), self.progress)

    def _writable(self) -> Overlay:
        assert self._artifact is not None
        if self._copy is None:
            self._copy = Overlay(self._artifact)
        return self._copy

    def close(self) -> None:
        super().close()
        self._overlaid = None


# --- candidates: Milvus returns more rows than needed; of these they are chosen and scored exactly as for a file -----

MAX_WORD_MATCHES = 100
"""Chunks that Milvus returns for the words of a query. The best of them are candidates."""
MAX_PHRASE_CANDIDATES = 200
"""Chunks in which a phrase is searched: the best ones for its words."""
MAX_NEAR_WINDOWS = 200
"""Windows that Milvus returns for the vector of a question."""
MAX_NEAR_PAGES, MAX_WINDOWS_IN_PAGES = 20, 100
"""Pages that Milvus returns by their mean vectors, and windows in them."""
EXACT_FACTOR = 2
"""Chunks with exact cosines, divided by the number of candidates."""
MAX_COUNTED_PAGES = 500
"""If more pages are masked, word frequencies stay those of the export."""


class MilvusIndex:
    """The candidates of one generation in Milvus with its overlay. A selection is a mask over the list of pages."""

    has_vectors: bool

    def __init__(self, reader: LayeredReader) -> None:
        self.reader = reader
        self.stem = Stemmer(tokenizer(connection.open_scratch(":memory:")))
        self.average_length = reader.average_length()
        self.has_vectors = reader.counts()["vectors"] > 0
        listed = reader.listed
        self._paths = [path for path, _, _ in listed]
        self._ids = np.array([id_ for _, id_, _ in listed], np.int64)
        self._sizes = np.array([size for _, _, size in listed], np.int64)
        self._rank = {int(id_): rank for rank, id_ in enumerate(self._ids)}
        self._frequencies: dict[str, int] = {}
        self._holders: dict[str, _Holders] = {}
        self._above: tuple[list[int], VectorIndex] | None = None
        self._masked: Counter[str] = Counter()
        """Token -> number of chunks with it in masked pages."""
        self._correct_statistics()

    @cached_property
    def links(self) -> PageLinks | None:
        return self.reader.links() or None

    @cached_property
    def page_factors(self) -> PageFactors:
        return factors(self.reader.paths(), self.reader.meta(), self.reader.about_deprecation())

    def definitions(self, document: int) -> Mapping[str, str]:
        return {}  # definitions are text that readers do not see, which is not exported

    def warm(self) -> None:
        """Read the links, for which the first query would wait. Vectors stay on the server."""
        bool(self.links)

    def forget_vectors(self) -> None:
        """Forget the vectors of the overlay, which have changed."""
        self._above = None

    # --- filters ---------------------------------------------------------------------------------------------

    def select(self, file_filter: str | None, paths: Collection[str] | None) -> NDArray[np.bool_] | None:
        if not file_filter and paths is None:
            return None
        is_selected = patterns.selects(file_filter or "")
        allowed = None if paths is None else frozenset(paths)
        return np.array([is_selected(path) and (allowed is None or path in allowed) for path in self._paths], bool)

    def count(self, selection: NDArray[np.bool_] | None = None) -> int:
        return int(self._sizes.sum() if selection is None else self._sizes[selection].sum())

    def _within(self, selection: NDArray[np.bool_] | None) -> str | None:
        """The filter of the selection for the export; None if no exported page is selected."""
        masked = self.reader.masked
        if selection is None:
            return milvus_collections.within(None, masked)
        chosen = {id_ for id_ in self._ids[selection].tolist() if not self.reader.is_above(id_)}
        if not chosen:
            return None
        # the selected ids or the others, whichever list is shorter
        if 2 * len(chosen) <= len(self.reader.below.path_of):
            return milvus_collections.within(chosen, ())
        return milvus_collections.within(None, self.reader.below.path_of.keys() - chosen)

    def _over(self, selection: NDArray[np.bool_] | None) -> list[int]:
        """The selected documents that are in the overlay."""
        ids = self._ids if selection is None else self._ids[selection]
        return [id_ for id_ in ids.tolist() if self.reader.is_above(id_)]

    def rows_in(self, selection: NDArray[np.bool_] | None) -> list[int]:
        return self.reader.rows_of((self._ids if selection is None else self._ids[selection]).tolist())

    def in_order(self, rows: Collection[int]) -> list[int]:
        chunks = self.reader.chunks(rows)
        return sorted(rows, key=lambda row: (self._rank[chunks[row].document_id], chunks[row].ordinal))

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        return self.reader.searched_text(rows)

    # --- words -----------------------------------------------------------------------------------------------

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        self.reader.below.frequencies(words)  # one request fills the cache for all words
        return {token: self._frequency(word) for token, word in words.items()}

    def _frequency(self, word: str) -> int:
        """The number of chunks with a word, in the export without masked pages and in the overlay."""
        if word not in self._frequencies:
            counts = self.reader.below.frequencies(self.stem(word))
            below = min((count - self._masked[token] for token, count in counts.items()), default=0)
            self._frequencies[word] = below + self.reader.above.frequency(lexicon.literal(word))
        return self._frequencies[word]

    def _correct_statistics(self) -> None:
        """Count the words of masked pages, which :meth:`_frequency` subtracts, and correct the mean length."""
        reader, masked = self.reader, self.reader.masked
        chunks = reader.above.counts()["chunks"]
        if not (masked or chunks) or len(masked) > MAX_COUNTED_PAGES:
            return
        words = reader.below.words.get(reader.below.rows_of(masked))
        self._masked = Counter(token for chunk in words.values() for token in set(" ".join(chunk.columns).split()))
        total = reader.below.average_length() * reader.below.counts()["chunks"] - sum(w.length for w in words.values())
        self.average_length = (total + reader.above.average_length() * chunks) / max(self.count(), 1)

    def words_from(self, first: str) -> tuple[tuple[str, int], ...]:
        return ()

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        self._holders = {phrase: self._phrase_holders(phrase) for phrase in phrases}
        return self._holders

    def _phrase_holders(self, text: str) -> _Holders:
        named = self.reader.below.matching(
            self._tokens([text]), MAX_PHRASE_CANDIDATES, milvus_collections.within(None, self.reader.masked)
        )
        named += self.reader.above.rows_matching(lexicon.literal(text), MAX_PHRASE_CANDIDATES)
        return _Holders(self._words, self.stem(text), named)

    def _tokens(self, texts: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(token for text in texts for token in self.stem(text)))

    def matching(self, words: Sequence[str], count: int, selection: NDArray[np.bool_] | None) -> list[int]:
        within, over = self._within(selection), self._over(selection)
        named = [] if within is None else self.reader.below.matching(self._tokens(words), MAX_WORD_MATCHES, within)
        if over:
            named += self.reader.above.matching(lexicon.any_of(words), ranking.FIELD_WEIGHTS, MAX_WORD_MATCHES, over)
        scores = self._keyword_scores(named, words)
        return sorted(filter(scores.get, named), key=lambda row: (-scores[row], row))[:count]

    def _keyword_scores(self, rows: Sequence[int], words: Sequence[str]) -> dict[int, float]:
        """BM25 as the keyword index of a file computes it, so that both choose the same candidates. Milvus' own score
        has no weights for columns, and counts words of masked pages."""
        terms = [(tokens, self._idf(word)) for word in dict.fromkeys(words) if (tokens := self.stem(word))]
        scores = {}
        for row, (columns, length) in self._words(rows).items():
            norm = ranking.K1 * (1 - ranking.B + ranking.B * length / max(self.average_length, 1.0))
            counts = [Counter(column.split()) for column in columns]
            score = 0.0
            for tokens, idf in terms:
                frequency = 0.0
                for weight, column, count in zip(ranking.FIELD_WEIGHTS, columns, counts, strict=True):
                    occurrences = count[tokens[0]] if len(tokens) == 1 else column.count(f" {' '.join(tokens)} ")
                    frequency += weight * occurrences
                if frequency:
                    score += idf * frequency * (ranking.K1 + 1) / (frequency + norm)
            scores[row] = score
        return scores

    def _idf(self, word: str) -> float:
        count = len(self._holders[word]) if word in self._holders else self._frequency(word)
        return max(float(np.log((self.count() - count + 0.5) / (count + 0.5))), 1e-6)

    def _words(self, rows: Collection[int]) -> dict[int, Words]:
        below = [row for row in rows if not self.reader.is_above(row >> table_rows.CHUNK_BITS)]
        words = self.reader.below.words.get(below)
        for row, text in self.reader.above.searched_text(set(rows) - set(below)).items():
            columns = (text.title, text.heading_path, text.content, text.terms)
            words[row] = Words(tuple(f" {' '.join(self.stem(column))} " for column in columns), text.length)
        return words

    # --- vectors -------------------------------------------------------------------------------------------

    def with_nearest(
        self, vector: NDArray[np.float32], named: Collection[int], count: int, selection: NDArray[np.bool_] | None
    ) -> NearCandidates:
        near = self._cosines(vector, {*named, *self._named_near(vector, selection, count)})
        everywhere = near if selection is None else self._cosines(vector, self._named_near(vector, None, count))
        peak = max((cosines.with_page for cosines in (*near.values(), *everywhere.values())), default=0.0)
        best = _best({row: cosines.with_page for row, cosines in near.items()}, count)
        rows, about = self.in_order({*named, *best}), self.reader.below.about
        mean = float(np.dot(about.mean, vector)) + about.above  # of all exported chunks
        similarities = np.array([near[row].with_page for row in rows], np.float64)
        return NearCandidates(rows, similarities, np.array([near[row].page for row in rows], np.float64), mean, peak)

    def nearest(self, vector: NDArray[np.float32], count: int, selection: NDArray[np.bool_] | None) -> list[NearChunk]:
        near = self._cosines(vector, self._named_near(vector, selection, count, pages=False))
        best = _best({row: cosines.own for row, cosines in near.items() if cosines.own > -1}, count)
        return [NearChunk(row, near[row].own, near[row].page) for row in self.in_order(best)]

    def _named_near(
        self, vector: NDArray[np.float32], selection: NDArray[np.bool_] | None, count: int, pages: bool = True
    ) -> set[int]:
        """The nearest chunks, :data:`EXACT_FACTOR` times ``count``. ``pages``: whether their pages' cosines count."""
        below, within = self.reader.below, self._within(selection)
        cosines: dict[int, float] = {}
        if within is not None:
            windows = below.near("windows", vector, MAX_NEAR_WINDOWS, within)
            if pages:
                chosen = [document for document, _ in below.near("pages", vector, MAX_NEAR_PAGES, within)]
                if chosen:
                    windows += below.near(
                        "windows", vector, MAX_WINDOWS_IN_PAGES, milvus_collections.within(chosen, ())
                    )
            for window, cosine in windows:
                row = window >> table_rows.WINDOW_BITS
                cosines[row] = max(cosine, cosines.get(row, -1.0))
        if pages:
            means = self.reader.below.centroids.get(row >> table_rows.CHUNK_BITS for row in cosines)
            page_cosines = {document: ranking.PAGE_WEIGHT * float(mean @ vector) for document, mean in means.items()}
            cosines = {
                row: cosine + page_cosines.get(row >> table_rows.CHUNK_BITS, 0.0) for row, cosine in cosines.items()
            }
        over = set(self._over(selection))
        if over:
            for row, near in _cosines(*self._table_above(), vector).items():
                if row >> table_rows.CHUNK_BITS in over:
                    cosines[row] = near.with_page if pages else near.own
        return set(sorted(cosines, key=lambda row: (-cosines[row], row))[: EXACT_FACTOR * count])

    def _cosines(self, vector: NDArray[np.float32], rows: set[int]) -> dict[int, Cosines]:
        """Row -> cosines, which are equal to those of a file."""
        below = sorted(row for row in rows if not self.reader.is_above(row >> table_rows.CHUNK_BITS))
        cosines: dict[int, Cosines] = {}
        if below:
            owners, vectors = self.reader.below.vectors(below)
            documents = np.array(below, np.int64) >> table_rows.CHUNK_BITS
            means = self.reader.below.centroids.get(documents)
            table = VectorIndex(vectors, np.searchsorted(below, owners), documents, centroids=means)
            cosines = _cosines(below, table, vector)
        if len(below) < len(rows):
            above = _cosines(*self._table_above(), vector)
            cosines |= {row: near for row, near in above.items() if row in rows}
        return cosines

    def _table_above(self) -> tuple[list[int], VectorIndex]:
        """The rows of the overlay, and an index of their vectors."""
        if self._above is None:
            rows = sorted(row for row, _ in self.reader.above.chunk_documents())
            owners, vectors = self.reader.above.matrix()
            documents = np.array(rows, np.int64) >> table_rows.CHUNK_BITS
            self._above = rows, VectorIndex(vectors, np.searchsorted(rows, owners), documents)
        return self._above


class Cosines(NamedTuple):
    """The rounded cosines of a chunk to a question: its own, that of its page, and both combined."""

    own: float
    page: float
    with_page: float


def _cosines(rows: Sequence[int], table: VectorIndex, vector: NDArray[np.float32]) -> dict[int, Cosines]:
    columns = table.similarity(vector), table.page_similarity(vector), table.similarity_with_page(vector)
    rounded = [column.astype(np.float64).round(SCORE_DIGITS).tolist() for column in columns]
    return {row: Cosines(*values) for row, *values in zip(rows, *rounded, strict=True)}


class _Holders:
    """The set of chunks with a phrase. Those among ``named`` are found at once; others are looked up when asked for.

    ``words``: gives the words of chunks. ``tokens``: those of the phrase.
    """

    def __init__(
        self, words: Callable[[Collection[int]], dict[int, Words]], tokens: Sequence[str], named: Collection[int]
    ) -> None:
        self._words, self._phrase = words, f" {' '.join(tokens)} "
        self._rows = self._holding(named)

    def _holding(self, rows: Collection[int]) -> set[int]:
        words = self._words(rows)
        return {row for row, chunk in words.items() if any(self._phrase in column for column in chunk.columns)}

    def __contains__(self, row: object) -> bool:
        return row in self._rows or (isinstance(row, int) and row in self._holding([row]))

    def __len__(self) -> int:
        return len(self._rows)


def _best(scores: Mapping[int, float], count: int) -> set[int]:
    """The ``count`` best rows, and all with the same score as the last of them."""
    if len(scores) <= count:
        return set(scores)
    lowest = sorted(scores.values(), reverse=True)[count - 1]
    return {row for row, score in scores.items() if score >= lowest}
