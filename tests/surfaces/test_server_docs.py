"""The documentation of the server is what the server does."""

from __future__ import annotations

import click

from anvil.cli.serve import command
from tests.surfaces.serving import ROOT


def test_every_flag_is_explained() -> None:
    page = (ROOT / "docs" / "guides" / "serve.md").read_text(encoding="utf-8")
    for option in command.params:
        assert isinstance(option, click.Option)
        assert f"`{option.opts[0]}" in page, option.opts[0]
