"""The file of a library: opening, creating, transactions, and checks for damage.

It is one SQLite file with the tables of an index and those of library.sql, which several processes read and write at
once. In WAL mode readers do not wait, and see whole documents. Because a library can be large and changes often, it is
not checked whole at each start: types, ranges and references between tables are checked when rows are read.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import apsw

from anvil.errors import ArtifactRejected, BuildError, FormatTooNew
from anvil.formats.data_formats import is_deep, json_object
from anvil.index_file import connection as connections
from anvil.index_file import table_rows
from anvil.index_file.manifests import SETTINGS
from anvil.library.metadata_filter import MAX_DEPTH
from anvil.system import safe_files

APPLICATION_ID = 0x414E566C  # "ANVl"; an index has "ANVL"
FORMAT_VERSION = 3
WRITE_TIMEOUT_S = 60.0
"""How long a writer waits for others. Each of them holds the lock for one document."""
LOCK_RETRY_S = 0.02
CHECKPOINT_PAGES = 2_000
"""Length of the write-ahead log at which SQLite copies it into the file."""
PAGE_SIZE_BYTES = 8192
LIBRARY = connections.Kind("a library", "Put a copy back, or move it away and ingest again.", "set library.index")
_SEQUENCES = {("table", "sqlite_sequence"): "CREATE TABLE sqlite_sequence(name,seq)"}
"""Made by SQLite for the table of vectors. It stays when they are dropped."""

T = TypeVar("T")


def default_path() -> Path:
    """The path if no setting names one: in the user's data folder."""
    return safe_files.user_data() / "library.db"


def open_library(path: Path, settings: Mapping[str, str]) -> apsw.Connection:
    """Open the library at ``path`` for reading and writing. If there is none, a new one is created.

    ``settings``: the manifest of a new library; an existing one keeps its own. Raises :class:`ArtifactRejected` if the
    file is of another kind, :class:`FormatTooNew`, :class:`BuildError` if it cannot be written, or :class:`IndexBusy`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"The folder {path.parent} cannot be made ({error.strerror}). Choose another place with library.index."
        ) from error
    with connections.translate_errors(path, LIBRARY):
        handle = apsw.Connection(str(path))
        try:
            if handle.readonly("main"):  # SQLite would leave files beside it, into which its owner could not write
                raise BuildError(
                    f"{path} cannot be written by this user, and SQLite writes files beside a library even to read it. "
                    "Change its permissions, or set library.index."
                )
            connections.prepare(handle)
            handle.set_busy_timeout(int(WRITE_TIMEOUT_S * 1000))
            if _retry_locked(lambda: _is_empty(handle)):
                handle.pragma("page_size", PAGE_SIZE_BYTES)
            else:
                check_open(handle, path)  # before WAL mode is set, which changes the file
            _retry_locked(lambda: handle.pragma("journal_mode", "wal"))
            handle.pragma("synchronous", "normal")
            handle.wal_autocheckpoint(CHECKPOINT_PAGES)
            if _is_empty(handle):  # asked without the lock first, because another writer may hold it
                with writing(handle):
                    if _is_empty(handle):  # no other process has laid it out meanwhile
                        _lay_out(handle, settings)
            check_open(handle, path)
        except BaseException:
            handle.close()
            raise
    return handle


@contextlib.contextmanager
def writing(handle: apsw.Connection) -> Iterator[None]:
    """A transaction with the write lock from its first statement on, so that no other process changes what it reads.
    Inside another transaction it is a part of that one."""
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


def _retry_locked(action: Callable[[], T]) -> T:
    """Repeat an action for which SQLite ignores the busy timeout, such as a change of the journal mode."""
    end = time.monotonic() + WRITE_TIMEOUT_S
    while True:
        try:
            return action()
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > end:
                raise
            time.sleep(LOCK_RETRY_S)


def _lay_out(handle: apsw.Connection, settings: Mapping[str, str]) -> None:
    handle.pragma("application_id", APPLICATION_ID)
    handle.pragma("user_version", FORMAT_VERSION)
    folder = importlib.resources.files("anvil.library")
    library_sql = folder.joinpath("library.sql").read_text(encoding="utf-8")
    for _ in handle.execute(connections.schema(int(settings["embedding_dimensions"])) + library_sql):
        pass
    handle.executemany("INSERT INTO anvil_meta VALUES (?, ?)", sorted(settings.items()))


def _is_empty(handle: apsw.Connection) -> bool:
    """Whether the file is a database without tables and without another program's id."""
    return not handle.execute("SELECT count(*) FROM sqlite_schema").get and handle.pragma("application_id") == 0


def check_open(handle: apsw.Connection, path: Path) -> None:
    """Raise :class:`ArtifactError` if a file is not a library that this Anvil can read."""
    if handle.pragma("application_id") != APPLICATION_ID:
        raise ArtifactRejected(f"{path} is not a library of Anvil's. Set library.index to another path.")
    version = handle.pragma("user_version")
    if version > FORMAT_VERSION:
        raise FormatTooNew(
            f"{path} has library format {version}; this Anvil knows {FORMAT_VERSION}. "
            "Upgrade with 'pip install -U anvil-docs'."
        )
    if version < FORMAT_VERSION:
        raise ArtifactRejected(
            f"{path} has the old library format {version}; this Anvil writes {FORMAT_VERSION}. Move it away, and take "
            "its documents in again with 'anvil ingest'."
        )
    definitions = connections.definitions(handle)
    # The manifest is checked first: it has the dimensions, on which the other definitions depend.
    if definitions.get(connections.MANIFEST_TABLE) != _expected_definitions(0)[connections.MANIFEST_TABLE]:
        raise ArtifactRejected(f"{path} has no manifest of a library. {LIBRARY.restore}")
    meta = dict(handle.execute("SELECT key, value FROM anvil_meta"))
    dimensions = meta.get("embedding_dimensions")
    if any(not isinstance(meta.get(key), str) for key in SETTINGS) or not re.fullmatch("[0-9]{1,4}", dimensions or ""):
        raise ArtifactRejected(f"{path} is damaged: its manifest is not whole. {LIBRARY.restore}")
    expected = _expected_definitions(int(dimensions or 0))
    if definitions not in (expected, expected | _SEQUENCES):  # triggers and views could run any statement
        raise ArtifactRejected(f"{path} has tables that a library does not have. Put a copy back, or move it away.")


@lru_cache(maxsize=8)
def _expected_definitions(dimensions: int) -> dict[tuple[str, str], str | None]:
    with contextlib.closing(connections.open_scratch(":memory:")) as model:
        _lay_out(model, {"embedding_dimensions": str(dimensions)})
        return connections.definitions(model)


# --- damage ---------------------------------------------------------------------------------------------------------


class Damage(Exception):
    """A value in a file that Anvil never writes. Its text is a part of a sentence."""


def check_types(row: Any, what: str, *kinds: type) -> Any:
    """The row, checked: its values have the types ``kinds``, and no whole number is negative. Raises :class:`Damage`.
    ``what``: the name of the row in the message."""
    for value, kind in zip(row, kinds, strict=True):
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise Damage(f"{what} has a value of a wrong type")
    return row


def metadata(text: str, source: str) -> dict[str, Any]:
    """A document's metadata from its JSON. Raises :class:`Damage`."""
    values = json_object(text)
    if values is None or is_deep(values, MAX_DEPTH):
        raise Damage(f"the metadata of {source[:200]!r} is not a JSON object that a library can have")
    return values


_ERRORS_OF_DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, apsw.Error)
"""Errors of Python, numpy and SQLite that values which Anvil never writes can cause."""


@contextlib.contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Raise :class:`ArtifactRejected` in place of an error that damage of the file causes. Other errors pass."""
    try:
        with _rejecting(path, Damage, UnicodeDecodeError):
            yield
    except _ERRORS_OF_DAMAGE:
        examine(path)  # raises if the file is damaged; if it is not, the error is a bug of Anvil
        raise


@contextlib.contextmanager
def _rejecting(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Raise :class:`ArtifactRejected` in place of these errors, and of SQLite's errors for a damaged file."""
    try:
        with connections.translate_errors(path, LIBRARY):
            yield
    except errors as error:
        reason = str(error) or type(error).__name__
        damage = "it has text that is not UTF-8" if isinstance(error, UnicodeError) else reason
        raise ArtifactRejected(f"{path} is damaged: {damage}. {LIBRARY.restore}") from error


def examine(path: Path) -> tuple[dict[str, str], int]:
    """Check a whole library without changing it. Returns its manifest and the number of its documents.

    Raises :class:`ArtifactRejected` or another :class:`AnvilError`.
    """
    # With "immutable" SQLite does not write its "-shm" file, so the folder may be read-only. But it also ignores the
    # write-ahead log, so this is for an empty log only.
    log = Path(f"{path}-wal")
    log_is_empty = not log.exists() or not log.stat().st_size
    address = f"{connections.uri(path.resolve()).partition('?')[0]}?{'immutable=1' if log_is_empty else 'mode=ro'}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        _rejecting(path, Damage, *_ERRORS_OF_DAMAGE),
        contextlib.closing(connections.prepare(apsw.Connection(address, flags=flags))) as handle,
    ):
        check_open(handle, path)
        verdict = str(handle.execute("PRAGMA quick_check(1)").get)
        if verdict != "ok":
            raise Damage(verdict)
        for table in ("anvil_meta", "documents", "holdings", "chunks", "windows", "labels", "changes"):
            rule = connections.row_rule(handle, table, any_text=True)
            if handle.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE NOT ({rule}))").get:
                raise Damage(f"a row of {table} has a value of a wrong type")
            for _ in handle.execute(f"SELECT * FROM {table}"):  # decodes all texts, which may not be UTF-8
                pass
        for row in handle.execute("SELECT metadata, file_path FROM documents"):
            metadata(*row)
        for damage, query in _STRAY_ROWS:
            if handle.execute(f"SELECT EXISTS ({query})").get:
                raise Damage(damage)
        meta = dict(handle.execute("SELECT key, value FROM anvil_meta"))
        dimensions = int(meta["embedding_dimensions"])
        if dimensions and handle.execute(f"SELECT EXISTS ({_STRAY_VECTORS})", (dimensions,)).get:
            raise Damage("its vectors are damaged, or belong to no window")
        return meta, int(handle.execute("SELECT count(*) FROM documents").get)


_STRAY_ROWS = (
    (
        "a document has no entry in holdings, or an entry belongs to no document",
        "SELECT id FROM documents WHERE id NOT IN (SELECT id FROM holdings) "
        "UNION ALL SELECT id FROM holdings WHERE id NOT IN (SELECT id FROM documents)",
    ),
    (
        "a passage belongs to no document, or is not in the keyword index",
        f"SELECT 1 FROM chunks WHERE document_id IS NOT id >> {table_rows.CHUNK_BITS} "
        "OR document_id NOT IN (SELECT id FROM documents) OR id NOT IN (SELECT id FROM chunks_fts_docsize)",
    ),
    (
        "a window belongs to no passage",
        f"SELECT 1 FROM windows WHERE id >> {table_rows.WINDOW_BITS} NOT IN (SELECT id FROM chunks)",
    ),
    ("a label is not JSON", "SELECT 1 FROM labels WHERE NOT json_valid(value)"),
)
"""(damage, a query for the damaged rows)."""
_GROUP = connections.LARGE.vector_group
_STRAY_VECTORS = f"""
    SELECT 1 FROM vectors_chunks c LEFT JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id
    WHERE c.size <> {_GROUP} OR length(c.validity) <> {_GROUP // 8} OR length(c.rowids) <> {_GROUP * 8}
    OR length(v.vectors) IS NOT {_GROUP} * ?1
    UNION ALL SELECT 1 FROM vectors_rowids r WHERE r.chunk_offset NOT BETWEEN 0 AND {_GROUP - 1}
    OR r.chunk_id NOT IN (SELECT chunk_id FROM vectors_chunks) OR r.rowid NOT IN (SELECT id FROM windows)
"""
"""A query for vectors that sqlite-vec did not write. Some of them make each search fail, others make it find less."""
