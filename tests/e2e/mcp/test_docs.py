"""The documentation of the server is what the server does."""

from __future__ import annotations

import click

from anvil.server.cli import command
from tests.support.mcp_servers import ROOT


def test_every_flag_is_explained() -> None:
    page = (ROOT / "docs" / "guides" / "serve.md").read_text(encoding="utf-8")
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert options
    for option in options:
        assert f"`{option.opts[0]}" in page, option.opts[0]
