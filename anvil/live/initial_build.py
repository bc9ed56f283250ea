"""The first build of an index, in a thread, while queries are answered.

First the pages are read into the working copy, which gives partial answers at once. Then the artifact is built, by this
process or by another one that began earlier.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from anvil.errors import AnvilError, IndexBusy
from anvil.values import LOCK_TIMEOUT_S, Progress

logger = logging.getLogger(__name__)

LOCK_POLL_S = 1.0
"""Wait for another process's build between two checks whether to stop."""


class _Cancelled(Exception):
    """Raised inside a build after :meth:`InitialBuild.close`."""


class InitialBuild:
    """One attempt to build the index. It does not repeat itself.

    ``read_pages`` reads some pages and returns (done, total). ``build`` makes the artifact, waiting up to the given
    seconds for another process. ``ended`` is called when the artifact is there or could not be built, but not after
    :meth:`close`. ``reading``: whether there are pages to read.
    """

    def __init__(
        self,
        *,
        read_pages: Callable[[], tuple[int, int]],
        build: Callable[[Progress, float], object],
        ended: Callable[[], None],
        progress: Progress,
        reading: bool,
    ) -> None:
        self._read_pages = read_pages
        self._build = build
        self._ended = ended
        self._progress = progress
        self._stop = threading.Event()
        self.running = True
        """Whether the build goes on."""
        self.reading = reading
        """Whether some pages are not read yet. Until then answers come from the pages that are read."""
        self.note: str | None = "The index is being built."
        """A sentence for the notes of an answer; None when there is nothing to say any more."""
        self._thread = threading.Thread(target=self._run, name="anvil-first-build", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Cancel at the next progress report of the build, and wait for the thread."""
        self._stop.set()
        if self._thread is not threading.current_thread() and self._thread.ident is not None:
            self._thread.join(60)

    def _run(self) -> None:
        try:
            self._read_all()
            give_up_at = time.monotonic() + LOCK_TIMEOUT_S  # then this process makes the vectors itself
            while True:
                try:
                    self._build(self._report, LOCK_POLL_S)
                    break
                except IndexBusy:
                    if time.monotonic() > give_up_at:
                        raise
                    self.note = "Another process is building the index: until it is done, search goes by words."
                    self._raise_if_cancelled()
            self.note = None
        except _Cancelled:
            self.note = None
            return
        except AnvilError as error:  # answers still come from the pages that were read
            self.note = f"The index could not be built: {error}"
        except Exception as error:
            logger.exception("The first build failed")
            self.note = f"The index could not be built ({type(error).__name__}: {error})."
        finally:
            self.reading = self.running = False
        self._ended()

    def _read_all(self) -> None:
        done_before = -1
        while True:
            done, total = self._read_pages()
            self._progress("reading", done, total)
            self._raise_if_cancelled()
            if done >= total or done <= done_before:
                break
            done_before = done
            self.note = f"The index is being built: {done:,} of {total:,} pages."
        self.reading = False
        self.note = "The index is being built: all text is there, its vectors are not yet."

    def _report(self, stage: str, done: int, total: int) -> None:
        self._raise_if_cancelled()
        self._progress(stage, done, total)
        if stage == "embedding":
            self.note = (
                f"The index is being built: {done:,} of {total:,} chunks have vectors. Until all have, only the best "
                "matches by words are compared by meaning."
            )

    def _raise_if_cancelled(self) -> None:
        if self._stop.is_set():
            raise _Cancelled
