"""The lock that lets one process at a time write an index.

It is SQLite's own lock on an empty file next to the index. The system releases it when the process ends, also when the
process is killed. The file is removed with the lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from anvil.errors import BuildError
from anvil.index_file import connection
from anvil.system import safe_files
from anvil.values import LOCK_TIMEOUT_S

LOCK_SUFFIX = ".lock"
NEW_SUFFIX = ".new"
"""Of the file that a new index is written to. It exists only while the lock is held."""
_POLL_INTERVAL_S = 0.05


@contextlib.contextmanager
def exclusive(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of the index at ``path``. The folder is made if needed.

    Raises :class:`IndexBusy` when another process still holds the lock after ``timeout_s`` seconds, and
    :class:`BuildError` when the lock cannot be made.
    """
    lock = path.with_name(path.name + LOCK_SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"{path.parent} cannot be made ({error.strerror}). Choose another --index.") from error
    with connection.translated(path):
        handle = _acquire(lock, time.monotonic() + timeout_s)
    try:
        yield
    finally:
        _remove(path.with_name(path.name + NEW_SUFFIX))
        removed = _remove(lock)
        handle.close()
        if not removed:  # Windows removes no open file. Elsewhere this could remove the lock of the next process.
            _remove(lock)


def _acquire(lock: Path, deadline: float) -> apsw.Connection:
    while True:
        # A link must not be followed, and SQLite would run the journal of a database that is not empty.
        if (state := safe_files.regular_file(lock)) is not None and state.st_size:
            raise BuildError(f"{lock} is not a lock of Anvil's, for it is not empty. Remove it, and try again.")
        handle = apsw.Connection(str(lock))
        opened: os.stat_result | None = None
        try:
            opened = lock.stat()
            handle.set_busy_handler(lambda _: _wait(deadline))  # in Python, so that Ctrl-C ends the wait
            handle.pragma("journal_mode", "off")  # nothing is written, so no journal is made
            handle.execute("BEGIN EXCLUSIVE")
            if _is_current(lock, opened):
                return handle
            # The process before removed this file with its lock. The next process will lock another file.
        except FileNotFoundError:
            pass
        except (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError):  # SQLite's errors for a file that was removed
            if opened is None or _is_current(lock, opened):
                handle.close()
                raise
        except BaseException:
            handle.close()
            raise
        handle.close()


def _wait(deadline: float) -> bool:
    """Sleep a moment; False at the deadline."""
    remaining_s = deadline - time.monotonic()
    if remaining_s <= 0:
        return False
    time.sleep(min(_POLL_INTERVAL_S, remaining_s))
    return True


def _is_current(path: Path, opened: os.stat_result) -> bool:
    """Whether the file at ``path`` is still the one that was opened."""
    try:
        return os.path.samestat(opened, path.stat())
    except FileNotFoundError:
        return False


def _remove(path: Path) -> bool:
    """Remove a file; False when that is not possible. A folder at ``path`` was reported before."""
    try:
        path.unlink(missing_ok=True)
    except (PermissionError, IsADirectoryError):
        return False
    return True
