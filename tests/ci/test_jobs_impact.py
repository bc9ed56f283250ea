"""``anvil ci impact``: what the action runs in a pull request."""

import json
import os
from pathlib import Path

import pytest

from tests.support.in_process import program
from tests.support.repositories import commit, isolated, run, write

__all__ = ["isolated"]

PAGE = "# Limits\n\nText.\n\n## Size\n\nUse `--max-size` to refuse large files.\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of a pull request that renames a flag."""
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    write(root / "anvil.toml", 'embedding = { provider = "none" }\nimpact = { min_confidence = 0.1 }\n')
    write(root / "docs/limits.md", PAGE)
    for number in range(10):
        write(root / f"docs/{number}.md", f"# Page {number}\n\nSome text.\n")
    write(root / "cli.py", 'parser.add_argument("--max-size")\n')
    commit(root, "first", at=1_700_000_000)
    run(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    write(root / "cli.py", 'parser.add_argument("--size-limit")\n')
    commit(root, "Change it", at=1_700_000_001)
    event = {"pull_request": {"title": "Rename `--max-size`"}}
    write(tmp_path / "event.json", json.dumps(event))
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_BASE_REF": "main",
        "GITHUB_WORKSPACE": str(root),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }.items():
        monkeypatch.setenv(name, value)
    return root


def test_a_pull_request_gets_notices_and_a_part_of_the_summary(root: Path, tmp_path: Path) -> None:
    done = program("ci", "impact", cwd=root)
    assert "::notice file=docs/limits.md,line=7,title=Anvil::This section may be wrong after this change" in done.stdout
    assert "::notice file=cli.py,line=1,title=Anvil::No page has the flag --size-limit." in done.stdout
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("## Documentation: 1 section may be wrong after this change")
    assert "which is in the title of the change" in summary
    assert (tmp_path / "output").read_text() == "impact=1\n"


def test_a_merge_request_of_gitlab_is_known_by_its_variables(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = run(root, "rev-parse", "origin/main")
    run(root, "update-ref", "-d", "refs/remotes/origin/main")  # GitLab fetches the merge request alone
    for name in ("GITHUB_ACTIONS", "GITHUB_BASE_REF", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", base)
    monkeypatch.setenv("CI_MERGE_REQUEST_TITLE", "Rename `--max-size`")
    done = program("ci", "impact", cwd=root)
    assert "notice: docs/limits.md:7: This section may be wrong after this change" in done.stdout
    assert "which is in the title of the change" in done.stdout


@pytest.mark.parametrize(
    "variable",
    [
        "CHANGE_TARGET",
        "SYSTEM_PULLREQUEST_TARGETBRANCHNAME",
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        "BITBUCKET_PR_DESTINATION_BRANCH",
    ],
)
def test_other_programs_name_the_branch_of_a_pull_request(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_BASE_REF", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "main")
    assert "notice: docs/limits.md:7: This section may be wrong" in program("ci", "impact", cwd=root).stdout


def test_it_fails_when_asked(root: Path) -> None:
    program("ci", "impact", "--fail-impact", "true", cwd=root, code=1)


def test_it_is_quiet_when_nothing_is_likely(root: Path, tmp_path: Path) -> None:
    run(root, "reset", "-q", "--hard", "HEAD^")
    write(root / "cli.py", 'parser.add_argument("--max-size")\n# A word.\n')
    done = program("ci", "impact", "--fail-impact", "true", cwd=root)
    assert "::" not in done.stdout
    assert not (tmp_path / "summary.md").exists()


def test_without_the_base_a_warning_says_so(root: Path) -> None:
    run(root, "update-ref", "-d", "refs/remotes/origin/main")
    done = program("ci", "impact", cwd=root)
    assert "::warning title=Anvil::This change is not compared with main" in done.stdout
    assert "fetch-depth: 0" in done.stdout


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_of_another_user_gets_a_warning_that_says_so(root: Path) -> None:
    for path in (root, root / ".git"):
        os.chown(path, 12345, 12345)
    done = program("ci", "impact", cwd=root)
    assert done.returncode == 0 and "safe.directory" in done.stdout and "fetch-depth" not in done.stdout


def test_elsewhere_a_base_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_BASE_REF", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name)
    assert "Name a commit with --base." in program("ci", "impact", cwd=root).stdout
    done = program("ci", "impact", "--base", "HEAD^", cwd=root)
    assert "notice: docs/limits.md:7: This section may be wrong" in done.stdout


def test_a_large_folder_without_an_index_is_searched_by_words(root: Path) -> None:
    for number in range(70):
        write(root / f"docs/many/{number}.md", f"# Part {number}\n\nThe text of part {number}.\n")
    done = program("ci", "impact", "--provider", "local", cwd=root)
    assert "::notice file=docs/limits.md,line=7" in done.stdout and not (root / "docs/.anvil").exists()
