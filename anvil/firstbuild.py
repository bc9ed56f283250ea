"""The first build of an index while questions are asked already.

One thread: first the pages' text is read into the working copy, from which partial answers come at once; then the
artifact is built, by this process or by the one that was quicker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from anvil.errors import AnvilError, IndexBusy
from anvil.models import Progress

logger = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds that another process's build is waited for before looking whether to stop."""
LONGEST = 600.0
"""Seconds that it is waited for altogether: then this process makes the vectors for itself."""


class _Stopped(Exception):
    """Raised out of a build whose result nobody waits for any more."""


class FirstBuild:
    """One attempt. ``read`` reads some pages and tells (done, total); ``build`` makes the artifact, waiting up to
    the given seconds for another process; ``over`` is told that it is there, or cannot be had."""

    def __init__(
        self,
        read: Callable[[], tuple[int, int]],
        build: Callable[[Progress, float | None], object],
        over: Callable[[], None],
        progress: Progress,
        reading: bool = True,
    ) -> None:
        self._read, self._build, self._over, self._progress = read, build, over, progress
        self._stop = threading.Event()
        self.running = True
        """Whether it may still end well."""
        self.reading = reading
        """Whether the text is not all there yet; while it is not, what is read is answered from as it is."""
        self.note: str | None = "The index is being built."
        """A sentence for the reader of an answer; None when there is nothing to say any more."""
        self._thread = threading.Thread(target=self._run, name="anvil-first-build", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Give up as soon as the build takes a breath."""
        self._stop.set()
        if self._thread is not threading.current_thread() and self._thread.ident is not None:
            self._thread.join(60)

    def _run(self) -> None:
        try:
            self._read_all()
            end = time.monotonic() + LONGEST
            while True:
                try:
                    self._build(self._tell, PATIENCE)
                    break
                except IndexBusy:
                    if time.monotonic() > end:
                        raise
                    self.note = "Another process is building the index: until it is done, search goes by words."
                    self._breathe()
            self.note = None
        except _Stopped:
            self.note = None
            return
        except AnvilError as error:  # the text that was read is answered from all the same
            self.note = f"The index could not be built: {error}"
        except Exception as error:
            logger.exception("The first build failed")
            self.note = f"The index could not be built ({type(error).__name__}: {error})."
        finally:
            self.reading = self.running = False
        self._over()

    def _read_all(self) -> None:
        before = -1
        while True:
            done, total = self._read()
            self._progress("reading", done, total)
            self._breathe()
            if done >= total or done <= before:
                break
            before = done
            self.note = f"The index is being built: {done:,} of {total:,} pages."
        self.reading = False
        self.note = "The index is being built: all text is there, its vectors are not yet."

    def _tell(self, stage: str, done: int, total: int) -> None:
        self._breathe()
        self._progress(stage, done, total)
        if stage == "embedding":
            self.note = f"The index is being built: {done:,} of {total:,} chunks have vectors; search goes by words."

    def _breathe(self) -> None:
        if self._stop.is_set():
            raise _Stopped
