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
    """List the pages, sections and settings in which two index files differ. Exit code 0: none, 1: some."""
    from anvil.backends.store import verify
    from anvil.core import index_url
    from anvil.services.reports import diff

    first, second = (Path(index_url.file(name)) for name in (a, b))
    with verify.open_foreign(first) as old, verify.open_foreign(second) as new:
        difference = diff.difference(old, new)
    if as_json:
        output.print_json(difference)
    else:
        output.say(diff.rendered(difference), nl=False)
    return NO if difference.pages or difference.settings else OK
