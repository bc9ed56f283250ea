"""The one place where the protocol's event loop hands work to threads: the core below is synchronous."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from anvil.core.cancellation import WANTED
from anvil.errors import AnvilError
from anvil.interfaces.mcp_server.logs import event

T = TypeVar("T")
MAX_THREADS = 8
"""Calls that may be under way at once; more of them wait their turn."""
IDLE_TIMEOUT_S = 10.0
"""Seconds that a thread waits for the next call before it ends."""


class _Call:
    """One call: what to run, and where its caller waits. ``wanted`` is false when the caller went away."""

    def __init__(self, run: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
        self.wanted = True
        self._run, self._answer, self._loop = run, answer, answer.get_loop()
        self._context = contextvars.copy_context()

    def run(self) -> None:
        """Run it in this thread, and hand over what it returns or raises."""
        self._context.run(WANTED.set, lambda: self.wanted)
        value, error = None, None
        try:
            value = self._context.run(self._run)
        except BaseException as raised:
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:  # the loop has ended: nobody is left to answer
            return

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self._answer.done():
            return
        if error is None:
            self._answer.set_result(value)
        else:
            self._answer.set_exception(error)


class ThreadBridge:
    """Asks one toolset's object from an event loop.

    A call keeps its thread until its work really ends, whether or not its caller still waits. One whose caller goes
    away before its turn is never begun. The threads are daemons: the process can end while one is at work.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self._waiting: deque[_Call] = deque()
        self._moved = threading.Condition()
        self._threads = self._idle = 0

    async def call(self, name: str, call: Callable[[Any], T]) -> T:
        """What ``call`` returns or raises, run in a thread. ``name`` is for the log."""
        started = time.perf_counter()
        outcome = "answered"
        answer = asyncio.get_running_loop().create_future()
        made = _Call(lambda: call(self.target), answer)
        self._enqueue(made)
        try:
            found: T = await answer
            return found
        except AnvilError:
            outcome = "refused"
            raise
        except BaseException as error:
            outcome = "cancelled" if not isinstance(error, Exception) else "failed"
            raise
        finally:
            made.wanted = False
            event(logging.DEBUG, f"{name} {outcome}", tool=name, ms=round((time.perf_counter() - started) * 1000, 3))

    def _enqueue(self, call: _Call) -> None:
        with self._moved:
            self._waiting.append(call)
            self._moved.notify()
            if len(self._waiting) > self._idle and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name="anvil-call", daemon=True).start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.run()
            del call  # its answer may be large

    def _next(self) -> _Call | None:
        """The next call that is wanted; None when none came for a while, and the thread is to end."""
        with self._moved:
            while True:
                while self._waiting:
                    call = self._waiting.popleft()
                    if call.wanted:
                        return call
                self._idle += 1
                told = self._moved.wait(IDLE_TIMEOUT_S)
                self._idle -= 1
                if not told and not self._waiting:
                    self._threads -= 1
                    return None
