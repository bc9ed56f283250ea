"""The index as git holds it: staged, in a commit, in conflict, kept by Git LFS."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from anvil.errors import ArtifactError, ArtifactMissing, ArtifactRejected, SourceError
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file import verify
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name


@pytest.fixture
def index(root: Path, monkeypatch: pytest.MonkeyPatch) -> TrackedIndex:
    """A tracked file of some bytes, at the repository's root, which is the working folder."""
    monkeypatch.chdir(root)
    (root / "docs.anvil.db").write_bytes(b"one\r\n\0")
    commit(root, "an index", at=1_700_000_100)
    return TrackedIndex(root / "docs.anvil.db", root / "docs")


def held(index: TrackedIndex, revision: str | None = None) -> tuple[bytes, bool]:
    """The bytes, and whether they are read from the folder."""
    with index.file(revision) as file:
        return file.read_bytes(), file == index.index


def test_the_file_in_the_folder_serves_as_long_as_it_is_the_one_in_git(index: TrackedIndex) -> None:
    assert held(index) == held(index, "HEAD") == (b"one\r\n\0", True) and index.is_staged()
    index.index.write_bytes(b"two\0")
    assert held(index) == (b"one\r\n\0", False) and not index.is_staged()
    run(index.index.parent, "add", "-A")
    assert held(index) == (b"two\0", True) and held(index, "HEAD") == (b"one\r\n\0", False) and index.is_staged()
    index.index.unlink()
    with index.file() as copy:
        assert copy.read_bytes() == b"two\0"
    assert not copy.exists()


def test_what_is_not_there_is_said_with_the_next_step(index: TrackedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArtifactMissing, match="Name another commit"):
        held(index, "HEAD~1")
    with pytest.raises(SourceError, match="no commit 'nonsense'"):
        held(index, "nonsense")
    run(index.index.parent, "rm", "-q", "--cached", "docs.anvil.db")
    with pytest.raises(ArtifactMissing, match=r"not in the commit\. Run: git add docs\.anvil\.db"):
        held(index)
    monkeypatch.chdir(index.docs)
    with pytest.raises(ArtifactMissing, match=r"Run: git add \.\./docs\.anvil\.db"):
        held(index)
    index.index.unlink()
    with pytest.raises(ArtifactMissing, match="Build it"):
        held(index)
    write(index.index.parent / ".gitignore", "*.db\n")
    with pytest.raises(ArtifactMissing, match="check-ignore"):
        held(index)


def test_links_and_conflicts_are_no_index(index: TrackedIndex) -> None:
    top = index.index.parent
    run(top, "checkout", "-q", "-b", "other")
    index.index.write_bytes(b"two\0")
    commit(top, "other", at=1_700_000_200)
    run(top, "checkout", "-q", "main")
    index.index.write_bytes(b"three\0")
    commit(top, "main", at=1_700_000_300)
    with pytest.raises(AssertionError, match="git"):
        run(top, "merge", "other")
    with pytest.raises(ArtifactRejected, match="in conflict"):
        held(index)
    run(top, "reset", "-q", "--hard")
    index.index.unlink()
    index.index.symlink_to("src.py")
    commit(top, "a link", at=1_700_000_400)
    with pytest.raises(ArtifactRejected, match="is a symlink"):
        held(TrackedIndex(index.index, top / "docs"))


def test_git_lfs_keeps_the_bytes_elsewhere(index: TrackedIndex) -> None:
    data, top = b"SQLite format 3\0 and so on", index.index.parent
    name = hashlib.sha256(data).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize {len(data)}\n"
    write(index.index, pointer)
    commit(top, "a pointer", at=1_700_000_200)
    index.index.write_bytes(data)  # as its filter leaves it in the folder
    assert held(index) == (data, True) and index.is_staged()
    index.index.write_bytes(b"another build")
    with pytest.raises(ArtifactMissing, match="git lfs fetch"):
        held(index)
    stored = top / ".git/lfs/objects" / name[:2] / name[2:4] / name
    stored.parent.mkdir(parents=True)
    stored.write_bytes(data)
    assert held(index) == (data, False) and not index.is_staged()


def test_a_complaint_about_what_is_staged_names_the_index_not_a_temporary_file(index: TrackedIndex) -> None:
    run(index.index.parent, "rm", "-q", "--cached", "src.py")
    index.index.unlink()
    with pytest.raises(ArtifactError) as caught, index.file() as file:
        verify.check(file)
    assert str(caught.value).startswith("docs.anvil.db, staged, is not an Anvil index")


def test_documents_and_index_belong_to_one_repository(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with pytest.raises(SourceError, match="not in a git repository"):
        TrackedIndex(outside / "docs.anvil.db", root / "docs")
    run(outside, "init", "-q")
    with pytest.raises(SourceError, match="different repositories"):
        TrackedIndex(outside / "docs.anvil.db", root / "docs")
