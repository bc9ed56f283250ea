"""Progress of long work, such as the first build: to the log and to clients. Any thread may report."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from anvil.server.logs import event

Watcher = Callable[[float, float, str], object]
"""Called with (done, total, message) from any thread; it must not block. ``done`` never decreases."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Time between two log lines, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.values.Progress` that reports to the log, to :meth:`watch`-ing requests, and to
    :attr:`log_to_clients`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: set[Watcher] = set()
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

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` with the progress until the returned function is called."""
        with self._lock:
            self._watchers.add(watcher)

        def stop() -> None:
            with self._lock:
                self._watchers.discard(watcher)

        return stop
