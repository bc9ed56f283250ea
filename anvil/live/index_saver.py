"""The index file of a server, written when no page has changed for a while, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from anvil.errors import AnvilError
from anvil.live.background_build import join

QUIET_S = 60.0
"""How long no page must have changed before the file is written."""

logger = logging.getLogger(__name__)


class IndexSaver:
    """Calls ``save`` once, ``QUIET_S`` seconds after the last :meth:`wake`. It may raise :class:`AnvilError`."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._changed = threading.Condition()
        self._save_at: float | None = None
        self._saving = False
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def is_due(self) -> bool:
        """Whether the file will be written, or is being written."""
        return self._save_at is not None or self._saving

    def wake(self) -> None:
        """A page has changed, or the file is found to be of another model."""
        with self._changed:
            self._save_at = time.monotonic() + QUIET_S
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="anvil-saver", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread, after a save that is running: that is to end early by itself."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        join(self._thread)

    def _run(self) -> None:
        while self._wait():
            try:
                self._save()
            except AnvilError as error:  # answers do not need the file; the next change tries again
                logger.debug("The index file was not brought up to date: %s", error)
            except Exception:
                logger.exception("The index file could not be brought up to date")
            finally:
                self._saving = False

    def _wait(self) -> bool:
        """Wait until it is time to save; False when the server ends."""
        with self._changed:
            while not self._closed:
                if self._save_at is None:
                    self._changed.wait()
                elif (rest_s := self._save_at - time.monotonic()) > 0:
                    self._changed.wait(rest_s)
                else:
                    self._save_at, self._saving = None, True
                    return True
        return False
