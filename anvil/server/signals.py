"""Orderly shutdown of a server: the first SIGINT or SIGTERM ends it within a time limit.

A second SIGTERM changes nothing, since process managers send several. A second SIGINT comes from a person who does not
want to wait, and ends the process at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from anvil.server.logs import event

SIGNALS = [signal.SIGINT, signal.SIGTERM]
SHUTDOWN_TIMEOUT_S = 1.5
"""Time for open requests, files and threads to end. After it the process exits without waiting for them. That is safe,
since its files survive when it is killed at any moment."""

_exit_requested = threading.Event()


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """A context in which a signal raises SystemExit(0), also during a blocking call. So open files are closed."""
    _exit_requested.clear()

    def on_signal(number: int, _: FrameType | None) -> None:
        if not is_repeated(number):
            raise SystemExit(0)

    with handling(on_signal):
        yield
    if _exit_requested.is_set():  # a second SIGTERM must not interrupt the end of the program
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def is_repeated(number: int) -> bool:
    """Whether there was a signal before. If this one is SIGINT, too, the process ends here."""
    if not _exit_requested.is_set():
        _exit_requested.set()
        return False
    if number == signal.SIGINT:
        os._exit(128 + number)
    return True


class ShutdownDeadline:
    """A context whose process exits with code 0 no later than :data:`SHUTDOWN_TIMEOUT_S` after :meth:`begin`."""

    def __init__(self) -> None:
        self._timer = threading.Timer(SHUTDOWN_TIMEOUT_S, os._exit, (0,))
        self._timer.daemon = True

    def __enter__(self) -> ShutdownDeadline:
        return self

    def begin(self) -> None:
        """Start the time limit, from any thread. Later calls do not extend it."""
        with contextlib.suppress(RuntimeError):  # it was started before
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """A context in which ``handler`` gets the signals that end a server. It gets none outside of the main thread."""
    previous: dict[signal.Signals, Any] = {}
    try:
        for number in SIGNALS:
            previous[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread: signals belong to its owner
        event(logging.DEBUG, "signals are left to the main thread")
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)
