"""Progress of long work, such as the first build: to the log, and to the clients that wait or listen.

The core reports from whatever thread works; everything here that touches clients runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable

from anvil.interfaces.mcp_server.logs import event

Watcher = Callable[[float, float, str], Awaitable[None]]
"""Told (done, total, message); ``done`` only grows."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Seconds between two lines of the log, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.models.documents.Progress` that tells many: :meth:`watched` requests and :attr:`listeners`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchers: set[Watcher] = set()
        self.log_to_clients: Callable[[str], Awaitable[None]] | None = None
        self._stage, self._base, self._done, self._total = "", 0, 0, 0
        self._logged = time.monotonic() - LOG_INTERVAL_S + 1.0
        self._told = 0.0

    def attach(self) -> None:
        """From now on tell clients too, in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Tell no client any more."""
        self._loop = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report from any thread: ``stage``, ``done`` of ``total``."""
        now = time.monotonic()
        with self._lock:
            if begins := stage != self._stage or done < self._done:
                self._base += self._total  # one bar over all that is done, which never goes back
            self._stage, self._done, self._total = stage, done, total
            message = f"{stage} {done} of {total}"
            log = total > 1 and now - self._logged >= LOG_INTERVAL_S
            tell = begins or done >= total or now - self._told >= NOTIFY_INTERVAL_S
            self._logged = now if log else self._logged
            self._told = now if tell else self._told
            place = (self._base + done, self._base + total)
        if log:
            event(logging.INFO, message)
        loop = self._loop
        if loop is not None and (tell or log):
            try:
                loop.call_soon_threadsafe(self._spread, *place, message, log)
            except RuntimeError:  # the loop was closed meanwhile: nobody is left to tell
                self._loop = None

    def _spread(self, done: float, total: float, message: str, log: bool) -> None:
        told = [watcher(done, total, message) for watcher in self._watchers]
        if log and self.log_to_clients is not None:
            told.append(self.log_to_clients(message))
        for each in told:
            self.start(each)

    def start(self, work: Awaitable[None]) -> None:
        """Run ``work`` in the event loop; what goes wrong is logged, nobody waits for it."""

        async def run() -> None:
            try:
                await work
            except Exception as error:
                event(logging.DEBUG, "a client could not be told", error=type(error).__name__)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tell ``watcher`` until the returned function is called."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)
