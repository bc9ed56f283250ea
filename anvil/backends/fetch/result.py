"""What fetching gives, and what a manifest must agree with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected
from anvil.models.documents import Manifest

UNPUBLISHED = "It is published without a manifest, so nothing but its own checksums vouches for the download."


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A verified index on this machine.

    ``path`` stays the same for a source, and its file is replaced by newer ones. ``manifest`` tells what is in it.
    ``origin`` is the source without credentials. ``fetched_at`` and ``checked_at`` (ISO 8601, UTC): when its bytes
    came, and when the server last said that they are the newest; None for a path. ``from_cache``: why the server was
    not asked, or could not answer; None when it did. ``commit`` it was built from, and ``distance``, the commits that
    HEAD has beyond it; None when unknown. ``published_at``: when its server says that the file was last changed.
    """

    path: Path
    manifest: Manifest
    origin: str
    commit: str | None
    distance: int | None = None
    fetched_at: str | None = None
    checked_at: str | None = None
    from_cache: str | None = None
    downloaded: bool = False
    notes: tuple[str, ...] = ()
    published_at: str | None = None


def agree(published: Manifest, found: Manifest, shown: str) -> None:
    """Raise unless the manifest speaks of this very index."""
    for key in ("sha256", "size", "format", "digest", "commit"):
        said, true = getattr(published, key), getattr(found, key)
        if said != true:
            raise ArtifactRejected(
                f"{shown} is refused: its manifest says {key} {said}, but the index has {true}. "
                "Publish index and manifest together, and fetch again."
            )
