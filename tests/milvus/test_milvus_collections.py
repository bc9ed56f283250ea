"""The names and numbers of what is in Milvus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.milvus import milvus_collections


@given(st.text(), st.integers(0, 2**33), st.sampled_from(range(6)))
def test_a_text_of_any_length_comes_back_from_its_pieces(text: str, number: int, kind: int) -> None:
    long = text * 4000 if text else ""
    rows = dict(milvus_collections.pieces(kind, number, long[:50_000]))
    count, _, first = rows[milvus_collections.part(kind, number)].partition("\n")
    rest = [rows[milvus_collections.part(kind, number, piece)] for piece in range(1, int(count))]
    assert "".join([first, *rest]) == long[:50_000] and len(rows) == int(count)
    assert all(
        len(piece.encode("utf-8", "surrogatepass")) <= milvus_collections.MAX_TEXT_BYTES for piece in rows.values()
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**34 - 1), st.integers(0, 2**16 - 1)), unique=True))
def test_no_two_pieces_have_one_row_and_all_fit_64_bits(places: list[tuple[int, int, int]]) -> None:
    rows = [milvus_collections.part(*place) for place in places]
    assert len(set(rows)) == len(rows) and all(0 <= row < 2**63 for row in rows)


def test_a_generation_is_named_by_what_it_says_and_known_again() -> None:
    name = milvus_collections.generation_name("docs", "d", "c")
    assert name == milvus_collections.generation_name("docs", "d", "c")
    assert (
        len(
            {
                name,
                milvus_collections.generation_name("docs", "d", "x"),
                milvus_collections.generation_name("docs", "x", "c"),
            }
        )
        == 3
    )
    assert milvus_collections.generation_of(f"{name}_chunks", "docs") == name


@pytest.mark.parametrize(
    "name",
    [
        "docs_chunks",
        "docs_0123456789ab",
        "docs_0123456789ab_other",
        "more_docs_0123456789ab_chunks",
        "docs_0123456789AB_chunks",
        "docs",
    ],
)
def test_what_is_not_ours_is_no_generation(name: str) -> None:
    assert milvus_collections.generation_of(name, "docs") is None


def test_a_filter_is_made_of_numbers() -> None:
    assert milvus_collections.within(None, ()) == "" and milvus_collections.within([3, 1], ()) == "document in [1, 3]"
    assert milvus_collections.within(None, {2}) == "document not in [2]"
    assert milvus_collections.within([1], [2]) == "document in [1] and document not in [2]"
    with pytest.raises(ValueError):
        milvus_collections.within(["1] or id > 0 or document in [1"], ())  # type: ignore[list-item]


def test_a_search_keeps_twice_as_many_candidates_as_it_returns_and_128_at_least() -> None:
    assert [milvus_collections.nearest_params(limit)["params"]["ef"] for limit in (10, 200)] == [128, 400]
