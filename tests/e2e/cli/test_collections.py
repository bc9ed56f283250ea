"""Commands over several collections."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import write
from tests.support.collections_of_pages import BREAD, KITCHEN, project_with
from tests.support.in_process import complaint, printed, program
from tests.support.repositories import run

CONFIG = """
embedding.provider = "none"
[collections.docs]
docs = "docs"
[collections.handbook]
docs = "kitchen"
[collections.bakery]
index = "bakery.db"
version = "2"
title = "Bakery"
"""


def said(*arguments: str) -> str:
    return program(*arguments).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders, and an index of a third."""
    return project_with(tmp_path, monkeypatch, {"bakery.db": {"rolls.md": BREAD}}, CONFIG, KITCHEN)


def test_results_say_their_collection(project: Path) -> None:
    text = said("search", "sourdough")
    assert "kitchen/bread.md:" in text and "  handbook\n" in text and "bakery@2:rolls.md:" in text
    found = printed("search", "--json", "--collection", "bakery", "--collection", "docs", "sourdough")
    assert [(hit["collection"], hit["version"]) for hit in found["results"]] == [("bakery", "2")]
    assert "collection" not in said("search", "--json", "--collection", "handbook", "sourdough")
    assert "Did you mean bakery?" in complaint("search", "--collection", "bakry", "sourdough")
    assert "--collection cannot be combined with --docs" in complaint("search", "-d", "docs", "--collection", "x", "y")


def test_pages_are_named_by_collection(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said("list").splitlines()[-1].startswith("bakery@2:rolls.md ")
    assert [line.split()[0] for line in said("list", "docs/guides").splitlines()] == [
        "docs:guides/alerts.md",
        "docs:guides/checks.md",
    ]
    for name in ("bakery@2:rolls.md", "bakery:rolls.md", "rolls.md", "rolls"):
        assert said("show", name) == BREAD
    assert said("show", "kitchen/bread.md:4").startswith("## Sourdough")
    assert "2 collections have such a page. Name one of them: docs:index.md, handbook:index.md." in complaint(
        "show", "index.md"
    )
    assert said("show", "handbook:index.md").startswith("# Kitchen")
    monkeypatch.chdir(project / "kitchen")
    assert said("show", "index.md:1").startswith("# Kitchen"), "results print a page of this folder so"
    assert "There is no page rols.md." in complaint("show", "rols.md")
    assert "Closest: docs:index.md, handbook:index.md" in complaint("show", "INDEX.MD")


def test_lines_are_printed_with_their_collection(project: Path) -> None:
    assert said("grep", "sourdough").splitlines() == [
        "kitchen/bread.md:3:## Sourdough",
        "kitchen/bread.md:5:Feed the sourdough at night.",
        "bakery@2:rolls.md:3:## Sourdough",
        "bakery@2:rolls.md:5:Feed the sourdough at night.",
    ]
    assert said("grep", "-l", "sourdough", "--collection", "bakery", "--collection", "docs") == "bakery@2:rolls.md\n"


def test_build_and_check_take_all_folders(project: Path) -> None:
    assert program("check", code=2).stderr.startswith("anvil: docs: There is no index at docs/.anvil/index.db")
    text = said("build")
    assert "docs: Built docs/.anvil/index.db" in text and "handbook: Built kitchen/.anvil/index.db" in text
    assert "bakery" not in text
    write(project / "kitchen", {"bread.md": BREAD + "\nMore.\n"})
    checked = program("check", code=1).stdout
    assert "docs: docs/.anvil/index.db is fresh" in checked and "Run: anvil build --collection handbook" in checked
    assert "0 removed. Run: anvil build --collection handbook\n" in said("status")
    assert program("check", "--collection", "docs").stdout.startswith("docs/.anvil/index.db is fresh")
    assert "1 changed" in said("build", "--collection", "handbook")
    assert [each["fresh"] for each in printed("check", "--json")["collections"]] == [True, True]
    assert "There are no documents to index." in complaint("build", "--collection", "bakery")


def test_the_command_for_a_tracked_index_names_its_collection(project: Path) -> None:
    said("build")
    run(project, "init", "-q")
    run(project, "add", "-f", ".")
    write(project / "kitchen", {"bread.md": BREAD + "\nMore.\n"})
    run(project, "add", "kitchen")
    stale = program("check", "--staged", "--tracked", code=1).stdout
    assert "Run: anvil build --staged --collection handbook && git add kitchen/.anvil/index.db\n" in stale


def test_the_command_for_a_site_names_its_collection(project: Path) -> None:
    config = CONFIG.replace('docs = "kitchen"', 'docs = "kitchen"\nsite.folder = "site"')
    write(project, {"anvil.toml": config, "site/index.html": "<h1>A</h1><p>One.</p>"})
    said("build")
    write(project, {"site/index.html": "<h1>A</h1><p>Two.</p>"})
    assert "run: anvil build --collection handbook" in program("check", code=1).stdout


def test_a_collection_whose_folder_is_missing_keeps_no_other_from_its_work(project: Path) -> None:
    """As a submodule that is not checked out."""
    shutil.rmtree(project / "kitchen")
    built = program("build", code=2)
    assert "docs: Built docs/.anvil/index.db" in built.stdout
    assert built.stderr.startswith("anvil: handbook: There is no folder kitchen.")
    for command in ("build", "check", "lint"):
        own, missing = json.loads(program(command, "--json", code=2).stdout)["collections"]
        assert own["collection"] == "docs" and "error" not in own
        assert missing["collection"] == "handbook" and "There is no folder" in missing["error"]
    shutil.rmtree(project / "docs/.anvil")  # the search builds it after its answer
    found = program("search", "sourdough")
    assert (project / "docs/.anvil/index.db").is_file()
    assert "bakery@2:rolls.md:" in found.stdout
    assert "handbook cannot answer: There is no folder kitchen. Make it, or correct docs" in found.stderr
    assert "There is no folder kitchen" in complaint("search", "--collection", "handbook", "sourdough")


def test_a_job_names_the_folders_that_it_leaves_out(project: Path) -> None:
    said("build")
    assert "This step is for docs alone." in said("ci", "check") and "--docs: kitchen." in said("ci", "check")
    assert "alone" not in said("ci", "check", "--docs", "kitchen")
    told = program("agents").stderr
    assert told == "anvil: This is for docs alone. For another, add --docs: kitchen.\n"
    assert program("agents", "--docs", "kitchen").stderr == ""


def test_the_doctor_of_a_project_with_collections_alone(project: Path) -> None:
    (project / "docs").rename(project / "manual")
    file = project / "anvil.toml"
    file.write_text(file.read_text().replace('docs = "docs"', 'docs = "manual"'))
    findings = {each["subject"]: each for each in printed("doctor", "--json")["findings"]}
    assert findings["documents"]["text"].startswith("manual has ")
    assert findings["configuration"]["text"].endswith("manual is examined. For another, add --docs: kitchen.")
    assert "kitchen has " in said("doctor", "--docs", "kitchen")


def test_the_status_has_a_block_for_each(project: Path) -> None:
    lines = said("status").splitlines()
    assert (lines[0], lines[1], lines[3]) == ("docs", "      docs  docs", "     fresh  yes")
    assert "bakery@2  Bakery" in lines
    found = printed("status", "--json")
    assert [each["name"] for each in found["collections"]] == ["docs", "handbook", "bakery"]
