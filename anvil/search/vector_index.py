"""The vectors of an index in memory: exact cosines of a query with every window.

Rows stay int8, as they are stored. A block at a time is converted to floats in the processor's cache, because reading
memory takes most of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anvil.search.scoring import PAGE_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 1024
"""Rows converted at once. They fit into the processor's cache, and BLAS uses no threads, which would cost more."""
TWO_THREADS_FROM_ROWS = 16 * BLOCK_ROWS
"""From this number of rows on, two threads take half of them each."""


class VectorIndex:
    """Cosines of chunks, from the vectors of their windows.

    ``rows``: int8 (n, dimensions), of any length. ``owners`` (n,): the position of each row's chunk.
    ``documents`` (chunks,): the document of each position; chunks of one document are neighbours.
    """

    def __init__(
        self,
        rows: NDArray[np.int8],
        owners: NDArray[np.intp],
        documents: NDArray[np.int64],
        before: VectorIndex | None = None,
        changed: NDArray[np.int64] | None = None,
        centroids: Mapping[int, NDArray[np.float32]] | None = None,
    ) -> None:
        """``before``: an earlier index, whose means of documents that are not ``changed`` are reused. ``centroids``:
        the mean vectors of documents of which only some chunks are here."""
        if len(owners) and (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
            rows, owners = rows[order], owners[order]
        self.rows = np.ascontiguousarray(rows)
        squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.int32) if len(rows) else np.empty(0)
        self._scale = (1.0 / np.sqrt(np.maximum(squares, 1))).astype(np.float32)
        self._starts = _starts(owners)
        self._owners = owners[self._starts]
        self._chunks = len(documents)
        pages = _starts(documents)
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
        """Compute the mean vectors of ``pages``. ``bounds``: their first rows. Some thousand rows are read at once."""
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
        """Each chunk's best cosine with the unit vector ``query`` (chunks,); -1 for chunks without a vector."""
        cosines = np.full(self._chunks, -1.0, np.float32)
        if len(self.rows):
            cosines[self._owners] = np.maximum.reduceat(_dots(self.rows, query) * self._scale, self._starts)
        return cosines

    @property
    def centroids(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The documents (n,) and the mean vector of each, a unit vector or zeros (n, dimensions)."""
        return self._documents, self._centroids

    def middle(self, page_weight: float = PAGE_WEIGHT) -> NDArray[np.float64]:
        """The vector whose product with a query is the mean of :meth:`similarity_with_page` over all chunks, with the
        mean of a chunk's windows instead of its best one. With ``page_weight`` 0: the mean of :meth:`similarity`."""
        total = np.zeros(self.rows.shape[1])
        weights = self._scale / np.repeat(self._lengths(), self._lengths())
        for first in range(0, len(self.rows), BLOCK_ROWS):
            total += weights[first : first + BLOCK_ROWS] @ self.rows[first : first + BLOCK_ROWS].astype(np.float32)
        pages = np.bincount(self._page, minlength=len(self._centroids)) @ self._centroids.astype(np.float64)
        return np.asarray((total + page_weight * pages) / max(self._chunks, 1))

    @property
    def holding(self) -> int:
        """Number of chunks that have rows."""
        return len(self._owners)

    def several(self) -> NDArray[np.intp]:
        """The chunks that have more than one row."""
        return np.asarray(self._owners[self._lengths() > 1])

    def _lengths(self) -> NDArray[np.intp]:
        """Number of rows of each chunk that has rows."""
        return np.diff(np.append(self._starts, len(self.rows)))

    def page_similarity(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of the mean vector of each chunk's page (chunks,); 0 for pages without vectors."""
        return _dots(self._centroids, query)[self._page]

    def similarity_with_page(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each chunk's best cosine plus the weighted one of its page, which ranks pages on the subject first."""
        return with_page(self.similarity(query), self.page_similarity(query))


def with_page(own: NDArray[np.float32], pages: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines of chunks plus the weighted cosines of their pages (chunks,)."""
    return own + PAGE_WEIGHT * pages


def nearest_pairs(
    rows: NDArray[np.int8], owners: NDArray[np.int64], apart: Sequence[Mapping[int, int]], threshold: float, limit: int
) -> list[tuple[int, int, float]]:
    """Pairs of chunks (owner, owner, cosine of their mean vectors) from ``threshold`` on, nearest first.

    ``rows``: int8 (n, dimensions), of any length. ``owners`` (n,): the chunk of each row. ``apart``: mappings chunk ->
    group; two chunks of the same group are not a pair.
    """
    order = np.argsort(owners, kind="stable")
    starts = _starts(owners[order])
    names = owners[order][starts]
    if len(names) < 2:
        return []
    units = rows[order].astype(np.float32)
    units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-9)
    means = np.add.reduceat(units, starts)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    groups = [np.array([grouping[int(name)] for name in names]) for grouping in apart]
    pairs: list[tuple[float, int, int]] = []
    for first in range(0, len(names), BLOCK_ROWS):
        cosines = means[first : first + BLOCK_ROWS] @ means[first:].T
        for group in groups:
            cosines[group[first : first + BLOCK_ROWS, None] == group[None, first:]] = -1.0
        left, right = np.nonzero(np.triu(cosines, 1) >= threshold)
        if len(left):
            values = cosines[left, right]
            best = np.lexsort((right, left, -values))[:limit]
            pairs += zip((-values[best]).tolist(), names[left[best] + first], names[right[best] + first], strict=True)
            pairs = sorted(pairs)[:limit]
    return [(int(a), int(b), -value) for value, a, b in pairs]


def _dots(rows: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of each row (n, dimensions) with ``query``, float32 (n,)."""
    count = len(rows)
    end = -(-count // BLOCK_ROWS) * BLOCK_ROWS
    products = np.empty(end, np.float32)

    def part(first: int, last: int) -> None:
        block = np.empty((BLOCK_ROWS, rows.shape[1]), np.float32)
        for start in range(first, last, BLOCK_ROWS):  # whole blocks: shorter ones are summed in another order
            block_rows = rows[start : start + BLOCK_ROWS]
            block[: len(block_rows)], block[len(block_rows) :] = block_rows, 0
            np.dot(block, query, out=products[start : start + BLOCK_ROWS])

    if count < TWO_THREADS_FROM_ROWS:
        part(0, end)
    else:
        middle = end // BLOCK_ROWS // 2 * BLOCK_ROWS
        other = threading.Thread(target=part, args=(middle, end))
        other.start()
        part(0, middle)
        other.join()
    return products[:count]


def _starts(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]][: len(values)])
