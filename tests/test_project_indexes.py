"""What the status says: of the index, its file, and the repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import utime
from pathlib import Path
from typing import Any

import pytest

import anvil
from tests.conftest import PAGES, write
from tests.support import html_sites
from tests.support.repositories import commit, isolated, run

NIGHT = "guides/alerts.md"
__all__ = ["isolated"]  # a fixture


def test_the_status_tells_how_far_the_artifact_is_behind(docs: Path) -> None:
    run(docs, "init", "-q", "-b", "main")
    first = commit(docs, "docs", at=1_700_000_000)
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
        artifact = opened.get_status().index.artifact
        assert artifact and (artifact.commit, artifact.distance, artifact.note) == (first, 0, None)
        write(docs, {"index.md": "# Edited\n"})
        commit(docs, "edit", at=1_700_000_001)
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.distance == 1
        assert artifact.note == "1 page is newer than in this index, and refreshed: index.md."
        run(docs, "checkout", "-q", "--orphan", "other")
        commit(docs, "no ancestor of it", at=1_700_000_002)
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.distance is None


def test_only_some_of_many_pages_are_named(docs: Path) -> None:
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
        write(docs, {f"{number:04}.md": f"# {number}\n" for number in range(1200)})
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.note
        assert artifact.note.startswith("1,200 pages are newer than in this index, and refreshed: 0000.md, ")
        assert artifact.note.endswith("0019.md and 1,180 more.")


@pytest.fixture
def opened(docs: Path) -> Iterator[anvil.Anvil]:
    """The four pages, indexed without vectors."""
    with anvil.open(docs, provider="none") as found:
        found.index()
        yield found


def test_status_tells_the_real_counts(opened: anvil.Anvil, docs: Path) -> None:
    status = opened.get_status()
    listed = opened.list_pages()
    assert status.index.total_pages == listed.total_pages == len(PAGES)
    assert (
        status.index.total_chunks == sum(page.chunk_count for page in listed.pages) == opened.search("x").total_chunks
    )
    assert status.index.db_size_bytes == opened.index_path.stat().st_size
    assert status.index.db_path == str(opened.index_path) and status.server.docs_root == str(docs)
    assert (status.embedding.provider, status.embedding.dimensions) == ("none", 0)
    assert status.server.version == anvil.__version__ and status.git is None
    assert status.index.newest_document == max(page.last_modified for page in listed.pages)


def test_status_says_when_the_file_was_made(docs: Path) -> None:
    """The time of the file itself, not of its documents; none before there is a file."""
    for page in docs.rglob("*.md"):
        utime(page, (1_700_000_000, 1_700_000_000))
    with anvil.open(docs, provider="none", background=True) as opened:
        first = opened.get_status().index
    assert first.newest_document == "2023-11-14T22:13:20Z" and (first.last_indexed is None) == (first.artifact is None)
    with anvil.open(docs, provider="none") as opened:
        opened.index()
        utime(opened.index_path, (1_750_000_000, 1_750_000_000))
        data = opened.index_path.read_bytes()
        status = opened.get_status().index
        assert status.last_indexed == "2025-06-15T15:06:40Z" and status.newest_document == "2023-11-14T22:13:20Z"
        assert status.artifact is not None and status.artifact.built_at == status.last_indexed
        assert b"2025-06-15" not in data, "bytes that are the same from build to build hold no time of a build"
        write(docs, {"new.md": "# New\n"})
        changed = opened.get_status().index
        assert changed.last_indexed == status.last_indexed and (changed.newest_document or "") > "2024"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the four pages under docs/ committed."""
    root = tmp_path / "repo"
    write(root / "docs", PAGES)
    run(root, "init", "-q", "-b", "main")
    commit(root, "first", at=1_700_000_000)
    return root


def git_status(root: Path) -> Any:
    with anvil.open(root / "docs", root.parent / "status.db", "none") as found:
        return found.get_status().git


def test_status_without_a_remote(repository: Path) -> None:
    found = git_status(repository)
    assert run(repository, "rev-parse", "HEAD").startswith(found.head_commit)
    assert (found.origin_main, found.dirty) == (None, False)


def test_dirty_speaks_of_the_docs_only(repository: Path) -> None:
    write(repository, {"src/code.py": "pass\n"})
    assert git_status(repository).dirty is False
    write(repository, {"docs/new.md": "# New\n"})
    assert git_status(repository).dirty is True
    commit(repository, "second", at=1_700_000_100)
    assert git_status(repository).dirty is False
    (repository / "docs/new.md").unlink()
    assert git_status(repository).dirty is True


def test_building_does_not_make_the_docs_dirty(repository: Path) -> None:
    with anvil.open(repository / "docs", provider="none") as found:
        found.index()
        head = run(repository, "rev-parse", "HEAD")
        assert found.get_status().git == anvil.status.GitStatus(head[:7], None, False)
        assert found.search("x").freshness.commit == head
        artifact = found.get_status().index.artifact
        assert artifact and artifact.commit == head
    assert run(repository, "status", "--porcelain") == ""


def test_status_on_a_detached_head(repository: Path) -> None:
    run(repository, "checkout", "-q", "--detach")
    assert run(repository, "rev-parse", "HEAD").startswith(git_status(repository).head_commit)


def test_status_in_a_shallow_clone(repository: Path, tmp_path: Path) -> None:
    write(repository, {"docs/index.md": "# Changed\n"})
    commit(repository, "second", at=1_700_000_100)
    run(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "shallow")
    found = git_status(tmp_path / "shallow")
    head = run(repository, "rev-parse", "HEAD")
    assert head.startswith(found.head_commit) and head.startswith(found.origin_main) and found.dirty is False


def test_status_before_the_first_commit(tmp_path: Path) -> None:
    write(tmp_path / "repo/docs", PAGES)
    run(tmp_path / "repo", "init", "-q")
    found = git_status(tmp_path / "repo")
    assert (found.head_commit, found.origin_main, found.dirty) == (None, None, True)


@pytest.mark.parametrize("damage", ["HEAD", "index", "objects", "config"])
def test_status_never_fails_because_git_does(repository: Path, damage: str) -> None:
    git = repository / ".git"
    if damage == "objects":
        for each in (git / "objects").rglob("*"):
            if each.is_file():
                each.chmod(0o644)
                each.write_bytes(b"broken")
    else:
        (git / damage).write_bytes(b"\0broken")
    with anvil.open(repository / "docs", repository.parent / "status.db", "none") as found:
        status = found.get_status()
        assert status.index.total_pages == 4
        assert found.search("silence at night").results[0].metadata.file_path == NIGHT


def test_the_index_of_a_site_has_a_manifest_of_its_own_bytes(tmp_path: Path) -> None:
    site = html_sites.site(tmp_path / "site")
    manifest = site / "anvil/index.json"
    for repeated in (False, True):
        if repeated:
            manifest.unlink()
        with anvil.open(site=site, provider="none") as opened:
            assert (opened.index().outcome == "unchanged") is repeated
        digest = json.loads(manifest.read_text())["digest"]
    (site / "api/index.html").write_text(html_sites.page("API", "<p>Unloads a ship.</p>", address="api/"))
    with anvil.open(site=site, provider="none") as opened:
        opened.index()
    assert json.loads(manifest.read_text())["digest"] != digest
