"""Results of a library: ingested and found documents, passages, libraries. API, command and tools return the same
dataclasses, whose fields are a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from anvil.values import OPTIONAL

Outcome = Literal["indexed", "replaced", "skipped"]


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of ingesting a document. ``notes``: warnings, such as for a passage that could not be embedded."""

    status: Outcome
    doc_id: str
    source: str
    library: str
    chunk_count: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileError:
    """A file or folder that could not be read, with the reason."""

    file: str
    error: str


@dataclass(frozen=True, slots=True)
class FolderReport:
    """The result of ingesting a folder or another program's database: counts, and the results and failures by path.

    ``library``: empty if each document has its own. ``left_out``: ending -> number of files with it that were not read,
    because Anvil does not read this type; None if there are none. ``notes``: remarks on what is not in the lists.
    """

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
        statuses = [result.status for result in results]
        indexed, replaced, skipped = map(statuses.count, get_args(Outcome))
        total, failed = len(results) + len(errors), len(errors)
        return cls(folder, library, total, indexed, replaced, skipped, failed, tuple(results), tuple(errors))

    def shortened(self, limit: int) -> FolderReport:
        """The report with at most ``limit`` results and ``limit`` errors. A longer one loses the results of skipped
        files, and then the last ones. Its counts are those of all files."""
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
    """The description of a document before it is converted. ``size`` in bytes, times in ISO 8601 in UTC. ``metadata``
    is plain JSON. ``created_at``: when another program first stored the document; None if it is new."""

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
    """A document of a library. ``content_hash``: SHA-256 of its bytes before conversion, hex."""

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
    """A part of the list of documents, by library and source. ``count``: documents in this part; ``total``: in all."""

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
    """A document whose metadata was changed. ``metadata``: all of it after the change."""

    status: Literal["updated"]
    doc_id: str
    source: str
    library: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Documents whose source files do not exist any more. ``status``: ``found`` if nothing was changed, or ``deleted``.
    ``looked_at``: number of documents whose source is a file. ``kept``: documents that could not be checked, because
    their folder cannot be read."""

    status: Literal["found", "deleted"]
    looked_at: int
    documents: tuple[LibraryDocument, ...]
    kept: tuple[FileError, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document with its text. ``content``: its Markdown as ingested or converted: all of it, or the requested part.
    ``next_offset``: the ``offset`` of the next part; None at the end."""

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
    """Whether the process can read a path, with the size of the file in bytes, or the error."""

    path: str
    readable: bool
    size_bytes: int | None = field(default=None, metadata=OPTIONAL)
    error: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """The process of a library and the formats that it reads, to explain why a file is not found or not read."""

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
