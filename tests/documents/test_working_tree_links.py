"""Pages that are symlinks: followed inside the repository, by every source alike, and compared by their target."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.documents.document_source import DocumentSource
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.git.objects import blob_id
from anvil.git.repository import Repository
from anvil.values import Document, Skipped
from tests.documents.test_git_tree import age
from tests.support import in_process
from tests.support.programs import program
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")


def every(root: Path) -> list[DocumentSource]:
    docs = root / "docs"
    return [WorkingTree(docs), StagedTree(docs), CommitTree(docs, "HEAD")]


@pytest.fixture
def linked(root: Path) -> Path:
    """A repository whose front page is its README."""
    write(root / "README.md", "# Lighthouse\n\nKeep the lamp lit.\n")
    (root / "docs/index.md").symlink_to("../README.md")
    commit(root, "a front page", at=1_700_000_500)
    return root


def test_every_source_reads_the_target(linked: Path) -> None:
    for source in every(linked):
        assert source.scan().entries["index.md"] == blob_id((linked / "README.md").read_bytes())
        read = source.read("index.md")
        assert isinstance(read, Document) and "Keep the lamp lit." in read.text
        assert not source.scan().skipped


def test_times_are_those_of_the_target(linked: Path) -> None:
    write(linked / "README.md", "# Lighthouse\n\nPolish the lens.\n")
    commit(linked, "the target alone", at=1_700_009_000)
    for source in every(linked):
        source.scan()
        assert source.last_modified(["index.md"], {}, None) == {"index.md": "2023-11-15T00:43:20Z"}


def test_the_history_is_walked_for_new_pages_and_links_alone(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    walk = Repository.last_modified

    def counted(repository: Repository, paths: Collection[str], *rest: Any) -> dict[str, str]:
        asked.extend(paths)
        return walk(repository, paths, *rest)

    monkeypatch.setattr(Repository, "last_modified", counted)
    tree = WorkingTree(linked / "docs")
    for targets in (["a.md", "README.md"], [], ["docs/a.md"]):
        tree.scan()
        asked.clear()
        times = tree.last_modified(["a.md", "index.md"], {}, None)
        assert asked == targets
        if not targets:
            (linked / "docs/index.md").unlink()
            (linked / "docs/index.md").symlink_to("a.md")
    assert times["index.md"] == times["a.md"] == "2023-11-14T22:13:20Z"


def test_an_edit_of_the_target_is_seen_by_a_tree_that_knew_it(linked: Path) -> None:
    age(linked / "README.md")
    tree = WorkingTree(linked / "docs")
    before = tree.scan()
    assert tree.scan() is before and tree.scan() is before
    write(linked / "README.md", "# Another\n")
    assert tree.scan().entries["index.md"] == blob_id(b"# Another\n")
    (linked / "README.md").unlink()
    assert "index.md" not in tree.scan().entries
    assert [each.reason for each in tree.scan().skipped] == ["a symlink that leads to no file, or in a circle"]
    write(linked / "README.md", "# Back\n")
    assert tree.scan().entries["index.md"] == blob_id(b"# Back\n")


def test_a_link_that_is_set_elsewhere_is_seen(linked: Path) -> None:
    write(linked / "OTHER.md", "# Other\n")
    age(linked / "README.md", linked / "OTHER.md")
    tree = WorkingTree(linked / "docs")
    assert tree.scan() is tree.scan()
    (linked / "docs/index.md").unlink()
    (linked / "docs/index.md").symlink_to("../OTHER.md")
    assert tree.scan().entries["index.md"] == blob_id(b"# Other\n")
    (linked / "docs/index.md").unlink()
    write(linked / "docs/index.md", "# A file now\n")
    assert tree.scan().entries["index.md"] == blob_id(b"# A file now\n")


def test_links_of_links_and_through_folders(linked: Path) -> None:
    (linked / "docs/again.md").symlink_to("index.md")
    write(linked / "parts/real/x.md", "x\n")
    (linked / "parts/alias").symlink_to("real")
    (linked / "docs/far.md").symlink_to("../parts/alias/x.md")
    commit(linked, "chains", at=1_700_000_600)
    for source in every(linked):
        entries = source.scan().entries
        assert entries["again.md"] == entries["index.md"] and entries["far.md"] == blob_id(b"x\n")


def test_what_is_not_followed_is_said_by_every_source_alike(linked: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/secret.md", "secret")
    write(linked / ".env", "TOKEN=x\n")
    write(linked / "deploy.pem", "x\n")
    write(linked / "guide/a.md", "a\n")
    links = {
        "out.md": "../../elsewhere/secret.md",
        "absolute.md": str(linked / "README.md"),
        "hidden.md": "../.env",
        "key.md": "../deploy.pem",
        "self.md": "self.md",
        "gone.md": "nowhere.md",
        "folder.md": "../guide",
        "git.md": "../.git/config",
    }
    for name, target in links.items():
        (linked / "docs" / name).symlink_to(target)
    commit(linked, "astray", at=1_700_000_600)
    said = {each.path: each.reason for each in every(linked)[0].scan().skipped}
    assert sorted(said) == sorted(links)
    assert "out of the repository" in said["out.md"] and "absolute" in said["absolute.md"]
    assert all("no page may show" in said[name] for name in ("hidden.md", "key.md", "git.md"))
    for source in every(linked):
        assert {each.path: each.reason for each in source.scan().skipped} == said
        assert all(isinstance(source.read(name), Skipped) for name in links)
    (linked / "docs/beside.md").symlink_to(f"{linked}-other/a.md")  # not inside, though its path begins so
    said = {each.path: each.reason for each in WorkingTree(linked / "docs").scan().skipped}
    assert "out of the repository" in said["beside.md"]


def test_a_target_that_git_ignores_is_not_read(linked: Path) -> None:
    write(linked / "local/notes.md", "private\n")
    write(linked / ".gitignore", "local/\n")
    (linked / "docs/notes.md").symlink_to("../local/notes.md")
    tree = WorkingTree(linked / "docs")
    assert "notes.md" not in tree.scan().entries and isinstance(tree.read("notes.md"), Skipped)


def test_the_programs_see_an_edited_target(linked: Path) -> None:
    index = linked / "docs.anvil.db"
    check: list[str | Path] = ["check", "--docs", "docs", "--index", index]
    in_process.program("build", "--docs", "docs", "--index", index, "--provider", "none", cwd=linked)
    for tree in ([], ["--staged"], ["--ref", "HEAD"]):
        in_process.program(*check, *tree, cwd=linked)
    write(linked / "README.md", "# Lighthouse\n\nEdited.\n")
    assert "changed  index.md" in program(*check, cwd=linked, code=1).stdout
    in_process.program(*check, "--staged", cwd=linked)
    run(linked, "add", "README.md")
    in_process.program(*check, "--staged", cwd=linked, code=1)
    in_process.program(*check, "--ref", "HEAD", cwd=linked)
    with anvil.open(linked / "docs", index, provider="none") as opened:
        assert "Edited." in opened.get_page("index.md").chunks[0].content
        assert opened.get_page(str(linked / "docs/index.md")).file_path == "index.md"


def test_the_index_of_a_site_sees_it_too(linked: Path) -> None:
    pytest.importorskip("mkdocs")
    config = {
        "site_name": "L",
        "site_url": "https://l.example/",
        "theme": "mkdocs",
        "plugins": [{"anvil": {"embedding": {"provider": "none"}}}],
    }
    write(linked / "mkdocs.yml", json.dumps(config))
    write(linked / ".gitignore", "site/\n.anvil/\n")
    from tests.support import mkdocs_sites as sites

    sites.build(linked)
    index = linked / "site/anvil/index.db"
    with anvil.open(linked / "docs", index, "none") as opened:
        assert not opened.check()
    write(linked / "README.md", "# Lighthouse\n\nEdited.\n")
    with anvil.open(linked / "docs", index, "none") as opened:
        assert opened.check().changed == ("index.md",)
        assert "Edited." in opened.get_page("index.md").chunks[0].content
