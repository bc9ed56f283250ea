"""Anvil's own pages, frozen, and questions whose best section is known: every surface gives the same answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.results import Mode
from anvil.search.confidence import UNLIKELY
from tests.support.programs import printed

PAGES = Path(__file__).with_name("pages")
QUESTIONS = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[anvil.Anvil]:
    """The frozen pages with the bundled model, the index elsewhere."""
    with anvil.open(PAGES, tmp_path_factory.mktemp("dogfood") / "index.db", "local") as found:
        found.index()
        yield found


@pytest.mark.parametrize("asked", QUESTIONS, ids=[each["question"] for each in QUESTIONS])
def test_the_best_section_is_found(opened: anvil.Anvil, asked: dict[str, Any]) -> None:
    found = opened.search(asked["question"])
    start = opened.get_section(asked["page"], asked["section"]).metadata.start_line or 0
    places = [
        number
        for number, hit in enumerate(found.results, 1)
        if hit.metadata.file_path == asked["page"]
        and any(
            first <= start <= last
            for first, last in (
                (hit.metadata.start_line or 0, hit.metadata.end_line or 0),
                *((place.start_line or 0, place.end_line or 0) for place in hit.also or ()),
            )
        )
    ]
    shown = [f"{hit.metadata.file_path}: {hit.metadata.heading_path}" for hit in found.results]
    assert places and places[0] <= asked["within"], shown


@pytest.mark.parametrize("question", ["how do I keep the index fresh in CI?", "filter results by path with a glob"])
def test_what_the_pages_answer_is_confident(opened: anvil.Anvil, question: str) -> None:
    result = opened.search(question)
    assert result.confidence is not None and result.confidence > 0.8 and result.freshness.notes == ()


@pytest.mark.parametrize(
    "question", ["Does it run on Windows 95?", "What is the capital of France?", "How do I rotate a webhook secret?"]
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_what_the_pages_do_not_answer_is_said(opened: anvil.Anvil, question: str, mode: Mode) -> None:
    result = opened.search(question, mode=mode)
    assert all(hit.confidence is not None and hit.confidence < UNLIKELY for hit in result.results)
    assert not result.results or "Probably nothing here answers this" in result.freshness.notes[-1]


@pytest.mark.parametrize("asked", QUESTIONS[::5], ids=[each["question"] for each in QUESTIONS[::5]])
def test_the_command_line_gives_the_same_answer(opened: anvil.Anvil, asked: dict[str, Any]) -> None:
    where = ["--docs", str(PAGES), "--index", str(opened.index_path), "--provider", "local"]
    answer = printed("search", *where, asked["question"])
    found = opened.search(asked["question"], max_chars=None)
    assert [(hit["content"], hit["score"], hit["metadata"]["heading_path"]) for hit in answer["results"]] == [
        (hit.content, hit.score, hit.metadata.heading_path) for hit in found.results
    ]
    assert answer["total_chunks"] == found.total_chunks
    section = opened.get_section(asked["page"], asked["section"])
    assert printed("show", *where, f"{asked['page']}#{asked['section']}")["content"] == section.content
