"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.sources import DocumentSource
    from anvil.tracked import TrackedIndex

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


def tree(function: F) -> F:
    """The options that say which state of the documents is meant; :func:`documents` reads them."""
    staged = click.option("--staged", is_flag=True, help="The documents as staged for the next commit.")
    ref = click.option("--ref", metavar="REV", help="The documents of a commit.")
    return staged(ref(function))


def documents(opened: Anvil, staged: bool, ref: str | None) -> DocumentSource | None:
    """The documents that ``--staged`` and ``--ref`` mean, else those in the folder; None without one."""
    from anvil import sources

    if staged and ref is not None:
        raise click.UsageError("--staged and --ref exclude each other. Give one of them.")
    if opened.folder is None:
        return None
    if ref is not None:
        return sources.commit_tree(opened.folder, ref, opened.config.source)
    return sources.staged_tree(opened.folder, opened.config.source) if staged else opened.tree


def in_git(opened: Anvil, tree: bool) -> TrackedIndex:
    """The index as git holds it, for ``--tracked``, which goes with a ``tree`` of git's."""
    if not tree:
        raise click.UsageError("--tracked goes with --staged. Give both.")
    return tracked(opened)


def tracked(opened: Anvil) -> TrackedIndex:
    """The index as git holds it. Raises :class:`SourceError` when it lies in no repository, or is published."""
    from anvil.errors import SourceError
    from anvil.tracked import TrackedIndex

    if opened.origin:
        raise SourceError(f"The index is published at {opened.origin}: no commit holds it. Name a file with --index.")
    return TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)


def build(*words: str, **given: str | None) -> str:
    """The command that brings the index in line, with the options that this one was given: ``docs=``, ``index=``."""
    from anvil import program

    named = [word for name, value in given.items() if value is not None for word in (f"--{name}", value)]
    return program.line(["anvil", "build", *words, *named])


def common(function: F) -> F:
    """The options that say what to work on."""
    for option in (provider, config, index, docs):
        function = option(function)
    return function
