"""The index for queries: the index file (the artifact) while it is fresh, else an updated copy in memory.

Before each query it is compared with the documents by content. Changed pages are read into a copy of the artifact in
memory. A query does not write the artifact. If there is no artifact yet, the copy begins empty.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from anvil.build.row_updates import Indexer, StoredVectors, without
from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing
from anvil.formats.data_formats import timestamp
from anvil.index_file import connection, writer
from anvil.index_file.manifests import recalled_chunking, settings
from anvil.index_file.reader import Reader, signature
from anvil.index_file.table_rows import ChunkText
from anvil.index_file.writer import Writer
from anvil.live import site_view
from anvil.requests import SearchRequest
from anvil.settings.schema import Chunking
from anvil.values import RETRY_S, Changes, Progress, Window, silent

if TYPE_CHECKING:
    from anvil.search.candidates import LinkCache
    from anvil.search.searcher import Searcher


class ChunkVectors(NamedTuple):
    """A chunk, its windows, and their vectors as an index stores them; None where one could not be made."""

    chunk: ChunkText
    windows: Sequence[Window]
    vectors: Sequence[bytes | None]


class Location(Protocol):
    """What this folder needs of the place of an index, as :class:`anvil.project_indexes.IndexLocation` has it."""

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
    """One index that is updated from ``source`` (None: there are no documents to compare with).

    ``defer_vectors``: vectors of changed text are made later, by way of :meth:`pending_chunks` and
    :meth:`save_vectors`; else :meth:`refresh` makes them. ``caches``: further indexes whose vectors may then be reused.
    Not thread-safe: the caller holds a lock during each call and the reads after it.
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
        self.source = self._tree = source  # ``source`` is the tree as the site of an index shows it, if it has one
        self.provider = provider
        self.progress = progress
        self.defer_vectors = defer_vectors
        self._caches = caches
        self.stale = Changes()
        self.refused: str | None = None
        """Why a file that replaced the artifact is not used."""
        self.failure: str | None = None
        """Why :meth:`refresh` could not make the vectors of changed text; it tries again after a while."""
        self._retry_at = 0.0
        self._refused: tuple[int, ...] | None = None
        """The signature of the file that is not used, so that it is not checked again before each query."""
        self._signature: tuple[int, ...] | None = None
        """That of the artifact when it was opened."""
        self._artifact: Reader | None = None
        self._copy: Writer | None = None
        """The copy in memory; None while the artifact itself answers."""
        self._options: Chunking | None = None
        self.indexed: Mapping[str, str] = {}
        """Path -> blob id of the indexed pages. After each change of the copy it is another object."""
        self._same: Mapping[str, str] | None = None
        """The last scan that the index agreed with: an identical object needs no comparison."""
        self._unfit: dict[str, str] = {}
        self._searcher: Searcher | None = None
        self._link_cache: LinkCache = {}
        """It outlives a searcher: after an edit only the links of that page are read again."""
        self._pending: int | None = None
        self._stored: StoredVectors | None = None
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
        """When the artifact's file was made, by its own time (ISO 8601, UTC); None while there is none."""
        if self._artifact is None or self._signature is None:
            return None
        _, _, nanoseconds, _ = self._signature
        return timestamp(nanoseconds // 10**9)

    @property
    def reader(self) -> Reader:
        """The reader for queries. Call :meth:`refresh` or :meth:`begin_empty` first."""
        reader = self._copy.reader if self._copy is not None else self._artifact
        assert reader is not None
        return reader

    @property
    def searcher(self) -> Searcher:
        """Search over :attr:`reader`; its tables in memory stay until the text changes."""
        if self._searcher is None:
            from anvil.search.candidates import FileIndex  # numpy, which reading a page does not need
            from anvil.search.searcher import Searcher

            self._searcher = Searcher(FileIndex(self.reader, self._link_cache), self.provider)
        return self._searcher

    @property
    def artifact_meta(self) -> dict[str, str] | None:
        """The manifest of the artifact, not of the copy; None while there is no artifact."""
        return None if self._artifact is None else self._artifact.meta()

    @property
    def beyond_artifact(self) -> Changes:
        """How the copy differs from the artifact."""
        if self._artifact is None or self._copy is None:
            return Changes()
        return document_source.compare(self._artifact.blob_ids(), self.indexed)

    @property
    def opened(self) -> bool:
        """Whether there is an artifact or a copy."""
        return self._artifact is not None or self._copy is not None

    @property
    def provisional(self) -> bool:
        """Whether the copy began empty, because there is no artifact."""
        return self._artifact is None and self._copy is not None

    @property
    def matched(self) -> bool:
        """Whether the configured model made the vectors, so that it can make the missing ones."""
        try:
            return self.provider.digest == self.reader.meta()["embedding_model_digest"]
        except AnvilError:  # the model cannot be loaded: a search has a note; the text is right without it
            return False

    @property
    def has_another_model(self) -> bool:
        """Whether the configured model can make vectors, and another one made those of the index."""
        return bool(self._dimensions) and not self.matched

    @property
    def would_lose_vectors(self) -> bool:
        """Whether the configured provider makes no vectors, and the artifact has some: a build would drop them."""
        has_vectors = self.artifact_meta is not None and self.artifact_meta["embedding_dimensions"] != "0"
        return has_vectors and self._dimensions == 0

    @property
    def _dimensions(self) -> int | None:
        """Of the configured model; None where it cannot be loaded: a build fails then, and writes nothing."""
        try:
            return self.provider.dimensions
        except AnvilError:
            return None

    @property
    def pending(self) -> int:
        """The number of missing vectors. A chunk that is not yet cut into windows counts as one."""
        if self._pending is None:
            if not self.matched:
                self._pending = 0  # this model cannot make them
            elif self._copy is None:
                self._pending = int(self.reader.meta()["needs_reembed"])
            else:
                self._pending = self._copy.reader.lacking_vectors()
        return self._pending

    # --- updates -----------------------------------------------------------------------------------------

    def refresh(self) -> Changes:
        """Update the index from the documents. Returns how they differed.

        Raises :class:`ArtifactError` when there is no usable artifact, :class:`SourceError` when the
        documents cannot be reached.
        """
        self._open()
        if self.source is None:
            return Changes()
        entries = self.source.scan(self.indexed).entries
        if entries is self._same:  # the source gives the same object for the same documents
            self.stale = Changes()
        else:
            self.stale = document_source.compare(self.indexed, without(self._unfit, entries))
            if self.stale:
                self._update(entries, self.stale)
            # Compared again: a page may have changed once more since the scan. Then the next call reads it.
            self._same = None if document_source.compare(self.indexed, without(self._unfit, entries)) else entries
        self._catch_up(entries)
        return self.stale

    def _catch_up(self, entries: Mapping[str, str]) -> None:
        """Update what can change without the text: the commit and the times. Try again to make failed vectors."""
        if self._copy is None or self.source is None:
            return
        commit, since = self.source.commit(), self._copy.reader.meta().get("commit")
        if commit != since:
            times = self.source.last_modified(sorted(entries), self._copy.reader.times(), since)
            with self._copy.atomic():
                self._copy.touch(times)
                self._copy.set_meta({"commit": commit})
            self._copy.seal()
            self.indexed = dict(self.indexed)  # another object, so that callers read again what they cached
        if self.failure is not None and time.monotonic() >= self._retry_at:
            self._embed(self._indexer())

    def begin_empty(self, options: Chunking, configured: Mapping[str, str | None] | None = None) -> None:
        """Begin with an empty copy, which :meth:`read_some` or :meth:`refresh` fills. ``configured``: see
        :func:`anvil.index_file.manifests.settings`."""
        copy = Writer(connection.open_scratch(":memory:"))
        meta = settings(self.provider, options, configured)
        connection.lay_out(copy.connection, int(meta["embedding_dimensions"]))
        copy.set_meta(meta)
        copy.seal()
        refused = self._refused
        self.close()
        self._refused = refused  # the file that cannot be used is there, and was before
        self._copy, self._options, self.indexed, self.source = copy, options, {}, self._tree

    def read_some(self, limit: int) -> tuple[int, int]:
        """Read up to ``limit`` pages that differ, or a hundredth of all where that is more: each call looks at all of
        them. Returns the number of up-to-date pages, and of all pages."""
        entries, work = self._compared()
        paths = sorted((*work.changed, *work.added))[: max(limit, len(entries) // 100)]
        chosen = Changes(
            tuple(p for p in paths if p in self.indexed),
            tuple(p for p in paths if p not in self.indexed),
            work.removed,
        )
        if chosen:
            self._update({}, chosen)
        # A page that became unreadable after the scan never becomes current, but no work is left for it.
        pages_left = len(work) - len(chosen)
        return len(entries) - pages_left, len(entries)

    def read_page(self, path: str) -> None:
        """Update one page from its file, while the others are still being read."""
        _, work = self._compared()
        if path in work.paths:
            self._update({}, Changes(removed=(path,)) if path in work.removed else Changes(changed=(path,)))

    def _compared(self) -> tuple[Mapping[str, str], Changes]:
        """All documents, path -> blob id, and how they differ from what is indexed."""
        assert self.source is not None
        entries = self.source.scan(self.indexed).entries
        return entries, document_source.compare(self.indexed, without(self._unfit, entries))

    def _open(self) -> None:
        """Open the artifact, and open it again when its file was replaced. The copy of the old one is dropped.

        If the file was removed, or replaced by one that cannot be used, the open one stays in use.
        """
        current = signature(self.index)
        was_open = self.opened
        if was_open and current in (None, self._signature, self._refused):
            return
        try:
            artifact = self.location.open_file()
            if os.name == "nt":  # an open file cannot be replaced there
                artifact = writer.detached(artifact, ":memory:")
        except ArtifactMissing:
            if was_open:  # removed since the signature was read
                return
            raise
        except ArtifactError as error:
            # The same inode: not another file, so what is open was overwritten.
            if not was_open or (current and self._signature and current[0] == self._signature[0]):
                self.close()
                self._refused = current
                raise
            self._refused, self.refused = current, f"The index was replaced by one that is not used: {error}"
            return
        self.close()
        self._artifact, self._stored, self._signature = artifact, StoredVectors([artifact]), current
        self.indexed = artifact.blob_ids()
        self.source = self._tree and site_view.view_of(self._tree, artifact)

    def _update(self, entries: Mapping[str, str], changes: Changes) -> None:
        assert self.source is not None
        copy = self._writable()
        indexer = self._indexer()
        indexer.update(self.source, entries, changes)
        self._unfit |= indexer.unfit
        copy.seal()
        self._moved(copy, changes)
        self._embed(indexer)

    def _moved(self, copy: Writer, changes: Changes) -> None:
        """Forget what was cached before ``changes`` were written to the copy."""
        self.indexed = copy.reader.blob_ids()
        self._searcher = self._pending = None  # but not the links, which know their pages by digest

    def _indexer(self) -> Indexer:
        # Where vectors are made later, artifact_vectors() looks for them there.
        caches = [] if self.defer_vectors or self._artifact is None else [self._artifact, *self._caches]
        return Indexer(self._writable(), self.provider, self._cut_as_before(), caches, self.progress)

    def _embed(self, indexer: Indexer) -> None:
        """Make the missing vectors, unless a thread does it. The text is up to date with or without them."""
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
        self._forget_vectors()

    def _forget_vectors(self) -> None:
        """Count and read the vectors again: some were made."""
        self._pending = None
        if self._searcher is not None:
            self._searcher.index.forget_vectors()

    def embed_missing(self) -> None:
        """Make all missing vectors in this thread; after a failure not again for a while."""
        if self.failure is None or time.monotonic() >= self._retry_at:
            deferred, self.defer_vectors = self.defer_vectors, False
            try:
                self._embed(self._indexer())
            finally:
                self.defer_vectors = deferred

    def _writable(self) -> Writer:
        if self._copy is None:
            assert self._artifact is not None
            copy = Writer(connection.open_scratch(":memory:"))
            connection.fill(copy.connection, self._artifact.connection)
            self._copy = copy
        return self._copy

    def _cut_as_before(self) -> Chunking:
        """The chunking options of the artifact, which its copy must use too."""
        if self._options is None:
            self._options = recalled_chunking(self.reader.meta()["chunking"])
        return self._options

    # --- vectors made later ------------------------------------------------------------------------------

    def pending_chunks(self, after: int, limit: int) -> list[ChunkText]:
        """Up to ``limit`` chunks without a vector, from rows above ``after``: (row, title, breadcrumb, content)."""
        return self._writable().chunks_without_vectors(after, limit) if self.pending else []

    def best_pending(self, search: SearchRequest | None, limit: int) -> list[ChunkText]:
        """Those of the ``limit`` chunks that fit a search best by words that have no vector."""
        if search is None or not self.pending or not self.searcher.semantic:
            return []
        by_words = SearchRequest(search.query, limit, search.file_filter, max_chars=1, mode="keyword")
        rows = [each.row for each in self.searcher.search(by_words).ranked]
        return self._writable().chunks_lacking_vectors(rows)

    def artifact_vectors(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Reuse key -> stored vector, of the keys that the artifact has vectors for."""
        if self._stored is None or not self.matched:
            return {}
        vectors = {key: self._stored.get(key) for key in keys}
        return {key: vector for key, vector in vectors.items() if vector is not None}

    def save_vectors(self, embedded: Sequence[ChunkVectors]) -> None:
        """Save the vectors of chunks from :meth:`pending_chunks`. A chunk that has changed since is left alone."""
        if self._copy is None or not self.matched:  # another artifact was opened meanwhile
            return
        with self._copy.atomic():
            for chunk, windows, vectors in embedded:
                ids = self._copy.replace_windows(chunk, windows)
                self._copy.put_vectors((i, v) for i, v in zip(ids, vectors, strict=False) if v is not None)
        self._forget_vectors()

    def close(self) -> None:
        for reader in (self._artifact, self._copy):
            if reader is not None:
                reader.close()
        self._artifact = self._copy = self._searcher = self._signature = self._options = None
        self._same = self._pending = self._stored = self._refused = self.refused = self.failure = None
        self._unfit = {}
