"""How changes of files are noticed: by the stat cache of a walk, and sooner by events of the file system.

A stat cache has what a walk over a folder found, so that the next one needs one ``stat`` for each folder and file. A
folder whose signature did not change has the same names, so it is not listed again. Only signatures that can be trusted
are stored (see ``working_tree``). Other files are read, and other folders listed, each time.

Events are a hint, so that the index is updated before the next query. Each query compares the documents too, because
events are late (they are collected for a moment), can get lost (full queues, network folders) and end when the folder
is replaced.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from anvil.values import Skipped

DEBOUNCE_MS = 300
LOOK_MS = 1000
"""Time without events until the watched folder itself is looked at: there is no event when it is replaced."""
WATCH_RETRY_S = 5.0
"""Time until a folder that could not be watched is tried again."""
logger = logging.getLogger(__name__)

Signature = tuple[int, int, int, int, int]

# Time stamps come from a clock that ticks every 4 to 16 ms. A whole second is the time stamp of a file system without
# fractions (FAT has only even seconds).
_TICK_NS = 50_000_000
_COARSE_NS = 2_000_000_000
# A program can write to a file through mapped memory. The system updates the time stamp when it writes the page back,
# up to some thirty seconds later.
_WRITTEN_BACK_NS = 40_000_000_000


def signature(state: os.stat_result) -> Signature:
    """Values of which one changes when a file is written or replaced, within the resolution of time stamps."""
    return (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns)


def modified_ns(signature: Signature) -> int:
    """When the file of a signature was last written."""
    return signature[2]


def is_stable(state: os.stat_result, moment_ns: int) -> bool:
    """Whether a file was changed long enough before a moment, so that a later change also changes its signature."""
    touched = _touched(state)
    return touched + (_TICK_NS if touched % 1_000_000_000 else _COARSE_NS) < moment_ns


def written_back(state: os.stat_result) -> int:
    """The moment after which every change of a file changes its signature, also one through mapped memory."""
    return _touched(state) + _WRITTEN_BACK_NS


def _touched(state: os.stat_result) -> int:
    # On Windows the second time is that of creation. Elsewhere it also changes where a program sets the first back.
    return state.st_mtime_ns if os.name == "nt" else max(state.st_mtime_ns, state.st_ctime_ns)


def mark(file: str) -> object:
    """A value that is equal as long as the file is surely unchanged."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return (file, signature(state), None if is_stable(state, time.time_ns()) else time.time_ns())


class StatCache:
    """The folders, files and rule files of one walk. Filled during the walk, compared before the next."""

    def __init__(self) -> None:
        self._sound = True
        self._folders: list[tuple[str, Signature]] = []
        self._listed: list[tuple[str, frozenset[tuple[str, bool]]]] = []
        self._files: list[tuple[str, Signature, bool]] = []
        """Path, signature, and whether that is the one of the file that a link at the path leads to."""
        self._absent: list[str] = []
        self._unsure: list[tuple[str, str, str | Skipped]] = []
        self._rules: Mapping[str, object] = {}

    def folder(self, real: str, items: Iterable[os.DirEntry[str]], state: os.stat_result, began_ns: int) -> None:
        """Add a folder and its names. ``state``: its stat, from after ``began_ns`` and before it was listed."""
        # Copying programs set whole seconds, and some file systems without fractions do not update a folder's time when
        # a name is added.
        if is_stable(state, began_ns) and state.st_mtime_ns % 1_000_000_000:
            self._folders.append((real, signature(state)))
        else:
            self._listed.append((real, _names(items)))

    def doubt(self) -> None:
        """Mark the cache as incomplete, so that the next walk is a full one."""
        self._sound = False

    def file(
        self, path: str, real: str, recorded: Signature | None, result: str | Skipped, linked: bool = False
    ) -> None:
        """Add a file. Without a signature it is read again each time. ``linked``: the signature is that of the file
        that a link leads to."""
        if recorded is None:
            self._unsure.append((path, real, result))
        else:
            self._files.append((real, recorded, linked))

    def followed(self, real: str, recorded: Signature) -> None:
        """Add a file that a page includes."""
        self._files.append((real, recorded, True))

    def absent(self, real: str) -> None:
        """Add a missing file that a page includes."""
        self._absent.append(real)

    def close(self, rules: Mapping[str, object]) -> None:
        """End the walk. ``rules``: marks of the ignore and attribute files."""
        self._rules = rules

    def is_current(self, look: Callable[[str, str], tuple[Signature | None, str | Skipped, bool]]) -> bool:
        """Whether a walk would find the same now. ``look``: (path, real path) -> signature if it can be trusted,
        result, whether it is a link."""
        if not self._sound:
            return False
        try:
            if any(signature(os.stat(real)) != recorded for real, recorded in self._folders):
                return False
            # Without a call more for each: every search waits for this loop (benchmarks/freshness.py).
            for real, recorded, linked in self._files:
                state = os.stat(real) if linked else os.lstat(real)
                if (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns) != recorded:
                    return False
            for real, names in self._listed:
                with os.scandir(real) as items:
                    if _names(items) != names:
                        return False
        except OSError:
            return False
        # What costs least comes first. A file without a signature that can be trusted must be read, so that is last.
        if any(os.path.lexists(real) for real in self._absent):
            return False
        if any(mark(file) != value for file, value in self._rules.items()):
            return False
        unsure, self._unsure = self._unsure, []
        for path, real, result in unsure:
            trusted, now, linked = look(path, real)
            if now != result:
                self.doubt()
            self.file(path, real, trusted, now, linked)
        return self._sound


def _names(items: Iterable[os.DirEntry[str]]) -> frozenset[tuple[str, bool]]:
    return frozenset((item.name, item.is_dir(follow_symlinks=False)) for item in items)


class Watcher:
    """Calls ``moved`` from its own thread soon after a change in ``folder``; with ``deep`` also in subfolders."""

    def __init__(self, folder: Path, moved: Callable[[], None], *, deep: bool = True) -> None:
        self._folder = folder
        self._moved = moved
        self._deep = deep
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-watcher", daemon=True)
        self.problem: str | None = None
        """Why there are no events now; None without a problem."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. A second call does nothing."""
        self._stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # watchfiles' errors have no common base class
                if self.problem is None:
                    logger.warning("No file events for now (%s). Each query still compares the files.", error)
                self.problem = str(error)
            self._stop.wait(WATCH_RETRY_S)

    def _listen(self) -> None:
        """Pass events on until the watcher is closed. Raises when watching fails."""
        import watchfiles

        if not self._folder.is_dir():
            raise FileNotFoundError(f"{self._folder} is gone")
        identity = self._identity()
        for changes in watchfiles.watch(
            self._folder,
            watch_filter=None,  # its own leaves out names that may be pages here
            debounce=DEBOUNCE_MS,
            step=50,
            stop_event=self._stop,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            recursive=self._deep,
            raise_interrupt=False,  # Ctrl-C is the main thread's
        ):
            if self._stop.is_set():
                return
            if self._identity() != identity:  # the watched folder was renamed or replaced
                raise FileNotFoundError(f"{self._folder} was moved or replaced")
            missed, self.problem = self.problem is not None, None  # after a failure, there may have been changes
            if changes or missed:
                self._moved()

    def _identity(self) -> tuple[int, int]:
        state = self._folder.stat()
        return state.st_dev, state.st_ino
