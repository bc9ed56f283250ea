"""``anvil grep``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import write
from tests.support import in_process

PAGES = {
    "index.md": "# Home\n\nSet ANVIL_TOKEN.\nThen start.\n\none\ntwo\nthree\n\nAnvil_token again.\n",
    "guides/serve.md": "# Serve\n\n| `--token` | ANVIL_TOKEN |\n",
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "docs", PAGES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def grep(*arguments: str, code: int = 0) -> str:
    return in_process.program("grep", "--provider", "none", *arguments, code=code).stdout.replace("\\", "/")


def test_lines_are_printed_as_grep_prints_them(work: Path) -> None:
    assert grep("anvil_token").splitlines() == [
        "docs/guides/serve.md:3:| `--token` | ANVIL_TOKEN |",
        "docs/index.md:3:Set ANVIL_TOKEN.",
        "docs/index.md:10:Anvil_token again.",
    ]
    assert grep("-s", "Anvil_token") == "docs/index.md:10:Anvil_token again.\n"
    assert grep("-E", r"^th\w+e$") == "docs/index.md:8:three\n"
    assert grep("-l", "anvil_token") == "docs/guides/serve.md\ndocs/index.md\n"
    assert grep("--", "--token", "docs/guides") == "docs/guides/serve.md:3:| `--token` | ANVIL_TOKEN |\n"


def test_paths_are_from_the_working_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work / "docs")
    assert grep("--docs", ".", "-l", "anvil_token") == "guides/serve.md\nindex.md\n"
    monkeypatch.chdir(work / "docs/guides")
    assert grep("--docs", "..", "-l", "anvil_token") == "serve.md\n../index.md\n"


def test_the_documentation_folder_itself_is_a_path(work: Path) -> None:
    everywhere = grep("anvil_token")
    assert [grep("anvil_token", typed) for typed in ("docs", "docs/", str(work / "docs"), ".")] == [everywhere] * 4


def test_context_is_printed_once_and_groups_are_separate(work: Path) -> None:
    assert grep("-C", "1", "-E", "start|Set|three", "index.md").splitlines() == [
        "docs/index.md-2-",
        "docs/index.md:3:Set ANVIL_TOKEN.",
        "docs/index.md:4:Then start.",
        "docs/index.md-5-",
        "--",
        "docs/index.md-7-two",
        "docs/index.md:8:three",
        "docs/index.md-9-",
    ]


def test_the_exit_code_is_that_of_grep(work: Path) -> None:
    assert grep("nowhere to be found", code=1) == ""
    done = in_process.program("grep", "-E", "(", code=2)
    assert "regular expression is not valid" in done.stderr
    done = in_process.program("grep", "", code=2)
    assert "The pattern is empty" in done.stderr
    done = in_process.program("grep", "--provider", "none", "x", "guide", code=2)
    assert "'anvil list' names the pages" in done.stderr


def test_a_limit_says_how_many_are_left(work: Path) -> None:
    done = in_process.program("grep", "--provider", "none", "-m", "1", "anvil_token")
    assert len(done.stdout.splitlines()) == 1 and "2 more matching lines" in done.stderr


def test_json_is_the_result_of_the_tool(work: Path) -> None:
    assert json.loads(grep("--json", "--", "--token")) == {
        "matches": [
            {
                "file_path": "guides/serve.md",
                "line": 3,
                "text": "| `--token` | ANVIL_TOKEN |",
                "heading_path": "Serve",
            }
        ],
        "total_matches": 1,
        "total_pages": 1,
        "next_offset": None,
    }
