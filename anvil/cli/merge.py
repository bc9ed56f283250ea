"""``anvil merge``."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.cli import options, output
from anvil.cli.build import summary


@click.command("merge", epilog="Example: anvil merge docs.anvil.db shard-1.db shard-2.db shard-3.db")
@click.argument("out", metavar="OUT")
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True)
@options.as_json
@options.quiet
def command(out: str, shards: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Join the shards that 'anvil build --shard' made into one index: the same bytes as one big build."""
    from anvil import addresses, merging

    target, *parts = (Path(addresses.file(each)) for each in (out, *shards))
    with output.progress(quiet) as progress:
        report = merging.join(parts, target, progress=progress)
    if as_json:
        output.print_json(report)
    elif not quiet:
        click.echo(summary(report))
