"""Changes to a working copy of an index: documents, windows, vectors and the manifest with its digest.

A working copy is a scratch file or a database in memory. The caller opens the transactions (:meth:`Writer.atomic`).

The digest of an index is a SHA-256 over text, structure and configuration, in canonical order. Vectors and times are
not part of it, because they may differ between machines. Two indexes with one digest have the same text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from anvil.index_file import connection as connections
from anvil.index_file import manifests, table_rows
from anvil.index_file.reader import WINDOW_WITHOUT_VECTOR, WITHOUT_VECTORS, Reader
from anvil.index_file.table_rows import (
    DEFAULT_LIBRARY,
    DIGESTED,
    INSERT,
    ChunkText,
    StoredDocument,
    chunk_values,
    document_values,
    section_values,
)
from anvil.text import front_matter
from anvil.text.headings import page_title
from anvil.text.query import path_words
from anvil.values import Chunk, Document, ParsedPage, Window


def _chunk_rows(
    document: int, path: str, title: str, chunks: Sequence[Chunk], metadata: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The rows of a document's chunks, in the order of the table. The first chunk can be found by the front matter, and
    by words of the path that are nowhere in the text."""
    ids = table_rows.ChunkRows(document)
    occurrences: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    # A title in the text is found there. With its terms in each chunk, a short one would go before its section.
    text = "\n\n".join(chunk.content for chunk in chunks)
    absent, lowered = "" if title in text else title, text.lower()
    of_path = [word for word in path_words(path).split() if len(word) > 1 and word.lower() not in lowered]
    front_of_first = " ".join(filter(None, (front_matter.searched(metadata), *of_path)))
    for chunk in chunks:
        key = table_rows.chunk_key(path, chunk.heading_path, occurrences[chunk.heading_path])
        occurrences[chunk.heading_path] += 1
        front = "" if rows else front_of_first
        rows.append(chunk_values(ids.take(chunk.heading_path), key, document, title, chunk, front=front, absent=absent))
    return sorted(rows)


def title_of(document: Document, page: ParsedPage) -> str:
    """The title of a page: from its source, else front matter or the first h1, else the name of its file or folder.

    Front matter can have a NUL character, at which SQLite's functions end a text. It is replaced.
    """
    headings = ((section.heading_level, section.title) for section in page.sections if section.heading_level)
    return page_title(document.path, document.title or page.title, headings).replace("\0", "\ufffd")


class Writer:
    """Changes to one working copy."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.reader = Reader(connection)
        """Queries against the working copy; they see each change at once."""
        self._beyond: dict[int, int] = {}
        """A cache of :func:`anvil.index_file.table_rows.document_id`."""

    def close(self) -> None:
        self.connection.close()

    def atomic(self) -> apsw.Connection:
        """A transaction, for ``with``: all changes inside it are made, or none."""
        return self.connection

    def set_meta(self, values: Mapping[str, object]) -> None:
        """Set keys of the manifest; None removes one."""
        for key, value in values.items():
            if value is None:
                self.connection.execute("DELETE FROM anvil_meta WHERE key = ?", (key,))
            else:
                self.connection.execute("INSERT OR REPLACE INTO anvil_meta VALUES (?, ?)", (key, str(value)))

    # --- documents --------------------------------------------------------------------------------------

    def put(self, document: Document, page: ParsedPage, chunks: Sequence[Chunk], library: str = DEFAULT_LIBRARY) -> int:
        """Store a document and its chunks, in place of the one at its path if there is one. It has no windows yet.

        Returns the document's id. A document that is replaced keeps its id.
        """
        old_id = self.remove(document.path, library)
        id_ = old_id if old_id is not None else self.new_id(library, document.path)
        title = title_of(document, page)
        metadata = {**page.metadata, **document.metadata}
        self.connection.execute(INSERT["documents"], document_values(id_, library, document, title, metadata))
        self.connection.executemany(INSERT["sections"], (section_values(id_, section) for section in page.sections))
        self.connection.executemany(INSERT["chunks"], _chunk_rows(id_, document.path, title, chunks, metadata))
        self.make_searchable(id_)
        # From the rows as they are stored, and by the same query as in a check, so that both compute the same.
        for _, digest in document_digests(self.connection, id_):
            self.connection.execute("UPDATE documents SET digest = ? WHERE id = ?", (digest, id_))
        return id_

    def make_searchable(self, document_id: int) -> None:
        """Add the chunks of a document to the keyword index, which has none of them."""
        self.connection.execute(
            "INSERT INTO chunks_fts (rowid, title, heading_path, content, terms) "
            "SELECT id, title, heading_path, content, terms FROM chunks WHERE id BETWEEN ? AND ?",
            table_rows.chunk_range(document_id),
        )

    def _make_unsearchable(self, document_id: int) -> None:
        self.connection.execute(
            "INSERT INTO chunks_fts (chunks_fts, rowid, title, heading_path, content, terms) "
            "SELECT 'delete', id, title, heading_path, content, terms FROM chunks WHERE id BETWEEN ? AND ?",
            table_rows.chunk_range(document_id),
        )

    def remove(self, file_path: str, library: str = DEFAULT_LIBRARY) -> int | None:
        """Remove a document with its sections, chunks, windows and vectors; its id, or None if there is none."""
        id_: int | None = self.connection.execute(
            "SELECT id FROM documents WHERE library = ? AND file_path = ?", (library, file_path)
        ).get
        if id_ is None:
            return None
        self._beyond.clear()
        chunk_range = table_rows.chunk_range(id_)
        self._make_unsearchable(id_)  # first: FTS5 has no copy of the text, and needs it to take out its entries
        with self.connection:  # FTS5 writes its entries at a savepoint. Without it, new ones would be marked as deleted
            self._drop_windows(*table_rows.window_range(*chunk_range))
            self.connection.execute("DELETE FROM chunks WHERE id BETWEEN ? AND ?", chunk_range)
            self.connection.execute("DELETE FROM sections WHERE document_id = ?", (id_,))
            self.connection.execute("DELETE FROM documents WHERE id = ?", (id_,))
        return id_

    def touch(self, times: Mapping[str, str], library: str = DEFAULT_LIBRARY) -> None:
        """Set the times of the last change: path -> ISO 8601."""
        self.connection.executemany(
            "UPDATE documents SET last_modified = ? WHERE library = ? AND file_path = ?",
            ((time, library, path) for path, time in sorted(times.items())),
        )

    def new_id(self, library: str, path: str, besides: Container[int] = ()) -> int:
        """A free id for a new document: not in use here, and not in ``besides``."""

        def is_used(id_: int) -> bool:  # asked of the table, because a set would grow with the index
            return id_ in besides or bool(self.connection.execute("SELECT 1 FROM documents WHERE id = ?", (id_,)).get)

        return table_rows.document_id(library, path, is_used, self._beyond)

    # --- windows and vectors -------------------------------------------------------------------------------

    def drop_windows_without_vectors(self) -> None:
        """Remove all windows of each chunk with a window without a vector, which an earlier run could not embed."""
        sql = f"SELECT DISTINCT id >> {table_rows.WINDOW_BITS} FROM windows w WHERE {WINDOW_WITHOUT_VECTOR}"
        rows: list[Any] = self.connection.execute(sql).fetchall()
        for (row,) in rows:
            self._drop_windows(*table_rows.window_range(row, row))

    def put_windows(self, chunk: int, windows: Sequence[Window]) -> list[int]:
        """Store a chunk's windows; their ids."""
        rows = [
            (table_rows.window_row(chunk, number), w.start, w.end, table_rows.window_key(w.text))
            for number, w in enumerate(windows)
        ]
        self.connection.executemany(INSERT["windows"], rows)
        return [row[0] for row in rows]

    def put_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store vectors of :func:`table_rows.quantized` by window id."""
        insert = f"INSERT INTO vectors (id, embedding) VALUES (?, {table_rows.VECTOR_VALUE})"
        self.connection.executemany(insert, vectors)

    def chunks_lacking_vectors(self, rows: Collection[int]) -> list[ChunkText]:
        """The chunks of these rows without windows, or with windows without vectors, by row."""
        chosen = f"id IN ({', '.join(str(int(row)) for row in rows)})"
        return self.chunk_texts(f"{chosen} AND {WITHOUT_VECTORS}", -1, len(rows))

    def chunk_texts(self, condition: str, after: int, limit: int) -> list[ChunkText]:
        """Up to ``limit`` chunks after row ``after`` with a condition, such as :data:`WITHOUT_VECTORS`, by row."""
        rows = self.connection.execute(
            f"SELECT id, title, heading_path, content FROM chunks c WHERE id > ? AND {condition} ORDER BY id LIMIT ?",
            (after, limit),
        )
        return [ChunkText(*row) for row in rows]

    def replace_windows(self, chunk: ChunkText, windows: Sequence[Window]) -> list[int]:
        """Replace the windows of a chunk; the ids of the new ones.

        Nothing is stored, and the list is empty, if the chunk is gone or has another text now.
        """
        # The page may have been edited while the model ran, without the lock.
        sql = "SELECT title, heading_path, content FROM chunks WHERE id = ?"
        if self.connection.execute(sql, (chunk.row,)).get != chunk[1:]:
            return []
        self._drop_windows(*table_rows.window_range(chunk.row, chunk.row))
        return self.put_windows(chunk.row, windows)

    def reset_vectors(self, dimensions: int) -> None:
        """Remove all windows and vectors, and make a vector table for ``dimensions``."""
        self.connection.execute("DELETE FROM windows")
        self.connection.execute("DROP TABLE IF EXISTS vectors")
        if dimensions:
            self.connection.execute(connections.vector_table(dimensions))

    def renumber(self, moves: Sequence[tuple[int, int]], keywords: bool) -> None:
        """Change the ids of documents, (old, new), and of their rows.

        ``keywords``: also in the keyword index; without, it must be rebuilt.
        """
        self._beyond.clear()
        beyond = 1 << table_rows.DOCUMENT_BITS  # beyond all slots, because two documents may swap their ids
        for old, _ in moves if keywords else ():
            self._make_unsearchable(old)
        with self.connection:  # as in remove()
            for old, _ in moves:
                self._renumber(old, old + beyond)
            for old, new in moves:
                self._renumber(old + beyond, new)
        for _, new in moves if keywords else ():
            self.make_searchable(new)

    def _renumber(self, old: int, new: int) -> None:
        shift = (new - old) << table_rows.CHUNK_BITS
        moved = shift << table_rows.WINDOW_BITS
        chunks = table_rows.chunk_range(old)
        windows = table_rows.window_range(*chunks)
        execute = self.connection.execute
        execute("UPDATE documents SET id = ? WHERE id = ?", (new, old))
        execute("UPDATE sections SET document_id = ? WHERE document_id = ?", (new, old))
        execute("UPDATE chunks SET id = id + ?, document_id = ? WHERE id BETWEEN ? AND ?", (shift, new, *chunks))
        if self.reader.has_vectors():
            # sqlite-vec cannot change an id, so vectors are read, deleted and stored again.
            vectors = list(self.reader.vectors(*windows))
            self.connection.executemany("DELETE FROM vectors WHERE id = ?", ((row,) for row, _ in vectors))
            self.put_vectors((row + moved, vector) for row, vector in vectors)
        execute("UPDATE windows SET id = id + ? WHERE id BETWEEN ? AND ?", (moved, *windows))

    def clear(self) -> None:
        self.connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
        for table in ("chunks", "sections", "documents"):
            self.connection.execute(f"DELETE FROM {table}")
        self.reset_vectors(int(self.reader.meta()["embedding_dimensions"]))

    def _drop_windows(self, first: int, last: int) -> None:
        if self.reader.has_vectors():
            sql = "SELECT rowid FROM vectors_rowids WHERE rowid BETWEEN ? AND ?"
            rows = list(self.connection.execute(sql, (first, last)))
            self.connection.executemany("DELETE FROM vectors WHERE id = ?", rows)
        self.connection.execute("DELETE FROM windows WHERE id BETWEEN ? AND ?", (first, last))

    # --- closing -----------------------------------------------------------------------------------------

    def seal(self) -> str:
        """Set the counts, times and digest of the manifest from the rows; the digest, hex."""
        digest = manifests.digest(self.reader)
        # the checksum is set when it is published
        self.set_meta({**manifests.of_rows(self.reader), "digest": digest, "checksum": None})
        return digest


def copy_documents(writer: Writer, reader: Reader) -> None:
    """Add every document of ``reader`` to a working copy with the same settings, which has none of these documents.

    Documents may get other ids. The keyword index is not changed; publishing makes it from the chunks.
    """
    for document in list(reader.documents()):
        _copy(writer, reader, document)


def restore_document(writer: Writer, reader: Reader, file_path: str) -> None:
    """Replace, add or remove a document of a working copy, so that it is as in ``reader``.

    Both have the same settings. The keyword index is changed too.
    """
    writer.remove(file_path)
    document = reader.document(file_path)
    if document is not None:
        writer.make_searchable(_copy(writer, reader, document))


def _copy(writer: Writer, reader: Reader, document: StoredDocument) -> int:
    """Add a document of ``reader`` without its entries in the keyword index; its id in ``writer``."""
    new = writer.new_id(document.library, document.file_path)
    for table, key in (("documents", "id"), ("sections", "document_id")):
        rows = reader.connection.execute(f"SELECT * FROM {table} WHERE {key} = ?", (document.id,))
        for _, *row in rows:
            writer.connection.execute(INSERT[table], (new, *row))
    copy_rows(writer, reader, document.id, new)
    return new


def copy_rows(writer: Writer, reader: Reader, old: int, new: int) -> None:
    """Copy the chunks, windows and vectors of a document of ``reader``, without entries in the keyword index.

    ``old`` and ``new``: the id of the document in ``reader`` and in ``writer``.
    """
    shift = (new - old) << table_rows.CHUNK_BITS
    chunks = table_rows.chunk_range(old)
    windows = table_rows.window_range(*chunks)
    rows = reader.connection.execute("SELECT * FROM chunks WHERE id BETWEEN ? AND ?", chunks)
    writer.connection.executemany(INSERT["chunks"], ((id_ + shift, key, new, *row) for id_, key, _, *row in rows))
    shift <<= table_rows.WINDOW_BITS
    rows = reader.connection.execute("SELECT * FROM windows WHERE id BETWEEN ? AND ?", windows)
    writer.connection.executemany(INSERT["windows"], ((id_ + shift, *row) for id_, *row in rows))
    writer.put_vectors((id_ + shift, vector) for id_, vector in reader.vectors(*windows))


def detach(reader: Reader, path: str = "") -> Reader:
    """A scratch copy of an open index, which is closed then, because Windows cannot replace an open file.

    ``path``: as for :func:`anvil.index_file.connection.open_scratch`.
    """
    with reader:
        copy = connections.open_scratch(path)
        connections.fill(copy, reader.connection)
        return Reader(copy)


_KEYWORD_TABLES = (("data", "id, block"), ("docsize", "id, sz"), ("idx", "segid, term, pgno"), ("config", "k, v"))


def _literals(columns: str) -> str:
    """An expression: these columns as SQL literals, which SQLite writes fast and exactly."""
    return f"concat_ws(',', {', '.join(f'quote({column})' for column in columns.split(', '))})"


def document_digests(connection: apsw.Connection, document: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(id, digest) of one document or all, by id. A digest is over its row, sections and chunks in order."""
    first, last = (document, document) if document is not None else (0, (1 << table_rows.DOCUMENT_BITS) - 1)
    # A chunk counts when its id is in its document's range and its row names that document. So a wrong one is noticed.
    for id_, *parts in connection.execute(
        f"SELECT id, {_literals(DIGESTED['documents'])}, "
        f"(SELECT group_concat({_literals(DIGESTED['sections'])}, char(10) ORDER BY ordinal) FROM sections s "
        "WHERE s.document_id = d.id), "
        f"(SELECT group_concat({_literals(DIGESTED['chunks'])}, char(10) ORDER BY ordinal) FROM chunks c "
        f"WHERE c.id BETWEEN d.id << {table_rows.CHUNK_BITS} AND ((d.id + 1) << {table_rows.CHUNK_BITS}) - 1 "
        "AND +c.document_id = d.id) FROM documents d WHERE id BETWEEN ? AND ? ORDER BY id",
        (first, last),
    ):
        text = "\n\n".join(part or "" for part in parts)
        yield id_, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def checksum(connection: apsw.Connection, schema: str = "main") -> str:
    """SHA-256 (hex) over all that the digest leaves out, as it is stored: the manifest's other keys, times, the keyword
    index, windows and vectors.

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
        f"SELECT id >> {table_rows.WINDOW_BITS + table_rows.CHUNK_BITS}, "
        f"group_concat({_literals(DIGESTED['windows'])}, char(10) ORDER BY id) FROM {schema}.windows GROUP BY 1"
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
