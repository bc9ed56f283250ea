"""What is told to GitHub's runner is read by it as it was meant, whatever the documents hold."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anvil
from anvil.ci import runners
from anvil.ci.runners import MAX_SUMMARY_BYTES
from anvil.errors import BuildError
from tests.support.action_runner import Job, Run, pairs

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
NASTY = st.lists(st.sampled_from(["::", "%0A", "%", "\n", "\r", ",", ":", "##[add-mask]", "=", "<<", "\u202e", "x"]))
TEXT = ANY | NASTY.map("".join)


def read(lines: list[str]) -> Run:
    """What the runner makes of the lines of a log."""
    run = Run()
    job = Job(Path(), Path(), Path(), Path())
    for line in re.split(r"\r\n|\n|\r", "\n".join(lines)):
        job._read(line, run)
    return run


def test_elsewhere_than_on_github_a_path_is_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tools").mkdir()
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    with anvil.open(tmp_path / "docs") as opened:
        assert runners.checkout_path(opened, "a.md") == "docs/a.md"
        monkeypatch.chdir(tmp_path / "tools")
        assert runners.checkout_path(opened, "a.md") == "../docs/a.md"


@given(TEXT, TEXT)
def test_an_annotation_is_one_command(message: str, file: str) -> None:
    said: list[str] = []
    runners.GitHub(said.append, None, None).annotate("warning", message, file, 3)
    (told,) = read(said).annotations
    assert [runners.visible(part) for part in re.split("[\r\n]", message)] == re.split("[\r\n]", told.message)
    assert told.level == "warning" and told.properties["line"] == "3" and told.properties["title"] == "Anvil"
    assert runners.visible(told.properties["file"]) == runners.visible(file)


@given(TEXT)
def test_a_line_is_no_command(text: str) -> None:
    said: list[str] = []
    runners.GitHub(said.append, None, None).line(text)
    assert len(said) == 1 and "\n" not in said[0] and "\r" not in said[0] and read(said).commands == []


def test_of_each_level_ten_notes_are_annotations_and_the_others_lines_of_the_log() -> None:
    said: list[str] = []
    notes = [runners.Note("warning", f"message {number}", "a.md", number) for number in range(1, 13)]
    runners.GitHub(said.append, None, None).show([*notes, runners.Note("error", "last", "b.md", 1)], 10)
    assert [told.message for told in read(said).annotations] == [*(f"message {n}" for n in range(1, 11)), "last"]
    assert said[10:12] == ["warning: a.md:11: message 11", "warning: a.md:12: message 12"]


@given(TEXT, st.sampled_from(["", "\nend-0\n", "\nother=1\n"]))
def test_an_output_is_read_back(tmp_path_factory: pytest.TempPathFactory, value: str, more: str) -> None:
    file = tmp_path_factory.mktemp("o") / "output"
    value = value.replace("\r", "") + more
    runner = runners.GitHub(lambda line: None, str(file), None)
    runner.output({"one": value, "two": "2"})
    runner.output({"three": "3"})
    assert pairs(file) == {"one": value, "two": "2", "three": "3"}


def test_a_summary_is_added_to_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    runner = runners.GitHub(lambda line: None, None, str(file))
    runner.summarize("# One\n")
    runner.summarize("| ä |\n" * 200_000)
    text = file.read_bytes()
    assert MAX_SUMMARY_BYTES - 100 < len(text) <= MAX_SUMMARY_BYTES
    assert text.startswith("# One\n| ä |\n".encode())
    assert text.decode().endswith("left out: a summary can have 1 MiB.*\n")
    assert runners.truncate("<details><summary>9 more</summary>\n\n" + "| a |\n" * 99, 200, "\n\nCut.").endswith(
        "| a |\n\n</details>\n\nCut."
    )
    runner.summarize("more\n" * 100)
    assert len(file.read_bytes()) <= MAX_SUMMARY_BYTES
    with pytest.raises(BuildError, match=r"no.such\.md cannot be written"):
        runners.GitHub(lambda line: None, None, str(tmp_path / "no/such.md")).summarize("# One\n")


def test_elsewhere_plain_lines_are_printed(tmp_path: Path) -> None:
    said: list[str] = []
    runner = runners.runner({}, said.append, str(tmp_path / "s.md"))
    runner.annotate("warning", "Left\nout", "docs/a.md", 7)
    runner.annotate("error", "stale")
    runner.output({"pages": "3"})  # there are no later steps to read it
    runner.summarize("# S\n")
    assert said == ["warning: docs/a.md:7: Left\\nout", "error: stale"]
    assert (tmp_path / "s.md").read_text() == "# S\n"


def test_github_is_known_by_what_it_sets(tmp_path: Path) -> None:
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": os.fspath(tmp_path / "o"), "GITHUB_STEP_SUMMARY": ""}
    runner = runners.runner(variables, lambda line: None, None)
    runner.output({"a": "b"})
    runner.summarize("nowhere to go")
    assert isinstance(runner, runners.GitHub) and (tmp_path / "o").read_text() == "a=b\n"


def test_a_text_is_cut_only_if_it_is_too_long() -> None:
    assert runners.truncate("one\ntwo\n", 8, "...") == "one\ntwo\n"
    assert runners.truncate("one\ntwo\nthree\n", 14, "") == "one\ntwo\nthree\n"
    assert len(runners.truncate("line\n" * 100, 400, "...").encode()) <= 400
