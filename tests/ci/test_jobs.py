"""``anvil ci check``: whether the job passes. ``anvil ci lint``: the order of its findings."""

import shutil
from pathlib import Path

import pytest

from tests.support.in_process import program
from tests.support.repositories import commit, isolated, run, write

__all__ = ["isolated"]


def test_a_pointer_that_is_not_up_to_date_fails_the_check(tmp_path: Path) -> None:
    write(tmp_path / "anvil.toml", 'embedding = { provider = "none" }\n')
    write(tmp_path / "docs/limits.md", "# Limits\n\nText.\n")
    run(tmp_path, "init", "-q", "-b", "main")
    program("build", cwd=tmp_path)
    program("agents", cwd=tmp_path)
    assert "index.db is fresh" in program("ci", "check", cwd=tmp_path).stdout
    pointer = tmp_path / "AGENTS.md"
    write(pointer, pointer.read_text(encoding="utf-8").replace("1 page", "7 pages"))
    done = program("ci", "check", cwd=tmp_path, code=1)
    assert "index.db is fresh" in done.stdout
    assert "The pointer for agents is out of date in AGENTS.md. Run: anvil agents" in done.stdout + done.stderr


def test_in_a_pull_request_findings_that_it_adds_are_annotated_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    write(root / "anvil.toml", 'embedding = { provider = "none" }\n')
    write(root / "docs/a.md", "\n".join(f"[gone](gone{number}.md)" for number in range(12)))
    write(root / "docs/b.md", "[here](c.md)\n")
    write(root / "docs/c.md", "Text.\n")
    commit(root, "first", at=1_700_000_000)
    run(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    (root / "docs/c.md").unlink()
    commit(root, "second", at=1_700_000_001)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    errors = [line for line in program("ci", "lint", cwd=root, code=1).stdout.splitlines() if "broken-link" in line]
    assert errors[0].startswith("::error file=docs/b.md,line=1,title=Anvil::Broken link 'c.md'")
    assert sum(line.startswith("::error") for line in errors) == 10

    run(root, "checkout", "-q", "--orphan", "other")
    shutil.move(root / "docs", root / "pages")
    lines = program("ci", "lint", "--docs", "pages", cwd=root, code=1).stdout.splitlines()
    assert lines[0].startswith("::error file=pages/a.md,line=1,")  # the base has no such folder

    run(root, "update-ref", "-d", "refs/remotes/origin/main")
    lines = program("ci", "lint", "--docs", "pages", cwd=root, code=1).stdout.splitlines()
    assert lines[0].startswith("This change is not compared with main: this checkout lacks its commits.")
