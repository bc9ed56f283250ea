"""``anvil diff``."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.cli import options, output
from anvil.cli.exit_codes import NO, OK


@click.command("diff", epilog="Example: anvil diff old.anvil.db new.anvil.db")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.as_json
def command(a: str, b: str, as_json: bool) -> int:
    """List the pages, sections and settings in which two index files differ. Exit code 0: none, 1: some."""
    from anvil.git_drivers import index_diff
    from anvil.index_file import verify
    from anvil.settings import index_url

    first, second = (Path(index_url.file(name)) for name in (a, b))
    with verify.open_foreign(first) as old, verify.open_foreign(second) as new:
        difference = index_diff.difference(old, new)
    if as_json:
        output.print_json(difference)
    else:
        output.say(index_diff.rendered(difference), nl=False)
    return NO if difference.pages or difference.settings else OK
