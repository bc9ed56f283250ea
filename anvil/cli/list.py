"""``anvil list``: the pages."""

from __future__ import annotations

import click

from anvil.cli import options, output
from anvil.requests import OpenRequest
from anvil.values import address


@click.command("list", epilog="Example: anvil list guides")
@options.project
@options.in_site
@options.as_json
@click.argument("prefix", required=False)
def command(given: OpenRequest, as_json: bool, prefix: str | None) -> None:
    """List the pages, or those in the folder PREFIX, with their titles and sizes."""
    from anvil.cli import page_paths

    with options.opened(given) as opened:
        listing = opened.list_pages(None if prefix is None else page_paths.folder(opened, prefix))
    if as_json:
        output.print_json(listing)
        return
    addresses = [address(page.file_path, page.collection, page.version) for page in listing.pages]
    width = max(map(len, addresses), default=0)
    for page, shown in zip(listing.pages, addresses, strict=True):
        output.say(f"{shown:<{width}}  {page.total_chars:>7} characters  {page.title}")
    for note in listing.notes or ():
        output.warn(note)
