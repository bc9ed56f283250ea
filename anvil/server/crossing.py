"""The one place where the protocol's event loop hands work to threads: the core below is synchronous."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio.to_thread

from anvil.errors import AnvilError
from anvil.server.logs import event

T = TypeVar("T")
THREADS = 8
"""Calls that may be under way at once; more of them wait their turn."""


class Crossing:
    """Asks one surface's object from an event loop."""

    def __init__(self, subject: Any) -> None:
        self.subject = subject
        self._limiter = anyio.CapacityLimiter(THREADS)

    async def ask(self, name: str, call: Callable[[Any], T]) -> T:
        """What ``call`` returns or raises, run in a thread.

        When the caller goes away the thread is left to finish by itself. ``name`` is for the log.
        """
        started = time.perf_counter()
        outcome = "answered"
        try:
            return await anyio.to_thread.run_sync(call, self.subject, abandon_on_cancel=True, limiter=self._limiter)
        except AnvilError:
            outcome = "refused"
            raise
        except BaseException as error:
            outcome = "cancelled" if not isinstance(error, Exception) else "failed"
            raise
        finally:
            event(logging.DEBUG, f"{name} {outcome}", tool=name, ms=round((time.perf_counter() - started) * 1000, 3))
