"""What ``anvil.open`` opens: a folder, an index alone, a configuration; and what it says of what cannot be opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.api import open_index
from anvil.errors import ArtifactMissing, ArtifactRejected, ConfigError, SourceError
from anvil.requests import OpenRequest
from anvil.settings.schema import Config, EmbeddingSettings
from anvil.status import StaleCounts
from tests.conftest import write


@pytest.fixture
def opened(docs: Path) -> Iterator[anvil.Anvil]:
    """The four pages, indexed without vectors."""
    with anvil.open(docs, provider="none") as found:
        found.index()
        yield found


def test_a_question_builds_the_index_that_was_never_built(docs: Path) -> None:
    with anvil.open(docs, provider="none") as found:
        assert found.search("silence at night").results[0].metadata.heading_path == "Alerts > Silence at night"
    assert (docs / ".anvil/.gitignore").read_text() == "*\n" and (docs / ".anvil/index.db").is_file()


def test_the_choice_made_for_git_is_kept(docs: Path) -> None:
    write(docs, {".anvil/.gitignore": "*\n!index.db\n"})
    with anvil.open(docs, provider="none") as found:
        found.index()
    assert (docs / ".anvil/.gitignore").read_text() == "*\n!index.db\n"


def test_an_index_elsewhere_leaves_the_docs_alone(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, tmp_path / "out/i.db", "none") as found:
        found.search("alerts")
    assert (tmp_path / "out/i.db").is_file() and not (docs / ".anvil").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["i.db"]


def test_a_project_in_a_folder_with_the_name_of_that_of_a_sites_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write(tmp_path / "anvil", {"docs/a.md": "# A\n", "anvil.toml": 'index = "index.db"\n'})
    monkeypatch.chdir(project)
    with anvil.open(provider="none") as found:
        assert found.list_pages().pages and (project / "index.db").is_file()


def test_a_damaged_index_is_built_anew_in_the_default_place_only(docs: Path, tmp_path: Path) -> None:
    with anvil.open(docs, provider="none") as found:
        found.index()
        found.index_path.write_bytes(found.index_path.read_bytes()[:5000])
        assert found.search("alerts").results
    (tmp_path / "mine.db").write_bytes(b"precious")
    with (
        anvil.open(docs, tmp_path / "mine.db", "none") as found,
        pytest.raises(ArtifactRejected, match="not an Anvil index"),
    ):
        found.search("alerts")
    assert (tmp_path / "mine.db").read_bytes() == b"precious"


def test_an_index_alone_answers_as_it_is(opened: anvil.Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "elsewhere" / "published.db"
    copy.parent.mkdir()
    copy.write_bytes(opened.index_path.read_bytes())
    monkeypatch.chdir(copy.parent)
    with anvil.open(index=copy, provider="none") as alone:
        result = alone.search("silence at night")
        assert result.results == opened.search("silence at night").results
        assert result.freshness.checked is None
        status = alone.get_status()
        assert status.server.docs_root is None and status.index.stale == anvil.status.StaleCounts(0, 0, 0)
        assert alone.get_page("index.md") == opened.get_page("index.md")
        for use in (alone.index, alone.check):
            with pytest.raises(SourceError, match="no documents"):
                use()
    assert [path.name for path in copy.parent.iterdir()] == ["published.db"]


def test_what_cannot_be_opened_says_what_to_do(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"There is no folder .* folder with docs[:.]"):
        anvil.open(tmp_path / "none")
    with pytest.raises(SourceError, match=r"is not a folder.* folder with docs[:.]"):
        anvil.open(docs / "index.md")
    (tmp_path / "anvil.toml").write_text('docs = "docz"\n')
    with pytest.raises(SourceError, match=r"There is no folder .*docz\. .* with the key docs"):
        anvil.open(config=tmp_path / "anvil.toml")
    with pytest.raises(SourceError, match=r"There is no folder .*docz\. Name the documentation folder with --docs"):
        open_index(OpenRequest(docs="docz"))
    with anvil.open(index=tmp_path / "none.db") as found, pytest.raises(ArtifactMissing, match="anvil build"):
        found.search("x")
    with anvil.open(docs, provider="locl") as found, pytest.raises(ConfigError, match="local, none, openai"):
        found.search("x")


def test_a_config_object_does_as_well_as_a_file(docs: Path, tmp_path: Path) -> None:
    settings = Config(docs=str(docs), index=str(tmp_path / "i.db"), embedding=EmbeddingSettings(provider="none"))
    with anvil.open(config=settings) as found:
        assert found.index().index_path == str(tmp_path / "i.db")
        assert found.get_status().embedding.provider == "none"
    (tmp_path / "anvil.toml").write_text('docs = "docs"\nindex = "j.db"\n[embedding]\nprovider = "none"\n')
    with anvil.open(config=tmp_path / "anvil.toml") as found:
        assert found.index().index_path == str(tmp_path / "j.db")


def test_the_index_of_a_site_that_is_named_is_in_it_whatever_the_file_says(docs: Path, tmp_path: Path) -> None:
    write(tmp_path / "site", {"index.html": "<main><h1>Lighthouse</h1><p>A lamp was lit.</p></main>"})
    (tmp_path / "anvil.toml").write_text('docs = "docs"\nindex = "j.db"\n[embedding]\nprovider = "none"\n')
    with anvil.open(config=tmp_path / "anvil.toml", site=tmp_path / "site") as found:
        assert found.index().index_path == str(tmp_path / "site" / "anvil" / "index.db")
    assert not (tmp_path / "j.db").exists()


def test_an_empty_folder_answers_with_nothing(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with anvil.open(tmp_path / "docs", provider="none") as found:
        result = found.search("anything")
        assert (result.results, result.total_chunks) == ((), 0)
        assert found.list_pages().total_pages == 0 and found.get_status().index.total_chunks == 0
        write(tmp_path / "docs", {"a.md": "# Anything\n"})
        assert found.search("anything").total_chunks == 1


def test_an_index_alone_is_compared_with_its_own_folder_only(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "site.db"
    with anvil.open(docs, index, provider="none") as opened:
        opened.index()
    (docs / "index.md").write_text("# Lighthouse\n\nA lamp was lit.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with anvil.open(index=index, provider="none") as opened:
        assert opened.docs_root is not None and "A lamp was lit" in opened.get_page("index.md").chunks[0].content

    stranger = write(tmp_path / "elsewhere" / "docs", {"index.md": "# Another\n", "faq.md": "# FAQ\n"})
    monkeypatch.chdir(stranger.parent)
    with anvil.open(index=index, provider="none") as opened:
        assert opened.docs_root is None
        assert opened.get_page("index.md").chunks[0].content.startswith("# Lighthouse")
        assert opened.get_status().index.stale == StaleCounts(0, 0, 0)
        assert opened.check().added == ("faq.md",)  # a check is asked for, and reads the folder that is configured


def test_an_index_that_is_named_alone_and_missing_is_not_built_by_asking(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with anvil.open(index="typo.db", provider="none") as opened:
        with pytest.raises(ArtifactMissing):
            opened.search("alert")
        assert not Path("typo.db").exists()
        assert opened.index().pages == 4 and Path("typo.db").exists()
