"""``anvil context``: the commands ``ingest``, ``status``, ``tasks``, ``search`` and ``script``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.program import SuggestingGroup
from anvil.context.settings import STATUSES
from anvil.requests import BuildRequest
from anvil.values import Progress, Skipped, silent
from anvil.wording import counted, full_heading

if TYPE_CHECKING:
    from anvil.context.context_queries import Context


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """The options that name a repository. None: not given."""

    root: str | None
    config: str | None
    provider: str | None

    def open(self, progress: Progress = silent) -> Context:
        from anvil.context.context_queries import Context
        from anvil.context.settings import load_context

        loaded = load_context(self.root, self.config, {"context.embeddings.provider": self.provider})
        return Context(*loaded, progress=progress)


repository = options.given(
    click.option("--root", metavar="FOLDER", help="The repository (default: the one around the working folder)."),
    click.option("--config", metavar="FILE", help="Configuration (default: anvil.toml or pyproject.toml)."),
    click.option("--provider", metavar="NAME", help="Embedding provider, as of 'anvil build' (default: none)."),
    kind=RepositoryOptions,
)


@click.group("context", cls=SuggestingGroup, epilog="Example: anvil context ingest")
def command() -> None:
    """A repository's specs, plans, open tasks and decisions, for agents and people."""


@command.command("ingest", epilog="Example: anvil context ingest --root .")
@repository
@click.option("--force", is_flag=True, help="Read all files again.")
@options.as_json
@options.quiet
def ingest(given: RepositoryOptions, force: bool, as_json: bool, quiet: bool) -> None:
    """Update the index from the files. A second run at the same time waits for the first."""

    def warn(skipped: Skipped) -> None:
        if not quiet:
            output.warn(f"skipped {skipped.path}: {skipped.reason}")

    with given.open() as context, output.progress(quiet) as progress:
        run = context.ingest(BuildRequest(force=force, progress=progress), warn)
        folder = context.records.folder
    if as_json:
        output.print_json(run)
        return
    if quiet:
        return
    for note in run.notes:
        output.warn(note)
    changes = [f"{count} {word}" for word in ("added", "changed", "removed") if (count := getattr(run, word))]
    output.say(
        f"{folder}: {counted(run.artifacts, 'artifact')}, {counted(run.chunks, 'chunk')}, "
        f"{counted(run.embeddings, 'embedding')}, tasks: {run.tasks} "
        f"({', '.join(changes) or 'nothing changed'}) in {run.seconds:.1f} s."
    )
    if run.errors:
        output.warn(f"{counted(run.errors, 'file', 'could')} not be read; {folder / 'errors.log'} says why.")


@command.command("status", epilog="Example: anvil context status --json")
@repository
@options.as_json
def status(given: RepositoryOptions, as_json: bool) -> None:
    """Show what the context holds, and the result of the last run."""
    with output.progress() as progress, given.open(progress) as context:
        health = context.health()
        inventory = context.get().inventory
    if as_json:
        output.print_json(health)
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in inventory.artifacts.items() if count)
    rows = [
        ("status", health.status),
        ("artifacts", f"{health.artifacts}{f' ({kinds})' if kinds else ''}"),
        ("chunks", f"{health.chunks}, {counted(health.embeddings, 'embedding')}"),
        ("tasks", f"{health.tasks}"),
        ("ingested", health.lastIngestion or "never"),
        ("errors", f"{health.errors}"),
        *(("note", note) for note in health.notes),
    ]
    for name, text in rows:
        output.say(f"{name:>10}  {text}")


@command.command("tasks", epilog="Example: anvil context tasks specs/001-login --status all")
@repository
@click.option("--status", type=click.Choice(STATUSES), default="open", show_default=True)
@options.as_json
@click.argument("path", required=False)
def tasks(given: RepositoryOptions, status: str, as_json: bool, path: str | None) -> None:
    """List the check boxes of all artifacts, or of those in PATH."""
    with output.progress() as progress, given.open(progress) as context:
        listed, note = context.tasks(status, path), context.unmarked(path)
        reasons = _reasons(context, listed or path)
    if as_json:
        output.print_json(listed)
        return
    for message in [note] if note is not None else reasons:
        output.warn(message)
    if not listed:
        kind = "task" if status == "all" else f"{status} task"
        output.say(f"There is no {kind} in {path or 'the artifacts'}.", err=True)
    for task in listed:
        output.say(str(task))


@command.command("search", epilog='Example: anvil context search "how is a session ended?" --type spec')
@repository
@options.top_k(5)
@click.option("--type", "type_", metavar="TYPE", help="Only artifacts of this type, such as spec or decision.")
@options.as_json
@options.question
def search(given: RepositoryOptions, top_k: int, type_: str | None, as_json: bool, query: str) -> None:
    """Search the artifacts; templates only with '--type template'."""
    from anvil.cli.search import MAX_PASSAGE_CHARS
    from anvil.search import excerpts

    with output.progress() as progress, given.open(progress) as context:
        hits, spans = context.search_with_spans(query, top_k, type_)
        reasons = _reasons(context, hits)
    if as_json:
        output.print_json(hits)
        return
    for reason in reasons:
        output.warn(reason)
    if not hits:
        output.say("Nothing found.")
    sought = excerpts.sought(query)
    for number, (hit, span) in enumerate(zip(hits, spans, strict=True), 1):
        section = hit.content[span.start : span.end]
        part = excerpts.excerpt(section, sought, MAX_PASSAGE_CHARS)
        line = span.line_at(section, part.start)
        output.say(f"{number}. {hit.artifactPath}:{line}  {hit.score:.3f}")
        output.say(f"   {full_heading(hit.title, hit.heading)}")
        output.say_lines(part.of(section))


def _reasons(context: Context, answer: object) -> tuple[str, ...]:
    """Notes on why an answer is empty, such as missing folders. None if it is not empty."""
    return () if answer else context.health().notes


@command.command("script", epilog="Example: anvil context script")
def script() -> None:
    """Print a shell script for cron. Saved in a repository's 'scripts' folder, it ingests that repository."""
    from importlib.resources import files

    output.say(files("anvil.context").joinpath("mcp-ingest.sh").read_text(encoding="utf-8"), nl=False)
