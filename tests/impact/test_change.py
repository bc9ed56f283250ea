import io
import sys
from pathlib import Path

import pytest

from anvil.errors import ConfigError, SourceError
from anvil.impact import change
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]


def paths(found: change.Change) -> list[str]:
    return [file.path for file in change.parse_diff(found.diff)]


def test_the_work_tree_since_head_without_a_remote(root: Path) -> None:
    write(root / "src.py", "edited\n")
    found = change.from_git(root / "docs", None, False)
    assert paths(found) == ["src.py"]
    assert (found.title, found.before) == ("", run(root, "rev-parse", "HEAD"))


def test_a_branch_since_it_left_another(root: Path) -> None:
    start = run(root, "rev-parse", "HEAD")
    run(root, "switch", "-qc", "feature")
    write(root / "src.py", "edited\n")
    commit(root, "Edit the source", at=1_700_000_001)
    write(root / "more.py", "x = 1\n")
    commit(root, "Add more\n\nA body.", at=1_700_000_002)
    run(root, "switch", "-q", "main")
    write(root / "other.py", "x = 1\n")
    commit(root, "elsewhere", at=1_700_000_003)
    run(root, "switch", "-q", "feature")
    found = change.from_git(root, "main", False)
    assert paths(found) == ["more.py", "src.py"]
    assert (found.title, found.before) == ("Edit the source. Add more", start)


def test_the_default_branch_of_the_remote(root: Path, tmp_path: Path) -> None:
    run(tmp_path, "clone", "-q", root.as_uri(), "clone")
    clone = tmp_path / "clone"
    write(clone / "src.py", "edited\n")
    commit(clone, "Edit", at=1_700_000_001)
    assert paths(change.from_git(clone, None, False)) == ["src.py"]


def test_a_bare_repository_is_named_so(root: Path, tmp_path: Path) -> None:
    run(tmp_path, "clone", "-q", "--bare", root.as_uri(), "bare.git")
    for folder in (tmp_path / "bare.git", tmp_path / "bare.git/refs"):
        with pytest.raises(SourceError, match=r"bare\.git is a bare repository.*Clone it"):
            change.from_git(folder, None, False)


def test_what_is_staged(root: Path) -> None:
    write(root / "new name.py", "x = 1\n")
    run(root, "add", "-A")
    write(root / "src.py", "not staged\n")
    found = change.from_git(root, None, True)
    assert paths(found) == ["new name.py"]


def test_before_the_first_commit(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "-b", "main", "new")
    write(tmp_path / "new/a.py", "x = 1\n")
    run(tmp_path / "new", "add", "-A")
    assert paths(change.from_git(tmp_path / "new", None, True)) == ["a.py"]


def test_a_rename_is_one_change(root: Path) -> None:
    write(root / "src.py", "a long line of the file\n" * 20)
    commit(root, "more", at=1_700_000_001)
    (root / "src.py").rename(root / "moved.py")
    run(root, "add", "-A")
    (file,) = change.parse_diff(change.from_git(root, None, True).diff)
    assert (file.old_path, file.path) == ("src.py", "moved.py")


def test_an_unknown_commit_and_no_repository(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="There is no commit 'nope'"):
        change.from_git(root, "nope", False)
    with pytest.raises(SourceError, match="is in no git repository"):
        change.from_git(tmp_path, None, False)


def test_a_file_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    assert paths(change.from_file(str(tmp_path / "x.diff"))) == ["x"]
    with pytest.raises(ConfigError, match="cannot be read"):
        change.from_file(str(tmp_path / "none.diff"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"--- a/y\n+++ b/y\n@@ -1 +1 @@\n-\xff\n+b\n")))
    assert paths(change.from_file("-")) == ["y"]
