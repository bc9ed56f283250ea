"""Rows of chunks: where plain probing would put them, but found without probing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.backends.store import row_ids
from anvil.errors import BuildError

HEADINGS = st.lists(st.sampled_from([f"Page > {n}" for n in range(12)]), max_size=32)


def probed(document: int, headings: list[str], bits: int) -> list[int]:
    """The definition: the slot, or the next row that is free, around the end."""
    rows: list[int] = []
    for heading in headings:
        slot = row_ids._slot(heading, row_ids.CHUNK_SLOT_BITS)
        free = ((slot + step) % (1 << bits) for step in range(1 << bits))
        rows.append(next(row for place in free if (row := (document << bits) + place) not in rows))
    return rows


@given(st.integers(0, 9), HEADINGS, st.integers(5, 11))
def test_rows_are_those_of_plain_probing(document: int, headings: list[str], bits: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_ids, "CHUNK_BITS", bits)
        rows = row_ids.ChunkRows(document)
        found = [rows.take(heading) for heading in headings]
        first, last = row_ids.chunk_range(document)
    assert found == probed(document, headings, bits)
    assert all(first <= row <= last for row in found)


@pytest.mark.parametrize("different", [1, 1000], ids=["one-heading", "many-headings"])
def test_a_page_is_filled_to_the_last_row_in_no_time(different: int) -> None:
    """Probed row by row the first takes over a minute."""
    rows = row_ids.ChunkRows(3)
    started = time.process_time()
    found = {rows.take(f"Page > {n % different}") for n in range(row_ids.most_chunks())}
    assert time.process_time() - started < 5
    assert found == set(range(3 << row_ids.CHUNK_BITS, 4 << row_ids.CHUNK_BITS))
    with pytest.raises(BuildError, match="32,768 chunks at most"):
        rows.take("one more")
