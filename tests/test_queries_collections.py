"""Several collections as one: what is chosen, how results are ordered and labelled, and what a broken one costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.embedding.provider import PROVIDERS, EmbeddingProvider
from anvil.errors import ArtifactError, ConfigError, FetchError, NotFound, SourceError
from anvil.results import GrepMatch
from anvil.values import Changes
from tests.conftest import write
from tests.support.collections_of_pages import project_with

KITCHEN = {
    "index.md": "# Kitchen\n\nA handbook for cooks, who work in turns and keep their knives in the third drawer.\n",
    "bread.md": "# Bread\n\n## Sourdough\n\nFeed the sourdough at night, and bake it at 240 degrees in the morning.\n",
}
OLD_KITCHEN = {"bread.md": "# Bread\n\n## Sourdough\n\nFeed the sourdough twice, and bake it at 180 degrees.\n"}
CONFIG = """
docs = "docs"
embedding.provider = "none"
[collections.handbook]
docs = "kitchen"
title = "The kitchen's handbook"
[[collections.bakery]]
index = "bakery-1.db"
version = "1.9"
[[collections.bakery]]
index = "bakery-2.db"
version = "1.10"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with its own docs, a folder of another team, and two versions of a published index."""
    indexes = {"bakery-1.db": OLD_KITCHEN, "bakery-2.db": KITCHEN}
    return project_with(tmp_path, monkeypatch, indexes, CONFIG, KITCHEN)


@pytest.fixture
def opened(project: Path) -> Iterator[anvil.Anvil]:
    with anvil.open(collections="all") as found:
        yield found


def found(result: anvil.SearchResult) -> list[tuple[str | None, str | None, str]]:
    return [(hit.collection, hit.version, hit.metadata.file_path) for hit in result.results]


def test_one_search_answers_from_all(opened: anvil.Anvil) -> None:
    assert opened.names == ("docs", "handbook", "bakery")
    assert found(opened.search("journalctl"))[0] == ("docs", None, "install.md")
    assert found(opened.search("knives"))[0] == ("handbook", None, "index.md")
    result = opened.search("when is the sourdough fed?")
    assert found(result)[:2] == [("handbook", None, "bread.md"), ("bakery", "1.10", "bread.md")]  # own first
    assert [hit.score for hit in result.results] == sorted((hit.score for hit in result.results), reverse=True)


def test_the_question_chooses_collection_and_version(opened: anvil.Anvil) -> None:
    assert found(opened.search("sourdough", collection="bakery")) == [("bakery", "1.10", "bread.md")]
    assert found(opened.search("sourdough", collection="bakery", version="1.9")) == [("bakery", "1.9", "bread.md")]
    assert found(opened.search("sourdough", collection="bakery@1.9")) == [("bakery", "1.9", "bread.md")]
    assert found(opened.search("sourdough", version="1.9")) == [("bakery", "1.9", "bread.md")]
    with pytest.raises(ConfigError, match=r"There is no collection bekery\. Did you mean bakery\?"):
        opened.search("sourdough", collection="bekery")
    with pytest.raises(ConfigError, match=r"no version 2 of collection bakery\. There are: 1\.9, 1\.10\."):
        opened.search("sourdough", collection="bakery", version="2")


def test_a_filter_is_applied_before_ranking(opened: anvil.Anvil) -> None:
    result = opened.search("sourdough morning night", file_filter="guides/*", top_k=20)
    assert {(collection, path) for collection, _, path in found(result)} <= {
        ("docs", "guides/alerts.md"),
        ("docs", "guides/checks.md"),
    }
    assert result.total_chunks == opened.search("x", file_filter="guides/*", collection="docs").total_chunks


def test_the_budget_is_one_for_all(opened: anvil.Anvil) -> None:
    result = opened.search("sourdough night alerts", top_k=5, max_chars=200)
    assert len(result.results) >= 3 and sum(len(hit.content) for hit in result.results) <= 200


def test_a_page_is_found_by_its_path_where_only_one_collection_has_it(opened: anvil.Anvil) -> None:
    page = opened.get_page("install.md")
    assert (page.collection, page.version, page.title) == ("docs", None, "Installing")
    assert opened.get_section("install.md", "Install > Linux").collection == "docs"
    section = opened.get_section("bread.md", "Bread > Sourdough", collection="bakery", version="1.9")
    assert "180 degrees" in section.content and section.version == "1.9"
    assert opened.headings("bread.md", collection="bakery")[-1] == "Bread > Sourdough"
    assert opened.outline("guides/alerts.md").page.collection == "docs"


def test_a_page_that_several_have_names_them(opened: anvil.Anvil) -> None:
    with pytest.raises(NotFound) as error:
        opened.get_page("bread.md")
    assert str(error.value) == ("2 collections have a page bread.md: handbook, bakery@1.10. Name one with collection.")


def test_the_name_of_a_collection_is_not_part_of_a_path(opened: anvil.Anvil) -> None:
    for wrong in ("handbook/bread.md", "handbook:bread.md"):
        with pytest.raises(NotFound, match=r"handbook is a collection: give bread\.md with collection handbook"):
            opened.get_page(wrong)
    with pytest.raises(NotFound, match=r"No page found at path: bred\.md in docs, handbook.*Closest: .*bread\.md"):
        opened.get_page("bred.md")


def test_pages_are_listed_by_collection(opened: anvil.Anvil) -> None:
    listed = opened.list_pages()
    labels = [(page.collection, page.version) for page in listed.pages]
    assert labels == [("docs", None)] * 4 + [("handbook", None)] * 2 + [("bakery", "1.10")] * 2
    assert {page.collection for page in opened.list_pages("guides").pages} == {"docs"}
    assert opened.list_pages(collection="bakery@1.9").total_pages == 1


def test_exact_lines_are_found_in_all(opened: anvil.Anvil) -> None:
    found = opened.grep("the sourdough")
    assert [(each.collection, each.version, each.file_path) for each in found.matches] == [
        ("handbook", None, "bread.md"),
        ("bakery", "1.10", "bread.md"),
    ]
    everything = opened.grep("e", max_matches=1000, max_chars=None)
    parts: list[GrepMatch] = []
    offset: int | None = 0
    while offset is not None:
        part = opened.grep("e", max_matches=7, offset=offset, max_chars=600)
        parts += part.matches
        offset = part.next_offset
        assert part.total_matches == everything.total_matches == len(everything.matches)
    assert tuple(parts) == everything.matches
    assert {each.collection for each in opened.grep("e", "guides/*", max_matches=1000).matches} == {"docs"}
    assert opened.grep("fed|feed the", regex=True, collection="bakery@1.9").matches[0].version == "1.9"
    with pytest.raises(NotFound):
        opened.grep("e", "nowhere/*")


def test_each_folder_is_compared_before_the_answer(project: Path, opened: anvil.Anvil) -> None:
    opened.search("sourdough")
    heard: list[Changes] = []
    stop = opened.on_change(heard.append)
    write(project / "kitchen", {"bread.md": "# Bread\n\n## Rye\n\nRye wants a zebra.\n"})
    result = opened.search("zebra")
    assert found(result)[0] == ("handbook", None, "bread.md")
    assert result.freshness.checked == "working tree"
    assert result.freshness.refreshed == ("handbook:bread.md",)
    assert heard == [Changes(changed=("handbook:bread.md",))]
    stop()


def test_a_collection_that_cannot_answer_costs_a_note(project: Path, opened: anvil.Anvil) -> None:
    (project / "bakery-2.db").write_bytes(b"no index")
    result = opened.search("sourdough")
    assert found(result)[0] == ("handbook", None, "bread.md")
    assert any(note.startswith("bakery@1.10 cannot answer: ") for note in result.freshness.notes)
    assert [note[:26] for note in opened.list_pages().notes or ()] == ["bakery@1.10 cannot answer:"]
    statuses = {(each.name, each.version): each for each in opened.get_status().collections or ()}
    assert statuses["bakery", "1.10"].total_pages is None and "no index" not in (statuses["docs", None].note or "")
    with pytest.raises(anvil.AnvilError):
        opened.search("sourdough", collection="bakery")


def test_the_status_lists_all(project: Path, opened: anvil.Anvil) -> None:
    status = opened.get_status()
    assert status.server.docs_root == str(project / "docs")
    assert [
        (each.name, each.version, each.title, each.default, each.total_pages) for each in status.collections or ()
    ] == [
        ("docs", None, "docs", True, 4),
        ("handbook", None, "The kitchen's handbook", True, 2),
        ("bakery", "1.9", "bakery", False, 1),
        ("bakery", "1.10", "bakery", True, 2),
    ]


def test_some_can_be_opened(project: Path) -> None:
    with anvil.open(collections=["bakery@1.9", "docs"]) as some:
        assert [member.label for member in some.members] == ["docs", "bakery@1.9"]
        assert found(some.search("sourdough"))[0] == ("bakery", "1.9", "bread.md")
    with pytest.raises(ConfigError, match=r"There is no collection zzz\. There are: docs, handbook, bakery\."):
        anvil.open(collections=["zzz"])
    with pytest.raises(ConfigError, match="collections cannot be combined with docs, index or site"):
        anvil.open("docs", collections="all")


def test_one_of_several_can_be_taken_alone(opened: anvil.Anvil) -> None:
    handbook = opened.alone(opened.members[1])
    assert handbook.index().pages == 2 and not handbook.check()
    hit = handbook.search("knives").results[0]
    assert (hit.collection, hit.metadata.file_path) == (None, "index.md")
    with pytest.raises(ConfigError, match=r"Several collections are open: docs, handbook, bakery@1\.9, bakery@1\.10\."):
        opened.index()


def test_what_is_for_one_index_is_refused_in_words(project: Path, opened: anvil.Anvil) -> None:
    with pytest.raises(ConfigError, match="language is for one index"):
        opened.search("knives", language="de")
    with anvil.open("kitchen", provider="none") as one, pytest.raises(ConfigError, match="There is one collection"):
        one.search("knives", collection="handbook")


def test_a_single_collection_has_no_label(project: Path) -> None:
    with anvil.open(collections=["bakery@1.9"]) as single:
        assert found(single.search("sourdough", version="1.9")) == [(None, None, "bread.md")]
        assert single.get_page("bread.md", collection="bakery").collection is None


def test_without_a_name_the_project_s_own_docs_are_opened(project: Path) -> None:
    with anvil.open() as own:
        assert own.docs_root == project / "docs"
    (project / "anvil.toml").write_text('[collections.guide]\ndocs = "kitchen"\n[collections.x]\nindex = "x.db"\n')
    (project / "docs").rename(project / "gone")
    with anvil.open(provider="none") as own:
        assert own.docs_root == project / "kitchen" and own.get_page("bread.md").collection is None
    (project / "anvil.toml").write_text('[collections.x]\nindex = "bakery-1.db"\n')
    with anvil.open(provider="none") as only:
        assert only.docs_root is None and "180" in only.search("sourdough").results[0].content
    (project / "anvil.toml").write_text('[collections.x]\nindex = "a.db"\n[collections.y]\nindex = "b.db"\n')
    message = r"None of the 2 collections is a folder of this project.* with docs\. To search these, open them with "
    with pytest.raises(ConfigError, match=message):
        anvil.open()


def test_a_folder_that_is_missing_costs_a_note(project: Path) -> None:
    (project / "anvil.toml").write_text('[collections.x]\ndocs = "nowhere"\n[collections.y]\ndocs = "kitchen"\n')
    with anvil.open(collections="all", provider="none") as opened:
        result = opened.search("knives")
        assert found(result)[0] == ("y", None, "index.md")
        assert any("There is no folder" in note and "nowhere" in note for note in result.freshness.notes)
        with pytest.raises(SourceError, match=r"There is no folder .*nowhere"):
            opened.search("knives", collection="x")


def test_a_publisher_that_is_away_costs_a_note(project: Path) -> None:
    config = '[collections.x]\nindex = "http://127.0.0.1:9/"\n[collections.y]\ndocs = "kitchen"\n'
    (project / "anvil.toml").write_text(config, encoding="utf-8")
    with anvil.open(collections="all", provider="none") as opened:
        result = opened.search("knives", collection="y")
        assert not result.freshness.notes[1:]
        result = opened.search("knives")
        assert found(result)[0] == ("y", None, "index.md")
        assert any(note.startswith("x cannot answer: ") for note in result.freshness.notes)
        with pytest.raises(FetchError):
            opened.search("knives", collection="x")


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_no_build_is_advised_for_an_index_without_a_folder(project: Path, damage: str) -> None:
    file = project / "bakery-2.db"
    data = file.read_bytes()
    file.unlink()
    if damage == "cut":
        file.write_bytes(data[:3000])
    with anvil.open(collections="all") as opened:
        notes = [each.note or "" for each in opened.get_status().collections or ()]
        told = next(note for note in notes if "bakery-2.db" in note)
        assert "anvil build" not in told
        assert told.endswith("Check the path." if damage == "missing" else "built, or fetch it again.")
        with pytest.raises(ArtifactError) as caught:
            opened.search("knives", collection="bakery", version="1.10")
        assert str(caught.value) == told


def test_of_many_collections_the_most_promising_are_searched(tmp_path: Path) -> None:
    """And more of them, where those have too few results."""
    names = [f"c{number}" for number in range(8)]
    for number, name in enumerate(names):
        with anvil.open(
            write(tmp_path / name, {"a.md": f"# Page\n\nCommon words, and zebra{number} alone.\n"}), provider="none"
        ) as opened:
            opened.index()
    config = "".join(f'[collections.{name}]\ndocs = "{name}"\n' for name in names)
    text = 'embedding.provider = "none"\n' + config
    (tmp_path / "anvil.toml").write_text(text, encoding="utf-8")
    with anvil.open(config=tmp_path / "anvil.toml", collections="all") as opened_all:
        for number, name in enumerate(names):
            assert found(opened_all.search(f"common zebra{number}", top_k=2))[0] == (name, None, "a.md")
        assert len(opened_all.search("common words", top_k=20).results) == 8
        assert len(opened_all.search("common words", top_k=20, file_filter="b*").results) == 0


def test_a_server_opens_all_in_the_background(project: Path) -> None:
    with anvil.open(collections="all", background=True) as opened:
        opened.start()
        assert found(opened.search("knives"))[0][0] == "handbook"
        assert opened.get_status().collections
    opened.close()  # a second call does nothing


def test_vectors_of_another_model_are_left_alone(tmp_path: Path) -> None:
    for name, provider in (("one", "local"), ("two", "none")):
        with anvil.open(write(tmp_path / name, KITCHEN), provider=provider) as opened:
            opened.index()
    config = '[collections.one]\ndocs = "one"\n[collections.two]\nindex = "two/.anvil/index.db"\n'
    (tmp_path / "anvil.toml").write_text(config, encoding="utf-8")
    with anvil.open(config=tmp_path / "anvil.toml", collections="all") as opened_all:
        result = opened_all.search("when is the sourdough fed?")
        assert {hit.collection for hit in result.results} == {"one", "two"}
        assert "Searched by words only, because they have no vectors of this model: two." in result.freshness.notes
        semantic = opened_all.search("baking at night", mode="semantic")
        assert {hit.collection for hit in semantic.results} == {"one"}
        assert semantic.freshness.notes == ("Not searched, because they have no vectors of this model: two.",)
        cosines = [hit.score for hit in opened_all.search("baking at night", mode="semantic", collection="one").results]
        assert [hit.score for hit in semantic.results] == cosines
        assert not opened_all.search("sourdough", mode="keyword").freshness.notes


class AnotherModel:
    """The bundled model under another name."""

    digest, model = "0" * 64, "another-model"

    def __init__(self, real: EmbeddingProvider) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_collections_of_another_model_say_what_ends_that(
    tmp_path: Path, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server embeds a private index again by itself, also one of several; one without a folder stays as it is."""
    for name in ("one", "two", "named"):
        with anvil.open(write(tmp_path / name, KITCHEN), provider="local") as opened:
            opened.index()
    tables = {"one": 'docs = "one"', "two": 'docs = "two"', "named": 'index = "named/.anvil/index.db"'}
    config = "".join(f"[collections.{name}]\n{keys}\n" for name, keys in tables.items())
    (tmp_path / "anvil.toml").write_text(config, encoding="utf-8")
    monkeypatch.setattr("anvil.live.background_work.QUIET_S", 1.0)
    monkeypatch.setitem(PROVIDERS, "local", lambda settings: AnotherModel(local))
    with anvil.open(config=tmp_path / "anvil.toml", collections="all", background=True) as all_three:
        soon, never = all_three.search("sourdough").freshness.notes[:2]
        assert soon.startswith("one, two: Semantic search is off: the index was built with all-MiniLM-L6-v2-docs, and")
        assert "embedded again when no page has changed for a minute" in soon
        assert never.startswith("named: Semantic search is off:") and "Rebuild the index, or" in never
        with pytest.raises(ConfigError) as caught:
            all_three.search("sourdough", mode="semantic")
        assert str(caught.value) == f"{soon} {never}"
        with pytest.raises(ConfigError, match="It is embedded again when"):
            all_three.search("sourdough", mode="semantic", collection="one")
        end = time.monotonic() + 30
        words_only = "Searched by words only, because they have no vectors of this model: named."
        while all_three.search("sourdough").freshness.notes != (words_only,):
            assert time.monotonic() < end, "they were not embedded again"
            time.sleep(0.05)
