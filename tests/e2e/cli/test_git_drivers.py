"""``anvil git install``: the index in the real git's merges and diffs, on real branches."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import anvil
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file import verify
from tests.conftest import PAGES, linked, write
from tests.support import repositories
from tests.support.commits import call, program_folder
from tests.support.programs import complaint, program
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation, autouse=True)
INDEX = "docs.anvil.db"
LINE = f"/{INDEX} -text diff=anvil merge=anvil"
NEW = {
    name: f"\n## {name}\n\n" + f"What is told here is the {name} story, at some length. " * 6 + "\n"
    for name in ("Left", "Right", "Third")
}
"""Sections that stand for themselves: too long to be put together with their neighbours."""
NOTES = {"left": ("Of the left. ", ""), "right": ("", "Of the right. ")}
"""Words that both sides put into one short section."""


@pytest.fixture(autouse=True)
def tools(isolated: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program_folder(tmp_path / "bin")), prepend=":")
    monkeypatch.setenv("GIT_EDITOR", "true")


def repository(work: Path, provider: str, pages: dict[str, str] = PAGES) -> Path:
    """Pages and their index, committed; the drivers installed."""
    write(work / "docs", pages)
    write(work, {"anvil.toml": f'docs = "docs"\nindex = "{INDEX}"\n[embedding]\nprovider = "{provider}"\n'})
    run(work, "init", "-q", "-b", "main")
    program("git", "install", cwd=work)
    driver = run(work, "config", "merge.anvil.driver")
    run(work, "config", "merge.anvil.driver", re.sub(r"^\S+", "anvil", driver))  # the package under test
    run(work, "config", "diff.anvil.textconv", "anvil git textconv")
    return save(work, "first")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Without vectors."""
    return repository(tmp_path / "work", "none")


def save(work: Path, message: str) -> Path:
    """Commit everything, with the index of it."""
    run(work, "add", "-A")
    with anvil.open(config=work / "anvil.toml") as opened:
        opened.index(source=StagedTree(work / "docs"))
    commit(work, message, at=1_700_000_000)
    return work


def append(work: Path, page: str, text: str) -> None:
    with (work / "docs" / page).open("a", encoding="utf-8") as file:
        file.write(text)


def insert(work: Path, page: str, text: str) -> None:
    """A section before the page's first one of the second level."""
    file = work / "docs" / page
    file.write_text(file.read_text(encoding="utf-8").replace("\n## ", f"{text}\n## ", 1), encoding="utf-8")


def branches(work: Path, also: Callable[[str], object] = str) -> None:
    """``left`` and ``right``: they edit the same page, and other ones; ``right`` also adds, moves and removes."""
    run(work, "checkout", "-q", "-b", "left", "main")
    insert(work, "guides/alerts.md", NEW["Left"])
    append(work, "index.md", NEW["Left"])
    also("left")
    save(work, "left")
    run(work, "checkout", "-q", "-b", "right", "main")
    also("right")
    append(work, "guides/alerts.md", NEW["Right"])
    write(work / "docs", {"guides/new.md": "# New\n" + NEW["Right"]})
    (work / "docs/install.md").unlink()
    run(work, "mv", "docs/guides/checks.md", "docs/checks.md")
    save(work, "right")


def scratch(work: Path, tmp_path: Path, revision: str = "HEAD") -> Path:
    """The index that a build from nothing makes of a commit."""
    index = tmp_path / "scratch.db"
    index.unlink(missing_ok=True)
    with (
        anvil.open(config=work / "anvil.toml") as opened,
        anvil.open(work / "docs", index, config=opened.config) as other,
    ):
        other.index(source=CommitTree(work / "docs", revision))
    return index


def assert_right(work: Path, tmp_path: Path) -> None:
    """The committed index says, whole, what the commit's pages say, with the vectors that a new build would make."""
    assert run(work, "status", "--porcelain") == ""
    with (
        TrackedIndex(work / INDEX, work / "docs").file("HEAD") as file,
        verify.open_checked(file) as found,
        verify.open_checked(scratch(work, tmp_path)) as wanted,
    ):
        assert found.meta()["digest"] == wanted.meta()["digest"]
        assert found.meta()["needs_reembed"] == "0"
        if wanted.has_vectors():
            assert found.window_keys() == wanted.window_keys()
            (rows, vectors), (wanted_rows, wanted_vectors) = found.matrix(), wanted.matrix()
            assert np.array_equal(rows, wanted_rows) and np.array_equal(vectors, wanted_vectors)


# --- merging ---------------------------------------------------------------------------------------------------


def test_a_merge_takes_the_vectors_of_both_sides_and_embeds_what_neither_had(tmp_path: Path) -> None:
    notes = "# Notes\n\nFirst.\n\n{}Some words.\n\nMore words.\n\nYet more words.\n\n{}Last.\n"
    work = repository(tmp_path / "work", "local", {**PAGES, "notes.md": notes.format("", "")})
    branches(work, lambda side: write(work / "docs", {"notes.md": notes.format(*NOTES[side])}))
    said = call(work, "git", "merge", "left", "--no-edit")
    assert f"merged {INDEX}: 5 pages; 1 passage embedded" in said  # the notes as both sides together have them
    assert_right(work, tmp_path)
    assert (work / "docs/guides/alerts.md").read_text().count("story") == 12  # both sides' sections are in one page
    with anvil.open(config=work / "anvil.toml") as opened:
        assert opened.index().outcome == "unchanged"


@pytest.mark.parametrize("way", ["merge", "squash", "rebase", "cherry-pick", "revert", "stash"])
def test_whatever_merges(work: Path, tmp_path: Path, way: str) -> None:
    branches(work)
    if way == "merge":
        call(work, "git", "merge", "left", "--no-edit")
    elif way == "squash":
        call(work, "git", "merge", "--squash", "left")
        run(work, "commit", "-q", "-m", "squashed")
    elif way == "rebase":
        append(work, "guides/new.md", NEW["Third"])
        save(work, "a second commit to be moved")
        assert call(work, "git", "rebase", "left").count(f"merged {INDEX}") == 2
    elif way == "cherry-pick":
        call(work, "git", "cherry-pick", "left")
    elif way == "revert":
        append(work, "index.md", NEW["Third"])
        save(work, "third")
        call(work, "git", "revert", "--no-edit", "HEAD~1")
        assert (work / "docs/install.md").exists() and not (work / "docs/guides/new.md").exists()
    else:
        append(work, "index.md", NEW["Third"])
        run(work, "stash", "-q")
        append(work, "guides/new.md", NEW["Third"])
        save(work, "third")
        insert(work, "guides/alerts.md", NEW["Third"])
        with anvil.open(config=work / "anvil.toml") as opened:
            opened.index()
        run(work, "stash", "-q")
        insert(work, "index.md", NEW["Left"])
        save(work, "fourth")
        assert f"merged {INDEX}" in call(work, "git", "stash", "pop")
        run(work, "commit", "-q", "-a", "-m", "unstashed")
    assert_right(work, tmp_path)


def test_branches_that_were_merged_into_each_other(work: Path, tmp_path: Path) -> None:
    """Two common ancestors: git merges these first, with the same driver, and takes that for the base."""
    branches(work)
    run(work, "branch", "right-before")
    call(work, "git", "merge", "left", "--no-edit")
    run(work, "checkout", "-q", "left")
    call(work, "git", "merge", "right-before", "--no-edit")
    append(work, "guides/new.md", NEW["Left"])
    save(work, "left again")
    run(work, "checkout", "-q", "right")
    append(work, "index.md", NEW["Third"])
    save(work, "right again")
    call(work, "git", "merge", "left", "--no-edit")
    assert_right(work, tmp_path)


def test_pages_in_conflict_leave_no_conflict_of_the_index(work: Path, tmp_path: Path) -> None:
    for side in ("left", "right"):
        run(work, "checkout", "-q", "-b", side, "main")
        write(work / "docs", {"index.md": f"# {side}\n", f"{side}.md": f"# {side}\n"})
        if side == "left":
            (work / "docs/install.md").unlink()
        else:
            append(work, "install.md", NEW["Right"])
        save(work, side)
    said = call(work / "docs", "git", "merge", "left", code=1)  # the command is for the folder that is worked in
    assert "has one side of index.md, install.md" in said
    fix = re.findall(r"then run: (.*)", said)[0]
    assert run(work, "diff", "--name-only", "--diff-filter=U").split() == ["docs/index.md", "docs/install.md"]
    run(work, "checkout", "--theirs", "docs/index.md")
    run(work, "add", "docs")
    assert "changed  index.md" in program("check", "--staged", "--tracked", cwd=work, code=1).stdout
    call(work / "docs", "sh", "-c", fix)
    run(work, "commit", "-q", "--no-edit")
    assert_right(work, tmp_path)


def test_both_sides_bring_the_first_index(work: Path, tmp_path: Path) -> None:
    run(work, "rm", "-q", INDEX)
    commit(work, "no index", at=1_700_000_000)
    for side in ("left", "right"):
        run(work, "checkout", "-q", "-b", side, "main")
        write(work / "docs", {f"{side}.md": f"# {side}\n"})
        save(work, side)
    call(work, "git", "merge", "left", "--no-edit")
    assert_right(work, tmp_path)


def test_settings_that_one_side_changed_are_those_of_the_merge(work: Path, tmp_path: Path) -> None:
    settings = (work / "anvil.toml").read_text()
    run(work, "checkout", "-q", "-b", "left", "main")
    write(work, {"anvil.toml": settings + "[chunking]\nmin_chunk_size = 0\nmax_chunk_size = 300\n"})
    append(work, "index.md", NEW["Left"])
    save(work, "left")
    run(work, "checkout", "-q", "-b", "right", "main")
    append(work, "install.md", NEW["Right"])
    save(work, "right")
    for ours, theirs in (("right", "left"), ("left", "right")):
        run(work, "checkout", "-q", "--detach", ours)
        call(work, "git", "merge", theirs, "--no-edit")
        assert_right(work, tmp_path)


def test_what_cannot_be_merged_stays_a_conflict_with_the_reason(work: Path) -> None:
    run(work, "checkout", "-q", "-b", "left", "main")
    (work / INDEX).write_bytes((work / INDEX).read_bytes()[:5000])
    commit(work, "left", at=1_700_000_000)
    run(work, "checkout", "-q", "-b", "right", "main")
    append(work, "index.md", NEW["Right"])
    save(work, "right")
    before = (work / INDEX).read_bytes()
    said = call(work, "git", "merge", "left", code=1)
    assert f"{INDEX} could not be merged" in said and "Traceback" not in said
    assert (work / INDEX).read_bytes() == before
    fix = re.findall(r"Then run: (.*)", said)[0]
    call(work, "sh", "-c", fix)
    run(work, "commit", "-q", "--no-edit")


def test_a_clone_without_the_drivers_has_a_conflict_as_ever(work: Path, tmp_path: Path) -> None:
    branches(work)
    clone = tmp_path / "clone"
    run(tmp_path, "clone", "-q", "-b", "right", str(work), str(clone))
    assert f"Merge conflict in {INDEX}" in call(clone, "git", "merge", "origin/left", code=1)
    run(clone, "merge", "--abort")
    program("git", "install", cwd=clone)
    run(clone, "config", "merge.anvil.driver", run(work, "config", "merge.anvil.driver"))
    assert run(clone, "status", "--porcelain") == ""  # the line in .gitattributes came with the clone
    call(clone, "git", "merge", "origin/left", "--no-edit")
    assert_right(clone, tmp_path)


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_an_index_that_git_lfs_keeps(tmp_path: Path) -> None:
    work = tmp_path / "100% wörk"
    work.mkdir()
    run(work, "init", "-q", "-b", "main")
    run(work, "lfs", "install", "--local")
    run(work, "lfs", "track", INDEX)
    repository(work, "none")
    program("git", "install", cwd=work)
    branches(work)
    assert run(work, "show", f"HEAD:{INDEX}").startswith("version https://git-lfs")
    assert "New > Right" in run(work, "show", "HEAD", "--", INDEX)
    said = call(work, "git", "merge", "left", code=1)
    command = f"anvil build --staged --index {INDEX} && git add {INDEX}"
    assert f"{INDEX} could not be merged" in said and f"Then run: {command}" in said
    program("build", "--staged", "--index", INDEX, cwd=work)
    run(work, "add", INDEX)
    run(work, "commit", "-q", "--no-edit")
    assert_right(work, tmp_path)


def test_a_page_whose_text_is_in_no_commit_does_not_stop_the_merge(work: Path, tmp_path: Path) -> None:
    branches(work)
    write(work / "docs", {"index.md": "# Built, but never committed\n"})
    with anvil.open(config=work / "anvil.toml") as opened:
        opened.index()
    run(work, "checkout", "-q", "docs/index.md")
    commit(work, "an index that is stale", at=1_700_000_000)
    assert "has one side of index.md" in call(work, "git", "merge", "left", "--no-edit")
    program("check", cwd=work, code=1)
    with anvil.open(config=work / "anvil.toml") as opened:
        assert opened.index().changes.changed == ("index.md",)


# --- diffs -----------------------------------------------------------------------------------------------------


def test_diffs_name_what_changed_and_no_more(work: Path) -> None:
    branches(work)
    shown = run(work, "show", "left", "--", INDEX)
    changed = [line[0] + line[17:] for line in shown.splitlines() if re.match(r"[-+]    [0-9a-f]{10}", line)]
    assert changed == [
        "+Alerts > Left",
        "-Lighthouse > Why another monitor",
        "+Lighthouse > Why another monitor",
        "+Lighthouse > Left",
    ]
    assert "Binary" not in shown and len(shown.splitlines()) < 50
    assert run(work, "show", "left", "--", INDEX) == shown  # from git's cache, and the same
    shown = run(work, "show", "right", "--", INDEX)
    assert "-install.md" in shown and "+guides/new.md" in shown and "+    " in shown and "New > Right" in shown
    append(work, "index.md", NEW["Third"])
    with anvil.open(config=work / "anvil.toml") as opened:
        opened.index()
    assert "Lighthouse > Third" in run(work, "diff", "--", INDEX) and run(work, "diff", "--cached") == ""


def test_a_damaged_index_in_the_history_does_not_end_the_log(work: Path) -> None:
    (work / INDEX).write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    commit(work, "damaged", at=1_700_000_000)
    (work / INDEX).write_bytes(b"")
    commit(work, "empty", at=1_700_000_000)
    shown = run(work, "log", "-p", "--", INDEX)
    assert "+This file is damaged" in shown and "Anvil index, format 5" in shown and "/tmp" not in shown


def test_patches_of_an_index_are_binary_and_whole(work: Path) -> None:
    """pre-commit, format-patch and stashes go by git's plumbing, which must never be given the text in its place."""
    branches(work)
    built = (work / INDEX).read_bytes()
    patch = run(work, "format-patch", "--stdout", "-1", "--binary") + "\n"
    assert "GIT binary patch" in patch and "Anvil index, format" not in patch
    run(work, "checkout", "-q", "--detach", "main")
    write(work, {"../patch": patch})
    call(work, "git", "am", "../patch")
    assert (work / INDEX).read_bytes() == built
    write(work, {".gitattributes": f"* text eol=crlf\n{LINE}\n"})
    run(work, "rm", "-q", "--cached", INDEX)
    run(work, "add", "-A")
    assert run(work, "rev-parse", f":{INDEX}") == run(work, "rev-parse", f"right:{INDEX}")  # no line ending converted


# --- installing ------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A repository with pages and nothing installed."""
    write(tmp_path / "plain/docs", PAGES)
    run(tmp_path / "plain", "init", "-q")
    return tmp_path / "plain"


def test_install_adds_a_line_once_and_uninstall_takes_it_out(plain: Path) -> None:
    file, config = plain / ".gitattributes", plain / ".git/config"
    file.write_bytes(b"*.png binary\r\n\xff.sh text")
    settings = config.read_text()
    arguments = ("--index", INDEX)
    assert "Commit it" in program("git", "install", *arguments, cwd=plain).stdout
    written, installed = file.read_bytes(), config.read_text()
    assert written == b"*.png binary\r\n\xff.sh text\r\n" + LINE.encode() + b"\r\n"
    assert "already" in program("git", "install", *arguments, cwd=plain).stdout
    assert (file.read_bytes(), config.read_text()) == (written, installed)
    attributes = run(plain, "check-attr", "diff", "merge", "text", "--", INDEX, f"docs/{INDEX}").splitlines()
    assert [each.split(": ")[-1] for each in attributes] == ["anvil", "anvil", "unset", *["unspecified"] * 3]
    program("git", "uninstall", *arguments, cwd=plain)
    assert file.read_bytes() == b"*.png binary\r\n\xff.sh text\r\n"
    assert "anvil git" not in config.read_text() and config.read_text().startswith(settings)
    file.unlink()
    program("git", "install", *arguments, cwd=plain)
    program("git", "uninstall", *arguments, cwd=plain)
    assert not file.exists()


def test_install_writes_through_no_link_of_a_checkout(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "away").write_text("mine\n")
    linked(plain / ".gitattributes", tmp_path / "away")
    assert "is a link" in complaint("git", "install", "--index", INDEX, cwd=plain)
    assert (tmp_path / "away").read_text() == "mine\n"


def test_the_index_that_a_hook_names_or_git_tracks_is_protected(plain: Path) -> None:
    """As after the first example of the guide on hooks: the configured place holds nothing."""
    program("build", "--provider", "none", cwd=plain)  # and with it a .gitignore in its folder
    assert " yet. Git ignores it: run " in program("git", "install", cwd=plain).stderr
    assert not program("git", "uninstall", cwd=plain).stderr
    hooks = "repos: [{repo: https://example.org/anvil, rev: v1, hooks: [{id: anvil-build, args: [--index, %s]}]}]\n"
    (plain / ".pre-commit-config.yaml").write_text(hooks % "docs.anvil.db")
    assert "/docs.anvil.db -text" in program("git", "install", cwd=plain).stdout
    assert (plain / ".gitattributes").read_text() == "/docs.anvil.db -text diff=anvil merge=anvil\n"
    program("git", "uninstall", cwd=plain)
    (plain / ".pre-commit-config.yaml").unlink()
    program("build", "--index", "built/own.db", "--provider", "none", cwd=plain)
    (plain / "other.db").write_bytes(b"SQLite format 3\0")
    run(plain, "add", "-f", "built/own.db", "other.db")
    program("git", "install", cwd=plain)
    assert (plain / ".gitattributes").read_text() == "/built/own.db -text diff=anvil merge=anvil\n"


def test_the_line_outweighs_the_one_that_init_writes(plain: Path) -> None:
    program("init", "--docs", "docs", "--commit-index", cwd=plain)
    program("git", "install", cwd=plain)
    shown = run(plain, "check-attr", "diff", "merge", "--", "docs/.anvil/index.db")
    assert shown.count("anvil\n") + shown.endswith("anvil") == 2


def test_names_of_any_kind_and_linked_worktrees(plain: Path, tmp_path: Path) -> None:
    commit(plain, "first", at=1_700_000_000)
    other = tmp_path / "other [1]"
    run(plain, "worktree", "add", "-q", "-b", "other", str(other))
    name = "sub folder/[the] índex*.db"
    program("git", "install", "--index", name, cwd=other)
    assert run(other, "-c", "core.quotePath=false", "check-attr", "merge", "--", name) == f"{name}: merge: anvil"
    assert "merge-driver" in run(plain, "config", "merge.anvil.driver")  # one configuration for all of them


def test_outside_a_repository_and_with_docs_elsewhere_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "docs", PAGES)
    assert "not in a git repository" in complaint("git", "install", "--index", INDEX, cwd=tmp_path)


def test_the_program_is_named_in_full(plain: Path) -> None:
    """git is also run by programs that do not know of the environment that Anvil is installed in."""
    program("git", "install", "--index", INDEX, cwd=plain)
    named = run(plain, "config", "diff.anvil.textconv").removesuffix(" git textconv").strip("'")
    assert Path(named).is_absolute() and (shutil.which(named) or named.endswith("anvil"))


# --- files with the pointer for agents ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_torn", [False, True])
def test_the_pointer_for_agents_is_never_in_conflict(plain: Path, is_torn: bool) -> None:
    write(
        plain,
        {
            "AGENTS.md": "# Rules\n\none\n\ntwo\n\nthree\n",
            "anvil.toml": f'index = "{INDEX}"\n[embedding]\nprovider = "none"\n',
        },
    )
    program("agents", cwd=plain)
    program("git", "install", cwd=plain)
    assert "/AGENTS.md merge=anvil-agents\n" in (plain / ".gitattributes").read_text()
    driver = run(plain, "config", "merge.anvil-agents.driver")
    run(plain, "config", "merge.anvil-agents.driver", re.sub(r"^\S+", "anvil", driver))
    commit(plain, "base", at=1_700_000_000)
    run(plain, "branch", "-M", "main")
    run(plain, "branch", "other")
    agents = plain / "AGENTS.md"
    for branch, word, page in (("other", "one" if not is_torn else "three", "left"), ("main", "three", "right")):
        run(plain, "checkout", "-q", branch)
        write(plain / "docs", {f"{page}.md": f"# The {page} page\n"})
        agents.write_text(agents.read_text().replace(f"{word}\n", f"{word} {branch}\n"))
        program("agents", cwd=plain)
        commit(plain, branch, at=1_700_000_100)
    done = subprocess.run(["git", "merge", "other"], cwd=plain, capture_output=True, text=True, check=False)
    merged = agents.read_text()
    assert (done.returncode != 0) == is_torn, done.stdout + done.stderr
    assert "AGENTS.md has the pointer of one side. After the merge run: anvil agents" in done.stderr
    assert merged.count("<<<<<<<") == is_torn and merged.count("<!-- anvil agents: docs -->") == 1
    assert "three main" in merged and ("one other" in merged) != is_torn
    _, marker, block = merged.partition("<!-- anvil agents")
    assert marker and "<<<<<<<" not in block
    program("agents", "--check", cwd=plain, code=1)
    program("agents", cwd=plain)
    program("agents", "--check", cwd=plain)
    program("git", "uninstall", cwd=plain)
    assert not (plain / ".gitattributes").exists()
