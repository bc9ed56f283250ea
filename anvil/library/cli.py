"""``anvil library`` and ``anvil ingest``: searching, listing, changing and filling the document library."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.cli.program import SuggestingGroup
from anvil.library.metadata_filter import FIELDS, OPERATORS
from anvil.library.values import FolderReport
from anvil.requests import OpenRequest
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.library.library import Library


_CONDITION = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=|>|<|=)\s*(.*)", re.DOTALL)
_OPERATORS = {sign: name for name, sign in OPERATORS.items()}
MAX_NAMED_TYPES = 5
"""Types of files that a message names."""
within = click.option("--library", metavar="NAME", help="Only this library (default: all).")


_index = click.option("--index", metavar="FILE", help="The library's file (default: in the user's data folder).")
file = options.given(_index, options.config, options.provider)


def _open(given: OpenRequest) -> Library:
    import anvil

    return anvil.open_library(given.index, given.provider, given.config)


@click.group("library", cls=SuggestingGroup, epilog='Example: anvil library search "when is high water?"')
def command() -> None:
    """Search and keep the document library that 'anvil ingest' and agents fill."""


@command.command("search", epilog='Example: anvil library search "high water" --filter "last_modified>=2026-01-01"')
@file
@within
@click.option("--top-k", "-k", default=5, show_default=True, help="Results, 1 to 100.")
@click.option(
    "--filter",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    help="FIELD=VALUE, or with <, <=, >, >=. Repeatable; a result meets all conditions. "
    f"Fields: {', '.join(FIELDS)}, metadata.KEY.",
)
@click.option(
    "--max-chars",
    type=int,
    help="Characters of the text of all results (default, with --json: 1000 for each, and at most 30000).",
)
@options.as_json
@click.argument("query")
def search(
    given: OpenRequest,
    library: str | None,
    top_k: int,
    conditions: tuple[str, ...],
    max_chars: int | None,
    as_json: bool,
    query: str,
) -> None:
    """Find the passages that answer QUERY."""
    from anvil.cli.search import MAX_PASSAGE_CHARS, WHOLE
    from anvil.search import excerpts

    if max_chars is None and not as_json:
        max_chars = WHOLE  # the lines to print are chosen below
    with _open(given) as library_file:
        result = library_file.search(query, top_k, library, filter_of(conditions), max_chars)
    if as_json:
        output.print_json(result)
        return
    for note in result.notes:
        output.warn(note)
    if not result.results:
        output.say("Nothing found.")
    sought = excerpts.sought(query)
    for number, hit in enumerate(result.results, 1):
        page = f", page {hit.page}" if hit.page else ""
        likely = "" if hit.confidence is None else f"  confidence {hit.confidence:.2f}"
        output.say(f"{number}. {hit.source}{page}  {hit.score:.3f}{likely}")
        output.say(f"   {hit.title} ({hit.library}, {hit.doc_id})")
        output.say_lines(excerpts.excerpt(hit.content, sought, MAX_PASSAGE_CHARS).of(hit.content))
        output.say()


@command.command("list", epilog="Example: anvil library list --library papers")
@file
@within
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Documents, 1 to 1000.")
@click.option("--offset", default=0, show_default=True, type=click.IntRange(0), help="Documents to skip.")
@click.option("--libraries", is_flag=True, help="The libraries and their sizes, not the documents.")
@options.as_json
def list_(given: OpenRequest, library: str | None, limit: int, offset: int, libraries: bool, as_json: bool) -> None:
    """List the documents by library and source, or the libraries."""
    with _open(given) as library_file:
        listed: Any = (
            library_file.list_libraries() if libraries else library_file.list_documents(library, limit, offset)
        )
    if as_json:
        output.print_json(listed)
        return
    if libraries:
        for item in listed.libraries:
            documents = counted(item.document_count, "document")
            output.say(f"{item.library}  {documents}, {counted(item.chunk_count, 'passage')}")
        return
    if not listed.documents:
        output.say("No documents. To see where there are some: anvil library list --libraries", err=True)
    for item in listed.documents:
        output.say(f"{item.doc_id}  {item.library}  {item.source}  {item.title}")
    if offset + listed.count < listed.total:
        output.warn(f"{listed.count} of {listed.total} documents. See the next with --offset {offset + limit}.")


@command.command("show", epilog="Example: anvil library show ~/Documents/papers/tides.pdf")
@file
@within
@options.as_json
@click.argument("document")
def show(given: OpenRequest, library: str | None, as_json: bool, document: str) -> None:
    """Print the Markdown of a DOCUMENT, named by its doc_id, its source or its path."""
    with _open(given) as library_file:
        content = library_file.get_document(library_file.doc_id_of(document, library))
    if as_json:
        output.print_json(content)
    else:
        output.say(content.content, nl=not content.content.endswith("\n"))


@command.command("delete", epilog="Example: anvil library delete 4f1c2ab09d3e5f678a90")
@file
@within
@options.as_json
@click.argument("document")
def delete(given: OpenRequest, library: str | None, as_json: bool, document: str) -> None:
    """Delete a DOCUMENT from the library, named by its doc_id, its source or its path. Its file stays on the disk."""
    with _open(given) as library_file:
        deleted = library_file.delete_document(library_file.doc_id_of(document, library))
    if as_json:
        output.print_json(deleted)
    else:
        output.say(f"Deleted {document} ({deleted.doc_id}), {counted(deleted.deleted_chunks, 'passage')}.")


@command.command("update", epilog="Example: anvil library update 4f1c2ab09d3e5f678a90 --set year=2026 --unset draft")
@file
@within
@click.option(
    "--set", "values", metavar="KEY=VALUE", multiple=True, help="Set a key; numbers, true and false are JSON."
)
@click.option("--unset", metavar="KEY", multiple=True, help="Remove a key.")
@options.as_json
@click.argument("document")
def update(
    given: OpenRequest,
    library: str | None,
    values: tuple[str, ...],
    unset: tuple[str, ...],
    as_json: bool,
    document: str,
) -> None:
    """Change the metadata of a DOCUMENT, named by its doc_id, its source or its path. Its text is not read again."""
    changes = {**dict(map(_pair, values)), **dict.fromkeys(unset)}
    if not changes:
        raise click.UsageError("Say what to change with --set KEY=VALUE or --unset KEY.")
    with _open(given) as library_file:
        updated = library_file.update_document(library_file.doc_id_of(document, library), changes)
    if as_json:
        output.print_json(updated)
    else:
        output.say(f"Updated {updated.source}: {json.dumps(updated.metadata, ensure_ascii=False)}")


@command.command("prune", epilog="Example: anvil library prune --library papers --yes")
@file
@within
@click.option("--yes", "-y", is_flag=True, help="Delete them. Without it they are only listed.")
@options.as_json
def prune(given: OpenRequest, library: str | None, yes: bool, as_json: bool) -> int:
    """List the documents whose source file no longer exists. With --yes, delete them from the library.

    Only files on this machine are checked, not URLs, uploads and texts that were ingested under a name. Exit code
    0: done, 1: documents are listed and not deleted, 2: an error.
    """
    with _open(given) as library_file:
        report = library_file.prune(library, delete=yes)
    if as_json:
        output.print_json(report)
    else:
        for document in report.documents:
            output.say(f"{document.doc_id}  {document.library}  {document.source}")
    for failure in report.kept:
        output.warn(f"{failure.file}: {failure.error}")
    if not as_json:
        checked, gone = counted(report.looked_at, "document"), len(report.documents)
        if yes:
            output.say(f"{checked} checked, {gone} deleted.")
        else:
            advice = " Delete them with --yes." if gone else ""
            output.say(f"{checked} checked, {gone} without their source file.{advice}")
    return NO if report.documents and not yes else OK


@command.command("import", epilog="Example: anvil library import ~/.mcpvectordb/lancedb")
@file
@click.option("--library", metavar="NAME", help="One library for all (default: each document's own).")
@click.option("--table", metavar="NAME", default="documents", show_default=True, help="The table in the database.")
@options.as_json
@options.quiet
@click.argument("path")
def import_(given: OpenRequest, library: str | None, table: str, as_json: bool, quiet: bool, path: str) -> int:
    """Import the documents of mcpvectordb from its LanceDB folder PATH. Documents of the library are not replaced.

    Exit code 0: done, 1: a document could not be read and the others were imported, 2: an error.
    """
    with _open(given) as library_file, output.progress(quiet) as progress:
        report = library_file.import_lancedb(path, table, library, progress)
    counts = _counts((report.indexed, "new"), (report.skipped, "there already"), (report.failed, "failed"))
    line = f"{counted(report.total_files, 'document')} of {path}: {counts or 'nothing to import'}."
    return _print_report(report, line, library_file, as_json, quiet)


def filter_of(conditions: tuple[str, ...]) -> dict[str, Any] | None:
    """The search filter for the options ``--filter``; None if there are none. Raises :class:`click.UsageError`."""
    fields: dict[str, Any] = {}
    for condition in conditions:
        parts = _CONDITION.fullmatch(condition)
        if parts is None:
            raise click.UsageError(f"--filter {condition!r} is not a condition. Write FIELD=VALUE, or FIELD>=VALUE.")
        name, sign, text = parts.groups()
        value = _value(text) if name.startswith("metadata.") or name in ("page", "chunk_index") else text
        if name in fields and (sign == "=" or not isinstance(fields[name], dict)):
            raise click.UsageError(f"--filter names {name} twice. Give one value, or a range.")
        if sign == "=":
            fields[name] = value
        else:
            fields.setdefault(name, {})[_OPERATORS[sign]] = value
    return fields or None


def _pair(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise click.UsageError(f"--set {text!r} is not valid. Write KEY=VALUE.")
    return key, _value(value)


def _value(text: str) -> Any:
    """A whole number, true, false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    # up to 18 digits fit into SQLite's integers; "007" and "+1" stay texts
    return int(text) if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text) else text


@click.command("ingest", epilog="Example: anvil ingest ~/Documents --library papers")
@click.argument("folder", required=False, metavar="FOLDER|FILE|URL")
@click.option(
    "--library", metavar="NAME", default="default", show_default=True, help="The library that gets the documents."
)
@click.option("--no-recursive", is_flag=True, help="Leave out subfolders.")
@click.option(
    "--max-concurrency", metavar="N", type=click.IntRange(min=1), default=4, show_default=True, help="Files at once."
)
@click.option("--reembed", is_flag=True, help="Embed all documents of the file again, with the current model.")
@file
@options.as_json
@options.quiet
def ingest_command(
    given: OpenRequest,
    folder: str | None,
    library: str,
    no_recursive: bool,
    max_concurrency: int,
    reembed: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Add the documents of a FOLDER, one FILE, or the page at a URL to the library. Unchanged documents are skipped.

    Exit code 0: done, 1: a file could not be read and the others were added, 2: an error.
    """
    if folder is None and not reembed:
        raise click.UsageError("Name the folder, the file or the URL to take in.")
    with _open(given) as opened:
        if reembed:
            with output.progress(quiet) as progress:
                count = opened.reembed(progress)
            if not quiet:
                output.say(f"Embedded {counted(count, 'passage')} again.", err=as_json)
            if folder is None:
                return OK
        with output.progress(quiet) as progress:
            name = str(folder)
            is_url = re.match(r"https?://", name, re.IGNORECASE)
            if is_url or (os.path.lexists(name) and not os.path.isdir(name)):
                ingested = (opened.ingest_url if is_url else opened.ingest_file)(name, library)
                report = FolderReport.of(ingested.source, ingested.library, [ingested])
            else:
                report = opened.ingest_folder(name, library, None, not no_recursive, max_concurrency, progress)
    if report.left_out:
        types = first_of([f"{count} .{ending}" for ending, count in report.left_out.items()], MAX_NAMED_TYPES)
        output.warn(" ".join([f"Left out, because files of their type are not read: {types}.", *report.notes]))
    return _print_report(report, summary(report), opened, as_json, quiet)


def _print_report(report: FolderReport, line: str, library: Library, as_json: bool, quiet: bool) -> int:
    """Print a report: its failures, the notes on documents, and ``line``, the summary. Returns the exit code."""
    if as_json:
        output.print_json(report)
    for failure in report.errors:
        output.warn(f"{failure.file}: {failure.error}")
    for ingested in report.results:
        for note in ingested.notes:
            output.warn(f"{ingested.source}: {note}")
    if not as_json and not quiet:
        output.say(line)
        output.say(f"The library is {library.path}.")
    return NO if report.failed else OK


def _counts(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def summary(report: FolderReport) -> str:
    if report.results and report.folder == report.results[0].source:
        return f"{report.folder} for library {report.library!r}: {report.results[0].status}."
    if not report.total_files:
        return f"No documents found in {report.folder}."
    added = (report.indexed, "new"), (report.replaced, "replaced")
    counts = _counts(*added, (report.skipped, "unchanged"), (report.failed, "failed"))
    return f"{counted(report.total_files, 'document')} of {report.folder} for library {report.library!r}: {counts}."
