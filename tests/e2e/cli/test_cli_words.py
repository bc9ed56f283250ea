"""Words that people type: paths as results print them, queries without quotes, a folder, options of older Anvils."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.conftest import write
from tests.e2e.cli.test_cli import built, work  # noqa: F401 - fixtures
from tests.support import in_process
from tests.support.programs import complaint, program

# --- paths ------------------------------------------------------------------------------------------------------


def test_a_place_that_search_prints_can_be_shown(built: Path) -> None:  # noqa: F811
    for cwd in (built, built / "docs", built / "docs/guides"):
        text = program("search", "silence at night", "-k", "3", cwd=cwd).stdout
        places = re.findall(r"^\d+\. (\S+:\d+)  ", text, re.MULTILINE)
        assert places
        for place in places:
            shown = in_process.program("show", place, cwd=cwd).stdout
            path, _, line = place.rpartition(":")
            assert (cwd / path).read_text(encoding="utf-8").splitlines()[int(line) - 1] in shown
            assert in_process.program("show", path, cwd=cwd).stdout.splitlines()[-1] in (cwd / path).read_text()
            result = in_process.printed("search", "silence at night", "--filter", place, cwd=cwd)["results"]
            assert {(built / "docs" / hit["metadata"]["file_path"]).resolve() for hit in result} == {
                (cwd / path).resolve()
            }


@pytest.mark.parametrize(
    "typed",
    [
        "guides/alerts.md",
        "docs/guides/alerts.md",
        "./docs/guides/alerts.md",
        "/guides/alerts.md",
        "alerts.md",
        "alerts",
        "guides/alerts",
        "docs/guides/alerts.md:1",
    ],
)
def test_one_page_has_many_names(built: Path, typed: str) -> None:  # noqa: F811
    assert in_process.program("show", typed, cwd=built).stdout.startswith("# Alerts\n")
    section = in_process.program("show", f"{typed.removesuffix(':1')}#e-mail", cwd=built).stdout
    assert section.startswith("## E-mail\n")


def test_a_line_behind_the_end_of_a_page_is_refused(built: Path) -> None:  # noqa: F811
    assert "guides/alerts.md ends at line" in complaint("show", "alerts.md:99", cwd=built, by=in_process.program)


def test_a_name_that_two_pages_have_is_not_guessed(built: Path) -> None:  # noqa: F811
    write(built / "docs", {"other/alerts.md": "# Other\n"})
    told = complaint("show", "alerts", cwd=built, by=in_process.program)
    assert "There is no page alerts" in told and "guides/alerts.md" in told and "other/alerts.md" in told


def test_a_page_with_a_number_sign_or_a_line_in_its_name(built: Path) -> None:  # noqa: F811
    write(built / "docs", {"c#.md": "# Sharp\n\n## Use\n\nWords.\n"})
    assert in_process.program("show", "docs/c#.md#use", cwd=built).stdout.startswith("## Use")
    if os.name != "nt":
        write(built / "docs", {"a.md:7": "not a page", "b:3.md": "# Three\n"})
        assert in_process.program("show", "b:3.md", cwd=built).stdout == "# Three\n"


def test_folders_are_listed_as_results_name_them(built: Path) -> None:  # noqa: F811
    for typed in ("guides", "guides/", "docs/guides", "./docs/guides/"):
        lines = in_process.program("list", typed, cwd=built).stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["guides/alerts.md", "guides/checks.md"]
    assert "Closest: guides." in complaint("list", "guide", cwd=built, by=in_process.program)
    complaint("list", "nope", cwd=built)


def test_a_filter_that_matches_no_page_says_so(built: Path) -> None:  # noqa: F811
    done = in_process.program("search", "alerts", "--filter", "alert.md", cwd=built)
    assert "No page matches alert.md." in done.stderr and "guides/alerts.md" in done.stderr
    assert not done.stdout, "the index has pages"
    done = in_process.program("search", "alerts", "--version", "9", cwd=built)
    assert "No page has the version 9." in done.stderr and not done.stdout
    for glob in ("docs/guides/*", "guides/*", str(built / "docs/guides/*")):
        hits = in_process.printed("search", "alerts", "--filter", glob, cwd=built)["results"]
        assert hits and all(hit["metadata"]["file_path"].startswith("guides/") for hit in hits)


# --- words ------------------------------------------------------------------------------------------------------


def test_a_question_needs_no_quotes(built: Path) -> None:  # noqa: F811
    quoted = in_process.printed("search", "silence at night", cwd=built)["results"]
    assert in_process.printed("search", "silence", "at", "night", cwd=built)["results"] == quoted
    assert in_process.printed("search", "silence", "-k", "5", "at", "night", cwd=built)["results"] == quoted


@pytest.mark.parametrize(
    ("typed", "meant"), [("serach", "'search'"), ("stauts", "'status'"), ("how do I", "'anvil search'")]
)
def test_a_command_that_is_none_names_the_one_that_was_meant(typed: str, meant: str) -> None:
    told = in_process.program(typed, code=2).stderr
    assert meant in told and f"There is no command {typed!r}" in told
    assert "'ingest'" in in_process.program("context", "ingset", code=2).stderr


@pytest.mark.parametrize(
    "words", [["search", "-k", "50", "x"], ["search", "-k", "0", "x"], ["context", "search", "-k", "21", "x"]]
)
def test_a_number_of_results_that_cannot_be_had_is_an_error(built: Path, words: list[str]) -> None:  # noqa: F811
    assert "is not in the range 1<=x<=20" in in_process.program(*words, cwd=built, code=2).stderr


def test_one_option_given_twice_is_an_error(built: Path) -> None:  # noqa: F811
    for words in (["--docs", "a", "--docs", "a"], ["--docs", "a", "-d", "b"], ["--index", "a", "--db", "b"]):
        assert "given 2 times" in in_process.program("check", *words, cwd=built, code=2).stderr
    assert "given twice" in in_process.program("check", "docs", "--docs", "docs", cwd=built, code=2).stderr


def test_the_folder_is_an_argument_too(work: Path) -> None:  # noqa: F811
    write(work, {"other/a.md": "# A\n"})
    assert "Built other/.anvil/index.db: 1 page" in in_process.program("build", "other", cwd=work).stdout
    assert "other/.anvil/index.db is fresh" in in_process.program("check", "other", cwd=work).stdout
    assert re.search(r"docs  other$", in_process.program("status", "other", cwd=work).stdout, re.MULTILINE)
    in_process.program("doctor", "other", cwd=work)


def test_a_folder_that_is_not_there_names_those_with_markdown(tmp_path: Path) -> None:
    write(tmp_path, {"manual/en/a.md": "# A\n", "notes/b.md": "# B\n", "src/c.py": "", ".hidden/d.md": "# D\n"})
    for words in (["build"], ["search", "x"], ["check", "nowhere"], ["init", "--yes"], ["init", "--client", "cursor"]):
        told = complaint(*words, cwd=tmp_path, by=in_process.program)
        assert told.endswith("manual and notes hold Markdown.") and "src" not in told and ".hidden" not in told, told
    write(tmp_path, {"README.md": "# A\n", "CHANGELOG.md": "# B\n"})
    told = complaint("build", cwd=tmp_path, by=in_process.program)
    assert told.endswith("manual and notes hold Markdown, and '.' has README.md and 1 more Markdown file."), told


def test_a_folder_without_a_page_names_those_with_markdown(tmp_path: Path) -> None:
    write(tmp_path, {"docs/index.html": "", "manual/a.md": "# A\n"})
    advice = "or all are left out. Name the documentation folder with --docs: manual holds Markdown.\n"
    assert in_process.program("build", cwd=tmp_path).stderr.endswith(advice)
    assert in_process.program("search", "x", cwd=tmp_path).stdout == (
        "Nothing found in 0 chunks. No page is indexed: 'anvil doctor' says why.\n"
    )
    assert "No file in the documentation folder is a page: " in in_process.program("lint", cwd=tmp_path).stdout


def test_errors_speak_of_commands_and_of_paths_from_here(built: Path) -> None:  # noqa: F811
    for words in (
        ["show", "none.md"],
        ["show", "index.md#nope"],
        ["show", "../../x.md"],
        ["search", " "],
        ["check", "--index", "none.db"],
        ["build", "gone"],
    ):
        told = complaint(*words, cwd=built, by=in_process.program)
        assert not re.search(r"\w+_(pages|page|section|docs|status)\b|query parameter", told), told
        assert str(built) not in told


# --- what the older Anvil understood --------------------------------------------------------------------------------


def test_options_may_stand_before_the_command(built: Path) -> None:  # noqa: F811
    assert "is fresh" in in_process.program("--docs", "docs", "check", cwd=built).stdout
    told = in_process.program("-d", "docs", "--db=docs/../docs/.anvil/index.db", "check", cwd=built).stdout
    assert told.startswith("docs/.anvil/index.db is fresh")
    assert in_process.program("-v").stdout == in_process.program("--version").stdout


def test_without_a_command_it_serves_a_pipe(built: Path) -> None:  # noqa: F811
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    for words in ([], ["--docs", "docs"], ["-d", "docs", "--db", "docs/.anvil/index.db"]):
        done = program(*words, cwd=built, input=json.dumps(hello) + "\n")
        assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"]


def test_the_older_configuration_is_named_and_made_into_ours(tmp_path: Path) -> None:
    older = {
        "docs": "./manual",
        "db": "./.anvil/index.db",
        "embedding": {"provider": "local", "apiKey": "sk-secret"},
        "chunking": {"maxChunkSize": 4000, "mergeShort": False},
        "watch": True,
    }
    write(tmp_path, {"manual/a.md": "# A\n", "anvil.config.json": json.dumps(older)})
    assert "anvil.config.json is from an older Anvil" in in_process.program("build", "manual", cwd=tmp_path).stderr
    told = in_process.program("init", "--yes", cwd=tmp_path).stdout
    assert "Wrote anvil.toml from anvil.config.json." in told and "db, embedding.apiKey, watch" in told
    text = (tmp_path / "anvil.toml").read_text(encoding="utf-8")
    assert 'docs = "manual"' in text and "\nmax_chunk_size = 4000" in text and "\nmerge_short_sections = false" in text
    assert "sk-secret" not in text + told
    assert not in_process.program("list", cwd=tmp_path).stderr
    (tmp_path / "anvil.toml").unlink()
    unknown = '{"embedding": {"provider": "foo"}}'
    for bad in ("{", "[]", '{"chunking": {"maxChunkSize": "x"}}', '{"docs": 5}', unknown):
        write(tmp_path, {"anvil.config.json": bad})
        assert "anvil.config.json" in complaint("init", "--yes", cwd=tmp_path, by=in_process.program)
    assert not (tmp_path / "anvil.toml").exists()


@pytest.mark.parametrize(("folder", "named"), [("docs", []), ("manual", ["--docs", "manual"]), ("manual", ["manual"])])
def test_the_older_configuration_is_found_in_the_documentation_too(
    tmp_path: Path, folder: str, named: list[str]
) -> None:
    file = f"{folder}/anvil.config.json"
    write(tmp_path, {f"{folder}/a.md": "# A\n", file: '{"docs": "./", "chunking": {"maxChunkSize": 4000}, "db": "x"}'})
    warned = in_process.program("build", *named, "--provider", "none", cwd=tmp_path).stderr
    assert f"{file} is from an older Anvil and is not read. Run 'anvil init'" in warned
    told = in_process.program("init", "--yes", *(["--docs", folder] if named else []), cwd=tmp_path).stdout
    assert f"Wrote anvil.toml from {file}." in told and "Not taken from" in told
    text = (tmp_path / "anvil.toml").read_text(encoding="utf-8")
    assert f'docs = "{folder}"' in text and "\nmax_chunk_size = 4000" in text
    assert not in_process.program("list", cwd=tmp_path).stderr


# --- completion -----------------------------------------------------------------------------------------------------


def test_the_shell_completes_commands_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ANVIL_COMPLETE", "bash_complete")
    for words, index, wanted in (("anvil se", "1", {"search", "serve"}), ("anvil build --sta", "2", {"--staged"})):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", index)
        found = {line.partition(",")[2] for line in program().stdout.splitlines()}
        assert found == wanted
    for words in ("anvil search --docs do", "anvil build --previous do", "anvil library import do"):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", "3")
        assert program().stdout == "file,do\n", "bash then completes files and folders"
    monkeypatch.setenv("_ANVIL_COMPLETE", "bash_source")
    assert "_ANVIL_COMPLETE=bash_complete" in program().stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("grep", "--warmup"), "To search for it, write: anvil grep -- --warmup\n"),
        (("search", "--warmup", "runs"), "To search for it, write: anvil search -- --warmup\n"),
        (("grep", "--max-match", "3", "x"), ""),
        (("list", "--warmup"), ""),
    ],
)
def test_the_name_of_an_option_as_a_text_to_search_for(words: tuple[str, ...], hint: str) -> None:
    told = in_process.program(*words, code=2).stderr
    assert "No such option" in told
    assert told.partition("To search")[1:] == (("To search", hint.removeprefix("To search")) if hint else ("", ""))
