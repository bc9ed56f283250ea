"""Sources of documents: their protocol, and the identities by which their documents are compared with an index.

All sources give the same documents for the same content, so an index that was built from one can be compared with
another: by content, not by time stamps or commit ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from anvil.values import Changes, Document, Scan, Skipped


class DocumentSource(Protocol):
    """A set of documents. Thread-safe."""

    @property
    def name(self) -> str:
        """``working tree``, ``staged tree`` or ``commit 1a2b3c4``."""

    @property
    def root_path(self) -> str:
        """The documents' folder relative to the repository, POSIX; ``.`` for the root, and outside of git."""

    @property
    def problem(self) -> str | None:
        """Why the rules and times of the repository cannot be used; None without a problem."""

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        """Hashed paths of the files that the site leaves out, see :func:`hash_path`; None without a
        site."""

    def commit(self) -> str | None:
        """The commit of the documents (40 hex digits), HEAD for the working tree and the staged tree; None without
        one."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """All documents by blob id, and the files that are skipped.

        ``indexed``: path -> blob id in an index that was built with the same options. Files with these ids are not read
        again.
        """

    def read(self, path: str) -> Document | Skipped:
        """A document, with the id of the bytes that were read; Skipped when it is not a document any more.

        ``last_modified`` is from the last call of that method, else one walk finds it for all documents.
        """

    def text(self, path: str) -> Document | Skipped:
        """A document with its included text and without ``last_modified``, so no history is read."""

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Path -> ISO 8601 UTC time of the last commit that changed it, else of the file.

        ``known``: path -> (blob id, time) in an index that was built at commit ``since``.
        """


class SourceWrapper:
    """A :class:`DocumentSource` that passes to another one what a subclass does not define."""

    name: str
    root_path: str
    problem: str | None
    excluded_hashes: frozenset[str] | None

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def commit(self) -> str | None:
        return self._source.commit()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return self._source.scan(indexed)

    def read(self, path: str) -> Document | Skipped:
        return self._source.read(path)

    def text(self, path: str) -> Document | Skipped:
        return self._source.text(path)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return self._source.last_modified(paths, known, since)


# --- identities of documents --------------------------------------------------------------------------


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
