"""The documentation of the server is what the server does."""

from __future__ import annotations

import runpy

import click

from anvil.cli.serve import command
from tests.surfaces.serving import ROOT


def test_the_tool_reference_is_what_the_server_offers() -> None:
    reference = runpy.run_path(str(ROOT / "scripts" / "tool_reference.py"))["reference"]
    told = "run 'python scripts/tool_reference.py'"
    assert (ROOT / "docs" / "reference" / "tools.md").read_text(encoding="utf-8") == reference(), told


def test_every_flag_is_explained() -> None:
    page = (ROOT / "docs" / "guides" / "serve.md").read_text(encoding="utf-8")
    for option in command.params:
        assert isinstance(option, click.Option)
        assert f"`{option.opts[0]}" in page, option.opts[0]
