"""The ranking of the search page in Node: the results and scores of ``anvil search --mode keyword``, with versions and
translations of pages."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import anvil
from anvil.search import ranking
from anvil.search_page.publishing import RULES, publish
from tests.conftest import write
from tests.support.search_page_answers import NODE, assert_same, by_words, in_node

pytestmark = pytest.mark.skipif(not NODE, reason="there is no Node")

WORDS = """
anchor beacon cable dock engine ferry gangway harbour inlet jetty keel lantern mooring quay rudder
"""
COMMON = "ship sea captain"
QUESTIONS = [
    "anchor",
    "the cable of the ferry",
    "a lantern and a keel",
    '"ship sea" harbour',
    f"jetty {COMMON}",
    COMMON,
    "how do I upgrade the rudder",
    "release of the rudder engine",
    "unheardof gangway",
    "what is next in the dock",
    "anchor beacon cable dock engine ferry",  # have more postings than are read
    "ship-sea",
    "part of a-title-page",
    "jetty",
    "anchorSea",
]
NAMED = [
    "rudder in v1.3",
    "inlet in 1.3?",
    "upgrade the engine to `v1.12`",
    "quay **1.7**",
    "from 1.3 to v1.12 of the quay",
    "v1.3",
    "wick in v0.9",
    "upgrade the wick in v0.9",
    "V1.4.X (mooring)",
    "beacon in latest",
    "constructor of the dock 1.3",
]


def text(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS.split(), k=count))


def page(chance: random.Random) -> str:
    common = COMMON if chance.random() < 0.8 else "ship"
    return f"# {text(chance, 1)}\n\n{common} {text(chance, chance.randint(3, 15))}.\n"


def twenty_five_versions() -> dict[str, str]:
    """The newest pages are in no version's folder. Their number is larger than that of chunks that are all candidates.
    Each of 24 older versions has twelve pages, some of which the newest version lacks, and of which many are the same
    as in the version before."""
    chance = random.Random(5)
    pages = {f"part{number}/page.md": page(chance) for number in range(420)}
    pages["notes.md"] = "# Notes\n\nSince v1.3 and v1.12 there is an inlet.\n"
    older = [f"part{number}/page.md" for number in range(10)] + ["gone/a.md", "gone/b.md"]
    for minor in range(24):
        folder = "v1.4.x" if minor == 4 else f"v1.{minor}"
        for path in chance.sample(older, 11):
            pages[f"{folder}/{path}"] = page(chance) if chance.random() < 0.3 else pages.get(path) or page(chance)
    return pages


def few_pages_in_many_versions() -> dict[str, str]:
    """All versions together have many pages, each version has few, and the oldest three. These match the word "wick" a
    little worse than the other pages."""
    chance = random.Random(6)
    pages = {
        f"v1.{minor}/page{number}.md": f"# {text(chance, 1)}\n\n{text(chance, 12)}{' wick' if number > 2 else ''}.\n"
        for minor in range(25)
        for number in range(30)
        if chance.random() < 0.7
    }
    oldest = {f"v0.9/page{number}.md": f"# {text(chance, 1)}\n\n{text(chance, 13)} wick.\n" for number in range(3)}
    return {**pages, **oldest}


def two_components() -> dict[str, str]:
    """Components with other versions: the newest of one is not that of the other."""
    chance = random.Random(8)
    versions = {"one": ("1.3", "1.7", "1.12"), "two": ("1.3", "1.9")}
    pages = {"index.md": page(chance), "releases/a.md": page(chance)}
    for component, names in versions.items():
        for number in range(8):
            folders = [f"{component}/versioned_docs/version-{name}" for name in names] + [f"{component}/docs"]
            for folder in chance.sample(folders, 3):
                pages[f"{folder}/page{number}.md"] = page(chance)
    return pages


def translations() -> dict[str, str]:
    """A documentation in three languages, with a page that one of them lacks."""
    chance = random.Random(7)
    pages = {f"guide/page{number}.md": page(chance) for number in range(30)}
    for language in ("de", "pt-BR"):
        for path in list(pages)[:29]:
            if path.startswith("guide"):
                pages[f"{language}/{path}"] = pages[path] if chance.random() < 0.5 else page(chance)
    return pages


@pytest.mark.parametrize(
    "pages",
    [twenty_five_versions, few_pages_in_many_versions, two_components, translations],
    ids=lambda each: each.__name__,
)
def test_results_are_those_of_a_search_by_words(
    pages: Callable[[], dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "MAX_POSTINGS", 1000)
    monkeypatch.setitem(RULES, "MAX_POSTINGS", 1000)
    asked = [*QUESTIONS, *NAMED]
    with anvil.open(write(tmp_path / "docs", pages()), tmp_path / "site/anvil/index.db", "none") as opened:
        opened.index()
        expected = by_words(opened, asked)
        published = publish(opened.index_path, tmp_path / "site", {})
        answers = in_node(published, opened.index_path, asked)
    assert_same(asked, answers, expected)
    assert all(answers[:5])
