"""``anvil search``, its output, and ``anvil docs``, which searches Anvil's own documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from anvil import queries
from anvil.cli import options, output, pages
from anvil.cli.output import NO, OK
from anvil.errors import BuildError
from anvil.formats.characters import plain_name
from anvil.requests import MODES, TOP_K, OpenRequest, SearchRequest
from anvil.search import excerpts, highlighting
from anvil.values import Progress, at_line, labelled
from anvil.wording import counted, full_heading

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.results import Hit, SearchResult
    from anvil.search.excerpts import Sought
    from anvil.search.result_texts import SectionSpan

MAX_PASSAGE_CHARS = 400
"""Characters of a result's text that are printed, which are five lines of a terminal with 80 columns."""
WHOLE = 10**9
"""A budget in characters that is larger than any text, so that no text is cut."""
BLANK_LINES = re.compile(r"(?:[^\S\r\n]*(?:\r\n?|\n))+")


@click.command("search", epilog='Example: anvil search --docs docs "how do I keep the index fresh?"')
@options.project
@options.in_site
@options.top_k(TOP_K)
@click.option(
    "--filter",
    "file_filter",
    metavar="GLOB",
    help="Only pages in this folder, or whose path matches this glob, such as 'guides/*'.",
)
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True)
@click.option(
    "--max-chars",
    type=int,
    help="Characters of the text of all results (default, with --json: 1300, and more with --top-k).",
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    help="Omit results with a lower confidence, 0 to 1; the exit code is 1 if none is left.",
)
@click.option("--version", metavar="TEXT", help="Only pages of this version, such as 1.2.")
@click.option("--language", metavar="CODE", help="Only pages of a site in this language, such as de.")
@options.as_json
@options.question
@options.collected(SearchRequest, "search")
def command(given: OpenRequest, search: SearchRequest, as_json: bool) -> int:
    """Search the documents. If there is no index, it is built too; in a large folder the answer comes first."""
    with options.opened(replace(given, build_first=False)) as opened:
        if search.file_filter is not None:
            search = replace(search, file_filter=pages.glob(opened, search.file_filter))
        if search.language is not None and opened.is_several:
            raise click.UsageError("--language is for one index. Name it with --site, --docs or --index.")
        if search.max_chars is None and not as_json:
            search = replace(search, max_chars=WHOLE)  # _hit() chooses the lines to print
        explained = queries.answer(opened, search)
        result = explained.result
        build = options.build_command(given)
        advice = ""
        if opened.is_several:
            advice = f" To update the index, run: {build}"
        elif result.freshness.difference and not opened.origin:
            advice = f" {options.update_advice(opened.index_path, build, 'To update the index, run: ')}"
        folders = pages.folders(opened)
        provisional, caches = opened.provisional, opened.config.embedding.cache
        # notes that are in opened.refused are printed when it is closed
        notes = [note for note in result.freshness.notes if note not in opened.refused]
    if as_json:
        output.print_json(result)
    else:
        _print(result, notes, explained.spans, search, folders, advice)
    if provisional and given.provider != "none":
        from anvil.build.report import BuildReport

        kept = " What is embedded by then is kept." if caches else ""
        output.warn(f"Building the index for the next search. Ctrl-C stops that.{kept}")
        with output.progress() as progress:
            try:
                for _, report in options.for_each_own(lambda own: own.index(), given, progress):
                    for reason in report.reasons if isinstance(report, BuildReport) else ():
                        output.warn(reason)
            except BuildError as error:  # a warning only, since the question is answered
                output.warn(str(error))
    return NO if search.min_confidence is not None and not result.results else OK


def _print(
    result: SearchResult,
    notes: Sequence[str],
    spans: Sequence[SectionSpan],
    search: SearchRequest,
    folders: Mapping[str | None, str],
    advice: str,
) -> None:
    """Print the result of a search for people. ``advice``: how to update an index that differs from the documents."""
    for note in notes:
        output.warn(note)
    if difference := result.freshness.difference:
        output.warn(f"{difference}{advice}")
    if not result.total_chunks and search.filters_pages:  # a note says that no page fits the filter
        return
    output.say(rendered(result, spans, search.query, folders), nl=False)


def rendered(result: SearchResult, spans: Sequence[SectionSpan], query: str, folders: Mapping[str | None, str]) -> str:
    """The results as text, each with path and line, score, confidence, breadcrumb, and the passage that matches best.
    ``folders``: see :func:`anvil.cli.pages.folders`."""
    if not result.results:
        empty = "" if result.total_chunks else output.in_commands(" No page is indexed: 'anvil doctor' says why.")
        return f"Nothing found in {counted(result.total_chunks, 'chunk')}.{empty}\n"
    sought = excerpts.sought(query)
    hits = enumerate(zip(result.results, spans, strict=True), 1)
    return "\n".join(_hit(number, hit, span, sought, folders) for number, (hit, span) in hits)


def _hit(number: int, hit: Hit, span: SectionSpan, sought: Sought, folders: Mapping[str | None, str]) -> str:
    section = hit.content[span.start : span.end]
    part = excerpts.excerpt(section, sought, MAX_PASSAGE_CHARS)
    blank = BLANK_LINES.match(section, part.start, part.end)
    start = blank.end() if blank else part.start  # the printed line number is that of the first line shown
    page = pages.shown(folders, hit.metadata.file_path, hit.collection, hit.version)
    location = at_line(page, span.line_at(section, start))
    marked = highlighting.highlight(part.of(section), sought.stems, lambda word: output.style(word, "yellow", "bold"))
    lines = [f"   | {text}" for text in marked.splitlines() if text.strip()]
    url = [f"   {plain_name(hit.metadata.url)}"] if hit.metadata.url else []
    confidence = "" if hit.confidence is None else f"  confidence {hit.confidence:.2f}"
    collection = f"  {labelled(hit.collection, hit.version)}" if hit.collection else ""
    head = f"{number}. {output.style(location, 'cyan')}  {hit.score:.3f}{confidence}{collection}"
    return "\n".join([head, f"   {full_heading(hit.title, hit.metadata.heading_path)}", *url, *lines]) + "\n"


@click.command("docs", epilog='Example: anvil docs "how do I keep the index fresh?"')
@options.top_k(3)
@options.as_json
@options.question
def docs_command(top_k: int, as_json: bool, query: str) -> None:
    """Ask Anvil's own documentation, offline. Without a release's index the first question builds one."""
    with output.progress() as progress, _own_documentation(progress) as opened:
        explained = opened.explain(query, top_k)
        root = str(opened.docs_root) if opened.docs_root is not None else ""
    if as_json:
        output.print_json(explained.result)
        return
    for note in explained.result.freshness.notes:
        output.warn(note)
    output.say(rendered(explained.result, explained.spans, query, {None: output.relative(root) if root else ""}))


def _own_documentation(progress: Progress) -> Anvil:
    """The open index of a released package. Without it, one of the pages is built and kept in the user's cache."""
    import anvil
    from anvil.errors import ArtifactMissing
    from anvil.settings.schema import Config
    from anvil.system import installation, safe_files

    if installation.OWN_INDEX.is_file():
        return anvil.open(index=installation.OWN_INDEX, config=Config(), progress=progress)
    docs = next((folder for folder in installation.OWN_DOCS if (folder / "index.md").is_file()), None)
    if docs is None:
        raise ArtifactMissing(
            "This installation does not carry its documentation, which is damage: a package and a checkout have it. "
            f"Install it again: {installation.line(installation.reinstall(installation.DISTRIBUTION))}"
        )
    index = safe_files.user_cache() / "own-docs" / "index.db"
    with suppress(OSError):  # such as for a read-only file system; then index() fails below
        safe_files.make_folder(index.parent)
    opened = anvil.open(docs, index, config=Config(), progress=progress)
    with suppress(BuildError):  # then the answer comes from the pages, and has a note
        opened.index()  # replaces one that is damaged or of another format, too
    return opened
