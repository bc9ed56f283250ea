"""``anvil show``."""

from __future__ import annotations

import click

from anvil.cli import options, output
from anvil.requests import OpenRequest


@click.command("show", epilog="Example: anvil show guides/serve.md#freshness")
@options.project
@options.in_site
@click.option("--children", is_flag=True, help="With a heading: the sections below it too.")
@options.as_json
@click.argument("page", metavar="PAGE[#HEADING]")
def command(given: OpenRequest, children: bool, as_json: bool, page: str) -> None:
    """Print a page, or one section of it. HEADING is a breadcrumb ('Install > Linux'), its end, or an anchor ('linux').

    PAGE may also be a path with a line, as search prints it: 'docs/guides/serve.md:12' prints the section of line 12.
    With several collections, 'fastapi:tutorial/first.md' is a page of the collection fastapi.
    """
    from anvil.cli import page_paths

    with options.opened(given) as project:
        opened, path, heading, line = page_paths.place_in(project, page)
        if line and not heading:
            heading = page_paths.section(opened, path, line)
        if not heading:
            document = opened.get_page(path)
            text = "".join(chunk.content for chunk in document.chunks)
            if as_json:
                output.print_json(document)
                return
        else:
            section = opened.get_section(path, heading, children)
            text = section.content
            if as_json:
                output.print_json(section)
                return
    output.say(text, nl=not text.endswith("\n"))
