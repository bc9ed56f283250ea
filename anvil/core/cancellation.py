"""Whether anybody still waits for the call that a thread is at work on.

A server notes here how to tell; what takes its turn behind a lock looks before it begins, so that calls whose clients
went away cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from anvil.errors import AnvilError

WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
"""Whether the answer to the call of this context can still reach its caller."""


class Abandoned(AnvilError):
    """The call was given up: its caller is gone."""


def still_wanted() -> None:
    """Go on if somebody waits for the answer, else raise :class:`Abandoned`."""
    if not WANTED.get()():
        raise Abandoned("Nobody waits for this answer any more.")
