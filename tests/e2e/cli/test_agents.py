"""``anvil agents``, and its part of ``anvil check`` and ``anvil build``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process import complaint, program
from tests.support.repositories import isolated, root, run, write

__all__ = ["isolated", "root"]
CONFIG = 'docs = "docs"\nindex = "docs.anvil.db"\n[embedding]\nprovider = "none"\n'


def test_the_pointer_is_written_checked_updated_by_builds_and_removed(root: Path) -> None:
    write(root / "anvil.toml", CONFIG)
    program("agents", "--check", cwd=root, code=1)
    assert program("agents", cwd=root).stdout == "  written  AGENTS.md\nThe pointer is to 1 page.\n"
    assert "`docs/` has 1 page of" in (root / "AGENTS.md").read_text(encoding="utf-8")
    assert program("agents", "--check", cwd=root).stdout == "The pointer for agents is up to date in 1 file.\n"
    program("build", "-q", cwd=root)
    assert program("check", cwd=root).stderr == ""

    write(root / "docs/b.md", "# B\n")
    done = program("check", cwd=root, code=1)
    assert "docs.anvil.db is stale" in done.stdout
    assert done.stderr == "anvil: The pointer for agents is out of date in AGENTS.md. Run: anvil agents\n"
    assert program("agents", "--check", cwd=root, code=1).stdout == done.stderr.removeprefix("anvil: ")
    assert "The pointer for agents was updated in AGENTS.md." in program("build", cwd=root).stdout
    program("check", cwd=root)

    agents = root / "AGENTS.md"
    agents.write_text(agents.read_text(encoding="utf-8").replace("2 pages", "3 pages"), encoding="utf-8")
    found = json.loads(program("check", "--json", cwd=root, code=1).stdout)
    assert found["fresh"] is True and found["agents"] == ["AGENTS.md"]
    assert json.loads(program("agents", "--json", cwd=root).stdout)["files"] == [
        {"path": "AGENTS.md", "outcome": "written"}
    ]
    done = program("agents", "--remove", cwd=root)
    assert done.stdout == "  removed  AGENTS.md\nThe pointer was removed from 1 file.\n" and not agents.exists()
    program("build", "-q", cwd=root)
    assert not agents.exists(), "a build writes to files that have the pointer, and makes none"
    agents.write_text("# Ours\n", encoding="utf-8")
    program("agents", cwd=root)
    done = program("agents", "--remove", cwd=root)
    assert done.stdout.startswith("  written  AGENTS.md\n") and agents.read_text(encoding="utf-8") == "# Ours\n"


@pytest.mark.parametrize("folder", ["docs", "other"])
def test_the_pointer_of_a_collection_is_that_of_its_build(root: Path, folder: str) -> None:
    tables = (
        f'[collections.{name}]\ndocs = "{name}"\n[collections.{name}.source]\nexclude = ["draft*"]\n'
        for name in ("docs", "other")
    )
    write(root / "anvil.toml", '[embedding]\nprovider = "none"\n' + "".join(tables))
    write(root / "other/b.md", "# B\n")
    write(root / folder / "draft.md", "# Draft\n")
    program("agents", "-q", "--docs", folder, cwd=root)
    written = (root / "AGENTS.md").read_bytes()
    assert b" has 1 page of" in written and f"anvil agents: {folder}".encode() in written
    for options in ((), ("--docs", folder)):
        assert "The pointer for agents" not in program("build", *options, cwd=root).stdout
        program("check", *options, cwd=root)
    program("agents", "--check", "--docs", folder, cwd=root)
    program("ci", "check", "--docs", folder, cwd=root)
    assert (root / "AGENTS.md").read_bytes() == written

    write(root / folder / "new.md", "# New\n")
    done = program("check", cwd=root, code=1)
    assert (
        done.stderr == f"anvil: The pointer for agents is out of date in AGENTS.md. Run: anvil agents --docs {folder}\n"
    )
    program("agents", "-q", "--docs", folder, cwd=root)
    assert "The pointer for agents" not in program("build", cwd=root).stdout
    program("check", cwd=root)


def test_files_that_are_no_pages_are_named_and_a_folder_without_pages_has_no_pointer(root: Path) -> None:
    (root / "docs/latin.md").write_bytes(b"# Caf\xe9\n")
    done = program("agents", cwd=root)
    assert "The pointer is to 1 page." in done.stdout and "skipped latin.md: " in done.stderr
    write(root / "empty/note.txt", "no page")
    assert "There are no pages in the documentation folder" in complaint("agents", "--docs", "empty", cwd=root)
    assert "There are no pages in the documentation folder" in complaint(
        "agents", "--print", "--docs", "empty", cwd=root
    )


def test_removing_the_pointer_restores_the_file(root: Path) -> None:
    write(root / "AGENTS.md", "# Rules\n\nBe kind.")
    program("agents", cwd=root)
    program("agents", "--remove", cwd=root)
    assert (root / "AGENTS.md").read_bytes() == b"# Rules\n\nBe kind."


def test_print_writes_nothing_and_options_exclude_each_other(root: Path) -> None:
    text = program("agents", "--print", cwd=root).stdout
    assert "`docs/` has 1 page of" in text
    printed = json.loads(program("agents", "--print", "--json", cwd=root).stdout)
    assert printed["text"] + "\n" == text and printed["pages"] == 1
    assert sorted(path.name for path in root.iterdir()) == [".git", "docs", "src.py"]
    assert "cannot be combined" in complaint("agents", "--print", "--remove", cwd=root)


def test_a_file_with_one_marker_is_named_and_kept(root: Path) -> None:
    write(root / "anvil.toml", CONFIG)
    half = "# Rules\n\n<!-- anvil agents: docs -->\nold\n"
    write(root / "AGENTS.md", half)
    message = "one marker of 'anvil agents' without its counterpart behind it: line 3"
    assert message in program("agents", cwd=root, code=2).stderr
    assert message in program("build", "-q", cwd=root).stderr
    assert message in program("check", cwd=root, code=1).stderr
    assert (root / "AGENTS.md").read_text(encoding="utf-8") == half


def test_the_hooks_see_what_is_staged(root: Path) -> None:
    """The commands of the hooks ``anvil-build`` and ``anvil-check``."""
    write(root / "anvil.toml", CONFIG)
    program("build", "-q", cwd=root)
    program("agents", "-q", cwd=root)
    run(root, "add", "-A")
    program("check", "--staged", "--tracked", "-q", cwd=root)
    write(root / "docs/b.md", "# B\n")
    run(root, "add", "docs")
    write(root / "docs/draft.md", "# Draft\n")
    program("build", "--staged", "--tracked", cwd=root, code=1)
    run(root, "add", "docs.anvil.db")
    done = program("build", "--staged", "--tracked", cwd=root, code=1)
    assert "The pointer for agents is not in the commit yet. Run: git add AGENTS.md" in done.stdout
    content = (root / "AGENTS.md").read_text(encoding="utf-8")
    assert "`docs/` has 2 pages of" in content
    assert "out of date in AGENTS.md" in program("check", "--staged", "--tracked", cwd=root, code=1).stderr
    run(root, "add", "AGENTS.md")
    program("build", "--staged", "--tracked", "-q", cwd=root)
    program("check", "--staged", "--tracked", "-q", cwd=root)


def test_a_build_of_a_commit_writes_no_pointer(root: Path) -> None:
    write(root / "anvil.toml", CONFIG)
    program("agents", "-q", cwd=root)
    write(root / "docs/b.md", "# B\n")
    before = (root / "AGENTS.md").read_bytes()
    program("build", "--ref", "HEAD", "-q", cwd=root)
    assert (root / "AGENTS.md").read_bytes() == before


def test_the_check_of_a_ci_job_marks_the_files(root: Path) -> None:
    write(root / "anvil.toml", CONFIG)
    program("build", "-q", cwd=root)
    program("ci", "check", cwd=root)
    program("agents", "-q", cwd=root)
    program("ci", "check", cwd=root)
    agents = root / "AGENTS.md"
    agents.write_text(agents.read_text(encoding="utf-8").replace("1 page ", "2 pages "), encoding="utf-8")
    done = program("ci", "check", cwd=root, code=1)
    assert "is fresh" in done.stdout
    assert "error: The pointer for agents is out of date in AGENTS.md. Run: anvil agents" in done.stdout


def test_a_merge_conflict_in_the_pointer_is_settled_by_writing_it_again(root: Path) -> None:
    program("agents", "-q", cwd=root)
    run(root, "add", "-A")
    run(root, "commit", "-q", "-m", "pointer", at=1_700_000_100)
    run(root, "branch", "other")
    for branch, pages in (("main", "b"), ("other", "cd")):
        run(root, "checkout", "-q", branch)
        for page in pages:
            write(root / f"docs/{page}.md", f"# Page {page}\n")
        program("agents", "-q", cwd=root)
        run(root, "add", "-A")
        run(root, "commit", "-q", "-m", pages, at=1_700_000_200)
    with pytest.raises(AssertionError):
        run(root, "merge", "-q", "main")
    assert "<<<<<<<" in (root / "AGENTS.md").read_text(encoding="utf-8")
    program("agents", "-q", cwd=root)
    content = (root / "AGENTS.md").read_text(encoding="utf-8")
    assert "<<<<<<<" not in content and "`docs/` has 4 pages of" in content


def test_advice_has_the_options_of_the_call(root: Path) -> None:
    write(root / "pages/x.md", "# X\n")
    program("agents", "pages", "-q", cwd=root)
    program("build", "pages", "-q", "--provider", "none", cwd=root)
    write(root / "pages/y.md", "# Y\n")
    assert "Run: anvil agents --docs pages\n" in program("check", "pages", cwd=root, code=1).stderr
    program("agents", "--docs", "pages", cwd=root)
    program("agents", "pages", "--check", "-q", cwd=root)
