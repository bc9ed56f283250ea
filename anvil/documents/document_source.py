"""The protocol of a source of documents, and sources that are made from another source.

All sources give the same documents for the same content, so an index that was built from one can be compared with
another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from anvil.documents.shards import Shard
from anvil.values import Document, Scan, Skipped


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
        """Hashed paths of the files that the site leaves out, see :func:`anvil.documents.staleness.hash_path`; None
        without a site."""

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
    """A :class:`DocumentSource` that passes each call to another one. Subclasses override some of them."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """See :class:`DocumentSource`, as for all below."""
        return self._source.name

    def text(self, path: str) -> Document | Skipped:
        return self._source.text(path)

    @property
    def root_path(self) -> str:
        return self._source.root_path

    @property
    def problem(self) -> str | None:
        return self._source.problem

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        return self._source.excluded_hashes

    def commit(self) -> str | None:
        return self._source.commit()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return self._source.scan(indexed)

    def read(self, path: str) -> Document | Skipped:
        return self._source.read(path)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return self._source.last_modified(paths, known, since)


class ShardSource(SourceWrapper):
    """The documents of a source that belong to a shard."""

    def __init__(self, source: DocumentSource, shard: Shard) -> None:
        super().__init__(source)
        self._shard = shard

    @property
    def name(self) -> str:
        return f"{self._source.name}, shard {self._shard}"

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        whole = self._source.scan(indexed)
        holds = self._shard.holds
        return Scan(
            {path: blob for path, blob in whole.entries.items() if holds(path)},
            tuple(item for item in whole.skipped if holds(item.path)),
        )
