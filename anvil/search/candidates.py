"""The candidates of an SQLite index: words from its keyword index, and cosines with its vectors in memory.

Tables in memory are built at their first use and stay. Cosines of a query with all vectors are exact. Vectors stay in
memory as they are stored. A block at a time is converted to floats in the processor's cache, because reading memory
takes most of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from anvil.errors import ArtifactRejected
from anvil.formats import patterns
from anvil.index_file.fts_table import tokenizer
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, VectorRows
from anvil.search import ranking
from anvil.search.page_weights import NO_FACTORS, PageFactors, factors
from anvil.search.ranking import PAGE_WEIGHT, SCORE_DIGITS, NearCandidates, NearChunk, RowSet
from anvil.text import query as lexicon
from anvil.text.link_popularity import PageLinks, PossibleLink, definitions, links_of
from anvil.text.query import Stemmer

T = TypeVar("T")
BLOCK_ROWS = 1024
"""Rows converted at once. They fit into the processor's cache, and BLAS uses no threads, which would cost more."""
TWO_THREADS_FROM_ROWS = 16 * BLOCK_ROWS
"""From this number of rows on, two threads take half of the rows each."""


class VectorIndex:
    """Cosines of chunks, from the vectors of their windows. A chunk is named by its position.

    ``rows``: (n, dimensions), of any length. ``owners`` (n,): the position of each row's chunk. ``documents``
    (chunks,): the document of each position; chunks of one document are neighbours.
    """

    def __init__(
        self,
        rows: VectorRows,
        owners: NDArray[np.intp],
        documents: NDArray[np.int64],
        before: VectorIndex | None = None,
        changed: NDArray[np.int64] | None = None,
        centroids: Mapping[int, NDArray[np.float32]] | None = None,
    ) -> None:
        """``before``: an earlier index, whose means of documents that are not ``changed`` are reused. ``centroids``:
        the mean vectors of documents that have only some of their chunks here."""
        if len(owners) and (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
            rows, owners = rows[order], owners[order]
        self.rows = np.ascontiguousarray(rows)
        squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.int32) if len(rows) else np.empty(0)
        self._scale = (1.0 / np.sqrt(np.maximum(squares, 1))).astype(np.float32)
        self._starts = _run_starts(owners)
        self._owners = owners[self._starts]
        self._chunks = len(documents)
        pages = _run_starts(documents)
        self._documents = documents[pages]
        self._page = np.searchsorted(pages, np.arange(len(documents)), side="right") - 1
        self._centroids = np.zeros((len(pages), self.rows.shape[1]), np.float32)
        unknown = np.ones(len(pages), bool)
        if before is not None and len(before._documents):  # both by document
            positions = np.searchsorted(before._documents, self._documents).clip(max=len(before._documents) - 1)
            unknown = before._documents[positions] != self._documents
            if changed is not None:
                unknown |= np.isin(self._documents, changed)
            self._centroids[~unknown] = before._centroids[positions[~unknown]]
        if centroids is not None:
            unknown[:] = False
            for index, document in enumerate(self._documents.tolist()):
                if document in centroids:
                    self._centroids[index] = centroids[document]
        self._fill_means(np.searchsorted(owners, np.append(pages, len(documents))), np.flatnonzero(unknown))

    def _fill_means(self, bounds: NDArray[np.intp], pages: NDArray[np.intp]) -> None:
        """Compute the mean vectors of ``pages``, a few thousand rows at a time. ``bounds``: the first row of each
        page."""
        pages = pages[bounds[pages + 1] > bounds[pages]]
        sizes = np.cumsum(bounds[pages + 1] - bounds[pages])
        for group in np.split(pages, np.flatnonzero(np.diff(sizes // TWO_THREADS_FROM_ROWS)) + 1):
            if len(group):
                lengths = bounds[group + 1] - bounds[group]
                begins = np.cumsum(lengths) - lengths
                rows = np.repeat(bounds[group] - begins, lengths) + np.arange(lengths.sum())
                means = np.add.reduceat(self.rows[rows] * self._scale[rows, None], begins, axis=0)
                means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
                self._centroids[group] = means

    def similarity(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The best cosine of each chunk with the unit vector ``query`` (chunks,); -1 for chunks without a vector."""
        cosines = np.full(self._chunks, -1.0, np.float32)
        if len(self.rows):
            cosines[self._owners] = np.maximum.reduceat(_dots(self.rows, query) * self._scale, self._starts)
        return cosines

    @property
    def centroids(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The documents (n,), and their mean vectors (n, dimensions): unit vectors, or zeros for a document without
        vectors."""
        return self._documents, self._centroids

    def middle(self) -> NDArray[np.float64]:
        """The vector (dimensions,) whose product with a query is about the mean of :meth:`similarity_with_page` over
        all chunks: it takes the mean of a chunk's windows instead of the best one."""
        total = np.zeros(self.rows.shape[1])
        lengths = np.diff(np.append(self._starts, len(self.rows)))
        weights = self._scale / np.repeat(lengths, lengths)
        for first in range(0, len(self.rows), BLOCK_ROWS):
            total += weights[first : first + BLOCK_ROWS] @ self.rows[first : first + BLOCK_ROWS].astype(np.float32)
        pages = np.bincount(self._page, minlength=len(self._centroids)) @ self._centroids.astype(np.float64)
        return np.asarray((total + PAGE_WEIGHT * pages) / max(self._chunks, 1))

    def page_similarity(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of the mean vector of each chunk's page (chunks,); 0 for pages without vectors."""
        return _dots(self._centroids, query)[self._page]

    def similarity_with_page(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The best cosine of each chunk plus the weighted one of its page (chunks,), which ranks pages on the subject
        first."""
        return self.similarity(query) + PAGE_WEIGHT * self.page_similarity(query)


def nearest_pairs(
    rows: VectorRows, owners: NDArray[np.int64], apart: Sequence[Mapping[int, int]], threshold: float, limit: int
) -> list[tuple[int, int, float]]:
    """Pairs of chunks (owner, owner, cosine of their mean vectors) with at least the cosine ``threshold``, nearest
    first.

    ``rows``: (n, dimensions), of any length. ``owners`` (n,): the chunk of each row. ``apart``: mappings chunk ->
    group; two chunks of the same group are not a pair.
    """
    chunks, positions = np.unique(owners, return_inverse=True)
    if len(chunks) < 2:
        return []
    _, means = VectorIndex(rows, positions, chunks).centroids  # each chunk as a page of its own
    groups = [np.array([grouping[int(chunk)] for chunk in chunks]) for grouping in apart]
    pairs: list[tuple[float, int, int]] = []
    for first in range(0, len(chunks), BLOCK_ROWS):
        cosines = means[first : first + BLOCK_ROWS] @ means[first:].T
        for group in groups:
            cosines[group[first : first + BLOCK_ROWS, None] == group[None, first:]] = -1.0
        left, right = np.nonzero(np.triu(cosines, 1) >= threshold)
        if len(left):
            values = cosines[left, right]
            best = np.lexsort((right, left, -values))[:limit]
            pairs += zip((-values[best]).tolist(), chunks[left[best] + first], chunks[right[best] + first], strict=True)
            pairs = sorted(pairs)[:limit]
    return [(int(a), int(b), -value) for value, a, b in pairs]


def _dots(rows: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of each row (n, dimensions) with ``query``, float32 (n,)."""
    count = len(rows)
    end = -(-count // BLOCK_ROWS) * BLOCK_ROWS
    products = np.empty(end, np.float32)

    def multiply(first: int, last: int) -> None:
        block = np.empty((BLOCK_ROWS, rows.shape[1]), np.float32)
        for start in range(first, last, BLOCK_ROWS):  # whole blocks: shorter ones are summed in another order
            block_rows = rows[start : start + BLOCK_ROWS]
            block[: len(block_rows)], block[len(block_rows) :] = block_rows, 0
            np.dot(block, query, out=products[start : start + BLOCK_ROWS])

    if count < TWO_THREADS_FROM_ROWS:
        multiply(0, end)
    else:
        middle = end // BLOCK_ROWS // 2 * BLOCK_ROWS
        second_half = threading.Thread(target=multiply, args=(middle, end))
        second_half.start()
        multiply(0, middle)
        second_half.join()
    return products[:count]


def _run_starts(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """The positions at which runs of equal values begin."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]][: len(values)])


MAX_WORDS, MAX_WORD_CHARS = 20_000, 100
"""Words whose frequency is cached, and the characters of the longest word that is."""
MAX_PHRASE_ROWS = 1000
"""Chunks that are counted for a phrase."""
MAX_CACHED_ROWS = 2048
"""Rows in each cache, such as chunks whose texts are kept in memory."""

LinkCache = dict[tuple[str, bytes], tuple[PossibleLink, ...]]
"""Path and digest of a page -> the links in it."""


class RowCache(Generic[T]):
    """A cache of values by id. ``read``: gives the values that it does not have. When it is full, it is emptied."""

    def __init__(self, read: Callable[[list[int]], Mapping[int, T]]) -> None:
        self._read = read
        self._values: dict[int, T] = {}

    def get(self, ids: Iterable[int]) -> dict[int, T]:
        """Id -> value; ids without a value are left out."""
        id_list = list(dict.fromkeys(map(int, ids)))
        values = {id_: self._values[id_] for id_ in id_list if id_ in self._values}
        new = self._read([id_ for id_ in id_list if id_ not in values])
        self.add(new)
        return {**values, **new}

    def add(self, new: Mapping[int, T]) -> None:
        if len(self._values) + len(new) > MAX_CACHED_ROWS:
            self._values.clear()
        self._values.update(islice(new.items(), MAX_CACHED_ROWS))

    def forget(self) -> None:
        """Empty the cache."""
        self._values.clear()


class SqliteIndex:
    """The candidates of an SQLite file: words, phrases and texts from its keyword index, and vectors in memory.

    A selection is a mask over :attr:`rows`.
    """

    rows: NDArray[np.int64]
    """The row of each chunk, by position."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.stem = Stemmer(tokenizer(reader.connection))
        self.average_length = reader.average_length()
        self._frequency = lru_cache(MAX_WORDS)(lambda word: reader.frequency(lexicon.literal(word)))
        self._texts = RowCache(reader.searched_text)

    @property
    def links(self) -> PageLinks | None:
        """None: a library knows no links between pages, and no factors of pages."""
        return None

    @property
    def page_factors(self) -> PageFactors:
        return NO_FACTORS

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        cached, uncached = self._frequency, self._frequency.__wrapped__
        return {token: (cached if len(word) <= MAX_WORD_CHARS else uncached)(word) for token, word in words.items()}

    def words_from(self, first: str) -> Iterable[tuple[str, int]]:
        return self.reader.vocabulary(first)

    def forget(self) -> None:
        """Empty the caches of words and texts, because a document has changed."""
        self._frequency.cache_clear()
        self._texts.forget()

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        return {
            phrase: frozenset(self.reader.rows_matching(lexicon.literal(phrase), MAX_PHRASE_ROWS)) for phrase in phrases
        }

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        texts = self._texts.get(rows)
        if not texts.keys() >= set(rows):
            raise ArtifactRejected(
                "The index is damaged: its keyword index lacks chunks. Build it again with 'anvil build --force', or "
                "fetch it again."
            )
        return texts

    @property
    def vectors(self) -> VectorIndex:
        """All vectors, by the position of their chunk in :attr:`rows`."""
        raise NotImplementedError

    def _positions(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """The position of each row."""
        raise NotImplementedError

    def count(self, selection: NDArray[np.bool_] | None = None) -> int:
        return len(self.rows) if selection is None else int(selection.sum())

    def rows_in(self, selection: NDArray[np.bool_] | None) -> list[int]:
        rows: list[int] = (self.rows if selection is None else self.rows[selection]).tolist()
        return rows

    def with_nearest(
        self, vector: NDArray[np.float32], word_rows: Collection[int], count: int, selection: NDArray[np.bool_] | None
    ) -> NearCandidates:
        pages = self.vectors.page_similarity(vector)
        similarities = (self.vectors.similarity(vector) + PAGE_WEIGHT * pages).astype(np.float64).round(SCORE_DIGITS)
        by_words = self._positions(np.fromiter(word_rows, np.int64))
        positions = np.union1d(by_words, best_positions(similarities, selection, count))
        page_cosines = pages[positions].astype(np.float64).round(SCORE_DIGITS)
        mean, peak = float(similarities.mean()), float(similarities.max())
        return NearCandidates(self.rows[positions].tolist(), similarities[positions], page_cosines, mean, peak)


class FileIndex(SqliteIndex):
    """The candidates of an index file, or of a copy of one in memory."""

    def __init__(self, reader: Reader, link_cache: LinkCache | None = None) -> None:
        """``link_cache``: the links of pages as they were before an edit. It then gets those of all pages of this
        index."""
        super().__init__(reader)
        self._link_cache: LinkCache = {} if link_cache is None else link_cache
        flat = np.fromiter(chain.from_iterable(reader.chunk_documents()), np.int64)  # without an object for each chunk
        self.rows, self._documents = np.ascontiguousarray(flat.reshape(-1, 2).T)
        self._by_row = np.argsort(self.rows)
        self._definitions: dict[int, Mapping[str, str]] = {}
        self._vectors: VectorIndex | None = None

    @property
    def vectors(self) -> VectorIndex:
        if self._vectors is None:
            owners, vectors = self.reader.matrix()
            self._vectors = VectorIndex(vectors, self._positions(owners), self._documents)
        return self._vectors

    @property
    def has_vectors(self) -> bool:
        return bool(len(self.vectors.rows))

    @cached_property
    def links(self) -> PageLinks | None:
        cache, pages = self._link_cache, self.reader.addresses()
        new = [page.id for page in pages if (page.path, page.digest) not in cache]
        texts = map(self.reader.page_text, new) if len(new) < len(pages) else self.reader.page_texts()
        new_links = links_of(pages, texts)
        links = {page.id: new_links.get(page.id) or cache.get((page.path, page.digest), ()) for page in pages}
        cache.clear()
        cache.update(((page.path, page.digest), links[page.id]) for page in pages)
        return PageLinks(pages, links) or None

    @cached_property
    def page_factors(self) -> PageFactors:
        return factors(self.reader.paths(), self.reader.meta(), self.reader.about_deprecation())

    def definitions(self, document: int) -> Mapping[str, str]:
        if document not in self._definitions:
            self._definitions[document] = definitions(self.reader.page_text(document).hidden)
        return self._definitions[document]

    def warm(self) -> None:
        len(self.vectors.rows)
        bool(self.links)

    def forget_vectors(self) -> None:
        """Read the vectors again at their next use: the same chunks have other ones."""
        self._vectors = None

    def select(self, file_filter: str | None, paths: Collection[str] | None) -> NDArray[np.bool_] | None:
        if not file_filter and paths is None:
            return None
        is_selected = patterns.selects(file_filter or "")
        pages = (id_ for id_, path in self.reader.paths() if (paths is None or path in paths) and is_selected(path))
        return np.isin(self._documents, list(pages))

    def in_order(self, rows: Collection[int]) -> list[int]:
        ordered: list[int] = self.rows[np.sort(self._positions(np.fromiter(rows, np.int64)))].tolist()
        return ordered

    def _positions(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        return self._by_row[np.searchsorted(self.rows, rows, sorter=self._by_row)]

    def matching(self, words: Sequence[str], count: int, selection: NDArray[np.bool_] | None) -> list[int]:
        documents = None if selection is None else np.unique(self._documents[selection]).tolist()
        return self.reader.matching(lexicon.any_of(words), ranking.FIELD_WEIGHTS, count, documents)

    def nearest(self, vector: NDArray[np.float32], count: int, selection: NDArray[np.bool_] | None) -> list[NearChunk]:
        cosines = self.vectors.similarity(vector).astype(np.float64).round(SCORE_DIGITS)
        embedded = cosines > -1
        positions = best_positions(cosines, embedded if selection is None else selection & embedded, count)
        pages = self.vectors.page_similarity(vector)[positions].astype(np.float64).round(SCORE_DIGITS)
        return list(map(NearChunk, self.rows[positions].tolist(), cosines[positions].tolist(), pages.tolist()))


def best_positions(values: NDArray[np.float64], allowed: NDArray[np.bool_] | None, count: int) -> NDArray[np.intp]:
    """The positions of the ``count`` highest ``values`` among those ``allowed``, ascending. All that tie with the last
    of them are included, so that the order of a file does not decide."""
    positions = np.arange(len(values)) if allowed is None else np.flatnonzero(allowed)
    if len(positions) > count:
        lowest = np.partition(values[positions], len(positions) - count)[len(positions) - count]
        positions = positions[values[positions] >= lowest]
    return positions
