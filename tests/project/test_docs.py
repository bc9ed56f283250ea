"""The documentation says what the code does: commands, options, keys, tables, links and snippets are compared."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import shlex
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import anvil
from anvil import registry
from anvil.cli import init
from anvil.cli.program import group
from anvil.index_file import connection, table_rows, verify
from anvil.registry import COMMANDS
from anvil.settings.configuration import configure
from anvil.settings.schema import Config
from anvil.text import markdown_sections
from scripts import reference
from tests.conftest import PAGES, write

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ALL = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")),
    *sorted(DOCS.rglob("*.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def fences(page: Path, language: str) -> list[str]:
    """The contents of a page's code fences of one language."""
    return [body for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def anvil_calls(page: Path) -> Iterator[list[str]]:
    """The arguments of each ``anvil`` call in a page's shell snippets."""
    for body in fences(page, "bash") + fences(page, "yaml"):
        for line in body.replace("\\\n", " ").splitlines():
            for call in re.split(r"&&|\|\||\|(?!\|)|;", line.removeprefix("- run: ")):
                words = shlex.split(re.sub(r"(^|\s)#.*|\s>>?\s.*", "", call))  # within a word it begins no comment
                if words[:1] == ["anvil"]:
                    yield words[1:]


# --- commands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_documented(name: str) -> None:
    reference = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    if name == "index":
        assert "Also called `anvil index`." in reference
    else:
        assert f"## anvil {name}\n" in reference
        assert f"`anvil {name}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_snippets_exist_and_take_their_options(page: Path) -> None:
    for words in anvil_calls(page):
        if words == ["--help"]:
            continue
        context = click.Context(group)
        command = group.get_command(context, words[0])
        assert command is not None, words
        if isinstance(command, click.Group):
            command, words = command.commands[words[1]], words[1:]
        command.make_context(words[0], words[1:])  # raises for an unknown option


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "index"])
def test_examples_in_help_texts_run_as_written(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    example = shlex.split((command.epilog or "").split("&&")[0])
    assert example[:3] == ["Example:", "anvil", name]
    command.make_context(name, example[3:])


@pytest.mark.parametrize("name", ["ingest", "status", "tasks", "search"])
def test_examples_of_commands_within_commands_run_as_written(name: str) -> None:
    outer = group.get_command(click.Context(group), "context")
    assert isinstance(outer, click.Group) and name in outer.commands
    example = shlex.split(outer.commands[name].epilog or "")
    assert example[:4] == ["Example:", "anvil", "context", name]
    outer.commands[name].make_context(name, example[4:])


def test_guides_that_messages_name_exist() -> None:
    titles = {page.read_text(encoding="utf-8").split("\n")[0] for page in (DOCS / "guides").glob("*.md")}
    sources = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "anvil").rglob("*.py")))
    named = re.findall(r"[Gg]uide '([^']+)'", sources)
    assert named and {f"# {name}" for name in named} <= titles


# --- pages made from the code ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", reference.pages())
def test_generated_pages_match_the_code(name: str) -> None:
    advice = "run 'python scripts/reference.py'"
    assert (DOCS / name).read_text(encoding="utf-8") == reference.pages()[name](), advice


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, default) of every configuration key."""
    for each in dataclasses.fields(value):
        found = getattr(value, each.name)
        if each.name == "tables":
            for name, place in registry.SETTINGS.items():
                yield from leaves(registry.load(place)(), f"{name}.")
        elif dataclasses.is_dataclass(found):
            yield from leaves(found, f"{prefix}{each.name}.")
        elif each.name != "collections" and each.metadata.get("keys") != {}:  # tables of any name; what is no key
            yield f"{prefix}{each.name}", found


def test_each_key_is_documented_with_its_default_and_meaning() -> None:
    page = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
    for key, default in leaves(Config()):
        row = next((line for line in page.splitlines() if line.startswith(f"| `{key}` |")), None)
        assert row, f"{key} is not documented"
        _, kind, given, meaning = row.strip("| ").split(" | ")
        assert given == ("not set" if default in (None, {}) else f"`{json.dumps(default)}`"), key
        assert kind and meaning, key


def test_the_file_that_init_writes_names_keys_that_exist() -> None:
    text = re.sub(r"^# (?=\S+ = )", "", init.TEMPLATE.format(docs='"docs"', index='"index.db"'), flags=re.MULTILINE)
    assert configure(tomllib.loads(text)) == configure({"index": "index.db"})


# --- the action ------------------------------------------------------------------------------------------------


WITH_WORKFLOWS = sorted(page for page in DOCS.rglob("*.md") if re.search(r"^ *- uses: ", page.read_text("utf-8"), re.M))
"""The pages with a step of a workflow."""


def action() -> dict[str, Any]:
    """The action's description."""
    found = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("page", WITH_WORKFLOWS, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_workflows_in_the_docs_use_what_there_is(page: Path) -> None:
    ours = (ROOT / "action.yml").read_text() + "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / ".github" / "workflows").glob("*.yml")
    )
    uses = 0
    for body in fences(page, "yaml"):
        for action_, given in used(yaml.safe_load(body)):
            uses += 1
            if action_ == "anvil-docs/anvil@v0":
                assert given.keys() <= action()["inputs"].keys()
            else:
                assert f"uses: {action_} # v" in ours, "pinned as in our own"
    assert uses


def used(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(action, its ``with``) wherever in a workflow."""
    if isinstance(value, dict):
        if "uses" in value:
            yield value["uses"], value.get("with", {})
        for each in value.values():
            yield from used(each)
    elif isinstance(value, list):
        for each in value:
            yield from used(each)


# --- artifact --------------------------------------------------------------------------------------------------


def test_tables_columns_and_manifest_are_documented(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "artifact.md").read_text(encoding="utf-8")
    described = {}
    for section in page.split("\n### `")[1:]:
        rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        described[section.partition("`")[0]] = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    write(tmp_path / "docs", PAGES)
    with anvil.open(tmp_path / "docs", tmp_path / "index.db", "none") as opened:
        opened.index(version="1.2.0")
    with verify.open_checked(tmp_path / "index.db") as reader:
        execute = reader.connection.execute
        tables = {name for (name,) in execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        tables = {name for name in tables if not name.startswith("chunks_fts_")}
        assert tables | {"vectors"} == described.keys()
        for table in tables - {"anvil_meta", "chunks_fts"}:
            columns = {name for (name,) in execute(f"SELECT name FROM pragma_table_info('{table}')")}
            assert columns == described[table], table
        assert reader.meta().keys() | {"commit", "shard", "left_out", "site", "weights"} == described["anvil_meta"]
    assert hex(connection.APPLICATION_ID)[2:].upper() in page
    assert f"now {table_rows.FORMAT_VERSION}." in page


def test_the_sql_that_anyone_can_run_runs(tmp_path: Path) -> None:
    write(tmp_path / "docs", PAGES)
    with anvil.open(tmp_path / "docs", tmp_path / "index.db") as opened:
        opened.index()
    statements = [each for body in fences(DOCS / "reference" / "artifact.md", "sql") for each in body.split(";")]
    with verify.open_checked(tmp_path / "index.db") as reader:
        for statement in filter(str.strip, statements):
            rows = reader.connection.execute(statement.replace("rollback OR revert", "monitor")).fetchall()
            assert rows, statement


# --- Python ----------------------------------------------------------------------------------------------------


def test_python_snippets_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "reference" / "api.md"  # those of the README are run in test_readme.py
    for path in ("index.md", "guides/keep-fresh.md"):
        (tmp_path / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / path).write_bytes((DOCS / path).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")  # quick, and the rest is the same
    snippets = fences(page, "python")
    assert snippets
    for snippet in snippets:
        exec(compile(ast.parse(snippet), page.name, "exec"), {})
    assert "guides/keep-fresh.md" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in anvil.__all__ if name[0].isupper() and name != "Anvil"])
def test_results_are_documented_with_their_fields(name: str) -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    kind = getattr(anvil, name)
    if not dataclasses.is_dataclass(kind) or kind is Config:
        assert f"anvil.{name}`" in page
        return
    row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), None)
    assert row, name
    assert [each.name for each in dataclasses.fields(kind)] == [
        found for found in re.findall(r"`(\w+)`", row.split(" | ")[1]) if found in typing.get_type_hints(kind)
    ]


def test_public_methods_are_documented() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for name, member in inspect.getmembers(anvil.Anvil):
        if callable(member) and not name.startswith("_"):
            assert f"| `{name}(" in page, name


# --- pages -----------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    return {section.anchor for section in markdown_sections.parse(page.read_text(encoding="utf-8")).sections}


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_every_page_is_reached_from_the_first() -> None:
    linked = set(_LINK.findall((DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"index.md"} <= linked


def test_every_page_is_in_the_nav_of_the_site_once() -> None:
    def pages(nav: Any) -> Iterator[str]:
        if isinstance(nav, str):
            yield nav
        else:
            for each in nav.values() if isinstance(nav, dict) else nav:
                yield from pages(each)

    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(pages(nav)) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_benchmarks_are_listed() -> None:
    listed = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for script in (ROOT / "benchmarks").glob("*.py"):
        assert f"`{script.name}`" in listed


def test_the_design_names_each_module_of_the_packages() -> None:
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:anvil|mkdocs_anvil)/[\w/]*)` \| .+ \| (.*) \|$", page, re.MULTILINE)
    named = {f"{folder}{name}" for folder, files in rows for name in files.replace("`", "").split()}
    modules = {path for package in ("anvil", "mkdocs_anvil") for path in (ROOT / package).rglob("*.py")}
    paths = {path.relative_to(ROOT).as_posix() for path in modules if path.name != "__init__.py"}
    assert {path.removesuffix(".py") for path in paths} <= named
    assert {folder for folder, _ in rows} == {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in modules}


def test_the_design_names_the_layers_that_the_import_contract_holds() -> None:
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", page, re.MULTILINE)
    assert [set(re.findall(r"`([\w.]+)`", cell)) for _, cell in rows] == [
        {name.strip() for name in re.split(r"[|:]", layer)} for layer in layers
    ]
