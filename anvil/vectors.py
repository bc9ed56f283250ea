"""The vectors of an index in memory, scanned whole: exact cosines of a question with every window.

Rows stay int8, as they are stored; a block at a time is widened in the processor's cache, because it is reading
them from memory that takes the time.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anvil.ranking import PAGE_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1024
"""Rows widened at once: few enough for the processor's cache, and for its library of products to need no threads of
its own, which cost more here than they bring."""
SHARED = 16 * BLOCK
"""From so many rows on, two threads take half of them each."""


class VectorTable:
    """The windows' vectors, answering for chunks.

    ``rows``: int8 (n, dimensions), of any length. ``owners`` (n,): the place of each row's chunk.
    ``documents`` (chunks,): the document of each place; chunks of one document lie side by side.
    """

    def __init__(self, rows: NDArray[np.int8], owners: NDArray[np.intp], documents: NDArray[np.int64]) -> None:
        order = np.argsort(owners, kind="stable")
        self.rows = np.ascontiguousarray(rows[order])
        owners = owners[order]
        squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.int32) if len(rows) else np.empty(0)
        self._scale = (1.0 / np.sqrt(np.maximum(squares, 1))).astype(np.float32)
        self._starts = _starts(owners)
        self._owners = owners[self._starts]
        self._chunks = len(documents)
        pages = _starts(documents)
        self._page = np.searchsorted(pages, np.arange(len(documents)), side="right") - 1
        self._centroids = self._page_means(np.searchsorted(owners, np.append(pages, len(documents))).tolist())

    def _page_means(self, bounds: list[int]) -> NDArray[np.float32]:
        means = np.zeros((len(bounds) - 1, self.rows.shape[1]), np.float32)
        for page, (first, last) in enumerate(itertools.pairwise(bounds)):
            if last > first:
                mean = self._scale[first:last] @ self.rows[first:last].astype(np.float32)
                means[page] = mean / max(float(np.linalg.norm(mean)), 1e-9)
        return means

    def best(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each chunk's best cosine with the unit vector ``query`` (chunks,); -1 for chunks without a vector."""
        found = np.full(self._chunks, -1.0, np.float32)
        if len(self.rows):
            found[self._owners] = np.maximum.reduceat(_dots(self.rows, query) * self._scale, self._starts)
        return found

    def near(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Each chunk's best cosine and, weighted, its page's: of equal sections, the one in a page on the subject."""
        return self.best(query) + PAGE_WEIGHT * _dots(self._centroids, query)[self._page]


def nearest_pairs(
    rows: NDArray[np.int8], owners: NDArray[np.int64], apart: Sequence[Mapping[int, int]], threshold: float, limit: int
) -> list[tuple[int, int, float]]:
    """Pairs of chunks (owner, owner, cosine of their mean vectors) from ``threshold`` on, nearest first.

    ``rows``: int8 (n, dimensions), of any length; ``owners`` (n,): the chunk of each. Chunks that are of one group by
    any of the groupings ``apart`` (chunk -> group) are no pair.
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
    found: list[tuple[float, int, int]] = []
    for first in range(0, len(names), BLOCK):
        cosines = means[first : first + BLOCK] @ means[first:].T
        for group in groups:
            cosines[group[first : first + BLOCK, None] == group[None, first:]] = -1.0
        left, right = np.nonzero(np.triu(cosines, 1) >= threshold)
        if len(left):
            values = cosines[left, right]
            best = np.lexsort((right, left, -values))[:limit]
            found += zip((-values[best]).tolist(), names[left[best] + first], names[right[best] + first], strict=True)
            found = sorted(found)[:limit]
    return [(int(a), int(b), -value) for value, a, b in found]


def _dots(rows: NDArray[Any], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of each row (n, dimensions) with ``query``, float32 (n,)."""
    count = len(rows)
    end = -(-count // BLOCK) * BLOCK
    found = np.empty(end, np.float32)

    def part(first: int, last: int) -> None:
        block = np.zeros((BLOCK, rows.shape[1]), np.float32)
        for start in range(first, last, BLOCK):  # whole blocks only: a shorter one would be added up in another order
            some = rows[start : start + BLOCK]
            np.copyto(block[: len(some)], some)
            np.dot(block, query, out=found[start : start + BLOCK])

    if count < SHARED:
        part(0, end)
    else:
        middle = end // BLOCK // 2 * BLOCK
        other = threading.Thread(target=part, args=(middle, end))
        other.start()
        part(0, middle)
        other.join()
    return found[:count]


def _starts(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.r_[True, values[1:] != values[:-1]][: len(values)])
