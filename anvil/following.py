"""An index that is published elsewhere, kept at hand: fetched before the first answer, asked for anew while serving.

One thread asks the server now and then. What it finds takes the place of the file that is answered from; when it
finds nothing, or something that is refused, answers go on coming from what was fetched before, and say so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from anvil import addresses
from anvil.config import FetchOptions
from anvil.errors import AnvilError, FetchError
from anvil.fetching import Fetched, Limits, cached_path, fetch
from anvil.models import Progress, silent
from anvil.wording import counted

logger = logging.getLogger(__name__)

PATIENCE = 3.0
"""Seconds that a question waits for the server's first answer, or for the download, before it says how things are."""
RETRY = 60.0
"""Seconds until a server that could not be reached is asked again, twice as many each time."""
LONGEST = 3600.0
"""And at most, unless it is asked more often anyway."""
AT_FIRST = "a newer one is being looked for."


class _Stopped(Exception):
    """Raised out of a download that nobody waits for any more."""


class Following:
    """One source. ``head``: a folder in the repository whose HEAD decides between artifacts. ``moved`` is called when
    another index has taken the place of the one at :attr:`path`."""

    def __init__(self, source: str, options: FetchOptions, head: Path, moved: Callable[[], None]) -> None:
        self.origin = addresses.parse(source).shown
        self.path = cached_path(source, head=head)
        """Where the index lies once it is fetched."""
        self._source, self._options, self._head, self._moved = source, options, head, moved
        self._fetched: Fetched | None = None
        self._problem: str | None = None
        self._progress: Progress = silent
        self._told = (0, 0)
        self._asked = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-fetching", daemon=True)

    def ready(self, patient: bool) -> None:
        """Return when there is an index at :attr:`path`; raise :class:`FetchError` when there is none, for now.

        Once :meth:`start` was called its thread is waited for, ``patient``: as long as it takes. Else the index is
        fetched here and now, once.
        """
        if self._thread.ident is None:
            if not self._asked.is_set():
                self._ask(self._progress)
        elif not self._asked.is_set():
            self._asked.wait(None if patient else PATIENCE)
        if self._fetched is not None:
            return
        if self._problem is not None:
            raise FetchError(self._problem)
        done, total = self._told
        far = f" ({done / 1e3:.1f} of {total / 1e3:.1f} MB)" if total else ""
        raise FetchError(f"The index is being fetched from {self.origin}{far}. Ask again in a moment.")

    def notes(self) -> list[str]:
        """Sentences on where the index stands."""
        found = self._fetched
        if found is None:
            return []
        if self._problem is None:
            return list(found.notes)
        return [f"This is the index as fetched before, last confirmed {_age(found)} ago: {self._problem}", *found.notes]

    def start(self, progress: Progress | None) -> None:
        """Fetch and keep asking in a thread; returns at once. A second call does nothing more."""
        if progress is not None:
            self._progress = progress
        if self._thread.ident is None and not self._stop.is_set():
            self._thread.start()

    def close(self) -> None:
        """Stop asking, and stop a download as soon as it takes a breath; what came is kept."""
        self._stop.set()
        self._asked.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(5)

    # --- inner -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._safely(lambda: self._take_cached(AT_FIRST))
            failures = 0
            while not self._stop.is_set():
                self._safely(lambda: self._ask(self._tell))
                failures = failures + 1 if self._problem else 0
                if not failures and not self._options.refresh:
                    return
                self._stop.wait(self._pause(failures))
        except _Stopped:
            pass
        finally:
            self._asked.set()

    def _safely(self, step: Callable[[], None]) -> None:
        """Take a step; what nobody foresaw is a failure like any other, and the server is asked again."""
        said = self._problem
        try:
            step()
        except _Stopped:
            raise
        except Exception as error:  # nobody would hear of it otherwise
            self._problem = f"{self.origin} could not be fetched ({type(error).__name__}). The log says where."
            if self._problem != said:
                logger.exception("The index could not be fetched")
            self._asked.set()

    def _pause(self, failures: int) -> float:
        """Seconds until the server is asked again, after so many failures in a row."""
        usual = self._options.refresh or LONGEST
        return min(RETRY * 2 ** min(failures - 1, 20), usual) if failures else usual

    def _ask(self, progress: Progress) -> None:
        """Ask the server once."""
        before, said = self._fetched, self._problem
        limits = Limits(size=self._options.max_bytes)
        try:
            found = fetch(self._source, head=self._head, limits=limits, progress=progress)
            self._fetched, self._problem = found, found.from_cache
        except AnvilError as error:
            self._problem = str(error)
            if before is None:
                self._take_cached(str(error))
        if self._problem and self._problem != said:
            logger.info("%s", self._problem)
        self._asked.set()
        if before and self._fetched and before.manifest.sha256 != self._fetched.manifest.sha256:
            self._moved()

    def _take_cached(self, reason: str) -> None:
        """What was fetched before is at hand while, or because, nothing else is."""
        try:
            self._fetched = fetch(self._source, head=self._head, offline=reason)
            self._problem = reason
        except AnvilError as error:
            logger.debug("%s", error)

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _Stopped
        self._told = (done, total)
        self._progress(stage, done, total)


def _age(found: Fetched) -> str:
    """How long ago the server said that this is the newest."""
    then = datetime.fromisoformat((found.checked_at or "").replace("Z", "+00:00")).timestamp()
    minutes = int(time.time() - then) // 60
    for size, name in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return counted(minutes // size, name)
    return "less than a minute"
