"""What Milvus names is scored as in a file: the same results, whoever named them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ConfigError
from anvil.index_file import verify
from anvil.milvus import export
from anvil.milvus.milvus_index import MilvusCollection, MilvusIndex
from anvil.milvus.milvus_reader import LayeredReader, Overlay
from anvil.requests import SearchRequest
from anvil.results import Mode
from anvil.search.candidates import FileIndex
from anvil.search.ranking import MAX_WHOLE
from anvil.search.searcher import RankedHits, Searcher
from anvil.settings.schema import SearchOptions
from tests.support.milvus import Words, built, hasty, pages, questions  # noqa: F401

pytestmark = pytest.mark.usefixtures("hasty")
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
EXTRA = {
    'it\'s "50%" or document > 0.md': "# Quotes\n\nA page whose name is an expression: wombat_burrow.\n",
    "a\\b.md": "# Backslash\n\nAnother page, of numbats and the wombat.\n",
    "中文/文档.md": "# 配置\n\n服务器的配置文件在这里。\n",
    "guides/old.md": "---\ndeprecated: true\n---\n# Old\n\nHow a wombat_burrow was dug.\n",
    "guides/older.md": "# Older\n\n> **Deprecated**\n\nHow it was dug before.\n",
}
PAGES = pages(76)  # 536 chunks: more than Milvus gives at once (500)
EXTRA["guides/overview.md"] = "# Overview\n\n" + "\n".join(
    f"- [the {['lighthouse', 'harbour'][number % 2]} of {number}](../{path})"
    for number, path in enumerate(sorted(PAGES))
)
QUESTIONS = [
    "lighthouse of 7",
    "harbour",
    "wombat_burrow",
    "another page of numbats",
    "配置文件",
    '"whose name is an expression"',
    *questions(PAGES, 4),
]


@dataclass
class Both:
    """One index as a file and in Milvus."""

    file: Searcher
    there: Searcher

    def ask(self, query: str, mode: Mode = "hybrid", top_k: int = 5, **more: Any) -> tuple[RankedHits, RankedHits]:
        request = SearchRequest(query, top_k, mode=mode, **{"max_chars": 12_000, **more})
        return self.file.search(request), self.there.search(request)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    index = built(folder, {**PAGES, **EXTRA})
    remote = MilvusCollection("milvus+lite:lite.db/docs", folder)
    export.export(index, remote.client, grace=0)
    with verify.open_checked(index) as reader:
        exported = remote.reader()
        there = Searcher(MilvusIndex(LayeredReader(exported, Overlay(exported).reader, frozenset())), Words())
        made = Both(Searcher(FileIndex(reader), Words()), there)
        assert made.file.index.count() > MAX_WHOLE  # else all are candidates, whoever names them
        yield made
    remote.close()


def rows(found: RankedHits) -> list[int]:
    return [each.row for each in found.ranked]


def same(there: RankedHits, file: RankedHits) -> bool:
    """The same places and texts in the same order. Scores differ by little: the mean nearness of a question to all
    chunks is an estimate."""
    close = all(abs(one.score - other.score) < 0.01 for one, other in zip(there.hits, file.hits, strict=True))
    return (
        close
        and rows(there) == rows(file)
        and [replace(hit, score=0) for hit in there.hits] == [replace(hit, score=0) for hit in file.hits]
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_results_are_those_of_the_file(both: Both, mode: Mode) -> None:
    assert both.there.index.links
    other = []
    for query in QUESTIONS:
        file, there = both.ask(query, mode)
        assert (there.total_chunks, there.notes) == (file.total_chunks, file.notes)
        assert rows(there)[:1] == rows(file)[:1], query
        if not same(there, file):
            other.append(query)
    assert len(other) <= 0.05 * len(QUESTIONS), other


def test_pages_that_say_that_they_are_deprecated_lose_as_much_as_in_a_file(both: Both) -> None:
    assert both.there.index.page_factors == both.file.index.page_factors
    assert sorted(both.there.index.page_factors.usual.values()) == [0.7, 0.7]


@pytest.mark.parametrize(
    "glob",
    [
        "guides/**",
        "*.md",
        "reference/page-*",
        "it's*",
        "a\\\\b.md",
        "中文/*",
        "nowhere/**",
        "**",
        "' or 1 == 1 or '",
        '"] or id > 0 or document in ["',
        "%",
    ],
)
def test_a_filter_narrows_what_is_named_and_is_never_syntax(both: Both, glob: str) -> None:
    """By words and by vectors: a hybrid search asks for both."""
    file, there = both.ask(f"wombat_burrow expression {QUESTIONS[7]}", file_filter=glob)
    assert same(there, file) and there.total_chunks == file.total_chunks


def test_budget_threshold_and_number_are_kept(both: Both) -> None:
    for top_k in (1, 20, 99):
        file, there = both.ask(QUESTIONS[9], top_k=top_k, max_chars=900)
        assert len(rows(there)) == len(rows(file)) and rows(there)[:5] == rows(file)[:5]
        assert sum(len(hit.content) for hit in there.hits) <= 1000 + 50 * top_k
    file, there = both.ask(QUESTIONS[9], options=SearchOptions(threshold=0.4))
    assert rows(there) == rows(file) != []
    file, there = both.ask(QUESTIONS[9], paths=["a\\b.md", *sorted(PAGES)[:3]])
    assert rows(there) == rows(file) != []


def test_what_is_refused_of_a_file_is_refused_here(both: Both) -> None:
    for query, mode in ((" ", "hybrid"), ("x", "exact")):
        with pytest.raises(ConfigError):
            both.there.search(SearchRequest(query, 5, None, 12_000, mode))  # type: ignore[arg-type]


def test_a_bounded_number_of_questions_and_rows(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read whole: what a question costs does not grow with the index. The first one also reads what is kept
    for all others."""
    both.ask(QUESTIONS[0])
    layered = both.there.index.reader
    assert isinstance(layered, LayeredReader)
    client, rows = layered.below.client, 0
    asked: list[str] = []
    ask = client.ask

    def counting(name: str, *args: Any, **more: Any) -> Any:
        nonlocal rows
        found = ask(name, *args, **more)
        asked.append(name)
        rows += len(found[0]) if name == "search" else len(found)
        return found

    monkeypatch.setattr(client, "ask", counting)
    both.there.search(SearchRequest(f"{QUESTIONS[9]} unheard-of", 5, None, 12_000, "hybrid"))
    assert set(asked) <= {"search", "query"} and len(asked) <= 14 and rows < 1500


def test_another_model_searches_by_words_and_says_so(both: Both, local: EmbeddingProvider) -> None:
    other = Searcher(both.there.index, local)
    found = other.search(SearchRequest(QUESTIONS[8], 5, None, 12_000, "hybrid"))
    assert other.obstacle is not None and "Semantic search is off" in other.obstacle and found.hits
    with pytest.raises(ConfigError, match="hashed-words"):
        other.search(SearchRequest("lantern", 5, None, 12_000, "semantic"))


def test_without_vectors_words_are_all(tmp_path: Path, keywords: EmbeddingProvider) -> None:
    asked = questions(pages(12), 1)[0]
    index = built(tmp_path, pages(12), keywords)
    remote = MilvusCollection("milvus+lite:lite.db/docs", tmp_path)
    export.export(index, remote.client, grace=0)
    with verify.open_checked(index) as reader:
        file = Searcher(FileIndex(reader), keywords).search(SearchRequest(asked, 5, None, 12_000, "hybrid"))
        exported = remote.reader()
        there = Searcher(MilvusIndex(LayeredReader(exported, Overlay(exported).reader, frozenset())), keywords)
        assert there.search(SearchRequest(asked, 5, None, 12_000, "hybrid")) == file and file.hits
    remote.close()
