"""``anvil diff``."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK


@click.command("diff", epilog="Example: anvil diff old.anvil.db new.anvil.db")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.as_json
def command(a: str, b: str, as_json: bool) -> int:
    """Compare two index files: pages and sections added, changed, removed. Exit code 0: same text, 1: different."""
    from anvil.backends.store import verify
    from anvil.core import index_url
    from anvil.services.reports import diff

    first, second = (Path(index_url.file(each)) for each in (a, b))
    with verify.open_checked(first) as old, verify.open_checked(second) as new:
        found = diff.difference(old, new)
    if as_json:
        output.print_json(found)
    else:
        output.say(diff.rendered(found), nl=False)
    return NO if found.pages or found.settings else OK
