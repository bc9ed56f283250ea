"""Progress of long work, such as the first build: to the log and to clients.

Any thread may report. Messages to clients are sent in the event loop. A server begins without one, so asyncio is
imported when it is used.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from anvil.server.logs import event

if TYPE_CHECKING:
    import asyncio

Watcher = Callable[[float, float, str], Awaitable[None]]
"""Called with (done, total, message). ``done`` never decreases."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Time between two log lines, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.values.Progress` that reports to the log, to :meth:`watch`-ing requests, and to
    :attr:`log_to_clients`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchers: set[Watcher] = set()
        self.log_to_clients: Callable[[str], Awaitable[None]] | None = None
        self._stage, self._base, self._done, self._total = "", 0, 0, 0
        self._logged = time.monotonic() - LOG_INTERVAL_S + 1.0
        self._notified = 0.0

    def attach(self) -> None:
        """Send to clients too from now on, in the running event loop."""
        import asyncio

        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Stop sending to clients."""
        self._loop = None

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
            place = (self._base + done, self._base + total)
        if log:
            event(logging.INFO, message)
        loop = self._loop
        if loop is not None and (notify or log):
            try:
                loop.call_soon_threadsafe(self._send, *place, message, log)
            except RuntimeError:  # the loop was closed meanwhile, and with it all connections
                self._loop = None

    def _send(self, done: float, total: float, message: str, log: bool) -> None:
        sending = [watcher(done, total, message) for watcher in self._watchers]
        if log and self.log_to_clients is not None:
            sending.append(self.log_to_clients(message))
        for work in sending:
            self.start(work)

    def start(self, work: Awaitable[None]) -> None:
        """Run ``work`` as a task of the event loop. Its exceptions are logged."""

        import asyncio

        async def run() -> None:
            try:
                await work
            except Exception as error:
                event(logging.DEBUG, "a client could not be notified", error=type(error).__name__)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` with the progress until the returned function is called."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)
