"""The pre-commit hooks, by the real pre-commit in real repositories, with edits and drafts lying about."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

import anvil
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.git.objects import blob_id
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file import verify
from tests.conftest import PAGES, write
from tests.support import repositories
from tests.support.commits import HOOKS, call, configuration, install_hooks, pre_commit, program_folder
from tests.support.in_process import program
from tests.support.repositories import run

isolated = pytest.fixture(repositories.isolation, autouse=True)
INDEX = "docs.anvil.db"
CONFIG = f'docs = "docs"\nindex = "{INDEX}"\n[embedding]\nprovider = "none"\n'


@pytest.fixture(autouse=True)
def tools(isolated: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program_folder(tmp_path / "bin")), prepend=":")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))


def repository(where: Path, hook: str, args: list[str] | None = None) -> Path:
    """A repository of four pages and their index, committed; the hook is installed."""
    write(where / "docs", PAGES)
    write(where, {"anvil.toml": CONFIG, "code.py": "pass\n", ".pre-commit-config.yaml": configuration(hook, args=args)})
    run(where, "init", "-q", "-b", "main")
    build(where, staged=False)
    run(where, "add", "-A")
    run(where, "commit", "-q", "-m", "first", at=1_700_000_000)
    install_hooks(where, "pre-commit", "pre-merge-commit")
    if hook == "anvil-build":  # it writes the index: the text of 'anvil git install' must not get in pre-commit's way
        program("git", "install", cwd=where)
        run(where, "add", ".gitattributes")
        run(where, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "drivers")
    return where


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    return repository(tmp_path / "checked", "anvil-check")


@pytest.fixture
def building(tmp_path: Path) -> Path:
    return repository(tmp_path / "building", "anvil-build")


def tool(name: str) -> Path:
    """A program of the tests' environment."""
    found = Path(sysconfig.get_path("scripts"), name)
    if not found.exists():
        pytest.skip("the package under test is not installed")
    return found


def commit(work: Path, *more: str, code: int | None = 0) -> str:
    return call(work, "git", "commit", "-m", "a commit", *more, code=code)


def build(work: Path, staged: bool = True) -> None:
    """As ``anvil build --staged`` does, without the start of a program."""
    with anvil.open(config=work / "anvil.toml") as opened:
        opened.index(source=StagedTree(work / "docs") if staged else None)


def fresh(work: Path) -> bool:
    """Whether the index of the last commit says what its pages say; it must be sound, too."""
    with (
        anvil.open(config=work / "anvil.toml") as opened,
        TrackedIndex(opened.index_path, work / "docs").file("HEAD") as index,
    ):
        return not opened.check(CommitTree(work / "docs", "HEAD"), index)


# --- anvil-test ------------------------------------------------------------------------------------------------


def test_a_commit_after_which_the_pages_do_not_answer_is_refused(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", "anvil-test")
    question = '[[question]]\nask = "quiet window at night"\nwithin = 1\nexpect = "guides/alerts.md#silence-at-night"\n'
    write(work, {"anvil-tests.toml": question})
    run(work, "add", "-A")
    call(work, "git", "commit", "-q", "-m", "a question")
    write(work / "docs", {"guides/alerts.md": PAGES["guides/alerts.md"].replace("quiet window", "pause")})
    write(work / "docs", {"index.md": f"{PAGES['index.md']}\n## A quiet window at night\n\nA quiet window at night.\n"})
    run(work, "add", "docs/index.md")
    said = call(work, "git", "commit", "-q", "-m", "both", code=None)
    assert "0 of 1 question is answered as expected" in said
    assert "came instead  1. index.md" in said


# --- anvil-check -----------------------------------------------------------------------------------------------


def test_a_stale_index_is_refused_with_the_command_that_mends_it(checked: Path) -> None:
    write(checked / "docs", {"index.md": "# Other\n", "new page.md": "# New\n"})
    run(checked, "add", "docs")
    said = commit(checked, code=1)
    assert "changed  index.md" in said and "added  new page.md" in said and "2 pages differ" in said
    fix = said.split("Run: ")[1].splitlines()[0]
    assert fix == f"anvil build --staged && git add {INDEX}"
    call(checked, "sh", "-c", fix)
    commit(checked)
    assert fresh(checked)


def test_a_commit_that_only_deletes_a_page_is_checked(checked: Path) -> None:
    run(checked, "rm", "-q", "docs/install.md")
    assert "removed  install.md" in commit(checked, code=1)


def test_a_commit_that_touches_no_page_passes(checked: Path) -> None:
    write(checked, {"code.py": "print()\n"})
    run(checked, "add", "code.py")
    commit(checked)


def test_what_is_staged_is_judged_not_what_lies_in_the_folder(checked: Path) -> None:
    write(checked / "docs", {"index.md": "# Staged\n"})
    run(checked, "add", "docs")
    build(checked)
    run(checked, "add", INDEX)
    write(checked / "docs", {"index.md": "# Staged\n\nAnd a line that is not.\n", "draft.md": "# Draft\n"})
    commit(checked)  # pages staged in part, an untracked draft
    assert fresh(checked)
    assert "not" in (checked / "docs/index.md").read_text() and (checked / "docs/draft.md").exists()
    run(checked, "add", "docs")
    build(checked)  # right, but not staged: it is not what would be committed
    program("check", "--staged", cwd=checked)
    assert "2 pages differ" in commit(checked, code=1)
    assert program("check", "--staged", cwd=checked).stdout  # the file that was built is back in its place


def test_an_index_that_is_not_in_git_is_named(checked: Path) -> None:
    run(checked, "rm", "-q", "--cached", INDEX)
    said = commit(checked, code=1)
    assert f"{INDEX} is not in the commit. Run: git add {INDEX}" in said
    write(checked, {".gitignore": "*.db\n"})
    run(checked, "add", ".gitignore")
    assert f"git check-ignore -v {INDEX}" in commit(checked, code=1)
    run(checked, "add", "-f", INDEX)
    commit(checked)  # ignored, but tracked: git goes by the second


def test_the_default_place_is_private_and_the_hook_says_so(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", "anvil-check", ["--index", "docs/.anvil/index.db"])
    program("build", "--index", "docs/.anvil/index.db", cwd=work)
    write(work, {"docs/.anvil/.gitignore": "*\n"})
    assert "run 'anvil init --commit-index'" in commit(work, "--allow-empty", code=1)


def test_all_files_and_skip(checked: Path) -> None:
    pre_commit(checked, "run", "--all-files")
    write(checked / "docs", {"index.md": "# Other\n"})
    pre_commit(checked, "run", "--all-files")  # it is about what is staged: nothing is
    run(checked, "add", "docs")
    pre_commit(checked, "run", "--all-files", code=1)
    pre_commit(checked, "run", "anvil-check", "--hook-stage", "manual", code=1)
    call(checked, "git", "commit", "-m", "skipped", SKIP="anvil-check")
    assert not fresh(checked)


def test_a_commit_without_the_docs_folder_is_an_error_that_names_it(checked: Path) -> None:
    run(checked, "rm", "-rq", "docs")
    assert "Nothing is staged under docs, and there is no such folder." in commit(checked, code=1)
    write(checked / "docs", {"draft.md": "# Draft\n"})
    assert "4 pages differ" in commit(checked, code=1)


def test_commits_of_all_and_of_named_files(checked: Path) -> None:
    write(checked / "docs", {"index.md": "# Other\n"})
    write(checked, {"code.py": "print()\n"})
    assert "changed  index.md" in commit(checked, "-a", code=1)
    build(checked, staged=False)
    commit(checked, "code.py")  # of this file alone: page and index stay behind, and fit
    assert fresh(checked)
    said = commit(checked, "docs/index.md", code=1)
    assert "changed  index.md" in said and "Then commit without naming files: git commit" in said
    commit(checked, "-a")
    assert fresh(checked)


@pytest.mark.parametrize("named", [["-a"], ["docs/index.md"]], ids=["all", "named"])
def test_the_command_for_a_commit_with_files_of_its_own_leads_out(checked: Path, named: list[str]) -> None:
    """What 'git commit -a' stages is staged for that commit alone: a build outside the hook would not find it."""
    write(checked / "docs", {"index.md": "# Other\n"})
    said = commit(checked, *named, code=1)
    fix = said.split("Run: ")[1].splitlines()[0].partition(". Then")[0]
    assert fix.startswith("git add -u")
    call(checked, "sh", "-c", fix)
    commit(checked, *(["-a"] if named == ["-a"] else []))
    assert fresh(checked) and run(checked, "status", "--porcelain") == ""


def test_the_command_for_a_missing_index_works(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work, {"docs/index.md": "# Lighthouse\n", ".pre-commit-config.yaml": configuration("anvil-check")})
    run(work, "init", "-q", "-b", "main")
    run(work, "add", "-A")
    install_hooks(work)
    said = call(work, "git", "commit", "-m", "first", code=1, ANVIL_EMBEDDING_PROVIDER="none")
    assert 'index = "docs.anvil.db" in anvil.toml' in said
    call(work, "sh", "-c", said.split("this one: ")[1].splitlines()[0], ANVIL_EMBEDDING_PROVIDER="none")
    call(work, "git", "commit", "-m", "first", ANVIL_EMBEDDING_PROVIDER="none")
    assert "docs/.anvil/index.db" in run(work, "ls-files")


def test_a_machine_without_anvil_is_given_the_hooks_own(checked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pre-commit installs Anvil into an environment of its own, which the reader's shell does not know."""
    hooks = tool("anvil")
    write(checked, {".pre-commit-config.yaml": configuration("anvil-check", entry=f"{hooks} check --staged --tracked")})
    run(checked, "add", "-A")
    path = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "anvil").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    write(checked / "docs", {"index.md": "# Other\n"})
    run(checked, "add", "docs")
    fix = commit(checked, code=1).split("Run: ")[1].splitlines()[0]
    assert fix == f"{hooks} build --staged && git add {INDEX}"
    call(checked, "sh", "-c", fix)
    commit(checked)


def test_lint_sees_images_and_the_configuration_that_are_in_git(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(
        work / "docs", {"index.md": "# A\n\n![The map](img/map.png)\n", "b.md": "# B\n\nText.\n", "img/map.png": "png"}
    )
    write(work, {"mkdocs.yml": "site_name: A\nnav: [index.md, b.md]\n"})
    write(work, {".pre-commit-config.yaml": configuration("anvil-lint", args=["docs", "--fail-level", "warning"])})
    run(work, "init", "-q", "-b", "main")
    run(work, "add", "-A")
    install_hooks(work)
    call(work, "git", "commit", "-m", "sound")
    run(work, "rm", "-q", "--cached", "docs/img/map.png")  # it is still on this disk, and nowhere else
    said = call(work, "git", "commit", "-m", "without the image", code=1)
    assert "docs/index.md:3: error: Broken image 'img/map.png': there is no file img/map.png." in said
    assert "resolved as for MkDocs" in said and "orphan" not in said


def test_other_places_with_names_of_any_kind(tmp_path: Path) -> None:
    args = ["--docs", "doc umentação", "--index", "the índex of docs.anvil.db", "--config", "set tings.toml"]
    work = tmp_path / "wörk place"
    write(work / "doc umentação", {**PAGES, "ein führung/erste Schritte.md": "# Erste Schritte\n"})
    write(work, {"set tings.toml": '[embedding]\nprovider = "none"\n'})
    write(work, {"anvil-tests.toml": '[[question]]\nask = "silence at night"\nexpect = "guides/alerts.md"\n'})
    write(work, {".pre-commit-config.yaml": configuration(*HOOKS, args=args)})
    run(work, "init", "-q")
    install_hooks(work)
    program("build", *args, cwd=work)
    run(work, "add", "-A")
    commit(work)
    write(work / "doc umentação", {"ein führung/erste Schritte.md": "# Zweite Schritte\n"})
    run(work, "add", "-A")
    checked, built = (part.splitlines()[0] for part in commit(work, code=1).split("Run: ")[1:])
    assert built == "git add 'the índex of docs.anvil.db'" and checked.endswith(f" && {built}")
    call(work, "sh", "-c", checked)
    commit(work)
    program("check", "--ref", "HEAD", "--tracked", *args, cwd=work)


# --- anvil-build -----------------------------------------------------------------------------------------------


def test_it_fails_once_and_passes_the_second_time(building: Path) -> None:
    before = (building / INDEX).read_bytes()
    write(building / "docs", {"index.md": "# Other\n"})
    run(building, "add", "docs")
    said = commit(building, code=1)
    assert "Built" in said and f"Run: git add {INDEX}" in said and "files were modified by this hook" in said
    assert (building / INDEX).read_bytes() != before
    assert f"Run: git add {INDEX}" in commit(building, code=1)  # the author has not added it yet
    run(building, "add", INDEX)
    commit(building)
    assert fresh(building)


def test_edits_and_drafts_that_are_not_staged_stay_out_and_the_index_whole(building: Path) -> None:
    """pre-commit takes what is not staged away while hooks run, and puts it back as a patch afterwards."""
    write(building / "docs", {"index.md": "# Staged\n", "install.md": "# Not staged\n", "draft.md": "# Draft\n"})
    write(building, {"code.py": "print()\n"})
    run(building, "add", "docs/index.md")
    write(building / "docs", {"index.md": "# Staged\n\nAnd a line that is not.\n"})
    commit(building, code=1)
    built = (building / INDEX).read_bytes()
    verify.check(building / INDEX)
    run(building, "add", INDEX)
    assert run(building, "rev-parse", f":{INDEX}") == blob_id(built)
    commit(building)
    assert (building / INDEX).read_bytes() == built
    assert run(building, "rev-parse", f"HEAD:{INDEX}") == blob_id(built)
    assert fresh(building)
    assert sorted(run(building, "status", "--porcelain").splitlines()) == [
        " M code.py",
        " M docs/index.md",
        " M docs/install.md",
        "?? docs/draft.md",
    ]
    assert "not" in (building / "docs/index.md").read_text()


def test_an_index_built_from_the_folder_and_not_staged_comes_back_whole(building: Path) -> None:
    write(building / "docs", {"index.md": "# Staged\n", "draft.md": "# Draft\n"})
    run(building, "add", "docs/index.md")
    build(building, staged=False)  # of the folder: the draft is in it
    own = (building / INDEX).read_bytes()
    commit(building, code=1)  # the hook's index and the one put back exclude each other: pre-commit keeps the author's
    assert (building / INDEX).read_bytes() == own
    run(building, "add", INDEX)
    commit(building, code=1)  # the draft is not in the commit, so this is not its index
    run(building, "add", INDEX)
    commit(building)
    assert fresh(building)


def test_the_first_index_is_built_and_named(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", "anvil-build")
    run(work, "rm", "-q", INDEX)
    run(work, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "no index")
    assert "Built" in commit(work, "--allow-empty", code=1) and (work / INDEX).exists()
    assert "is not in the commit yet" in commit(work, "--allow-empty", code=1)
    run(work, "add", INDEX)
    commit(work)
    assert fresh(work)


# --- shapes of repositories ------------------------------------------------------------------------------------


def test_a_linked_worktree_has_its_own_staged_tree(checked: Path, tmp_path: Path) -> None:
    other = tmp_path / "other tree"
    run(checked, "worktree", "add", "-q", "-b", "other", str(other))
    write(checked / "docs", {"index.md": "# Staged in the first\n"})
    run(checked, "add", "docs")
    commit(other, "--allow-empty")
    write(other / "docs", {"install.md": "# Staged in the other\n"})
    run(other, "add", "docs")
    said = commit(other, code=1)
    assert "changed  install.md" in said and "index.md" not in said
    build(other)
    run(other, "add", INDEX)
    commit(other)
    assert "changed  index.md" in commit(checked, code=1)


def test_submodules(checked: Path, tmp_path: Path) -> None:
    around = tmp_path / "around"
    write(around, {"docs/index.md": "# Around\n"})
    write(around, {"anvil.toml": CONFIG, ".pre-commit-config.yaml": configuration("anvil-check")})
    run(around, "init", "-q", "-b", "main")
    run(around, "submodule", "--quiet", "add", str(checked), "docs/inner")
    build(around, staged=False)
    run(around, "add", "-A")
    run(around, "commit", "-q", "-m", "first")
    install_hooks(around)
    write(around / "docs", {"inner/docs/index.md": "# Changed inside\n"})
    commit(around, "--allow-empty")  # a submodule among the pages is no page
    inner = around / "docs/inner"
    pre_commit(inner, "install")  # git starts this one as pre-commit wrote it
    run(inner, "add", "docs")
    assert "changed  index.md" in commit(inner, code=1)  # a commit inside of it is like any other
    write(around, {".pre-commit-config.yaml": configuration("anvil-check", args=["--docs", "docs/inner/docs"])})
    run(around, "add", ".pre-commit-config.yaml")
    assert "different repositories" in commit(around, code=1)


def test_merges_with_and_without_conflicts(checked: Path) -> None:
    def side(branch: str, pages: dict[str, str]) -> None:
        run(checked, "checkout", "-q", "-b", branch, "main")
        write(checked / "docs", pages)
        run(checked, "add", "docs")
        build(checked)
        run(checked, "add", INDEX)
        commit(checked)

    side("left", {"index.md": "# Left\n"})
    side("right", {"install.md": "# Right\n"})
    call(checked, "git", "merge", "left", code=1)  # the indexes are in conflict, the pages are not
    message = program("check", "--staged", "--tracked", cwd=checked, code=2).stderr
    assert f"{INDEX} is in conflict. Run 'anvil build --staged', " in message and f"then 'git add {INDEX}'." in message
    run(checked, "checkout", "--ours", INDEX)
    run(checked, "add", INDEX)
    assert "changed  index.md" in commit(checked, code=1)  # one side's index is not that of the merge
    build(checked)
    run(checked, "add", INDEX)
    commit(checked)
    assert fresh(checked)
    run(checked, "checkout", "-q", "-b", "third", "main")
    write(checked, {"docs/new.md": "# New\n"})
    run(checked, "add", "docs")
    call(checked, "git", "commit", "-q", "-m", "no index", SKIP="anvil-check")
    said = call(checked, "git", "merge", "--no-edit", "left", code=None)  # no conflict: pre-merge-commit has its say
    assert "added  new.md" in said


def test_impact_names_sections_and_refuses_nothing(tmp_path: Path) -> None:
    where = tmp_path / "impact"
    write(where / "docs", {**PAGES, "flags.md": "# Flags\n\n## Days\n\nSet `--grace-days`.\n"})
    config = '[embedding]\nprovider = "none"\n'
    code = 'parser.add_argument("--grace-days")\n'
    write(where, {"anvil.toml": config, "cli.py": code, ".pre-commit-config.yaml": configuration("anvil-impact")})
    run(where, "init", "-q", "-b", "main")
    run(where, "add", "-A")
    run(where, "commit", "-q", "-m", "first", at=1_700_000_000)
    install_hooks(where, "pre-commit")
    write(where, {"cli.py": code.replace("days", "weeks")})
    run(where, "add", "-A")
    said = call(where, "git", "commit", "-m", "Rename the flag")
    assert "1. docs/flags.md:5  confidence" in said
    assert "names `--grace-days`, which the change renames (cli.py:1)" in said
