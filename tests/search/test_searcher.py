"""Search: what a question finds, in which order, within which budget; and that no question breaks it."""

from __future__ import annotations

import itertools
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.passages import HeadedText, PassageScorer
from anvil.embedding.provider import EmbeddingProvider, Vector
from anvil.errors import ConfigError, ModelError
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.requests import SearchRequest
from anvil.results import Hit, Mode
from anvil.search import confidence, ranking, result_texts
from anvil.search.candidates import FileIndex
from anvil.search.confidence import UNLIKELY
from anvil.search.query_preparation import embed_query
from anvil.search.ranking import ScoreParts
from anvil.search.result_texts import SectionSpan
from anvil.search.searcher import RankedHits, Result, Searcher, best_first
from anvil.settings.schema import ChunkingOptions, SearchOptions
from tests.build.test_builder import Counting
from tests.conftest import PAGES, write

if TYPE_CHECKING:
    from numpy.typing import NDArray

Opener = Callable[..., Searcher]
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Builds an index of pages with a provider and opens it with another, if said."""
    with ExitStack() as stack:

        def make(
            pages: dict[str, str], provider: EmbeddingProvider, asking: EmbeddingProvider | None = None
        ) -> Searcher:
            (tmp_path / "docs").mkdir(exist_ok=True)
            build(WorkingTree(write(tmp_path / "docs", pages)), tmp_path / "i.db", provider, ChunkingOptions())
            reader = verify.open_checked(tmp_path / "i.db")
            stack.callback(reader.close)
            return Searcher(FileIndex(reader), asking or provider)

        yield make


@pytest.fixture(scope="module")
def lighthouse(tmp_path_factory: pytest.TempPathFactory, local: EmbeddingProvider) -> Iterator[Searcher]:
    """The four pages, with vectors; opened once for all questions that change nothing."""
    folder = tmp_path_factory.mktemp("lighthouse")
    build(WorkingTree(write(folder / "docs", PAGES)), folder / "i.db", local, ChunkingOptions())
    with verify.open_checked(folder / "i.db") as reader:
        yield Searcher(FileIndex(reader), local)


def ask(
    searcher: Searcher,
    query: str,
    top_k: int = 5,
    file_filter: str | None = None,
    max_chars: int | None = None,
    mode: Mode = "hybrid",
    threshold: float = 0.0,
) -> RankedHits:
    options = SearchOptions(threshold=threshold)
    return searcher.search(SearchRequest(query, top_k, file_filter, max_chars, mode, options=options))


def places(found: RankedHits) -> list[str]:
    return [f"{hit.metadata.file_path}#{hit.metadata.heading_path}" for hit in found.hits]


def paths(found: RankedHits) -> list[str]:
    return [hit.metadata.file_path for hit in found.hits]


def parts_of(found: RankedHits) -> list[ScoreParts]:
    return [each.parts for each in found.ranked]


# --- what a score is made of ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_parts_of_a_score_are_its_sum(lighthouse: Searcher, mode: Mode) -> None:
    found = ask(lighthouse, "who is told when a check fails?", top_k=20, mode=mode)
    assert len(found.ranked) > 3
    for each in found.ranked:
        parts = each.parts
        assert sum(astuple(parts)) == pytest.approx(each.hit.score, abs=3e-6)
        assert mode == "semantic" or min(astuple(parts)) >= 0
        assert mode == "hybrid" or (parts.vectors == 0) == (mode == "keyword")
        assert mode != "semantic" or (parts.words, parts.heading, parts.links, parts.page) == (0, 0, 0, 0)
    if mode == "hybrid":
        assert any(parts.page for parts in parts_of(found)) and any(parts.heading for parts in parts_of(found))


# --- passages that are read again ----------------------------------------------------------------------


def test_passages_are_read_again_in_hybrid_mode_alone(lighthouse: Searcher) -> None:
    query = "who is told when a check fails?"
    for mode in MODES:
        parts = parts_of(ask(lighthouse, query, mode=mode))
        assert any(each.passage > 0 for each in parts) == (mode == "hybrid")
    without = lighthouse.search(SearchRequest(query, read_passages=False))
    assert not any(each.passage for each in parts_of(without))


def test_at_most_10_passages_are_read(opened: Opener, local: EmbeddingProvider) -> None:
    read: list[int] = []

    class Scorer:
        def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
            read.append(len(passages))
            return np.arange(len(passages), dtype=np.float64)

    provider = Counting(local)
    provider.passages = cast("PassageScorer", Scorer())
    pages = {f"{number}.md": f"# Lamp {number}\n\nHow the lamp {number} is cleaned.\n" for number in range(40)}
    found = ask(opened(pages, local, provider), "clean the lamp", 20)
    assert read == [10]
    best = found.ranked[0].parts
    assert best.passage == max(
        parts.passage for parts in parts_of(found)
    )  # the last that was read has the highest score
    assert sum(parts.passage > 0 for parts in parts_of(found)) == 9  # the lowest counts as 0


def test_a_passage_that_stands_out_keeps_the_other_pages_among_the_five(
    opened: Opener, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scorer:
        def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
            return np.array([1.0, *[0.0] * (len(passages) - 1)])

    provider = Counting(local)
    provider.passages = cast("PassageScorer", Scorer())
    sections = "".join(f"\n## Clean the lamp {number}\n\nHow to clean the lamp {number}.\n" for number in range(6))
    pages = {
        f"{number}.md": f"# Tower {number}\n\nThe keeper cleans a lamp and winds a clock.\n" for number in range(5)
    }
    pages["lamps.md"] = f"# Lamps\n{sections}"
    monkeypatch.setattr(ranking, "PASSAGE_WEIGHT", 5.0)  # the best has more than 1 / 0.35 of the score of all others
    found = ask(opened(pages, local, provider), "clean the lamp", 5)
    assert found.ranked[0].parts.passage > 0.8
    assert len({hit.metadata.file_path for hit in found.hits}) == 5


def test_a_scorer_that_fails_is_a_note_and_the_results_stay(opened: Opener, local: EmbeddingProvider) -> None:
    class Damaged:
        def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
            raise ModelError("passages.onnx cannot be loaded.")

    provider = Counting(local)
    provider.passages = cast("PassageScorer", Damaged())
    searcher = opened(PAGES, local, provider)
    found = ask(searcher, "silence at night")
    assert found.notes == ("No passage was read again: passages.onnx cannot be loaded.",)
    without = searcher.search(SearchRequest("silence at night", read_passages=False))
    assert found.hits == without.hits


# --- links ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_of_two_equal_pages_the_one_that_others_call_what_the_question_says_comes_first(
    opened: Opener, local: EmbeddingProvider, mode: Mode
) -> None:
    same = "The environment of a branch is made anew for each change, and removed with it"
    pages = {
        "a.md": f"# Branches\n\n{same}.\n",
        "b.md": f"# Branches\n\n{same}!\n",
        "start.md": "# Start\n\nFirst read about [preview environments][p].\n\n[p]: b.md\n",
        "more.md": "# More\n\nTo see a change before it is merged, use [preview environments](./b.md#branches).\n",
    }
    found = ask(opened(pages, local), "environment to preview a branch", top_k=20, mode=mode)
    places = paths(found)
    assert places.index("b.md") < places.index("a.md")
    named, other = parts_of(found)[places.index("b.md")], parts_of(found)[places.index("a.md")]
    assert named.links > other.links == 0 and named.words == pytest.approx(other.words, abs=2e-6)  # six digits


def test_words_that_no_page_has_find_nothing_among_pages_with_links(opened: Opener, local: EmbeddingProvider) -> None:
    searcher = opened({"a.md": "# A\n\nSee [the other](b.md).\n", "b.md": "# B\n\nText.\n"}, local)
    assert searcher.index.links and not ask(searcher, "zygomorphic", mode="keyword").hits


# --- what is found -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("what happens to alerts at night", "guides/alerts.md#Alerts > Silence at night"),
        ("who is next on call when nobody acknowledges", "guides/alerts.md#Alerts > Escalation"),
        ("install on Windows as a service", "install.md#Install > Windows"),
        ("when is a TLS certificate about to expire", "guides/checks.md#Checks > Certificates"),
        ("free space on a volume", "guides/checks.md#Checks > Disk space"),
    ],
)
def test_a_question_that_fits_one_section_finds_it_first(
    lighthouse: Searcher, mode: Mode, query: str, best: str
) -> None:
    assert places(ask(lighthouse, query, mode=mode))[0] == best


def test_overlapping_subjects_come_in_the_expected_order(lighthouse: Searcher) -> None:
    found = places(ask(lighthouse, "alert messages by e-mail"))
    assert found[0] == "guides/alerts.md#Alerts > E-mail"
    assert {place.split("#")[0] for place in found[:3]} == {"guides/alerts.md"}, "no other page matches half as well"


MANY = {
    f"{name}.md": "# Guide {name}\n\n".replace("{name}", name)
    + "".join(
        f"## {part} of {name}\n\nRotate the {name} lantern {part}.\n\n" + "Words to fill. " * 200 + "\n\n"
        for part in ("By day", "By night")
    )
    for name in ("harbour", "lighthouse", "lightship")
}


def test_results_are_of_different_pages_and_name_the_further_sections(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    searcher = opened(MANY, keywords)
    found = ask(searcher, "rotate the lantern", 3).hits
    assert len({hit.metadata.file_path for hit in found}) == 3
    assert all(len(hit.also or ()) == 1 for hit in found)
    for hit in found:
        (further,) = hit.also or ()
        assert "lantern" in further.content and further.heading_path != hit.metadata.heading_path
        assert (further.start_line, further.end_line) in ((3, 8), (9, 14))
    more = ask(searcher, "rotate the lantern", 6).hits
    assert [hit.score for hit in more] == sorted((hit.score for hit in more), reverse=True)
    assert all(hit.also is None for hit in more), "all sections are results of their own"


def test_a_heading_alone_is_no_further_section(lighthouse: Searcher) -> None:
    hit = replace(ask(lighthouse, "alert messages by e-mail", 1).hits[0], also=None)

    def named(text: str) -> list[str]:
        other = replace(hit, content=text, metadata=replace(hit.metadata, heading_path="Alerts > Other"))
        further = [(other, SectionSpan(0, len(text), 1, True))]
        own = [(hit, SectionSpan(0, len(hit.content), 1, True))]
        ((first, _),) = result_texts.within_budget(own, further, "alert", 1000)
        return [place.heading_path for place in first.also or ()]

    assert named("## Other\n\nAn alert.\n") == ["Alerts > Other"] and named("## Other\n\n") == []


def test_of_a_further_section_that_is_not_near_only_the_name_is_shown_and_the_result_has_its_text(
    lighthouse: Searcher,
) -> None:
    text = "## A section\n\n" + "An alert is sent to the keeper. " * 20
    hit = replace(ask(lighthouse, "alert messages by e-mail", 1).hits[0], also=None, content=text, score=1.0)

    def shown(score: float) -> tuple[int, int]:
        other = replace(hit, score=score, metadata=replace(hit.metadata, heading_path="Alerts > Other"))
        spans = [(each, SectionSpan(0, len(text), 1, True)) for each in (hit, other)]
        ((first, _),) = result_texts.within_budget(spans[:1], spans[1:], "alert", 800)
        (place,) = first.also or ()
        assert place.heading_path == "Alerts > Other" and len(first.content) + len(place.content) <= 800
        return len(first.content), len(place.content)

    assert len(text) == 654 and shown(0.85) == (654, 0)
    own, further = shown(0.97)
    assert 300 < further < own < 500, "one that is near shares the text"


def test_a_section_that_is_whole_with_what_others_leave_is_not_cut(lighthouse: Searcher) -> None:
    def entry(text: str, name: str) -> tuple[Hit, SectionSpan]:
        hit = ask(lighthouse, "alert messages by e-mail", 1).hits[0]
        named = replace(hit.metadata, file_path=f"{name}.md", heading_path=name)
        return replace(hit, also=None, content=text, score=1.0, metadata=named), SectionSpan(0, len(text), 1, True)

    one = entry("An alert is sent. " * 15 + "\n\n" + "It is read at once.\n" * 2, "One")
    other = entry("An alert is kept. " * 15 + "\n\n" + "A keeper has seen it. " * 20, "Other")
    (first, _), (second, _) = result_texts.within_budget([one, other], [], "alert", 620)
    assert first.content == one[0].content and not first.truncated, "312 characters, of which an equal share has 310"
    assert second.truncated and len(first.content) + len(second.content) <= 620


def test_a_record_ranks_below_a_page_on_the_subject_unless_it_is_asked_for(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    pages = {
        "changelog.md": "# Guide\n\nLantern rotation, lantern rotation, and a release.\n",  # the better match
        "guide.md": "# Guide\n\nLantern rotation, and a few words on it.\n",
    }
    searcher = opened(pages, keywords)
    assert paths(ask(searcher, "lantern rotation"))[:1] == ["guide.md"]
    assert paths(ask(searcher, "lantern rotation release"))[:1] == ["changelog.md"]


def test_a_long_changelog_titled_with_the_name_of_a_package_leaves_room_for_other_pages(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    """Changesets writes such a changelog: the name of the package counts in each of its hundreds of sections."""
    changes = "".join(f"\n## 1.0.{number}\n\n{f'Fixed number {number} of the beam. ' * 8}\n" for number in range(450))
    pages = {
        "packages/lantern/CHANGELOG.md": f"# @lamps/lantern\n{changes}",
        "packages/lantern/README.md": "# The lantern\n\nInstall @lamps/lantern to turn the light.\n",
        "guide.md": "# Keepers\n\nA keeper cleans the lantern.\n",
    }
    searcher = opened(pages, keywords)
    found = paths(ask(searcher, "lantern"))
    assert found[0] == "packages/lantern/README.md" and set(found) == set(pages)
    assert paths(ask(searcher, "lantern changelog"))[0] == "packages/lantern/CHANGELOG.md"


def test_a_hit_says_where_it_stands(lighthouse: Searcher) -> None:
    hit = ask(lighthouse, "silence at night").hits[0]
    lines = PAGES["guides/alerts.md"].splitlines(keepends=True)
    place = hit.metadata
    assert place.start_line is not None and place.end_line is not None
    assert hit.content == "".join(lines[place.start_line - 1 : place.end_line]) and not hit.truncated
    assert (place.heading_level, place.char_count, place.url) == (2, len(hit.content), None)


@pytest.mark.parametrize("mode", MODES)
def test_a_paragraph_is_a_question_too(lighthouse: Searcher, mode: Mode) -> None:
    paragraph = PAGES["guides/checks.md"].split("## Disk space\n\n")[1]
    assert places(ask(lighthouse, paragraph, mode=mode))[0] == "guides/checks.md#Checks > Disk space"
    assert places(ask(lighthouse, " ".join([paragraph] * 40), mode=mode))[0] == "guides/checks.md#Checks > Disk space"


# --- identifiers, phrases, letters ---------------------------------------------------------------------

IDENTIFIERS = {
    "dec54.md": "# One\n\nThe decision DEC-0054 is about two weeks of warning before the end.\n",
    "dec55.md": "# Two\n\nThe decision DEC-0055 came next; it is about other weeks and has 54 pages.\n",
    "snake.md": "# Three\n\nThe function snake_case_name takes a name and gives it back.\n",
    "parted.md": "# Four\n\nA snake in a case has a name; names of snakes are long.\n",
    "flag.md": "# Five\n\nGive --flag-name on the command line when the default does not do.\n",
    "unflag.md": "# Six\n\nA flag has a colour, and its name is a word of one syllable.\n",
    "dotted.md": "# Seven\n\nSet a.b.c to true; the others follow.\n",
    "undotted.md": "# Eight\n\nThe letters c, b and a stand here in another order: c b a.\n",
    "camel.md": "# Nine\n\nCall optimizeDeps before the first request is served.\n",
    "filler.md": "# Ten\n\nNothing of the sort is told here, only that there is a page.\n",
}


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("DEC-0054", "dec54.md"),
        ("dec-0054", "dec54.md"),
        ("what does DEC-0054 decide?", "dec54.md"),
        ("snake_case_name", "snake.md"),
        ("`snake_case_name()`", "snake.md"),
        ("--flag-name", "flag.md"),
        ("what is --flag-name for", "flag.md"),
        ("a.b.c", "dotted.md"),
        ("optimizeDeps", "camel.md"),
        ("optimizedeps", "camel.md"),
        ("deps", "camel.md"),
        ("optimize", "camel.md"),
        ('"default does not do"', "flag.md"),
        ('"c b a"', "undotted.md"),
    ],
)
def test_identifiers_and_phrases(
    opened: Opener, local: EmbeddingProvider, keywords: EmbeddingProvider, mode: Mode, query: str, best: str
) -> None:
    searcher = opened(IDENTIFIERS, local if mode == "hybrid" else keywords)
    assert paths(ask(searcher, query, mode=mode))[0] == best


def test_a_name_finds_the_chunks_that_have_it_and_a_title_its_page(opened: Opener, keywords: EmbeddingProvider) -> None:
    """Among a thousand similar pages, of which many have all parts of the name in their headings."""
    kinds = ("user", "guild", "role", "channel")
    pages = {
        f"{kind}/{number}.md": f"# Application {kind} {number}\n\n## {kind} premium subscription\n\n"
        f"The guild application has a premium {kind} subscription number {number}.\n"
        for kind in kinds
        for number in range(300)
    }
    filler = "| {} | a kind of message that a client shows in its list |\n"
    rows = "".join(filler.format(f"KIND_{number}") for number in range(40))
    pages["types.md"] = f"# Types\n\n| type | text |\n|---|---|\n{rows}{filler.format('GUILD_APPLICATION_PREMIUM')}"
    pages["drop.md"] = "# DropGuildRole\n\nIt takes the role away.\n"
    searcher = opened(pages, keywords)
    assert paths(ask(searcher, "GUILD_APPLICATION_PREMIUM"))[0] == "types.md"
    assert paths(ask(searcher, "guild-application-premium"))[0] == "types.md"
    for query in ("drop guild role", "drop_guild_role", "DropGuildRole"):
        assert paths(ask(searcher, query))[0] == "drop.md"
        assert paths(ask(searcher, query, file_filter="role/*"))[0].startswith("role/")


def test_words_that_many_chunks_have_choose_the_candidates_too(opened: Opener, keywords: EmbeddingProvider) -> None:
    """Each of three words is in hundreds of chunks, and all of them are in one page."""
    pages = {f"{i}.md": f"# Page {i}\n\nIt can {('export', 'boot', 'image')[i % 3]} files.\n" for i in range(1500)}
    pages["right.md"] = "# Tools\n\nSome text about other things, and how they export a boot image to a disk.\n" * 3
    assert paths(ask(opened(pages, keywords), "export boot image"))[0] == "right.md"


LETTERS = {
    "cjk.md": "# 検索\n\n全文検索エンジンは文書を索引に登録します。\n",
    "korean.md": "# 한국어\n\n문서를 색인하고 검색하는 방법을 설명합니다.\n",
    "german.md": "# Übersicht\n\nDie Änderungen werden über Nacht geprüft.\n",
    "greek.md": "# Αναζήτηση\n\nΤο έγγραφο περιγράφει την ενημέρωση του ευρετηρίου.\n",  # noqa: RUF001
    "russian.md": "# Настройка приложений\n\nИзменения сохраняются в базе данных.\n",  # noqa: RUF001
    "plain.md": "# Plain\n\nNothing but plain letters.\n",
}


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("検索", "cjk.md"),
        ("索引に登録", "cjk.md"),
        ("索", "cjk.md"),
        ("エンジン", "cjk.md"),
        ("검색하는", "korean.md"),
        ("Änderungen", "german.md"),
        ("anderungen", "german.md"),
        (unicodedata.normalize("NFD", "geprüft"), "german.md"),
        ("ΕΥΡΕΤΗΡΊΟΥ", "greek.md"),
        ("ενημερώσεις", "greek.md"),
        ("приложение", "russian.md"),
        ("сохранить изменённое", "russian.md"),
    ],
)
def test_letters_of_the_world_in_keyword_mode(
    opened: Opener, keywords: EmbeddingProvider, query: str, best: str
) -> None:
    assert paths(ask(opened(LETTERS, keywords), query, mode="keyword"))[:1] == [best]


FOREIGN = {
    "cache.md": "# 缓存\n\n把经常读取的结果保存在内存中以便更快地返回。\n",
    "deploy.md": "# 部署\n\n用多个进程运行服务器利用所有处理器核心。\n",
    "login.md": "# 登录\n\n用户用密码登录后得到一个令牌。\n",
    "plain.md": "# Plain\n\nKeep results in memory, and start several processes.\n",
}


@pytest.mark.parametrize("query", ["如何用多个进程运行", "запуск нескольких процессов 进程", "Docker 多个进程"])
def test_words_alone_decide_for_a_question_in_a_script_that_the_model_does_not_read(
    opened: Opener, local: EmbeddingProvider, query: str
) -> None:
    searcher = opened(FOREIGN, local)
    by_words, found = ask(searcher, query, mode="keyword"), ask(searcher, query)
    assert paths(found) == paths(by_words) == ["deploy.md"]
    assert [hit.confidence for hit in found.hits] == [hit.confidence for hit in by_words.hits]
    assert any("reads Latin script only: words alone decided." in note for note in found.notes)
    by_vectors = ask(searcher, query, mode="semantic")
    assert len(by_vectors.hits) == 4, "who asks for vectors gets them"
    assert all(each.evidence.cosine is None for each in by_vectors.ranked), "as evidence they say nothing"
    assert any("its vectors say little" in note for note in by_vectors.notes)


@pytest.mark.parametrize(
    "query", ["several processes", "Prozesse für Server in größerer Zahl", "what does 进程 mean here"]
)
def test_vectors_count_for_a_question_in_a_script_that_the_model_reads(
    opened: Opener, local: EmbeddingProvider, query: str
) -> None:
    found = ask(opened(FOREIGN, local), query)
    assert all(each.evidence.cosine is not None for each in found.ranked) and len(found.hits) == 4
    assert not any("script" in note for note in found.notes)


@pytest.mark.parametrize(("query", "looks"), [("several processes", 0), ("größere Zahl", 1)])
def test_a_question_in_plain_letters_does_not_wait_for_a_look_at_the_vocabulary(
    local: EmbeddingProvider, query: str, looks: int
) -> None:
    class Watched(Counting):
        looked = 0

        @property
        def scripts(self) -> frozenset[str] | None:
            self.looked += 1
            return self.inner.scripts

        @scripts.setter
        def scripts(self, value: object) -> None:
            """What the base class keeps is not looked at here."""

    watched = Watched(local)
    assert not embed_query(query, watched).unread
    assert watched.looked == looks


def test_a_right_page_in_chinese_is_not_called_unlikely(opened: Opener, local: EmbeddingProvider) -> None:
    searcher = opened(FOREIGN, local)
    assert (ask(searcher, "多个进程运行服务器").hits[0].confidence or 0) > 0.5
    assert (ask(searcher, "怎样用全麦面粉烤面包").hits or [None])[0] is None


def test_a_text_whose_letters_are_written_apart_is_found_by_either_spelling(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    searcher = opened({"apart.md": unicodedata.normalize("NFD", "# Prüfung\n\nDie Änderung.\n")}, keywords)
    for query in ("Änderung", unicodedata.normalize("NFD", "Änderung")):
        assert paths(ask(searcher, query, mode="keyword")) == ["apart.md"]


def test_a_name_between_chinese_characters_is_found_in_the_text_and_in_a_title(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    files = {"a.md": "# 简介\n\n使用Vitest创建应用程序。\n", "b.md": "---\ntitle: 部署到VercelCloud上\n---\n正文。\n"}
    searcher = opened(files, keywords)
    for question, page in (("vitest", "a.md"), ("vercel", "b.md"), ("部署", "b.md")):
        assert paths(ask(searcher, question, mode="keyword")) == [page]


@pytest.mark.parametrize("title", ["إظهار أيام الأسبوع", "注册周期钩子"])
def test_the_section_of_a_title_goes_before_a_short_text_above_it(
    opened: Opener, keywords: EmbeddingProvider, title: str
) -> None:
    files = {"a.md": f"5\n\n---\n\n# {title}\n\n" + "Many other words. " * 5, "b.md": "# Other\n\nText.\n"}
    first = ask(opened(files, keywords), title, mode="keyword").hits[0]
    assert first.metadata.heading_path == title


# --- no question breaks it -----------------------------------------------------------------------------

SYNTAX = r"""
" "" "unbalanced AND OR(NOT NEAR(a,b) {title}:x ^x x* * - -- -x + \ '; % _ () [] <b> . ... // a//b ? ! : 1e9 0x00
""".split()  # noqa: SIM905 - a row of signs reads better than a list of quotes
SYNTAX += [
    "a AND (b",
    "NEAR(a b, 3)",
    "title: x",
    "'; DROP TABLE chunks; --",
    "\0",
    "a\0b",
    "\ufeff",
    "e\u0301",
    "\u202e",
    "\x1b[31m",
    "a\u2028b",
    "\u017f",
    "\ufb01",
    "\uff1f\uff01",
    "\U0001f98a",
]


@pytest.mark.parametrize("query", SYNTAX, ids=[f"{i}" for i in range(len(SYNTAX))])
def test_what_is_syntax_elsewhere_is_text_here(lighthouse: Searcher, query: str) -> None:
    for mode in MODES:
        found = ask(lighthouse, query, mode=mode)
        assert found.total_chunks == lighthouse.index.count()


@settings(max_examples=80, deadline=None)
@given(st.text(min_size=1, max_size=200).filter(str.strip))
@example("\ud800")
@example("a\udfffb.c")
def test_no_text_breaks_a_keyword_search(lighthouse: Searcher, query: str) -> None:
    found = ask(lighthouse, query, mode="keyword")
    scores = [hit.score for hit in found.hits]
    assert max(scores, default=0.0) in scores[:1] or not scores
    assert all(0 <= score <= 1 for score in scores)
    assert found == ask(lighthouse, query, mode="keyword")


@pytest.mark.parametrize("query", ["\ud800", "index \udcff alerts"])
def test_text_that_is_not_unicode_breaks_no_search(lighthouse: Searcher, query: str) -> None:
    for mode in MODES:
        ask(lighthouse, query, mode=mode)


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\u3000"])
def test_a_blank_question_is_an_error(lighthouse: Searcher, query: str) -> None:
    for mode in MODES:
        with pytest.raises(ConfigError) as error:
            ask(lighthouse, query, mode=mode)
        assert str(error.value) == "query parameter is required"


def test_an_unknown_mode_lists_the_known_ones(lighthouse: Searcher) -> None:
    with pytest.raises(ConfigError, match=r"'fuzzy'. Use hybrid, semantic or keyword"):
        ask(lighthouse, "x", mode="fuzzy")  # type: ignore[arg-type]


LONG = {
    "words": "silence at night " * 15_000,
    "numbers": " ".join(map(str, range(40_000))),
    "one word": "a" * 250_000,
    "identifiers": "a_" + ".b a_".join(map(str, range(22_000))) + ".b",
    "quotes": '"a b" ' * 42_000,
    "CJK": "全文検索" * 20_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_a_question_of_250_kilobytes_is_answered_in_a_moment(lighthouse: Searcher, kind: str) -> None:
    started = time.process_time()
    found = ask(lighthouse, LONG[kind])  # by words and by meaning
    assert time.process_time() - started < 2
    if kind == "words":
        assert places(found)[0] == "guides/alerts.md#Alerts > Silence at night"


def test_a_long_question_to_a_large_index(opened: Opener, keywords: EmbeddingProvider) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\n" + " ".join(f"word{i}x{j}" for j in range(20)) + "\n" for i in range(500)}
    query = " ".join(f"word{i}x{j}" for i in range(499, 200, -1) for j in range(20))
    found = ask(opened(pages, keywords), query, 20, mode="keyword")
    assert len(found.hits) == 20 and found.total_chunks == 500


# --- how many, and of which pages ----------------------------------------------------------------------


def test_top_k_is_clamped(opened: Opener, local: EmbeddingProvider) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\nThe same lighthouse in other words, number {i}.\n" for i in range(25)}
    searcher = opened(pages, local)
    for top_k, count in [(-5, 1), (0, 1), (1, 1), (3, 3), (20, 20), (21, 20), (10**9, 20)]:
        for mode in MODES:
            assert len(ask(searcher, "lighthouse", top_k, mode=mode).hits) == count, (top_k, mode)


@pytest.mark.parametrize("count", [30, 450])
def test_a_filter_acts_before_ranking(
    opened: Opener, local: EmbeddingProvider, keywords: EmbeddingProvider, count: int
) -> None:
    """However well other pages fit: as many as are asked for come back whenever they exist."""
    many = {
        f"loud/{i}.md": "# Index freshness\n\nKeep the index fresh, fresh index, freshness.\n" for i in range(count)
    }
    few = {
        f"quiet/{i}.md": f"# Note {i}\n\nAmong much else about page {i}, an index is named once.\n" for i in range(6)
    }
    searcher = opened({**many, **few}, local if count < 100 else keywords)
    modes: Sequence[Mode] = MODES if count < 100 else ("hybrid", "keyword")
    for mode in modes:
        for query in ("index", "how do I keep the index fresh?"):
            found = ask(searcher, query, 5, "quiet/*", mode=mode)
            assert len(found.hits) == 5 and all(path.startswith("quiet/") for path in paths(found))
            assert found.total_chunks == 6
        assert ask(searcher, "index", 5, "loud/3.md", mode=mode).total_chunks == 1
        assert ask(searcher, "index", 20, "**/*", mode=mode).total_chunks == count + 6


def test_a_rare_word_does_not_cost_the_results_of_a_common_one(opened: Opener, keywords: EmbeddingProvider) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\nEvery page speaks of an index.\n" for i in range(1200)}
    pages["zebra.md"] = "# Zebra\n\nA zebra is striped.\n"
    searcher = opened(pages, keywords)
    for mode in ("hybrid", "keyword"):
        found = ask(searcher, "zebra index", 20, mode=mode)
        assert paths(found)[0] == "zebra.md" and len(found.hits) == 20


@pytest.mark.parametrize(
    ("glob", "wanted"),
    [
        ("guides/*", {"guides/alerts.md", "guides/checks.md"}),
        ("guides/", {"guides/alerts.md", "guides/checks.md"}),
        ("**/alerts.md", {"guides/alerts.md"}),
        ("index.md", {"index.md"}),
        ("*.md", {"index.md", "install.md"}),
        ("{index,install}.md", {"index.md", "install.md"}),
        ("**", set(PAGES)),
        ("nothing/*", set()),
    ],
)
def test_filters_are_globs_over_paths(lighthouse: Searcher, glob: str, wanted: set[str]) -> None:
    for mode in MODES:
        found = ask(lighthouse, "lighthouse check alert install server", 20, glob, mode=mode)
        assert set(paths(found)) == wanted
        assert found.total_chunks >= len(found.hits)


def test_a_choice_of_paths_narrows_like_a_filter(lighthouse: Searcher) -> None:
    def paths(*chosen: str, glob: str | None = None) -> set[str]:
        found = lighthouse.search(SearchRequest("server alert", 20, glob, 12_000, "keyword", paths=chosen))
        rows = [each.row for each in found.ranked]
        assert rows == list(dict.fromkeys(rows))
        return {hit.metadata.file_path for hit in found.hits}

    assert paths("guides/alerts.md", "none.md") == {"guides/alerts.md"}
    assert paths("guides/alerts.md", "index.md", glob="guides/*") == {"guides/alerts.md"}
    assert paths() == set()


@pytest.mark.parametrize(
    "glob",
    [
        "[",
        "[]",
        "[!",
        "{",
        "{a",
        "a}",
        "[z-a]",
        "***",
        "\\",
        "\0",
        "{" * 5000,
        "*" * 100_000,
        "\udcff",
        "(",
        "?" * 300,
        "[[:alpha:]",
    ],
)
def test_a_malformed_glob_matches_nothing_and_breaks_nothing(lighthouse: Searcher, glob: str) -> None:
    for mode in MODES:
        found = ask(lighthouse, "alerts", 5, glob, mode=mode)
        assert len(found.hits) <= found.total_chunks
        if glob != "***":
            assert (found.hits, found.total_chunks) == ((), 0)


# --- scores --------------------------------------------------------------------------------------------


def test_a_semantic_score_is_the_cosine(lighthouse: Searcher, local: EmbeddingProvider) -> None:
    query = "who is called at night?"
    vector = local.embed_query(query)
    found = ask(lighthouse, query, 20, mode="semantic")
    assert len(found.hits) == found.total_chunks
    owners = {hit.metadata.heading_path: hit.score for hit in found.hits}
    reader = lighthouse.index.reader
    assert isinstance(reader, Reader)
    for row, heading, title, content in reader.connection.execute(
        "SELECT id, heading_path, title, content FROM chunks"
    ):
        windows = reader.windows_of(row)
        assert len(windows) == 1, "one window each, so that its text is known"
        from anvil.text.chunker import window_text
        from anvil.text.headings import window_header

        text = window_text(window_header(title, heading), content[windows[0][0] : windows[0][1]])
        exact = float(local.embed([text]).vectors[0] @ vector)
        assert owners[heading] == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_scores_descend_and_stay_in_range(lighthouse: Searcher, mode: Mode) -> None:
    for query in ("alerts", "TLS", "zebra quagga", "how is it done", "DEC-0054 certificates"):
        found = ask(lighthouse, query, 20, mode=mode).hits
        scores = [hit.score for hit in found]
        best: dict[str, float] = {}
        for hit in found:
            best.setdefault(hit.metadata.file_path, hit.score)
        if mode != "semantic":  # where a share of the page's own cosine decides too
            assert list(best.values()) == sorted(best.values(), reverse=True)
        assert all((-1 if mode == "semantic" else 0) <= score <= 1 for score in scores)


def test_what_holds_none_of_the_words_is_no_keyword_result(lighthouse: Searcher) -> None:
    assert ask(lighthouse, "zebra quagga", mode="keyword").hits == ()
    assert all("smtp" in hit.content for hit in ask(lighthouse, "smtp_host", mode="keyword").hits)


@pytest.mark.parametrize("mode", MODES)
def test_ties_go_by_path_and_place(opened: Opener, local: EmbeddingProvider, mode: Mode) -> None:
    text = "# Same\n\nThe very same text stands in each of these pages.\n"
    searcher = opened({f"{name}.md": text for name in "hgfedcbazyx"}, local)
    for top_k in (3, 20):
        found = ask(searcher, "the very same text", top_k, mode=mode)
        names = "a" if mode == "hybrid" else "abcdefghxyz"  # the others are copies
        assert paths(found) == [f"{name}.md" for name in names][:top_k]
        assert len({hit.score for hit in found.hits}) == 1


def test_a_threshold_leaves_out_what_scores_below(lighthouse: Searcher) -> None:
    for mode in MODES:
        every = ask(lighthouse, "alerts at night", 20, mode=mode).hits
        middle = every[len(every) // 2].score
        kept = ask(lighthouse, "alerts at night", 20, mode=mode, threshold=middle).hits
        assert all(hit.score >= middle - 1e-6 for hit in kept)
        assert abs(len(kept) - sum(hit.score >= middle for hit in every)) <= 1  # scores are rounded when shown
        assert all(hit.score == 1 for hit in ask(lighthouse, "alerts at night", 20, mode=mode, threshold=1.0).hits)


# --- confidence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_is_confident_and_nothing_is_not(lighthouse: Searcher, mode: Mode) -> None:
    answered = ask(lighthouse, "how do I silence alerts at night?", mode=mode)
    assert answered.hits[0].confidence is not None and answered.hits[0].confidence > 0.5 and answered.notes == ()
    foreign = ask(lighthouse, "which sourdough flour do Windows 95 users prefer for pizza?", mode=mode)
    assert all(hit.confidence is not None and hit.confidence < UNLIKELY for hit in foreign.hits)
    assert len(foreign.hits) == 0 or "Probably nothing here answers this" in foreign.notes[0]


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_a_question_that_nothing_answers_names_the_nearest_page_and_has_no_texts(
    lighthouse: Searcher, mode: Mode
) -> None:
    query = "which sourdough flour do Windows 95 users prefer for pizza?"
    found = ask(lighthouse, query, mode=mode)
    (first, *_), (note,) = found.hits, found.notes
    assert len(found.hits) == 5 and all(chars(hit) <= result_texts.LINE_CHARS for hit in found.hits)
    assert all(hit.confidence is not None and hit.confidence < confidence.NOT_COVERED for hit in found.hits)
    assert note.startswith("Probably nothing here answers this: the highest confidence of a result is 0.0")
    assert f"The nearest page is {first.metadata.file_path} ({first.title}" in note
    asked_for = ask(lighthouse, query, mode=mode, max_chars=3000)
    assert asked_for.notes == found.notes and sum(map(chars, asked_for.hits)) > 1000, "texts are there when asked for"


def test_a_short_question_for_a_name_that_a_text_has_is_not_called_unanswered(
    opened: Opener, local: EmbeddingProvider
) -> None:
    steps = "Open the console, choose a region and a size, and wait until the disk is there. " * 16
    page = f"# Buckets\n\n{steps}\n\nThe error `SecondLevelDomainForbidden` means that the address has the old style.\n"
    searcher = opened({"buckets.md": page, **PAGES}, local)
    (named,) = ask(searcher, "`SecondLevelDomainForbidden`?", top_k=1).hits
    assert named.confidence is not None and named.confidence < UNLIKELY, "vectors do not know the name"
    assert ask(searcher, "SecondLevelDomainForbidden error").notes == ()
    assert "SecondLevelDomainForbidden" in ask(searcher, "secondleveldomainforbidden").hits[0].content
    for other in ("forbidden-domain", "domain forbidden level two", "SecondLevelDomain"):
        assert "Probably nothing here answers this" in ask(searcher, other).notes[0]


def test_confidence_does_not_depend_on_the_other_results(lighthouse: Searcher) -> None:
    """The score of the only candidate is the highest there is; its confidence is what it was."""
    query = "how do I silence alerts at night?"
    every = {hit.metadata.heading_path: hit.confidence for hit in ask(lighthouse, query, 20).hits}
    for path in PAGES:
        alone = ask(lighthouse, query, 1, file_filter=path).hits[0]
        assert alone.confidence == every[alone.metadata.heading_path]


@pytest.mark.parametrize("mode", MODES)
def test_results_of_less_confidence_are_left_out(lighthouse: Searcher, mode: Mode) -> None:
    query = "how do I silence alerts at night?"
    every = [hit.confidence for hit in ask(lighthouse, query, 20, mode=mode).hits]
    found = lighthouse.search(SearchRequest(query, 20, None, 12_000, mode, min_confidence=0.5))
    assert [hit.confidence for hit in found.hits] == [
        likely for likely in every if likely is not None and likely >= 0.5
    ]
    assert 0 < len(found.hits) < len(every) and found.notes == ()
    nothing = lighthouse.search(SearchRequest("pizza flour at night", 20, None, 12_000, mode, min_confidence=0.99))
    assert nothing.hits == () and len(nothing.notes) == 1


def test_words_alone_have_a_confidence_too(opened: Opener, keywords: EmbeddingProvider) -> None:
    searcher = opened(PAGES, keywords)
    found = ask(searcher, "silence alerts at night", mode="keyword")
    assert found.hits[0].confidence is not None and found.hits[0].confidence > 0.5
    assert found.ranked[0].evidence.cosine is None and 0 < found.ranked[0].evidence.words <= 1


# --- the budget ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_chars", [100_000, 3000, 1500, 700, 300])
def test_a_reply_stays_within_its_budget(lighthouse: Searcher, max_chars: int) -> None:
    query = "check alert Lighthouse server"
    whole = ask(lighthouse, query, 20, max_chars=10**9)
    found = ask(lighthouse, query, 20, max_chars=max_chars)
    total = sum(len(hit.content) for hit in whole.hits)
    assert total > 3000 and sum(map(chars, found.hits)) <= max(max_chars, len(found.hits))
    assert [(hit.metadata, hit.score) for hit in found.hits] == [(hit.metadata, hit.score) for hit in whole.hits]
    for before, after in zip(whole.hits, found.hits, strict=True):
        assert after.content in before.content and after.content
        assert after.truncated <= (after.content != before.content) and (after.lines is not None) == after.truncated
    assert (max_chars < total) == any(
        before.content != after.content for before, after in zip(whole.hits, found.hits, strict=True)
    )


def chars(hit: Hit) -> int:
    """The characters of a result's texts."""
    return len(hit.content) + sum(len(place.content) for place in hit.also or ())


FILLER = "".join(f"Line {i} speaks of other things altogether, as lines do.\n" for i in range(150))


def test_what_is_left_is_whole_lines_that_matched_and_says_which(opened: Opener, keywords: EmbeddingProvider) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\n{FILLER}\nThe zebra is here on page {i}.\n{FILLER}" for i in range(5)}
    found = ask(opened(pages, keywords), "zebra", max_chars=6000, mode="keyword")
    assert all(hit.truncated for hit in found.hits) and sum(len(hit.content) for hit in found.hits) <= 6000
    for hit in found.hits:
        assert hit.content.startswith("The zebra is here on page"), "it begins where the match is"
        assert hit.lines is not None
        first, last = hit.lines
        lines = pages[hit.metadata.file_path].splitlines()
        assert "\n".join(lines[first - 1 : last]) == hit.content
        assert hit.metadata.start_line is not None and hit.metadata.start_line <= first


def test_no_budget_is_a_budget_by_the_number_of_results(opened: Opener, keywords: EmbeddingProvider) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\n{FILLER}The zebra is here on page {i}.\n{FILLER}" for i in range(25)}
    searcher = opened(pages, keywords)
    for top_k in (1, 5, 20):
        given = result_texts.BASE_CHARS + result_texts.CHARS_PER_RESULT * top_k
        assert ask(searcher, "zebra", top_k, max_chars=given).hits == ask(searcher, "zebra", top_k).hits
    of_size = {
        max_chars: [len(hit.content) for hit in ask(searcher, "zebra", 5, max_chars=max_chars).hits]
        for max_chars in (600, 3000, 12_000, 24_000, 10**6)
    }
    for smaller, larger in itertools.pairwise(of_size.values()):  # more budget is never less text
        assert all(few <= many for few, many in zip(smaller, larger, strict=True)) and sum(smaller) < sum(larger)


def test_a_definition_that_matches_is_whole_though_others_match_as_well(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    """An even share of the budget would cut each of them in the middle."""
    text = "".join(f"  -option.{number} int\n     {'Sets another number of things. ' * 4}\n" for number in range(40))
    own = f"  -zebra.stripes int\n     {'How many stripes the zebra has. ' * 5}\n"
    pages = {f"{i}.md": f"# Flags {i}\n\n```\n{text}{own}{text}```\n" for i in range(4)}
    pages["guide.md"] = f"# Zebra stripes\n\n{FILLER}The stripes of a zebra are many.\n\n{FILLER}"
    found = ask(opened(pages, keywords), "zebra stripes", 5, mode="keyword")
    assert [own.rstrip() in hit.content for hit in found.hits] == [False, True, True, True, True]
    assert sum(map(chars, found.hits)) <= result_texts.BASE_CHARS + 5 * result_texts.CHARS_PER_RESULT


def test_a_result_that_is_clearly_the_best_has_nearly_all_of_the_text(
    opened: Opener, keywords: EmbeddingProvider
) -> None:
    text = FILLER.replace("\n", "\n\n")[:2000]
    pages = {f"{i}.md": f"# Page {i}\n\n{text}\n\nThe zebra is here on page {i}.\n\n{text}" for i in range(4)}
    searcher = opened(pages, keywords)
    near = [len(hit.content) for hit in ask(searcher, "zebra crossing", 4, mode="keyword").hits]
    assert min(near) > max(near) / 2, "equals share it"
    pages["best.md"] = f"# Zebra crossing\n\n{text}\n\nA zebra crossing is here.\n\n{text}"
    best = [len(hit.content) for hit in ask(opened(pages, keywords), "zebra crossing", 5, mode="keyword").hits]
    assert best[0] > 700 and max(best[1:]) < 200


@pytest.mark.parametrize("max_chars", [0, -1, 1])
def test_a_budget_of_nothing_still_names_what_was_found(lighthouse: Searcher, max_chars: int) -> None:
    found = ask(lighthouse, "alerts", 3, max_chars=max_chars)
    assert len(found.hits) == 3 and all(hit.truncated and len(hit.content) <= 1 for hit in found.hits)


# --- without vectors, with another model, without anything ---------------------------------------------


def test_without_vectors_words_answer(opened: Opener, keywords: EmbeddingProvider) -> None:
    searcher = opened(PAGES, keywords)
    found = ask(searcher, "silence at night")
    assert places(found)[0] == "guides/alerts.md#Alerts > Silence at night"
    assert searcher.obstacle is not None and searcher.obstacle.endswith("without vectors (embedding provider none).")
    assert found == ask(searcher, "silence at night", mode="keyword")
    with pytest.raises(ConfigError, match="built without vectors"):
        ask(searcher, "silence at night", mode="semantic")


def test_another_model_never_answers_for_the_first(
    opened: Opener, local: EmbeddingProvider, keywords: EmbeddingProvider
) -> None:
    another = Counting(local, digest="e" * 64)
    for other, way_out in ((another, "Rebuild the index"), (keywords, "set embedding.provider")):
        searcher = opened(PAGES, local, other)
        assert (
            places(ask(searcher, "silence at night", mode="keyword"))[0] == "guides/alerts.md#Alerts > Silence at night"
        )
        with pytest.raises(ConfigError, match=rf"{local.model}.*{way_out}"):
            ask(searcher, "silence at night", mode="semantic")
        found = ask(searcher, "silence at night")
        assert searcher.obstacle is not None and way_out in searcher.obstacle
        assert found == ask(searcher, "silence at night", mode="keyword")


def test_a_question_that_cannot_be_embedded_is_answered_by_words(opened: Opener, local: EmbeddingProvider) -> None:
    class Failing(Counting):
        def embed_query(self, text: str) -> Vector:
            raise ModelError("The model is not well.")

    searcher = opened(PAGES, local, Failing(local))
    found = ask(searcher, "silence at night")
    assert (
        places(found)[0] == "guides/alerts.md#Alerts > Silence at night" and "The model is not well." in found.notes[0]
    )
    with pytest.raises(ModelError):
        ask(searcher, "silence at night", mode="semantic")


def test_a_chunk_without_a_vector_is_found_by_its_words(opened: Opener, local: EmbeddingProvider) -> None:
    searcher = opened(PAGES, Counting(local, refuse="smtp_host"), local)
    assert "smtp_host" in ask(searcher, "smtp_host smtp_port").hits[0].content
    semantic = ask(searcher, "mail server", 20, mode="semantic")
    assert all("smtp_host" not in hit.content for hit in semantic.hits)


def test_an_empty_index_finds_nothing(opened: Opener, local: EmbeddingProvider, keywords: EmbeddingProvider) -> None:
    for provider in (local, keywords):
        searcher = opened({}, provider)
        for mode in MODES if provider is local else ("hybrid", "keyword"):
            found = ask(searcher, "anything", mode=mode)
            assert (found.hits, found.total_chunks) == ((), 0)


@pytest.mark.parametrize("provider", ["local", "none"])
def test_the_same_question_gets_the_same_answer(
    opened: Opener, local: EmbeddingProvider, keywords: EmbeddingProvider, provider: str
) -> None:
    """What was asked before, and how often, changes nothing."""
    chosen = local if provider == "local" else keywords
    one, other = opened(PAGES, chosen), opened(PAGES, chosen)
    queries = ["alerts", "silence at night", "DEC-0054", "zebra", "install"]
    for query in reversed(queries):
        ask(other, query, 20)
    for query in queries:
        first, second = ask(one, query, 20), ask(other, query, 20)
        assert [asdict(hit) for hit in first.hits] == [asdict(hit) for hit in second.hits]


def test_more_chunks_than_are_remembered_change_no_score(
    opened: Opener, keywords: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {f"{i}.md": f"# Page {i}\n\nA common word, and word{i} alone.\n" for i in range(60)}
    searcher = opened(pages, keywords)
    before = [ask(searcher, query, 20) for query in ("common", "word7", "common word9")]
    monkeypatch.setattr("anvil.search.candidates.MAX_CACHED_ROWS", 5)
    reader = searcher.index.reader
    assert isinstance(reader, Reader)
    fresh = Searcher(FileIndex(reader), keywords)
    assert [ask(fresh, query, 20) for query in ("common", "word7", "common word9")] == before
    assert re.search("word7 alone", before[1].hits[0].content)


def test_front_matter_finds_the_first_part_of_its_page(opened: Opener, local: EmbeddingProvider) -> None:
    keywords = "keywords: [waterPump, \u6771\u4eac\u30bf\u30ef\u30fc]"
    front = f"---\ndescription: Zebrafish tanks\n{keywords}\naliases: old-name\n---\n"
    pages = {
        "a.md": f"{front}# First\n\n{'Some text. ' * 40}\n\n## Second\n\n{'More text. ' * 40}\n",
        "b.md": "# Other\n\nText.\n",
    }
    searcher = opened(pages, local)
    for question in ("zebrafish", '"zebrafish tanks"', "pump", "\u30bf\u30ef\u30fc", "old-name"):
        found = ask(searcher, question, mode="keyword")
        assert places(found) == ["a.md#First"], question
        assert "ebrafish" not in found.hits[0].content


@pytest.mark.parametrize("query", ["READ_HISTORY", "`READ_HISTORY`", "read_history?"])
@pytest.mark.parametrize(
    "line", ["| `READ_HISTORY` | x |", "- **READ_HISTORY**: x", "#### READ_HISTORY", "|READ_HISTORY|x|"]
)
def test_the_section_that_defines_a_name_goes_before_those_that_use_it(
    opened: Opener, local: EmbeddingProvider, query: str, line: str
) -> None:
    uses = "# History\n\nREAD_HISTORY, READ_HISTORY and READ_HISTORY_LATER.\n\n| READ_HISTORY_LATER | READ_HISTORY |\n"
    rows = "\n".join(f"| `OTHER_{number}` | Some text of another row. |" for number in range(30))
    pages = {"a.md": uses, "b.md": f"# Flags\n\n{rows}\n\n{line}\n"}
    assert ask(opened(pages, local), query, mode="hybrid").hits[0].metadata.file_path == "b.md"
    titled = {**pages, "c.md": "# Read history with READ_HISTORY\n\nMuch text of a page.\n"}
    assert ask(opened(titled, local), query, mode="hybrid").hits[0].metadata.file_path == "c.md"


def test_words_of_a_path_that_the_text_lacks_find_the_first_part_of_the_page(
    opened: Opener, local: EmbeddingProvider
) -> None:
    text = f"# Keys\n\n{'Some text. ' * 40}\n\n## Rotation\n\n{'More text. ' * 40}\n"
    others = {f"other{number}.md": f"# Keys\n\nThe tree of page {number}.\n" for number in range(450)}
    searcher = opened({"tree.api-v2.auth.md": text, **others}, local)  # so many that not all chunks are candidates
    for question in ("auth api", "tree auth", "api-v2"):
        assert places(ask(searcher, question, mode="keyword"))[0] == "tree.api-v2.auth.md#Keys", question


@pytest.mark.parametrize(("score", "order"), [(0.35, [(1, 0), (2, 0), (1, 1)]), (0.34, [(1, 0), (1, 1), (2, 0)])])
def test_a_page_with_35_percent_of_the_best_score_comes_before_further_sections(
    score: float, order: list[tuple[int, int]]
) -> None:
    evidence = confidence.MatchEvidence(0.0, 0.0, 1)
    chunks = {(1, 0): 1.0, (1, 1): 0.9, (2, 0): score}  # (page, number in the page) -> score
    found = [
        Result(0, own, ranking.RankedChunk(own, (page << 15) + number, [], evidence))
        for (page, number), own in chunks.items()
    ]
    assert [divmod(result.ranked.row, 1 << 15) for result in best_first(found)] == order
