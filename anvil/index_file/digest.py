"""The digest of an index: SHA-256 over text, structure and configuration, in canonical order.

Vectors and times are not part of it, because they may differ between machines. Two indexes with one digest have the
same text. SQLite itself writes the rows as SQL literals, which is exact and fast.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import apsw

from anvil.index_file import row_ids

_DOCUMENT = (
    "library",
    "file_path",
    "title",
    "file_type",
    "blob_id",
    "fingerprint",
    "content_hash",
    "size",
    "url",
    "nav_path",
    "metadata",
)
_SECTION = ("ordinal", "heading_path", "heading_level", "anchor", "start", '"end"', "start_line", "end_line")
_WINDOW = ("id", "start", '"end"', "key")
_CHUNK = (
    "ordinal",
    "chunk_id",
    "heading_path",
    "heading_level",
    "start",
    "start_line",
    "end_line",
    "page",
    "char_count",
    "title",
    "terms",
    "content",
    "hidden",
)

_KEYWORD_TABLES = (("data", "id, block"), ("docsize", "id, sz"), ("idx", "segid, term, pgno"), ("config", "k, v"))


def _literals(columns: tuple[str, ...]) -> str:
    return f"concat_ws(',', {', '.join(f'quote({column})' for column in columns)})"


def document_digests(connection: apsw.Connection, document: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(id, digest) of one document or of all, by id: over its row, its sections and its chunks in their order."""
    first, last = (document, document) if document is not None else (0, (1 << row_ids.DOCUMENT_BITS) - 1)
    # A chunk counts when its id is in its document's range and its row names that document. So a wrong one is noticed.
    for id_, *parts in connection.execute(
        f"SELECT id, {_literals(_DOCUMENT)}, "
        f"(SELECT group_concat({_literals(_SECTION)}, char(10) ORDER BY ordinal) FROM sections s "
        "WHERE s.document_id = d.id), "
        f"(SELECT group_concat({_literals(_CHUNK)}, char(10) ORDER BY ordinal) FROM chunks c "
        f"WHERE c.id BETWEEN d.id << {row_ids.CHUNK_BITS} AND ((d.id + 1) << {row_ids.CHUNK_BITS}) - 1 "
        "AND +c.document_id = d.id) FROM documents d WHERE id BETWEEN ? AND ? ORDER BY id",
        (first, last),
    ):
        text = "\n\n".join(part or "" for part in parts)
        yield id_, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def checksum(connection: apsw.Connection, schema: str = "main") -> str:
    """SHA-256 (hex) of what the digest leaves out: the manifest's other keys, times, the keyword index, windows and
    vectors, as they are stored.

    Damage there changes no text. It changes which text is found, its rank, or which vector is reused.
    """
    whole = hashlib.sha256()
    for key, value in connection.execute(
        f"SELECT key, value FROM {schema}.anvil_meta WHERE key <> 'checksum' ORDER BY key"
    ):
        whole.update(f"{key}={value}\0".encode())
    for table, columns in _KEYWORD_TABLES:
        for row in connection.execute(f"SELECT {columns} FROM {schema}.chunks_fts_{table} ORDER BY 1, 2"):
            for value in row:
                whole.update(value if isinstance(value, bytes) else f"{value}\0".encode())
    times = connection.execute(f"SELECT group_concat(last_modified, '\n' ORDER BY id) FROM {schema}.documents").get
    whole.update((times or "").encode())
    for _, rows in connection.execute(
        f"SELECT id >> {row_ids.WINDOW_BITS + row_ids.CHUNK_BITS}, "
        f"group_concat({_literals(_WINDOW)}, char(10) ORDER BY id) FROM {schema}.windows GROUP BY 1"
    ):
        whole.update(rows.encode())
    if connection.execute(f"SELECT count(*) FROM {schema}.sqlite_schema WHERE name = 'vectors'").get:
        for blobs in connection.execute(
            f"SELECT c.validity, c.rowids, v.vectors FROM {schema}.vectors_chunks c "
            f"JOIN {schema}.vectors_vector_chunks00 v ON v.rowid = c.chunk_id ORDER BY c.chunk_id"
        ):
            for blob in blobs:
                whole.update(blob)
    return whole.hexdigest()


def index_digest(settings: Iterable[str], documents: Iterable[tuple[str, str, bytes]]) -> str:
    """Digest of a whole index, hex: its settings and (library, path, digest) of its documents, sorted."""
    whole = hashlib.sha256()
    for setting in settings:
        whole.update(setting.encode() + b"\0")
    for library, path, digest in sorted(documents):
        whole.update(f"{library}\0{path}\0".encode() + digest)
    return whole.hexdigest()
