"""Progress of long work as lines, for logs and pipes."""

from __future__ import annotations

import time
from collections.abc import Callable


class ProgressLines:
    """A :data:`anvil.values.Progress` that writes ``reading 3 of 9`` from time to time."""

    def __init__(self, write: Callable[[str], None], first_s: float, interval_s: float) -> None:
        """``first_s``: time before the first line. ``interval_s``: time between two."""
        self._write = write
        self._next = time.monotonic() + first_s
        self._interval_s = interval_s

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if total > 1 and now >= self._next:
            self._write(f"{stage} {done} of {total}")
            self._next = now + self._interval_s


class StageLines:
    """A :data:`anvil.values.Progress` that writes ``reading: 3 of 9`` while a stage takes long."""

    def __init__(self, write: Callable[[str], None], interval_s: float = 5.0) -> None:
        """``interval_s``: time from the begin of a stage to its first line, and between two."""
        self._write = write
        self._interval_s = interval_s
        self._written_at = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not done:
            self._written_at = now
        elif now - self._written_at > self._interval_s:
            self._written_at = now
            self._write(f"{stage}: {done} of {total}")
