"""Whether an index still says what its documents say: by content, never by time stamps or commit ids alone."""

from __future__ import annotations

from collections.abc import Mapping

from anvil.models import Changes


def identity(blob_id: str, fingerprint: str) -> str:
    """What a build compares: the git blob id of a file's bytes, or of a page that a site generator handed over also
    the fingerprint of all that was handed over, which may change when the file does not."""
    return f"{blob_id}:{fingerprint}" if fingerprint else blob_id


def compare(indexed: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """How ``current`` (path -> blob id, or identity) differs from what was ``indexed``."""
    return Changes(
        changed=tuple(sorted(p for p, blob in current.items() if p in indexed and indexed[p] != blob)),
        added=tuple(sorted(current.keys() - indexed.keys())),
        removed=tuple(sorted(indexed.keys() - current.keys())),
    )
