"""Files of a project are read through ``safe_files``: what has a known name may be a pipe, a device or endless."""

from __future__ import annotations

import ast
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import anvil
from anvil.cli import program as app
from anvil.doc_tests.question_log import QuestionLog
from anvil.errors import BuildError
from anvil.git.tracked_file import TrackedIndex
from anvil.library.server_info import path_check
from anvil.settings.schema import Config
from anvil.system import safe_files
from tests.conftest import PAGES, write
from tests.support import repositories

ROOT = Path(__file__).resolve().parents[2]
READS = {"read_text", "read_bytes", "FileIO"}
ARGUMENTS = {"mode", "buffering", "encoding", "errors", "newline", "opener"}
"""Names of the arguments of ``open`` besides the file."""
ELSEWHERE = {
    "anvil/ci/program_key.py": "the source of the action",
    "anvil/context/cli.py": "a file of the installed package; a library",
    "anvil/dependencies/python_ecosystem.py": "metadata of an installed package",
    "anvil/doc_tests/question_log.py": "its log, regular files only, line by line",
    "anvil/documents/repository_files.py": "pages, regular files only, without links, and within their limit",
    "anvil/embedding/local.py": "files of the model",
    "anvil/embedding/passages.py": "files of the model",
    "anvil/fetch/download.py": "what was just downloaded into a folder of Anvil's own",
    "anvil/fetch/fetched_cache.py": "the cache of this user",
    "anvil/git/repository.py": "files inside .git",
    "anvil/git/tracked_file.py": "regular files: the index, block by block, and objects of Git LFS inside .git",
    "anvil/git_drivers/cli.py": "files that git passes to its merge driver",
    "anvil/index_file/connection.py": "the first bytes of the index; a file of the installed package",
    "anvil/index_file/publish.py": "the first bytes of the index, and folders",
    "anvil/library/conversion_process.py": "a regular file of a document, after a look at its size",
    "anvil/library/library_file.py": "a file of the installed package",
    "anvil/library/server_info.py": "a byte of a regular file",
    "anvil/library/web_download.py": "what was just downloaded into a folder of Anvil's own",
    "anvil/search/confidence.py": "a file of the installed package",
    "anvil/search_page/publishing.py": "files of the installed package",
    "anvil/server/protocol.py": "a file of the installed package",
    "anvil/server/playground.py": "files of the installed package",
    "anvil/server/http_options.py": "the token file that the operator names",
    "anvil/sites/reader_processes.py": "regular files, as they were listed",
    "anvil/sites/site_folder.py": "regular files, as they were listed",
    "anvil/sites/site_listing.py": "the cache of this user",
    "anvil/system/installation.py": "metadata of the installed package",
    "anvil/system/safe_files.py": "the functions",
}
"""Module -> what it reads that is no file of a project, or how it is bounded there."""
OBJECTS = {"given.open()", "self.location.open()", "self.open()"}
"""Calls of other methods with the name ``open``."""


def _reads(call: ast.Call) -> bool:
    """Whether a call can read a file, by its name: ``open``, ``os.open``, ``Path.open``, ``read_text`` ..."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in READS:
        return True
    if name != "open" or ast.unparse(call) in OBJECTS or "os.devnull" in ast.unparse(call):
        return False
    if ast.unparse(call.func) == "os.open":
        return "O_WRONLY" not in ast.unparse(call)
    if ast.unparse(call.func) in ("open", "io.open", "codecs.open"):
        positional = call.args[1:]
    elif {keyword.arg for keyword in call.keywords} <= ARGUMENTS:
        positional = call.args
    else:
        return False  # such as anvil.open(docs, config=...)
    modes = [*positional[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    if not modes:
        return True
    mode = modes[0].value if isinstance(modes[0], ast.Constant) else None
    return isinstance(mode, str) and ("r" in mode or "+" in mode)


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("open(path)", True),
        ("open(path, 'rb', opener=each)", True),
        ("open(path, encoding='utf-8')", True),
        ("path.open()", True),
        ("path.open('rb')", True),
        ("path.open(mode='r+b')", True),
        ("io.open(path)", True),
        ("os.open(path, os.O_RDONLY)", True),
        ("os.open(path, FLAGS)", True),
        ("path.read_bytes()", True),
        ("io.FileIO(path)", True),
        ("open(path, 'w')", False),
        ("path.open('xb')", False),
        ("os.open(path, os.O_WRONLY)", False),
        ("os.open(os.devnull, os.O_RDONLY)", False),
        ("anvil.open(docs, config=config)", False),
        ("archive.open(member)", False),
    ],
)
def test_a_read_is_recognized(code: str, reads: bool) -> None:
    [call] = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    assert _reads(call) is reads


def test_files_of_a_project_are_read_by_one_function() -> None:
    around, used = [], set()
    for folder in ("anvil", "mkdocs_anvil"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            name, code = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(code)) if any(f"{word}(" in code for word in (*READS, "open")) else ():
                if isinstance(node, ast.Call) and _reads(node):
                    used.add(name)
                    if name not in ELSEWHERE:
                        around.append(f"{name}:{node.lineno} calls {ast.unparse(node.func)}")
    assert around == [] and used == set(ELSEWHERE)


NAMES = (
    "anvil.toml",
    "pyproject.toml",
    "Cargo.toml",
    "package.json",
    "mcp.config.json",
    "context.json",
    "anvil.lock",
    "anvil-tests.toml",
    "mkdocs.yml",
    "mkdocs.yaml",
    "properdocs.yml",
    "zensical.toml",
    "docusaurus.config.js",
    "docs/.vitepress/config.ts",
    "hugo.toml",
    "hugo.yaml",
    "_config.yml",
    "book.toml",
    "docs/conf.py",
    "astro.config.mjs",
    "antora.yml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "AGENTS.md",
    "CLAUDE.md",
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".pre-commit-config.yaml",
    ".gitignore",
    ".gitattributes",
    "docs/.anvil/index.db",
    "docs/.anvil/index.json",
    "docs/.anvil/.gitignore",
)
COMMANDS = (
    ("search", "alert", "--provider", "none"),
    ("lint", "docs"),
    ("agents", "--skill"),
    ("deps",),
)
LIMIT_S = 20


@pytest.fixture
def limited() -> Iterator[None]:
    """A command that waits for ever fails."""

    def expired(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"the command did not end in {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, expired)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


git_home = pytest.fixture(repositories.isolation)


@pytest.fixture
def root(tmp_path: Path, git_home: None) -> Path:
    """A repository with documentation, and a file in place of its index."""
    root = write(tmp_path / "repo", {**{f"docs/{path}": text for path, text in PAGES.items()}, "docs.anvil.db": "x"})
    repositories.run(root, "init", "-q", "-b", "main")
    repositories.commit(root, "first", at=1_700_000_000)
    return root


KINDS = ["a pipe", "a link to a device", "a link to a pipe", "a folder", "11 MB"]


def _make(file: Path, kind: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "a pipe":
        os.mkfifo(file)
    elif kind == "a link to a device":
        file.symlink_to("/dev/zero")
    elif kind == "a link to a pipe":
        os.mkfifo(file.with_name(file.name + ".pipe"))
        file.symlink_to(file.with_name(file.name + ".pipe"))
    elif kind == "a folder":
        file.mkdir()
    else:
        with file.open("wb") as made:
            made.truncate(11_000_000)


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_regular_file_of_limited_size_is_read(tmp_path: Path, kind: str, limited: None) -> None:
    _make(tmp_path / "name", kind)
    signal.alarm(LIMIT_S)
    with pytest.raises(OSError, match=r"not a regular file|Is a directory|more than 10,000,000 bytes"):
        safe_files.text(tmp_path / "name")


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
def test_no_command_waits_for_a_name(
    tmp_path: Path, limited: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the kinds, one that keeps a reader waiting."""
    kind = "a link to a pipe"
    for number, name in enumerate(NAMES):
        project = tmp_path / str(number)
        write(project / "docs", {"index.md": "# Alerts\n\nAn alert is sent.\n"})  # small: 156 commands run here
        (project / ".claude/skills").mkdir(parents=True)
        _make(project / name, kind)
        monkeypatch.chdir(project)
        for command in COMMANDS:
            signal.alarm(LIMIT_S)
            began = time.process_time()
            app.run([*command])
            assert time.process_time() - began < LIMIT_S / 2, f"{name} as {kind}: {command}"
            signal.alarm(0)
            said = capsys.readouterr().err
            assert "Traceback" not in said and "Error)" not in said, f"{name} as {kind}: {command}: {said}"


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_does_not_wait_for_the_gitignore_of_the_index(tmp_path: Path, kind: str, limited: None) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, provider="none") as opened:
        opened.index()
    (docs / ".anvil" / ".gitignore").unlink()
    _make(docs / ".anvil" / ".gitignore", kind)
    write(docs, {"new.md": "# Quagga\n"})
    signal.alarm(LIMIT_S)
    with anvil.open(docs, provider="none", background=True) as served:
        assert served.search("quagga").results[0].metadata.file_path == "new.md"


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", [*KINDS, "other bytes"])
def test_a_manifest_is_written_in_place_of_what_is_none(tmp_path: Path, kind: str, limited: None) -> None:
    write(tmp_path / "site", {"index.html": "<title>Tides</title><main><h1>Tides</h1>High water.</main>"})
    manifest = tmp_path / "site" / "anvil" / "index.json"
    if kind == "other bytes":
        manifest.parent.mkdir()
        manifest.write_bytes(b"\xff\xfe")
    else:
        _make(manifest, kind)
    signal.alarm(LIMIT_S)
    code = app.run(["build", "--site", str(tmp_path / "site"), "--provider", "none"])
    assert code == (2 if kind == "a folder" else 0) and (kind == "a folder" or "digest" in manifest.read_text())


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", KINDS)
def test_the_attributes_of_git_are_read_as_a_file(
    root: Path, kind: str, limited: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _make(root / ".gitattributes", kind)
    monkeypatch.chdir(root)
    signal.alarm(LIMIT_S)
    assert app.run(["git", "install", "--index", "docs.anvil.db"]) == 2
    said = capsys.readouterr().err
    assert ".gitattributes cannot be read" in said and "Traceback" not in said and "Error)" not in said


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", ["a pipe", "a link to a device", "a link to a pipe"])
def test_the_tracked_index_is_compared_with_a_file_alone(root: Path, kind: str, limited: None) -> None:
    (root / "docs.anvil.db").unlink()
    _make(root / "docs.anvil.db", kind)
    signal.alarm(LIMIT_S)
    assert not TrackedIndex(root / "docs.anvil.db", root / "docs").is_staged()


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
def test_a_library_does_not_open_a_pipe_to_say_whether_it_can_be_read(tmp_path: Path, limited: None) -> None:
    os.mkfifo(tmp_path / "a.pdf")
    signal.alarm(LIMIT_S)
    check = path_check(str(tmp_path / "a.pdf"))
    assert not check.readable and check.error == "It is neither a file nor a folder."


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
def test_a_log_of_questions_is_a_file(tmp_path: Path, limited: None) -> None:
    log = QuestionLog.of(tmp_path, "docs", Config())
    _make(log.path, "a pipe")
    signal.alarm(LIMIT_S)
    with pytest.raises(BuildError, match="is a pipe"):
        list(log.read())
