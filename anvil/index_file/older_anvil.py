"""Recognition of an index that the older Anvil wrote, a program for Node.js with the same default place.

Such a file is made from the documents, like every index, so a build may replace it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw

from anvil.errors import OlderIndex
from anvil.index_file import connection

_COLUMNS = {"chunks": {"chunk_id", "heading_path", "content_hash", "ordinal"}, "anvil_meta": {"key", "value"}}
_LOG = "-wal"


def refusal(path: Path) -> OlderIndex:
    """The error for such a file."""
    return OlderIndex(f"{path} is an index of the older Anvil, which is not read.", "'anvil build' replaces it.")


def has_written(path: Path) -> bool:
    """Whether the older Anvil wrote the file at ``path``. Its tables may still be in the write-ahead log beside it."""
    if not path.is_file():  # SQLite would wait for a pipe
        return False
    uri = connection.uri(path.resolve())
    if _beside(path, _LOG).exists():
        uri = uri.removesuffix(connection.IMMUTABLE)
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(apsw.Connection(uri, flags=flags)) as handle:
            return not handle.pragma("application_id") and all(
                columns <= {name for (name,) in handle.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                for table, columns in _COLUMNS.items()
            )
    except (apsw.Error, UnicodeDecodeError):
        return False


def clear_logs(path: Path) -> None:
    """Delete the logs of such an index before another file is renamed to ``path``: SQLite would read them as logs of
    the new file. Raises :class:`OSError`."""
    logs = [log for log in (_beside(path, _LOG), _beside(path, "-shm")) if log.exists()]
    if logs and has_written(path):
        for log in logs:
            log.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
