"""Everything one wants to know of an index and its server when answers look wrong; fields as in the tool contract."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The running program."""

    version: str
    uptime_seconds: float
    docs_root: str | None


@dataclass(frozen=True, slots=True)
class ArtifactStatus:
    """The artifact that is answered from: where it came from, and what it is.

    ``built_at``: when its file was made, by the file's own time; None when that is not known, as of one in Milvus.
    ``distance``: the commits that HEAD has beyond ``commit``, None when unknown. ``note``: sentences on how it was
    fetched, and which pages are answered from newer text than it holds.
    """

    origin: str
    digest: str
    commit: str | None
    built_at: str | None
    distance: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StaleCounts:
    """How many pages differed from the index before this call brought it up to date."""

    changed: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index: what it holds and where it lies.

    ``last_indexed``: when the file was made; None while there is none. ``newest_document``: the time of the last change
    to any page that it holds.
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
