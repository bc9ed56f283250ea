"""The index for queries when it is in Milvus: the export, and an overlay of the pages that changed since.

Before each query the current generation is read from the server. If there are documents, they are compared with it by
content. Changed pages are read into a small index in memory, and their exported rows are masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.build.indexer import Indexer
from anvil.index_file import connection
from anvil.index_file.writer import SETTINGS, Writer
from anvil.live import site_view
from anvil.live.location import IndexLocation
from anvil.live.working_copy import WorkingCopy
from anvil.milvus import generation_reader as reader
from anvil.milvus import generations
from anvil.milvus.candidates import MilvusIndex
from anvil.milvus.generation_reader import MilvusReader
from anvil.milvus.milvus_client import Client
from anvil.milvus.overlay import LayeredReader, Overlay
from anvil.search.searcher import Searcher
from anvil.settings import index_url
from anvil.values import Changes, Progress, silent

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider


class MilvusCollection(IndexLocation):
    """One collection, and the reader of its current generation, which is kept until there is a newer one."""

    is_file = False

    def __init__(self, source: str, folder: Path) -> None:
        """``folder``: the start of the relative path of a Milvus Lite file."""
        address = index_url.milvus(source)
        super().__init__(folder / address.collection)
        self.client = Client(address, folder)
        self.origin = address.shown
        self._reader: MilvusReader | None = None

    def reader(self) -> MilvusReader:
        """The reader of the current generation. Raises :class:`ArtifactError` when there is none that can be used, and
        :class:`FetchError` when the server cannot be reached."""
        generation = generations.pointed(self.client)
        if self._reader is None or self._reader.generation != generation:
            self._reader = None
            self._reader = reader.opened(self.client)
        return self._reader

    def open(self) -> AbstractContextManager[MilvusReader]:
        return nullcontext(self.reader())

    def compare(self, source: DocumentSource) -> Changes:
        return site_view.compared(self.reader(), source)

    def working_copy(
        self, source: DocumentSource | None, provider: EmbeddingProvider, progress: Progress, *, defer_vectors: bool
    ) -> MilvusWorkingCopy:
        return MilvusWorkingCopy(self, source, provider, progress, defer_vectors=defer_vectors)

    def close(self) -> None:
        self._reader = None
        self.client.close()


class MilvusWorkingCopy(WorkingCopy):
    """One index in Milvus that is updated from ``source``; see :class:`WorkingCopy`."""

    _artifact: MilvusReader | None  # type: ignore[assignment]
    _copy: Overlay | None

    def __init__(
        self,
        remote: MilvusCollection,
        source: DocumentSource | None,
        provider: EmbeddingProvider,
        progress: Progress = silent,
        *,
        defer_vectors: bool = False,
    ) -> None:
        super().__init__(remote.path, source, provider, progress, defer_vectors=defer_vectors)
        self._remote = remote
        self._overlaid: LayeredReader | None = None

    @property
    def where(self) -> str:
        return self._remote.origin or ""

    @property
    def size(self) -> int:
        return 0

    @property
    def made_at(self) -> None:
        """None: a collection has no time of its export."""
        return None

    @property
    def reader(self) -> LayeredReader:  # type: ignore[override]
        assert self._artifact is not None
        if self._overlaid is None:
            pages = self._artifact.pages
            gone = {e.id for path, e in pages.items() if e.blob_id and self._indexed.get(path) != e.blob_id}
            above = self._copy.reader if self._copy is not None else None
            newer_paths = above.identities() if above is not None else {}
            masked = gone | {pages[path].id for path in newer_paths if path in pages}
            self._overlaid = LayeredReader(self._artifact, above, frozenset(masked))
        return self._overlaid

    @property
    def searcher(self) -> Searcher:
        if self._searcher is None:
            self._searcher = Searcher(MilvusIndex(self.reader), self.provider)
        return self._searcher

    def _open(self) -> None:
        artifact = self._remote.reader()
        if artifact is self._artifact:
            return
        self.close()
        self._artifact = artifact
        self._indexed = artifact.blob_ids()
        self.source = self._tree and site_view.view_of(self._tree, artifact)

    def _moved(self, copy: Writer, changes: Changes) -> None:
        touched = set(changes.paths)
        kept = {path: blob for path, blob in self._indexed.items() if path not in touched}
        self._indexed = dict(sorted({**kept, **copy.reader.blob_ids()}.items()))
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

    def artifact_vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Empty: the vectors of changed pages are made here."""
        return {}

    def close(self) -> None:
        super().close()
        self._overlaid = None
