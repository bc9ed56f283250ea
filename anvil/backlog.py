"""Vectors that are made behind the answers, by one thread, a few chunks at a time.

The lock is held to take a few chunks and to put their vectors; the model works without it, so an answer waits for
neither.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from anvil.errors import AnvilError
from anvil.indexing import cut
from anvil.models import Window
from anvil.store.identity import window_key
from anvil.store.writing import quantized

if TYPE_CHECKING:
    from anvil.workingcopy import WorkingCopy

BATCH = 16
"""Chunks embedded between two looks at whether to stop."""
RETRY = 30.0
"""Seconds until what could not be embedded is tried again."""

Rows = list[tuple[int, str, str, str]]
"""(row, title, breadcrumb, content) of chunks."""
Made = tuple[tuple[int, str, str, str], Sequence[Window], Sequence[bytes | None]]
"""A chunk, its windows and their int8 vectors; None where one failed."""

logger = logging.getLogger(__name__)


class Backlog:
    """Makes the vectors that a working copy lacks, from :meth:`poke` on until none does.

    ``lock`` guards the working copy that ``copy`` gives (None: there is none to work on now).
    """

    def __init__(self, lock: threading.RLock, copy: Callable[[], WorkingCopy | None]) -> None:
        self._moved = threading.Condition(lock)
        self._copy = copy
        self._closed = False
        self._rest_until = 0.0
        self._after = -1
        self._lacked = 0
        self._thread: threading.Thread | None = None
        self.failure: str | None = None
        """Why vectors could not be made, last time; None when all is well."""

    def poke(self) -> None:
        """There may be work: the text has changed. The lock is held."""
        self._rest_until, self._after = 0.0, -1
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="anvil-backlog", daemon=True)
            self._thread.start()
        self._moved.notify_all()

    def wait(self, patience: float) -> None:
        """Wait up to ``patience`` seconds for the vectors that lack. The lock is held, and given away meanwhile."""
        end = time.monotonic() + patience
        while self._at_work() and (copy := self._copy()) is not None and copy.pending:
            rest = end - time.monotonic()
            if rest <= 0:
                return
            self._moved.wait(rest)

    def _at_work(self) -> bool:
        return not self._closed and self._rest_until == 0.0 and self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        """Stop after the few chunks at hand. The lock must not be held."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(60)

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            copy, rows = taken
            try:
                made, failure = self._make(copy, rows)
            except AnvilError as error:
                made, failure = [], str(error)
            except Exception as error:  # a model's library may raise anything; the thread must outlive it
                logger.exception("Vectors could not be made")
                made, failure = [], f"{type(error).__name__}: {error}."
            with self._moved:
                if self._copy() is copy:
                    copy.store(made)
                if failure is not None:
                    self.failure = failure
                if failure is not None and not made:  # none succeeded: the next would not either
                    self._rest_until = time.monotonic() + RETRY
                self._moved.notify_all()

    def _take(self) -> tuple[WorkingCopy, Rows] | None:
        """The next few chunks that lack a vector, waiting until there are some; None when it is time to stop."""
        with self._moved:
            while not self._closed:
                copy = self._copy()
                if copy is not None and self._rest_until <= time.monotonic():
                    self._rest_until = 0.0
                    rows = self._next(copy)
                    if rows:
                        return copy, rows
                self._moved.wait(max(self._rest_until - time.monotonic(), 0.01) if self._rest_until else None)
        return None

    def _next(self, copy: WorkingCopy) -> Rows:
        """The next chunks; none when no vector lacks, or when a whole round made none of those that do."""
        for _ in range(2):
            if self._after == -1:
                self._lacked = copy.pending
            rows = copy.lacking(self._after, BATCH)
            if rows:
                self._after = rows[-1][0]
                return rows
            self._after = -1
            if not copy.pending:
                self.failure = None
                return []
            if copy.pending >= self._lacked:
                break
        self._rest_until = time.monotonic() + RETRY
        self._moved.notify_all()
        return []

    def _make(self, copy: WorkingCopy, rows: Rows) -> tuple[list[Made], str | None]:
        """What is to be stored for each chunk, and why some of it failed."""
        windows = cut(rows, copy.provider)
        texts = {window_key(window.text): window.text for each in windows for window in each}
        with self._moved:
            vectors = copy.known(list(texts)) if self._copy() is copy else {}
        missing = [key for key in texts if key not in vectors]
        failure = None
        if missing:
            found = copy.provider.embed([texts[key] for key in missing])
            for number, (key, vector) in enumerate(zip(missing, quantized(found.vectors), strict=True)):
                if number in found.failed:
                    failure = found.failed[number]
                else:
                    vectors[key] = vector
        return [
            (chunk, each, [vectors.get(window_key(window.text)) for window in each])
            for chunk, each in zip(rows, windows, strict=True)
            if any(window_key(window.text) in vectors for window in each)
        ], failure
