"""How a question meets the index: compared with the documents first, then asked, from any thread.

A program that asks and ends does all in the call. A server does not wait for what takes long: the first build, the
vectors of a large change and the model's loading happen in threads of their own, and answers say what is not done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from anvil import freshness
from anvil.backlog import Backlog
from anvil.chunking import Chunking
from anvil.errors import AnvilError, ArtifactError, NotFound
from anvil.firstbuild import FirstBuild
from anvil.models import Changes, Progress, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.searching import Question
    from anvil.watching import Watcher
    from anvil.workingcopy import WorkingCopy

T = TypeVar("T")
SMALL = 64
"""Vectors that an answer waits for; more are made behind it."""
PATIENCE = 2.0
"""Seconds that it waits: a model that is slow, or far away, does not keep the text from whoever asked."""
PAGES = 16
"""Pages read into a first, partial index between two answers."""
AHEAD = 1.0
"""Seconds of reading before the first of these answers: a small folder is read whole in them."""
RETRY = 30.0
"""Seconds until a first build that failed is tried again."""

logger = logging.getLogger(__name__)


class Answering:
    """One working copy and whoever keeps it right. ``lock`` guards it; no model works while it is held in a server."""

    def __init__(
        self,
        ready: Callable[[], None],
        open_copy: Callable[[], WorkingCopy],
        build: Callable[[Progress, float | None], object],
        rebuildable: Callable[[ArtifactError], bool],
        options: Chunking,
        *,
        background: bool,
        watcher: Callable[[Callable[[], None]], Watcher] | None = None,
        ahead: Callable[[bool], None] = lambda patient: None,
        reading: float | None = None,
    ) -> None:
        """``ready`` raises when there is nothing to ask any more. ``build`` makes the artifact, waiting so many
        seconds for another process. ``rebuildable``: may a build replace what raised this? ``watcher`` makes one
        that calls the given function. ``ahead`` brings what is not here yet, such as an index from elsewhere: called
        before each answer, holding no lock, told whether it may take its time; it may raise. ``reading``: seconds of
        reading before the first answer without an index."""
        self.lock = threading.RLock()
        self.closed = False
        self._ahead = ahead
        self._ready, self._open_copy, self._build, self._rebuildable = ready, open_copy, build, rebuildable
        self._options = options
        self._background, self._reading = background, AHEAD if reading is None else reading
        self._read_whole = False
        self._copy: WorkingCopy | None = None
        self._checked = 0.0
        self._semantic = False
        self._progress: Progress = silent
        self._changes: list[Changes] = []
        self._listeners: list[Callable[[Changes], None]] = []
        self._first: FirstBuild | None = None
        self._retry_at = 0.0
        self._backlog = Backlog(self.lock, self._to_embed)
        self._watcher = watcher(self.look) if watcher is not None and background else None
        self._starter: threading.Thread | None = None

    # --- asking --------------------------------------------------------------------------------------------

    def answer(self, ask: Callable[[WorkingCopy], T], *, vectors: bool = False) -> T:
        """Make sure that the index says what the documents say, then ask it. ``vectors``: it matters that they do,
        too."""
        asked = time.monotonic()
        if self._background:
            self.start()
        self._ahead(not self._background)
        try:
            with self.lock:
                copy = self._refreshed(asked)
                if vectors and self._background and not self._building and 0 < copy.pending <= SMALL:
                    self._backlog.wait(PATIENCE)
                    self._ready()  # the lock was given away
                return ask(copy)
        except NotFound as error:
            if self._first is not None and self._first.reading:
                raise NotFound(f"{error} {self._first.note}") from error
            raise
        finally:
            self._tell()

    def question(self, query: str, mode: str) -> Question | None:
        """The query embedded, when it will be needed as far as the last answer knew. Holds no lock."""
        if self.closed or not self._semantic or mode not in ("hybrid", "semantic") or not query.strip():
            return None
        from anvil.searching import embedded

        assert self._copy is not None
        return embedded(query, self._copy.provider)

    def notes(self, copy: WorkingCopy) -> list[str]:
        """Sentences on what is not done yet, and why. The lock is held."""
        self._semantic = copy.searcher.semantic
        found = [copy.refused] if copy.refused else []
        if shard := (copy.artifact_meta or {}).get("shard"):
            found.append(f"{copy.index} is shard {shard} of an index, not a whole one. Join all with 'anvil merge'.")
        if self._first is not None and self._first.note and (self._first.running or copy.provisional):
            found.append(self._first.note)
        elif copy.pending and (failure := self._backlog.failure or copy.failure):
            lacking = counted(copy.pending, "vector", "could")
            found.append(f"{lacking} not be made: {failure} It is tried again.")
        elif copy.pending and self._background:
            lacking = counted(copy.pending, "vector", "are")
            found.append(f"{lacking} still being made; the text and search by words are complete.")
        return found

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Tell ``callback`` which pages changed, after each refresh that found any; the function that ends it.

        It is called without the lock, by whichever thread refreshed.
        """
        self._listeners.append(callback)

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    # --- refreshing ----------------------------------------------------------------------------------------

    def _refreshed(self, asked: float) -> WorkingCopy:
        """The working copy, compared with the documents after the moment ``asked``. The lock is held."""
        self._ready()
        copy = self._copy = self._copy or self._open_copy()
        if not self._background:
            try:
                self._compare(copy)
            except ArtifactError as error:
                if not self._rebuildable(error):
                    raise
                self._build(self._progress, None)
                self._compare(copy)
            return copy
        if self._first is not None and self._first.reading:
            return copy  # what is read by now
        if self._checked < asked:  # else another thread compared while this one waited for the lock
            began = time.monotonic()
            try:
                self._compare(copy)
            except ArtifactError as error:
                if not self._rebuildable(error):
                    raise
                copy.begin_empty(self._options)
                end = began + self._reading
                self._read_whole = False
                while time.monotonic() < end and not self._read_whole:
                    done, total = copy.read_some(PAGES)
                    self._read_whole = done >= total
            self._checked = began
        if copy.provisional and not self._building and time.monotonic() >= self._retry_at:
            self._begin_build()
        return copy

    def _compare(self, copy: WorkingCopy) -> None:
        before, known = copy.indexed, copy.opened
        copy.refresh()
        if copy.indexed is not before:
            if known:
                self._changes.append(freshness.compare(before, copy.indexed))
            if self._background and copy.pending:
                self._backlog.poke()

    def _tell(self) -> None:
        with self.lock:
            changes, self._changes = [each for each in self._changes if each], []
        for each in changes:
            for listener in tuple(self._listeners):
                try:
                    listener(each)
                except Exception:  # somebody else's code must not take the answer with it
                    logger.exception("A listener to changed pages failed")

    def look(self) -> None:
        """Something moved, says the watcher or whoever replaced the index: read it before it is asked for."""
        try:
            with self.lock:
                if not self.closed and self._copy is not None and self._copy.opened:
                    self._refreshed(time.monotonic())
        except AnvilError as error:
            logger.debug("Nothing was refreshed ahead of the next question: %s", error)
        finally:
            self._tell()

    # --- what takes long -----------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the index and load the model, behind; returns at once. A second call does nothing more."""
        with self.lock:
            if progress is not None:
                self._progress = progress
            if self.closed or self._starter is not None:
                return
            self._starter = threading.Thread(target=self._warm, name="anvil-start", daemon=True)
            self._starter.start()
            if self._watcher is not None:
                self._watcher.start()

    def _warm(self) -> None:
        from anvil import blocks, searching  # noqa: F401 - the first question, or the first edit, would wait for them

        try:
            self._ahead(True)
            with self.lock:
                copy = self._refreshed(time.monotonic())
                self.notes(copy)
            self.question("warm", "hybrid")
            with self.lock:
                if self._semantic and not self.closed:
                    copy.searcher.warm()
        except AnvilError as error:  # each question says so itself
            logger.debug("Nothing was opened ahead of the first question: %s", error)
        finally:
            self._tell()

    @property
    def _building(self) -> bool:
        return self._first is not None and self._first.running

    def _begin_build(self) -> None:
        self._retry_at = time.monotonic() + RETRY
        self._first = FirstBuild(
            self._read_some, self._build, self._built, lambda *told: self._progress(*told), not self._read_whole
        )
        self._first.start()

    def _read_some(self) -> tuple[int, int]:
        try:
            with self.lock:
                assert self._copy is not None
                if self.closed:
                    return 0, 0
                before = self._copy.indexed
                told = self._copy.read_some(PAGES)
                self._changes.append(freshness.compare(before, self._copy.indexed))
                return told
        finally:
            self._tell()

    def _built(self) -> None:
        """The first build is over: its artifact is opened; without one, the text at hand gets its vectors."""
        with self.lock:
            self._checked = 0.0
            if self._copy is not None and not self.closed:
                self._backlog.poke()
        self.look()

    def _to_embed(self) -> WorkingCopy | None:
        """The copy whose vectors are to be made here: not those that a build is making anyway."""
        return None if self._building or self._copy is None or not self._copy.opened else self._copy

    # --- life ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the threads, then let go of the files. A second call does nothing."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
        for each in (self._watcher, self._first, self._backlog):
            if each is not None:
                each.close()
        if self._starter is not None and self._starter is not threading.current_thread():
            self._starter.join(60)
        with self.lock:
            if self._copy is not None:
                self._copy.close()
