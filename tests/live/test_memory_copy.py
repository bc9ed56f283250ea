"""The copy that is answered from: whatever a model does, its text and what is known of it stay together."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import anvil
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import create_provider
from anvil.errors import AnvilError
from anvil.git.repository import Repository
from anvil.live import memory_copy
from anvil.live.memory_copy import MemoryCopy
from anvil.project_indexes import IndexLocation
from anvil.settings.schema import ChunkingOptions, Config, EmbeddingSettings
from tests.conftest import PAGES, write
from tests.embedding.test_openai import KEY, Server, error, server
from tests.support import repositories
from tests.support.repositories import commit, run

__all__ = ["server"]  # a fixture: pytest finds it by name

isolated = pytest.fixture(repositories.isolation)  # here only where asked for

FIRST = PAGES["install.md"]
SECOND = "# Install\n\nAsk the quagga, which is an animal that has stripes in front only.\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has neither documents nor configuration."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def configured(docs: Path, server: Server, key: str | None = KEY) -> Config:
    settings = EmbeddingSettings(provider="openai", api_key=key, base_url=server.url, dimensions=3)
    return Config(docs=str(docs), embedding=settings)


@pytest.fixture
def built(docs: Path, server: Server) -> Path:
    """The four pages, indexed with vectors of a service."""
    with anvil.open(config=configured(docs, server)) as found:
        found.index()
    return docs


@pytest.fixture(params=["no key", "key refused"])
def failing(request: pytest.FixtureRequest, built: Path, server: Server) -> Iterator[anvil.Anvil]:
    """An object whose service makes no more vectors."""
    server.script = lambda body, call: error(401, "no")
    with anvil.open(config=configured(built, server, None if request.param == "no key" else KEY)) as found:
        yield found


def text(found: anvil.Anvil) -> str:
    return "".join(chunk.content for chunk in found.get_page("install.md").chunks)


def test_a_model_that_fails_keeps_no_text_back(failing: anvil.Anvil, built: Path, server: Server) -> None:
    assert "Two packages" in text(failing)
    write(built, {"install.md": SECOND})
    assert "quagga" in text(failing) and "quagga" in text(failing)
    assert failing.headings("install.md") == ("Install",)
    for mode in ("hybrid", "keyword"):
        result = failing.search("quagga", mode=mode)
        assert result.results[0].metadata.file_path == "install.md"
        assert result.freshness.pending_vectors == 1
        why = [note for note in result.freshness.notes if "could not be made" in note]
        assert len(why) == 1 and "API key" in why[0] and KEY not in why[0]
    with pytest.raises(AnvilError, match="API key"):
        failing.search("quagga", mode="semantic")
    assert failing.get_status().index.pending_vectors == 1
    with anvil.open(config=configured(built, server, None), background=True) as serving:
        assert text(serving) == text(failing)


def test_a_page_that_is_put_back_says_what_it_said(failing: anvil.Anvil, built: Path) -> None:
    write(built, {"install.md": SECOND, "new.md": "# New\n"})
    assert "quagga" in text(failing)
    write(built, {"install.md": FIRST})
    (built / "new.md").unlink()
    assert "Two packages" in text(failing) and "quagga" not in text(failing)
    assert [page.file_path for page in failing.list_pages().pages] == sorted(PAGES)
    assert failing.search("quagga", mode="keyword").freshness.refreshed == ()


def test_what_interrupts_a_model_loses_nothing_either(built: Path, server: Server) -> None:
    def stop(stage: str, done: int, total: int) -> None:
        if stage == "embedding":
            raise KeyboardInterrupt

    with anvil.open(config=configured(built, server), progress=stop) as found:
        write(built, {"install.md": SECOND})
        with pytest.raises(KeyboardInterrupt):
            found.search("quagga")
        write(built, {"install.md": FIRST})
        with pytest.raises(KeyboardInterrupt):
            found.search("quagga")
        assert "Two packages" in text(found)


def test_vectors_that_could_not_be_made_are_tried_again(
    built: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = server.script
    with anvil.open(config=configured(built, server)) as found:
        server.script = lambda body, call: error(401, "no")
        write(built, {"install.md": SECOND})
        asked = len(server.requests)
        assert found.search("quagga", mode="keyword").freshness.pending_vectors == 1
        assert "quagga" in text(found) and len(server.requests) == asked  # words need no vectors
        for _ in range(2):
            with found.members[0].live.query(by_meaning=True) as copy:
                assert copy.pending == 1 and len(server.requests) == asked + 1  # not each time
        server.script = good
        monkeypatch.setattr(memory_copy, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 60))
        result = found.search("quagga", mode="semantic")
        assert (result.freshness.pending_vectors, result.freshness.notes) == (0, ())
        assert "install.md" in {hit.metadata.file_path for hit in result.results}


# --- times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [False, True])
def test_times_follow_the_commits_while_no_text_changes(docs: Path, isolated: None, background: bool) -> None:
    run(docs, "init", "-q", "-b", "main")
    write(docs, {".gitignore": ".anvil/\n"})
    first = commit(docs, "first", at=1_700_000_000)
    with anvil.open(docs, provider="none") as found:
        found.index()
    with anvil.open(docs, provider="none", background=background) as found:

        def times() -> dict[str, str]:
            return {page.file_path: page.last_modified[:10] for page in found.list_pages().pages}

        assert set(times().values()) == {"2023-11-14"}
        write(docs, {"install.md": SECOND, "new.md": "# New\n"})
        own = times()
        assert own["install.md"] > "2024-12" < own["new.md"]  # the file's own: no commit has this text
        assert own["guides/alerts.md"] == "2023-11-14"
        edited = found.search("quagga", mode="keyword").results[0].metadata
        assert edited.last_modified[:10] == own["install.md"] == found.get_page("install.md").last_modified[:10]
        assert (found.get_status().index.newest_document or "")[:10] == max(own.values())
        commit(docs, "second", at=1_710_000_000)
        assert times() == {**own, "install.md": "2024-03-09", "new.md": "2024-03-09"}
        hit = found.search("quagga", mode="keyword").results[0].metadata
        assert (hit.file_path, hit.last_modified) == ("install.md", "2024-03-09T16:00:00Z")
        assert found.get_status().index.newest_document == "2024-03-09T16:00:00Z"
        run(docs, "commit", "-q", "--amend", "-m", "amended", at=1_720_000_000)
        assert times()["install.md"] == "2024-07-03"
        run(docs, "reset", "-q", "--soft", first)  # not committed any more
        assert times() == own
        assert found.search("quagga", mode="keyword").freshness.refreshed == ()


def test_an_answer_asks_for_no_times_while_the_commit_stands(
    docs: Path, isolated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(docs, "init", "-q", "-b", "main")
    write(docs, {".gitignore": ".anvil/\n"})
    commit(docs, "first", at=1_700_000_000)
    with anvil.open(docs, provider="none") as found:
        found.index()
        write(docs, {"install.md": SECOND})
        found.list_pages()
        assert found.only.source is not None
        asked: list[object] = []
        real = found.only.source.last_modified

        def last_modified(*given: Any) -> dict[str, str]:
            asked.append(given)
            return real(*given)

        monkeypatch.setattr(found.only.source, "last_modified", last_modified)
        for _ in range(3):
            found.list_pages()
        assert asked == []
        commit(docs, "second", at=1_710_000_000)
        for _ in range(3):
            found.list_pages()
        assert len(asked) == 1


def test_a_first_reading_of_many_pages_is_a_hundred_steps_and_one_walk(
    tmp_path: Path, isolated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "init", "-q", "many")
    write(tmp_path / "many", {f"docs/{number}.md": f"# Page {number}\n" for number in range(300)})
    commit(tmp_path / "many", "pages", at=1_700_000_000)
    walks: list[int] = []
    walk = Repository.last_modified

    def counted(repository: Repository, paths: Collection[str], *rest: Any) -> dict[str, str]:
        walks.append(len(paths))
        return walk(repository, paths, *rest)

    monkeypatch.setattr(Repository, "last_modified", counted)
    tree = WorkingTree(tmp_path / "many/docs")
    copy = MemoryCopy(
        IndexLocation(tmp_path / "index.db"), tree, create_provider("none", EmbeddingSettings(provider="none"))
    )
    copy.begin_empty(ChunkingOptions())
    steps = [copy.read_some(1)]
    while steps[-1][0] < 300:
        steps.append(copy.read_some(1))
    assert steps[:2] == [(3, 300), (6, 300)] and len(steps) == 100
    assert walks == [300]
    assert {time for _, time in copy.reader.times().values()} == {"2023-11-14T22:13:20Z"}
    copy.close()
