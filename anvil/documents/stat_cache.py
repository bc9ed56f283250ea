"""The stat cache of a walk over a folder, and the signatures of files, by which a change is noticed.

The cache has what a walk found, so that the next one needs one ``stat`` for each folder and file. A folder whose
signature did not change has the same names, so it is not listed again. Only signatures that can be trusted are stored
(see ``working_tree``). Other files are read, and other folders listed, each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from anvil.values import Skipped

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
        """Add a file. Without a signature it is read each time. ``linked``: it is that of the file a link leads to."""
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
