"""Progress of long work, such as the first build: to the log and to clients. Any thread may report."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anvil.server.logs import event

Send = Callable[[str, dict[str, Any]], object]
"""Sends a notification: its method and params. It is called from any thread, and must not block."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Time between two log lines, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.values.Progress` that reports to the log, to requests with a progress token, and to
    :attr:`log_to_clients`. The progress of a request never decreases."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: set[Callable[[float, float, str], None]] = set()
        self.log_to_clients: Callable[[str], object] | None = None
        self._stage, self._base, self._done, self._total = "", 0, 0, 0
        self._logged = time.monotonic() - LOG_INTERVAL_S + 1.0
        self._notified = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report from any thread: ``stage``, ``done`` of ``total``."""
        now = time.monotonic()
        with self._lock:
            if begins := stage != self._stage or done < self._done:
                self._base += self._total  # one progress bar over all stages, which never goes back
            self._stage, self._done, self._total = stage, done, total
            message = f"{stage} {done} of {total}"
            log = total > 1 and now - self._logged >= LOG_INTERVAL_S
            notify = begins or done >= total or now - self._notified >= NOTIFY_INTERVAL_S
            self._logged = now if log else self._logged
            self._notified = now if notify else self._notified
            if notify or log:  # with the lock, so that nothing is sent once a request has stopped watching
                for watcher in self._watchers:
                    watcher(self._base + done, self._base + total, message)
        if log:
            event(logging.INFO, message)
            if self.log_to_clients is not None:
                self.log_to_clients(message)

    @contextmanager
    def sent(self, token: Any, send: Send) -> Iterator[None]:
        """A context in which progress is sent as notifications, if the request has a progress token."""
        if type(token) not in (int, str):
            yield
            return

        def watcher(done: float, total: float, message: str) -> None:
            params = {"progressToken": token, "progress": done, "total": total, "message": message}
            send("notifications/progress", params)

        with self._lock:
            self._watchers.add(watcher)
        try:
            yield
        finally:
            with self._lock:
                self._watchers.discard(watcher)
