"""The documents of an mcpvectordb database into a library, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from anvil.backends import lancedb_reader
from anvil.core import iso_time
from anvil.core.search import metadata_filter
from anvil.errors import AnvilError
from anvil.models.documents import Progress
from anvil.models.library import FileError, Imported, Ingested

_FILE_TYPES = {"url": "html", "unknown": "", "text": "txt"}
"""File endings by the names that mcpvectordb has for types of its own."""


class TextLibrary(Protocol):
    """The part of a library that an import uses."""

    def ensure_writable(self) -> object:
        """Raise what is wrong with the library, once, and not for each document."""

    def ingest_imported(
        self,
        text: str,
        source: str,
        library: str,
        *,
        title: str,
        file_type: str,
        last_modified: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> Ingested:
        """Store the text of one document. Raises :class:`AnvilError`."""


def ingest(target: TextLibrary, path: str, *, table: str, library: str | None, progress: Progress) -> Imported:
    """Store the documents of the LanceDB at ``path`` with their own sources, titles, times and metadata.

    ``library``: one library for all; by default each document keeps its own. A document that the library has already
    is skipped, so an interrupted import can be repeated. All vectors are computed by the current model. Raises
    :class:`SourceError` for a database that cannot be read, :class:`ConfigError` for a name that is not valid.
    """
    if library is not None:
        metadata_filter.library_name(library)
    metadata_filter.source_name(path, "path")
    documents = lancedb_reader.documents(path, table)
    if documents:
        target.ensure_writable()
    results: list[Ingested] = []
    errors: list[FileError] = []
    for done, document in enumerate(documents):
        progress("importing", done, len(documents))
        try:
            result = target.ingest_imported(
                document.text,
                document.source,
                library or document.library,
                title=document.title,
                file_type=_FILE_TYPES.get(document.file_type, document.file_type),
                last_modified=_time(document.last_modified) or _time(document.created_at),
                metadata=document.metadata,
            )
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


def _time(text: str) -> str | None:
    try:
        return iso_time.span(text)[0]
    except ValueError:
        return None
