"""Documents of a library whose source files no longer exist."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from anvil.errors import NotFound
from anvil.library.values import Deleted, FileError, LibraryDocumentList, Pruned, Vanished

PAGE_SIZE = 1000
"""Documents of one list."""


class DocumentStore(Protocol):
    """The part of a library that pruning uses."""

    def list_documents(self, library: str | None, limit: int, offset: int) -> LibraryDocumentList:
        """Documents by library and source."""

    def delete_document(self, doc_id: str) -> Deleted:
        """Delete a document. Raises :class:`NotFound`."""


def prune(store: DocumentStore, library: str | None, *, delete: bool) -> Pruned:
    """Look for the source file of each document, in one library or in all; with ``delete``, delete the documents whose
    file is gone.

    Only absolute paths of this machine count: text sent by a client, uploads and URLs are left alone. A file in a
    folder that cannot be read is not gone.
    """
    checked, offset = 0, 0
    gone: list[Vanished] = []
    unknown: list[FileError] = []
    while documents := store.list_documents(library, PAGE_SIZE, offset).documents:
        offset += len(documents)
        for document in documents:
            if "://" in document.source or not os.path.isabs(document.source):
                continue
            checked += 1
            exists, error = _exists(document.source)
            if error is not None:
                unknown.append(FileError(document.source, error))
            elif not exists:
                gone.append(Vanished(document.doc_id, document.source, document.library, document.chunk_count))
    if delete:
        gone = [document for document in gone if _delete(store, document)]
    return Pruned("deleted" if delete else "found", checked, tuple(gone), tuple(unknown))


def _exists(source: str) -> tuple[bool, str | None]:
    """Whether a file exists, and why that is not known."""
    try:
        Path(source).stat()
        return True, None
    except (FileNotFoundError, NotADirectoryError):
        return False, None
    except (OSError, ValueError) as error:
        return True, f"It cannot be checked: {getattr(error, 'strerror', None) or error}."


def _delete(store: DocumentStore, document: Vanished) -> bool:
    if _exists(document.source)[0]:  # it came back
        return False
    try:
        store.delete_document(document.doc_id)
    except NotFound:  # another process deleted it first
        return False
    return True
