"""The index that questions are answered from: the artifact while it is fresh, else a copy brought up to date.

Before each answer the documents are compared with it by content. What moved on is read again into a copy of
the artifact in scratch space; the artifact itself is never written by answering.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import freshness
from anvil.config import ChunkingOptions
from anvil.indexing import Indexer
from anvil.models import Changes, Progress, silent
from anvil.searching import Searcher
from anvil.store import checking, connection
from anvil.store.connection import signature
from anvil.store.reading import Reader
from anvil.store.writing import Writer

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider
    from anvil.sources import DocumentSource


class WorkingCopy:
    """One index, kept in line with ``source`` (None: there is no tree to compare with).

    Not thread-safe: the caller holds a lock over :meth:`refresh` and the reading that follows it.
    """

    def __init__(
        self,
        index: Path,
        source: DocumentSource | None,
        provider: EmbeddingProvider,
        progress: Progress = silent,
    ) -> None:
        self.index = index
        self.source = source
        self.provider = provider
        self.progress = progress
        self.stale = Changes()
        self._signature: tuple[int, ...] | None = None
        self._artifact: Reader | None = None
        self._copy: Writer | None = None
        self._indexed: dict[str, str] = {}
        self._searcher: Searcher | None = None

    @property
    def reader(self) -> Reader:
        """What is answered from. :meth:`refresh` comes first."""
        reader = self._copy or self._artifact
        assert reader is not None
        return reader

    @property
    def searcher(self) -> Searcher:
        """Search over :attr:`reader`; its tables in memory stay until the text changes."""
        if self._searcher is None:
            self._searcher = Searcher(self.reader, self.provider)
        return self._searcher

    @property
    def artifact_meta(self) -> dict[str, str]:
        """The manifest of the artifact, whatever the copy says."""
        assert self._artifact is not None
        return self._artifact.meta()

    def refresh(self) -> Changes:
        """Bring what is answered from in line with the documents; how they differed before.

        Raises :class:`ArtifactError` when there is no usable artifact, :class:`SourceError` when the
        documents cannot be reached.
        """
        self._open()
        if self.source is None:
            return Changes()
        entries = self.source.scan(self._indexed).entries
        self.stale = freshness.compare(self._indexed, entries)
        if self.stale:
            self._update(self.source, entries, self.stale)
        return self.stale

    def _open(self) -> None:
        """Open the artifact, again when its file was replaced: a copy of the old one has nothing to add."""
        found = signature(self.index)
        if self._artifact is not None and found == self._signature:
            return
        artifact = checking.open_checked(self.index)
        self.close()
        self._artifact, self._signature = artifact, found
        self._indexed = artifact.blob_ids()

    def _update(self, source: DocumentSource, entries: Mapping[str, str], changes: Changes) -> None:
        assert self._artifact is not None
        if self._copy is None:
            copy = Writer(connection.open_scratch(":memory:"))
            connection.fill(copy.connection, self._artifact.connection)
            self._copy = copy
        matched = self.provider.digest == self._copy.meta()["embedding_model_digest"]
        indexer = Indexer(self._copy, self.provider, self._cut_as_before(), [self._artifact], self.progress)
        indexer.update(source, entries, changes)
        if matched:
            indexer.embed()
        self._copy.seal()
        self._indexed = self._copy.blob_ids()
        self._searcher = None

    def _cut_as_before(self) -> ChunkingOptions:
        """The options the artifact was built with: a copy of it is to be cut alike."""
        assert self._artifact is not None
        options = json.loads(self._artifact.meta()["chunking"])
        return ChunkingOptions(**{key: value for key, value in options.items() if key != "version"})

    def close(self) -> None:
        """Let go of the files."""
        for reader in (self._artifact, self._copy):
            if reader is not None:
                reader.close()
        self._artifact = self._copy = self._searcher = self._signature = None

