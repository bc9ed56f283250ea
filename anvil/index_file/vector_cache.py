"""The user's cache of vectors: one SQLite file that all projects share, by model and text.

A cache saves time and decides nothing. If its file cannot be read or written, texts are embedded as without it. Many
processes may use it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import apsw

from anvil.errors import ConfigError
from anvil.index_file.table_rows import vector_bytes
from anvil.system import safe_files

MAX_BYTES = 512 << 20
"""Size of the file above which the vectors that were used least recently are removed."""
REMOVED_SHARE = 8
"""One in so many vectors is removed at a time, so that this is rare. The file keeps its size; its pages are reused."""
BUSY_TIMEOUT_MS = 2000
"""A build must not wait longer for a cache: it then embeds the text itself."""
CHECKSUM_BYTES = 4
APPLICATION_ID = 0x414E5643  # "ANVC"
SECONDS_PER_DAY = 86_400

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS vectors (
    model INTEGER NOT NULL,
    key BLOB NOT NULL,
    vector BLOB NOT NULL,  -- as an index stores it, then CRC-32 of key and vector
    used INTEGER NOT NULL,  -- day of the last use, in days since 1970
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
"""

logger = logging.getLogger(__name__)


def text_key(text: str) -> bytes:
    """The key of an embedded text: 16 bytes of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def default_path() -> Path:
    return safe_files.user_cache() / "vectors.db"


class VectorCache:
    """Vectors of one model, as an index stores them, by the key of their text. Usable from any thread.

    ``model_digest``: identifies the model and all that a vector depends on. No method raises because of the file.
    """

    def __init__(
        self, model_digest: str, dimensions: int, path: Path | None = None, max_bytes: int = MAX_BYTES
    ) -> None:
        self._model_digest = model_digest
        self._vector_bytes = vector_bytes(dimensions)
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._model_id = 0
        self._usable = True

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        vectors: dict[bytes, bytes] = {}
        with self._opened() as connection:
            if connection is None:
                return {}
            today = _today()
            used_before_today = []
            with connection:  # one transaction: else SQLite would lock the file for each key
                for key in keys:
                    row = connection.execute(
                        "SELECT vector, used FROM vectors WHERE model = ? AND key = ?", (self._model_id, key)
                    ).fetchone()
                    if row is None or not self._is_sound(key, row[0]):
                        continue
                    vectors[key] = row[0][:-CHECKSUM_BYTES]
                    if row[1] != today:
                        used_before_today.append(key)
            if used_before_today:  # written once a day, so that most reads of the cache write nothing
                connection.executemany(
                    "UPDATE vectors SET used = ? WHERE model = ? AND key = ?",
                    ((today, self._model_id, key) for key in used_before_today),
                )
        return vectors

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors. Those that were used least recently are removed when the file has become too large."""
        with self._opened() as connection:
            if connection is None:
                return
            today = _today()
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                    (
                        (self._model_id, key, vector + _checksum(key, vector), today)
                        for key, vector in sorted(vectors.items())  # in the order of the table, which is by key
                    ),
                )
            pages = connection.pragma("page_count") - connection.pragma("freelist_count")
            if pages * connection.pragma("page_size") > self._max_bytes:
                connection.execute(
                    "DELETE FROM vectors WHERE (model, key) IN (SELECT model, key FROM vectors ORDER BY used "
                    f"LIMIT 1 + (SELECT count(*) FROM vectors) / {REMOVED_SHARE})"
                )

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[apsw.Connection | None]:
        """The connection, locked; None if the file cannot be used. An error of SQLite ends the block and no more."""
        with self._lock:
            if self._connection is None and self._usable:
                with self._tolerated():
                    self._connection = self._open()
            with self._tolerated():
                yield self._connection

    @contextlib.contextmanager
    def _tolerated(self) -> Iterator[None]:
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as error:  # another process writes: the next call tries again
            logger.debug("The vector cache is busy: %s", error)
        except (apsw.Error, OSError, ConfigError) as error:
            self._give_up(error)

    def _open(self) -> apsw.Connection:
        self._path = path = self._path or default_path()
        safe_files.make_folder(path.parent)
        path.touch(mode=0o600)  # vectors tell something about the text
        connection = apsw.Connection(os.fspath(path))
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            if connection.pragma("application_id") not in (0, APPLICATION_ID):
                raise apsw.CantOpenError(f"{path} is another program's file")
            connection.pragma("trusted_schema", False)
            connection.pragma("journal_mode", "wal")  # readers and one writer at once, as of two builds
            connection.pragma("synchronous", "off")  # what a crash loses is embedded again
            with connection:
                connection.execute(_SCHEMA)
                connection.execute("INSERT OR IGNORE INTO models (digest) VALUES (?)", (self._model_digest,))
            self._model_id = connection.execute("SELECT id FROM models WHERE digest = ?", (self._model_digest,)).get
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_up(self, error: Exception) -> None:
        """Work without the file from now on. A damaged file is removed, so that the next process makes a new one."""
        logger.debug("The vector cache is not used: %s", error)
        self._usable = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            path = self._path or default_path()
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                with contextlib.suppress(OSError):
                    path.with_name(name).unlink()

    def _is_sound(self, key: bytes, value: object) -> bool:
        """Whether a stored value is a vector of this model's length that was written for this key."""
        if not isinstance(value, bytes) or len(value) != self._vector_bytes + CHECKSUM_BYTES:
            return False
        vector = value[:-CHECKSUM_BYTES]
        return any(vector) and value[-CHECKSUM_BYTES:] == _checksum(key, vector)  # one of zeros has no direction


def _checksum(key: bytes, vector: bytes) -> bytes:
    return zlib.crc32(vector, zlib.crc32(key)).to_bytes(CHECKSUM_BYTES, "big")


def _today() -> int:
    return int(time.time()) // SECONDS_PER_DAY
