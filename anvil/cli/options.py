"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

docs = click.option("--docs", metavar="FOLDER", help="The documentation folder (default: docs).")
index = click.option(
    "--index", metavar="FILE", help="The index file (default: FOLDER/.anvil/index.db), or where one is published."
)
config = click.option("--config", metavar="FILE", help="Configuration (default: anvil.toml or pyproject.toml).")
provider = click.option(
    "--provider", metavar="NAME", help="Embedding provider: local (default), openai, none (keywords only)."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")


def common(function: F) -> F:
    """The options that say what to work on."""
    for option in (provider, config, index, docs):
        function = option(function)
    return function
