"""The status of an index and its server, for diagnosis; its fields are those of the tool contract.

:class:`anvil.results.Freshness` says how fresh an answer is, with notes of :class:`anvil.live.live_index.LiveIndex`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anvil._version import __version__
from anvil.errors import GitError, SourceError
from anvil.settings.schema import SourceOptions
from anvil.values import OPAQUE, OPTIONAL, SEVERAL
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.live.memory_copy import MemoryCopy
    from anvil.project_indexes import OpenedIndex

MAX_NAMED_PAGES = 20
"""Pages with newer text than the index file that the status names."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The running program."""

    version: str
    uptime_seconds: float
    docs_root: str | None


@dataclass(frozen=True, slots=True)
class ArtifactStatus:
    """The index that results come from, and its origin.

    ``built_at``: the time of its file; None if unknown, as in Milvus. ``distance``: the number of commits between
    ``commit`` and HEAD; None if unknown. ``note``: how the index was fetched, and which pages have newer text.
    """

    origin: str
    digest: str
    commit: str | None
    built_at: str | None
    distance: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StaleCounts:
    """The numbers of pages that differed from the index before this call updated it."""

    changed: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The content of the index, and its file.

    ``last_indexed``: the file's time; None without one. ``newest_document``: the time of the last change to a page.
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
    """The model of the vectors. The provider is ``none`` if there are no vectors."""

    model: str
    dimensions: int
    provider: str


@dataclass(frozen=True, slots=True)
class GitStatus:
    """The repository of the docs, with short hashes. ``dirty``: whether pages of the docs folder differ from HEAD."""

    head_commit: str | None
    origin_main: str | None
    dirty: bool


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One of several collections.

    ``default``: whether it answers questions that name no version. ``docs_root``: the folder with which it is compared.
    ``origin``: its address. ``note``: how it was fetched, or why it cannot answer; it has no numbers then.
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
    """The status of server, index, model and repository.

    ``git``: None outside a repository. ``collections``: all, if there are several; the other fields are then those of
    the first that can answer.
    """

    server: ServerStatus = field(metadata=OPAQUE)
    index: IndexStatus = field(metadata=OPAQUE)
    embedding: EmbeddingStatus = field(metadata=OPAQUE)
    git: GitStatus | None = field(metadata=OPAQUE)
    collections: tuple[CollectionStatus, ...] | None = field(default=None, metadata=SEVERAL)


def of_index(index: OpenedIndex, copy: MemoryCopy) -> Status:
    """The status of one opened index and of the server."""
    from anvil.git import repository

    location, docs_root = index.location, index.docs_root
    meta, artifact_meta = copy.reader.meta(), copy.artifact_meta
    counts, stale = copy.reader.counts(), copy.stale
    repository_path = docs_root or copy.index.parent
    # A file that was fetched has the time of its last use.
    made_at = location.published_at if location.origin else copy.made_at
    artifact = None
    if artifact_meta is not None:
        commit, notes = artifact_meta.get("commit"), location.notes()
        if newer := copy.beyond_artifact:
            pages = f"{counted(len(newer), 'page', 'are')} newer than in this index, and refreshed"
            notes = [*notes, f"{pages}: {first_of(newer.paths, MAX_NAMED_PAGES)}."]
        artifact = ArtifactStatus(
            origin=location.origin or copy.where,
            digest=artifact_meta["digest"],
            commit=commit,
            built_at=made_at,
            distance=repository.distance(repository_path, commit) if commit else None,
            note=" ".join(notes) or None,
        )
    return Status(
        ServerStatus(
            version=__version__,
            uptime_seconds=round(time.monotonic() - index.started_at, 3),
            docs_root=str(docs_root) if docs_root else None,
        ),
        IndexStatus(
            total_pages=counts["documents"],
            total_chunks=counts["chunks"],
            last_indexed=made_at,
            db_path=copy.where,
            db_size_bytes=copy.size,
            artifact=artifact,
            stale=StaleCounts(len(stale.changed), len(stale.added), len(stale.removed)),
            pending_vectors=copy.pending,
            newest_document=meta["last_index_timestamp"] or None,
        ),
        EmbeddingStatus(meta["embedding_model"], int(meta["embedding_dimensions"]), meta["embedding_provider"]),
        of_repository(repository_path, index.tree if docs_root is not None else None, index.config.source),
    )


def of_collection(index: OpenedIndex, status: Status | None, reason: str | None, is_default: bool) -> CollectionStatus:
    """One of several collections. ``status``: None if it cannot answer, for this ``reason``."""
    collection = index.collection
    assert collection is not None
    common = CollectionStatus(collection.name, collection.version, collection.title or collection.name, is_default)
    if status is None:
        return replace(common, note=reason)
    artifact, is_fetched = status.index.artifact, collection.docs is None
    return replace(
        common,
        docs_root=status.server.docs_root,
        origin=artifact.origin if artifact and is_fetched else None,
        total_pages=status.index.total_pages,
        total_chunks=status.index.total_chunks,
        stale=status.index.stale,
        pending_vectors=status.index.pending_vectors,
        model=status.embedding.model if status.embedding.provider != "none" else None,
        note=artifact.note if artifact else None,
    )


def of_repository(
    path: Path, pages: DocumentSource | None = None, options: SourceOptions = SourceOptions()
) -> GitStatus | None:
    """The status of the repository of a folder; None outside a repository, or if it cannot be read.

    ``pages``: of the folder, by ``options``; None if there are none to compare.
    """
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(path)
        if repository is None:
            return None
        head, remote = repository.head(), repository.default_branch()
        return GitStatus(
            head_commit=repository.short(head) if head else None,
            origin_main=repository.short(remote) if remote else None,
            dirty=pages is not None and _differ(pages, path, head, options),
        )
    except (GitError, SourceError):
        return None  # the status never fails; builds and checks report the error


def _differ(pages: DocumentSource, folder: Path, head: str | None, options: SourceOptions) -> bool:
    """Whether pages of the work tree differ from the commit ``head``. No file is read that a query has not read."""
    from anvil.documents import document_source
    from anvil.documents.git_tree import CommitTree

    entries = pages.scan().entries
    if head is None:
        return bool(entries)
    if pages.commit() is None:  # git ignores the folder as a whole
        return False
    try:
        committed = CommitTree(folder, head, options).scan(entries).entries
    except SourceError:  # the commit has no such folder
        committed = {}
    return bool(document_source.compare(committed, entries))
