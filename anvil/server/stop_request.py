"""The request to stop a running event loop: a signal asks for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from anvil.server.logs import event
from anvil.server.signals import handling, is_repeated


class StopRequest:
    """The request to stop, as an event of the running loop."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()

    async def run_until(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` to its end, or cancel it when the process is asked to stop."""
        task, requested = asyncio.ensure_future(work), asyncio.ensure_future(self.requested.wait())
        try:
            await asyncio.wait([task, requested], return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            requested.cancel()
        await asyncio.gather(requested, return_exceptions=True)
        try:
            await task
        except asyncio.CancelledError:
            event(logging.DEBUG, "stopped")


@asynccontextmanager
async def stop_on_signal() -> AsyncIterator[StopRequest]:
    """A context in which a signal sets :attr:`StopRequest.requested`."""
    stop, loop = StopRequest(), asyncio.get_running_loop()

    def on_signal(number: int, _: FrameType | None) -> None:
        if not is_repeated(number):
            loop.call_soon_threadsafe(stop.requested.set)

    with handling(on_signal):
        yield stop
