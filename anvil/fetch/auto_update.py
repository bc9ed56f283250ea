"""Updates of a published index: it is fetched before the first answer, and in a server a thread looks for newer ones.

The thread asks the publisher from time to time. A newer index replaces the cached file. If that fails, or the index is
refused, the cached file stays in use, and answers have a note.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from anvil.errors import AnvilError, FetchError
from anvil.fetch.download import STAGE
from anvil.fetch.fetch_index import FetchRequest, FetchResult, configured_request, fetch
from anvil.project_indexes import IndexLocation
from anvil.settings import index_url
from anvil.settings.schema import Config
from anvil.values import Progress, silent
from anvil.wording import counted

logger = logging.getLogger(__name__)

FETCH_WAIT_S = 3.0
"""How long a query waits for the publisher or for the download, before it reports the progress."""
FIRST_PAUSE_S = 60.0
"""Pause after the first failure. It doubles with each further failure."""
MAX_PAUSE_S = 3600.0
"""The longest pause after failures if ``fetch.refresh`` is 0; otherwise that is the longest."""
LOOKING = "a newer one is being looked for."
STOP_TIMEOUT_S = 5.0


class _Cancelled(Exception):
    """Raised inside a download after :meth:`AutoUpdater.stop`."""


class AutoUpdater(IndexLocation):
    """The cached file of one published index, and its updates. ``request``: how it is fetched."""

    def __init__(self, source: str, request: FetchRequest) -> None:
        address = index_url.parse(source)
        super().__init__(request.entry(address).index)
        self._request = request
        self.origin = address.shown
        self._source = source
        self._fetched: FetchResult | None = None
        self._problem: str | None = None
        self._progress: Progress = silent
        self._received = (0, 0)
        """Bytes of the download: so far, and in all."""
        self._tried = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-fetching", daemon=True)
        self._starting = threading.Lock()

    @property
    def fetched(self) -> bool:
        return self._fetched is not None

    def ensure_fetched(self, wait: bool) -> None:
        """Return when there is an index at :attr:`path`. Raises :class:`FetchError` if there is none yet.

        After :meth:`start` it waits for the thread, with ``wait`` as long as it takes. Without a thread the index is
        fetched by this call, once.
        """
        if self._thread.ident is None:
            if not self._tried.is_set():
                self._update(self._progress)
        elif not self._tried.is_set():
            self._tried.wait(None if wait else FETCH_WAIT_S)
        if self._fetched is not None:
            return
        if self._problem is not None:
            raise FetchError(self._problem)
        done, total = self._received
        received = f" ({done / 1e3:.1f} of {total / 1e3:.1f} MB)" if total else ""
        raise FetchError(f"The index is being fetched from {self.origin}{received}. Ask again in a moment.")

    def notes(self) -> list[str]:
        fetched = self._fetched
        if fetched is None:
            return []
        if self._problem is None:
            return list(fetched.notes)
        when = _time_of_check(fetched)
        return [f"This is the index as fetched before, last confirmed {when}: {self._problem}", *fetched.notes]

    @property
    def published_at(self) -> str | None:  # type: ignore[override]
        """The time of the last change, from the publisher. The time of the cached file is that of its last use."""
        return self._fetched.published_at if self._fetched else None

    def start(self, progress: Progress | None = None) -> None:
        if progress is not None:
            self._progress = progress
        with self._starting:  # the server and its first questions start it at the same time
            if self._thread.ident is None and not self._stop.is_set():
                self._thread.start()

    def stop(self) -> None:
        """End the thread, and a download at its next progress report. The received bytes stay in the cache."""
        self._stop.set()
        self._tried.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_TIMEOUT_S)

    # --- the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._safely(lambda: self._take_cached(LOOKING))  # the first answers need not wait for the network
            failures = 0
            while not self._stop.is_set():
                self._safely(lambda: self._update(self._report))
                failures = failures + 1 if self._problem else 0
                if not failures and not self._request.options.refresh:  # fetched once, as configured
                    return
                self._stop.wait(self._pause(failures))
        except _Cancelled:
            pass
        finally:
            self._tried.set()

    def _safely(self, step: Callable[[], None]) -> None:
        """Call ``step``. An unexpected exception is stored as the problem, and the thread goes on."""
        problem_before = self._problem
        try:
            step()
        except _Cancelled:
            raise
        except Exception as error:  # the thread must not end silently
            self._problem = f"{self.origin} could not be fetched ({type(error).__name__}). The log says where."
            if self._problem != problem_before:
                logger.exception("The index could not be fetched")
            self._tried.set()

    def _pause(self, failures: int) -> float:
        """Seconds until the publisher is asked again. ``failures``: their number in a row."""
        usual = self._request.options.refresh or MAX_PAUSE_S
        return min(FIRST_PAUSE_S * 2 ** min(failures - 1, 20), usual) if failures else usual

    def _update(self, progress: Progress) -> None:
        """Ask the publisher once, and fetch a newer index."""
        fetched_before, problem_before = self._fetched, self._problem
        try:
            self._fetched = fetch(self._source, replace(self._request, progress=progress))
            self._problem = self._fetched.from_cache
        except AnvilError as error:
            self._problem = str(error)
            if fetched_before is None:
                self._take_cached(str(error))
        if self._problem and self._problem != problem_before:
            logger.info("%s", self._problem)
        self._tried.set()
        if fetched_before and self._fetched and fetched_before.manifest.sha256 != self._fetched.manifest.sha256:
            self.on_replaced()

    def _take_cached(self, reason: str) -> None:
        """Use the file that was fetched before, if there is one. ``reason`` becomes a note."""
        try:
            self._fetched = fetch(self._source, replace(self._request, offline=reason))
            self._problem = reason
        except AnvilError as error:
            logger.debug("%s", error)

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _Cancelled
        self._received = (done, total) if stage == STAGE else (0, 0)
        self._progress(stage, done, total)


def _time_of_check(fetched: FetchResult) -> str:
    """The time when the publisher last confirmed that this index is the newest, such as "2 hours ago"."""
    then = datetime.fromisoformat((fetched.checked_at or "").replace("Z", "+00:00")).timestamp()
    seconds = time.time() - then
    if seconds < -60:
        return f"at {fetched.checked_at}, which is in the future by this machine's clock"
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds) // size, name)} ago"
    return "less than a minute ago"


def configured_updater(config: Config, base: Path, head: Path) -> AutoUpdater:
    """The updater of the index that ``index`` in a configuration names. ``base``: the folder of its relative paths.
    ``head``: a folder in the repository."""
    source = config.index or ""
    return AutoUpdater(source, configured_request(source, config, base, head))
