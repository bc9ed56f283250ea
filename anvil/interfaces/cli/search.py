"""``anvil search``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from anvil.core.pluralize import counted, full_heading
from anvil.core.search import snippets
from anvil.interfaces.cli import options, output
from anvil.models.documents import Hit, SearchResult

if TYPE_CHECKING:
    from anvil.services.search.section_match import Span

SNIPPET = 400
"""Characters of a snippet."""
BLANK_LINES = re.compile(r"(?:[^\S\r\n]*(?:\r\n?|\n))+")


@click.command("search", epilog='Example: anvil search --docs docs "how do I keep the index fresh?"')
@options.common
@click.option("--top-k", "-k", type=click.IntRange(1, 20), default=5, show_default=True, help="Results, 1 to 20.")
@click.option("--filter", "file_filter", metavar="GLOB", help="Only pages whose path matches, such as 'guides/*'.")
@click.option("--mode", type=click.Choice(["hybrid", "semantic", "keyword"]), default="hybrid", show_default=True)
@click.option("--max-chars", default=12_000, show_default=True, help="Budget for the text of all results.")
@options.as_json
@options.question
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
    from anvil.interfaces.cli import page_paths

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        wanted = None if file_filter is None else page_paths.glob(opened, file_filter)
        explained = opened.explain(query, top_k, wanted, max_chars, mode)  # type: ignore[arg-type]
        result = explained.result
        unmatched = None if wanted is None or result.total_chunks else page_paths.unmatched(opened, wanted)
        build = options.build(docs=docs, index=index, config=config, provider=provider)
        root, keep = opened.docs_root, ""
        if result.freshness.refreshed and not opened.origin:
            keep = f" {options.keep(opened.index_path, build, 'To keep that, run: ')}"
    if as_json:
        output.print_json(result)
        return
    for note in [*result.freshness.notes, *([unmatched] if unmatched else [])]:
        output.warn(note)
    if result.freshness.refreshed:
        output.warn(f"{counted(len(result.freshness.refreshed), 'page')} changed since the index was built.{keep}")
    output.say(rendered(result, explained.spans, query, os.path.relpath(root) if root else ""), nl=False)


def rendered(result: SearchResult, spans: Sequence[Span], query: str, folder: str) -> str:
    """The results as lines for people: place, score, breadcrumb, and the passage that matched."""
    if not result.results:
        return f"Nothing found in {counted(result.total_chunks, 'chunk')}.\n"
    wanted = snippets.query_stems(query)
    found = enumerate(zip(result.results, spans, strict=True), 1)
    return "\n".join(_hit(number, hit, span, wanted, folder) for number, (hit, span) in found)


def _hit(number: int, hit: Hit, span: Span, wanted: frozenset[str], folder: str) -> str:
    own = hit.content[span.start : span.end]
    start, end = snippets.best_snippet(own, wanted, SNIPPET)
    if blank := BLANK_LINES.match(own, start, end):
        start = blank.end()  # the line named is the first one shown
    line = span.line + snippets.lines_before(own, start)
    place = f"{os.path.join(folder, hit.metadata.file_path)}:{line}"
    marked = snippets.highlight(own[start:end].strip("\r\n"), wanted, lambda text: output.style(text, "yellow", "bold"))
    lines = [f"   | {text}" for text in marked.splitlines() if text.strip()]
    url = [f"   {hit.metadata.url}"] if hit.metadata.url else []
    head = f"{number}. {output.style(place, 'cyan')}  {hit.score:.3f}"
    return "\n".join([head, f"   {full_heading(hit.title, hit.metadata.heading_path)}", *url, *lines]) + "\n"
