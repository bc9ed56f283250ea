"""Commands in messages: each works in a shell as it is printed, also for another documentation folder or index."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from anvil.cli import options, output
from anvil.requests import OpenRequest
from tests.conftest import write
from tests.support.in_process import program

NAMED = ("--docs", "notes", "--index", "my index.db")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path, {"docs/other.md": "# Other\n", "notes/a.md": "# Notes\n\nThe text.\n"})


def advice(*arguments: str, project: Path, code: int = 2) -> list[str]:
    """The words of the first command that a message advises."""
    done = program(*arguments, cwd=project, code=code)
    match = re.search(r"(?:'|: )anvil ((?:'[^',]+'|[^'\n])+)(?:'|$)", done.stdout + done.stderr, re.MULTILINE)
    assert match is not None
    return shlex.split(match[1])


def test_a_build_that_is_advised_is_of_these_documents_and_this_index(project: Path) -> None:
    def built(*arguments: str, code: int = 2) -> str:
        words = advice(*arguments, project=project, code=code)
        assert words[0] == "build"
        return program(*words, cwd=project).stdout

    assert "Built my index.db: 1 page" in built("check", *NAMED)
    write(project, {"notes/b.md": "# B\n"})
    assert "Built my index.db: 2 pages" in built("check", *NAMED, code=1)
    write(project, {"notes/c.md": "# C\n"})
    assert "Built my index.db: 3 pages" in built("status", *NAMED, code=0)
    (project / "my index.db").unlink()
    assert "Built my index.db: 3 pages" in built("ci", "check", *NAMED)
    for damaged in (b"", (project / "my index.db").read_bytes()[:6000]):
        (project / "my index.db").write_bytes(damaged)
        assert "Built my index.db: 3 pages" in built("search", *NAMED, "text")
    assert "Built notes/.anvil/index.db: 3 pages" in built("lint", "notes", "--rule", "near-duplicate", code=0)
    program("build", "notes", "--force", "--provider", "none", cwd=project)
    assert "0 passages embedded, 3 reused" in built("search", "--docs", "notes", "--mode", "semantic", "text")


def test_the_pages_that_are_named_are_those_of_these_documents(project: Path) -> None:
    words = advice("show", "--docs", "notes", "missing.md", project=project)
    assert program(*words, cwd=project).stdout.startswith("a.md")


def test_a_command_that_takes_fewer_options_gets_no_others(project: Path) -> None:
    words = advice("list", "--docs", "notes", "--provider", "none", "nowhere", project=project)
    assert words == ["list", "--docs", "notes"]


def test_the_file_of_a_library_is_no_index_to_build(project: Path) -> None:
    program("ingest", "notes", "--index", "library.db", "--provider", "none", cwd=project)
    told = program("library", "search", "text", "--index", "library.db", cwd=project).stderr
    assert "'anvil ingest --reembed'" in told and "build --index" not in told


def test_no_command_has_the_password_of_an_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "project_options", {})

    def command(given: OpenRequest) -> None:
        output.warn(f"Run 'anvil list'. To build: {options.build_command(given)}")

    called: Any = options.given(options.docs, options.index)(command)
    called(docs=None, index="https://me:hunter2@docs.example.com/x.db")
    told = capsys.readouterr().err
    assert told.count("--index https://NAME:PASSWORD@docs.example.com/x.db") == 2 and "hunter2" not in told
