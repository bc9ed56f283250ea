"""What a walk over a folder met on disk, kept so that the next one can tell by stats alone that nothing moved.

A folder whose own signature stands has had no name come, go or move, so it is not listed again; what is left
is one ``lstat`` a file, compared without making anything of it. A signature is only kept where it is trusted
(see ``working_tree``): any other file is looked at, and any other folder listed, each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from anvil.models.documents import Skipped

Signature = tuple[int, int, int, int, int]

# Time stamps are taken from a clock that ticks every 4 to 16 ms; a whole second speaks of a file system that
# keeps no fractions (FAT keeps every second one).
_TICK_NS = 50_000_000
_COARSE_NS = 2_000_000_000
# A page of memory that a program has mapped and written stays writable until the system writes it back, thirty seconds
# and a few later: what is written into it meanwhile changes the file and no time stamp.
_WRITTEN_BACK_NS = 40_000_000_000


def signature(found: os.stat_result) -> Signature:
    """What cannot stay equal when a file is written or replaced, time stamps' resolution aside."""
    return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)


def is_stable(found: os.stat_result, moment_ns: int) -> bool:
    """Whether a file was last touched clearly before a moment, so that a later change must show in its
    signature."""
    touched = found.st_mtime_ns if os.name == "nt" else max(found.st_mtime_ns, found.st_ctime_ns)
    return touched + (_TICK_NS if touched % 1_000_000_000 else _COARSE_NS) < moment_ns


def written_back(found: os.stat_result) -> int:
    """The moment from which on every change of a file must show in its signature, however it is written."""
    return (found.st_mtime_ns if os.name == "nt" else max(found.st_mtime_ns, found.st_ctime_ns)) + _WRITTEN_BACK_NS


def mark(file: str) -> object:
    """A value that stays equal as long as the file surely does."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return (file, signature(found), None if is_stable(found, time.time_ns()) else time.time_ns())


class StatCache:
    """The folders, files and rule files of one walk. Collected during it, asked before the next."""

    def __init__(self) -> None:
        self._sound = True
        self._folders: list[tuple[str, Signature]] = []
        self._listed: list[tuple[str, frozenset[tuple[str, bool]]]] = []
        self._files: list[tuple[str, Signature]] = []
        self._followed: list[tuple[str, Signature]] = []
        self._absent: list[str] = []
        self._unsure: list[tuple[str, str, str | Skipped]] = []
        self._rules: Mapping[str, object] = {}

    def folder(self, real: str, items: Iterable[os.DirEntry[str]], found: os.stat_result, began_ns: int) -> None:
        """A folder and what it holds; ``found`` is its state, taken after ``began_ns`` and before it was listed."""
        # A whole second is as a copying program sets it, or as file systems keep it that do not touch a folder
        # when a name comes into it.
        if is_stable(found, began_ns) and found.st_mtime_ns % 1_000_000_000:
            self._folders.append((real, signature(found)))
        else:
            self._listed.append((real, _names(items)))

    def doubt(self) -> None:
        """Something was met that no signature can vouch for: the next walk is a whole one."""
        self._sound = False

    def file(self, path: str, real: str, seen: Signature | None, result: str | Skipped, linked: bool = False) -> None:
        """A file that was looked at; without a signature to trust it is looked at again each time. ``linked``: the
        signature is that of the file that a link leads to."""
        if seen is None:
            self._unsure.append((path, real, result))
        elif linked:
            self._followed.append((real, seen))
        else:
            self._files.append((real, seen))

    def followed(self, real: str, seen: Signature) -> None:
        """A file that a page includes."""
        self._followed.append((real, seen))

    def absent(self, real: str) -> None:
        """A file that a page would include if it were there."""
        self._absent.append(real)

    def close(self, rules: Mapping[str, object]) -> None:
        """The walk is over; ``rules`` are the marks of the files that decided what it took."""
        self._rules = rules

    def is_current(self, look: Callable[[str, str], tuple[Signature | None, str | Skipped, bool]]) -> bool:
        """Whether a walk now would find the same. ``look`` (path, real path) looks at one file again: a signature
        where it is to be trusted from now on, what the file is, and whether it is a link."""
        if not self._sound:
            return False
        lstat, stat = os.lstat, os.stat
        try:
            for real, seen in self._folders:
                found = stat(real)
                if (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns) != seen:
                    return False
            for real, seen in self._files:
                found = lstat(real)
                if (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns) != seen:
                    return False
            for real, seen in self._followed:
                found = stat(real)
                if (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns) != seen:
                    return False
            for real, names in self._listed:
                with os.scandir(real) as items:
                    if _names(items) != names:
                        return False
        except OSError:
            return False
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
