"""Staleness: whether the documents differ from the index, by content and not by time stamps or commit ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from anvil.values import Changes


def identity(blob_id: str, fingerprint: str) -> str:
    """The value that a build compares: the git blob id of a file and, if there is one, a fingerprint.

    A fingerprint covers what can change when the file does not: values from a site generator, and included files.
    """
    return f"{blob_id}:{fingerprint}" if fingerprint else blob_id


def of_file(blob_id: str, fingerprint: str) -> str:
    """The part of an identity that depends on files only, without the values from a site generator."""
    return identity(blob_id, included(fingerprint))


def included(fingerprint: str) -> str:
    """The part of a fingerprint that names included files (:func:`anvil.text.includes.fingerprint`)."""
    at = fingerprint.find("+")
    return fingerprint[at:] if at >= 0 else ""


def parts(identity: str) -> tuple[str, str]:
    """Blob id and fingerprint of an identity."""
    blob_id, _, fingerprint = identity.partition(":")
    return blob_id, fingerprint


def compare(indexed: Mapping[str, str], current: Mapping[str, str]) -> Changes:
    """The changes from ``indexed`` to ``current``, both path -> blob id or identity."""
    return Changes(
        changed=tuple(sorted(p for p, blob in current.items() if p in indexed and indexed[p] != blob)),
        added=tuple(sorted(current.keys() - indexed.keys())),
        removed=tuple(sorted(indexed.keys() - current.keys())),
    )


def hash_path(path: str) -> str:
    """The hash of a path. An index stores it for a file that the site leaves out, so the name is not published."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:20]
