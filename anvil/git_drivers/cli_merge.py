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
    """Join the shards of 'anvil build --shard' into one index. It has the bytes of a single build."""
    from anvil.git_drivers import merge
    from anvil.settings import index_url

    target, *parts = (Path(index_url.file(name)) for name in (out, *shards))
    with output.progress(quiet) as progress:
        report = merge.join(parts, target, progress=progress)
    if as_json:
        output.print_json(report)
    elif not quiet:
        output.say(summary(report))
