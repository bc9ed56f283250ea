"""The threads of a server that work between queries: the first build, missing vectors, and saving the index file.

No thread holds the lock of the memory copy while a model runs, so no answer waits for a model in a thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anvil.errors import AnvilError
from anvil.index_file.publish import WAITING
from anvil.values import RETRY_S, Progress

if TYPE_CHECKING:
    from anvil.index_file.table_rows import ChunkText
    from anvil.live.memory_copy import ChunkVectors, MemoryCopy

CHUNKS_PER_STEP = 16
"""Chunks embedded between two checks whether to stop."""
QUIET_S = 60.0
"""Seconds without a changed page until the index file is written."""
JOIN_TIMEOUT_S = 60.0
"""Seconds that closing waits for a thread."""

logger = logging.getLogger(__name__)


def join(thread: threading.Thread | None) -> None:
    """Wait for a thread that was asked to stop, unless it is the current one or was never started."""
    if thread is not None and thread.ident is not None and thread is not threading.current_thread():
        thread.join(JOIN_TIMEOUT_S)


class _Cancelled(Exception):
    """Raised in a build after :meth:`InitialBuild.close`. No AnvilError, because a build catches some of them."""


@dataclass(eq=False)
class InitialBuild:
    """The first build of an index, in a thread. It makes one attempt.

    First the pages are read into the memory copy, so that partial answers are possible at once. Then the index file is
    built, by this process or by another one that began earlier.
    """

    read_pages: Callable[[], tuple[int, int]]
    """Reads some pages and returns (done, total)."""
    build: Callable[[Progress], object]
    """Makes the index file."""
    ended: Callable[[], None]
    """Called after the build, also after one that failed, but not after :meth:`close`."""
    progress: Progress
    reading: bool
    """Whether some pages are not read yet, so that answers come from a part of the pages."""
    running = True
    """Whether the build is running, or was not started yet."""
    note: str | None = "The index is being built."
    """A sentence for the notes of an answer; None after a successful build."""

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-first-build", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Cancel the build at its next progress report, and wait for the thread."""
        self._stop.set()
        join(self._thread)

    def _run(self) -> None:
        try:
            self._read_all()
            self.build(self._report)
            self.note = None
        except _Cancelled:
            self.note = None
            return
        except AnvilError as error:  # answers still come from the pages that were read
            self.note = f"The index could not be built: {error}"
        except Exception as error:
            logger.exception("The first build failed")
            self.note = f"The index could not be built ({type(error).__name__}: {error})."
        finally:
            self.reading = self.running = False
        self.ended()

    def _read_all(self) -> None:
        done_before = -1
        while True:
            done, total = self.read_pages()
            self.progress("reading", done, total)
            self._raise_if_cancelled()
            if done >= total or done <= done_before:  # no progress: pages change as fast as they are read
                break
            done_before = done
            self.note = f"The index is being built: {done:,} of {total:,} pages."
        self.reading = False
        self.note = "The index is being built: all text is there already."

    def _report(self, stage: str, done: int, total: int) -> None:
        self._raise_if_cancelled()
        self.progress(stage, done, total)
        if stage.startswith(WAITING):  # this build will find the other's index up to date, and embed nothing
            self.note = "Another process is building the index: until it is done, search goes by words."
        elif stage == "embedding":
            self.note = (
                f"The index is being built: {done:,} of {total:,} chunks have vectors. Until all have, only the best "
                "matches by words are compared by meaning."
            )

    def _raise_if_cancelled(self) -> None:
        if self._stop.is_set():
            raise _Cancelled


class VectorWorker:
    """A thread that makes the missing vectors of a memory copy, a few chunks at a time. :meth:`wake` starts it.

    The lock is held while chunks are taken and while their vectors are saved. The model runs without the lock.

    - ``lock`` guards the memory copy.
    - ``copy`` returns the memory copy; None if none is open.
    - ``build_running``: whether a build makes the vectors now. Then only chunks of :meth:`embed_first` are embedded.
    """

    def __init__(
        self, lock: threading.RLock, copy: Callable[[], MemoryCopy | None], build_running: Callable[[], bool]
    ) -> None:
        self._changed = threading.Condition(lock)
        self._closed = False
        self._thread: threading.Thread | None = None
        self._copy = copy
        self._build_running = build_running
        self._first: list[ChunkText] = []
        """The chunks of :meth:`embed_first` that the thread has not taken yet."""
        self._embedding_first = False
        """Whether the model runs on chunks of :meth:`embed_first` now."""
        self._pause_until = 0.0
        """When the thread tries again after a failure, in seconds of the monotonic clock; 0 without a pause."""
        self._last_row = -1
        """The row of the last chunk that was taken in this round over all chunks; -1 before a round."""
        self._pending_at_start = 0
        """The number of missing vectors at the start of this round."""
        self.failure: str | None = None
        """Why the last vectors could not be made; None without a failure."""

    def wake(self) -> None:
        """Look for missing vectors, because the text has changed. The caller holds the lock."""
        self._pause_until, self._last_row = 0.0, -1
        self._start()

    def _start(self) -> None:
        """Let the thread look for work. The caller holds the lock."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="anvil-vectors", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def close(self) -> None:
        """End the thread after its current batch. The caller must not hold the lock, which the thread may wait for."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        join(self._thread)

    def embed_first(self, chunks: Sequence[ChunkText], timeout_s: float) -> None:
        """Embed these chunks before all others, and wait for their vectors up to ``timeout_s`` seconds. The caller
        holds the lock; it is released during the wait."""
        self._first = list(chunks)
        self._start()
        self._changed.wait_for(lambda: self._closed or not (self._first or self._embedding_first), timeout_s)

    def embed_now(self, copy: MemoryCopy, chunks: list[ChunkText]) -> None:
        """Embed these chunks in this thread. The caller holds the lock, also while the model runs."""
        vectors, self.failure = self._embed(copy, chunks)
        copy.save_vectors(vectors)

    def wait(self, timeout_s: float) -> None:
        """Wait for the missing vectors up to ``timeout_s`` seconds. The caller's lock is released meanwhile."""

        def is_idle() -> bool:
            copy = self._copy()
            return not self._working() or copy is None or not copy.pending

        self._changed.wait_for(is_idle, timeout_s)

    def _working(self) -> bool:
        return not self._closed and self._pause_until == 0.0 and self._thread is not None and self._thread.is_alive()

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            try:
                goes_on = self._step()
            except AnvilError as error:
                self._failed(str(error))
            except Exception as error:  # from a model's library or a damaged index; the thread must go on
                logger.exception("Vectors could not be made")
                self._failed(f"{type(error).__name__}: {error}.")

    def _step(self) -> bool:
        """Make the vectors of the next few chunks. Returns False after :meth:`close`."""
        work = self._take()
        if work is None:
            return False
        copy, rows = work
        embedded, failure = self._embed(copy, rows)
        with self._changed:
            if self._copy() is copy:  # else another copy was opened while the model ran
                copy.save_vectors(embedded)
            if not embedded and failure is not None:
                self._failed(failure)
            else:
                self.failure = failure or self.failure
                self._embedding_first = False
                self._changed.notify_all()
        return True

    def _failed(self, failure: str) -> None:
        """Pause after a batch without any vector: the next chunks would probably fail, too."""
        with self._changed:
            self.failure = failure
            self._embedding_first = False
            self._pause_until = time.monotonic() + RETRY_S
            self._changed.notify_all()

    def _take(self) -> tuple[MemoryCopy, list[ChunkText]] | None:
        """Wait for chunks without vectors and return a few of them; None after :meth:`close`."""
        with self._changed:
            while not self._closed:
                copy = self._copy()
                if copy is not None and self._first:
                    rows, self._first, self._embedding_first = self._first, [], True
                    return copy, rows
                if self._pause_until <= time.monotonic():
                    self._pause_until = 0.0
                # A running build makes the same vectors. This thread would only take processor time from it.
                if copy is not None and not self._build_running() and not self._pause_until:
                    rows = self._next_rows(copy)
                    if rows:
                        return copy, rows
                self._changed.wait(max(self._pause_until - time.monotonic(), 0.01) if self._pause_until else None)
        return None

    def _next_rows(self, copy: MemoryCopy) -> list[ChunkText]:
        """The next few chunks without vectors; none if no vector is missing, or if a whole round made no vector."""
        for _ in range(2):  # the remaining chunks of this round, then a new round from the first chunk
            if self._last_row == -1:
                self._pending_at_start = copy.pending
            rows = copy.pending_chunks(self._last_row, CHUNKS_PER_STEP)
            if rows:
                self._last_row = rows[-1][0]
                return rows
            self._last_row = -1
            if not copy.pending:
                self.failure = None
                return []
            if copy.pending >= self._pending_at_start:  # the whole round made no vector, so another would not, either
                break
        self._pause_until = time.monotonic() + RETRY_S
        self._changed.notify_all()
        return []

    def _embed(self, copy: MemoryCopy, rows: list[ChunkText]) -> tuple[list[ChunkVectors], str | None]:
        """The windows and vectors of each chunk that has any, and the reason of a failure."""
        from anvil.build.row_updates import windows_of
        from anvil.index_file.table_rows import quantized, window_key
        from anvil.live.memory_copy import ChunkVectors

        windows_of_rows = windows_of(rows, copy.provider)
        texts = {window_key(window.text): window.text for windows in windows_of_rows for window in windows}
        with self._changed:  # only while the copy is read; the model runs without the lock
            vectors = copy.artifact_vectors(list(texts)) if self._copy() is copy else {}
        missing = [key for key in texts if key not in vectors]
        failure = None
        if missing:
            result = copy.provider.embed([texts[key] for key in missing])
            for number, (key, vector) in enumerate(zip(missing, quantized(result.vectors), strict=True)):
                if number in result.failed:
                    failure = result.failed[number]
                else:
                    vectors[key] = vector
        return [
            ChunkVectors(row, windows, [vectors.get(window_key(window.text)) for window in windows])
            for row, windows in zip(rows, windows_of_rows, strict=True)
            if any(window_key(window.text) in vectors for window in windows)
        ], failure


class IndexSaver:
    """A thread that calls ``save``, ``QUIET_S`` seconds after the last :meth:`wake`. ``save`` may raise
    :class:`AnvilError`, which is logged."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._timer: threading.Timer | None = None
        self._saving = threading.Lock()
        """Held during a save: the next timer can run out while a save is still running."""

    @property
    def is_due(self) -> bool:
        """Whether the file will be written soon, or is being written."""
        return self._timer is not None and self._timer.is_alive()

    def wake(self) -> None:
        """Start the wait again: a page has changed, or the index file was made by another model."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(QUIET_S, self._run)
        self._timer.name, self._timer.daemon = "anvil-saver", True
        self._timer.start()

    def close(self) -> None:
        """Cancel the waiting save, and wait for a running one."""
        if self._timer is not None:
            self._timer.cancel()
            if self._saving.acquire(timeout=JOIN_TIMEOUT_S):
                self._saving.release()
            join(self._timer)

    def _run(self) -> None:
        with self._saving:
            try:
                self._save()
            except AnvilError as error:  # no answer needs the file, and the next change tries again
                logger.debug("The index file was not brought up to date: %s", error)
            except Exception:
                logger.exception("The index file could not be brought up to date")
