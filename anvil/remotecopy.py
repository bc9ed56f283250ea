"""The index that questions are answered from when it lies in Milvus: what was exported, and over it what moved on.

Before each answer it is asked which generation is the one now, and the documents, where there are some, are compared
with it by content. Pages that moved on are read into a small index in memory, and the exported ones masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import addresses, published
from anvil.indexing import Indexer
from anvil.milvus import reading, writing
from anvil.milvus.client import Client
from anvil.milvus.reading import MilvusReader
from anvil.models import Changes, Progress, silent
from anvil.overlaid import Overlaid, Overlay
from anvil.remotesearch import RemoteSearcher
from anvil.store import connection
from anvil.store.writing import SETTINGS, Writer
from anvil.workingcopy import WorkingCopy

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider
    from anvil.sources import DocumentSource


class Remote:
    """One collection, and the reader of its generation now: the same object as long as it is the same generation."""

    def __init__(self, source: str, folder: Path) -> None:
        """``folder``: where it is asked from, and the path of a Milvus Lite file starts."""
        address = addresses.milvus(source)
        self.client = Client(address, folder)
        self.origin = address.shown
        self.path = folder / address.collection
        """Stands for it where a path is wanted; there is no such file."""
        self._reader: MilvusReader | None = None

    def reader(self) -> MilvusReader:
        """Raises :class:`ArtifactError` when there is none that can be used, :class:`FetchError` when it cannot be
        asked."""
        generation = writing.pointed(self.client)
        if self._reader is None or self._reader.generation != generation:
            self._reader = None
            self._reader = reading.opened(self.client)
        return self._reader

    def copy(
        self, source: DocumentSource | None, provider: EmbeddingProvider, progress: Progress, behind: bool
    ) -> RemoteCopy:
        """What answers from it; see :class:`RemoteCopy`."""
        return RemoteCopy(self, source, provider, progress, behind=behind)

    def __enter__(self) -> MilvusReader:
        return self.reader()

    def __exit__(self, *_: object) -> None:
        """The connection stays."""

    def close(self) -> None:
        """Let go of the connection."""
        self._reader = None
        self.client.close()


class RemoteCopy(WorkingCopy):
    """One index in Milvus, kept in line with ``source``; see :class:`WorkingCopy`."""

    _artifact: MilvusReader | None  # type: ignore[assignment]
    _copy: Overlay | None

    def __init__(
        self, remote: Remote, source: DocumentSource | None, provider: EmbeddingProvider,
        progress: Progress = silent, *, behind: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(remote.path, source, provider, progress, behind=behind)
        self._remote = remote
        self._overlaid: Overlaid | None = None

    @property
    def where(self) -> str:
        return self._remote.origin

    @property
    def size(self) -> int:
        return 0

    @property
    def reader(self) -> Overlaid:  # type: ignore[override]
        assert self._artifact is not None
        if self._overlaid is None:
            gone = {e.id for path, e in self._artifact.pages.items() if self._moved_on(path, e.blob_id)}
            above = self._copy.identities() if self._copy is not None else {}
            masked = gone | {self._artifact.pages[path].id for path in above if path in self._artifact.pages}
            self._overlaid = Overlaid(self._artifact, self._copy, frozenset(masked))
        return self._overlaid

    def _moved_on(self, path: str, blob_id: str) -> bool:
        return bool(blob_id) and self._indexed.get(path) != blob_id

    @property
    def searcher(self) -> RemoteSearcher:
        if self._searcher is None:
            self._searcher = RemoteSearcher(self.reader, self.provider)
        assert isinstance(self._searcher, RemoteSearcher)
        return self._searcher

    def _open(self) -> None:
        artifact = self._remote.reader()
        if artifact is self._artifact:
            return
        self.close()
        self._artifact = artifact
        self._indexed = artifact.blob_ids()
        self.source = self._tree and published.beside(self._tree, artifact)

    def _moved(self, copy: Writer, changes: Changes) -> None:
        touched = {*changes.changed, *changes.added, *changes.removed}
        kept = {path: blob for path, blob in self._indexed.items() if path not in touched}
        self._indexed = dict(sorted({**kept, **copy.blob_ids()}.items()))
        self._searcher = self._pending = self._overlaid = None

    def _indexer(self) -> Indexer:
        return Indexer(self._writable(), self.provider, self._cut_as_before(), (), self.progress)

    def _writable(self) -> Overlay:
        assert self._artifact is not None
        if self._copy is None:
            meta = self._artifact.meta()
            copy = Overlay(self._artifact)
            connection.lay_out(copy.connection, int(meta["embedding_dimensions"]))
            copy.set_meta({key: meta[key] for key in (*SETTINGS, "commit") if key in meta})
            copy.seal()
            self._copy = copy
        return self._copy

    def known(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """None: vectors of pages that moved on are made."""
        return {}

    def close(self) -> None:
        super().close()
        self._overlaid = None
