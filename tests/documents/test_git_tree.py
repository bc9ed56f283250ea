"""The three sources on real folders and repositories: what they hold, leave out, and when they look again."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anvil.documents import working_tree
from anvil.documents.document_source import DocumentSource
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.errors import GitError, SourceError
from anvil.git.objects import blob_id
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.values import Document, Skipped
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name

Source = Callable[[Path], DocumentSource]
SOURCES: dict[str, Source] = {
    "working": WorkingTree,
    "staged": StagedTree,
    "commit": lambda docs: CommitTree(docs, "HEAD"),
}


@pytest.fixture(params=list(SOURCES))
def source(request: pytest.FixtureRequest) -> Source:
    made: Source = SOURCES[request.param]
    return made


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A folder outside any repository."""
    docs = tmp_path / "plain"
    docs.mkdir()
    return docs


def age(*files: Path, seconds: float = 60) -> None:
    """Wait until the files are old enough to be trusted: a change stamp cannot be set, time has to pass."""
    for file in files:
        os.utime(file, ns=(time.time_ns() - int(seconds * 1e9), time.time_ns() - int(seconds * 1e9) + 1))
    time.sleep(0.12)


def reasons(source: DocumentSource) -> dict[str, str]:
    return {item.path: item.reason for item in source.scan().skipped}


def test_a_page_that_another_page_is_made_from_is_left_out(root: Path, source: Source) -> None:
    names = ("README.Rmd", "README.md", "sub/README.Rmd", "guide.qmd", "a.markdown", "a.qmd")
    for name in names:
        write(root / "made" / name, "# Title\n")
    commit(root, "pages", at=1_750_000_000)
    scan = source(root / "made").scan()
    assert set(scan.entries) == {"README.md", "sub/README.Rmd", "guide.qmd", "a.markdown", "a.qmd"}
    assert not scan.skipped


def test_a_source_is_a_page_again_when_the_page_made_from_it_is_gone(plain: Path) -> None:
    write(plain / "a.qmd", "# A\n")
    write(plain / "a.md", "# A\n")
    tree = WorkingTree(plain)
    assert set(tree.scan().entries) == {"a.md"}
    (plain / "a.md").unlink()
    assert set(tree.scan().entries) == {"a.qmd"}


def document(source: DocumentSource, path: str) -> Document:
    read = source.read(path)
    assert isinstance(read, Document), read
    return read


# --- the same documents from every source ---------------------------------------------------------------


def test_every_source_holds_the_same(root: Path) -> None:
    texts = {"b.md": "b\n", "x/y/ü b.md": "ü\n", "READ.MD": "r\n", "x.mdx": "", "z.markdown": "z\n"}
    for path, text in texts.items():
        write(root / "docs" / path, text)
    for path in ("n.txt", ".hidden.md", ".git-not/x.md", "node_modules/p/x.md", "x/.anvil/x.md"):
        write(root / "docs" / path, "not a document")
    (root / "docs/link.md").symlink_to("b.md")
    (root / "docs/out.md").symlink_to("../src.py")
    (root / "docs/folder").symlink_to("x")
    (root / "docs/data").symlink_to("n.txt")
    (root / "docs/bin.md").write_bytes(b"a\0b")
    (root / "docs/latin.md").write_bytes(b"# Menu\n\ncaf\xe9")
    marked = {
        "16-be.md": b"\xfe\xff\0h\x20\x1c",
        "16-le.md": "h\u201c".encode("utf-16"),
        "32.md": "h\u201c".encode("utf-32"),
    }
    for path, data in marked.items():
        (root / "docs" / path).write_bytes(data)
    (root / "docs/16-bad.md").write_bytes(b"\xff\xfeh\0\n\0\0\xd8")
    (root / "docs/16-nul.md").write_bytes("a\0b".encode("utf-16"))
    pointer = "<!-- anvil agents: docs -->\n## Documentation\n\nSearch it.\n<!-- end of anvil agents: docs -->\n"
    texts["CLAUDE.md"] = f"{pointer}\nWrite tests.\n"
    write(root / "docs/AGENTS.md", pointer)  # Anvil wrote it: it is no page, and not reported either
    write(root / "docs/CLAUDE.md", texts["CLAUDE.md"])
    write(root / "docs/big.md", "x" * 3000)
    commit(root, "more", at=1_700_000_100)
    options = SourceOptions(max_file_bytes=2000)
    made: list[DocumentSource] = [
        WorkingTree(root / "docs", options),
        StagedTree(root / "docs", options),
        CommitTree(root / "docs", "main", options),
    ]
    expected = {"a.md": "# A\n"} | texts
    expected |= {"link.md": texts["b.md"], "out.md": (root / "src.py").read_text()}
    for one in made:
        scan = one.scan()
        files = {path: text.encode() for path, text in expected.items()} | marked
        assert dict(scan.entries) == {path: blob_id(data) for path, data in files.items()}
        assert list(scan.entries) == sorted(files)
        assert scan.skipped == made[0].scan().skipped
        documents = [document(one, path) for path in scan.entries]
        assert {d.path: d.text for d in documents} == expected | dict.fromkeys(marked, "h\u201c")
        assert all(d.size == len(files[d.path]) for d in documents)
        assert one.root_path == "docs"
        assert one.commit() == run(root, "rev-parse", "HEAD")
        assert one.problem is None
    assert [one.name for one in made] == [
        "working tree",
        "staged tree",
        f"commit {run(root, 'rev-parse', '--short', 'HEAD')}",
    ]
    why = reasons(made[0])
    assert sorted(why) == ["16-bad.md", "16-nul.md", "big.md", "bin.md", "folder", "latin.md"]
    assert "2,000" in why["big.md"]
    assert "NUL byte at offset 1" in why["bin.md"]
    assert why["latin.md"] == "not UTF-8: byte 0xe9 in line 3; save it as UTF-8"
    assert why["16-bad.md"] == "not UTF-16: byte 0x00 in line 2; save it as UTF-8"
    assert why["16-nul.md"] == "binary: it has a NUL character"


def test_a_byte_order_mark_is_taken_off_and_line_ends_are_kept(root: Path, source: Source) -> None:
    (root / "docs/a.md").write_bytes(b"\xef\xbb\xbf# A\r\ntext\rx\n")
    commit(root, "bom", at=1_700_000_100)
    read = document(source(root / "docs"), "a.md")
    assert (read.text, read.size) == ("# A\r\ntext\rx\n", 15)
    assert read.blob_id == run(root, "rev-parse", "HEAD:docs/a.md")


def test_a_page_in_utf_16_may_include(root: Path, source: Source) -> None:
    (root / "docs/a.md").write_bytes('a\n--8<-- "part.md"\n'.encode("utf-16"))
    (root / "docs/part.md").write_bytes("é".encode("utf-16"))
    commit(root, "bom", at=1_700_000_100)
    assert document(source(root / "docs"), "a.md").text.endswith("\né\n")


def test_a_crlf_checkout_is_no_change(root: Path) -> None:
    """On Windows, with core.autocrlf, every file of a checkout has other bytes than its blob."""
    run(root, "config", "core.autocrlf", "true")
    (root / "docs/a.md").write_bytes(b"# A\r\n")
    tree, staged = WorkingTree(root / "docs"), StagedTree(root / "docs")
    assert tree.scan().entries == staged.scan().entries
    assert document(tree, "a.md") == document(staged, "a.md")
    run(root, "config", "core.autocrlf", "false")
    assert tree.scan().entries == {"a.md": blob_id(b"# A\r\n")}


def test_options_choose(root: Path) -> None:
    for path in (
        "guide/a.md",
        "guide/a.txt",
        "drafts/a.md",
        ".github/x.md",
        ".github/sub/.y.md",
        "old/deep/a.md",
    ):
        write(root / "docs" / path, path)
    commit(root, "more", at=1_700_000_100)

    def chosen(include: list[str], exclude: list[str]) -> list[str]:
        options = SourceOptions(include=tuple(include), exclude=tuple(exclude))
        tree = list(WorkingTree(root / "docs", options).scan().entries)
        assert tree == list(CommitTree(root / "docs", "HEAD", options).scan().entries)
        return tree

    assert chosen(["**/*.md"], ["drafts", "OLD/"]) == ["a.md", "guide/a.md"]
    assert chosen(["**/*.{md,txt}"], ["**/a.md"]) == ["guide/a.txt"]
    assert chosen(["*.md", "guide/*"], []) == ["a.md", "guide/a.md", "guide/a.txt"]
    assert chosen([".github/**/*.md"], []) == [".github/x.md"]
    assert chosen(["Guide"], []) == ["guide/a.md"]  # the pages in the folder
    assert chosen(["guide/", "old/deep", "a.md", ""], []) == ["a.md", "guide/a.md", "old/deep/a.md"]
    assert chosen([".github"], []) == [".github/x.md"]
    assert chosen(["**/*.md"], ["["]) == ["a.md", "drafts/a.md", "guide/a.md", "old/deep/a.md"]
    assert chosen([], []) == []


def test_git_and_anvil_folders_never_count(plain: Path) -> None:
    write(plain / ".git/x.md", "x")
    write(plain / ".anvil/x.md", "x")
    options = SourceOptions(include=(".git/*.md", ".anvil/*.md", "**/*.md"))
    assert WorkingTree(plain, options).scan().entries == {}


# --- the staged tree ------------------------------------------------------------------------------------


def test_the_staged_tree_is_read_never_the_folder(root: Path) -> None:
    write(root / "docs/a.md", "# staged\n")
    run(root, "add", "docs/a.md")
    write(root / "docs/a.md", "# not staged\n")
    write(root / "docs/draft.md", "untracked\n")
    staged = StagedTree(root / "docs")
    assert staged.scan().entries == {"a.md": blob_id(b"# staged\n")}
    assert document(staged, "a.md").text == "# staged\n"
    assert staged.read("draft.md") == Skipped("draft.md", "not a document of the staged tree")
    (root / "docs/a.md").unlink()
    (root / "docs/draft.md").unlink()
    (root / "docs").rmdir()
    assert document(StagedTree(root / "docs"), "a.md").text == "# staged\n"


def test_a_page_that_git_is_only_told_of_is_not_staged(root: Path) -> None:
    """``git commit`` leaves out what ``git add --intent-to-add`` named, so an index of the commit must, too."""
    write(root / "docs/empty.md", "")
    write(root / "docs/new.md", "# New\n")
    run(root, "add", "docs/empty.md")
    run(root, "add", "--intent-to-add", "docs/new.md")
    assert list(StagedTree(root / "docs").scan().entries) == ["a.md", "empty.md"]
    repository = Repository.discover(root)
    assert repository is not None and repository.entry("docs/new.md") is None
    run(root, "commit", "-q", "-m", "empty")
    assert StagedTree(root / "docs").scan().entries == CommitTree(root / "docs", "HEAD").scan().entries


def test_the_staged_tree_follows_what_is_staged(root: Path) -> None:
    staged = StagedTree(root / "docs")
    before = staged.scan()
    write(root / "docs/b.md", "b\n")
    assert staged.scan() == before
    run(root, "add", "docs/b.md")
    assert sorted(staged.scan().entries) == ["a.md", "b.md"]
    run(root, "rm", "-q", "--cached", "docs/a.md")
    assert sorted(staged.scan().entries) == ["b.md"]


def test_what_an_index_holds_needs_no_look(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "docs/bin.md").write_bytes(b"\0")
    commit(root, "binary", at=1_700_000_100)
    staged = StagedTree(root / "docs")
    read: list[str] = []
    original = Repository.read_blob

    def reading(repository: Repository, blob: str) -> bytes:
        read.append(blob)
        return original(repository, blob)

    monkeypatch.setattr(Repository, "read_blob", reading)
    assert list(staged.scan({"a.md": blob_id(b"# A\n")}).entries) == ["a.md"]
    assert read == [blob_id(b"\0")]
    assert list(staged.scan({"a.md": blob_id(b"# A\n")}).entries) == ["a.md"]
    assert len(read) == 1


def test_a_conflict_is_left_out(root: Path) -> None:
    run(root, "checkout", "-q", "-b", "side")
    write(root / "docs/a.md", "# side\n")
    commit(root, "side", at=1_700_000_100)
    run(root, "checkout", "-q", "main")
    write(root / "docs/a.md", "# main\n")
    commit(root, "main", at=1_700_000_200)
    subprocess.run(["git", "merge", "-q", "side"], cwd=root, capture_output=True, check=False)
    assert "conflict" in reasons(StagedTree(root / "docs"))["a.md"]


# --- commits --------------------------------------------------------------------------------------------


def test_a_commit_stays_as_it_is(root: Path) -> None:
    first = CommitTree(root / "docs", "HEAD")
    write(root / "docs/a.md", "# later\n")
    commit(root, "later", at=1_700_000_100)
    assert first.scan().entries == {"a.md": blob_id(b"# A\n")}
    assert first.last_modified(["a.md"], {}, None) == {"a.md": "2023-11-14T22:13:20Z"}
    earlier = CommitTree(root / "docs", "HEAD~1")
    assert (earlier.name, earlier.commit()) == (first.name, first.commit())


def test_commits_and_folders_that_are_not_there(root: Path, plain: Path) -> None:
    with pytest.raises(SourceError, match="no commit 'v9'"):
        CommitTree(root / "docs", "v9")
    with pytest.raises(SourceError, match="no folder guides"):
        CommitTree(root / "guides", "HEAD")
    with pytest.raises(SourceError, match="Nothing is staged"):
        StagedTree(root / "guides")
    for make in (StagedTree, SOURCES["commit"]):
        with pytest.raises(SourceError, match=r"not in a git repository with a work tree.*git worktree add"):
            make(plain)


# --- the working tree: what is left out -----------------------------------------------------------------


def test_no_folder_and_a_file_as_folder(plain: Path) -> None:
    with pytest.raises(SourceError, match="There is no folder"):
        WorkingTree(plain / "missing")
    write(plain / "a.md", "a")
    with pytest.raises(SourceError, match=r"Name the documentation folder with --docs: .* has a\.md"):
        WorkingTree(plain / "missing")
    with pytest.raises(SourceError, match="is not a folder"):
        WorkingTree(plain / "a.md")
    docs = plain / "docs"
    docs.mkdir()
    tree = WorkingTree(docs)
    docs.rmdir()
    with pytest.raises(SourceError, match="no folder"):
        tree.scan()


def test_links_and_loops(plain: Path, tmp_path: Path) -> None:
    docs = plain / "docs"
    write(docs / "sub/a.md", "a")
    write(tmp_path / "secret/s.md", "secret")
    for name, target in {
        "self.md": "self.md",
        "nowhere.md": "gone.md",
        "sub/up": "..",
        "outside": str(tmp_path / "secret"),
        "outside.md": str(tmp_path / "secret/s.md"),
        "inside": "sub",
        "root": ".",
    }.items():
        (docs / name).symlink_to(target)
    tree = WorkingTree(docs)
    assert list(tree.scan().entries) == ["sub/a.md"]
    why = reasons(tree)
    for name in ("self.md", "nowhere.md", "root", "sub/up"):
        assert "no file, or in a circle" in why[name]
    for name in ("outside", "outside.md"):
        assert "out of" in why[name]
    assert "only links to files" in why["inside"]
    read = tree.read("outside.md")
    assert isinstance(read, Skipped) and "out of" in read.reason
    for path in ("outside/s.md", "inside/a.md", "root/sub/a.md"):
        read = tree.read(path)
        assert isinstance(read, Skipped) and "symlink" in read.reason
    for path in ("../secret/s.md", "/etc/a.md", "sub/../sub/a.md", "./sub/a.md", "", "x.txt"):
        assert isinstance(tree.read(path), Skipped)


def test_a_link_that_replaces_a_page_is_seen(plain: Path) -> None:
    write(plain / "a.md", "a")
    write(plain / "b.txt", "b")
    tree = WorkingTree(plain)
    assert list(tree.scan().entries) == ["a.md"]
    (plain / "a.md").unlink()
    (plain / "a.md").symlink_to("b.txt")
    assert tree.scan().entries == {"a.md": blob_id(b"b")}
    (plain / "a.md").unlink()
    (plain / "a.md").mkdir()
    write(plain / "a.md/c.md", "c")
    assert list(tree.scan().entries) == ["a.md/c.md"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("of_commit", [False, True])
def test_many_links_to_a_large_folder_take_little_time(root: Path, of_commit: bool) -> None:
    for number in range(2000):
        write(root / f"large/{number}.txt", "x")
    for number in range(300):
        (root / f"docs/{number}").symlink_to("../large")
    (root / "docs/away").symlink_to("../larg")  # the beginning of a folder's name
    commit(root, "links", at=1_700_000_100)
    tree = CommitTree(root / "docs", "main") if of_commit else StagedTree(root / "docs")
    started_s = time.process_time()
    assert len(tree.scan().skipped) == 300
    assert time.process_time() - started_s < 2  # 0.2 s; it took 8 s for staged ones, when all files were listed


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("below", ["", "site/docs"])
def test_a_folder_whose_link_is_set_to_another_revision(root: Path, plain: Path, below: str) -> None:
    def point(target: Path) -> None:
        (plain / "next").symlink_to(target)
        (plain / "next").replace(plain / "current")  # as git-sync, ConfigMaps and deployments do it

    for name, text in {"rev1": "one", "rev2": "two"}.items():
        write(plain / name / below / "a.md", text)
        write(plain / name / below / f"{name}.md", "same")
        age(plain / name / below / "a.md", plain / name / below / f"{name}.md")
    point(plain / "rev1")
    tree = WorkingTree(plain / "current" / below)
    assert list(tree.scan().entries) == ["a.md", "rev1.md"] and tree.scan() is tree.scan()
    assert document(tree, "a.md").text == "one"
    point(plain / "rev2")
    assert tree.scan().entries == {"a.md": blob_id(b"two"), "rev2.md": blob_id(b"same")}
    assert document(tree, "a.md").text == "two"
    assert isinstance(tree.read("rev1.md"), Skipped)
    shutil.rmtree(plain / "rev1")
    assert list(tree.scan().entries) == ["a.md", "rev2.md"] and tree.scan() is tree.scan()
    # Its repository, and the place in it, are those of the revision too.
    assert (tree.commit(), tree.root_path) == (None, ".")
    write(root / "checkout" / below / "a.md", "three")
    write(root / ".gitignore", "hidden.md\n")
    write(root / "checkout" / below / "hidden.md", "hidden")
    head = commit(root, "checkout", at=1_700_000_000)
    point(root / "checkout")
    assert tree.scan().entries == {"a.md": blob_id(b"three")}
    assert (tree.commit(), tree.root_path) == (head, "/".join(filter(None, ["checkout", below])))
    (plain / "current").unlink()
    with pytest.raises(SourceError, match="There is no folder"):
        tree.scan()
    point(plain / "rev2")
    assert tree.scan().entries["a.md"] == blob_id(b"two")


def test_a_folder_named_from_the_working_folder_stays_the_same(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(plain / "docs/a.md", "one")
    write(plain / "other/docs/a.md", "two")
    monkeypatch.chdir(plain)
    tree = WorkingTree(Path("docs"))
    monkeypatch.chdir(plain / "other")
    assert tree.scan().entries == {"a.md": blob_id(b"one")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_neither_counts_nor_blocks(plain: Path) -> None:
    os.mkfifo(plain / "pipe.md")
    tree = WorkingTree(plain)
    assert reasons(tree) == {"pipe.md": "not a regular file"}
    assert tree.read("pipe.md") == Skipped("pipe.md", "not a regular file")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes as a name")
def test_a_name_that_cannot_be_shown_is_escaped(root: Path, source: Source) -> None:
    """Not Unicode; with a line of its own, a colour and the end of a line; and one that seems to end in .exe."""
    if source is StagedTree and sys.version_info < (3, 11):
        pytest.skip("the last pygit2 for Python 3.10 cannot list an index with such a name")
    write(root / "docs" / "zero\u200cwidth.md", "x")  # as in names in Persian
    for name in (b"caf\xe9.md", b"a\n\x1b[31mb.md", "c\u202eexe.md".encode()):
        with open(os.fsencode(root / "docs") + b"/" + name, "wb") as file:
            file.write(b"x")
    commit(root, "odd name", at=1_700_000_100)
    made = source(root / "docs")
    assert list(made.scan().entries) == ["a.md", "zero\u200cwidth.md"]
    reason = "its name is not valid Unicode, or has control characters; rename it"
    assert reasons(made) == dict.fromkeys(["caf\\xe9.md", "a\\n\\x1b[31mb.md", "c\\u202eexe.md"], reason)


def test_an_unreadable_file_and_folder(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is the operating system's own, made to come for two names."""
    write(plain / "a.md", "a")
    write(plain / "locked.md", "b")
    write(plain / "closed/c.md", "c")

    def refusing(real: Callable[..., object]) -> Callable[..., object]:
        def call(path: str, *rest: Any, **more: Any) -> object:
            if str(path).endswith(("locked.md", "closed")):
                raise PermissionError(13, "Permission denied", path)
            return real(path, *rest, **more)

        return call

    monkeypatch.setattr(os, "open", refusing(os.open))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    tree = WorkingTree(plain)
    assert list(tree.scan().entries) == ["a.md"]
    assert reasons(tree) == {
        "closed": "the folder cannot be listed: Permission denied",
        "locked.md": "cannot be read: Permission denied",
    }
    monkeypatch.undo()
    assert sorted(tree.scan().entries) == ["a.md", "closed/c.md", "locked.md"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(plain: Path) -> None:
    write(plain / "locked.md", "b")
    (plain / "locked.md").chmod(0)
    assert "Permission denied" in reasons(WorkingTree(plain))["locked.md"]


def test_files_that_vanish(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the listing and the look, known or not, and between the scan and the read."""
    for name in ("a.md", "new.md", "known.md"):
        write(plain / name, name)
    age(*plain.iterdir())
    tree = WorkingTree(plain)
    really_open, really_lstat = os.open, os.lstat

    def removing(name: str, path: str) -> str:
        if str(path).endswith(name):
            os.unlink(path)
        return path

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda path, *rest, **more: really_open(removing("new.md", path), *rest, **more))
        assert list(tree.scan().entries) == ["a.md", "known.md"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", lambda path: really_lstat(removing("known.md", path)))
        assert list(tree.scan().entries) == ["a.md"]
    assert tree.scan().skipped == ()
    (plain / "a.md").unlink()
    assert tree.read("a.md") == Skipped("a.md", "vanished")


def test_a_file_that_changes_between_scan_and_read(root: Path) -> None:
    tree = WorkingTree(root / "docs")
    before = tree.scan().entries["a.md"]
    write(root / "docs/a.md", "# Changed\n")
    read = document(tree, "a.md")
    assert (read.text, read.blob_id) == ("# Changed\n", blob_id(b"# Changed\n"))
    assert before != read.blob_id == tree.scan().entries["a.md"]


def test_a_file_over_the_limit_is_not_read(plain: Path) -> None:
    with open(plain / "huge.md", "wb") as file:
        file.truncate(60_000_000_000)  # sparse: reading it would take minutes, and memory that is not there
    assert "60,000,000,000 bytes" in reasons(WorkingTree(plain))["huge.md"]


# --- the working tree in a repository -------------------------------------------------------------------


def test_gitignore_is_honoured_and_followed(root: Path) -> None:
    write(root / ".gitignore", "docs/build/\n")
    write(root / "docs/sub/.gitignore", "draft*\n")
    for path in ("build/x.md", "build/kept.md", "sub/draft.md", "sub/s.md", "draft.md"):
        write(root / "docs" / path, path)
    tree = WorkingTree(root / "docs")
    assert list(tree.scan().entries) == ["a.md", "draft.md", "sub/s.md"]
    run(root, "add", "-f", "docs/build/kept.md")
    assert list(tree.scan().entries) == ["a.md", "build/kept.md", "draft.md", "sub/s.md"]
    (root / "docs/sub/.gitignore").unlink()
    assert "sub/draft.md" in tree.scan().entries
    write(root / ".git/info/exclude", "draft.md\n")
    assert "draft.md" not in tree.scan().entries
    write(root / ".git/info/exclude", "draft.md\n!/docs/draft.md\n")
    assert "draft.md" in tree.scan().entries
    run(root, "rm", "-q", "--cached", "docs/build/kept.md")
    write(root / ".gitignore", "")
    assert "build/x.md" in tree.scan().entries
    assert tree.scan().entries == WorkingTree(root / "docs").scan().entries


def test_rules_that_change_while_a_tree_is_open_are_read_again(root: Path, tmp_path: Path) -> None:
    write(root / "docs/b.md", "b")
    tree = WorkingTree(root / "docs")
    assert list(tree.scan().entries) == ["a.md", "b.md"]
    write(root / "docs/.gitignore", "*" * 300_000)
    assert list(tree.scan().entries) == ["a.md", "b.md"]
    assert "docs/.gitignore cannot be used: it has more than 256,000 bytes" in (tree.problem or "")
    write(root / "docs/.gitignore", "b.md\n\f\n")
    assert (list(tree.scan().entries), tree.problem) == (["a.md"], None)
    write(root / "docs/.gitignore", "")
    run(root, "config", "core.excludesFile", str(tmp_path / "own"))
    tree = WorkingTree(root / "docs")
    assert list(tree.scan().entries) == ["a.md", "b.md"]
    write(tmp_path / "own", "b.md\n")
    assert list(tree.scan().entries) == ["a.md"]


def test_a_folder_with_tracked_pages_is_not_ignored_as_a_whole(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "own", "*\n")
    run(root, "config", "core.excludesFile", str(tmp_path / "own"))
    write(root / "docs/b.md", "b")
    assert list(WorkingTree(root / "docs").scan().entries) == ["a.md"]


def test_rules_of_a_relative_file_and_of_one_that_a_sparse_checkout_left_out(root: Path) -> None:
    write(root / "docs/.gitignore", "drafts/\n")
    write(root / ".git/own", "note.md\n")
    run(root, "config", "core.excludesFile", ".git/own")
    commit(root, "with rules", at=1_700_000_100)
    run(root, "sparse-checkout", "set", "--no-cone", "/docs/a.md")
    for path in ("docs/drafts/b.md", "docs/note.md"):
        write(root / path, "b")
    assert not (root / "docs/.gitignore").exists()
    assert list(WorkingTree(root / "docs").scan().entries) == ["a.md"]


def test_gitignore_means_nothing_outside_a_repository(plain: Path) -> None:
    write(plain / ".gitignore", "*.md\n")
    write(plain / "a.md", "a")
    tree = WorkingTree(plain)
    assert list(tree.scan().entries) == ["a.md"]
    assert (tree.commit(), tree.root_path, tree.problem) == (None, ".", None)


def test_a_submodule_inside_is_left_out_by_every_source(root: Path, source: Source, tmp_path: Path) -> None:
    run(tmp_path, "clone", "-q", str(root), "other")
    run(root, "submodule", "--quiet", "add", str(tmp_path / "other"), "docs/part")
    commit(root, "with part", at=1_700_000_100)
    made = source(root / "docs")
    assert list(made.scan().entries) == ["a.md"]
    assert "submodule" in reasons(made)["part"]
    assert list(WorkingTree(root / "docs/part/docs").scan().entries) == ["a.md"]
    run(root, "submodule", "--quiet", "deinit", "docs/part")
    write(root / "docs/part/b.md", "git shows no file in the folder of a submodule that is not there")
    assert list(WorkingTree(root / "docs").scan().entries) == ["a.md"]


@pytest.mark.parametrize("harm", ["head", "index", "gitfile"])
def test_a_broken_repository_still_has_files(root: Path, harm: str) -> None:
    if harm == "head":
        (root / ".git/HEAD").unlink()
    elif harm == "index":
        (root / ".git/index").write_bytes(b"DIRC nothing")
    else:
        (root / ".git").rename(root / "gone")
        write(root / ".git", "gitdir: nowhere")
    tree = WorkingTree(root / "docs")
    assert tree.scan().entries == {"a.md": blob_id(b"# A\n")}
    assert document(tree, "a.md").text == "# A\n"
    assert (tree.problem is None) is (harm == "index")
    with pytest.raises(GitError):
        StagedTree(root / "docs").scan()


# --- remembering ----------------------------------------------------------------------------------------


def hashed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    seen: list[bytes] = []

    def hashing(data: bytes) -> str:
        seen.append(data)
        return blob_id(data)

    monkeypatch.setattr(working_tree, "blob_id", hashing)
    return seen


def test_what_did_not_change_is_not_hashed_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.documents.repository_files._WRITTEN_BACK_NS", 0)
    write(root / "docs/b.md", "b\n")
    age(root / "docs/a.md", root / "docs/b.md")
    seen = hashed(monkeypatch)
    tree = WorkingTree(root / "docs")
    first = tree.scan()
    assert len(seen) == 2
    assert tree.scan() is first
    assert len(seen) == 2
    write(root / "docs/b.md", "B\n")
    assert tree.scan().entries == {"a.md": blob_id(b"# A\n"), "b.md": blob_id(b"B\n")}
    assert seen[2:] == [b"B\n"]
    (root / "docs/a.md").rename(root / "docs/c.md")
    assert sorted(tree.scan().entries) == ["b.md", "c.md"]
    commit(root, "the index file changes, contents do not", at=1_700_000_100)
    age(*(root / "docs").iterdir())
    tree.scan()
    count = len(seen)
    write(root / "new.txt", "x")
    run(root, "add", "new.txt")
    tree.scan()
    assert len(seen) == count


def test_a_young_file_is_hashed_again(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git's racy-clean rule: a second write within one tick of the clock leaves no trace in the stamps."""
    monkeypatch.setattr("anvil.documents.repository_files._WRITTEN_BACK_NS", 0)
    seen = hashed(monkeypatch)
    file = plain / "a.md"
    end = time.monotonic() + 20
    while len(seen) != 2:  # on a busy machine, the 50 ms of a tick can be over before the second look
        assert time.monotonic() < end
        seen.clear()
        write(file, "one")
        tree = WorkingTree(plain)
        tree.scan()
        tree.scan()
    age(file)
    tree.scan()
    tree.scan()
    assert len(seen) == 3


def test_an_edit_through_a_mapped_page_is_seen(plain: Path) -> None:
    """The second write into a page of memory that waits to be written back moves no time stamp."""
    file = plain / "a.md"
    write(file, "one\n")
    with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        mapped[0:3] = b"two"
        age(file)
        tree = WorkingTree(plain)
        for text in (b"two\n", b"six\n", b"ten\n"):
            mapped[0:3] = text[:3]
            assert tree.scan().entries == {"a.md": blob_id(text)}


def test_of_many_files_written_lately_each_is_read_again_when_it_is_old_enough(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anvil.documents.working_tree._MAX_REREAD_FILES", 2)
    for number in range(5):
        write(plain / f"{number}.md", f"{number}\n")
    age(*plain.iterdir())
    tree = WorkingTree(plain)
    tree.scan()
    seen = hashed(monkeypatch)
    tree.scan()
    assert len(seen) == 2
    monkeypatch.setattr("anvil.documents.repository_files._WRITTEN_BACK_NS", 0)
    assert isinstance(tree, working_tree.WorkingTree)
    tree._reread_at = dict.fromkeys(tree._reread_at, 0)
    tree.scan()
    assert len(seen) == 2 + 5
    tree.scan()
    assert len(seen) == 2 + 5


def test_no_change_is_missed_however_quick(plain: Path) -> None:
    file = plain / "a.md"
    tree = WorkingTree(plain)
    for round in range(200):
        text = f"{round:04}"  # always of one size
        file.write_text(text)
        assert tree.scan().entries == {"a.md": blob_id(text.encode())}


def test_a_change_behind_a_restored_time_is_seen(plain: Path) -> None:
    file = plain / "a.md"
    write(file, "one")
    age(file)
    tree = WorkingTree(plain)
    tree.scan()
    before = file.stat()
    write(file, "two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert tree.scan().entries == {"a.md": blob_id(b"two")}


def test_from_several_threads(root: Path) -> None:
    for number in range(20):
        write(root / f"docs/p{number}.md", "x" * number)
    commit(root, "pages", at=1_700_000_100)
    for made in (WorkingTree(root / "docs"), StagedTree(root / "docs")):
        expected: dict[str, str] = dict(made.scan().entries)
        failures: list[BaseException] = []

        def work(
            made: DocumentSource = made,
            expected: dict[str, str] = expected,
            failures: list[BaseException] = failures,
        ) -> None:
            try:
                for path, blob in made.scan().entries.items():
                    assert document(made, path).blob_id == blob == expected[path]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_composed_names_on_macos(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS may list names decomposed while git keeps them composed: paths are git's."""
    run(root, "config", "core.precomposeunicode", "true")
    monkeypatch.setattr(working_tree, "_PRECOMPOSES", True)
    write(root / "docs/u\u0308.md", "decomposed")
    entries = WorkingTree(root / "docs").scan().entries
    assert list(entries) == ["a.md", "\u00fc.md"]


# --- times ----------------------------------------------------------------------------------------------


def test_times_outside_git_are_the_files(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(plain / "a.md", "a")
    os.utime(plain / "a.md", (1_700_000_000, 1_700_000_000.9))
    tree = WorkingTree(plain)
    assert tree.last_modified(["a.md", "gone.md"], {}, None) == {"a.md": "2023-11-14T22:13:20Z"}
    os.utime(plain / "a.md", (1_700_000_060, 1_700_000_060))
    assert tree.last_modified(["a.md"], {}, None) == {"a.md": "2023-11-14T22:14:20Z"}
    os.utime(plain / "a.md", (1_700_000_000, 1_700_000_000))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    assert tree.last_modified(["a.md"], {}, None) == {"a.md": "2020-09-13T12:26:40Z"}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    assert tree.last_modified(["a.md"], {}, None) == {"a.md": "2023-11-14T22:13:20Z"}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(SourceError, match="SOURCE_DATE_EPOCH"):
        tree.last_modified(["a.md"], {}, None)


def test_times_in_git(root: Path) -> None:
    write(root / "docs/new.md", "new")
    write(root / "docs/a.md", "# edited, not committed\n")
    os.utime(root / "docs/new.md", (1_600_000_000, 1_600_000_000))
    run(root, "add", "docs/new.md")
    os.utime(root / "docs/a.md", (1_600_000_060, 1_600_000_060))
    committed = {"a.md": "2023-11-14T22:13:20Z", "new.md": "2020-09-13T12:26:40Z"}
    edited = {"a.md": "2020-09-13T12:27:40Z", "new.md": "2020-09-13T12:26:40Z"}
    trees = ((WorkingTree(root / "docs"), edited), (StagedTree(root / "docs"), committed))
    for made, expected in trees:
        assert made.last_modified(["a.md", "new.md"], {}, None) == expected
    (root / "docs/new.md").unlink()
    staged = StagedTree(root / "docs")
    assert staged.last_modified(["new.md"], {}, None) == {"new.md": "2023-11-14T22:13:20Z"}


def test_the_time_of_a_page_is_that_of_its_content(root: Path) -> None:
    tree = WorkingTree(root / "docs")

    def time_() -> str:
        tree.scan()
        return tree.last_modified(["a.md"], {}, None)["a.md"]

    def edited(text: str, at: int) -> None:
        write(root / "docs/a.md", text)
        os.utime(root / "docs/a.md", (at, at))

    assert time_() == "2023-11-14T22:13:20Z"
    edited("# A\n", 1_700_000_500)  # touched, with the bytes of HEAD
    assert time_() == "2023-11-14T22:13:20Z"
    edited("# Edited\n", 1_700_000_600)
    assert time_() == "2023-11-14T22:23:20Z"
    run(root, "add", "docs/a.md")
    assert time_() == "2023-11-14T22:23:20Z"
    edited("# A\n", 1_700_000_700)  # staged, but again as in HEAD
    assert time_() == "2023-11-14T22:13:20Z"
    edited("# Edited\n", 1_700_000_600)
    commit(root, "edited", at=1_700_000_100)
    assert time_() == "2023-11-14T22:15:00Z"


def test_the_time_of_a_page_with_an_external_filter_is_its_last_commit(root: Path) -> None:
    write(root / ".gitattributes", "*.md filter=lfs\n")
    write(root / "docs/a.md", "# What the filter made of the pointer\n")
    assert WorkingTree(root / "docs").last_modified(["a.md"], {}, None) == {"a.md": "2023-11-14T22:13:20Z"}


def test_times_are_those_found_last_until_head_moves(root: Path) -> None:
    tree = WorkingTree(root / "docs")
    known = {"a.md": (blob_id(b"# A\n"), "2001-01-01T00:00:00Z")}
    tree.last_modified(["a.md"], known, tree.commit())
    assert tree.last_modified(["a.md"], {}, None) == {"a.md": "2001-01-01T00:00:00Z"}
    write(root / "docs/a.md", "# B\n")
    commit(root, "b", at=1_700_000_100)
    assert tree.last_modified(["a.md"], {}, None) == {"a.md": "2023-11-14T22:15:00Z"}


def test_nothing_heavy_is_imported(plain: Path) -> None:
    """Outside a repository libgit2 is not even loaded."""
    write(plain / "a.md", "a")
    code = (
        "import sys; from pathlib import Path; from anvil.documents.working_tree import WorkingTree\n"
        "tree = WorkingTree(Path(sys.argv[1])); assert tree.scan().entries; tree.read('a.md')\n"
        "assert 'pygit2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(plain)], check=True, cwd=Path(__file__).parents[2])


def test_folders_that_no_glob_leads_into_are_not_walked(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("specs/a/b.md", "Specs2/c.md", "src/deep/d.md", ".hidden/templates/e.md", ".hidden/f.md", "g.md"):
        write(plain / path, "# x\n")
    listed: list[str] = []
    real = os.scandir

    def listing(folder: str) -> Iterator[os.DirEntry[str]]:
        listed.append(os.path.relpath(folder, plain))
        return real(folder)

    monkeypatch.setattr(os, "scandir", listing)
    globs = ("./specs/**/*.md", "SPECS2/*.md", ".hidden/templates/**/*.md", "s*/none/*.txt")
    assert sorted(WorkingTree(plain, SourceOptions(include=globs[:3])).scan().entries) == [
        ".hidden/templates/e.md",
        "Specs2/c.md",
        "specs/a/b.md",
    ]
    assert "src" not in listed and "src/deep" not in listed
    assert sorted(WorkingTree(plain, SourceOptions(include=globs)).scan().entries) == [
        ".hidden/templates/e.md",
        "Specs2/c.md",
        "specs/a/b.md",
    ]
    assert os.path.join("src", "deep") in listed
