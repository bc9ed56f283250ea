"""Calls of synchronous code from the event loop, in a small pool of threads.

asyncio is imported by the first call: the first answers over stdio need no event loop, and it takes long to import.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from anvil.server.logs import timed
from anvil.system.cancellation import WANTED

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
MAX_THREADS = 8
"""Calls at once. Others wait in a queue."""
IDLE_TIMEOUT_S = 10.0
"""A thread without a call for so long ends."""


class _Call:
    """One call: the function, and the future that its caller awaits. ``wanted`` is false when the caller went away."""

    def __init__(self, run: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
        self.wanted = True
        self._run, self._answer, self._loop = run, answer, answer.get_loop()
        self._context = contextvars.copy_context()

    def run(self) -> None:
        """Run the function in this thread, and pass its result or exception to the event loop."""
        self._context.run(WANTED.set, lambda: self.wanted)
        value, error = None, None
        try:
            value = self._context.run(self._run)
        except BaseException as raised:
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:  # the loop has ended: there is no caller any more
            return

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self._answer.done():
            return
        if error is None:
            self._answer.set_result(value)
        else:
            self._answer.set_exception(error)


class ThreadBridge:
    """Calls one toolset's object from an event loop.

    A call keeps its thread until the function returns, even if its caller went away. If the caller goes away while the
    call is in the queue, the call is dropped. The threads are daemons, so the process can end while one is running.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self._waiting: deque[_Call] = deque()
        self._moved = threading.Condition()
        self._threads = self._idle = 0

    async def call(self, name: str, call: Callable[[Any], T]) -> T:
        """What ``call`` returns or raises, run in a thread. ``name`` is for the log."""
        import asyncio

        answer = asyncio.get_running_loop().create_future()
        pending = _Call(lambda: call(self.target), answer)
        self._enqueue(pending)
        try:
            with timed(name):
                result: T = await answer
            return result
        finally:
            pending.wanted = False

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
        """The next call that is wanted; None when there was none for :data:`IDLE_TIMEOUT_S`: the thread then ends."""
        with self._moved:
            while True:
                while self._waiting:
                    call = self._waiting.popleft()
                    if call.wanted:
                        return call
                self._idle += 1
                notified = self._moved.wait(IDLE_TIMEOUT_S)
                self._idle -= 1
                if not notified and not self._waiting:
                    self._threads -= 1
                    return None
