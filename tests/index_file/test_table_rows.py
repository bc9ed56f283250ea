"""Rows of chunks: where plain probing would put them, but found without probing. And how few an edit moves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.errors import BuildError
from anvil.index_file import table_rows

HEADINGS = st.lists(st.sampled_from([f"Page > {n}" for n in range(12)]), max_size=32)


def probed(document: int, headings: list[str], bits: int) -> list[int]:
    """The definition: the first slot that is free, or the next row that is, around the end."""
    rows: list[int] = []
    for heading in headings:
        slots = list(table_rows._slots(heading, table_rows.CHUNK_SLOT_BITS, bits))
        places = (*slots, *((slots[-1] + step) % (1 << bits) for step in range(1 << bits)))
        rows.append(next(row for place in places if (row := (document << bits) + place) not in rows))
    return rows


@given(st.integers(0, 9), HEADINGS, st.integers(5, 11))
def test_rows_are_those_of_plain_probing(document: int, headings: list[str], bits: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_rows, "CHUNK_BITS", bits)
        rows = table_rows.ChunkRows(document)
        found = [rows.take(heading) for heading in headings]
        first, last = table_rows.chunk_range(document)
    assert found == probed(document, headings, bits)
    assert all(first <= row <= last for row in found)


@pytest.mark.parametrize("different", [1, 1000], ids=["one-heading", "many-headings"])
def test_a_page_is_filled_to_the_last_row_in_no_time(different: int) -> None:
    """Probed row by row the first takes over a minute."""
    rows = table_rows.ChunkRows(3)
    started = time.process_time()
    found = {rows.take(f"Page > {n % different}") for n in range(table_rows.most_chunks())}
    assert time.process_time() - started < 5
    assert found == set(range(3 << table_rows.CHUNK_BITS, 4 << table_rows.CHUNK_BITS))
    with pytest.raises(BuildError, match="32,768 chunks at most"):
        rows.take("one more")


@pytest.mark.parametrize(("size", "most"), [(15, 0.2), (150, 1.5), (1500, 3)])
def test_a_new_section_moves_hardly_any_other(size: int, most: float) -> None:
    def placed(headings: list[str]) -> dict[str, int]:
        rows = table_rows.ChunkRows(1)
        return {heading: rows.take(heading) for heading in headings}

    moved, rounds = 0, 40
    for turn in range(rounds):
        headings = [f"Page {turn} > {number}" for number in range(size)]
        place = turn * size // rounds
        before, after = placed(headings), placed([*headings[:place], "new", *headings[place:]])
        moved += sum(before[heading] != after[heading] for heading in headings)
    assert moved / rounds <= most


def test_ids_of_documents_are_near_each_other_and_none_is_given_twice() -> None:
    taken: set[int] = set()
    for number in range(1000):
        id_ = table_rows.document_id("default", f"folder/{number}.md", taken.__contains__, {})
        assert id_ not in taken
        taken.add(id_)
    assert sum(id_ < 1 << table_rows.DOCUMENT_SLOT_BITS for id_ in taken) > 880  # the others in twice as many places


def test_an_id_of_a_document_is_found_in_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    class Taken(set[int]):
        def __contains__(self, id_: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(id_)

    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 14)
    taken, beyond = Taken(), dict[int, int]()
    for number in range(15_000):
        id_ = table_rows.document_id("default", str(number), taken.__contains__, beyond)
        if number % 1000 == 0:  # the cache changes no id
            assert id_ == table_rows.document_id("default", str(number), set(taken).__contains__, {})
        taken.add(id_)
    assert looks < 15_000 * 20


def test_as_many_documents_as_there_are_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 5)
    taken: set[int] = set()
    for number in range(32):
        taken.add(table_rows.document_id("default", str(number), taken.__contains__, {}))
    assert taken == set(range(32))
    with pytest.raises(BuildError, match="32 documents at most"):
        table_rows.document_id("default", "one more", taken.__contains__, {})
