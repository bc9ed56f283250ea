"""Events of the file system, by which a server updates its index ahead of the next query.

Events are only a hint. They are late, because they are collected for a moment; they can get lost, in full queues and on
network folders; and they end when the folder is replaced. So each query compares the documents, too. The folder to
watch is chosen by ``OpenedIndex.watched`` in ``anvil/project_indexes.py``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

DEBOUNCE_MS = 300
"""Events are collected for so long, and passed on together."""
LOOK_MS = 1000
"""Time without events until the watched folder itself is checked: replacing it gives no event."""
WATCH_RETRY_S = 5.0
"""Seconds until a folder that could not be watched is tried again."""
_LIMITS = {
    "watch limit reached": "fs.inotify.max_user_watches=524288",
    "(os error 24)": "fs.inotify.max_user_instances=1024",
}
"""Words in an error of watchfiles -> the setting of Linux that limits it, with a higher value than usual."""
logger = logging.getLogger(__name__)


class Watcher:
    """A thread that calls ``on_change`` soon after a change in ``folder``; with ``deep`` also in its subfolders."""

    def __init__(self, folder: Path, on_change: Callable[[], None], *, deep: bool = True) -> None:
        self._folder = folder
        self._on_change = on_change
        self._deep = deep
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-watcher", daemon=True)
        self.problem: str | None = None
        """Why there are no events at the moment; None without a problem."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # watchfiles' errors have no common base class
                if self.problem is None:
                    reason = str(error).partition(" about [")[0].rstrip(".")  # without the data structures in it
                    raised = (
                        f" To have events: sudo sysctl -w {_LIMITS[words]}" for words in _LIMITS if words in reason
                    )
                    message = "No file events for now (%s). Each query still compares the files.%s"
                    logger.warning(message, reason, next(raised, ""))
                self.problem = str(error)
            self._stop.wait(WATCH_RETRY_S)

    def _listen(self) -> None:
        """Pass events on until the watcher is closed. Raises an exception if watching fails."""
        import watchfiles

        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is gone")
        identity = self._identity()
        for changes in watchfiles.watch(
            self._folder,
            watch_filter=None,  # the default filter leaves out names that may be pages here
            debounce=DEBOUNCE_MS,
            step=50,
            stop_event=self._stop,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            recursive=self._deep,
            raise_interrupt=False,  # Ctrl-C is handled by the main thread
        ):
            if self._stop.is_set():
                return
            if self._identity() != identity:  # the watched folder was renamed or replaced
                raise FileNotFoundError(f"{self._folder} was moved or replaced")
            was_failing, self.problem = self.problem is not None, None
            if changes or was_failing:  # during a failure, changes may have been missed
                self._on_change()

    def _identity(self) -> tuple[int, int]:
        state = self._folder.stat()
        return state.st_dev, state.st_ino
