"""``anvil search``."""

from __future__ import annotations

import os
import re
import sys

import click

from anvil import passages
from anvil.cli import options, output
from anvil.models import Hit, SearchResult
from anvil.wording import counted

SNIPPET = 400
"""Characters of a snippet."""
BLANK_LINES = re.compile(r"(?:[^\S\r\n]*(?:\r\n?|\n))+")


@click.command("search", epilog='Example: anvil search --docs docs "how do I keep the index fresh?"')
@options.common
@click.option("--top-k", "-k", default=5, show_default=True, help="Results, 1 to 20.")
@click.option("--filter", "file_filter", metavar="GLOB", help="Only pages whose path matches, such as 'guides/*'.")
@click.option("--mode", type=click.Choice(["hybrid", "semantic", "keyword"]), default="hybrid", show_default=True)
@click.option("--max-chars", default=12_000, show_default=True, help="Budget for the text of all results.")
@options.as_json
@click.argument("query")
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    top_k: int,
    file_filter: str | None,
    mode: str,
    max_chars: int,
    as_json: bool,
    query: str,
) -> None:
    """Search the documents. They are indexed first if they never were."""
    import anvil

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        result = opened.search(query, top_k, file_filter, max_chars, mode)  # type: ignore[arg-type]
        build = options.build(docs=docs, index=index, config=config, provider=provider)
        root, keep = opened.docs_root, "" if opened.origin else f" To keep that, run: {build}"
    if as_json:
        output.print_json(result)
        return
    for note in result.freshness.notes:
        output.warn(note)
    if result.freshness.refreshed:
        output.warn(f"{counted(len(result.freshness.refreshed), 'page')} changed since the index was built.{keep}")
    click.echo(rendered(result, query, os.path.relpath(root) if root else ""), nl=False)


def rendered(result: SearchResult, query: str, folder: str) -> str:
    """The results as lines for people: place, score, breadcrumb, and the passage that matched."""
    if not result.results:
        return f"Nothing found in {counted(result.total_chunks, 'chunk')}.\n"
    wanted = passages.roots(query)
    return "\n".join(_hit(number, hit, wanted, folder) for number, hit in enumerate(result.results, 1))


def _hit(number: int, hit: Hit, wanted: frozenset[str], folder: str) -> str:
    colour = sys.stdout.isatty()
    start, end = passages.passage(hit.content, wanted, SNIPPET)
    if blank := BLANK_LINES.match(hit.content, start, end):
        start = blank.end()  # the line named is the first one shown
    line = hit.metadata.start_line + passages.lines_before(hit.content, start)
    place = f"{os.path.join(folder, hit.metadata.file_path)}:{line}"
    bold = (lambda text: click.style(text, fg="yellow", bold=True)) if colour else (lambda text: f"**{text}**")
    marked = passages.mark(hit.content[start:end].strip("\r\n"), wanted, bold)
    shown = [text for text in marked.splitlines() if text.strip()]
    head = f"{number}. {click.style(place, fg='cyan') if colour else place}  {hit.score:.3f}"
    return "\n".join([head, f"   {hit.metadata.heading_path}", *(f"   | {text}" for text in shown)]) + "\n"
