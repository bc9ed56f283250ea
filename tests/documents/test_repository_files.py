"""The quick check of a folder: it never says "the same" of what is not, and does say it of what is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil.documents.working_tree import WorkingTree
from tests.conftest import write


@pytest.fixture
def tree(docs: Path) -> WorkingTree:
    """A scanned folder old enough for its signatures to be trusted."""
    write(docs, {"deep/er/page.md": "# Deep\n", "blank.md": ""})
    time.sleep(0.12)
    found = WorkingTree(docs)
    assert isinstance(found, WorkingTree)
    found.scan()
    found.scan()
    return found


def untouch(docs: Path) -> None:
    """Folders as file systems leave them that keep whole seconds and do not touch a folder for a name in it."""
    for folder in (docs, *(each for each in docs.rglob("*") if each.is_dir())):
        os.utime(folder, (1_000_000_000, 1_000_000_000))


def same(tree: WorkingTree) -> bool:
    return tree._stat_cache is not None and tree._stat_cache.is_current(tree._reread)


def overwrite(docs: Path) -> None:
    """Same size, same time of modification: only the change time tells."""
    page = docs / "index.md"
    before = page.stat()
    page.write_bytes(page.read_bytes().replace(b"Lighthouse", b"Lighthorse"))
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda docs: write(docs, {"index.md": "# Other\n"}),
    "edit that hides": overwrite,
    "new page": lambda docs: write(docs, {"deep/new.md": "# New\n"}),
    "new page in a new folder": lambda docs: write(docs, {"a/b/new.md": "# New\n"}),
    "page gone": lambda docs: (docs / "deep/er/page.md").unlink(),
    "page renamed": lambda docs: (docs / "install.md").rename(docs / "setup.md"),
    "folder renamed": lambda docs: (docs / "guides").rename(docs / "books"),
    "page replaced": lambda docs: (write(docs, {"n.tmp": "# N\n"}), (docs / "n.tmp").replace(docs / "install.md")),
    "two pages swapped": lambda docs: (
        (docs / "install.md").rename(docs / "x"),
        (docs / "index.md").rename(docs / "install.md"),
        (docs / "x").rename(docs / "index.md"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_at_once(tree: WorkingTree, docs: Path, name: str) -> None:
    assert same(tree)
    before = tree.scan()
    if name == "edit that hides" and os.name == "nt":
        pytest.skip("Windows keeps no change time")
    CHANGES[name](docs)
    after = tree.scan()
    assert after is not before and after.entries == WorkingTree(docs).scan().entries != before.entries


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_where_folders_are_not_touched(tree: WorkingTree, docs: Path, name: str) -> None:
    untouch(docs)
    tree.scan()
    assert same(tree) and tree._stat_cache is not None and not tree._stat_cache._folders
    CHANGES[name](docs)
    untouch(docs)
    assert tree.scan().entries == WorkingTree(docs).scan().entries


def test_nothing_changed_gives_the_very_same_scan(tree: WorkingTree) -> None:
    assert tree.scan() is tree.scan() and same(tree)


def test_a_folder_that_may_not_be_listed_is_tried_again(tree: WorkingTree, docs: Path) -> None:
    if os.name == "nt" or os.geteuid() == 0:
        pytest.skip("nothing is forbidden here")
    (docs / "guides").chmod(0)
    assert "guides/alerts.md" not in tree.scan().entries
    time.sleep(0.12)
    tree.scan()
    (docs / "guides").chmod(0o755)
    assert "guides/alerts.md" in tree.scan().entries


def test_a_symlink_is_looked_at_again(tree: WorkingTree, docs: Path, tmp_path: Path) -> None:
    try:
        (docs / "link.md").symlink_to(docs / "index.md")
    except OSError:
        pytest.skip("links are not allowed here")
    tree.scan()
    time.sleep(0.12)
    tree.scan()
    assert same(tree) and any(each.path == "link.md" for each in tree.scan().skipped)


def test_a_page_just_written_is_not_trusted(tree: WorkingTree, docs: Path) -> None:
    for number in range(20):  # faster than the clock of the file system ticks
        write(docs, {"index.md": f"# Number {number % 10}\n"})
        assert tree.scan().entries == WorkingTree(docs).scan().entries


def test_all_pages_are_read_again_after_the_clock_went_back(
    tree: WorkingTree, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    look = WorkingTree._read_file

    def counted(self: WorkingTree, path: str, real: str) -> Any:
        read.append(path)
        return look(self, path, real)

    monkeypatch.setattr(WorkingTree, "_read_file", counted)
    pages, now = sorted(tree.scan().entries), time.time_ns
    for seconds, expected in ((3600, pages), (3600, []), (3599.5, []), (3598, pages), (3598, [])):
        read.clear()
        monkeypatch.setattr(time, "time_ns", lambda seconds=seconds: now() + int(seconds * 1e9))
        tree.scan()
        assert sorted(read) == expected, seconds
