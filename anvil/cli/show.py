"""``anvil show``."""

from __future__ import annotations

import click

from anvil.cli import options, output


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

    path, _, heading = page.partition("#")
    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
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
