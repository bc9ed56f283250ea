"""Results of a library. The fields are those of the tool contract; API, CLI and server use the same dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from anvil.values import OPTIONAL

Outcome = Literal["indexed", "replaced", "skipped"]


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of ingesting a document. ``notes``: sentences for the reader, mostly none."""

    status: Outcome
    doc_id: str
    source: str
    library: str
    chunk_count: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileError:
    """A file of a folder that was not ingested, and why."""

    file: str
    error: str


@dataclass(frozen=True, slots=True)
class FolderReport:
    """The result of ingesting a folder, or another program's database: counts, and all results and failures by path.
    ``library``: empty if each document has its own. ``left_out``: the number of files of each type that is not read, by
    its ending; None if there are none. ``notes``: what is not in the lists."""

    folder: str
    library: str
    total_files: int
    indexed: int
    replaced: int
    skipped: int
    failed: int
    results: tuple[Ingested, ...]
    errors: tuple[FileError, ...]
    left_out: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, folder: str, library: str, results: Sequence[Ingested], errors: Sequence[FileError] = ()
    ) -> FolderReport:
        """The report, with the counts."""
        statuses = [result.status for result in results]
        indexed, replaced, skipped = map(statuses.count, get_args(Outcome))
        total, failed = len(results) + len(errors), len(errors)
        return cls(folder, library, total, indexed, replaced, skipped, failed, tuple(results), tuple(errors))

    def shortened(self, limit: int) -> FolderReport:
        """The report with at most ``limit`` results and as many errors, without those of skipped files; as it is if it
        has no more. Its counts are those of all files."""
        if max(len(self.results), len(self.errors)) <= limit:
            return self
        results = [result for result in self.results if result.status != "skipped" or result.notes]
        note = (
            f"Files that are unchanged are not listed, and of the others at most {limit} results and {limit} errors. "
            "list_documents has all documents."
        )
        return replace(self, results=tuple(results[:limit]), errors=self.errors[:limit], notes=(*self.notes, note))


@dataclass(frozen=True, slots=True)
class Passage:
    """A search result. ``page``: page of a paged document, from 1; 0 if unknown. ``content``: the text of the passage;
    if ``truncated``, only the part that matches best. ``score``: relevance in 0..1. ``confidence``: the probability
    that this answers the query, 0..1, independent of the other results."""

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
    confidence: float | None = None
    truncated: bool = field(default=False, metadata={"usual": False})


@dataclass(frozen=True, slots=True)
class Passages:
    """Search results by descending score. ``notes``: remarks on the search; usually empty."""

    results: tuple[Passage, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What is known of a document before it is read. ``metadata`` is plain JSON; times are ISO 8601 in UTC.
    ``created_at``: when another program stored it first; None for a document that is new."""

    source: str
    library: str
    title: str
    file_type: str
    content_hash: str
    size: int
    last_modified: str
    metadata: Mapping[str, Any]
    created_at: str | None = None


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
    """A deleted document. ``deleted_chunks``: number of its passages."""

    status: Literal["deleted"]
    doc_id: str
    deleted_chunks: int


@dataclass(frozen=True, slots=True)
class Updated:
    """A document with changed metadata. ``metadata``: all of it after the change."""

    status: Literal["updated"]
    doc_id: str
    source: str
    library: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Documents whose source files do not exist any more. ``status``: ``found`` (nothing is changed) or ``deleted``.
    ``looked_at``: number of documents whose source is a file. ``kept``: folders that cannot be read, whose documents
    are kept."""

    status: Literal["found", "deleted"]
    looked_at: int
    documents: tuple[LibraryDocument, ...]
    kept: tuple[FileError, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document. ``content``: its whole Markdown, as ingested or converted, or the part of it that was asked for.
    ``next_offset``: the ``offset`` that gives the next part; None at the end."""

    doc_id: str
    source: str
    title: str
    library: str
    content: str
    chunk_count: int
    metadata: Mapping[str, Any]
    next_offset: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class PathCheck:
    """Whether the process can read a path: the size in bytes, or the error."""

    path: str
    readable: bool
    size_bytes: int | None = field(default=None, metadata=OPTIONAL)
    error: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """The process and its limits, to explain why a file is not found or not read."""

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
    path_check: PathCheck | None = field(default=None, metadata=OPTIONAL)
