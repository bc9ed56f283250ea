"""Freshness of an index: its comparison with the documents, and the copy in memory into which changed pages are read.

The documents are compared by content before each query. While the index file (the artifact) is up to date, it answers
itself; else a copy in memory is updated and answers. A query does not write the artifact. If there is no artifact yet,
the copy begins empty.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from anvil.build.row_updates import Indexer, StoredVectors, without_too_large
from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing
from anvil.formats.data_formats import timestamp
from anvil.index_file import connection, writer
from anvil.index_file.manifests import recalled_chunking, settings
from anvil.index_file.reader import WITHOUT_VECTORS, Reader, signature
from anvil.index_file.table_rows import ChunkText
from anvil.index_file.writer import Writer
from anvil.live import site_view
from anvil.requests import SearchRequest
from anvil.settings.schema import Chunking
from anvil.values import RETRY_S, Changes, Progress, Window, silent

if TYPE_CHECKING:
    from anvil.results import Freshness
    from anvil.search.candidates import LinkCache
    from anvil.search.searcher import Searcher


class ChunkVectors(NamedTuple):
    """A chunk, its windows, and their vectors as an index stores them; None where one could not be made."""

    chunk: ChunkText
    windows: Sequence[Window]
    vectors: Sequence[bytes | None]


class Location(Protocol):
    """The part of :class:`anvil.project_indexes.IndexLocation` that is used here."""

    path: Path
    on_replaced: Callable[[], None]

    @property
    def copy_class(self) -> Any: ...
    def start(self, progress: Progress | None = None) -> None: ...
    def ensure_fetched(self, wait: bool) -> None: ...
    def notes(self) -> list[str]: ...
    def open_file(self) -> Reader: ...
    def stop(self) -> None: ...


class MemoryCopy:
    """An index that is updated from ``source``. Without a source there are no documents to compare with.

    - ``defer_vectors``: the vectors of changed text are made later, with :meth:`pending_chunks` and
      :meth:`save_vectors`. Otherwise :meth:`refresh` makes them.
    - ``caches``: further indexes whose vectors :meth:`refresh` may reuse.

    Not thread-safe: the caller holds a lock during each call and while it reads the results.
    """

    def __init__(
        self,
        location: Location,
        source: DocumentSource | None,
        provider: EmbeddingProvider,
        progress: Progress = silent,
        *,
        defer_vectors: bool = False,
        caches: Sequence[Reader] = (),
    ) -> None:
        self.location, self.index = location, location.path
        self.source = self._tree = source  # for an index with a site, ``source`` will be a view of this tree
        self.provider = provider
        self.progress = progress
        self.defer_vectors = defer_vectors
        self._caches = caches
        self.stale = Changes()
        """The pages that differed from the index in the last comparison, and were then read."""
        self.refused: str | None = None
        """Why a file that replaced the artifact is not used."""
        self.failure: str | None = None
        """Why :meth:`refresh` could not make the vectors of changed text. It tries again after ``RETRY_S``."""
        self._retry_at = 0.0
        self._refused_signature: tuple[int, ...] | None = None
        """The signature of a file that cannot be used, so that it is not checked again before each query."""
        self._signature: tuple[int, ...] | None = None
        """The signature of the artifact when it was opened."""
        self._artifact: Reader | None = None
        self._copy: Writer | None = None
        """The copy in memory; None while the artifact itself answers."""
        self._options: Chunking | None = None
        self.indexed: Mapping[str, str] = {}
        """Path -> blob id of the indexed pages; another object after each change of the copy."""
        self._equal_entries: Mapping[str, str] | None = None
        """The entries of the last scan that agreed with the index. The identical object needs no comparison."""
        self._too_large: dict[str, str] = {}
        self._searcher: Searcher | None = None
        self._link_cache: LinkCache = {}
        """Kept when the searcher is replaced: after an edit, only the links of the edited page are read again."""
        self._pending: int | None = None
        self._stored_vectors: StoredVectors | None = None
        """The vectors of the artifact."""

    # --- the index for queries ---------------------------------------------------------------------------

    @property
    def where(self) -> str:
        return str(self.index)

    @property
    def size(self) -> int:
        """Bytes of the index file; 0 when there is none."""
        return (signature(self.index) or (0, 0))[1]

    @property
    def made_at(self) -> str | None:
        """The modification time of the artifact's file (ISO 8601, UTC); None without an artifact."""
        if self._artifact is None or self._signature is None:
            return None
        _, _, nanoseconds, _ = self._signature
        return timestamp(nanoseconds // 10**9)

    @property
    def reader(self) -> Reader:
        """The reader for queries. :meth:`refresh` or :meth:`begin_empty` must have been called."""
        reader = self._copy.reader if self._copy is not None else self._artifact
        assert reader is not None
        return reader

    @property
    def searcher(self) -> Searcher:
        """The search over :attr:`reader`. Its tables in memory are kept until the text changes."""
        if self._searcher is None:
            from anvil.search.candidates import FileIndex  # imports numpy, which reading a page does not need
            from anvil.search.searcher import Searcher

            self._searcher = Searcher(FileIndex(self.reader, self._link_cache), self.provider)
        return self._searcher

    @property
    def artifact_meta(self) -> dict[str, str] | None:
        """The manifest of the artifact, not of the copy; None without an artifact."""
        return None if self._artifact is None else self._artifact.meta()

    @property
    def beyond_artifact(self) -> Changes:
        """The differences between the artifact and the copy."""
        if self._artifact is None or self._copy is None:
            return Changes()
        return document_source.compare(self._artifact.blob_ids(), self.indexed)

    @property
    def opened(self) -> bool:
        return self._artifact is not None or self._copy is not None

    @property
    def provisional(self) -> bool:
        """Whether the copy began empty, because there was no artifact."""
        return self._artifact is None and self._copy is not None

    @property
    def matched(self) -> bool:
        """Whether the configured model made the vectors of the index, so that it can make missing ones."""
        try:
            return self.provider.digest == self.reader.meta()["embedding_model_digest"]
        except AnvilError:  # the model cannot be loaded: a search reports that, and the text does not need it
            return False

    @property
    def has_another_model(self) -> bool:
        """Whether the configured model can make vectors, but another one made those of the index."""
        return bool(self._dimensions) and not self.matched

    @property
    def would_lose_vectors(self) -> bool:
        """Whether a build would drop the artifact's vectors, because the configured provider makes none."""
        has_vectors = self.artifact_meta is not None and self.artifact_meta["embedding_dimensions"] != "0"
        return has_vectors and self._dimensions == 0

    @property
    def _dimensions(self) -> int | None:
        """The dimensions of the configured model; None if it cannot be loaded, so that a build would fail."""
        try:
            return self.provider.dimensions
        except AnvilError:
            return None

    @property
    def pending(self) -> int:
        """The number of missing vectors. A chunk that is not cut into windows yet counts as one."""
        if self._pending is None:
            if not self.matched:
                self._pending = 0  # the configured model cannot make them
            elif self._copy is None:
                self._pending = int(self.reader.meta()["needs_reembed"])
            else:
                self._pending = self._copy.reader.lacking_vectors()
        return self._pending

    def freshness(self, notes: tuple[str, ...]) -> Freshness:
        """The freshness that an answer reports: the pages that were read again for it, and missing vectors."""
        from anvil.results import WORKING_TREE, Freshness

        return Freshness(
            checked=WORKING_TREE if self.source else None,
            commit=(self.artifact_meta or {}).get("commit"),
            refreshed=tuple(sorted((*self.stale.changed, *self.stale.added))),
            removed=self.stale.removed,
            pending_vectors=self.pending,
            notes=notes,
        )

    # --- updates -----------------------------------------------------------------------------------------

    def refresh(self) -> Changes:
        """Compare the index with the documents, and update it. Returns the differences.

        Raises :class:`ArtifactError` if there is no usable artifact, and :class:`SourceError` for unreadable documents.
        """
        self._open()
        if self.source is None:
            return Changes()
        entries = self._scanned()
        if entries is self._equal_entries:  # the source gives the same object for the same documents
            self.stale = Changes()
        else:
            self.stale = self._differences(entries)
            if self.stale:
                self._update(entries, self.stale)
            # A page may have changed once more since the scan. Then the next call reads it.
            self._equal_entries = None if self._differences(entries) else entries
        self._refresh_commit(entries)
        if self._copy is not None and self.failure is not None and time.monotonic() >= self._retry_at:
            self._embed(self._indexer())
        return self.stale

    def _refresh_commit(self, entries: Mapping[str, str]) -> None:
        """Update the commit and the times of the pages, which can change without the text."""
        if self._copy is None or self.source is None:
            return
        commit, since = self.source.commit(), self._copy.reader.meta().get("commit")
        if commit != since:
            times = self.source.last_modified(sorted(entries), self._copy.reader.times(), since)
            with self._copy.atomic():
                self._copy.touch(times)
                self._copy.set_meta({"commit": commit})
            self._copy.seal()
            self.indexed = dict(self.indexed)  # another object, so that callers drop what they cached

    def begin_empty(self, options: Chunking, configured: Mapping[str, str | None] | None = None) -> None:
        """Open an empty copy, which :meth:`read_some` or :meth:`refresh` fills. ``configured``: see
        :func:`anvil.index_file.manifests.settings`."""
        copy = Writer(connection.open_scratch(":memory:"))
        meta = settings(self.provider, options, configured)
        connection.create_tables(copy.connection, int(meta["embedding_dimensions"]))
        copy.set_meta(meta)
        copy.seal()
        refused_signature = self._refused_signature
        self.close()
        self._refused_signature = refused_signature  # the file that cannot be used is still there
        self._copy, self._options, self.indexed, self.source = copy, options, {}, self._tree

    def read_some(self, limit: int) -> tuple[int, int]:
        """Read some of the pages that differ. Returns the number of up-to-date pages, and of all pages.

        Each call lists all pages. So it reads at least a hundredth of them, even if that is more than ``limit``.
        """
        entries = self._scanned()
        work = self._differences(entries)
        paths = sorted((*work.changed, *work.added))[: max(limit, len(entries) // 100)]
        chosen = Changes(
            tuple(p for p in paths if p in self.indexed), tuple(p for p in paths if p not in self.indexed), work.removed
        )
        if chosen:
            self._update({}, chosen)
        # A page that became unreadable after the scan counts as up to date, too: the next scan does not list it.
        pages_left = len(work) - len(chosen)
        return len(entries) - pages_left, len(entries)

    def read_page(self, path: str) -> None:
        """Update one page from its file, while the others are still being read."""
        work = self._differences(self._scanned())
        if path in work.paths:
            self._update({}, Changes(removed=(path,)) if path in work.removed else Changes(changed=(path,)))

    def _scanned(self) -> Mapping[str, str]:
        assert self.source is not None
        return self.source.scan(self.indexed).entries

    def _differences(self, entries: Mapping[str, str]) -> Changes:
        return document_source.compare(self.indexed, without_too_large(entries, self._too_large))

    def _open(self) -> None:
        """Open the artifact, or open it again if its file was replaced, which drops the copy of the old one.

        The open artifact stays in use if its file was removed or replaced by one that cannot be used.
        """
        current = signature(self.index)
        was_open = self.opened
        if was_open and current in (None, self._signature, self._refused_signature):
            return
        try:
            artifact = self.location.open_file()
            if os.name == "nt":  # an open file cannot be replaced there
                artifact = writer.detach(artifact, ":memory:")
        except ArtifactMissing:
            if was_open:  # removed since the signature was read
                return
            raise
        except ArtifactError as error:
            # With the same inode it is not another file: the open one was overwritten, and cannot be read any more.
            if not was_open or (current and self._signature and current[0] == self._signature[0]):
                self.close()
                self._refused_signature = current
                raise
            self._refused_signature, self.refused = current, f"The index was replaced by one that is not used: {error}"
            return
        self.close()
        self._artifact, self._stored_vectors, self._signature = artifact, StoredVectors([artifact]), current
        self.indexed = artifact.blob_ids()
        self.source = self._tree and site_view.view_of(self._tree, artifact)

    def _update(self, entries: Mapping[str, str], changes: Changes) -> None:
        assert self.source is not None
        copy = self._writable()
        indexer = self._indexer()
        indexer.update(self.source, entries, changes)
        self._too_large |= indexer.too_large
        copy.seal()
        self._text_changed(copy, changes)
        self._embed(indexer)

    def _text_changed(self, copy: Writer, changes: Changes) -> None:
        """Drop cached values that are wrong after ``changes`` were written to the copy."""
        self.indexed = copy.reader.blob_ids()
        self._searcher = self._pending = None  # the link cache stays: it has the links by the digest of their page

    def _indexer(self) -> Indexer:
        # If vectors are made later, artifact_vectors() finds those that can be reused. Text needs no model.
        reuses = not self.defer_vectors and self.matched
        caches = [self._artifact, *self._caches] if self._artifact is not None and reuses else []
        return Indexer(self._writable(), self.provider, self._chunking(), caches, self.progress)

    def _embed(self, indexer: Indexer) -> None:
        """Make the missing vectors, unless they are deferred. The text is up to date with or without them."""
        if self.defer_vectors or not self.matched:
            return
        self.failure = None
        try:
            indexer.embed()
        except AnvilError as error:
            self.failure = str(error)
        else:
            self.failure = next((failed.reason for failed in indexer.tally.failed), None)
        self._retry_at = time.monotonic() + RETRY_S
        self._vectors_changed()

    def _vectors_changed(self) -> None:
        """Drop cached values that are wrong after vectors were written."""
        self._pending = None
        if self._searcher is not None:
            self._searcher.index.forget_vectors()

    def embed_missing(self) -> None:
        """Make all missing vectors in this thread. Does nothing until ``RETRY_S`` after a failure."""
        if self.failure is None or time.monotonic() >= self._retry_at:
            deferred, self.defer_vectors = self.defer_vectors, False
            try:
                self._embed(self._indexer())
            finally:
                self.defer_vectors = deferred

    def _writable(self) -> Writer:
        """The copy in memory, which is made at its first use."""
        if self._copy is None:
            assert self._artifact is not None
            copy = Writer(connection.open_scratch(":memory:"))
            connection.fill(copy.connection, self._artifact.connection)
            self._copy = copy
        return self._copy

    def _chunking(self) -> Chunking:
        """The chunking options of the artifact, which its copy must use, too."""
        if self._options is None:
            self._options = recalled_chunking(self.reader.meta()["chunking"])
        return self._options

    # --- vectors made later ------------------------------------------------------------------------------

    def pending_chunks(self, after: int, limit: int) -> list[ChunkText]:
        """Up to ``limit`` chunks without a vector, with rows above ``after``."""
        return self._writable().chunk_texts(WITHOUT_VECTORS, after, limit) if self.pending else []

    def best_pending(self, search: SearchRequest | None, limit: int) -> list[ChunkText]:
        """The chunks without a vector among the best ``limit`` chunks of a search by words."""
        if search is None or not self.pending or not self.searcher.semantic:
            return []
        by_words = SearchRequest(search.query, limit, search.file_filter, max_chars=1, mode="keyword")
        rows = [result.row for result in self.searcher.search(by_words).ranked]
        return self._writable().chunks_lacking_vectors(rows)

    def artifact_vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Hash of a text -> stored vector, for the texts that the artifact has vectors of."""
        if self._stored_vectors is None or not self.matched:
            return {}
        vectors = {key: self._stored_vectors.get(key) for key in keys}
        return {key: vector for key, vector in vectors.items() if vector is not None}

    def save_vectors(self, embedded: Sequence[ChunkVectors]) -> None:
        """Save the vectors of chunks from :meth:`pending_chunks`. Chunks that have changed since are skipped."""
        if self._copy is None or not self.matched:  # another artifact was opened in the meantime
            return
        with self._copy.atomic():
            for chunk, windows, vectors in embedded:
                ids = self._copy.replace_windows(chunk, windows)
                self._copy.put_vectors((i, v) for i, v in zip(ids, vectors, strict=False) if v is not None)
        self._vectors_changed()

    def close(self) -> None:
        for reader in (self._artifact, self._copy):
            if reader is not None:
                reader.close()
        self._artifact = self._copy = self._searcher = self._signature = self._options = None
        self._equal_entries = self._pending = self._stored_vectors = self._refused_signature = None
        self.refused = self.failure = None
        self._too_large = {}
