"""``anvil library``: what is in the document library, for people and scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anvil.core.pluralize import counted
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK

if TYPE_CHECKING:
    from anvil.services.library.library import Library

F = TypeVar("F", bound=Callable[..., Any])
_CONDITION = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=|>|<|=)\s*(.*)", re.DOTALL)
_OPERATORS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}

within = click.option("--library", metavar="NAME", help="Only this library (default: all).")


def file(function: F) -> F:
    """The options that say which library file, and how."""
    index = click.option("--index", metavar="FILE", help="The library's file (default: in the user's data folder).")
    return index(options.config(options.provider(function)))


def opened(index: str | None, config: str | None, provider: str | None) -> Library:
    """The library that the options name."""
    import anvil
    from anvil.services.library.library import COMMAND_LINE

    return anvil.open_library(index, provider, config, transport=COMMAND_LINE)


@click.group("library", epilog='Example: anvil library search "when is high water?"')
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
    help="FIELD=VALUE, or with <, <=, >, >=; several must all hold. Fields: file_type, page, chunk_index, "
    "last_modified, created_at, source, title, library, doc_id, metadata.KEY.",
)
@options.as_json
@click.argument("query")
def search(
    index: str | None,
    config: str | None,
    provider: str | None,
    library: str | None,
    top_k: int,
    conditions: tuple[str, ...],
    as_json: bool,
    query: str,
) -> None:
    """Find the passages that answer QUERY."""
    from anvil.core.search import snippets
    from anvil.interfaces.cli.search import SNIPPET

    with opened(index, config, provider) as held:
        found = held.search(query, top_k, library, filter_of(conditions))
    if as_json:
        output.print_json(found)
        return
    for note in found.notes:
        output.warn(note)
    if not found.results:
        output.say("Nothing found.")
    wanted = snippets.query_stems(query)
    for number, each in enumerate(found.results, 1):
        page = f", page {each.page}" if each.page else ""
        start, end = snippets.best_snippet(each.content, wanted, SNIPPET)
        output.say(f"{number}. {each.source}{page}  {each.score:.3f}\n   {each.title} ({each.library}, {each.doc_id})")
        for text in each.content[start:end].splitlines():
            if text.strip():
                output.say(f"   | {text}")


@command.command("list", epilog="Example: anvil library list --library papers")
@file
@within
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Documents, 1 to 1000.")
@click.option("--offset", default=0, show_default=True, type=click.IntRange(0), help="Documents to step over.")
@click.option("--libraries", is_flag=True, help="The libraries and their sizes, not the documents.")
@options.as_json
def list_(
    index: str | None,
    config: str | None,
    provider: str | None,
    library: str | None,
    limit: int,
    offset: int,
    libraries: bool,
    as_json: bool,
) -> None:
    """List the documents by library and source, or the libraries."""
    with opened(index, config, provider) as held:
        found: Any = held.list_libraries() if libraries else held.list_documents(library, limit, offset)
    if as_json:
        output.print_json(found)
        return
    if libraries:
        for each in found.libraries:
            documents = counted(each.document_count, "document")
            output.say(f"{each.library}  {documents}, {counted(each.chunk_count, 'passage')}")
        return
    for each in found.documents:
        output.say(f"{each.doc_id}  {each.library}  {each.source}  {each.title}")
    if offset + found.count < found.total:
        output.warn(f"{found.count} of {found.total} documents. See the next with --offset {offset + limit}.")


@command.command("show", epilog="Example: anvil library show ~/Documents/papers/tides.pdf")
@file
@within
@options.as_json
@click.argument("document")
def show(
    index: str | None, config: str | None, provider: str | None, library: str | None, as_json: bool, document: str
) -> None:
    """Print a DOCUMENT's whole Markdown. DOCUMENT is its doc_id, its source or its path."""
    with opened(index, config, provider) as held:
        found = held.get_document(held.doc_id_of(document, library))
    if as_json:
        output.print_json(found)
    else:
        output.say(found.content, nl=not found.content.endswith("\n"))


@command.command("delete", epilog="Example: anvil library delete 4f1c2ab09d3e5f678a90")
@file
@within
@options.as_json
@click.argument("document")
def delete(
    index: str | None, config: str | None, provider: str | None, library: str | None, as_json: bool, document: str
) -> None:
    """Take a DOCUMENT out, by its doc_id, its source or its path. A file on the disk stays."""
    with opened(index, config, provider) as held:
        found = held.delete_document(held.doc_id_of(document, library))
    if as_json:
        output.print_json(found)
    else:
        output.say(f"Deleted {document} ({found.doc_id}), {counted(found.deleted_chunks, 'passage')}.")


@command.command("update", epilog="Example: anvil library update 4f1c2ab09d3e5f678a90 --set year=2026 --unset draft")
@file
@within
@click.option("--set", "given", metavar="KEY=VALUE", multiple=True, help="Set a key; numbers, true and false are JSON.")
@click.option("--unset", metavar="KEY", multiple=True, help="Take a key away.")
@click.option("--metadata", metavar="JSON", help="Several keys at once, as a JSON object; null takes one away.")
@options.as_json
@click.argument("document")
def update(
    index: str | None,
    config: str | None,
    provider: str | None,
    library: str | None,
    given: tuple[str, ...],
    unset: tuple[str, ...],
    metadata: str | None,
    as_json: bool,
    document: str,
) -> None:
    """Change the metadata of a DOCUMENT, named by its doc_id, its source or its path; its text is not read again."""
    changes = {**_object(metadata), **dict(map(_pair, given)), **dict.fromkeys(unset)}
    if not changes:
        raise click.UsageError("Say what to change with --set KEY=VALUE, --unset KEY or --metadata JSON.")
    with opened(index, config, provider) as held:
        found = held.update_document(held.doc_id_of(document, library), changes)
    if as_json:
        output.print_json(found)
    else:
        output.say(f"Updated {found.source}: {json.dumps(found.metadata, ensure_ascii=False)}")


@command.command("prune", epilog="Example: anvil library prune --library papers --yes")
@file
@within
@click.option("--yes", "-y", is_flag=True, help="Take them out; without it they are only shown.")
@options.as_json
def prune(
    index: str | None, config: str | None, provider: str | None, library: str | None, yes: bool, as_json: bool
) -> int:
    """Show the documents whose source file is gone, and with --yes take them out.

    Only files of this machine are looked at, no URLs, uploads or text that was handed in under a name. Exits with 1
    when documents are shown and not taken out.
    """
    with opened(index, config, provider) as held:
        found = held.prune(library, delete=yes)
    if as_json:
        output.print_json(found)
    else:
        for document in found.documents:
            output.say(f"{document.doc_id}  {document.library}  {document.source}")
    for each in found.kept:
        output.warn(f"{each.file}: {each.error}")
    if not as_json:
        looked, gone = counted(found.looked_at, "document"), len(found.documents)
        if yes:
            output.say(f"{looked} of a file looked at, {gone} deleted.")
        else:
            more = " Take out what is gone with --yes." if gone else ""
            output.say(f"{looked} of a file looked at, {gone} of them without it now.{more}")
    return NO if found.documents and not yes else OK


@command.command("import", epilog="Example: anvil library import ~/.mcpvectordb/lancedb")
@file
@click.option("--library", metavar="NAME", help="One library for all (default: those that they were in).")
@click.option("--table", metavar="NAME", default="documents", show_default=True, help="The table of the database.")
@options.as_json
@options.quiet
@click.argument("path")
def import_(
    index: str | None,
    config: str | None,
    provider: str | None,
    library: str | None,
    table: str,
    as_json: bool,
    quiet: bool,
    path: str,
) -> int:
    """Take in the documents of mcpvectordb's LanceDB in the folder PATH. What is in the library already stays.

    Exits with 1 when a document could not be taken in; the others are.
    """
    with opened(index, config, provider) as held, output.progress(quiet) as progress:
        found = held.import_lancedb(path, table, library, progress)
        where = held.path
    if as_json:
        output.print_json(found)
    for error in found.errors:
        output.warn(f"{error.file}: {error.error}")
    for taken in found.results:
        for note in taken.notes:
            output.warn(f"{taken.source}: {note}")
    if not as_json and not quiet:
        counts = ((found.indexed, "new"), (found.skipped, "there already"), (found.failed, "failed"))
        told = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing to take in"
        output.say(f"{counted(found.total_documents, 'document')} of {path}: {told}.")
        output.say(f"The library is {where}.")
    return NO if found.failed else OK


def filter_of(conditions: tuple[str, ...]) -> dict[str, Any] | None:
    """The filter that conditions on the command line mean."""
    found: dict[str, Any] = {}
    for condition in conditions:
        parts = _CONDITION.fullmatch(condition)
        if parts is None:
            raise click.UsageError(f"--filter {condition!r} is no condition. Write FIELD=VALUE, or FIELD>=VALUE.")
        name, sign, text = parts.groups()
        value = _value(text) if name.startswith("metadata.") or name in ("page", "chunk_index") else text
        if sign == "=":
            if name in found:
                raise click.UsageError(f"--filter names {name} twice. Give one value, or a range.")
            found[name] = value
        else:
            bounds = found.setdefault(name, {})
            if not isinstance(bounds, dict):
                raise click.UsageError(f"--filter names {name} twice. Give one value, or a range.")
            bounds[_OPERATORS[sign]] = value
    return found or None


def _pair(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise click.UsageError(f"--set {text!r} is no KEY=VALUE.")
    return key, _value(value)


def _value(text: str) -> Any:
    """A whole number, true or false where the text is one, else the text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text) else text


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise click.UsageError("--metadata must be a JSON object.")
    return found
