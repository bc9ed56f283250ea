"""The table of vectors against plain numpy over the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anvil.search import candidates
from anvil.search.candidates import VectorIndex
from anvil.search.ranking import PAGE_WEIGHT

Floats = NDArray[np.float64]


def sample(
    seed: int, chunks: int, dimensions: int, pages: int
) -> tuple[NDArray[np.int8], NDArray[np.intp], NDArray[np.int64], NDArray[np.float32]]:
    """Rows in any order, none to three for each chunk; documents side by side; a unit query."""
    chance = np.random.default_rng(seed)
    owners = np.repeat(np.arange(chunks), chance.integers(0, 4, chunks)).astype(np.intp)
    chance.shuffle(owners)
    rows = chance.integers(-127, 128, (len(owners), dimensions)).astype(np.int8)
    rows[:, 0] = 127  # of any length, but none of length nought
    documents = np.sort(chance.integers(0, pages, chunks)).astype(np.int64) * 7 + 3
    query = chance.normal(size=dimensions)
    return rows, owners, documents, (query / np.linalg.norm(query)).astype(np.float32)


def plain(
    rows: NDArray[np.int8], owners: NDArray[np.intp], documents: NDArray[np.int64], query: NDArray[np.float32]
) -> tuple[Floats, Floats]:
    """(best, near), one chunk and one page at a time, in double precision."""
    unit = rows.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True) if len(rows) else 1
    cosines = unit @ query.astype(np.float64)
    best = np.array([cosines[owners == c].max(initial=-1.0) for c in range(len(documents))])
    near = best.copy()
    for page in np.unique(documents):
        mine = np.isin(owners, np.flatnonzero(documents == page))
        if mine.any():
            mean = unit[mine].mean(axis=0)
            near[documents == page] += PAGE_WEIGHT * (mean @ query / np.linalg.norm(mean))
    return best, near


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(1, 24), st.integers(1, 6))
def test_scores_are_what_plain_numpy_says(seed: int, chunks: int, dimensions: int, pages: int) -> None:
    rows, owners, documents, query = sample(seed, chunks, dimensions, pages)
    table = VectorIndex(rows, owners, documents)
    best, near = plain(rows, owners, documents, query)
    np.testing.assert_allclose(table.similarity(query), best, atol=2e-5)
    if chunks:
        np.testing.assert_allclose(table.similarity_with_page(query), near, atol=5e-5)


@pytest.mark.parametrize(
    "count",
    [
        candidates.BLOCK_ROWS - 1,
        candidates.BLOCK_ROWS,
        candidates.BLOCK_ROWS + 1,
        3 * candidates.BLOCK_ROWS + 5,
    ],
)
def test_rows_beyond_a_block_are_scored_too(count: int) -> None:
    chance = np.random.default_rng(count)
    rows = chance.integers(-127, 128, (count, 8)).astype(np.int8)
    rows[:, 0] = 1
    owners, documents = np.arange(count, dtype=np.intp)[::-1].copy(), np.zeros(count, np.int64)
    query = np.eye(8, dtype=np.float32)[3]
    best, _ = plain(rows, owners, documents, query)
    np.testing.assert_allclose(VectorIndex(rows, owners, documents).similarity(query), best, atol=2e-5)


def test_a_chunk_without_a_vector_comes_last() -> None:
    table = VectorIndex(np.array([[3, 4]], np.int8), np.array([1], np.intp), np.array([5, 5], np.int64))
    assert table.similarity(np.array([0.6, 0.8], np.float32)) == pytest.approx([-1.0, 1.0])


def test_an_empty_table_answers_for_nobody() -> None:
    table = VectorIndex(np.empty((0, 4), np.int8), np.empty(0, np.intp), np.empty(0, np.int64))
    assert len(table.similarity(np.zeros(4, np.float32))) == 0


def test_a_row_of_noughts_is_no_division_by_nought() -> None:
    table = VectorIndex(np.zeros((1, 4), np.int8), np.array([0], np.intp), np.array([1], np.int64))
    assert table.similarity(np.eye(4, dtype=np.float32)[0]) == pytest.approx([0.0])


def test_reading_the_table_changes_nothing() -> None:
    rows, owners, documents, query = sample(1, 30, 8, 3)
    table = VectorIndex(rows, owners, documents)
    first = table.similarity_with_page(query)
    table.similarity(-query)
    np.testing.assert_array_equal(table.similarity_with_page(query), first)
