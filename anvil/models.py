"""The values that travel through Anvil: what a page is made of, and what a question is answered with.

All are frozen and slotted. The lower half mirrors the tool contracts field by field: what the API returns,
the CLI prints as JSON and the server sends is one and the same dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ROOT = "(root)"
"""Breadcrumb of text that stands before any heading."""

SEPARATOR = " > "
"""Joins the headings of a breadcrumb."""

# --- a page, taken apart -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Section:
    """One heading and the text under it, up to the next heading of any level.

    ``start`` and ``end`` are character offsets into the page's text; ``start_line`` and ``end_line`` are
    1-based, inclusive, in the source file (front matter counted). ``heading_path`` is unique in its page.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    title: str
    anchor: str
    start: int
    end: int
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block (paragraph, fence, table, list ...) or a part of one that may be parted from the next.

    Offsets into the page's text. ``atomic`` blocks (fences, tables, HTML) are only cut when one alone is
    over the limit.
    """

    start: int
    end: int
    atomic: bool


@dataclass(frozen=True, slots=True)
class Task:
    """A Markdown check box: its 1-based source line, its text, and the breadcrumb it stands under."""

    line: int
    text: str
    done: bool
    heading_path: str


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A Markdown page taken apart. ``text`` is the source without byte order mark and front matter.

    The spans of ``sections`` cover ``text`` from 0 to its end, in order and without overlap; those of
    ``blocks`` likewise. ``first_line`` is the 1-based source line on which ``text`` begins.
    """

    text: str
    first_line: int
    title: str | None
    metadata: Mapping[str, Any]
    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable piece of a page: a section, a part of a long one, or several short ones together.

    ``heading_path`` is the breadcrumb of its first section, with `` [part 2/3]`` when it is one of several
    parts. Offsets into the page's text; lines 1-based, inclusive, in the source file.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    content: str
    start: int
    end: int
    start_line: int
    end_line: int
    anchor: str


@dataclass(frozen=True, slots=True)
class Window:
    """What the model reads at once: ``content[start:end]`` of a chunk under a header of title and breadcrumb."""

    start: int
    end: int
    text: str


# --- documents and their comparison -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out, and the reason a person can act on."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """What a source holds right now: POSIX path -> git blob id (40 hex digits), sorted by path."""

    entries: Mapping[str, str]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """One source document: decoded text and what is known about it besides.

    ``last_modified`` is ISO 8601 in UTC (``2026-01-31T09:30:00Z``). ``metadata`` is merged over the front matter.
    ``page`` is ``text`` taken apart, where the source did that already, with anchors as on GitHub.
    """

    path: str
    blob_id: str
    text: str
    size: int
    last_modified: str
    title: str | None = None
    url: str | None = None
    nav_path: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page: ParsedPage | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Changes:
    """How a source differs from an index, by content: sorted paths."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __len__(self) -> int:
        return len(self.changed) + len(self.added) + len(self.removed)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model made the vectors of an index; ``dimensions`` 0 when there are none."""

    provider: str
    name: str
    digest: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is published beside an index, for clients to decide without a download.

    ``file`` is the index's name in the same folder, ``sha256`` of its bytes, ``size`` in bytes; ``digest`` is that of
    its text and configuration. ``last_modified`` is the time of its newest page.
    """

    format: int
    file: str
    sha256: str
    size: int
    digest: str
    commit: str | None
    last_modified: str
    anvil_version: str
    model: ModelIdentity
    pages: int
    chunks: int
    vectors: int


Progress = Callable[[str, int, int], None]
"""Told (stage, done, total) now and then while something takes long."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


# --- answers: fields exactly as in the tool contracts ------------------------------------------------

Mode = Literal["hybrid", "semantic", "keyword"]


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """Where a piece of text comes from; see the tool reference for each field."""

    file_path: str
    heading_path: str
    heading_level: int
    last_modified: str
    char_count: int
    start_line: int
    end_line: int
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; ``score`` is a cosine in semantic mode, else within 0..1."""

    content: str
    score: float
    metadata: ChunkMetadata
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Results in descending score, the number of chunks the filter let through, and notes on how it was answered."""

    results: tuple[Hit, ...]
    total_chunks: int
    query_ms: float
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class PageChunk:
    """A chunk within its page."""

    content: str
    heading_path: str
    heading_level: int
    char_count: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page; its chunks' contents joined are its text, character for character."""

    file_path: str
    title: str
    last_modified: str
    total_chars: int
    chunks: tuple[PageChunk, ...]


@dataclass(frozen=True, slots=True)
class SectionText:
    """The text of one heading, with or without its children."""

    content: str
    metadata: ChunkMetadata


@dataclass(frozen=True, slots=True)
class PageSummary:
    """One row of the page list; ``headings`` holds h1 and h2 texts only."""

    file_path: str
    title: str
    headings: tuple[str, ...]
    chunk_count: int
    total_chars: int
    last_modified: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class PageList:
    """Pages sorted by ``file_path``."""

    pages: tuple[PageSummary, ...]
    total_pages: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """What was compared before answering, and what was brought up to date.

    ``checked`` is the tree compared with (``working tree``) or None when there is none; ``commit`` is the one the
    index was built from. ``notes`` are sentences for the reader, such as why semantic search is off.
    """

    checked: str | None
    commit: str | None
    refreshed: tuple[str, ...] = ()
    pending_vectors: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The running program."""

    version: str
    uptime_seconds: float
    docs_root: str | None


@dataclass(frozen=True, slots=True)
class ArtifactStatus:
    """The artifact that is answered from: where it came from, and what it is."""

    origin: str
    digest: str
    commit: str | None
    built_at: str


@dataclass(frozen=True, slots=True)
class StaleCounts:
    """How many pages differed from the index before this call brought it up to date."""

    changed: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index: what it holds and where it lies."""

    total_pages: int
    total_chunks: int
    last_indexed: str
    db_path: str
    db_size_bytes: int
    artifact: ArtifactStatus | None
    stale: StaleCounts
    pending_vectors: int


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """The model; provider ``none`` when there are no vectors."""

    model: str
    dimensions: int
    provider: str


@dataclass(frozen=True, slots=True)
class GitStatus:
    """The repository around the docs: short hashes; ``dirty`` speaks of the docs folder only."""

    head_commit: str | None
    origin_main: str | None
    dirty: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Everything one wants to know when answers look wrong; ``git`` is None outside a repository."""

    server: ServerStatus
    index: IndexStatus
    embedding: EmbeddingStatus
    git: GitStatus | None


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. ``outcome``: ``built``, ``unchanged``; ``reasons`` say why more than the changes was redone."""

    outcome: Literal["built", "unchanged"]
    index_path: str
    digest: str
    pages: int
    chunks: int
    windows: int
    embedded: int
    reused: int
    changes: Changes
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    size_bytes: int = 0
