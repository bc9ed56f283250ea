"""Requests are checked and clamped where they are made."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.requests import MODES, BuildRequest, GrepRequest, OpenRequest, SearchRequest
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
    assert GrepRequest("x", max_chars=None).max_chars is None and GrepRequest("x").max_chars == 16_000


def test_a_request_says_whether_it_names_an_index() -> None:
    assert not OpenRequest(provider="none", collections=("docs",)).names_index
    assert OpenRequest(docs="docs").names_index and OpenRequest(index="i.db").names_index
    assert OpenRequest(site="site").names_index


@pytest.mark.parametrize(
    ("method", "kind"), [("search", SearchRequest), ("grep", GrepRequest), ("index", BuildRequest)]
)
def test_a_field_of_a_request_is_an_argument_of_its_method(docs: Path, method: str, kind: type[Any]) -> None:
    signature = inspect.signature(getattr(anvil.Anvil, method))
    takes_these = [*signature.parameters]
    assert signature.return_annotation == {"search": "SearchResult", "grep": "GrepResult"}.get(method, "BuildReport")
    internal = {"paths", "options", "more_chars", "read_passages", "workers", "named", "lock_timeout_s"}
    assert takes_these == ["self", *(name for name in inspect.signature(kind).parameters if name not in internal)]
    with anvil.open(docs, provider="none") as opened:
        with pytest.raises(ConfigError, match=f" of {method} must be "):
            getattr(opened, method)("x", version=1)
        with pytest.raises(TypeError, match=rf"^\w+\.{method}\(\) got an unexpected keyword argument 'nonsense'"):
            getattr(opened, method)("x", nonsense=1)


def test_a_build_reports_its_progress_to_its_caller(docs: Path) -> None:
    of_index: list[str] = []
    of_build: list[str] = []
    with anvil.open(docs, provider="none", progress=lambda stage, *_: of_index.append(stage)) as opened:
        opened.index(progress=lambda stage, *_: of_build.append(stage))
        assert "writing" in of_build and not of_index
        opened.index(force=True)
        assert "writing" in of_index


def test_one_previous_index_is_no_list_of_letters(docs: Path) -> None:
    with anvil.open(docs, provider="none") as opened:
        (reason,) = opened.index(previous=str(docs / "old.db")).reasons
        with pytest.raises(ConfigError, match="previous must be a path or several, not int: 3"):
            opened.index(previous=3)  # type: ignore[arg-type]
    assert "The previous index is not used" in reason and "old.db" in reason
