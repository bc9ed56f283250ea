"""``anvil lint``: what it prints, writes and exits with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from anvil.system import installation
from tests.support.in_process import complaint, program
from tests.support.programs import environment
from tests.support.repositories import commit, isolated, root, write

__all__ = ["isolated", "root"]


def test_findings_are_printed_page_by_page_and_decide_the_exit_code(root: Path) -> None:
    write(root / "docs/a.md", "# A\n\n[x](gone.md) ![](a.png)\n")
    write(root / "docs/b.md", "# B\n\n[a](a.md)\n\n```\n```\n")
    done = program("lint", "docs", cwd=root, code=1)
    assert done.stdout.splitlines() == [
        "docs/a.md:3: error: Broken image 'a.png': there is no file a.png. [broken-link]",
        "docs/a.md:3: error: Broken link 'gone.md': there is no file gone.md. [broken-link]",
        "docs/a.md:3: warning: The image 'a.png' has no alternative text. [image-without-alt]",
        "",
        "docs/b.md:1: warning: No page links to this page. [orphan-page]",
        "",
        "2 pages: 2 errors, 2 warnings, 1 note.",
        "1 finding is not shown. To see all, add: --level note",
        "Links were resolved as for GitHub.",
        "near-duplicate compared equal text only: there is no index with vectors. Run 'anvil build --docs docs'.",
    ]
    assert program("lint", "docs", "--rule", "orphan-page", "--quiet", cwd=root).stdout == (
        "docs/b.md:1: warning: No page links to this page. [orphan-page]\n\n"
    )
    program("lint", "docs", "--rule", "orphan-page", "--fail-level", "warning", cwd=root, code=1)
    hidden = "docs/b.md:5: note: The code has no language. Use 'text' where none fits. [fence-without-language]"
    assert hidden in program("lint", "docs", "--level", "note", cwd=root, code=1).stdout


def test_a_site_without_its_pages_is_told_what_is_examined(root: Path) -> None:
    write(root / "site/index.html", "<h1>A</h1><p>Text.</p>")
    error = complaint("lint", "--docs", "gone", "--site", "site", cwd=root)
    assert "There is no folder gone." in error and "examines the pages of that folder, as site shows them." in error


def test_a_hook_names_the_program_of_its_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRE_COMMIT", "1")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    write(root / "docs/a.md", "# A\n")
    command = installation.line([*installation.user_command(), "build"])
    assert command != "anvil build"
    assert program("lint", "docs", cwd=root).stdout.endswith(f"no index with vectors. Run '{command}'.\n")


def test_a_reader_who_goes_away_changes_no_exit_code(root: Path) -> None:
    write(root / "docs/a.md", "# A\n\n" + "[x](gone.md)\n\n" * 3000)
    command = [sys.executable, "-m", "anvil", "lint", "docs"]
    with subprocess.Popen(command, cwd=root, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(1)
        process.stdout.close()
    assert process.returncode == 1


def test_json_and_annotations(root: Path) -> None:
    write(root / "docs/a.md", "# A\n\n[x](gone.md)\n")
    told = json.loads(program("lint", "docs", "--json", cwd=root, code=1).stdout)
    assert told["failed"] is True and told["pages"] == 1 and told["generator"] == "github"
    assert told["findings"][-1] == {
        "rule": "broken-link",
        "level": "error",
        "path": "a.md",
        "line": 3,
        "message": "Broken link 'gone.md': there is no file gone.md.",
    }
    lines = program("lint", "docs", "--format", "github", "--rule", "broken-link", "-q", cwd=root, code=1).stdout
    assert lines == (
        "::error file=docs/a.md,line=3,title=Anvil::Broken link 'gone.md': there is no file gone.md. [broken-link]\n"
    )


def test_a_finding_of_code_quality_keeps_its_fingerprint_when_lines_move(root: Path) -> None:
    fingerprints = []
    for text in ("[x](gone.md)\n\n[x](gone.md)\n", "# A\n\n[x](gone.md)\n\n[x](gone.md)\n"):
        write(root / "docs/a.md", text)
        quality = ("lint", "docs", "--format", "gitlab", "--rule", "broken-link")
        issues = json.loads(program(*quality, cwd=root, code=1).stdout)
        fingerprints.append([issue.pop("fingerprint") for issue in issues])
    assert fingerprints[0] == fingerprints[1] and len(set(fingerprints[0])) == 2
    assert issues[0] == {
        "description": "Broken link 'gone.md': there is no file gone.md. [broken-link]",
        "check_name": "anvil lint",
        "severity": "major",
        "location": {"path": "docs/a.md", "lines": {"begin": 3}},
    }


def test_the_staged_pages_and_those_of_a_commit(root: Path) -> None:
    before = commit(root, "second", at=1_700_000_100)
    write(root / "docs/a.md", "[x](b.md)\n")
    commit(root, "third", at=1_700_000_200)
    write(root / "docs/b.md", "# B\n")
    rule = ["--rule", "broken-link"]
    program("lint", "docs", *rule, cwd=root)
    program("lint", "docs", *rule, "--staged", cwd=root, code=1)
    program("lint", "docs", *rule, "--ref", "HEAD", cwd=root, code=1)
    program("lint", "docs", *rule, "--ref", before, cwd=root)


def test_what_cannot_be_done_is_one_message(root: Path) -> None:
    assert "Did you mean 'broken-link'?" in complaint("lint", "docs", "--rule", "broken-links", cwd=root)
    assert "There is no folder" in complaint("lint", "nothing", cwd=root)
    assert "cannot be written" in complaint("lint", "docs", "--sarif", "no/such/folder.sarif", cwd=root)
    for printed in (
        ("--sarif", "-", "--json"),
        ("--sarif", "-", "--format", "gitlab"),
        ("--json", "--format", "github"),
    ):
        assert "--sarif -" in complaint("lint", "docs", *printed, cwd=root)
    write(root / "anvil.toml", '[lint.levels]\nbroken-lin = "off"\n')
    assert "Did you mean lint.levels.broken_link?" in complaint("lint", "docs", cwd=root)


@pytest.mark.parametrize("level", ["off", "note"])
def test_levels_of_the_configuration(root: Path, level: str) -> None:
    write(root / "anvil.toml", f'[lint.levels]\nbroken-link = "{level}"\n')
    write(root / "docs/a.md", "[x](gone.md)\n")
    assert ("gone.md" in program("lint", "docs", "--level", "note", cwd=root).stdout) == (level == "note")


def test_a_page_that_cannot_be_read_is_named(root: Path) -> None:
    write(root / "docs/a.md", "# A\n\n[b](b0.md)\n")
    for number in range(7):
        (root / f"docs/b{number}.md").write_bytes(b"# B \xff\xfe\n")
    lines = program("lint", "docs", cwd=root).stdout.splitlines()
    assert "1 page: 1 warning." in lines
    assert len([line for line in lines if " was not examined: " in line and "UTF-8" in line]) == 5
    assert "2 further pages were not examined." in lines


def test_sarif_is_as_the_standard_says(root: Path) -> None:
    write(root / "docs/a b.md", "# A\n\n[x](gone.md) [x](gone.md)\n\n[y](gone.md)\n")
    program("lint", "docs", "--sarif", "out.sarif", "-q", cwd=root, code=1)
    log = json.loads((root / "out.sarif").read_text(encoding="utf-8"))
    schema = json.loads((Path(__file__).parents[2] / "data" / "sarif_2_1_0_part.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    assert list(validator.iter_errors(log)) == []
    (run,) = log["runs"]
    results = [result for result in run["results"] if result["ruleId"] == "broken-link"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("docs/a%20b.md", 3),
        ("docs/a%20b.md", 5),
    ]
    assert all(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] for result in results)
    assert len({result["partialFingerprints"]["anvilLint/v1"] for result in run["results"]}) == len(run["results"])
    printed = json.loads(program("lint", "docs", "--sarif", "-", cwd=root, code=1).stdout)
    assert printed == log


def test_each_collection_with_a_folder_is_examined(root: Path) -> None:
    for name in ("api", "web"):
        write(root / name / "index.md", f"# {name}\n\n[gone]({name}.md)\n")
    write(root / "anvil.toml", '[collections.api]\ndocs = "api"\n[collections.web]\ndocs = "web"\n')
    said = program("lint", cwd=root, code=1).stdout
    assert [line.partition(": ")[0] for line in said.splitlines() if "1 error" in line] == ["api", "web"]
    assert "api/index.md:3: error" in said and "web/index.md:3: error" in said
    assert "api" not in program("lint", "--collection", "web", cwd=root, code=1).stdout
    assert "api" not in program("lint", "web", cwd=root, code=1).stdout
    listed = json.loads(program("lint", "--json", cwd=root, code=1).stdout)["collections"]
    assert [(each["collection"], each["failed"]) for each in listed] == [("docs", False), ("api", True), ("web", True)]
    (run,) = json.loads(program("lint", "--sarif", "-", "--level", "error", cwd=root, code=1).stdout)["runs"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert places == ["api/index.md", "web/index.md"]
    assert "--site is the site of one collection" in complaint("lint", "--site", "out", cwd=root)


def test_the_built_site_is_looked_up(root: Path) -> None:
    write(root / "docs/a.md", "# A\n\n[x](gone.md) [y](b/address)\n")
    text = "<p>The text of the page.</p>"
    write(root / "out/a.html", f"<main><h1>A</h1>{text}<a href='gone.html'>x</a> <a href='b/address'>y</a></main>")
    write(root / "out/gone.html", f"<main><h1>Gone</h1>{text}<a href='a.html'>a</a></main>")
    done = program("lint", "docs", "--site", "out", cwd=root, code=1)
    assert "Links were looked up in the built site. Those that" in done.stdout
    assert done.stdout.splitlines()[:3] == [
        "docs/a.md:3: error: Broken link 'b/address': the site has nothing at /b/address. [broken-link]",
        "",
        "1 page: 1 error.",
    ]
    assert "no HTML page" in complaint("lint", "docs", "--site", "docs", cwd=root)
    assert "There is no folder" in complaint("lint", "docs", "--site", "nowhere", cwd=root)
    done = program("ci", "lint", "--docs", "docs", "--site", "out", cwd=root, code=1)
    assert "the site has nothing at /b/address" in done.stdout and "gone.md" not in done.stdout
    assert "\n1 error in 1 page\n" in done.stdout
    program("ci", "lint", "--docs", "docs", "--site", "nowhere", cwd=root, code=2)
