"""Files of a project are read through ``safe_read``: what stands at a known name may be a pipe, a device or endless."""

from __future__ import annotations

import ast
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from anvil.cli import program as app
from tests.conftest import PAGES, write

ROOT = Path(__file__).resolve().parents[2]
READS = {"read_text", "read_bytes"}
ELSEWHERE = {
    "anvil/fetch/": "what was just downloaded into a folder of Anvil's own, and the cache",
    "anvil/index_file/": "the index, which has checks of its own",
    "anvil/library/": "in a worker process with limits",
    "anvil/embedding/model_files.py": "files of the model",
    "anvil/git/": "files inside .git, and merge drivers' temporary files",
    "anvil/system/installation.py": "metadata of the installed package",
    "anvil/dependencies/pypi.py": "metadata of an installed package",
    "anvil/sites/page_cache.py": "the cache of this user",
    "anvil/sites/site_folder.py": "regular files, as they were listed",
    "anvil/sites/reader_processes.py": "regular files, as they were listed",
    "anvil/ci/": "the checkout of this job, and the installed program",
    "anvil/context/cli.py": "a file of the installed package",
    "anvil/git_drivers/cli.py": "files that git passes to its merge driver",
    "anvil/server/": "files of the installed package, and the token file that the operator names",
    "anvil/context/run_log.py": "Anvil's own log",
    "anvil/dependencies/finder.py": "an index that was just fetched",
    "anvil/doctor/folders.py": "files of the kernel",
    "anvil/doctor/python_packages.py": "metadata of an installed package",
    "anvil/search/searcher.py": "a file of the installed package",
}
"""Module or folder -> what it reads that is no file of a project."""


def test_files_of_a_project_are_read_by_one_function() -> None:
    around = []
    for file in sorted((ROOT / "anvil").rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name.startswith(tuple(ELSEWHERE)):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
                around.append(f"{name}:{node.lineno} calls {node.func.attr}")
    assert around == []


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
            made.truncate(100_000_000)


@pytest.mark.skipif(os.name == "nt", reason="no pipes and devices")
@pytest.mark.parametrize("kind", ["a pipe", "a link to a device", "a link to a pipe", "a folder", "100 MB"])
def test_no_command_waits_for_a_name_or_reads_it_without_end(
    tmp_path: Path, kind: str, limited: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name in enumerate(NAMES):
        project = tmp_path / str(number)
        write(project / "docs", PAGES)
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
