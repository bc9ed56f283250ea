"""``anvil diff``."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.cli import NO, OK, options, output


@click.command("diff", epilog="Example: anvil diff old.anvil.db new.anvil.db")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.as_json
def command(a: str, b: str, as_json: bool) -> int:
    """Compare two index files: pages and sections added, changed, removed. Exit code 0: same text, 1: different."""
    from anvil import addresses, comparing
    from anvil.store import checking

    first, second = (Path(addresses.file(each)) for each in (a, b))
    with checking.open_checked(first) as old, checking.open_checked(second) as new:
        found = comparing.difference(old, new)
    if as_json:
        output.print_json(found)
    else:
        click.echo(comparing.rendered(found), nl=False)
    return NO if found.pages or found.settings else OK
