"""Requests are checked and clamped where they are made."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from anvil.errors import ConfigError
from anvil.requests import MODES, GrepRequest, OpenRequest, SearchRequest
from anvil.results import Mode


@pytest.mark.parametrize(("given", "clamped"), [(-3, 1), (0, 1), (7, 7), (20, 20), (21, 20)])
def test_a_search_has_one_to_twenty_results(given: int, clamped: int) -> None:
    assert SearchRequest("alerts", given).top_k == clamped


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"query": " \n"}, "query parameter is required"),
        ({"query": "x", "mode": "fuzzy"}, "Unknown mode 'fuzzy'. Use hybrid, semantic or keyword."),
        ({"query": "x", "min_confidence": 1.5}, "min_confidence is 1.5. Use a value from 0 to 1."),
    ],
)
def test_a_search_that_cannot_be_answered_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        SearchRequest(**given)
    assert str(error.value) == message


def test_the_modes_are_those_of_the_type() -> None:
    assert get_args(Mode) == MODES


def test_numbers_of_a_grep_are_clamped() -> None:
    request = GrepRequest("x", context=-1, max_matches=0, offset=-5, max_chars=0)
    assert (request.context, request.max_matches, request.offset, request.max_chars) == (0, 1, 0, 1)
    assert GrepRequest("x").max_chars is None


def test_a_request_says_whether_it_names_an_index() -> None:
    assert not OpenRequest(provider="none", collections=("docs",)).names_index
    assert OpenRequest(docs="docs").names_index and OpenRequest(index="i.db").names_index
    assert OpenRequest(site="site").names_index
