"""Opening a library: one SQLite file that several processes read and write at once.

It has the tables of an artifact and a few of its own, in WAL mode: readers never wait, and see whole documents only.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import apsw

from anvil import userfolders
from anvil.errors import ArtifactRejected, BuildError, FormatTooNew
from anvil.store import connection as connections

APPLICATION_ID = 0x414E566C  # "ANVl": an artifact's is in capitals
FORMAT_VERSION = 1
PATIENCE = 60.0
"""Seconds that a writer waits for others; each holds the file for one document."""
CHECKPOINT = 2_000
"""Pages in the write-ahead log from which on it is worked into the file."""
PAGE_SIZE = 8192
LIBRARY = connections.Kind("a library", "Put a copy back, or move it away and ingest again.", "set library.index")

T = TypeVar("T")


def default_path() -> Path:
    """Where the library lies when nobody says: in the user's data folder."""
    return userfolders.data() / "library.db"


def open_library(path: Path, settings: Mapping[str, str]) -> apsw.Connection:
    """Open the library at ``path`` for reading and writing; it is made when there is none.

    ``settings`` are the manifest of a new one; what is in an old one stays. Raises :class:`ArtifactRejected` for
    another kind of file, :class:`FormatTooNew`, :class:`BuildError` or :class:`IndexBusy`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"{path.parent} cannot be made ({error.strerror}). Choose another place with library.index."
        ) from error
    with translated(path):
        handle = connections.prepared(apsw.Connection(str(path)))
        try:
            handle.set_busy_timeout(int(PATIENCE * 1000))
            if patiently(lambda: _is_empty(handle)):
                handle.pragma("page_size", PAGE_SIZE)
            else:
                _check(handle, path)  # before the journal mode: that is a change to the file, whoever's it is
            patiently(lambda: handle.pragma("journal_mode", "wal"))
            handle.pragma("synchronous", "normal")
            handle.wal_autocheckpoint(CHECKPOINT)
            if _is_empty(handle):  # else nobody need be waited for
                with writing(handle):
                    if _is_empty(handle):
                        _lay_out(handle, settings)
            _check(handle, path)
        except BaseException:
            handle.close()
            raise
    return handle


def translated(path: Path) -> contextlib.AbstractContextManager[None]:
    """Turn SQLite's exceptions about a library into Anvil's."""
    return connections.translated(path, LIBRARY)


@contextlib.contextmanager
def writing(handle: apsw.Connection) -> Iterator[None]:
    """A transaction that has the write lock from its first statement on: it never fails halfway for want of it, and
    what it reads nobody changes before it ends. Inside another one it is a part of that."""
    if not handle.get_autocommit():
        yield
        return
    handle.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        handle.execute("ROLLBACK")
        raise
    handle.execute("COMMIT")


@contextlib.contextmanager
def reading(handle: apsw.Connection) -> Iterator[None]:
    """A transaction whose statements all see the same documents."""
    handle.execute("BEGIN")
    try:
        yield
    finally:
        handle.execute("ROLLBACK")


def patiently(act: Callable[[], T], patience: float = PATIENCE) -> T:
    """Do what SQLite refuses at once while somebody else is there, such as changing the journal mode."""
    end = time.monotonic() + patience
    while True:
        try:
            return act()
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _lay_out(handle: apsw.Connection, settings: Mapping[str, str]) -> None:
    handle.pragma("application_id", APPLICATION_ID)
    handle.pragma("user_version", FORMAT_VERSION)
    own = importlib.resources.files("anvil.store").joinpath("library.sql").read_text(encoding="utf-8")
    for _ in handle.execute(connections.schema(int(settings["embedding_dimensions"])) + own):
        pass
    handle.executemany("INSERT INTO anvil_meta VALUES (?, ?)", sorted(settings.items()))


def _is_empty(handle: apsw.Connection) -> bool:
    """Whether nobody has put anything into the file yet, nor said that it is theirs."""
    return not handle.execute("SELECT count(*) FROM sqlite_schema").get and handle.pragma("application_id") == 0


def _check(handle: apsw.Connection, path: Path) -> None:
    if handle.pragma("application_id") != APPLICATION_ID:
        raise ArtifactRejected(f"{path} is not a library of Anvil's. Set library.index to another path.")
    version = handle.pragma("user_version")
    if version > FORMAT_VERSION:
        raise FormatTooNew(
            f"{path} has library format {version}; this Anvil knows {FORMAT_VERSION}. "
            "Upgrade with 'pip install -U anvil-docs'."
        )
    dimensions = handle.execute("SELECT value FROM anvil_meta WHERE key = 'embedding_dimensions'").get
    if _definitions(handle) != _expected(int(dimensions or 0)):  # triggers and views could do anything
        raise ArtifactRejected(f"{path} has tables that a library does not have. Put a copy back, or move it away.")


def _definitions(handle: apsw.Connection) -> frozenset[tuple[str, str, str | None]]:
    return frozenset(handle.execute("SELECT type, name, sql FROM sqlite_schema"))


@lru_cache(maxsize=4)
def _expected(dimensions: int) -> frozenset[tuple[str, str, str | None]]:
    with contextlib.closing(connections.open_scratch(":memory:")) as model:
        _lay_out(model, {"embedding_dimensions": str(dimensions)})
        return _definitions(model)
