"""``anvil context``: a repository's specs, plans and tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anvil.cli import options, output
from anvil.models import Progress, Skipped, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.context.repository import Context

F = TypeVar("F", bound=Callable[..., Any])


def repository(function: F) -> F:
    """The options that say which repository, and how."""
    for option in (
        click.option("--provider", metavar="NAME", help="Embedding provider: none (default), local, openai."),
        click.option("--config", metavar="FILE", help="Configuration (default: anvil.toml or pyproject.toml)."),
        click.option("--root", metavar="FOLDER", help="The repository (default: the one around the working folder)."),
    ):
        function = option(function)
    return function


def opened(root: str | None, config: str | None, provider: str | None, progress: Progress = silent) -> Context:
    """The context that the options name."""
    from anvil.configfile import load_context
    from anvil.context.repository import Context

    return Context(*load_context(root, config, {"context.embeddings.provider": provider}), progress=progress)


@click.group("context", epilog="Example: anvil context ingest")
def command() -> None:
    """A repository's specs, plans, open tasks and decisions, for agents and people."""


@command.command("ingest", epilog="Example: anvil context ingest --root .")
@repository
@click.option("--force", is_flag=True, help="Read all anew.")
@options.as_json
@options.quiet
def ingest(
    root: str | None, config: str | None, provider: str | None, force: bool, as_json: bool, quiet: bool
) -> None:
    """Bring the index in line with the files; a second run at once waits for the first."""

    def warn(skipped: Skipped) -> None:
        if not quiet:
            output.warn(f"skipped {skipped.path}: {skipped.reason}")

    with opened(root, config, provider) as context, output.progress(quiet) as progress:
        run = context.ingest(force=force, progress=progress, warn=warn)
        where = context.records.folder
    if as_json:
        output.print_json(run)
        return
    if quiet:
        return
    for note in run.notes:
        output.warn(note)
    moved = [f"{count} {word}" for word in ("added", "changed", "removed") if (count := getattr(run, word))]
    click.echo(
        f"{where}: {counted(run.artifacts, 'artifact')}, {counted(run.chunks, 'chunk')}, "
        f"{counted(run.embeddings, 'embedding')}, {counted(run.tasks.open, 'open task')}, {run.tasks.done} done "
        f"({', '.join(moved) or 'nothing changed'}) in {run.seconds:.1f} s."
    )
    if run.errors:
        output.warn(f"{counted(run.errors, 'file', 'could')} not be read; {where / 'errors.log'} says why.")


@command.command("status", epilog="Example: anvil context status --json")
@repository
@options.as_json
def status(root: str | None, config: str | None, provider: str | None, as_json: bool) -> None:
    """What the context holds, and how the last run went."""
    with output.progress() as progress, opened(root, config, provider, progress) as context:
        health = context.health()
        found = context.get().inventory
    if as_json:
        output.print_json(health)
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.artifacts.items() if count)
    rows = [
        ("status", health.status),
        ("artifacts", f"{health.artifacts}{f' ({kinds})' if kinds else ''}"),
        ("chunks", f"{health.chunks}, {counted(health.embeddings, 'embedding')}"),
        ("tasks", f"{health.tasks.open} open, {health.tasks.done} done"),
        ("ingested", health.lastIngestion or "never"),
        ("errors", f"{health.errors}"),
        *(("note", note) for note in health.notes),
    ]
    for name, text in rows:
        click.echo(f"{name:>10}  {text}")


@command.command("tasks", epilog="Example: anvil context tasks specs/001-login --status all")
@repository
@click.option("--status", type=click.Choice(["open", "done", "all"]), default="open", show_default=True)
@options.as_json
@click.argument("path", required=False)
def tasks(
    root: str | None, config: str | None, provider: str | None, status: str, as_json: bool, path: str | None
) -> None:
    """The check boxes of all artifacts, or of those in PATH."""
    with output.progress() as progress, opened(root, config, provider, progress) as context:
        found = context.tasks(status, path)
    if as_json:
        output.print_json(found)
        return
    for task in found:
        click.echo(f"{task.artifactPath}:{task.line}: [{'x' if task.status == 'done' else ' '}] {task.text}")


@command.command("search", epilog='Example: anvil context search "how is a session ended?" --type spec')
@repository
@click.option("--top-k", "-k", default=5, show_default=True, help="Results, 1 to 20.")
@click.option("--type", "type_", metavar="TYPE", help="Only artifacts of this type, such as spec or decision.")
@options.as_json
@click.argument("query")
def search(
    root: str | None,
    config: str | None,
    provider: str | None,
    top_k: int,
    type_: str | None,
    as_json: bool,
    query: str,
) -> None:
    """Search the artifacts."""
    from anvil import passages
    from anvil.cli.search import SNIPPET

    with output.progress() as progress, opened(root, config, provider, progress) as context:
        found = context.search(query, top_k, type_)
    if as_json:
        output.print_json(found)
        return
    wanted = passages.roots(query)
    for number, each in enumerate(found, 1):
        start, end = passages.passage(each.content, wanted, SNIPPET)
        line = each.startLine + passages.lines_before(each.content, start)
        click.echo(f"{number}. {each.artifactPath}:{line}  {each.score:.3f}\n   {each.heading}")
        for text in each.content[start:end].splitlines():
            if text.strip():
                click.echo(f"   | {text}")
