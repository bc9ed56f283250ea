"""What answers say about themselves: what was compared, what was refreshed, what the index and the program are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import __version__
from anvil.models import Changes, Freshness
from anvil.status import ArtifactStatus, EmbeddingStatus, IndexStatus, ServerStatus, StaleCounts, Status
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.workingcopy import WorkingCopy


NAMED = 20
"""Pages that the status names at most."""


def freshness(copy: WorkingCopy, notes: Sequence[str] = ()) -> Freshness:
    """The note on a search answer."""
    return Freshness(
        "working tree" if copy.source else None,
        (copy.artifact_meta or {}).get("commit"),
        _paths(copy.stale),
        copy.pending,
        tuple(notes),
    )


def status(
    copy: WorkingCopy, docs_root: Path | None, started: float, origin: str | None = None, notes: Sequence[str] = ()
) -> Status:
    """Everything one wants to know when answers look wrong. ``started``: the program's start, by ``time.monotonic``;
    ``origin``: where the index was fetched from, and ``notes`` on that."""
    from anvil import git
    meta, own = copy.reader.meta(), copy.artifact_meta
    counts = copy.reader.counts()
    stale = copy.stale
    index = copy.index
    place = docs_root or index.parent
    artifact = own and ArtifactStatus(
        origin or copy.where, own["digest"], own.get("commit"), own["last_index_timestamp"],
        git.distance(place, own["commit"]) if own.get("commit") else None,
        " ".join([*notes, *_refreshed(copy.beyond_artifact)]) or None,
    )  # fmt: skip
    return Status(
        ServerStatus(__version__, round(time.monotonic() - started, 3), str(docs_root) if docs_root else None),
        IndexStatus(
            counts["documents"], counts["chunks"], meta["last_index_timestamp"], copy.where,
            copy.size,
            artifact or None,
            StaleCounts(len(stale.changed), len(stale.added), len(stale.removed)),
            copy.pending,
        ),
        EmbeddingStatus(meta["embedding_model"], int(meta["embedding_dimensions"]), meta["embedding_provider"]),
        git.status(place),
    )  # fmt: skip


def _paths(changes: Changes) -> tuple[str, ...]:
    return tuple(sorted((*changes.changed, *changes.added, *changes.removed)))


def _refreshed(changes: Changes) -> list[str]:
    """A sentence on the pages that are answered from newer text than the artifact's; none when there are none."""
    if not changes:
        return []
    paths = _paths(changes)
    more = "" if len(paths) <= NAMED else f" and {len(paths) - NAMED:,} more"
    said = counted(len(paths), "page", "are")
    return [f"{said} newer than in this index, and refreshed: {', '.join(paths[:NAMED])}{more}."]
