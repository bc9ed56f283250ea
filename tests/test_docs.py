"""The documentation says what the code does: commands, options, keys, tables, links and snippets are compared."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import runpy
import shlex
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import anvil
from anvil import markdown
from anvil.cli import COMMANDS, group
from anvil.config import Config
from anvil.store import checking, connection
from tests.conftest import PAGES, write

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ALL = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md", *sorted(DOCS.rglob("*.md"))]
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
                words = shlex.split(call, comments=True)
                if words[:1] == ["anvil"]:
                    yield words[1:]


# --- commands --------------------------------------------------------------------------------------------------


def test_the_command_reference_is_what_the_commands_say() -> None:
    reference = runpy.run_path(str(ROOT / "scripts" / "cli_reference.py"))["reference"]
    told = "run 'python scripts/cli_reference.py'"
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == reference(), told


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
        command.make_context(words[0], words[1:])  # raises for an unknown option


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "index"])
def test_examples_in_help_texts_run_as_written(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    example = shlex.split((command.epilog or "").split("&&")[0])
    assert example[:3] == ["Example:", "anvil", name]
    command.make_context(name, example[3:])


# --- configuration ---------------------------------------------------------------------------------------------


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, default) of every configuration key."""
    for each in dataclasses.fields(value):
        found = getattr(value, each.name)
        if dataclasses.is_dataclass(found):
            yield from leaves(found, f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", found


@pytest.mark.parametrize(("key", "default"), list(leaves(Config())))
def test_each_key_is_documented_with_its_default_and_variable(key: str, default: Any) -> None:
    page = (DOCS / "guides" / "configuration.md").read_text(encoding="utf-8")
    row = next((line for line in page.splitlines() if line.startswith(f"| `{key}` |")), None)
    assert row, f"{key} is not documented"
    shown = "not set" if default is None else f"`{json.dumps(default)}`"
    assert row.split(" | ")[1:3] == [shown, f"`ANVIL_{key.replace('.', '_').upper()}`"]


def test_no_key_is_documented_that_does_not_exist() -> None:
    page = (DOCS / "guides" / "configuration.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE) == [key for key, _ in leaves(Config())]


# --- artifact --------------------------------------------------------------------------------------------------


def test_tables_columns_and_manifest_are_documented(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "artifact.md").read_text(encoding="utf-8")
    described = {}
    for section in page.split("\n### `")[1:]:
        rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        described[section.partition("`")[0]] = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    write(tmp_path / "docs", PAGES)
    with anvil.open(tmp_path / "docs", tmp_path / "index.db", "none") as opened:
        opened.index()
    with checking.open_checked(tmp_path / "index.db") as reader:
        execute = reader.connection.execute
        tables = {name for (name,) in execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        tables = {name for name in tables if not name.startswith("chunks_fts_")}
        assert tables | {"vectors"} == described.keys()
        for table in tables - {"anvil_meta", "chunks_fts"}:
            columns = {name for (name,) in execute(f"SELECT name FROM pragma_table_info('{table}')")}
            assert columns == described[table], table
        assert reader.meta().keys() | {"commit", "shard"} == described["anvil_meta"]
    assert hex(connection.APPLICATION_ID)[2:].upper() in page
    assert f"now {connection.FORMAT_VERSION}." in page


def test_the_sql_that_anyone_can_run_runs(tmp_path: Path) -> None:
    write(tmp_path / "docs", PAGES)
    with anvil.open(tmp_path / "docs", tmp_path / "index.db") as opened:
        opened.index()
    statements = [each for body in fences(DOCS / "reference" / "artifact.md", "sql") for each in body.split(";")]
    with checking.open_checked(tmp_path / "index.db") as reader:
        for statement in filter(str.strip, statements):
            rows = reader.connection.execute(statement.replace("rollback OR revert", "monitor")).fetchall()
            assert rows, statement


# --- Python ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "reference" / "api.md"], ids=lambda page: page.name)
def test_python_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    for name, member in vars(anvil.Anvil).items():
        if callable(member) and not name.startswith("_"):
            assert f"| `{name}(" in page, name


# --- pages -----------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    return {section.anchor for section in markdown.parse(page.read_text(encoding="utf-8")).sections}


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


def test_benchmarks_are_listed() -> None:
    listed = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for script in (ROOT / "benchmarks").glob("*.py"):
        assert f"`{script.name}`" in listed


