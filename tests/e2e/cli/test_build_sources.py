"""``anvil build`` of what is staged or committed, in shards, and what CI makes of the committed result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import PAGES, write
from tests.support import repositories
from tests.support.in_process import complaint, printed, program
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation)  # here only where asked for
INDEX = "docs.anvil.db"


@pytest.fixture
def work(isolated: None, tmp_path: Path) -> Path:
    """A repository with four committed pages, a configuration without vectors, and no index yet."""
    work = tmp_path / "work"
    write(work / "docs", PAGES)
    write(work, {"anvil.toml": f'docs = "docs"\nindex = "{INDEX}"\n[embedding]\nprovider = "none"\n'})
    run(work, "init", "-q", "-b", "main")
    commit(work, "first", at=1_700_000_000)
    return work


def test_a_staged_tree_without_pages_is_not_the_folder(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q")
    write(tmp_path / "docs", {"index.md": "# Not staged\n"})
    told = program("build", "--staged", "--provider", "none", cwd=tmp_path).stderr
    assert "Nothing staged in " in told and " is a page: none fits " in told
    assert "is a page" not in program("build", "--provider", "none", cwd=tmp_path).stderr


def test_each_command_that_compares_pages_says_that_the_repository_cannot_be_read(work: Path) -> None:
    (work / ".git/HEAD").unlink()
    for words in (["build"], ["build"], ["check"], ["search", "alerts"]):
        told = program(*words, cwd=work).stderr
        assert "is not a complete repository" in told and "Files that git ignores are not left out. " in told


def test_what_is_staged_is_built_and_nothing_else(work: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write(work / "docs", {"index.md": "# Staged\n", "new.md": "# New\n"})
    run(work, "add", "docs")
    write(work / "docs", {"index.md": "# Not staged\n", "draft.md": "# Draft\n"})
    built = printed("build", "--staged", cwd=work)
    assert built["pages"] == 5
    elsewhere = tmp_path_factory.mktemp("elsewhere")  # where there is nothing to compare with
    assert "# Staged" in program("show", "index.md", "--index", work / INDEX, cwd=elsewhere).stdout
    program("check", "--staged", cwd=work)
    assert printed("check", cwd=work, code=1)["added"] == ["draft.md"]
    assert printed("build", "--staged", cwd=work)["outcome"] == "unchanged"
    old = printed("build", "--ref", "HEAD", cwd=work)
    assert old["changes"] == {"changed": ["index.md"], "added": [], "removed": ["new.md"]}
    program("check", "--ref", "HEAD", cwd=work)


def test_the_folder_of_documents_in_git_may_be_missing_in_the_work_tree(work: Path) -> None:
    """As in a sparse checkout, and for a tag from before the folder was renamed."""
    (work / "docs").rename(work / "manual")
    assert "There is no folder docs" in complaint("build", "--docs", "docs", cwd=work)
    for words in (["--ref", "HEAD"], ["--staged"], ["--ref", "HEAD", "--docs", "docs"]):
        assert printed("build", *words, "--index", "old.db", cwd=work)["pages"] == 4
        program("check", *words, "--index", "old.db", cwd=work)
    assert not (work / "docs").exists()
    assert "has no folder gone" in complaint("build", "--ref", "HEAD", "--docs", "gone", cwd=work)
    (work / "anvil.toml").unlink(missing_ok=True)  # the default place of the index
    assert printed("build", "--ref", "HEAD", "--docs", "docs", cwd=work)["pages"] == 4
    assert sorted(path.name for path in (work / "docs/.anvil").iterdir()) == [".gitignore", "index.db"]


def test_ci_leaves_an_index_alone_that_was_built_before_its_own_commit(work: Path, tmp_path: Path) -> None:
    write(work / "docs", {"index.md": "# Staged\n"})
    run(work, "add", "docs")
    program("build", "--staged", cwd=work)
    commit(work, "pages and their index", at=1_700_000_100)
    clone = tmp_path / "ci"
    run(tmp_path, "clone", "-q", "--depth", "1", f"file://{work}", str(clone))
    index = clone / INDEX
    os.utime(index, (1_700_000_000, 1_700_000_000))
    before = index.read_bytes()
    for option in ([], ["--staged"], ["--ref", "HEAD"]):
        assert printed("build", *option, cwd=clone)["outcome"] == "unchanged"
    assert (index.read_bytes(), index.stat().st_mtime) == (before, 1_700_000_000)
    scratch = printed("build", "--index", tmp_path / "scratch.db", cwd=clone)
    assert scratch["digest"] == printed("verify", INDEX, cwd=clone)["manifest"]["digest"]
    assert run(clone, "status", "--porcelain") == ""


def test_shards_are_built_and_joined(work: Path) -> None:
    for shard in ("1/2", "2/2"):
        program("build", "--shard", shard, "--index", f"shard-{shard[0]}.db", cwd=work)
    program("build", cwd=work)
    assert "4 pages" in program("merge", "out.db", "shard-2.db", "shard-1.db", cwd=work).stdout
    assert (work / "out.db").read_bytes() == (work / INDEX).read_bytes()
    assert "It is shard 2/2." in program("verify", "shard-2.db", cwd=work).stdout
    assert "shard 2/2 of an index" in complaint("check", "--index", "shard-2.db", cwd=work)
    assert "Missing: shard 2/2" in complaint("merge", "other.db", "shard-1.db", cwd=work)
    assert "such as 3/8" in complaint("build", "--shard", "4/3", "--index", "shard.db", cwd=work)


def test_a_shard_does_not_replace_the_whole_index(work: Path) -> None:
    program("build", cwd=work)
    whole = (work / INDEX).read_bytes()
    assert "Name another file with --index" in complaint("build", "--shard", "1/2", cwd=work)
    assert (work / INDEX).read_bytes() == whole


def test_two_states_at_once_are_refused(work: Path) -> None:
    assert "cannot be combined" in program("build", "--staged", "--ref", "HEAD", cwd=work, code=2).stderr


def test_the_index_is_added_to_git_once_it_is_to_be_committed(
    isolated: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of 'Before a commit' in the guide 'Keep the index fresh'."""
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    where = tmp_path / "work"
    write(where, {"docs/a.md": "# A\n"})
    run(where, "init", "-q", "-b", "main")
    run(where, "add", "docs")
    program("build", "--staged", cwd=where)
    with pytest.raises(AssertionError, match="ignored by one of your"):
        run(where, "add", "docs/.anvil/index.db")
    program("init", "--yes", "--commit-index", cwd=where)
    program("build", "--staged", cwd=where)
    run(where, "add", "docs/.anvil/index.db")
    assert "fresh" in program("check", "--staged", "--tracked", cwd=where).stdout
