"""File events, and watchfiles' only door: a hint that something moved, so that it is read before it is asked for.

No answer depends on them. Each question compares the documents all the same, because events come late (they are
gathered for a moment), get lost (queues overflow, network folders send none) and end with the folder they watch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

DEBOUNCE_MS = 300
RETRY = 5.0
"""Seconds until a folder that could not be watched is tried again."""

logger = logging.getLogger(__name__)


class Watcher:
    """Calls ``moved`` from its own thread soon after something below ``folders`` changed."""

    def __init__(self, folders: Sequence[Path], moved: Callable[[], None]) -> None:
        self._folders = folders
        self._moved = moved
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-watcher", daemon=True)
        self.problem: str | None = None
        """Why there are no events now; None while there are."""

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether events arrive, as far as one can know."""
        return self._thread.is_alive() and self.problem is None

    def close(self) -> None:
        """Stop. Calling it twice is fine."""
        self._stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _run(self) -> None:
        import watchfiles

        while not self._stop.is_set():
            try:
                self.problem = None
                for changes in watchfiles.watch(
                    *self._folders, debounce=DEBOUNCE_MS, step=50, stop_event=self._stop, rust_timeout=1000,
                    yield_on_timeout=True, watch_filter=None, raise_interrupt=False,
                ):  # fmt: skip
                    if self._stop.is_set():
                        return
                    if not all(folder.is_dir() for folder in self._folders):
                        raise FileNotFoundError("a watched folder is gone")
                    if changes:
                        self._moved()
            except Exception as error:  # the library's errors have no common base; what it does is only a hint
                self.problem = str(error)
                logger.warning("File events are off for now (%s); each question still compares the files.", error)
            self._stop.wait(RETRY)
