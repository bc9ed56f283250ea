"""server.json: current, of the form that the registry takes, and true of the program."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from anvil.cli.program import group
from anvil.embedding.provider import PROVIDERS
from anvil.settings.schema import Config
from scripts import project, server_json
from tests.project.test_docs import leaves

FORM = json.loads((Path(__file__).parents[1] / "data" / "server_json_form.json").read_text(encoding="utf-8"))
DOCUMENTATION = project.ROOT / "docs"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / f"anvil-{project.version()}.mcpb"
    file.write_bytes(b"a bundle")
    return file


def packages(bundle: Path | None = None) -> dict[str, dict[str, Any]]:
    """The entries by kind."""
    return {each["registryType"]: each for each in server_json.listing(bundle)["packages"]}


def command(arguments: list[dict[str, Any]], **given: str) -> list[str]:
    """The command line that a client makes of arguments."""
    line = []
    for each in arguments:
        value = each.get("value") or given.get(each.get("name", ""))
        for name, meant in given.items():
            value = value and value.replace(f"{{{name}}}", meant)
        if value:
            line += [each["name"], value] if each["type"] == "named" else [value]
        else:
            assert not each.get("isRequired"), each
    return line


def test_the_file_is_what_the_project_says() -> None:
    assert server_json.is_current(), "run 'python scripts/server_json.py'"


def test_it_has_the_registry_s_form(bundle: Path) -> None:
    validator = jsonschema.Draft202012Validator(FORM, format_checker=jsonschema.FormatChecker())
    for listing in (json.loads(server_json.FILE.read_text(encoding="utf-8")), server_json.listing(bundle)):
        assert [error.message for error in validator.iter_errors(listing)] == []


@pytest.mark.parametrize(
    "change",
    [
        {"version": "^0.1"},
        {"description": "x" * 101},
        {"name": "anvil"},
        {"repository": {"url": "x"}},
        {"more": 1},
        {"packages": [{"registryType": "mcpb", "identifier": "https://x/y.mcpb", "transport": {"type": "stdio"}}]},
        {"packages": [{"registryType": "oci", "identifier": "ghcr.io/a/b", "transport": {"type": "stdio"}}]},
    ],
)
def test_another_form_is_found_out(change: dict[str, Any]) -> None:
    assert list(jsonschema.Draft202012Validator(FORM).iter_errors({**server_json.listing(), **change}))


def test_all_entries_are_of_this_version(bundle: Path) -> None:
    now, found = project.version(), packages(bundle)
    assert server_json.listing()["version"] == found["pypi"]["version"] == now
    assert found["oci"]["identifier"] == f"ghcr.io/anvil-docs/anvil:{now}"
    assert found["mcpb"]["identifier"].endswith(f"/releases/download/v{now}/anvil-{now}.mcpb")
    assert found["mcpb"]["fileSha256"] == hashlib.sha256(b"a bundle").hexdigest()


@pytest.mark.parametrize("given", [{}, {"--index": "https://docs.example.org/anvil/index.db"}])
def test_the_program_takes_the_arguments_of_the_package(given: dict[str, str]) -> None:
    line = command(packages()["pypi"]["packageArguments"], **{"--docs": "docs", **given})
    assert line[0] == "serve"
    serve = group.get_command(click.Context(group), "serve")
    assert serve is not None
    taken = serve.make_context("serve", line[1:]).params
    assert taken["docs"] == "docs" and taken["index"] == given.get("--index") and taken["transport"] == "stdio"
    assert taken["text_format"] == "markdown"


def test_the_program_takes_the_arguments_of_the_image() -> None:
    image = packages()["oci"]
    assert command(image["runtimeArguments"], docs="/home/me/docs") == ["--volume", "/home/me/docs:/docs:ro"]
    line = command(image["packageArguments"])
    serve = group.get_command(click.Context(group), "serve")
    assert serve is not None and line[0] == "serve"
    taken = serve.make_context("serve", line[1:]).params
    assert taken["docs"] == "/docs" and taken["text_format"] == "markdown"


def test_the_variables_are_ours_and_their_choices_are_all() -> None:
    declared = {each["name"]: each for each in server_json.ENVIRONMENT}
    keys = {f"ANVIL_{key.replace('.', '_').upper()}": default for key, default in leaves(Config())}
    assert declared.keys() - keys.keys() == {"OPENAI_API_KEY"}
    provider = declared["ANVIL_EMBEDDING_PROVIDER"]
    assert provider["choices"] == list(PROVIDERS) and provider["default"] == keys["ANVIL_EMBEDDING_PROVIDER"]
    assert declared["OPENAI_API_KEY"]["isSecret"]


def test_the_line_that_it_means_is_the_one_in_the_guide() -> None:
    page = (DOCUMENTATION / "guides" / "serve.md").read_text(encoding="utf-8")
    assert shlex.join(["uvx", project.NAME, "serve", "--docs"]) in page
