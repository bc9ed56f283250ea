"""``anvil show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.errors import NotFound

if TYPE_CHECKING:
    from anvil.api import Anvil


@click.command("show", epilog="Example: anvil show guides/serve.md#freshness")
@options.common
@click.option("--children", is_flag=True, help="With a heading: the sections below it too.")
@options.as_json
@click.argument("page", metavar="PAGE[#HEADING]")
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    children: bool,
    as_json: bool,
    page: str,
) -> None:
    """Print a page, or one section of it. HEADING is a breadcrumb ('Install > Linux') or an anchor ('linux')."""
    import anvil

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        path, heading = _parts(opened, page)
        if not heading:
            whole = opened.get_page(path)
            text = "".join(chunk.content for chunk in whole.chunks)
            if as_json:
                output.print_json(whole)
                return
        else:
            section = opened.get_section(path, opened.breadcrumb(path, heading), children)
            text = section.content
            if as_json:
                output.print_json(section)
                return
    click.echo(text, nl=not text.endswith("\n"))


def _parts(opened: Anvil, page: str) -> tuple[str, str]:
    """Page and heading: the longest beginning that is a page. Names of files may hold a ``#``, and so may headings."""
    path, heading = page, ""
    while "#" in path:
        try:
            opened.headings(path)
            return path, heading
        except NotFound:
            path = path.rpartition("#")[0]
            heading = page[len(path) + 1 :]
    return path, heading
