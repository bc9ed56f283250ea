"""``anvil build``."""

from __future__ import annotations

import click

from anvil.core.pluralize import counted
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import ERROR, NO, OK
from anvil.models.documents import BuildReport

MAX_FAILURES_SHOWN = 10
"""Passages without a vector that get a line each."""


@click.command("build", epilog="Example: anvil build --docs docs --index docs.anvil.db")
@options.common
@options.tree
@click.option("--shard", metavar="N/COUNT", help="Only this share of the pages, such as 3/8; see 'anvil merge'.")
@click.option(
    "--executor", metavar="ADDRESS", help="A Ray cluster that embeds: ray://HOST:10001, ray://auto or ray://local."
)
@click.option("--tracked", is_flag=True, help="With --staged: exit with 1 until the new index is staged.")
@click.option(
    "--force", is_flag=True, help="Read and embed all pages again. Where the provider fails, the old vector stays."
)
@click.option("--previous", metavar="FILE", multiple=True, help="An index whose vectors may be reused (repeatable).")
@options.as_json
@options.quiet
@options.folder
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    staged: bool,
    ref: str | None,
    shard: str | None,
    executor: str | None,
    tracked: bool,
    force: bool,
    previous: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Build the index, or bring it up to date. Nothing is written when nothing changed.

    Exit code 0: done, 1: the index is not staged yet (with --tracked), 2: an error, or the provider made no vector.
    """
    import anvil
    from anvil.interfaces.cli import agents

    with output.progress(quiet) as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        source = options.documents(opened, staged, ref)
        in_git = options.in_git(opened, staged) if tracked else None
        updated = agents.update(opened, source) if source is not None and ref is None and shard is None else ()
        options.warn_of_unrun_plugin(opened)
        report = opened.index(force=force, previous=previous, source=source, shard=shard, executor=executor)
        next_step = in_git.adding() if in_git is not None and not in_git.is_staged() else None
        unstaged = agents.unstaged(opened) if in_git is not None else None
    code = ERROR if report.nothing_embedded else NO if next_step or unstaged else OK
    if as_json:
        output.print_json(report)
        return code
    for reason in report.reasons:
        output.warn(reason)
    for skipped in report.skipped:
        output.warn(f"skipped {skipped.path}: {skipped.reason}")
    for failure in report.failed[:MAX_FAILURES_SHOWN]:
        output.warn(f"not embedded, found by keyword only: {failure.path}: {failure.reason}")
    if len(report.failed) > MAX_FAILURES_SHOWN:
        output.warn(f"not embedded, found by keyword only: {len(report.failed) - MAX_FAILURES_SHOWN:,} more passages")
    if report.nothing_embedded:
        output.warn(report.nothing_embedded_because)
    if not quiet:
        output.say(summary(report))
        if next_step:
            output.say(f"It is not in the commit yet. {next_step}")
        if updated:
            output.say(f"The map for agents was updated in {', '.join(updated)}.")
        if unstaged:
            output.say(f"The map for agents is not in the commit yet. Run: {unstaged}")
    return code


def summary(report: BuildReport) -> str:
    """The report of a build in one or two lines."""
    size = f"{counted(report.pages, 'page')}, {counted(report.chunks, 'chunk')}, {report.size_bytes / 1e6:.1f} MB"
    if report.outcome == "unchanged":
        return f"{output.relative(report.index_path)} is up to date: {size}."
    changes = report.changes
    counts = [(len(changes.added), "added"), (len(changes.changed), "changed"), (len(changes.removed), "removed")]
    counts_text = ", ".join(f"{count} {word}" for count, word in counts if count) or "no page changed"
    return (
        f"Built {output.relative(report.index_path)}: {size} ({counts_text}) in {report.seconds:.1f} s.\n"
        f"{counted(report.embedded, 'passage')} embedded, {report.reused} reused. Digest {report.digest[:16]}."
    )
