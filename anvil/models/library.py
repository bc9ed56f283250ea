"""What a library answers with: fields exactly as in the tool contract, so that API, CLI and server say the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["indexed", "replaced", "skipped"]
OPTIONAL = {"optional": True}
"""Marks a field that an answer leaves out where it is None."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a document that was handed in. ``notes`` are sentences for the reader, mostly none."""

    status: Outcome
    doc_id: str
    source: str
    library: str
    chunk_count: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileError:
    """A file of a folder that was not taken in, and why."""

    file: str
    error: str


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What became of the files of a folder: counts, then each result and each failure, sorted by path."""

    folder: str
    library: str
    total_files: int
    indexed: int
    replaced: int
    skipped: int
    failed: int
    results: tuple[Ingested, ...]
    errors: tuple[FileError, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the documents of another program's database: counts, each result and failure, by library and
    source. ``skipped``: a document with that source is in the library already, and stays as it is."""

    path: str
    total_documents: int
    indexed: int
    skipped: int
    failed: int
    results: tuple[Ingested, ...]
    errors: tuple[FileError, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """One search result. ``page``: of a paged document, 1-based; 0 unknown. ``score``: relevance within 0..1."""

    doc_id: str
    source: str
    title: str
    library: str
    file_type: str
    last_modified: str
    page: int
    content: str
    chunk_index: int
    metadata: Mapping[str, Any]
    score: float


@dataclass(frozen=True, slots=True)
class Passages:
    """Results in descending relevance, and sentences on how they were found, mostly none."""

    results: tuple[Passage, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryDocument:
    """A document of a library. ``content_hash``: SHA-256, hex, of its source before conversion."""

    doc_id: str
    source: str
    title: str
    library: str
    content_hash: str
    created_at: str
    metadata: Mapping[str, Any]
    chunk_count: int


@dataclass(frozen=True, slots=True)
class LibraryDocumentList:
    """A page of the list of documents, by library and source. ``count``: documents of this page; ``total``: of all."""

    documents: tuple[LibraryDocument, ...]
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class LibrarySummary:
    """A library and its size."""

    library: str
    document_count: int
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Libraries:
    """All libraries of the file, by name."""

    libraries: tuple[LibrarySummary, ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """A document that is gone, and how many passages with it."""

    status: Literal["deleted"]
    doc_id: str
    deleted_chunks: int


@dataclass(frozen=True, slots=True)
class Updated:
    """A document whose metadata was changed; ``metadata`` is all of it as it is now."""

    status: Literal["updated"]
    doc_id: str
    source: str
    library: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Vanished:
    """A document whose source was a file that is no longer there."""

    doc_id: str
    source: str
    library: str
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Documents whose source files vanished. ``status``: ``found``, nothing is changed, or ``deleted``. ``looked_at``:
    how many documents have a file as their source. ``kept``: folders that cannot be looked into, so that nothing is
    known of the files in them."""

    status: Literal["found", "deleted"]
    looked_at: int
    documents: tuple[Vanished, ...]
    kept: tuple[FileError, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document; ``content`` is the whole of its Markdown, as it was handed in or converted."""

    doc_id: str
    source: str
    title: str
    library: str
    content: str
    chunk_count: int
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PathCheck:
    """Whether the process can read a path: its size in bytes, or the reason why not."""

    path: str
    readable: bool
    size_bytes: int | None = field(default=None, metadata=OPTIONAL)
    error: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """What explains that a file is not found or not read: where the process runs, and what it may read."""

    platform: str
    python_version: str
    cwd: str
    index_path: str
    model_path: str
    transport: str
    note: str
    version: str
    user: str
    formats: tuple[str, ...]
    missing_formats: tuple[str, ...]
    documents: int
    chunks: int
    notes: tuple[str, ...] = field(default=())
    path_check: PathCheck | None = field(default=None, metadata=OPTIONAL)
