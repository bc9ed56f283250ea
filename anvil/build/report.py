"""The report of a build, which the API returns and the command prints as JSON, and lines of progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anvil.values import Changes, Skipped


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build.

    - ``reasons``: why more than the changed pages was built again, and problems of the source.
    - ``failed``: chunks without a vector.
    - ``kept``: the number of old vectors that are used because no new ones could be made; ``refusal``: the reason.
    - ``nothing_embedded``: the embedding provider had texts and made no vector. It is no error if it refuses some texts
      and the index has the vectors of others.
    """

    outcome: Literal["built", "unchanged"]
    index_path: str
    digest: str
    pages: int
    chunks: int
    windows: int
    embedded: int
    reused: int
    changes: Changes
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    size_bytes: int = 0
    kept: int = 0
    refusal: str = ""
    nothing_embedded: bool = False

    @property
    def nothing_embedded_because(self) -> str:
        """The message for :attr:`nothing_embedded`, with the provider's reason."""
        reason = self.refusal or self.failed[0].reason
        left = "The old ones are kept." if self.kept else "Search uses keywords until a build can make them."
        return f"No vector could be made: {reason.rstrip('.')}. {left}"


def report_on(
    outcome: Literal["built", "unchanged"],
    index: Path,
    digest: str,
    counts: Mapping[str, int],
    started: float,
    skipped: tuple[Skipped, ...] = (),
) -> BuildReport:
    """The report on an index file, with nothing embedded. ``started``: a value of :func:`time.perf_counter`."""
    return BuildReport(
        outcome=outcome,
        index_path=str(index),
        digest=digest,
        pages=counts["documents"],
        chunks=counts["chunks"],
        windows=counts["windows"],
        embedded=0,
        reused=0,
        changes=Changes(),
        skipped=skipped,
        seconds=time.perf_counter() - started,
        size_bytes=index.stat().st_size,
    )


SAME_LINE_S = 30.0
"""Seconds until an unchanged line of progress is written again: a large file may take minutes."""


class ProgressLines:
    """A :data:`anvil.values.Progress` that writes ``reading 3 of 9`` from time to time while a stage takes long."""

    def __init__(self, write: Callable[[str], None], first_s: float = 5.0, interval_s: float = 5.0) -> None:
        """``first_s``: seconds from the start of a stage to its first line. ``interval_s``: seconds between lines."""
        self._write = write
        self._first_s, self._interval_s = first_s, interval_s
        self._stage, self._next = "", 0.0
        self._line, self._line_again = "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        line = f"{stage} {done} of {total}"
        if stage != self._stage:
            self._stage, self._next = stage, now + self._first_s
        elif total > 1 and now >= self._next and (line != self._line or now >= self._line_again):
            self._write(line)
            self._next, self._line, self._line_again = now + self._interval_s, line, now + SAME_LINE_S
