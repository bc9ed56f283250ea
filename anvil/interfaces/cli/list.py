"""``anvil list``."""

from __future__ import annotations

import click

from anvil.interfaces.cli import options, output


@click.command("list", epilog="Example: anvil list guides")
@options.common
@options.as_json
@click.argument("prefix", required=False)
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    as_json: bool,
    prefix: str | None,
) -> None:
    """List the pages, or those in the folder PREFIX, with their titles and sizes."""
    import anvil
    from anvil.interfaces.cli import page_paths

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        listing = opened.list_pages(None if prefix is None else page_paths.folder(opened, prefix))
    if as_json:
        output.print_json(listing)
        return
    width = max((len(page.file_path) for page in listing.pages), default=0)
    for page in listing.pages:
        output.say(f"{page.file_path:<{width}}  {page.total_chars:>7} characters  {page.title}")
    for note in listing.notes or ():
        output.warn(note)
