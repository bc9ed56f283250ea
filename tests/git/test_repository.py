"""Real repositories made with the real git, and its own answers to compare with."""

from __future__ import annotations

import os
import random
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from anvil.documents.working_tree import WorkingTree
from anvil.errors import GitError, SourceError
from anvil.git.objects import blob_id
from anvil.git.repository import Repository
from anvil.status import of_repository
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name


def found(path: Path) -> Repository:
    repository = Repository.discover(path)
    assert repository is not None
    return repository


# --- blob ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"# A\n", b"\r\n", b"\x00\xff" * 500])
def test_blob_id_is_gits(root: Path, data: bytes) -> None:
    (root / "any").write_bytes(data)
    assert blob_id(data) == run(root, "hash-object", "--no-filters", "any")


# --- finding a repository -------------------------------------------------------------------------------


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert Repository.discover(tmp_path / "plain") is None
    assert of_repository(tmp_path / "plain") is None


def test_found_from_below_and_for_folders_that_do_not_exist(root: Path) -> None:
    assert found(root / "docs").root == root
    assert found(root / "docs/not/yet").relative(root / "docs/not/yet") == "docs/not/yet"
    assert found(root).relative(root) == "."


def test_relative_refuses_a_path_elsewhere(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not inside the repository"):
        found(root).relative(tmp_path)


def test_spaces_and_letters_beyond_ascii(tmp_path: Path) -> None:
    root = tmp_path / "mein Ördner 文書"
    root.mkdir()
    run(root, "init", "-q")
    write(root / "die docs/ünï.md", "x")
    head = commit(root, "m", at=1_700_000_000)
    repository = found(root / "die docs")
    assert repository.relative(root / "die docs") == "die docs"
    assert list(repository.tree(head, "die docs")) == ["ünï.md"]
    assert list(repository.staging.folder("die docs")) == ["ünï.md"]
    times = repository.last_modified(["ünï.md"], "die docs", {}, None)
    assert times == {"ünï.md": "2023-11-14T22:13:20Z"}


def test_through_a_symlink_to_the_root(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    assert found(link / "docs").relative(link / "docs") == "docs"


def test_a_git_file_that_leads_nowhere_is_a_git_error(tmp_path: Path) -> None:
    write(tmp_path / "repo/.git", "gitdir: /does/not/exist\n")
    (tmp_path / "repo/docs").mkdir()
    with pytest.raises(GitError, match="cannot be opened"):
        Repository.discover(tmp_path / "repo/docs")
    assert of_repository(tmp_path / "repo/docs") is None


def test_a_repository_without_head_is_a_git_error(root: Path) -> None:
    (root / ".git/HEAD").unlink()
    with pytest.raises(GitError, match="no HEAD"):
        Repository.discover(root / "docs")
    assert of_repository(root) is None


def test_an_empty_git_folder_is_passed_by_as_git_does(root: Path) -> None:
    (root / "docs/.git").mkdir()
    assert found(root / "docs").root == root


def test_inside_the_git_folder_there_is_no_work_tree(root: Path) -> None:
    assert Repository.discover(root / ".git/info") is None


def test_sha256_repositories_are_named_as_such(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "--object-format=sha256", "repo")
    with pytest.raises(GitError, match="SHA-256"):
        Repository.discover(tmp_path / "repo")


def test_an_extension_that_libgit2_does_not_know_is_named_once(root: Path) -> None:
    config = (root / ".git/config").read_text()
    for name, expected in (
        ("refStorage", "git refs migrate --ref-format=files"),
        ("newer", r"opened: .*extensions\.newer"),
    ):
        changed = config.replace("version = 0", "version = 1") + f"[extensions]\n\t{name} = reftable\n"
        (root / ".git/config").write_text(changed)
        with pytest.raises(GitError, match=expected) as caught:
            Repository.discover(root / "docs")
        assert str(caught.value).count(str(root)) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_anothers_repository_is_refused_with_the_way_out(root: Path) -> None:
    for folder in (root, root / ".git"):
        os.chown(folder, 4321, 4321)
    with pytest.raises(GitError, match=r"safe\.directory"):
        Repository.discover(root / "docs")
    assert of_repository(root / "docs") is None
    run(root, "config", "--global", "--add", "safe.directory", str(root))
    assert found(root / "docs").head() is not None


def test_linked_worktree(root: Path, tmp_path: Path) -> None:
    run(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    write(tmp_path / "tree/docs/b.md", "b\n")
    head = commit(tmp_path / "tree", "second", at=1_700_000_100)
    repository = found(tmp_path / "tree/docs")
    assert (repository.root, repository.head()) == (tmp_path / "tree", head)
    assert repository.common_dir == root / ".git"
    assert sorted(repository.staging.folder("docs")) == ["a.md", "b.md"]
    assert sorted(found(root).staging.folder("docs")) == ["a.md"]


def test_docs_inside_a_submodule(root: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    run(outer, "init", "-q")
    run(outer, "submodule", "--quiet", "add", str(root), "part")
    commit(outer, "with part", at=1_700_000_500)
    repository = found(outer / "part/docs")
    assert repository.root == outer / "part"
    assert repository.relative(outer / "part/docs") == "docs"
    assert repository.last_modified(["a.md"], "docs", {}, None) == {"a.md": "2023-11-14T22:13:20Z"}
    assert found(outer).staging.folder(".")["part"].kind == "submodule"


# --- HEAD, revisions, remote ----------------------------------------------------------------------------


def test_head_before_the_first_commit_detached_and_ordinary(root: Path, tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "empty")
    assert found(tmp_path / "empty").head() is None
    assert found(tmp_path / "empty").last_modified(["a.md"], ".", {}, None) == {}
    head = run(root, "rev-parse", "HEAD")
    assert found(root).head() == head
    run(root, "checkout", "-q", "--detach")
    assert found(root).head() == head


def test_resolve_names_of_commits(root: Path) -> None:
    first = found(root).head()
    run(root, "tag", "-a", "v1", "-m", "annotated")
    commit(root, "second", at=1_700_000_100)
    assert [found(root).resolve(name) for name in ("v1", "HEAD~1", str(first), str(first)[:8])] == [first] * 4
    for name in ("nope", "HEAD~9", "", "HEAD:docs"):
        with pytest.raises(SourceError, match="no commit"):
            found(root).resolve(name)


def test_default_branch_as_last_fetched(root: Path, tmp_path: Path) -> None:
    assert found(root).default_branch() is None
    run(tmp_path, "clone", "-q", str(root), "clone")
    first = found(root).head()
    clone = tmp_path / "clone"
    commit(clone, "ahead", at=1_700_000_900)
    assert found(clone).default_branch() == first
    run(clone, "remote", "set-head", "origin", "--delete")
    assert found(clone).default_branch() == first
    run(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/pruned")
    assert found(clone).default_branch() == first
    run(clone, "remote", "set-head", "origin", "main")
    run(clone, "remote", "rename", "origin", "upstream")
    assert found(clone).default_branch() == first  # the branch follows it
    run(clone, "branch", "--unset-upstream")
    assert found(clone).default_branch() == first  # there is no other
    run(clone, "remote", "add", "fork", str(root))
    assert found(clone).default_branch() is None
    run(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert found(clone).default_branch() == found(clone).head()
    run(clone, "config", "branch.main.remote", "upstream")
    assert found(clone).default_branch() == found(clone).head()  # that of origin: a branch may follow an old fork
    run(clone, "update-ref", "-d", "refs/remotes/origin/main")
    assert found(clone).default_branch() == first


def test_status_speaks_of_the_docs_folder_only(root: Path) -> None:
    pages = WorkingTree(root / "docs")
    status = of_repository(root / "docs", pages)
    assert status is not None
    assert (status.head_commit, status.origin_main, status.dirty) == (
        run(root, "rev-parse", "--short", "HEAD"),
        None,
        False,
    )
    write(root / "src.py", "changed\n")
    write(root / "docs-old/x.md", "x")
    write(root / "docs/.anvil/index.db", "our own index is no change of the docs")

    def dirty() -> bool:
        now = of_repository(root / "docs", pages)
        assert now is not None
        return now.dirty

    assert not dirty()
    write(root / "docs/new.md", "untracked")
    assert dirty()
    (root / "docs/new.md").unlink()
    write(root / "docs/a.md", "staged")
    run(root, "add", "docs/a.md")
    assert dirty()
    run(root, "reset", "-q", "--hard")
    assert not dirty()
    (root / "docs/a.md").unlink()
    assert dirty()


def test_status_before_the_first_commit(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "empty")
    status = of_repository(tmp_path / "empty")
    assert status is not None
    assert (status.head_commit, status.origin_main, status.dirty) == (None, None, False)


# --- trees and the index --------------------------------------------------------------------------------


def test_tree_and_index_hold_what_git_says(root: Path) -> None:
    write(root / "docs/deep/er/b.md", "b\n")
    write(root / "docs.md", "a neighbour whose name begins alike")
    write(root / "docs-old/c.md", "another")
    (root / "docs/link.md").symlink_to("a.md")
    head = commit(root, "more", at=1_700_000_100)
    write(root / "docs/a.md", "# staged\n")
    run(root, "add", "docs/a.md")
    run(root, "rm", "-q", "docs/deep/er/b.md")
    write(root / "docs/a.md", "# only in the folder\n")
    repository = found(root)

    def expected(listing: str) -> dict[str, str]:
        rows = [line.split("\t") for line in listing.splitlines()]
        return {name.removeprefix("docs/"): meta.split()[-1] for meta, name in rows}

    in_tree = run(root, "ls-tree", "-r", "--format=%(objectname)%x09%(path)", head, "docs/")
    in_index = run(root, "ls-files", "--format=%(objectname)%x09%(path)", "docs/")
    assert {p: e.id for p, e in repository.tree(head, "docs").items()} == expected(in_tree)
    assert {p: e.id for p, e in repository.staging.folder("docs").items()} == expected(in_index)
    assert repository.tree(head, "docs")["link.md"].kind == "symlink"
    assert repository.read_blob(repository.staging.folder("docs")["a.md"].id) == b"# staged\n"
    assert repository.tree(head, "nowhere") == {} == repository.staging.folder("nowhere")
    assert repository.tree(head, "src.py") == {}
    assert len(repository.staging.folder(".")) == len(run(root, "ls-files").splitlines())


def test_staged_follows_the_index_file(root: Path) -> None:
    repository = found(root)
    assert list(repository.staging.folder("docs")) == ["a.md"]
    write(root / "docs/b.md", "b\n")
    run(root, "add", "docs/b.md")
    assert list(repository.staging.folder("docs")) == ["a.md", "b.md"]


def test_a_merge_conflict_is_told_apart(root: Path) -> None:
    run(root, "checkout", "-q", "-b", "side")
    write(root / "docs/a.md", "# side\n")
    commit(root, "side", at=1_700_000_100)
    run(root, "checkout", "-q", "main")
    write(root / "docs/a.md", "# main\n")
    commit(root, "main", at=1_700_000_200)
    subprocess.run(["git", "merge", "-q", "side"], cwd=root, capture_output=True, check=False)
    assert found(root).staging.folder("docs")["a.md"].kind == "conflict"


def test_the_index_of_a_partial_commit_is_honoured(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git hands hooks of ``git commit FILE`` another index in GIT_INDEX_FILE, relative to the work tree."""
    write(root / "docs/b.md", "b\n")
    run(root, "add", "docs/b.md")
    write(root / "docs/a.md", "# committed alone\n")
    hook = root / ".git/hooks/pre-commit"
    write(hook, '#!/bin/sh\ncp "$GIT_INDEX_FILE" .git/seen.lock\necho "$GIT_INDEX_FILE" > .git/seen-name\n')
    hook.chmod(0o755)
    run(root, "commit", "-q", "-m", "partial", "docs/a.md", at=1_700_000_100)
    name = (root / ".git/seen-name").read_text().strip()
    assert "next-index" in name
    monkeypatch.chdir(root)
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/seen.lock")
    staged = found(root).staging.folder("docs")
    assert list(staged) == ["a.md"]
    assert staged["a.md"].id == blob_id(b"# committed alone\n")


def test_another_repositorys_index_is_not(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "init", "-q", "other")
    write(tmp_path / "other/x.md", "x")
    run(tmp_path / "other", "add", "x.md")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other/.git/index"))
    assert list(found(root).staging.folder(".")) == ["docs/a.md", "src.py"]
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    assert list(found(root).staging.folder(".")) == ["docs/a.md", "src.py"]


@pytest.mark.parametrize(("harm", "message"), [(b"DIRC no index at all", "index"), (None, "no-split-index")])
def test_an_index_that_cannot_be_read(
    root: Path, harm: bytes | None, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if harm is None:
        run(root, "update-index", "--split-index")
    else:
        (root / ".git/index").write_bytes(harm)
    repository = found(root)
    with pytest.raises(GitError, match=message):
        repository.staging.folder("docs")
    del repository
    assert capfd.readouterr().err == ""


def test_every_index_version(root: Path) -> None:
    for version in ("2", "3", "4"):
        run(root, "update-index", "--index-version", version)
        assert list(found(root).staging.folder("docs")) == ["a.md"]


def test_a_partial_clone_is_told_how_to_get_what_it_lacks(root: Path, tmp_path: Path) -> None:
    write(root / "a.py", "one = 1\n")
    first = commit(root, "one", at=1_600_000_000)
    write(root / "a.py", "two = 2\n")
    commit(root, "two", at=1_600_000_001)
    run(root, "config", "uploadpack.allowFilter", "true")
    run(root, "config", "uploadpack.allowAnySHA1InWant", "true")
    run(tmp_path, "clone", "-q", "--filter=blob:none", root.as_uri(), "partial")
    blob = run(root, "rev-parse", f"{first}:a.py")
    with pytest.raises(GitError) as error:
        found(tmp_path / "partial").patch(first, max_bytes=1000)
    assert str(error.value) == (
        f"The change cannot be read: object {blob} is missing (a partial or damaged clone). To get all objects: "
        "git fetch --refetch --no-filter"
    )
    run(tmp_path / "partial", "fetch", "-q", "--refetch", "--no-filter")
    assert "-one = 1" in found(tmp_path / "partial").patch(first, max_bytes=1000)


def test_a_missing_object_is_a_git_error_that_names_it(root: Path) -> None:
    repository = found(root)
    with pytest.raises(GitError, match="1111111"):
        repository.read_blob("1" * 40)
    with pytest.raises(GitError, match="cannot be read"):
        repository.tree("1" * 40, "docs")
    with pytest.raises(GitError, match="111111111111"):
        repository.last_modified(["a.md"], "docs", {}, None, "1" * 40)


# --- ignore rules and line endings ----------------------------------------------------------------------


def test_ignored_as_git_says(root: Path) -> None:
    write(root / ".gitignore", "*.tmp\n/docs/build/\n!docs/keep.tmp\n")
    write(root / "docs/.gitignore", "draft*\n")
    write(root / ".git/info/exclude", "secret.md\n")
    for name in ("a.tmp", "keep.tmp", "draft.md", "secret.md", "build/x.md", "b.md", "forced.tmp"):
        write(root / "docs" / name, name)
    run(root, "add", "-f", "docs/forced.tmp")
    repository = found(root)
    repository.staging.reload()
    paths = [f"docs/{p.relative_to(root / 'docs').as_posix()}" for p in (root / "docs").rglob("*") if p.is_file()]
    done = subprocess.run(["git", "check-ignore", *paths], cwd=root, capture_output=True, text=True, check=False)
    assert {path for path in paths if repository.is_ignored(path)} == set(done.stdout.split())
    assert "docs/build/x.md" in done.stdout
    assert repository.is_ignored("docs/build/")
    run(root, "add", "-f", "docs/build/x.md")
    repository.staging.reload()
    assert not repository.is_ignored("docs/build/")
    assert not repository.is_ignored("docs/build/x.md")


@pytest.mark.parametrize("place", ["docs/.gitignore", ".git/info/exclude"])
@pytest.mark.parametrize("rule", [b"\f\n", b"a.tmp\n\f\nb.tmp\n", b"draft\vold.md\n", b"!\f"])
def test_a_rule_that_libgit2_reads_without_end_is_read(root: Path, rule: bytes, place: str) -> None:
    write(root / "docs/b.md", "b")
    (root / place).write_bytes(rule + b"\nb.md\n")
    assert found(root).is_ignored("docs/b.md")
    assert not found(root).is_ignored("docs/part/")
    (root / "docs/b.md").unlink()
    for compare in (lambda: found(root).successors(["docs/a.md"]), lambda: found(root).patch("HEAD", max_bytes=9)):
        (root / "docs/a.md").unlink(missing_ok=True)
        with pytest.raises(GitError, match="form feed or a vertical tab"):
            compare()


def test_rules_inside_of_a_folder_that_git_ignores_are_not_read(root: Path) -> None:
    write(root / ".gitignore", "vendor/\n")
    write(root / "vendor/.gitignore", "a\n\f\n")
    (root / "docs/a.md").unlink()
    assert found(root).successors(["docs/a.md"]) == {"docs/a.md": ""}


def test_a_file_that_was_removed_is_gone_in_a_sparse_checkout_too(root: Path) -> None:
    write(root / "docs/b.md", "# B\n\nAnother page.\n")
    write(root / "src/x.py", "x = 1\n")
    commit(root, "b", at=1_700_000_001)
    run(root, "mv", "docs/a.md", "src/a.md")
    run(root, "mv", "docs/b.md", "src/b.md")
    commit(root, "moved", at=1_700_000_002)
    run(root, "rm", "-q", "src/b.md")
    commit(root, "removed", at=1_700_000_003)
    run(root, "sparse-checkout", "set", "--no-cone", "docs")
    assert not (root / "src/a.md").exists()
    assert found(root).successors(["docs/a.md", "docs/b.md"]) == {"docs/a.md": "src/a.md", "docs/b.md": ""}


def test_a_change_is_read_where_the_ignore_rules_are_too_long_for_us(root: Path) -> None:
    write(root / ".gitignore", "#" * 300_000)
    write(root / "docs/a.md", "# B\n")
    repository = found(root)
    assert "+# B" in repository.patch(str(repository.head()), max_bytes=10_000)


@pytest.mark.parametrize("setting", ["autocrlf", "attributes", "off"])
def test_a_checkout_has_the_committed_blob_id(root: Path, setting: str) -> None:
    data = b"# A\r\n\r\ntext\r\n"
    if setting == "autocrlf":
        run(root, "config", "core.autocrlf", "true")
    elif setting == "attributes":
        write(root / ".gitattributes", "*.md text\n")
    (root / "docs/crlf.md").write_bytes(data)
    cleaned = found(root).clean("docs/crlf.md", data)
    assert blob_id(cleaned) == run(root, "hash-object", "docs/crlf.md")
    assert (cleaned == data) is (setting == "off")


def test_binary_data_is_left_alone(root: Path) -> None:
    run(root, "config", "core.autocrlf", "true")
    data = b"a\r\n\x00b\r\n"
    (root / "docs/x.md").write_bytes(data)
    assert found(root).clean("docs/x.md", data) == data


# --- last modified --------------------------------------------------------------------------------------


def gits_times(root: Path, paths: list[str], revision: str = "HEAD") -> dict[str, str]:
    times = {}
    for path in paths:
        seconds = run(root, "log", "-1", "--format=%ct", revision, "--", path)
        moment = datetime.fromtimestamp(int(seconds), timezone.utc)
        times[path] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return times


def random_history(root: Path, seed: int) -> list[str]:
    """Commits, branches and merges (clean, ours, theirs) with clock skew; returns all commits."""
    chance = random.Random(seed)
    names = [f"docs/{folder}p{i}.md" for folder in ("", "x/", "x/y/") for i in range(3)] + ["other.txt"]
    clock = 1_700_000_000
    run(root, "init", "-q", "-b", "main")
    branches = ["main"]
    for step in range(28):
        clock += chance.choice([-700, 60, 3600, 3600, 86_400])
        act = chance.random()
        if step > 2 and act < 0.2 and len(branches) < 4:
            branches.append(f"b{step}")
            run(root, "checkout", "-q", "-b", branches[-1])
        elif step > 2 and act < 0.35:
            run(root, "checkout", "-q", chance.choice(branches))
        elif step > 2 and act < 0.6:
            other = chance.choice(branches)
            strategy = chance.choice([["-X", "ours"], ["-X", "theirs"], ["-s", "ours"]])
            subprocess.run(
                ["git", "merge", "-q", "--no-ff", "--no-commit", *strategy, other],
                cwd=root,
                capture_output=True,
                check=False,
            )
            if chance.random() < 0.3:  # an evil merge: content that neither side has
                write(root / chance.choice(names), f"merged {step}")
            commit(root, f"merge {step}", at=clock)
        else:
            for name in chance.sample(names, chance.choice([1, 1, 2, 4])):
                file = root / name
                if file.exists() and chance.random() < 0.25:
                    file.unlink()
                elif chance.random() < 0.2 and (root / "docs/p0.md").exists() and name != "docs/p0.md":
                    file.parent.mkdir(parents=True, exist_ok=True)
                    (root / "docs/p0.md").rename(file)
                else:
                    write(file, f"text {chance.randrange(3)}")  # few texts, so that contents come back
            if chance.random() < 0.1 and (root / "docs/p1.md").exists():
                (root / "docs/p1.md").chmod(0o755)
            commit(root, f"step {step}", at=clock)
    return run(root, "rev-list", "HEAD").split()


@pytest.mark.parametrize("seed", range(6))
def test_last_modified_is_git_logs_from_scratch_and_incrementally(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    commits = random_history(root, seed)
    repository = found(root)

    def state(revision: str) -> dict[str, str]:
        return {path: entry.id for path, entry in repository.tree(revision, "docs").items()}

    def expected(revision: str) -> dict[str, str]:
        paths = [f"docs/{path}" for path in state(revision)]
        return {path.removeprefix("docs/"): time for path, time in gits_times(root, paths, revision).items()}

    now, truth = state(commits[0]), expected(commits[0])
    assert repository.last_modified(list(now), "docs", {}, None) == truth
    for since in commits[1 : len(commits) : 3]:
        before = state(since)
        times = repository.last_modified(list(before), "docs", {}, None, since)
        assert times == expected(since)
        known = {path: (blob, times[path]) for path, blob in before.items()}
        assert repository.last_modified(list(now), "docs", known, since) == truth


def test_the_whole_repository_as_docs_folder(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    random_history(root, 99)
    paths = run(root, "ls-files").split()
    assert found(root).last_modified(paths, ".", {}, None) == gits_times(root, paths)


def test_known_times_spare_the_walk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(10):
        since = commit(root, f"empty {step}", at=1_700_000_100 + step)
    write(root / "docs/b.md", "b\n")
    commit(root, "b", at=1_700_001_000)
    repository = found(root)
    known = {"a.md": (blob_id(b"# A\n"), "2023-11-14T22:13:20Z")}
    asked: list[str] = []
    original = Repository._commit

    def counted(self: Repository, name: str) -> tuple[int, tuple[str, ...], str]:
        asked.append(name)
        return original(self, name)

    monkeypatch.setattr(Repository, "_commit", counted)
    times = repository.last_modified(["a.md", "b.md"], "docs", known, since)
    assert times == {"a.md": "2023-11-14T22:13:20Z", "b.md": "2023-11-14T22:30:00Z"}
    assert len(set(asked)) == 2


def test_a_time_known_for_other_content_is_not_used(root: Path) -> None:
    head = found(root).head()
    known = {"a.md": (blob_id(b"other"), "1999-01-01T00:00:00Z")}
    assert found(root).last_modified(["a.md"], "docs", known, head) == {"a.md": "2023-11-14T22:13:20Z"}


def test_known_times_of_a_rewritten_history_are_not_used(root: Path) -> None:
    since = found(root).head()
    run(root, "commit", "-q", "--amend", "-m", "reworded", at=1_700_009_000)
    known = {"a.md": (blob_id(b"# A\n"), "2023-11-14T22:13:20Z")}
    assert found(root).last_modified(["a.md"], "docs", known, since) == {"a.md": "2023-11-15T00:43:20Z"}


def test_a_shallow_clones_boundary_does_not_claim_what_is_known(root: Path, tmp_path: Path) -> None:
    since = found(root).head()
    write(root / "docs/b.md", "b\n")
    commit(root, "b", at=1_700_000_100)
    write(root / "docs/c.md", "c\n")
    commit(root, "c", at=1_700_000_200)
    run(tmp_path, "clone", "-q", "--depth", "2", f"file://{root}", "shallow")
    clone = found(tmp_path / "shallow")
    full = found(root).last_modified(["a.md", "b.md", "c.md"], "docs", {}, None)
    known = {"a.md": (blob_id(b"# A\n"), full["a.md"])}
    assert clone.last_modified(list(full), "docs", known, since) == full
    assert clone.last_modified(list(full), "docs", {}, None) == full | {"a.md": full["b.md"]}
    stale = {"a.md": (blob_id(b"older"), "1999-01-01T00:00:00Z")}
    assert clone.last_modified(list(full), "docs", stale, since) == full | {"a.md": full["b.md"]}


def test_paths_git_does_not_hold_are_left_out(root: Path) -> None:
    assert found(root).last_modified(["never.md"], "docs", {}, None) == {}
    assert found(root).last_modified(["a.md"], "no/such/folder", {}, None) == {}


# --- changes and steps ----------------------------------------------------------------------------------


def test_the_patch_is_gits(root: Path) -> None:
    write(root / "src.py", "".join(f"line {number}\n" for number in range(30)))
    write(root / "other.py", "x = 2\n")
    base = commit(root, "lines", at=1_700_000_001)
    write(root / "src.py", "".join(f"line {number * 2 if number == 9 else number}\n" for number in range(30)))
    write(root / "new.py", "x = 1\n")
    run(root, "add", "new.py")
    write(root / "untracked.py", "x = 1\n")
    repository = found(root)
    assert repository.patch(base, max_bytes=10**6).rstrip("\n") == run(root, "diff", base)
    assert repository.patch(base, staged=True, max_bytes=10**6).rstrip("\n") == run(root, "diff", "--cached")
    assert repository.patch(base, max_bytes=10) == ""
    run(root, "rm", "-q", "--cached", "new.py")
    run(root, "sparse-checkout", "set", "--no-cone", "docs", "src.py")  # takes other.py out of the work tree
    assert not (root / "other.py").exists()
    assert repository.patch(base, max_bytes=10**6).rstrip("\n") == run(root, "diff", base)


def test_steps_go_along_the_first_parents(root: Path) -> None:
    first = run(root, "rev-parse", "HEAD")
    run(root, "switch", "-qc", "topic")
    write(root / "docs/b.md", "# B\n")
    commit(root, "on a branch", at=1_700_000_001)
    run(root, "switch", "-q", "main")
    run(root, "merge", "-q", "--no-ff", "-m", "merge", "topic", at=1_700_000_002)
    repository = found(root)
    head = run(root, "rev-parse", "HEAD")
    (_, new_root, (new_docs, new_src)), (_, old_root, (old_docs, old_src)) = repository.steps(
        head, 10, ["docs", "src.py"]
    )
    assert [new_root, old_root] == [run(root, "rev-parse", f"{each}^{{tree}}") for each in (head, first)]
    assert new_src == old_src and new_docs != old_docs
    assert repository.changed(old_docs, new_docs) == {"b.md"}
    assert repository.changed(old_root, new_root) == {"docs/b.md"}
    assert len(list(repository.steps(head, 1, ["none"]))) == 1
    assert repository.subjects(head, first, 5) == ["merge"]


def test_an_empty_folder_of_git_is_no_repository_and_one_without_head_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x/.git").mkdir(parents=True)
    assert Repository.discover(tmp_path / "x") is None
    write(tmp_path / "x/.git/config", "[core]\n")
    with pytest.raises(GitError, match="is not a complete repository: it has no HEAD"):
        Repository.discover(tmp_path / "x")


@pytest.mark.parametrize(
    ("name", "kind"), [("index.lock", "all"), ("next-index-7.lock", "named"), ("index", None), ("other", None)]
)
def test_the_index_of_a_commit_that_git_makes_is_temporary(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str | None
) -> None:
    git_dir = root / ".git"
    if name != "index":
        (git_dir / name).write_bytes((git_dir / "index").read_bytes())
    monkeypatch.setenv("GIT_INDEX_FILE", str(git_dir / name))
    assert found(root).staging.temporary == kind
