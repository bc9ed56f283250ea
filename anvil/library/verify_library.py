"""Checks of a library's rows: types, ranges, and references between tables.

A library can be large and several processes write it, so it is not checked whole at each start. Rows are checked when
they are read. When reading fails for another reason, the whole file is checked, so that the error names the damage.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from anvil.errors import AnvilError, ArtifactRejected
from anvil.formats.json_values import json_object
from anvil.index_file import connection as connections
from anvil.index_file import table_rows
from anvil.library.library_file import LIBRARY, check_open, translated
from anvil.search.metadata_filter import is_deep


class Damage(Exception):
    """A value that Anvil never writes; ``str`` describes it, as a part of a sentence."""


def typed(row: Any, what: str, *kinds: type) -> Any:
    """The row, if its values have these types and whole numbers are not negative. Raises :class:`Damage`."""
    for value, kind in zip(row, kinds, strict=True):
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise Damage(f"{what} holds {_describe(value)} where {_KINDS[kind]} belongs")
    return row


def metadata(text: str, source: str) -> dict[str, Any]:
    """A document's metadata from its JSON. Raises :class:`Damage`."""
    values = json_object(text)
    if values is None or is_deep(values):
        raise Damage(f"the metadata of {source[:200]!r} is no JSON object that could have been kept")
    return values


@contextlib.contextmanager
def guarded(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Raise :class:`ArtifactRejected` for errors that damaged rows cause. Other errors pass."""
    try:
        yield
    except (AnvilError, *_FILE_ERRORS):
        raise
    except (Damage, UnicodeDecodeError) as error:
        damage = "it has text that is not UTF-8" if isinstance(error, UnicodeError) else str(error)
        raise _rejected(path, damage) from error
    except Exception as error:
        damage = problem(connection) or ""
        if not damage:
            raise
        raise _rejected(path, damage) from error


def examine(path: Path) -> tuple[dict[str, str], int]:
    """Check a whole library without changing it; its manifest, and the number of its documents.

    Raises :class:`ArtifactRejected` or another :class:`AnvilError`.
    """
    log = Path(f"{path}-wal")
    unused = not log.exists() or not log.stat().st_size
    address = f"{connections.uri(path.resolve()).partition('?')[0]}?{'immutable=1' if unused else 'mode=ro'}"
    with translated(path):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(connections.prepared(apsw.Connection(address, flags=flags))) as handle:
            check_open(handle, path)
            verdict = handle.execute("PRAGMA quick_check(1)").get
            damage = None if verdict == "ok" else str(verdict)
            with guarded(handle, path):
                damage = damage or problem(handle)
                meta = dict(handle.execute("SELECT key, value FROM anvil_meta"))
                documents = int(handle.execute("SELECT count(*) FROM documents").get)
    if damage is not None:
        raise _rejected(path, damage)
    return meta, documents


def problem(connection: apsw.Connection) -> str | None:
    """What is wrong with the first damaged row; None when no row is damaged."""
    for damage, query in _DAMAGE:
        if connection.execute(f"SELECT EXISTS ({query})").get:
            return damage
    try:
        for _ in itertools.chain.from_iterable(connection.execute(query) for query in _TEXTS):
            pass
    except UnicodeDecodeError:
        return "it has text that is not UTF-8"
    dimensions = connection.execute("SELECT value FROM anvil_meta WHERE key = 'embedding_dimensions'").get
    if dimensions is None or not dimensions.isdecimal():
        return "its manifest has no embedding_dimensions"
    if dimensions != "0" and connection.execute(f"SELECT EXISTS ({_VECTORS})", (int(dimensions),)).get:
        return "its vectors are damaged, or belong to no window"
    return None


_FILE_ERRORS = (
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.FormatError,
    apsw.FullError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.IOError,
)
"""SQLite's errors about a file, which :func:`translated` turns into Anvil's."""


def _rejected(path: Path, damage: str) -> ArtifactRejected:
    return ArtifactRejected(f"{path} is damaged: {damage}. {LIBRARY.restore}")


_KINDS = {int: "a whole number from 0 on", str: "text", bytes: "a blob"}


def _describe(value: Any) -> str:
    names = {str: "text", bytes: "a blob", float: "a fraction", type(None): "nothing", int: "a number out of range"}
    return names.get(type(value), type(value).__name__)


def _not(kind: str, *columns: str) -> str:
    return " OR ".join(f"typeof({column}) <> '{kind}'" for column in columns)


def _not_a_count(*columns: str) -> str:
    return " OR ".join(f"typeof({column}) <> 'integer' OR {column} < 0" for column in columns)


_DAMAGE = (
    ("its manifest has a value that is no text", f"SELECT 1 FROM anvil_meta WHERE {_not('text', 'key', 'value')}"),
    (
        "the row of a document has a value of a wrong type",
        "SELECT 1 FROM documents WHERE "
        + _not("text", "library", "file_path", "title", "file_type", "last_modified", "metadata")
        + f" OR {_not_a_count('size')} OR id NOT BETWEEN 0 AND {(1 << table_rows.DOCUMENT_BITS) - 1}",
    ),
    (
        "the metadata of a document is no JSON object",
        "SELECT 1 FROM documents WHERE CASE WHEN json_valid(metadata) THEN json_type(metadata) <> 'object' ELSE 1 END",
    ),
    (
        "what is kept of a document has a value of a wrong type",
        f"SELECT 1 FROM holdings WHERE {_not('text', 'doc_id', 'content_hash', 'created_at', 'head')} "
        f"OR {_not_a_count('chunk_count')} OR chunk_count > {table_rows.most_chunks()}",
    ),
    (
        "a document has no entry in holdings, or an entry no document",
        "SELECT id FROM documents WHERE id NOT IN (SELECT id FROM holdings) "
        "UNION ALL SELECT id FROM holdings WHERE id NOT IN (SELECT id FROM documents)",
    ),
    (
        "a passage has a value of a wrong type",
        f"SELECT 1 FROM chunks WHERE {_not('text', 'heading_path', 'title', 'terms', 'content')} "
        f"OR {_not('blob', 'chunk_id')} OR {_not_a_count('id', 'ordinal', 'heading_level', 'start', 'start_line')} "
        f"OR {_not_a_count('end_line', 'page', 'char_count')} "
        "OR page > 2147483647",
    ),
    (
        "a passage belongs to no document",
        f"SELECT 1 FROM chunks WHERE document_id IS NOT id >> {table_rows.CHUNK_BITS} "
        "OR document_id NOT IN (SELECT id FROM documents)",
    ),
    (
        "a passage is missing in the keyword index",
        "SELECT 1 FROM chunks WHERE id NOT IN (SELECT id FROM chunks_fts_docsize)",
    ),
    (
        "a window has a value of a wrong type, or belongs to no passage",
        f'SELECT 1 FROM windows WHERE {_not_a_count("start")} OR typeof("end") <> \'integer\' OR "end" < start '
        f"OR {_not('blob', 'key')} OR id >> {table_rows.WINDOW_BITS} NOT IN (SELECT id FROM chunks)",
    ),
    (
        "a label has a value of a wrong type",
        f"SELECT 1 FROM labels WHERE {_not('text', 'key', 'value')} OR {_not('integer', 'document_id')} "
        "OR NOT json_valid(value)",
    ),
    (
        "its list of changes has a value of a wrong type",
        f"SELECT 1 FROM changes WHERE {_not_a_count('document_id', 'number')}",
    ),
)
"""(damage, a query for the rows that have it)."""
_TEXTS = (
    "SELECT library, file_path, title, file_type, last_modified, metadata FROM documents",
    "SELECT doc_id, content_hash, created_at, head FROM holdings",
    "SELECT key, value FROM labels",
    "SELECT heading_path, title, terms, content FROM chunks",
)
"""Queries for all text."""
_VECTOR_GROUP = connections.LARGE.vector_group
_VECTORS = f"""
    SELECT 1 FROM vectors_chunks c LEFT JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id
    WHERE c.size <> {_VECTOR_GROUP} OR length(c.validity) <> {_VECTOR_GROUP // 8}
    OR length(c.rowids) <> {_VECTOR_GROUP * 8} OR length(v.vectors) IS NOT {_VECTOR_GROUP} * ?1
    UNION ALL SELECT 1 FROM vectors_rowids r WHERE r.chunk_offset NOT BETWEEN 0 AND {_VECTOR_GROUP - 1}
    OR r.chunk_id NOT IN (SELECT chunk_id FROM vectors_chunks) OR r.rowid NOT IN (SELECT id FROM windows)
"""
"""A query for vectors that sqlite-vec did not write, or that belong to no window."""
