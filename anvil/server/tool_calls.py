"""Calls of tools: each one is a line in the log, and runs in a small pool of threads until its caller goes away.

asyncio is imported by the first call that needs it.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from anvil.errors import AnvilError
from anvil.requests import WANTED
from anvil.server.logs import event, log

T = TypeVar("T")
MAX_THREADS = 8
"""Calls at once. Others wait in a queue."""
IDLE_TIMEOUT_S = 10.0
"""Time after which a thread without a call ends."""


@contextmanager
def timed(tool: str) -> Iterator[None]:
    """Log a line for the call of a tool, or of a method of the protocol: its outcome and its duration. Level debug."""
    started = time.perf_counter()
    outcome = "answered"
    try:
        yield
    except AnvilError:
        outcome = "refused"
        raise
    except BaseException as error:
        outcome = "failed" if isinstance(error, Exception) else "cancelled"
        raise
    finally:
        if log.isEnabledFor(logging.DEBUG):
            event(logging.DEBUG, f"{tool} {outcome}", tool=tool, ms=round((time.perf_counter() - started) * 1000, 3))


class Call:
    """One call. ``wanted`` becomes false when the caller goes away."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.wanted = True
        self._run = run
        self._context = contextvars.copy_context()

    def run(self) -> None:
        self._context.run(WANTED.set, lambda: self.wanted)
        self._context.run(self._run)


class Workers:
    """Threads that run calls in order.

    A call keeps its thread until the function returns, even if its caller goes away. If the caller goes away while the
    call is in the queue, the call is dropped. The threads are daemons, so the process can end during a call.
    """

    def __init__(self) -> None:
        self._waiting: deque[Call] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def submit(self, call: Call) -> None:
        with self._changed:
            self._waiting.append(call)
            self._changed.notify()
            if len(self._waiting) > self._idle and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name="anvil-call", daemon=True).start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.run()
            del call  # frees its answer, which may be large, while the thread waits

    def _next(self) -> Call | None:
        """The next call that is wanted. None if there was none for :data:`IDLE_TIMEOUT_S`, so that the thread ends."""
        with self._changed:
            while True:
                while self._waiting:
                    call = self._waiting.popleft()
                    if call.wanted:
                        return call
                self._idle += 1
                notified = self._changed.wait(IDLE_TIMEOUT_S)
                self._idle -= 1
                if not notified and not self._waiting:
                    self._threads -= 1
                    return None


class ThreadBridge:
    """Calls of one object from an event loop, in threads."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self._workers = Workers()

    async def call(self, name: str, call: Callable[[Any], T]) -> T:
        """Run ``call`` in a thread. Returns and raises what it does, and logs a line with this ``name``."""
        with timed(name):
            return await self.run(call)

    async def run(self, call: Callable[[Any], T]) -> T:
        """Run ``call`` in a thread, without a line in the log."""
        import asyncio
        import concurrent.futures

        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(call(self.target))
                except BaseException as error:
                    answer.set_exception(error)

        pending = Call(run)
        self._workers.submit(pending)
        try:
            return await asyncio.wrap_future(answer)
        finally:
            pending.wanted = False
