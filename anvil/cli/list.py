"""``anvil list``."""

from __future__ import annotations

import click

from anvil.cli import options, output


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

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        found = opened.list_pages(prefix)
    if as_json:
        output.print_json(found)
        return
    width = max((len(page.file_path) for page in found.pages), default=0)
    for page in found.pages:
        click.echo(f"{page.file_path:<{width}}  {page.total_chars:>7} characters  {page.title}")
