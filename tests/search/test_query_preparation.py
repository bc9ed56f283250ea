"""Slips in a question: which words they are, which word was meant, and what a search then finds and says."""

from __future__ import annotations

from pathlib import Path

import pytest

import anvil
from anvil.search.query_preparation import is_slip
from tests.conftest import write


@pytest.mark.parametrize(
    ("typed", "word", "slip"),
    [
        ("websoket", "websocket", True),
        ("limitter", "limiter", True),
        ("shutdwon", "shutdown", True),
        ("encript", "encrypt", True),
        ("zebar", "zebra", True),
        ("mysql", "mssql", False),
        ("tiger", "timer", False),
        ("nestjs", "nextjs", False),
        ("prisma", "prism", False),
        ("fail", "mail", False),
        ("token", "token", False),
        ("toekn", "tokens", False),
        ("sesio", "session", False),
    ],
)
def test_a_slip_is_a_letter_that_is_missing_added_or_swapped_or_another_vowel(
    typed: str, word: str, slip: bool
) -> None:
    assert is_slip(typed, word) is slip
    assert is_slip(word, typed) is slip


PAGES = {
    "server.md": "# Server\n\nA graceful shutdown waits for open requests.\n",
    "more.md": "# More\n\nA shotdown is no shutdown. The shutdown has hooks.\n",
    "database.md": "# Database\n\nThe driver for mssql.\n",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", PAGES)


def test_a_word_with_a_slip_is_searched_as_the_most_frequent_one_that_may_be_meant(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db", provider="none") as opened:
        found = opened.search("how does the Shutdwon work")
        assert "No page has the word 'Shutdwon'; 'shutdown' was searched instead." in found.freshness.notes
        assert {hit.metadata.file_path for hit in found.results} == {"server.md", "more.md"}
        for query in ("shut", "shutdow", "mysql", "shutDwon", "server.shutdwon", "x_shutdwon", "a loggin of teh"):
            notes = opened.search(query).freshness.notes
            assert not any("instead" in note for note in notes), query


def test_a_page_that_is_edited_after_a_slip_is_read_again(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db", provider="none") as opened:
        opened.index()
        for text in ("zebra", "walrus"):  # the first edit makes a copy in memory, in which words are looked up
            write(docs, {"server.md": f"# Server\n\nA {text}, and a shutdown.\n"})
            assert any("instead" in note for note in opened.search(f"shutdwon {text}").freshness.notes)
            assert text in opened.search(text).results[0].content


def test_the_vector_is_that_of_the_word_that_was_meant(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "i.db") as opened:
        typed, meant = opened.search("graceful shutdwon"), opened.search("graceful shutdown")
        assert [(hit.score, hit.confidence, hit.content) for hit in typed.results] == [
            (hit.score, hit.confidence, hit.content) for hit in meant.results
        ]


def test_a_word_that_the_model_knows_has_no_slip(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# Noise\n\nBe quiet.\n"})
    with anvil.open(docs, tmp_path / "i.db") as opened:
        assert not any("instead" in note for note in opened.search("quite").freshness.notes)
        assert any("instead" in note for note in opened.search("quiiet").freshness.notes)
    with anvil.open(docs, tmp_path / "i.db", provider="none") as opened:
        assert any("instead" in note for note in opened.search("quite").freshness.notes), "nobody knows it there"


def test_a_word_that_another_collection_has_is_searched_as_it_is(docs: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"a.md": "# Films\n\nShutdwon is a film.\n"})
    collections = {"docs": {"docs": str(docs)}, "films": {"docs": str(other)}}
    (tmp_path / "anvil.toml").write_text(
        "[embedding]\nprovider = 'none'\n"
        + "".join(f"[collections.{name}]\ndocs = '{each['docs']}'\n" for name, each in collections.items())
    )
    with anvil.open(config=tmp_path / "anvil.toml", collections="all") as opened:
        found = opened.search("shutdwon")
        assert [hit.collection for hit in found.results] == ["films"]
        found = opened.search("shtudown")
        assert "'shutdown' was searched instead" in " ".join(found.freshness.notes)
        assert {hit.collection for hit in found.results} == {"docs"}
