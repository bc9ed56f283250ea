"""An orderly end: the first SIGINT or SIGTERM asks for it, a second one does not wait."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

from anvil.server.logs import event

SIGNALS = [signal.SIGINT, signal.SIGTERM]


class Stopping:
    """Whether the process was asked to stop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def until(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` to its end, or cancel it when the process is asked to stop."""
        task, asked = asyncio.ensure_future(work), asyncio.ensure_future(self.asked.wait())
        try:
            await asyncio.wait([task, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (task, asked):
                each.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        try:
            await task
        except asyncio.CancelledError:
            event(logging.DEBUG, "stopped")


@contextmanager
def exit_by_signal() -> Iterator[None]:
    """While inside, a signal ends the process with exit code 0, whatever it waits for; files are closed on the way."""

    def received(number: int, _: FrameType | None) -> None:
        raise SystemExit(0)

    with _handling(received):
        yield


@asynccontextmanager
async def stopped_by_signal() -> AsyncIterator[Stopping]:
    """While inside, a signal sets :attr:`Stopping.asked`; a second one does not wait."""
    stopping, loop = Stopping(), asyncio.get_running_loop()

    def received(number: int, _: FrameType | None) -> None:
        if stopping.asked.is_set():
            os._exit(128 + number)
        loop.call_soon_threadsafe(stopping.asked.set)

    with _handling(received):
        yield stopping


@contextmanager
def _handling(received: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    try:
        for each in SIGNALS:
            before[each] = signal.signal(each, received)
    except ValueError:  # only the main thread may; in another one signals are somebody else's
        event(logging.DEBUG, "signals are left to the main thread")
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
