"""``anvil build``."""

from __future__ import annotations

import click

from anvil.cli import NO, OK, options, output
from anvil.models import BuildReport
from anvil.wording import counted


@click.command("build", epilog="Example: anvil build --docs docs --index docs.anvil.db")
@options.common
@options.tree
@click.option("--shard", metavar="N/COUNT", help="Only this share of the pages, such as 3/8; see 'anvil merge'.")
@click.option(
    "--executor", metavar="ADDRESS", help="A Ray cluster that embeds: ray://HOST:10001, ray://auto or ray://local."
)
@click.option("--tracked", is_flag=True, help="With --staged: exit with 1 until the index is staged as it was built.")
@click.option("--force", is_flag=True, help="Do all anew, vectors included.")
@click.option("--previous", metavar="FILE", multiple=True, help="An index whose vectors may be reused (repeatable).")
@options.as_json
@options.quiet
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
    """Build the index, or bring it up to date. Nothing is written when nothing changed."""
    import anvil

    with output.progress(quiet) as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        source = options.documents(opened, staged, ref)
        in_git = options.in_git(opened, staged) if tracked else None
        report = opened.index(force=force, previous=previous, source=source, shard=shard, executor=executor)
        waiting = in_git.adding() if in_git is not None and not in_git.is_staged() else None
    if as_json:
        output.print_json(report)
        return NO if waiting else OK
    for sentence in report.reasons:
        output.warn(sentence)
    for left_out in report.skipped:
        output.warn(f"skipped {left_out.path}: {left_out.reason}")
    for failure in report.failed:
        output.warn(f"not embedded, found by keyword only: {failure.path}: {failure.reason}")
    if not quiet:
        click.echo(summary(report))
        if waiting:
            click.echo(f"It is not in the commit yet. {waiting}")
    return NO if waiting else OK


def summary(report: BuildReport) -> str:
    """What a build did, in a line or two."""
    size = f"{counted(report.pages, 'page')}, {counted(report.chunks, 'chunk')}, {report.size_bytes / 1e6:.1f} MB"
    if report.outcome == "unchanged":
        return f"{output.relative(report.index_path)} is up to date: {size}."
    changes = report.changes
    counts = [(len(changes.added), "added"), (len(changes.changed), "changed"), (len(changes.removed), "removed")]
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "no page changed"
    return (
        f"Built {output.relative(report.index_path)}: {size} ({told}) in {report.seconds:.1f} s.\n"
        f"{counted(report.embedded, 'passage')} embedded, {report.reused} reused. Digest {report.digest[:16]}."
    )
