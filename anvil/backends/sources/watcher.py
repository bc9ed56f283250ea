"""File events, and watchfiles' only door: a hint that something moved, so that it is read before it is asked for.

No answer depends on them. Each question compares the documents all the same, because events come late (they are
gathered for a moment), get lost (queues overflow, network folders send none) and end with the folder they watch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

DEBOUNCE_MS = 300
RETRY_S = 5.0
"""Seconds until a folder that could not be watched is tried again."""

logger = logging.getLogger(__name__)


class Watcher:
    """Calls ``moved`` from its own thread soon after something in ``folder`` changed, ``deep``: or below it."""

    def __init__(self, folder: Path, moved: Callable[[], None], *, deep: bool = True) -> None:
        self._folder = folder
        self._moved = moved
        self._deep = deep
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
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # the library's errors have no common base; what it tells is only a hint
                if self.problem is None:
                    logger.warning("No file events for now (%s); each question compares the files all the same.", error)
                self.problem = str(error)
            self._stop.wait(RETRY_S)

    def _listen(self) -> None:
        """Tell of events until the end. Raises whatever ends it before."""
        import watchfiles

        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is gone")
        identity = self._identity()
        for changes in watchfiles.watch(
            self._folder,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=50,
            stop_event=self._stop,
            rust_timeout=1000,
            yield_on_timeout=True,
            recursive=self._deep,
            raise_interrupt=False,
        ):
            if self._stop.is_set():
                return
            if self._identity() != identity:  # what is watched is not what bears the name any more
                raise FileNotFoundError(f"{self._folder} was moved or replaced")
            missed, self.problem = self.problem is not None, None
            if changes or missed:
                self._moved()

    def _identity(self) -> tuple[int, int]:
        found = self._folder.stat()
        return found.st_dev, found.st_ino
