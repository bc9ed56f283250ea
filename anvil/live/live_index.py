"""Thread-safe queries against an index that is refreshed first, and the notes of an answer on unfinished work.

The comparison itself, and which pages an answer names as refreshed, are in ``memory_copy``.

A program with a single query does all the work in the call. In a server, threads do the long work: the first build, the
vectors of a large change, and loading the model. The notes of an answer name the work that is not done yet.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.errors import AnvilError, ArtifactError, BuildError, ConfigError, NotFound, OlderIndex
from anvil.index_file.manifests import NOT_WHOLE
from anvil.live.background_work import IndexSaver, InitialBuild, VectorWorker, join
from anvil.requests import BuildRequest, OpenRequest, SearchRequest, still_wanted
from anvil.settings.schema import Chunking
from anvil.values import LOCK_TIMEOUT_S, RETRY_S, Changes, Progress, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.live.memory_copy import Location, MemoryCopy
    from anvil.results import Freshness
    from anvil.search.query_preparation import QueryVector
    from anvil.search.searcher import Explained


CLOSED = "This index is closed. Open it again, as with anvil.open()."
MAX_AWAITED_VECTORS = 64
"""Missing vectors that a search waits for; more are made after the answer."""
VECTOR_WAIT_S = 2.0
"""Seconds that a search waits for vectors: a slow or remote model must not delay the text."""
MAX_CANDIDATES = 16
"""If more vectors are missing, so many chunks are embedded before the answer: the best by words."""
PAGES_PER_STEP = 16
"""Pages that are read into a first, partial index each time the lock is held."""
FIRST_READING_S = 5.0
"""Seconds that pages are read before the first answer from a partial index: enough for some thousand pages."""

logger = logging.getLogger(__name__)


class BuildResult(Protocol):
    """The part of :class:`anvil.build.report.BuildReport` that is used here."""

    @property
    def reasons(self) -> tuple[str, ...]: ...


class Corpus(Protocol):
    """The documents, the model and the location of an index: those of a project
    (:class:`anvil.project_indexes.OpenedIndex`), or of ``anvil context``.

    - ``source``: None if there is only an index.
    - ``watched``: the folder to watch for changes, and whether its subfolders are watched.
    - ``is_private``: whether the index file is used on this machine only, so that a server may update it.
    - ``ensure_usable`` raises :class:`AnvilError` if the documents no longer exist.
    - ``may_build``: whether an index may be built, after opening the existing one raised ``error``.
    """

    @property
    def location(self) -> Location: ...
    @property
    def chunking(self) -> Chunking: ...
    @property
    def configured(self) -> Mapping[str, str | None]: ...
    @property
    def source(self) -> DocumentSource | None: ...
    @property
    def provider(self) -> EmbeddingProvider: ...
    @property
    def watched(self) -> tuple[Path, bool] | None: ...
    @property
    def is_private(self) -> bool: ...
    def ensure_usable(self) -> None: ...
    def may_build(self, error: ArtifactError) -> bool: ...
    def build(self, request: BuildRequest) -> BuildResult: ...


class LiveIndex:
    """An index that is compared with its documents before each query.

    - ``request``: the options of :func:`anvil.open`.
    - ``first_reading_s``: seconds that a server reads pages before its first answer, if there is no index.
    - ``lock`` guards the memory copy. In a server no model runs while it is held.
    """

    def __init__(
        self,
        corpus: Corpus,
        request: OpenRequest,
        *,
        first_reading_s: float | None = None,
        lock: threading.RLock | None = None,
    ) -> None:
        self.lock = lock or threading.RLock()
        self.closed = False
        self._corpus = corpus
        self._background = request.background
        self._build_first = request.build_first
        self._without_vectors = request.provider == "none"
        self._progress = request.progress
        self._first_reading_s = FIRST_READING_S if first_reading_s is None else first_reading_s
        self._copy: MemoryCopy | None = None
        self._compared_at = 0.0
        """When the last comparison began, by the monotonic clock."""
        self._all_read = False
        """Whether a first, partial index has all pages already, so that a build need not read them for answers."""
        self._query_model: EmbeddingProvider | None = None
        """The model of the last search that compared vectors. It embeds the next query without the lock."""
        self._build_progress: Progress = silent
        self._changes: list[Changes] = []
        self._listeners: list[Callable[[Changes], None]] = []
        self._initial_build: InitialBuild | None = None
        self._build_reasons: tuple[str, ...] = ()
        """The reasons in the report of the build before the first answer. The notes of the first answer have them."""
        self._build_retry_at = 0.0
        """When another first build may begin after one that failed, by the monotonic clock."""
        self._vector_worker = VectorWorker(self.lock, self._open_copy, lambda: self._building)
        self._saver = IndexSaver(self._save)
        self._starter: threading.Thread | None = None
        self._watcher = None
        if request.background and request.watch and (watched := corpus.watched) is not None:
            from anvil.documents.file_watcher import Watcher

            folder, deep = watched
            self._watcher = Watcher(folder, self.refresh, deep=deep)
        corpus.location.on_replaced = self.refresh

    # --- queries -------------------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> Explained:
        """The answer to a search, with its freshness. Raises :class:`AnvilError`."""
        started_at = time.perf_counter()
        question = self.embed_query(request)
        with self.query(request) as copy:
            obstacle = None if request.mode == "keyword" else self.obstacle(copy)
            if obstacle and request.mode == "semantic":
                raise ConfigError(obstacle)
            ranked = copy.searcher.search(request, question)
            notes = (*([obstacle] if obstacle else []), *ranked.notes)
            return ranked.explained(self.freshness(copy, notes), started_at)

    @contextmanager
    def query(
        self, search: SearchRequest | None = None, page: str | None = None, *, by_meaning: bool = False
    ) -> Iterator[MemoryCopy]:
        """The memory copy, compared with the documents after this call began, and locked inside the ``with`` block.

        - ``search``: the request of a search, which waits for a few missing vectors.
        - ``by_meaning``: several searches follow, which need the vectors, too.
        - ``page``: a path that must be up to date even while the other pages are read for the first time.

        Raises :class:`AnvilError`.
        """
        asked_at = time.monotonic()  # before the wait for the lock: an earlier comparison does not count as fresh
        if self._background:
            self.start()
        self.ensure_available(wait=not self._background)
        from anvil.index_file.reader import reporting_damage

        try:
            with self.lock:
                still_wanted()  # the wait for the lock may have been long
                needs_vectors = by_meaning or (search is not None and search.mode != "keyword")
                copy = self._refreshed(asked_at, needs_vectors)
                if page is not None and self._reading:
                    indexed_before = copy.indexed
                    copy.read_page(page)
                    self._changes.append(document_source.compare(indexed_before, copy.indexed))
                if needs_vectors:
                    self._await_vectors(copy, search)
                with reporting_damage(copy.where):
                    if by_meaning or search is not None:
                        self._query_model = copy.searcher.provider if copy.searcher.semantic else None
                    yield copy
        except NotFound as error:
            if self._reading:
                assert self._initial_build is not None
                raise NotFound(f"{error} {self._initial_build.note}") from error
            raise
        finally:
            self._notify_listeners()

    def embed_query(self, request: SearchRequest) -> QueryVector | None:
        """The vector of the query, made before :meth:`query` and without the lock; None if no vector is needed."""
        model = self._query_model
        if self.closed or model is None or request.mode == "keyword":
            return None
        still_wanted()
        from anvil.search.query_preparation import embed_query

        return embed_query(request.query, model)

    def freshness(self, copy: MemoryCopy, search_notes: Sequence[str] = ()) -> Freshness:
        """The freshness that an answer reports, with all notes. Call it inside :meth:`query`."""
        return copy.freshness((*self._corpus.location.notes(), *self.notes(copy), *search_notes))

    def will_embed_again(self, copy: MemoryCopy) -> bool:
        """Whether the configured model makes all vectors soon, without an edit. Call it inside :meth:`query`."""
        return self._saver.is_due and copy.has_another_model

    def obstacle(self, copy: MemoryCopy) -> str | None:
        """Why queries cannot be compared with vectors, and what to do; None if they can. Call inside :meth:`query`."""
        if copy.searcher.obstacle is None or not self.will_embed_again(copy):
            return copy.searcher.obstacle
        meta, now = copy.reader.meta(), copy.provider.model
        before = f"with {meta['embedding_model']}" if meta["embedding_dimensions"] != "0" else "without vectors"
        return (
            f"Semantic search is off: the index was built {before}, and the current model is {now}. It is embedded "
            "again when no page has changed for a minute; until then, search is by words."
        )

    def notes(self, copy: MemoryCopy) -> list[str]:
        """Sentences about work that is not done yet, with reasons. Call it inside :meth:`query`."""
        problems = (copy.source and copy.source.problem, copy.refused, *self._build_reasons)
        self._build_reasons = ()
        notes = list(dict.fromkeys(note for note in problems if note))
        notes += _shard_notes(copy)
        build = self._initial_build
        if build is not None and build.note and (build.running or copy.provisional):
            notes.append(build.note)
        elif copy.pending and (failure := self._vector_worker.failure or copy.failure):
            notes.append(f"{counted(copy.pending, 'vector', 'could')} not be made: {failure} It is tried again.")
        elif copy.provisional and copy.pending and not self._background:
            why = "Its vectors are not made yet" if copy.refused else "There is no index yet"
            notes.append(f"{why}: only the best matches by words were compared by meaning.")
        elif copy.pending and self._background:
            missing = counted(copy.pending, "vector", "are")
            notes.append(f"{missing} still being made; the text and search by words are complete.")
        return notes

    def missing_pages(self, copy: MemoryCopy) -> list[str]:
        """Sentences about pages that are not in the index, with reasons. Call it inside :meth:`query`."""
        build = self._initial_build
        is_reading = build is not None and build.reading
        return [*_shard_notes(copy), *([build.note] if build is not None and build.note and is_reading else [])]

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Call ``callback`` with the changed pages after each refresh with some. Returns a function to stop it.

        The thread that refreshed makes the call, without the lock.
        """
        self._listeners.append(callback)

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    def _await_vectors(self, copy: MemoryCopy, search: SearchRequest | None) -> None:
        """Wait for missing vectors: for all if they are few, else for those of the best chunks by words."""
        if not copy.pending:
            return
        if not self._background:
            if not copy.provisional or search is None or copy.pending <= MAX_AWAITED_VECTORS:
                copy.embed_missing()
            elif candidates := copy.best_pending(search, MAX_CANDIDATES):
                self._vector_worker.embed_now(copy, candidates)
            return
        if not self._building and copy.pending <= MAX_AWAITED_VECTORS:
            self._vector_worker.wait(VECTOR_WAIT_S)
        elif candidates := copy.best_pending(search, MAX_CANDIDATES):
            self._vector_worker.embed_first(candidates, VECTOR_WAIT_S)
        self._ensure_usable()  # the lock was released during the wait

    # --- what a query needs ----------------------------------------------------------------------------------

    def ensure_open(self) -> None:
        """Raise :class:`ConfigError` after :meth:`close`."""
        if self.closed:
            raise ConfigError(CLOSED)

    def ensure_available(self, wait: bool) -> None:
        """Fetch a published index that is not on this machine yet. ``wait``: until it is here. Holds no lock."""
        if not self.closed:
            if self._background:
                self._corpus.location.start()
            self._corpus.location.ensure_fetched(wait)

    def _ensure_usable(self) -> None:
        self.ensure_open()
        self._corpus.ensure_usable()

    def refresh(self) -> None:
        """Read changed pages ahead of the next query, because a file changed or the index was replaced."""
        try:
            with self.lock:
                if not self.closed and self._copy is not None and self._copy.opened:
                    self._refreshed(time.monotonic())
        except AnvilError as error:
            logger.debug("Nothing was refreshed ahead of the next question: %s", error)
        finally:
            self._notify_listeners()

    def _refreshed(self, asked_at: float, needs_vectors: bool = True) -> MemoryCopy:
        """The memory copy, compared after ``asked_at`` (monotonic clock). The caller holds the lock. ``needs_vectors``:
        whether changed pages get their vectors in this call, outside of servers."""
        self._ensure_usable()
        corpus = self._corpus
        if self._copy is None:
            from anvil.live.memory_copy import MemoryCopy

            copy_class = corpus.location.copy_class or MemoryCopy
            self._copy = copy_class(
                corpus.location, corpus.source, corpus.provider, self._progress, defer_vectors=self._background
            )
        copy = self._copy
        if not self._background:
            copy.defer_vectors = copy.provisional or not needs_vectors
            try:
                self._compare(copy)
            except ArtifactError as error:
                if not corpus.may_build(error):
                    raise
                if isinstance(error, OlderIndex):  # only 'anvil build' replaces it, not a query
                    self._answer_from_documents(copy, error)
                elif self._build_first or not self._read_ahead(copy):
                    try:
                        report = corpus.build(BuildRequest())
                    except BuildError as obstacle:  # such as a read-only file system
                        self._answer_from_documents(copy, obstacle)
                    else:
                        self._build_reasons = report.reasons
                        self._compare(copy)
            return copy
        if self._reading:
            return copy  # the pages read so far
        # Otherwise another thread has compared while this one waited for the lock. Equal times do not count, because
        # some clocks tick every 16 ms only.
        if self._compared_at <= asked_at:
            began_at = time.monotonic()
            try:
                self._compare(copy)
            except ArtifactError as error:
                if not corpus.may_build(error):
                    raise
                if isinstance(error, OlderIndex):
                    logger.warning("%s It is replaced.", error.problem)
                self._begin_empty(copy, read_until=began_at + self._first_reading_s)
            self._compared_at = began_at
        if copy.provisional and not self._building and time.monotonic() >= self._build_retry_at:
            self._start_build()
        return copy

    def _compare(self, copy: MemoryCopy) -> None:
        indexed_before, opened_before = copy.indexed, copy.opened
        copy.refresh()
        if copy.indexed is not indexed_before:
            if opened_before:
                self._changes.append(document_source.compare(indexed_before, copy.indexed))
            if self._background and copy.pending:
                self._vector_worker.wake()
            is_behind = copy.beyond_artifact or copy.has_another_model
            if self._background and is_behind and not copy.would_lose_vectors and self._corpus.is_private:
                self._saver.wake()

    def _begin_empty(self, copy: MemoryCopy, read_until: float) -> None:
        copy.begin_empty(self._corpus.chunking, self._corpus.configured)
        self._all_read = False
        while time.monotonic() < read_until and not self._all_read:
            done, total = copy.read_some(PAGES_PER_STEP)
            self._all_read = done >= total

    def _read_ahead(self, copy: MemoryCopy) -> bool:
        """Read all pages into the copy, to answer from it before there is an index file. Returns False if an index
        should be built: only few vectors are missing, so that this is quick. An option ``--provider none`` builds none,
        because later searches would find an index without vectors."""
        copy.defer_vectors = True
        copy.begin_empty(self._corpus.chunking, self._corpus.configured)
        copy.refresh()
        copy.stale = Changes()  # there is no index from which pages could differ
        copy.defer_vectors = copy.pending > MAX_AWAITED_VECTORS
        return copy.defer_vectors or self._without_vectors

    def _answer_from_documents(self, copy: MemoryCopy, reason: AnvilError) -> None:
        """Read all pages into the copy, so that it can answer. ``reason``: why no index file can be used."""
        self._read_ahead(copy)
        copy.refused = f"{reason} This answer is from the documents."

    def _notify_listeners(self) -> None:
        with self.lock:  # not while listeners are called: one may make a query itself
            all_changes, self._changes = [changes for changes in self._changes if changes], []
        for changes in all_changes:
            for listener in tuple(self._listeners):
                try:
                    listener(changes)
                except Exception:  # a failing listener must not prevent the answer
                    logger.exception("A listener to changed pages failed")

    # --- threads of a server ---------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Start a thread that opens or builds the index and loads the model. A second call starts no second thread.

        ``progress`` is called during the download and the first build.
        """
        self._corpus.location.start(progress)
        with self.lock:
            if progress is not None:
                self._build_progress = progress
            if self.closed or self._starter is not None:
                return
            self._starter = threading.Thread(target=self._warm, name="anvil-start", daemon=True)
            self._starter.start()
            if self._watcher is not None:
                self._watcher.start()

    def _warm(self) -> None:
        from anvil.search import searcher  # noqa: F401 - the first query or edit would wait for this import

        try:
            self.ensure_available(wait=True)
            with self.lock:
                copy = self._refreshed(time.monotonic())
                self._query_model = model = copy.searcher.provider if copy.searcher.semantic else None
            self.embed_query(SearchRequest("warm"))
            with self.lock:
                if model is not None and not self.closed:
                    copy.searcher.index.warm()
            if model is not None and model.passages is not None and not self.closed:
                model.passages.warm()
        except AnvilError as error:  # each query raises it again
            logger.debug("Nothing was opened ahead of the first question: %s", error)
        finally:
            self._notify_listeners()

    @property
    def _building(self) -> bool:
        return self._initial_build is not None and self._initial_build.running

    @property
    def _reading(self) -> bool:
        """Whether a first build is still reading pages, so that some are not in the index yet."""
        return self._initial_build is not None and self._initial_build.reading

    def _start_build(self) -> None:
        self._build_retry_at = time.monotonic() + RETRY_S
        self._initial_build = InitialBuild(
            read_pages=self._read_pages,
            build=lambda progress: self._build(progress, LOCK_TIMEOUT_S),
            ended=self._build_ended,
            progress=lambda *step: self._build_progress(*step),
            reading=not self._all_read,
        )
        self._initial_build.start()

    def _build(self, progress: Progress, lock_timeout_s: float) -> None:
        self.ensure_open()
        self._corpus.build(BuildRequest(progress=progress, lock_timeout_s=lock_timeout_s))

    def _read_pages(self) -> tuple[int, int]:
        """Read some more pages into the memory copy. Returns the number of pages read, and of all pages."""
        try:
            with self.lock:
                assert self._copy is not None
                if self.closed:
                    return 0, 0
                indexed_before = self._copy.indexed
                done, total = self._copy.read_some(PAGES_PER_STEP)
                self._changes.append(document_source.compare(indexed_before, self._copy.indexed))
                return done, total
        finally:
            self._notify_listeners()

    def _build_ended(self) -> None:
        """Open the index file that was built. If the build failed, the pages that were read get their vectors."""
        with self.lock:
            self._compared_at = 0.0  # so that a query that is already waiting opens the new file
            if self._copy is not None and not self.closed:
                self._vector_worker.wake()
        self.refresh()

    def _save(self) -> None:
        """Build the index file from the current documents, and open it. :meth:`close` cancels the build."""
        self._build(lambda *_: self.ensure_open(), 0.0)
        self.refresh()

    def _open_copy(self) -> MemoryCopy | None:
        return None if self._copy is None or not self._copy.opened else self._copy

    @property
    def provisional(self) -> bool:
        """Whether the last answer came from documents without an index file, so that one should be built."""
        return self._copy is not None and self._copy.provisional and not self._copy.refused

    @property
    def refused(self) -> str | None:
        """Why the last answer did not use an index file: it cannot be read, or none can be written; None if it did."""
        return None if self._copy is None else self._copy.refused

    def close(self) -> None:
        """Stop the threads, then close the files. A second call does nothing."""
        self._corpus.location.stop()
        # The flag comes first, because the threads read it. They are joined without the lock, because they may wait for
        # it. The copy is closed last, because they use it.
        with self.lock:
            if self.closed:
                return
            self.closed = True
        for worker in (self._watcher, self._initial_build, self._saver, self._vector_worker):
            if worker is not None:
                worker.close()
        join(self._starter)
        with self.lock:
            if self._copy is not None:
                self._copy.close()


def _shard_notes(copy: MemoryCopy) -> list[str]:
    shard = (copy.artifact_meta or {}).get("shard")
    return [NOT_WHOLE.format(copy.index, shard)] if shard else []
