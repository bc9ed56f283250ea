"""The documents of an mcpvectordb database into a library, one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from anvil.errors import AnvilError, DocumentRejected
from anvil.formats import iso_time
from anvil.library import lancedb_reader
from anvil.library.changes import utc_now
from anvil.library.ingestion import title_of
from anvil.library.lancedb_reader import LanceDocument
from anvil.library.scratch_index import DocumentInfo
from anvil.library.values import FileError, Imported, Ingested
from anvil.search import metadata_filter
from anvil.values import Progress


def ingest(
    path: str,
    *,
    store: Callable[[bytes, DocumentInfo], Ingested],
    ensure_writable: Callable[[], object],
    table: str,
    library: str | None,
    progress: Progress,
) -> Imported:
    """Store the documents of the LanceDB at ``path`` with their own sources, titles, times and metadata.

    ``store`` stores one text, unless the library has its source: so an interrupted import can be repeated.
    ``ensure_writable`` raises what is wrong with the library, once, and not for each document. ``library``: one library
    for all; by default each document keeps its own. All vectors are computed by the current model. Raises
    :class:`SourceError` for a database that cannot be read, :class:`ConfigError` for a name that is not valid.
    """
    if library is not None:
        metadata_filter.library_name(library)
    metadata_filter.source_name(path, "path")
    documents = lancedb_reader.documents(path, table)
    if documents:
        ensure_writable()
    results: list[Ingested] = []
    errors: list[FileError] = []
    for done, document in enumerate(documents):
        progress("importing", done, len(documents))
        try:
            result = store(*_text_and_info(document, library or document.library))
        except AnvilError as error:
            errors.append(FileError(document.source, str(error)))
            continue
        if document.problem is not None and result.status != "skipped":
            result = replace(result, notes=(*result.notes, document.problem))
        results.append(result)
    progress("importing", len(documents), len(documents))
    indexed = sum(result.status == "indexed" for result in results)
    return Imported(
        path=path,
        total_documents=len(documents),
        indexed=indexed,
        skipped=len(results) - indexed,
        failed=len(errors),
        results=tuple(results),
        errors=tuple(errors),
    )


def _text_and_info(document: LanceDocument, library: str) -> tuple[bytes, DocumentInfo]:
    """The text of a document, and what mcpvectordb knew of it. Raises :class:`ConfigError`, and
    :class:`DocumentRejected` for a document without text."""
    library, metadata = metadata_filter.library_name(library), metadata_filter.checked_metadata(document.metadata)
    source = metadata_filter.source_name(document.source)
    if not document.text.strip():
        raise DocumentRejected("It has no text.")
    data, created_at = document.text.encode("utf-8", "replace"), _time(document.created_at)
    return data, DocumentInfo(
        source=source,
        library=library,
        title=document.title or title_of(source) or source,
        file_type=document.file_type,
        content_hash=hashlib.sha256(data).hexdigest(),
        size=len(data),
        last_modified=_time(document.last_modified) or created_at or utc_now(),
        metadata=metadata,
        created_at=created_at,
    )


def _time(text: str) -> str | None:
    try:
        return iso_time.span(text)[0]
    except ValueError:
        return None
