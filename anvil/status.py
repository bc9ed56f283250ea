"""The status of an index and its server, for diagnosis. The fields are those of the tool contract. How fresh an answer
is, :class:`anvil.results.Freshness` says, with the notes of :class:`anvil.live.live_index.LiveIndex`."""

from __future__ import annotations

from dataclasses import dataclass, field

from anvil.values import OPAQUE, OPTIONAL, SEVERAL


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The running program."""

    version: str
    uptime_seconds: float
    docs_root: str | None


@dataclass(frozen=True, slots=True)
class ArtifactStatus:
    """The index that results come from, and its origin.

    ``built_at``: the time of its file; None if unknown, as in Milvus. ``distance``: number of commits that HEAD has
    after ``commit``; None if unknown. ``note``: how it was fetched, and which pages have newer text than it.
    """

    origin: str
    digest: str
    commit: str | None
    built_at: str | None
    distance: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StaleCounts:
    """Numbers of pages that differed from the index before this call updated it."""

    changed: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index: its content and its file.

    ``last_indexed``: the time of the file; None without one. ``newest_document``: the time of the last change to a
    page.
    """

    total_pages: int
    total_chunks: int
    last_indexed: str | None
    db_path: str
    db_size_bytes: int
    artifact: ArtifactStatus | None
    stale: StaleCounts
    pending_vectors: int
    newest_document: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """The model; provider ``none`` when there are no vectors. ``scripts``: those that it reads, as in ``Latin``;
    questions in others are answered by words alone. None where that is not known."""

    model: str
    dimensions: int
    provider: str
    scripts: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class GitStatus:
    """The repository of the docs: short hashes. ``dirty``: whether the docs folder has changes."""

    head_commit: str | None
    origin_main: str | None
    dirty: bool


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One of several collections.

    ``default``: whether it answers questions that name no version. ``docs_root`` and ``origin``: the folder that it is
    compared with, and the address that it is fetched from. ``note``: how it was fetched, or why it cannot answer; it
    has no numbers then.
    """

    name: str
    version: str | None
    title: str
    default: bool
    docs_root: str | None = None
    origin: str | None = None
    total_pages: int | None = None
    total_chunks: int | None = None
    stale: StaleCounts | None = None
    pending_vectors: int | None = None
    model: str | None = None
    note: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Status:
    """The status of server, index, model and repository. ``git``: None outside a repository. ``collections``: all of
    several; the other fields are then those of the first that can answer."""

    server: ServerStatus = field(metadata=OPAQUE)
    index: IndexStatus = field(metadata=OPAQUE)
    embedding: EmbeddingStatus = field(metadata=OPAQUE)
    git: GitStatus | None = field(metadata=OPAQUE)
    collections: tuple[CollectionStatus, ...] | None = field(default=None, metadata=SEVERAL)
