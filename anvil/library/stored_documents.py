"""SQL of a library file: reading its documents and passages, and storing, replacing, updating and deleting documents.

A filter becomes conditions on indexed columns in these statements, so it applies before the ranking. Each change of a
document is one transaction.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import apsw

from anvil.errors import ConfigError, DocumentTooLarge, NotFound
from anvil.formats.data_formats import canonical, timestamp
from anvil.index_file import connection as connections
from anvil.index_file import table_rows
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import INSERT, SearchedText, VectorRows, chunk_values
from anvil.index_file.writer import Writer, copy_rows
from anvil.library import values
from anvil.library.library_file import Damage, check_types, metadata, writing
from anvil.library.metadata_filter import (
    Condition,
    all_of,
    different_keys,
    labels_of,
    merged_metadata,
    valid_unicode,
)
from anvil.library.values import DocumentInfo, LibraryDocument, Passage
from anvil.text import visible_text
from anvil.values import Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ENTRY = "the entry of a document"
"""The name of a row in messages about damage."""
_ROW_BITS = table_rows.DOCUMENT_BITS + table_rows.CHUNK_BITS
_STORED = (
    "SELECT h.doc_id, d.file_path, d.title, d.library, h.content_hash, h.created_at, d.metadata, h.chunk_count "
    "FROM documents d JOIN holdings h ON h.id = d.id"
)


def _stored(row: Sequence[Any]) -> LibraryDocument:
    document = LibraryDocument(*check_types(row, _ENTRY, str, str, str, str, str, str, str, int))
    return replace(document, metadata=metadata(row[6], document.source))


class LibraryReader(Reader):
    """Queries against one library file. For several that must see the same documents, open a transaction."""

    # --- documents ----------------------------------------------------------------------------------------

    def find(self, source: str, library: str) -> LibraryDocument | None:
        sql = f"{_STORED} WHERE d.library = ? AND d.file_path = ?"
        return next(map(_stored, self.connection.execute(sql, (library, source))), None)

    def by_id(self, doc_id: str) -> LibraryDocument:
        """The document with a ``doc_id``. Raises :class:`NotFound`."""
        for row in self.connection.execute(f"{_STORED} WHERE h.doc_id = ?", (valid_unicode(doc_id),)):
            return _stored(row)
        raise not_found(doc_id)

    def row_of(self, document: LibraryDocument) -> int:
        (row,) = check_types((self._one("SELECT id FROM holdings WHERE doc_id = ?", document.doc_id),), _ENTRY, int)
        return int(row)

    def full_document(self, doc_id: str) -> values.WholeDocument:
        """The document with all its text. Raises :class:`NotFound`."""
        stored = self.by_id(doc_id)
        (head,) = check_types((self._one("SELECT head FROM holdings WHERE doc_id = ?", doc_id),), _ENTRY, str)
        chunks = self.connection.execute(
            "SELECT content, hidden FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",
            table_rows.chunk_range(self.row_of(stored)),
        )
        content = head + "".join(visible_text.restored(*check_types(chunk, "a passage", str, str)) for chunk in chunks)
        return values.WholeDocument(
            doc_id, stored.source, stored.title, stored.library, content, stored.chunk_count, stored.metadata
        )

    def list_documents(self, library: str | None, limit: int, offset: int) -> list[LibraryDocument]:
        """Up to ``limit`` documents from ``offset`` on, by library and source, which is the order of an SQL index."""
        within = "" if library is None else "WHERE library = ?3"
        rows = self.connection.execute(
            f"{_STORED} WHERE d.id IN (SELECT id FROM documents {within} ORDER BY library, file_path "
            "LIMIT ?1 OFFSET ?2) ORDER BY d.library, d.file_path",
            (limit, offset) if library is None else (limit, offset, library),
        )
        return list(map(_stored, rows))

    def resolve(self, reference: str, library: str | None) -> dict[str, str]:
        """doc_id -> library of at most 20 documents whose doc_id or source is ``reference``. ``library=None``: all."""
        rows: Iterable[Any] = self.connection.execute(
            "SELECT h.doc_id, d.library FROM holdings h JOIN documents d ON d.id = h.id "
            "WHERE (h.doc_id = ?1 OR d.file_path = ?1) AND (?2 IS NULL OR d.library = ?2) "
            "ORDER BY d.library LIMIT 20",
            (valid_unicode(reference), library),
        )
        return dict(rows)

    def count_documents(self, library: str | None) -> int:
        return int(self._one("SELECT count(*) FROM documents WHERE ?1 IS NULL OR library = ?1", library))

    def libraries(self) -> list[values.LibrarySummary]:
        rows = self.connection.execute(
            "SELECT d.library, count(*), sum(h.chunk_count) FROM documents d JOIN holdings h ON h.id = d.id "
            "GROUP BY 1 ORDER BY 1"
        )
        return [values.LibrarySummary(*check_types(row, _ENTRY, str, int, int)) for row in rows]

    # --- for a search -------------------------------------------------------------------------------------

    def version(self) -> int:
        """A number that grows with each change by any process."""
        (number,) = check_types(
            (self._one("SELECT coalesce(max(number), 0) FROM changes"),), "the list of changes", int
        )
        return int(number)

    def changed_since(self, version: int) -> list[int]:
        """Row ids of documents that were added, deleted or changed after ``version``."""
        sql = "SELECT document_id FROM changes WHERE number > ? ORDER BY document_id"
        return [id_ for (id_,) in self.connection.execute(sql, (version,))]

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        """As in any index, with a check of types: a library file is not checked whole when it is opened."""
        row_list = [int(row) for row in rows]
        texts = super().searched_text(row_list)
        for text in texts.values():
            check_types(text[:4], "a passage", str, str, str, str)
        if len(texts) < len(set(row_list)):
            raise Damage("a passage is missing in the keyword index")
        return texts

    def chunk_rows(self, document: int | None = None) -> list[int]:
        """The rows of the chunks of one document, or of all, ascending."""
        if document is None:
            ids = self.connection.execute("SELECT id FROM chunks")  # SQLite reads them from an index, in its order
        else:
            within = table_rows.chunk_range(document)
            ids = self.connection.execute("SELECT id FROM chunks WHERE id BETWEEN ? AND ?", within)
        rows = sorted(row for (row,) in ids)
        if rows and not 0 <= rows[0] <= rows[-1] < 1 << _ROW_BITS:
            raise Damage("a passage has a row that no document has")
        return rows

    def document_vectors(self, document: int, dimensions: int) -> tuple[NDArray[np.int64], VectorRows]:
        """The vectors of one document, by window: the chunk rows, (n,), and the vectors, (n, dimensions)."""
        import numpy as np

        rows = list(self.vectors(*table_rows.window_range(*table_rows.chunk_range(document))))
        vectors = table_rows.vector_rows(b"".join(vector for _, vector in rows), dimensions)
        return np.array([row for row, _ in rows], np.int64) >> table_rows.WINDOW_BITS, vectors

    def rows_passing(self, table: Literal["documents", "chunks"], conditions: Sequence[Condition]) -> list[int]:
        """Row ids of the documents or passages that meet conditions of a filter."""
        condition, bound = all_of(conditions)
        return [id_ for (id_,) in self.connection.execute(f"SELECT id FROM {table} WHERE {condition}", bound)]

    def matching_rows(self, expression: str, weights: Sequence[float], limit: int, rows: Sequence[int]) -> list[int]:
        """As :meth:`matching`, for some passages only."""
        within = "AND +rowid IN (SELECT value FROM json_each(?))"  # "+": FTS5 is not asked again for each row
        return self._matching(expression, weights, limit, within, json.dumps(rows))

    def passages(self, rows: Iterable[int]) -> dict[int, Passage]:
        """Row id -> passage, with score 0."""
        chunk_rows: Iterable[Any] = self.connection.execute(
            "SELECT c.id, h.doc_id, d.file_path, d.title, d.library, d.file_type, d.last_modified, c.page, c.content, "
            "c.ordinal, d.metadata FROM chunks c JOIN documents d ON d.id = c.document_id "
            "JOIN holdings h ON h.id = d.id WHERE c.id IN (SELECT value FROM json_each(?))",
            (json.dumps([int(row) for row in rows]),),
        )
        return {id_: _passage(row) for id_, *row in chunk_rows}


def _passage(row: Sequence[Any]) -> Passage:
    kinds = (str, str, str, str, str, str, int, str, int, str)
    passage = Passage(*check_types((*row, 0.0), "a passage", *kinds, float))
    return replace(passage, content=visible_text.shown(passage.content), metadata=metadata(row[-1], passage.source))


# --- changes --------------------------------------------------------------------------------------------------------

DOC_ID_CHARACTERS = 20
MAX_PASSAGES = 1 << table_rows.CHUNK_BITS
"""Passages of one document."""


class StagedDocument:
    """One document in a scratch index, ready to be stored.

    ``info``: its description, with the title that the document itself has. ``head``: the text before the first chunk,
    such as front matter. ``notes``: warnings about its conversion.
    """

    def __init__(self, settings: Mapping[str, str], info: DocumentInfo) -> None:
        """``settings``: the library's manifest."""
        self.settings, self.info = settings, info
        self.head = ""
        self.notes: tuple[str, ...] = ()
        self.rows = Writer(connections.open_scratch())
        """The scratch index."""
        connections.create_tables(self.rows.connection, int(settings["embedding_dimensions"]))
        self.rows.set_meta(settings)
        # a row for the document itself: messages about failures take its name from there
        sql = "INSERT INTO documents VALUES (0, '', ?, '', '', '', '', x'', 0, '', NULL, NULL, '{}', x'')"
        self.rows.connection.execute(sql, (info.source,))
        self._chunk_count = 0

    def add(self, chunks: Iterable[Chunk], page: int) -> None:
        """Add chunks, numbered in the order of the calls. Raises :class:`DocumentTooLarge`."""
        chunk_rows, title = [], self.info.title
        for chunk in chunks:
            key = table_rows.chunk_key(self.info.source, chunk.heading_path, self._chunk_count)
            chunk_rows.append(chunk_values(self._chunk_count, key, 0, title, chunk, page, absent=title))
            self._chunk_count += 1
            if self._chunk_count > MAX_PASSAGES:
                raise DocumentTooLarge(
                    f"It has more than {MAX_PASSAGES:,} passages. Split it, or raise chunking.max_chunk_size."
                )
        with self.rows.atomic():
            self.rows.connection.executemany(INSERT["chunks"], chunk_rows)

    def close(self) -> None:
        self.rows.connection.close()


class LibraryWriter:
    """Changes to one library file, each in one transaction. A change waits for other writers."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.reader = LibraryReader(connection)
        self.rows = Writer(connection)
        """The writer of the tables that each index has."""

    def close(self) -> None:
        self.connection.close()

    def store(self, staged: StagedDocument) -> values.Ingested:
        """Add a document, or replace the one with its source and library.

        A replaced document keeps ``created_at`` and its metadata, to which new keys are added. Raises
        :class:`ConfigError` if the library's embedding model was changed meanwhile.
        """
        info = staged.info
        with writing(self.connection):
            meta = self.reader.meta()  # within the lock: another process may have changed the model before
            if any(meta[key] != staged.settings[key] for key in SETTINGS if key.startswith("embedding_")):
                raise ConfigError("The library's embedding model was changed by another process. Ingest it again.")
            stored = self.reader.find(info.source, info.library)
            created_at, changed = info.created_at or timestamp(time.time()), []
            if stored is not None:
                changed = [key for key in different_keys(stored.metadata, info.metadata) if key in stored.metadata]
                info = replace(info, metadata=merged_metadata(stored.metadata, info.metadata))
                created_at = stored.created_at
            id_ = self._remove(stored) if stored else self.rows.new_id(info.library, info.source)
            doc_id = doc_id_for(info.source, info.library)
            chunk_count = self._insert(id_, staged, info)
            self.connection.execute(
                "INSERT INTO holdings VALUES (?, ?, ?, ?, ?, ?)",
                (id_, doc_id, info.content_hash, created_at, chunk_count, staged.head),
            )
            self._add_labels(id_, info.metadata)
            self._mark_changed(id_)
        notes = staged.notes
        if not chunk_count:
            notes = (*notes, "It has no text, so no search finds it.")
        if changed:
            notes = (*notes, f"Its metadata has new values for {', '.join(changed)}.")
        return values.Ingested(
            "replaced" if stored else "indexed", doc_id, info.source, info.library, chunk_count, notes
        )

    def change_model(self, settings: Mapping[str, str]) -> None:
        """Set the embedding model in the manifest, and delete all vectors."""
        with writing(self.connection):
            self.rows.reset_vectors(int(settings["embedding_dimensions"]))
            self.rows.set_meta(settings)
            self.mark_all_changed()

    def change_model_if_empty(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Change the model if the library has no documents. Returns the manifest after that."""
        with writing(self.connection):
            if not self.reader.count_documents(None):
                self.change_model(settings)
            return self.reader.meta()

    def mark_all_changed(self) -> None:
        """Make searches in all processes read every document again."""
        with writing(self.connection):
            self.connection.execute(
                "INSERT OR REPLACE INTO changes SELECT id, ? FROM documents", (self.reader.version() + 1,)
            )

    def delete(self, doc_id: str) -> values.Deleted:
        """Delete a document. Raises :class:`NotFound`."""
        with writing(self.connection):
            stored = self.reader.by_id(doc_id)
            self._mark_changed(self._remove(stored))
        return values.Deleted("deleted", doc_id, stored.chunk_count)

    def update(self, doc_id: str, changes: Mapping[str, Any]) -> values.Updated:
        """Merge ``changes`` into a document's metadata. Raises :class:`NotFound`."""
        with writing(self.connection):
            stored = self.reader.by_id(doc_id)
            merged, id_ = merged_metadata(stored.metadata, changes), self.reader.row_of(stored)
            self.connection.execute("UPDATE documents SET metadata = ? WHERE id = ?", (canonical(merged), id_))
            self.connection.execute("DELETE FROM labels WHERE document_id = ?", (id_,))
            self._add_labels(id_, merged)
            self._mark_changed(id_)
        return values.Updated("updated", doc_id, stored.source, stored.library, merged)

    def _add_labels(self, id_: int, metadata: Mapping[str, Any]) -> None:
        self.connection.executemany(
            "INSERT INTO labels VALUES (?, ?, ?)", ((key, value, id_) for key, value in labels_of(metadata))
        )

    def _remove(self, stored: LibraryDocument) -> int:
        """Remove a document. Returns its row id, which is free then."""
        id_ = self.reader.row_of(stored)
        self.rows.remove(stored.source, stored.library)
        self.connection.execute("DELETE FROM holdings WHERE id = ?", (id_,))
        self.connection.execute("DELETE FROM labels WHERE document_id = ?", (id_,))
        return id_

    def _insert(self, id_: int, staged: StagedDocument, info: DocumentInfo) -> int:
        """Copy the staged rows to the row ids of document ``id_``. Returns the number of chunks."""
        text = canonical(info.metadata)
        # The columns that a library does not use are empty: blob id, fingerprint, address, digest and others.
        self.connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, '', '', x'', ?, ?, NULL, NULL, ?, x'')",
            (id_, info.library, info.source, info.title, info.file_type, info.size, info.last_modified, text),
        )
        copy_rows(self.rows, staged.rows.reader, 0, id_)  # a staged document has row id 0
        self.rows.make_searchable(id_)
        sql = "SELECT count(*) FROM chunks WHERE id BETWEEN ? AND ?"
        return int(self.connection.execute(sql, table_rows.chunk_range(id_)).get)

    def _mark_changed(self, id_: int) -> None:
        self.connection.execute("INSERT OR REPLACE INTO changes VALUES (?, ?)", (id_, self.reader.version() + 1))


def doc_id_for(source: str, library: str) -> str:
    """The ``doc_id`` of a source in a library. It depends on both names alone."""
    digest = hashlib.sha256(f"{library}\0{source}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:DOC_ID_CHARACTERS]


def not_found(doc_id: str) -> NotFound:
    return NotFound(f"No document has the id {doc_id[:60]!r}. list_documents and search name the ids there are.")
