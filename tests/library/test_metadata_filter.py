from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.errors import ConfigError
from anvil.library.metadata_filter import (
    MAX_METADATA_BYTES,
    Filter,
    checked_metadata,
    document_filter,
    labels_of,
    library_name,
    source_name,
)

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def test_a_filter_is_all_of_its_conditions() -> None:
    labels = {"metadata.team": "sea", "metadata.year": 2026, "metadata.ok": True}
    found = document_filter({"file_type": ".PDF", "page": 3, **labels}, "papers")
    assert found.documents[:2] == (("library = ?", ("papers",)), ("file_type = ?", ("pdf",)))
    assert [values for _, values in found.documents[2:]] == [("team", '"sea"'), ("year", "2026"), ("ok", "true")]
    assert found.passages == (("page = ?", (3,)),)
    assert not document_filter({"page": 1}).documents and document_filter(None) == Filter()


def test_ranges() -> None:
    found = document_filter(
        {
            "page": {"gte": 2, "lt": 5},
            "metadata.year": {"gt": 2020},
            "metadata.team": {"lte": "m"},
            "last_modified": {"gt": "2026-01-31", "lte": "2026-02"},
            "created_at": "2026",
        }
    )
    assert [values for _, values in found.documents[:2]] == [("year", 2020), ("team", "m")]
    assert found.documents[2:] == (
        ("last_modified >= ?", ("2026-02-01T00:00:00Z",)),
        ("last_modified < ?", ("2026-03-01T00:00:00Z",)),
        ("id IN (SELECT id FROM holdings WHERE created_at >= ?)", ("2026-01-01T00:00:00Z",)),
        ("id IN (SELECT id FROM holdings WHERE created_at < ?)", ("2027-01-01T00:00:00Z",)),
    )
    assert found.passages == (("page >= ?", (2,)), ("page < ?", (5,)))


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        (
            {"author": "x"},
            "Unknown filter field 'author'. Use file_type, page, chunk_index, last_modified, created_at, "
            "source, title, library, doc_id or metadata.KEY.",
        ),
        ({"metadata.": "x"}, "Unknown filter field 'metadata.'"),
        ({"page": "3"}, 'filter.page must be a whole number, or a range such as {"gte": ..., "lt": ...}.'),
        ({"page": {}}, "filter.page must be a whole number, or a range"),
        ({"page": {"gte": "3"}}, "filter.page must be a whole number."),
        ({"page": {"between": 3}}, "Unknown operator 'between' in filter.page. Use gt, gte, lt, lte."),
        ({"page": 2**63}, "filter.page must be a number from"),
        ({"title": 3}, "filter.title must be a string."),
        (
            {"title": {"gte": "a"}},
            "filter.title takes a value, not a range. Ranges are for page, chunk_index, "
            "last_modified, created_at and metadata.KEY.",
        ),
        ({"page": True}, "filter.page must be a whole number."),
        ({"title": ["a"]}, "filter.title must be a string."),
        ({"created_at": "2025-02-29"}, "filter.created_at must be an ISO 8601 time such as 2026-01-31"),
        ({"last_modified": "20260131"}, "2026-01-31T09:30:00Z (that is written in another way)."),
        ({"last_modified": 5}, "filter.last_modified must be an ISO 8601 time"),
        ({"last_modified": {"gte": 5}}, "filter.last_modified must be an ISO 8601 time"),
        ({"metadata.x": 1.5}, "filter.metadata.x must be a string, a whole number, true or false, or a range"),
        ({"metadata.x": None}, "filter.metadata.x must be a string, a whole number"),
        ({"metadata.x": {"gt": True}}, "filter.metadata.x must be a string or a whole number."),
    ],
)
def test_what_makes_no_sense_is_named(given_: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        document_filter(given_)
    assert told in str(caught.value)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_metadata_comes_back_as_it_was(given_: dict[str, Any]) -> None:
    assert checked_metadata(given_) == json.loads(json.dumps(given_))


@pytest.mark.parametrize("wrong", [[1], "text", 5, {1: 2}, {"a": math.nan}, {"a": object()}, {"a": "\ud800"}])
def test_metadata_is_a_json_object(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="metadata must be a JSON object"):
        checked_metadata(wrong)


def test_metadata_is_bounded_in_size_and_depth() -> None:
    assert checked_metadata({"a": "x" * (MAX_METADATA_BYTES - 9)})
    with pytest.raises(ConfigError, match="the limit is 16,384"):
        checked_metadata({"a": "x" * MAX_METADATA_BYTES})
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ConfigError, match="metadata"):
        checked_metadata(deep)


def test_labels_are_what_filters_compare() -> None:
    assert labels_of({"a": "x", "b": 1, "c": True, "d": None, "e": [1], "f": 1.5}) == [
        ("a", '"x"'),
        ("b", "1"),
        ("c", "true"),
    ]


@pytest.mark.parametrize("wrong", ["", "  ", "a\nb", "x" * 5000, "a\0b", "\ud800"])
def test_names_are_printable(wrong: str) -> None:
    for check in (library_name, source_name):
        with pytest.raises(ConfigError, match=r"printable|is empty|characters"):
            check(wrong)
