"""Cancellation: whether the caller of the running request still waits for it.

A server sets :data:`WANTED`. Code that waited for a lock calls :func:`still_wanted` before it starts, so a request
whose client disconnected costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from anvil.errors import AnvilError

WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
"""Whether the answer can still reach the caller of this context."""


class Abandoned(AnvilError):
    """The call was cancelled, because its caller disconnected."""


def still_wanted() -> None:
    """Raise :class:`Abandoned` if the caller disconnected."""
    if not WANTED.get()():
        raise Abandoned("The caller of this request disconnected.")
