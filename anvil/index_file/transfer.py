"""Copying documents from one index to another, with their chunks and vectors: nothing is parsed or embedded."""

from __future__ import annotations

from anvil.index_file import connection, row_ids
from anvil.index_file.reader import Reader
from anvil.index_file.rows import StoredDocument
from anvil.index_file.writer import Writer


def take_over(writer: Writer, reader: Reader) -> None:
    """Add every document of ``reader`` to a working copy with the same settings that has none of them.

    Documents may get other ids. The keyword index is not changed; publishing makes it from the chunks.
    """
    for document in list(reader.documents()):
        _copy(writer, reader, document)


def put_back(writer: Writer, reader: Reader, file_path: str) -> None:
    """Replace, add or remove a document of a working copy, so that it is as in ``reader``.

    Both have the same settings. The keyword index is changed too.
    """
    writer.remove(file_path)
    document = reader.document(file_path)
    if document is not None:
        writer.make_searchable(_copy(writer, reader, document))


def _copy(writer: Writer, reader: Reader, document: StoredDocument) -> int:
    """Add a document of ``reader`` without its entries in the keyword index; its id in ``writer``."""
    target, source = writer.connection, reader.connection
    new = writer.new_id(document.library, document.file_path)
    shift = (new - document.id) << row_ids.CHUNK_BITS
    moved = shift << row_ids.WINDOW_BITS
    chunks = row_ids.chunk_range(document.id)
    windows = row_ids.window_range(*chunks)
    for _, *row in source.execute("SELECT * FROM documents WHERE id = ?", (document.id,)):
        target.execute(_insert("documents", 1 + len(row)), (new, *row))
    target.executemany(
        _insert("sections", 9),
        ((new, *row) for _, *row in source.execute("SELECT * FROM sections WHERE document_id = ?", (document.id,))),
    )
    target.executemany(
        _insert("chunks", 15),
        (
            (id_ + shift, key, new, *row)
            for id_, key, _, *row in source.execute("SELECT * FROM chunks WHERE id BETWEEN ? AND ?", chunks)
        ),
    )
    target.executemany(
        _insert("windows", 4),
        (
            (id_ + moved, *row)
            for id_, *row in source.execute("SELECT * FROM windows WHERE id BETWEEN ? AND ?", windows)
        ),
    )
    if reader.has_vectors():
        rows = list(source.execute("SELECT rowid FROM vectors_rowids WHERE rowid BETWEEN ? AND ?", windows))
        writer.put_vectors((row + moved, reader.vector(row)) for (row,) in rows)
    return new


def detached(reader: Reader, path: str = "") -> Reader:
    """Copy an open index to a scratch database and close it, because Windows cannot replace an open file.

    ``path``: as for :func:`anvil.index_file.connection.open_scratch`.
    """
    with reader:
        copy = connection.open_scratch(path)
        connection.fill(copy, reader.connection)
        return Reader(copy)


def _insert(table: str, columns: int) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"
