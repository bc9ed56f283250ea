"""The command line, by the real program: what it prints, how it ends, and that it says what the API says."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.cli import program as app
from anvil.formats.characters import columns
from anvil.system import safe_files
from anvil.system.installation import line as program_line
from tests.conftest import PAGES, linked, write
from tests.support import in_process, repositories
from tests.support.programs import complaint, environment, printed, program
from tests.support.repositories import commit, run

COMMANDS = [
    "build",
    "index",
    "check",
    "search",
    "docs",
    "grep",
    "show",
    "list",
    "status",
    "doctor",
    "verify",
    "test",
    "lint",
    "impact",
    "questions",
    "diff",
    "merge",
    "pull",
    "deps",
    "bundle",
    "export",
    "git",
    "init",
    "agents",
    "ci",
    "serve",
    "ui",
    "context",
    "ingest",
    "library",
]
REPOSITORY = Path(__file__).resolve().parents[3]
isolated = pytest.fixture(repositories.isolation)  # here only where asked for


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder with docs/ and a configuration without vectors; nothing built yet."""
    write(tmp_path / "work/docs", PAGES)
    return write(tmp_path / "work", {"anvil.toml": 'docs = "docs"\n[embedding]\nprovider = "none"\n'})


@pytest.fixture
def built(work: Path) -> Path:
    with anvil.open(config=work / "anvil.toml") as opened:
        opened.index()
    return work


def plain(value: Any) -> Any:
    """A dataclass as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {key.name: each for key, each in fields.items() if each is not None or not key.metadata.get("optional")}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def without_clock(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs from one moment to the next."""
    cut = {key: value for key, value in answer.items() if key not in ("query_ms", "seconds")}
    if "server" in cut:
        cut["server"] = {key: value for key, value in cut["server"].items() if key != "uptime_seconds"}
    return cut


def repository(work: Path) -> None:
    run(work, "init", "-q", "-b", "main")
    commit(work, "first", at=1_700_000_000)


# --- help and errors ---------------------------------------------------------------------------------


def test_help_lists_the_commands() -> None:
    text = program("--help").stdout
    commands = text[text.index("Find:") :]
    listed = re.findall(r"^  ([a-z]+) ", commands, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in COMMANDS if name != "index") and "Example: anvil" in text
    assert re.findall(r"^([A-Z][a-z]+):$", commands, re.MULTILINE) == ["Find", "Build", "Share", "Check"]
    assert "..." not in commands and max(map(len, text.splitlines())) < 80
    assert program("-h").stdout == text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str) -> None:
    text = in_process.program(command, "--help").stdout
    shown = "build" if command == "index" else command
    assert re.search(rf"^\s*Example: anvil {shown} ", text, re.MULTILINE), text


def test_the_version_is_printed() -> None:
    assert program("--version").stdout == f"anvil, version {anvil.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "--docs", "none"],
        ["search", "--docs", "none", "x"],
        ["search", "--docs", "docs/index.md", "x"],
        ["search", " "],
        ["search", "--provider", "locl", "x"],
        ["search", "--index", "anvil.toml", "x"],
        ["build", "--config", "none.toml"],
        ["build", "--index", "anvil.toml/x.db"],
        ["show", "none.md"],
        ["show", "index.md#No such heading"],
        ["show", "../anvil.toml"],
        ["show", "\udcff.md"],
        ["check", "--index", "none.db"],
        ["check", "--staged"],
        ["check", "--ref", "HEAD"],
        ["check", "--index", "anvil.toml"],
        ["verify", "none.db"],
        ["diff", "none.db", "none.db"],
        ["diff", "anvil.toml", "anvil.toml"],
        ["init", "--docs", "none", "--commit-index"],
    ],
    ids=" ".join,
)
def test_an_error_is_two_sentences(built: Path, arguments: list[str]) -> None:
    by = (
        in_process.program if all(each.isascii() for each in arguments) else program
    )  # odd bytes are a process's matter
    message = complaint(*arguments, cwd=built, by=by)
    assert message.startswith("anvil: ") and "\n" not in message
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z])", message)
    assert len(sentences) <= 3 if "Closest" in message else len(sentences) <= 2, sentences


def test_a_message_for_agents_names_no_tool_here(work: Path) -> None:
    (work / "docs/twice.md").write_text("# Twice\n\n## One {#same}\n\nA.\n\n## Two {#same}\n\nB.\n")
    assert complaint("show", "twice.md#same", cwd=work, by=in_process.program).endswith(
        "Twice > One, Twice > Two. Give one of these as HEADING."
    )
    above = in_process.program("show", "twice.md#twice", cwd=work)
    assert above.stdout == "# Twice\n\n" and "the sections below it, which --children prints" in above.stderr
    missing = "".join(f'[collections.{name}]\nindex = "{name}.db"\n' for name in "abc")
    (work / "anvil.toml").write_text(missing + '[embedding]\nprovider = "none"\n')
    notes = in_process.program("search", "alerts", cwd=work).stderr
    assert "3 collections cannot answer: a, b, c. 'anvil status' says why." in notes


@pytest.mark.parametrize("arguments", [["search", "--docs"], ["build", "--site"], ["search", "--config"]])
def test_a_folder_of_another_user_is_named_with_what_to_do(work: Path, arguments: list[str]) -> None:
    closed = work / "closed"
    closed.mkdir(mode=0o000)
    if os.access(closed, os.X_OK):
        pytest.skip("for root and on Windows nothing is closed")
    by = in_process.program
    message = complaint(*arguments, closed / "docs", *(["x"] if arguments[0] == "search" else []), cwd=work, by=by)
    assert message.startswith("anvil: ") and message.endswith(
        "closed/docs: Permission denied. Give yourself the right to use it, or name another path."
    )


def test_a_broken_configuration_is_an_error(work: Path) -> None:
    (work / "anvil.toml").write_text('dosc = "x"\n')
    assert "Unknown key 'dosc'" in complaint("build", cwd=work)


def test_what_nobody_thought_of_is_no_traceback_either(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "docs/.anvil").write_text("a file")
    in_the_way = in_process.program("init", "--no-commit-index", cwd=work, code=2).stderr
    assert "gitignore cannot be written: " in in_the_way and "--debug" not in in_the_way

    def unforeseen(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("anvil.cli.init.nearest_config", unforeseen)
    done = in_process.program("init", "--no-commit-index", cwd=work, code=2)
    assert "Traceback" not in done.stderr and "division by zero" in done.stderr and "--debug" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["search"],
        ["build", "--frob"],
        ["search", "--mode", "fuzzy", "x"],
        ["check", "--staged", "--ref", "HEAD"],
        ["diff", "one.db"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_explains_the_usage(work: Path, arguments: list[str]) -> None:
    done = in_process.program(*arguments, cwd=work, code=2)
    assert "Usage: anvil" in done.stderr and "Traceback" not in done.stderr


def test_debug_shows_where_it_failed(work: Path) -> None:
    for arguments in (["--debug", "verify", "none.db"], ["verify", "none.db", "--debug"]):
        done = program(*arguments, cwd=work, code=2)  # as without it
        assert "Traceback" in done.stderr and "ArtifactMissing" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("anvil: ")


# --- build ---------------------------------------------------------------------------------------------


def test_build_says_what_it_did(work: Path) -> None:
    first = program("build", cwd=work)
    assert first.stdout.startswith("Built docs/.anvil/index.db: 4 pages,") and "(4 added)" in first.stdout
    assert "is up to date: 4 pages" in program("index", cwd=work).stdout
    write(work / "docs", {"index.md": "# Other\n", "bad.md": "\0"})
    (work / "docs/install.md").unlink()
    third = program("build", cwd=work)
    assert "(1 changed, 1 removed)" in third.stdout and "skipped bad.md: binary" in third.stderr
    assert program("build", "--force", cwd=work).stdout.startswith("Built")


@pytest.mark.parametrize(
    ("include", "why"),
    [("'**/*.rst'", r"none fits \*\*/\*\.rst, or all are left out"), ("", "source.include names none")],
)
def test_no_page_at_all_is_a_warning(tmp_path: Path, include: str, why: str) -> None:
    toml = f'docs = "docs"\n[embedding]\nprovider = "none"\n[source]\ninclude = [{include}]\n'
    write(tmp_path, {"docs/a.md": "# A\n", "anvil.toml": toml})
    sentence = re.compile(rf"No file in \S*docs is a page: {why}\.")
    for arguments in (["build"], ["build"], ["build", "--force"]):  # built, up to date, built again
        assert sentence.search(in_process.program(*arguments, cwd=tmp_path).stderr)
    assert sentence.search(" ".join(printed("build", cwd=tmp_path)["reasons"]))
    assert sentence.search(in_process.program("ci", "build", cwd=tmp_path).stdout)
    assert "newest document: none" in in_process.program("status", cwd=tmp_path).stdout
    doctor = " ".join(in_process.program("doctor", cwd=tmp_path, code=1).stdout.split())
    assert sentence.search(doctor) and "newest document: none" in doctor
    assert not in_process.program("build", "--shard", "1/2", "--index", "1.db", cwd=tmp_path).stderr


def test_a_folder_of_another_format_is_told_how_to_be_indexed(tmp_path: Path) -> None:
    write(
        tmp_path, {"docs/README.md": "# Crane\n", "docs/a.rst": "A\n", "docs/b/b.rst": "B\n", "docs/_build/c.rst": ""}
    )
    note = "2 reStructuredText files in the documentation folder are not read:"
    with anvil.open(tmp_path / "docs", tmp_path / "other.db") as opened:
        notes = [" ".join(opened.search("crane").freshness.notes) for _ in range(2)]
    assert note in notes[0] and note not in notes[1], "an agent is told once"
    first = in_process.program("search", "crane", cwd=tmp_path)
    assert note in first.stderr and "anvil build --site FOLDER" in first.stderr
    assert not in_process.program("build", cwd=tmp_path).stderr, "it is said once for each index"
    assert note in in_process.program("build", "--force", cwd=tmp_path).stderr
    assert f"docs has 1 page. {note}" in " ".join(in_process.program("doctor", cwd=tmp_path).stdout.split())
    write(tmp_path, {"docs/a.md": "# A\n"})
    assert not in_process.program("build", cwd=tmp_path).stderr, "as many pages as other files"


def test_a_file_that_is_no_index_stays(work: Path) -> None:
    for arguments in (["build"], ["build", "--force"], ["ci", "build"]):
        told = program(*arguments, "--index", "docs/index.md", cwd=work, code=2)
        assert "docs/index.md is not an Anvil index, and would be lost." in told.stderr + told.stdout
    for command in (["search", "alerts"], ["status"]):
        assert "--force" not in complaint(*command, "--index", "docs/index.md", cwd=work)
    assert (work / "docs/index.md").read_text(encoding="utf-8") == PAGES["index.md"]


def test_quiet_is_quiet_and_json_is_json(work: Path) -> None:
    done = program("build", "--quiet", cwd=work)
    assert (done.stdout, done.stderr) == ("", "")
    report = printed("build", "--quiet", cwd=work)
    assert set(report) == {field.name for field in dataclasses.fields(anvil.BuildReport)}
    assert (report["outcome"], report["pages"], report["changes"]) == (
        "unchanged",
        4,
        {"changed": [], "added": [], "removed": []},
    )


def test_build_reuses_previous_vectors(docs: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    first = in_process.printed("build", "--docs", docs, "--index", old)
    previous: list[str | Path] = ["--previous", tmp_path / "gone.db", "--previous", old]
    report = in_process.printed("build", "--docs", docs, "--index", new, *previous)
    assert first["embedded"] > 0 and (report["embedded"], report["reused"]) == (0, first["windows"])
    assert len(report["reasons"]) == 1 and "gone.db" in report["reasons"][0]
    assert hashlib.sha256(old.read_bytes()).digest() == hashlib.sha256(new.read_bytes()).digest()


# --- search --------------------------------------------------------------------------------------------


def test_a_large_folder_is_answered_before_it_is_indexed(work: Path) -> None:
    write(work / "docs", {f"{i}.md": f"# Page {i}\n\nThe zebra of page {i} eats grass {i}.\n" for i in range(80)})
    done = program("search", "zebra that eats grass 7", "-k", "1", "--provider", "local", cwd=work)
    assert done.returncode == 0 and done.stdout.startswith("1. docs/7.md:")
    assert "There is no index yet" in done.stderr and "Building the index for the next search" in done.stderr
    again = program("search", "zebra that eats grass 7", "-k", "1", "--provider", "local", "--json", cwd=work)
    assert json.loads(again.stdout)["freshness"]["notes"] == [] and not again.stderr


def test_search_indexes_first_when_there_is_no_index(work: Path) -> None:
    done = program("search", "silence at night", cwd=work)
    assert "guides/alerts.md" in done.stdout.splitlines()[0] and (work / "docs/.anvil/index.db").is_file()


@pytest.mark.parametrize(
    ("query", "needle"),
    [
        ("smtp_host", "smtp_host"),
        ("DEC-0054", "DEC-0054"),
        ("previous installer", "Run the installer"),
        ("Lighthouse", ""),
    ],
)
def test_the_place_named_is_the_first_line_shown(built: Path, query: str, needle: str) -> None:
    text = in_process.program("search", query, cwd=built).stdout
    hits = re.findall(
        r"^\d+\. (.+):(\d+)  (\d\.\d{3})  confidence [01]\.\d\d\n   (.+)\n   \| (.*)$", text, re.MULTILINE
    )
    assert hits and len(hits) == len(re.findall(r"^\d+\. ", text, re.MULTILINE))
    for path, line, _, _, shown in hits:
        source = (built / path).read_text().splitlines()
        assert source[int(line) - 1].strip() == shown.replace("**", "").strip()
    assert needle in text.replace("**", "")
    scores = [float(score) for _, _, score, _, _ in hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_the_place_is_right_in_a_long_section(work: Path, newline: str) -> None:
    lines = ["# Long", "", *(f"Line {i} of something else." for i in range(120)), "", "    the zebra line", "", "End."]
    (work / "docs/long.md").write_bytes(newline.join(lines).encode())
    text = in_process.program("search", "zebra", "--mode", "keyword", cwd=work).stdout
    found = re.match(r"1\. \S*long\.md:(\d+) .*\n.*\n   \| (.*)\n", text)
    assert found and lines[int(found[1]) - 1] == found[2] and "zebra" in text


def test_nothing_is_marked_in_a_pipe(built: Path) -> None:
    text = program("search", "installing packages", cwd=built).stdout
    assert "packages" in text and "**" not in text and "\x1b" not in text


def test_a_question_without_an_answer_is_said_and_can_be_an_exit_code(built: Path) -> None:
    ask = ["search", "how do I silence alerts at night?"]
    sure = in_process.program(*ask, "--min-confidence", "0.5", cwd=built)
    assert sure.stdout.startswith("1. docs/guides/alerts.md:")
    unsure = in_process.program(*ask, "--min-confidence", "1", cwd=built, code=1)
    assert unsure.stdout.startswith("Nothing found in ")
    assert "No result has the confidence of 1 that was asked for; the highest is 0." in unsure.stderr
    foreign = ["search", "windows pizza sourdough", "--json"]
    answer = json.loads(in_process.program(*foreign, "--min-confidence", "0.5", cwd=built, code=1).stdout)
    assert answer["results"] == []
    assert answer["freshness"]["notes"][-1].startswith("Probably nothing here answers this")
    assert in_process.printed(*foreign[:2], cwd=built)["results"]
    in_process.program(*ask, "--min-confidence", "2", cwd=built, code=2)


def test_nothing_found_is_said(built: Path) -> None:
    assert in_process.program("search", "zebra", cwd=built).stdout.startswith("Nothing found in ")
    assert in_process.printed("search", "zebra", cwd=built)["results"] == []


def test_a_query_that_looks_like_an_option(built: Path) -> None:
    assert "guides/checks.md" in in_process.program("search", "--", "--expect-status", cwd=built).stdout
    done = in_process.program("search", "--", "--debug", cwd=built)
    assert "Usage" not in done.stderr


def test_pages_changed_since_the_build_are_mentioned(built: Path) -> None:
    write(built / "docs", {"new.md": "# Zebra\n\nA zebra.\n"})
    done = program("search", "zebra", cwd=built)
    assert "new.md:1" in done.stdout.replace(os.sep, "/") and "1 page changed since the index was built" in done.stderr


def test_a_reader_who_goes_away_is_no_error(built: Path) -> None:
    write(built / "docs", {f"{i}.md": f"# Page {i}\n\n" + f"Alerts {i}. " * 300 + "\n" for i in range(30)})
    command = [sys.executable, "-m", "anvil", "search", "-k", "20", "--max-chars", "1000000", "--json", "alerts"]
    with subprocess.Popen(
        command, cwd=built, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.read(1)
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 0 and b"Traceback" not in errors and b"BrokenPipe" not in errors


def test_a_list_that_is_cut_short_is_no_error(built: Path) -> None:
    write(built / "docs", {f"{i}.md": f"# Page {i}\n" for i in range(300)})
    for words in (["list"], ["search", "-k", "20", "page"], ["status"]):
        with subprocess.Popen(
            [sys.executable, "-m", "anvil", *words],
            cwd=built,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout and process.stderr
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 0 and b"Traceback" not in errors and b"BrokenPipe" not in errors


# --- one thing with the API --------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["local", "none"])
def test_json_is_what_the_api_answers(docs: Path, provider: str) -> None:
    where = ["--docs", str(docs), "--provider", provider]
    with anvil.open(docs, provider=provider) as opened:
        opened.index()
        for query, top_k, glob in (
            ("silence at night", 5, None),
            ("what about TLS", 2, "guides/*"),
            ("zebra", 20, "["),
        ):
            options = ["-k", str(top_k), *(["--filter", glob] if glob else [])]
            answer = in_process.printed("search", *where, *options, query)
            assert without_clock(answer) == without_clock(plain(opened.search(query, top_k, glob)))
        assert in_process.printed("show", *where, "guides/alerts.md") == plain(opened.get_page("guides/alerts.md"))
        section = plain(opened.get_section("install.md", "Install > Linux"))
        assert in_process.printed("show", *where, "install.md#Install > Linux") == section
        assert in_process.printed("show", *where, "install.md#linux") == section
        assert in_process.printed("show", *where, "--children", "install.md#install") == plain(
            opened.get_section("install.md", "Install", include_children=True)
        )
        assert in_process.printed("list", *where, "guides/") == plain(opened.list_pages("guides/"))
        assert without_clock(printed("status", *where)) == without_clock(plain(opened.get_status()))


@pytest.mark.parametrize("folder", ["guides", "guides/", "docs/guides", "docs/guides/", ""])
def test_a_filter_may_be_a_folder(built: Path, folder: str) -> None:
    def asked(*options: str) -> tuple[list[str], int]:
        found = in_process.printed("search", "alerts", "--top-k", "20", *options, cwd=built)
        return [hit["metadata"]["file_path"] for hit in found["results"]], found["total_chunks"]

    same = asked("--filter", "guides/**") if folder else asked()
    assert asked("--filter", folder) == same and len(same[0]) > 0


def test_list_names_the_pages(built: Path) -> None:
    lines = in_process.program("list", cwd=built).stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(PAGES) and lines[-1].endswith("Installing")
    assert len(in_process.program("list", "guides", cwd=built).stdout.splitlines()) == 2
    assert in_process.program("list", "docs", cwd=built).stdout.splitlines() == lines


def test_the_columns_of_a_list_are_aligned_for_wide_characters(tmp_path: Path) -> None:
    write(tmp_path / "docs", {"目次.md": "# A\n", "Ubersicht.md": "# B\n", "U\u0308bersicht.md": "# C\n"})
    lines = in_process.program("list", "--provider", "none", cwd=tmp_path).stdout.splitlines()
    assert len(lines) == 3 and len({columns(line.partition("characters")[0]) for line in lines}) == 1


def test_show_prints_the_text(built: Path) -> None:
    assert in_process.program("show", "index.md", cwd=built).stdout == PAGES["index.md"]
    section = in_process.program("show", "guides/alerts.md#silence-at-night", cwd=built).stdout
    assert section.startswith("## Silence at night\n")
    for named in ("Silence at night", "Alerts > Silence at night", "#silence-at-night"):
        assert in_process.program("show", f"guides/alerts.md#{named}", cwd=built).stdout == section
    help_text = in_process.program("show", "--help").stdout
    example = re.search(r"Example: anvil show (\S+)", help_text)
    assert example
    own = ["--docs", str(REPOSITORY / "docs"), "--index", str(built / "own.db")]
    shown = in_process.program("show", *own, example[1], cwd=built)
    assert shown.stdout.startswith("## Freshness\n")


def test_a_search_names_the_section_that_matched_and_show_prints_it(work: Path) -> None:
    page = "---\ntitle: Glossary\n---\nSailors' words.\n\n## Anchor\n\nA hook.\n\n## Euphroe\n\nA block with holes.\n"
    (work / "docs" / "glossary.md").write_text(page, encoding="utf-8")
    program("build", cwd=work)
    told = program("search", "what is a euphroe?", cwd=work).stdout
    assert told.splitlines()[0].startswith(f"1. {Path('docs', 'glossary.md')}:10  ")
    assert told.splitlines()[1] == "   Glossary > Euphroe" and "A block" in told.partition("2.")[0]
    hit = json.loads(program("search", "what is a euphroe?", "--json", cwd=work).stdout)["results"][0]
    assert (hit["metadata"]["heading_path"], hit["title"]) == ("Euphroe", "Glossary")
    for heading in ("Euphroe", "Glossary > Euphroe", "euphroe"):
        shown = program("show", f"glossary.md#{heading}", cwd=work).stdout
        assert shown == "## Euphroe\n\nA block with holes.\n"
    sailors = program("search", "sailors", cwd=work).stdout
    assert sailors.splitlines()[1] == "   Glossary" and "(root)" not in sailors


def test_status_for_people(built: Path) -> None:
    text = in_process.program("status", cwd=built).stdout
    assert re.search(r"holds  4 pages, \d+ chunks", text) and "fresh  yes" in text and "keyword search only" in text
    (built / "docs/index.md").unlink()
    assert "no: 0 changed, 0 added, 1 removed" in in_process.program("status", cwd=built).stdout


def test_status_of_an_index_without_documents_does_not_say_that_it_is_fresh(built: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(built / "docs/.anvil/index.db", alone / "some.db")
    text = in_process.program("status", "--index", "some.db", cwd=alone).stdout
    assert "docs  none" in text and "fresh  not known: there are no documents to compare with" in text


# --- check -------------------------------------------------------------------------------------------------


def test_check_tells_fresh_from_stale(built: Path) -> None:
    assert "is fresh" in program("check", cwd=built).stdout
    answer = printed("check", cwd=built)
    assert answer["fresh"] is True and answer["compared_with"] == "working tree"
    write(built / "docs", {"index.md": "# Other\n", "new.md": "# New\n"})
    (built / "docs/install.md").unlink()
    text = program("check", cwd=built, code=1).stdout
    assert re.findall(r"^ *(changed|added|removed)  (\S+)$", text, re.MULTILINE) == [
        ("changed", "index.md"),
        ("added", "new.md"),
        ("removed", "install.md"),
    ]
    answer = printed("check", cwd=built, code=1)
    assert (answer["fresh"], answer["changed"], answer["added"], answer["removed"]) == (
        False,
        ["index.md"],
        ["new.md"],
        ["install.md"],
    )
    assert program("check", "--quiet", cwd=built, code=1).stdout == ""
    complaint("check", "--docs", "none", cwd=built)


def test_check_judges_what_is_staged_or_committed(isolated: None, built: Path) -> None:
    repository(built)
    for option in ([], ["--staged"], ["--ref", "HEAD"]):
        program("check", *option, cwd=built)
    write(built / "docs", {"index.md": "# Staged\n"})
    run(built, "add", "docs/index.md")
    write(built / "docs", {"index.md": PAGES["index.md"]})
    program("check", cwd=built)
    assert "index.md" in program("check", "--staged", cwd=built, code=1).stdout
    program("check", "--ref", "HEAD", cwd=built)
    commit(built, "second", at=1_700_000_100)
    write(built / "docs", {"index.md": "# Third\n"})
    program("build", cwd=built)
    run(built, "add", "docs")
    program("check", "--staged", cwd=built)
    assert printed("check", "--ref", "HEAD~1", cwd=built, code=1)["changed"] == ["index.md"]
    for revision in ("nonsense", ""):
        assert "commit" in complaint("check", "--ref", revision, cwd=built)


# --- verify and diff -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["build", "--index", "htps://u:s3cret@h/x"], "cannot be fetched from htps://. Name a path"),
        (["search", "lamp", "--index", "s3://u:s3cret@bucket/x"], "cannot be fetched from s3://. Name a path"),
        (
            ["verify", "https://u:s3cret@docs.example.com/x.db"],
            "Fetch it first: anvil pull https://docs.example.com/x.db",
        ),
        (["verify", "htps://u:s3cret@h/x"], "cannot be fetched from htps://"),
        (["diff", "a.db", "github:o/r#release:v1"], "Fetch it first: anvil pull github:o/r#release:v1 --to FILE."),
        (["merge", "out.db", "s3://u:s3cret@bucket/x"], "cannot be fetched from s3://"),
    ],
)
def test_an_address_is_not_taken_for_a_path(work: Path, words: list[str], told: str) -> None:
    before = sorted(work.rglob("*"))
    said = in_process.complaint(*words)
    assert told in said and "s3cret" not in said and sorted(work.rglob("*")) == before


def test_the_doctor_repeats_no_password_of_an_unknown_address(work: Path) -> None:
    done = in_process.program("doctor", "--index", "htps://u:s3cret@h/x", code=1)
    assert "cannot be fetched from htps://" in " ".join(done.stdout.split())
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_a_command_whose_output_is_closed_does_its_work(built: Path) -> None:
    words = program_line([sys.executable, "-m", "anvil", "check"])
    done = subprocess.run(f"{words} >&-", shell=True, cwd=built, env=environment(), stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="there, a working folder cannot be removed")
def test_a_working_folder_that_was_removed_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert app.run(["build"]) == 2
    assert capsys.readouterr().err == "anvil: The working folder was removed. Go to another folder, and try again.\n"


def test_verify(built: Path) -> None:
    index = built / "docs/.anvil/index.db"
    assert re.search(r"is sound: 4 documents, .*\nDigest [0-9a-f]{64}\.", in_process.program("verify", index).stdout)
    answer = in_process.printed("verify", index)
    assert answer["sound"] is True and answer["counts"]["documents"] == 4 and answer["manifest"]["digest"]
    sound = shutil.copy(index, built / "sound.db")
    data = bytearray(index.read_bytes())
    place = data.index(b"quiet window")
    data[place : place + 5] = b"QUIET"
    index.write_bytes(data)
    assert "anvil: " in in_process.program("verify", index, code=1).stderr
    assert in_process.printed("verify", index, code=1)["sound"] is False
    assert "no index" in in_process.complaint("verify", built / "gone.db")
    done = in_process.program("verify", index, sound, code=1)
    assert done.stdout.startswith(f"{sound} is sound") and done.stderr.startswith("anvil: ")
    listed = in_process.printed("verify", index, built / "gone.db", sound, code=2)["files"]
    assert [each["sound"] for each in listed] == [False, False, True] and "no index" in listed[1]["reason"]


def test_diff(built: Path) -> None:
    old = built / "old.db"
    shutil.copy(built / "docs/.anvil/index.db", old)
    assert in_process.program("diff", old, "docs/.anvil/index.db", cwd=built).stdout == "0 pages differ.\n"
    write(built / "docs", {"index.md": PAGES["index.md"].replace("one binary", "two binaries")})
    in_process.program("build", cwd=built)
    done = in_process.program("diff", old, "docs/.anvil/index.db", cwd=built, code=1)
    assert done.stdout == "~ index.md\n    ~ Lighthouse > Why another monitor\n1 page differs.\n"
    answer = in_process.printed("diff", old, "docs/.anvil/index.db", cwd=built, code=1)
    changed = {"kind": "changed", "heading_path": "Lighthouse > Why another monitor"}
    page = {"kind": "changed", "file_path": "index.md", "sections": [changed], "title": "Lighthouse"}
    assert answer == {"pages": [page], "settings": []}


def test_a_page_with_a_hash_in_its_name_is_shown(work: Path) -> None:
    write(work / "docs", {"c#.md": "# C#\n\nSharp.\n\n## Why C#\n\nBecause.\n", "c.md": "# C\n\n## C#\n\nFlat.\n"})
    assert "Sharp" in in_process.program("show", "c#.md", cwd=work).stdout
    assert "Because" in in_process.program("show", "c#.md#C# > Why C#", cwd=work).stdout
    assert "Because" in in_process.program("show", "c#.md#why-c", cwd=work).stdout
    assert "Flat" in in_process.program("show", "c.md#C > C#", cwd=work).stdout
    assert "There is no page d. " in complaint("show", "d#x", cwd=work, by=in_process.program)


def test_the_command_that_is_advised_builds_the_index_that_was_asked_about(built: Path) -> None:
    where = ["--docs", "docs", "--index", "my index.db", "--provider", "none"]
    in_process.program("build", *where, cwd=built)
    write(built, {"docs/new.md": "# Tapir\n"})
    build = program_line(["anvil", "build", *where])
    found = in_process.program("search", *where, "tapir", cwd=built)
    assert found.stderr.strip().endswith(f"To update the index, run: {build}")
    assert f"1 added, 0 removed. Run: {build}\n" in in_process.program("status", *where, cwd=built).stdout
    told = in_process.program("check", *where[:4], cwd=built, code=1).stdout
    assert told.endswith(f" Run: {program_line(['anvil', 'build', *where[:4]])}\n")


def test_git_install_outside_a_repository_speaks_of_no_option_of_others(isolated: None, built: Path) -> None:
    message = complaint("git", "install", cwd=built, by=in_process.program)
    assert "is not in a git repository" in message and "--tracked" not in message


# --- streams -----------------------------------------------------------------------------------------------------

WINDOWS = (
    "import io, sys\nfrom anvil.cli import program as app\n"
    "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'cp1252', newline='\\n')\n"
    "sys.stderr = io.TextIOWrapper(sys.stderr.detach(), 'cp1252', 'backslashreplace', newline='\\n')\n"
    "app.main(sys.argv[1:])\n"
)
"""The program with the streams that it has on Windows when its output is redirected."""


def test_what_is_redirected_is_utf8_whatever_the_code_page(work: Path) -> None:
    write(work / "docs", {"\U0001f680.md": "# Rockets \U0001f680\n\nThey fly \U0001f680.\n"})

    def called(*arguments: str, start: list[str], code: int = 0, **more: str) -> tuple[str, str]:
        settings = {key: value for key, value in environment(**more).items() if key != "PYTHONUTF8"}
        if "PYTHONIOENCODING" not in more:
            settings.pop("PYTHONIOENCODING", None)
        done = subprocess.run([sys.executable, *start, *arguments], cwd=work, env=settings, capture_output=True)
        assert done.returncode == code, done.stderr
        encoding = more.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
        return done.stdout.decode(encoding), done.stderr.decode(encoding)

    program("build", cwd=work)
    for words in (["search", "--json", "rockets"], ["git", "textconv", "docs/.anvil/index.db"]):
        assert "Rockets \U0001f680" in called(*words, start=["-c", WINDOWS])[0]
    assert "\U0001f680" in called("show", "\U0001f680x.md", start=["-c", WINDOWS], code=2)[1]
    asked = called("list", start=["-m", "anvil"], PYTHONIOENCODING="cp1252")[0]
    assert "Rockets ?" in asked  # the user said so: shown as it can be
    asked = called("list", start=["-m", "anvil"], PYTHONIOENCODING="cp1252:xmlcharrefreplace")[0]
    assert "Rockets &#128640;" in asked


# --- ci --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("github", [False, True], ids=["elsewhere", "github"])
def test_ci_leaves_standard_output_to_the_json(work: Path, monkeypatch: pytest.MonkeyPatch, github: bool) -> None:
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    if github:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_OUTPUT", str(work / "outputs"))
    (work / "docs/bad.md").write_bytes(b"# \xff\n")
    warning, error = ("::warning ", "::error ") if github else ("warning: ", "error: ")
    done = program("ci", "build", "--previous", "none.db", "--json", cwd=work)
    values = json.loads(done.stdout)
    assert warning in done.stderr and "none.db" in done.stderr and values["digest"] not in done.stderr
    if github:
        assert f"digest={values['digest']}\n" in (work / "outputs").read_text()
    write(work, {"docs/new.md": "# New\n"})
    done = program("ci", "check", "--json", cwd=work, code=1)
    assert json.loads(done.stdout)["changed"] == "true" and error in done.stderr and "is stale" in done.stderr
    done = program("ci", "build", "--docs", "nope", "--json", cwd=work, code=2)
    assert done.stdout == "" and done.stderr.startswith(error) and "nope" in done.stderr


# --- init ------------------------------------------------------------------------------------------------------


def test_init_keeps_the_index_out_of_git_or_puts_it_in(isolated: None, docs: Path) -> None:
    work = docs.parent
    run(work, "init", "-q")
    write(work, {".gitignore": "build/"})
    text = program("init", "--no-commit-index", cwd=work).stdout
    assert text.endswith("Next: anvil build, then anvil search 'YOUR QUESTION'.\n")
    assert "Wrote anvil.toml" in text and (work / ".gitignore").read_text() == "build/\ndocs/.anvil/\n"
    program("build", "--provider", "none", cwd=work)
    run(work, "add", "-A")
    assert "docs/.anvil/index.db" not in run(work, "ls-files")
    again = program("init", "--no-commit-index", cwd=work).stdout
    assert again.endswith("Next: anvil search 'YOUR QUESTION'.\n")
    assert "exists already" in again and (work / ".gitignore").read_text() == "build/\ndocs/.anvil/\n"

    write(work, {"anvil.toml": 'docs = "docs" # mine\n'})
    program("init", "--commit-index", cwd=work)
    assert (work / "anvil.toml").read_text() == 'docs = "docs" # mine\n'
    assert (work / ".gitignore").read_text() == "build/\n"
    assert (work / ".gitattributes").read_text() == "docs/.anvil/index.db binary\n"
    program("build", "--provider", "none", cwd=work)
    run(work, "add", "-A")
    assert "docs/.anvil/index.db" in run(work, "ls-files").splitlines()
    assert "binary: set" in run(work, "check-attr", "binary", "docs/.anvil/index.db")
    program("init", "--commit-index", cwd=work)
    assert (work / ".gitattributes").read_text() == "docs/.anvil/index.db binary\n"
    program("init", "--no-commit-index", cwd=work)
    assert not (work / ".gitattributes").exists()


def test_git_gets_the_path_of_an_index_behind_a_link(isolated: None, tmp_path: Path) -> None:
    index = "website/content/.anvil/index.db"
    work = tmp_path / "work"
    write(work, {"website/content/a.md": "# A\n"})
    linked(work / "docs", work / "website/content")
    run(work, "init", "-q")
    told = in_process.program("init", "--commit-index", cwd=work).stdout
    assert "Next: anvil build, then git add website/content/.anvil, then" in told
    assert "binary: set" in run(work, "check-attr", "binary", index)
    assert '# index = "docs/.anvil/index.db"' in (work / "anvil.toml").read_text()
    built = in_process.program("build", "--staged", "--tracked", "--provider", "none", cwd=work, code=1).stdout
    assert built.endswith(f"Run: git add {index}\n")
    run(work, "add", "-A")
    (work / "docs/a.md").write_text("# B\n", encoding="utf-8")
    run(work, "add", "-A")
    stale = in_process.program("check", "--staged", "--tracked", cwd=work, code=1).stdout
    assert stale.endswith(f"anvil build --staged && git add {index}\n")
    in_process.program("init", "--no-commit-index", cwd=work)
    assert (work / ".gitignore").read_text() == "website/content/.anvil/\n"


def test_init_names_an_index_for_git_whatever_its_folder_is_called(isolated: None, tmp_path: Path) -> None:
    folder, index = "#1 My [old] notes", "#1 My [old] notes/.anvil/index.db"
    write(tmp_path, {f"{folder}/a.md": "# A\n"})
    run(tmp_path, "init", "-q")
    told = in_process.program("init", "--docs", folder, "--commit-index", cwd=tmp_path).stdout
    assert "git add '#1 My [old] notes/.anvil', then" in told
    assert "binary: set" in run(tmp_path, "check-attr", "binary", index)
    in_process.program("init", "--no-commit-index", cwd=tmp_path)
    assert "binary: set" not in run(tmp_path, "check-attr", "binary", index)
    (tmp_path / folder / ".anvil/.gitignore").unlink()
    assert run(tmp_path, "check-ignore", index) == index


@pytest.mark.parametrize("text", [None, "mine\n", "docs/.anvil/\n"])
@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("docs/.anvil/.gitignore", "--commit-index"),
        ("docs/.anvil/.gitignore", "--no-commit-index"),
        ("docs/.anvil", "--no-commit-index"),
        (".gitignore", "--no-commit-index"),
        (".gitattributes", "--commit-index"),
        (".gitignore", "--commit-index"),
        ("anvil.toml", "--commit-index"),
    ],
)
def test_init_writes_through_no_link_of_a_checkout(
    docs: Path, tmp_path_factory: pytest.TempPathFactory, name: str, choice: str, text: str | None
) -> None:
    work, away = docs.parent, tmp_path_factory.mktemp("outside") / "away"
    if text is not None:
        text = "# mine\n" if name == "anvil.toml" else text
        write(away, {".gitignore": text})
    linked(work / name, away if name == "docs/.anvil" else away / ".gitignore")
    listed = text == "docs/.anvil/\n"
    idle = (name == "anvil.toml" and text is None) or (name == ".gitignore" and (choice == "--commit-index") != listed)
    done = in_process.program("init", choice, cwd=work, code=0 if idle else 2)
    said = "There is no folder docs" if name == "anvil.toml" else "is a link"  # a configuration is read, not written
    assert idle or said in done.stderr
    assert (away / ".gitignore").read_text() == text if text is not None else not (away / ".gitignore").exists()


@pytest.mark.parametrize(
    ("code", "step"),
    [(errno.EACCES, "Check its place and its permissions"), (errno.ENOSPC, "Free some space on its disk")],
)
def test_init_that_cannot_write_says_what_to_do(
    docs: Path, code: int, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code), "anvil.toml.1234.new")

    monkeypatch.setattr(safe_files, "write_file", refused)
    done = in_process.program("init", "--no-commit-index", cwd=docs.parent, code=2)
    assert done.stderr == f"anvil: anvil.toml cannot be written: {os.strerror(code)}. {step}, and try again.\n"


def test_init_asks_when_it_is_not_told(docs: Path) -> None:
    done = program("init", cwd=docs.parent, input="y\n")
    assert "Commit the index to git?" in done.stdout and (docs.parent / ".gitattributes").exists()


def test_what_init_writes_is_a_configuration(docs: Path) -> None:
    in_process.program("init", "--no-commit-index", cwd=docs.parent)
    text = (docs.parent / "anvil.toml").read_text()
    (docs.parent / "anvil.toml").write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    with anvil.open(config=docs.parent / "anvil.toml") as opened:
        defaults = anvil.Config(docs="docs", index="docs/.anvil/index.db")
        assert opened.config == defaults


def test_init_for_the_folder_itself(isolated: None, docs: Path) -> None:
    run(docs, "init", "-q")
    in_process.program("init", "--docs", ".", "--no-commit-index", cwd=docs)
    assert (docs / ".gitignore").read_text() == ".anvil/\n"
    in_process.program("init", "--docs", ".", "--commit-index", cwd=docs)
    assert (docs / ".gitattributes").read_text() == ".anvil/index.db binary\n"


def test_init_without_anybody_to_ask_names_the_options(docs: Path) -> None:
    done = program("init", cwd=docs.parent, code=2, input="")
    assert "Give --commit-index or --no-commit-index" in done.stderr and "interrupted" not in done.stderr
    assert not (docs.parent / "anvil.toml").exists() and not (docs / ".anvil").exists()


def test_init_goes_by_the_configuration(isolated: None, work: Path) -> None:
    (work / "docs").rename(work / "documentation")
    write(work, {"anvil.toml": 'docs = "documentation"\n[embedding]\nprovider = "none"\n'})
    repository(work)
    in_process.program("build", cwd=work)
    advice = complaint("check", "--staged", "--tracked", cwd=work, by=in_process.program)
    assert "run 'anvil init --docs documentation --commit-index'" in advice
    below = work / "documentation"  # a folder further down is of the same project
    for place, words in ((work, ["--docs", "documentation"]), (work, []), (below, []), (below, ["--docs", "."])):
        (below / ".anvil/.gitignore").write_text("*\n")
        in_process.program("init", *words, "--commit-index", cwd=place)
        run(work, "add", "-A")
        assert "documentation/.anvil/index.db" in run(work, "ls-files").splitlines()
        assert (work / ".gitattributes").read_text() == "documentation/.anvil/index.db binary\n"
        run(work, "rm", "-q", "--cached", "documentation/.anvil/index.db")
    assert not (below / "anvil.toml").exists() and not (below / ".gitattributes").exists()


def test_init_is_about_the_index_that_the_configuration_names(isolated: None, docs: Path) -> None:
    work = docs.parent
    settings = '[tool.anvil]\nindex = "docs.anvil.db"\n[tool.anvil.embedding]\nprovider = "none"\n'
    write(work, {"pyproject.toml": settings, ".gitignore": "docs.anvil.db\n"})
    repository(work)
    told = in_process.program("init", "--commit-index", cwd=work).stdout
    assert "pyproject.toml exists already" in told and "git add docs.anvil.db" in told
    assert (work / ".gitattributes").read_text() == "docs.anvil.db binary\n"
    assert not (work / ".gitignore").exists() and not (docs / ".anvil").exists()
    in_process.program("build", cwd=work)
    run(work, "add", "-A")
    assert "docs.anvil.db" in run(work, "ls-files").splitlines()
    in_process.program("init", "--no-commit-index", cwd=work)
    assert (work / ".gitignore").read_text() == "docs.anvil.db\n" and not (work / ".gitattributes").exists()
    assert not (work / "anvil.toml").exists()


def test_init_with_a_folder_of_its_own_is_another_project(isolated: None, work: Path) -> None:
    repository(work)
    write(work / "part/docs", PAGES)
    in_process.program("init", "--docs", "docs", "--no-commit-index", cwd=work / "part")
    assert 'docs = "docs"' in (work / "part/anvil.toml").read_text()
    assert (work / "part/.gitignore").read_text() == "docs/.anvil/\n" and not (work / ".gitignore").exists()


def test_init_has_no_say_over_an_index_from_elsewhere(work: Path) -> None:
    write(work, {"anvil.toml": 'index = "https://u:SECRETPW@docs.example/"\n'})
    message = complaint("init", "--commit-index", cwd=work, by=in_process.program)
    assert "names a published index" in message and "SECRETPW" not in message and not (work / ".gitattributes").exists()


# --- what is loaded -----------------------------------------------------------------------------------------------


LIGHT = (
    ["--help"],
    ["check"],
    ["build"],
    ["verify", "docs/.anvil/index.db"],
    ["list"],
    ["grep", "the"],
    ["show", "guides/checks.md"],
)
"""Commands that need no heavy library."""


def test_heavy_libraries_stay_out_of_light_commands(docs: Path) -> None:
    with anvil.open(docs) as opened:
        opened.index()
    program("agents", cwd=docs.parent)  # "check" looks at the pointer, too
    code = (
        "import json, sys; from anvil.cli.program import run\n"
        "heavy = {'asyncio', 'http.client', 'mcp', 'mkdocs', 'mistletoe', 'numpy', 'onnxruntime'}\n"
        "heavy |= {'tokenizers', 'yaml'}\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    code = run(words)\n"
        "    print('loaded', *words, sorted(heavy & set(sys.modules)), code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(LIGHT)],
        cwd=docs.parent,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert loaded == [f"loaded {' '.join(words)} [] 0" for words in LIGHT], done.stdout + done.stderr


@pytest.mark.parametrize(("command", "most"), [("build", 118), ("check", 102)])
def test_little_is_imported_where_nothing_changed(isolated: None, work: Path, command: str, most: int) -> None:
    repository(work)
    front_matter = "---\ntitle: A\n---\n# A\n\nA shortcode that is not `{!followed!}`.\n"  # may include a file
    write(work / "docs", {**PAGES, "a.md": front_matter})
    program("build", "--provider", "none", "--quiet", cwd=work)
    code = (
        "import sys; from anvil.cli.program import run; code = run(sys.argv[1:]); names = set(sys.modules);"
        "late = {'anvil.results', 'anvil.ray.executor', 'asyncio', 'yaml'};"
        "print(sorted(late & names), sum(name.startswith('anvil') for name in names), code)"
    )
    (work / "anvil.toml").write_text('[embedding]\nprovider = "none"\n')
    done = subprocess.run(
        [sys.executable, "-c", code, command], cwd=work, env=environment(), capture_output=True, text=True
    )
    late, modules, exit_code = done.stdout.splitlines()[-1].rsplit(" ", 2)
    assert late == "[]" and int(modules) <= most and exit_code == "0", done.stdout + done.stderr


def test_a_strangers_configuration_is_sent_no_key(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own")
    url = "https://models.example.org/v1"
    write(work, {"anvil.toml": f'docs = "docs"\n[embedding]\nprovider = "openai"\nbase_url = "{url}"\n'})
    for command in (["build"], ["search", "alerts"], ["serve"], ["build", "--config", "."], ["context", "ingest"]):
        told = complaint(*command, cwd=work)
        assert f"embedding.base_url to {url}" in told and "OPENAI_BASE_URL" in told and "sk-" not in told
    assert not (work / "docs/.anvil").exists()
    program("list", "--provider", "none", cwd=work)  # nothing is sent
