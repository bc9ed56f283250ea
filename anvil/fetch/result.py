"""The result of fetching an index, and the comparison of an index with its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anvil.errors import ArtifactRejected
from anvil.fetch.builder_identity import Attestation
from anvil.values import Manifest

UNPUBLISHED = "It is published without a manifest, so the download is checked against its own checksums only."


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A verified index on this machine.

    ``path`` is the same for each fetch of a source; its file is replaced by newer ones. ``manifest``: of that file.
    ``origin``: the source without credentials. ``fetched_at`` and ``checked_at`` (ISO 8601, UTC): the time of the
    download, and of the last check with the server; None for a path. ``from_cache``: why the server was not used; None
    if it was. ``commit``: the commit that the index was built from. ``distance``: number of commits that HEAD has after
    it. Both are None if unknown. ``published_at``: the time of the last change, from the server. ``attestation``: who
    built the index, if that was asked for and is proven.
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
    attestation: Attestation | None = None


def agree(published: Manifest, actual: Manifest, shown: str) -> None:
    """Raise :class:`ArtifactRejected` unless the manifest belongs to this index."""
    for key in ("sha256", "size", "format", "digest", "commit"):
        expected, value = getattr(published, key), getattr(actual, key)
        if expected != value:
            raise ArtifactRejected(
                f"{shown} is refused: its manifest has {key} {expected}, but the index has {value}. "
                "Publish index and manifest together, and fetch again."
            )
