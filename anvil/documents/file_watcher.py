"""Events of the file system: a hint, so that the index is updated before the next query.

Each query compares the documents too, because events are late (they are collected for a moment), can get lost (full
queues, network folders) and end when the folder is replaced. Which folder is watched is decided in ``anvil/live/``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

DEBOUNCE_MS = 300
LOOK_MS = 1000
"""Time without events until the watched folder itself is looked at: there is no event when it is replaced."""
WATCH_RETRY_S = 5.0
"""Time until a folder that could not be watched is tried again."""
_LIMITS = {
    "watch limit reached": "fs.inotify.max_user_watches=524288",
    "(os error 24)": "fs.inotify.max_user_instances=1024",
}
"""Words of watchfiles' errors -> the limit of Linux that was reached, with a higher number than the usual ones."""
logger = logging.getLogger(__name__)


class Watcher:
    """Calls ``moved`` from its own thread soon after a change in ``folder``; with ``deep`` also in subfolders."""

    def __init__(self, folder: Path, moved: Callable[[], None], *, deep: bool = True) -> None:
        self._folder = folder
        self._moved = moved
        self._deep = deep
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-watcher", daemon=True)
        self.problem: str | None = None
        """Why there are no events now; None without a problem."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. A second call does nothing."""
        self._stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # watchfiles' errors have no common base class
                if self.problem is None:
                    reason = str(error).partition(" about [")[0].rstrip(".")  # without the structures of its library
                    raised = (
                        f" To have events: sudo sysctl -w {_LIMITS[words]}" for words in _LIMITS if words in reason
                    )
                    message = "No file events for now (%s). Each query still compares the files.%s"
                    logger.warning(message, reason, next(raised, ""))
                self.problem = str(error)
            self._stop.wait(WATCH_RETRY_S)

    def _listen(self) -> None:
        """Pass events on until the watcher is closed. Raises when watching fails."""
        import watchfiles

        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is gone")
        identity = self._identity()
        for changes in watchfiles.watch(
            self._folder,
            watch_filter=None,  # its own leaves out names that may be pages here
            debounce=DEBOUNCE_MS,
            step=50,
            stop_event=self._stop,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            recursive=self._deep,
            raise_interrupt=False,  # Ctrl-C is the main thread's
        ):
            if self._stop.is_set():
                return
            if self._identity() != identity:  # the watched folder was renamed or replaced
                raise FileNotFoundError(f"{self._folder} was moved or replaced")
            missed, self.problem = self.problem is not None, None  # after a failure, there may have been changes
            if changes or missed:
                self._moved()

    def _identity(self) -> tuple[int, int]:
        state = self._folder.stat()
        return state.st_dev, state.st_ino
