"""Whether an index still says what its documents say: by content, never by time stamps or commit ids alone."""

from __future__ import annotations

from collections.abc import Mapping

from anvil.models.documents import Changes


def identity(blob_id: str, fingerprint: str) -> str:
    """What a build compares: the git blob id of a file's bytes and, where there is one, the fingerprint of what may
    change when the file does not: all that a site generator handed over, the files that a page includes."""
    return f"{blob_id}:{fingerprint}" if fingerprint else blob_id


def of_file(blob_id: str, fingerprint: str) -> str:
    """The part of an identity that the files alone decide: without what a site generator handed over."""
    return identity(blob_id, included(fingerprint))


def included(fingerprint: str) -> str:
    """The part of a fingerprint that names included files (:func:`anvil.core.markdown.includes.fingerprint`)."""
    at = fingerprint.find("+")
    return fingerprint[at:] if at >= 0 else ""


def parts(identity: str) -> tuple[str, str]:
    """Blob id and fingerprint of an identity."""
    blob_id, _, fingerprint = identity.partition(":")
    return blob_id, fingerprint


def compare(indexed: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """How ``current`` (path -> blob id, or identity) differs from what was ``indexed``."""
    return Changes(
        changed=tuple(sorted(p for p, blob in current.items() if p in indexed and indexed[p] != blob)),
        added=tuple(sorted(current.keys() - indexed.keys())),
        removed=tuple(sorted(indexed.keys() - current.keys())),
    )
