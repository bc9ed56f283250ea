"""``anvil build``."""

from __future__ import annotations

import click

from anvil.cli import options, output
from anvil.models import BuildReport


@click.command("build", epilog="Example: anvil build --docs docs --index docs.anvil.db")
@options.common
@options.tree
@click.option("--shard", metavar="N/COUNT", help="Only this share of the pages, such as 3/8; see 'anvil merge'.")
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
    force: bool,
    previous: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Build the index, or bring it up to date. Nothing is written when nothing changed."""
    import anvil

    with output.progress(quiet) as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        source = options.documents(opened, staged, ref)
        report = opened.index(force=force, previous=previous, source=source, shard=shard)
    if as_json:
        output.print_json(report)
        return
    for sentence in report.reasons:
        output.warn(sentence)
    for left_out in report.skipped:
        output.warn(f"skipped {left_out.path}: {left_out.reason}")
    for failure in report.failed:
        output.warn(f"not embedded, found by keyword only: {failure.path}: {failure.reason}")
    if not quiet:
        click.echo(summary(report))


def summary(report: BuildReport) -> str:
    """What a build did, in a line or two."""
    size = f"{report.pages} pages, {report.chunks} chunks, {report.size_bytes / 1e6:.1f} MB"
    if report.outcome == "unchanged":
        return f"{report.index_path} is up to date: {size}."
    changes = report.changes
    counts = [(len(changes.added), "added"), (len(changes.changed), "changed"), (len(changes.removed), "removed")]
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "no page changed"
    return (
        f"Built {report.index_path}: {size} ({told}) in {report.seconds:.1f} s.\n"
        f"{report.embedded} passages embedded, {report.reused} reused. Digest {report.digest[:16]}."
    )
