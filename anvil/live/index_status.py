"""The freshness of an answer, and the status of index, model, repository and server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anvil._version import __version__
from anvil.embedding import writing_systems
from anvil.errors import AnvilError
from anvil.values import Changes
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.live.location import IndexLocation
    from anvil.live.working_copy import WorkingCopy
    from anvil.results import Freshness
    from anvil.status import Status


MAX_NAMED_PAGES = 20


def freshness(copy: WorkingCopy, notes: Sequence[str] = ()) -> Freshness:
    """The note on a search answer."""
    from anvil.results import WORKING_TREE, Freshness

    return Freshness(
        WORKING_TREE if copy.source else None,
        (copy.artifact_meta or {}).get("commit"),
        _paths(copy.stale),
        copy.pending,
        tuple(notes),
    )


def status(copy: WorkingCopy, location: IndexLocation, docs_root: Path | None, started_at: float) -> Status:
    """The server, the index, the embedding and the repository. ``started_at``: when the server began (monotonic)."""
    from anvil.git import repository
    from anvil.status import ArtifactStatus, EmbeddingStatus, IndexStatus, ServerStatus, StaleCounts, Status

    meta, artifact_meta = copy.reader.meta(), copy.artifact_meta
    counts, stale = copy.reader.counts(), copy.stale
    place = docs_root or copy.index.parent
    made_at = location.published_at if location.origin else copy.made_at  # a cached file has the time of its last use
    artifact = None
    if artifact_meta is not None:
        commit = artifact_meta.get("commit")
        artifact = ArtifactStatus(
            origin=location.origin or copy.where,
            digest=artifact_meta["digest"],
            commit=commit,
            built_at=made_at,
            distance=repository.distance(place, commit) if commit else None,
            note=" ".join([*location.notes(), *_refreshed_note(copy.beyond_artifact)]) or None,
        )
    return Status(
        ServerStatus(
            version=__version__,
            uptime_seconds=round(time.monotonic() - started_at, 3),
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
        EmbeddingStatus(
            meta["embedding_model"],
            int(meta["embedding_dimensions"]),
            meta["embedding_provider"],
            _scripts(meta, copy.provider),
        ),
        repository.status(place),
    )


def _scripts(meta: Mapping[str, str], provider: EmbeddingProvider) -> str | None:
    """The scripts that the index's model reads; the configured provider can tell if its model is the same."""
    try:
        known = provider.scripts if provider.digest == meta["embedding_model_digest"] else None
    except AnvilError:  # a model that cannot be read is what "anvil doctor" is for
        return None
    return None if known is None else writing_systems.names(known)


def _paths(changes: Changes) -> tuple[str, ...]:
    return tuple(sorted((*changes.changed, *changes.added, *changes.removed)))


def _refreshed_note(changes: Changes) -> list[str]:
    """A sentence that names the pages whose text is newer than the artifact; none when there are none."""
    if not changes:
        return []
    paths = _paths(changes)
    count = counted(len(paths), "page", "are")
    return [f"{count} newer than in this index, and refreshed: {first_of(paths, MAX_NAMED_PAGES)}."]
