"""Changes to a library: a whole document is added, replaced, updated or deleted, in one transaction each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from anvil.errors import ConfigError
from anvil.formats.json_values import canonical
from anvil.index_file import table_rows
from anvil.index_file.writer import INSERT_CHUNK, SETTINGS, Writer
from anvil.library.ingestion import DocumentInfo, StagedDocument
from anvil.library.library_file import writing
from anvil.library.queries import LibraryReader
from anvil.library.values import Outcome, Updated
from anvil.search.metadata_filter import different_keys, labels_of, merged_metadata

if TYPE_CHECKING:
    import apsw

DOC_ID_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class StoreResult:
    """A document that was stored, and whether it is new or replaced another. ``changed_keys``: those of the other's
    metadata that have new values."""

    status: Outcome
    doc_id: str
    chunk_count: int
    changed_keys: Sequence[str] = ()


class LibraryWriter:
    """Changes to one library file. A change waits for other writers, and is done whole or not at all."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.reader = LibraryReader(connection)
        self.rows = Writer(connection)
        """The tables that a library shares with every index."""

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def store(self, staged: StagedDocument, info: DocumentInfo, head: str) -> StoreResult | None:
        """Add a document, or replace the one with its source and library, which keeps its metadata: new keys are
        added to it.

        None, and nothing is written, when another process stored the same content first.
        Raises :class:`ConfigError` when the library's embedding model was changed meanwhile.
        """
        with writing(self.connection):
            meta = self.reader.meta()  # not earlier: the process that had the lock may have changed the model
            if any(meta[key] != staged.settings[key] for key in SETTINGS if key.startswith("embedding_")):
                raise ConfigError("The library's embedding model was changed by another process. Ingest it again.")
            stored = self.reader.find(info.source, info.library)
            if stored is not None and stored.content_hash == info.content_hash:
                return None
            created_at, changed = info.created_at or utc_now(), []
            if stored is not None:
                changed = [key for key in different_keys(stored.metadata, info.metadata) if key in stored.metadata]
                info = replace(info, metadata=merged_metadata(stored.metadata, info.metadata))
                created_at = self._value("SELECT created_at FROM holdings WHERE id = ?", stored.id)
                self._remove(stored.id, info.source, info.library)
            id_ = stored.id if stored else self.rows.new_id(info.library, info.source)
            doc_id = doc_id_for(info.source, info.library)
            chunk_count = self._insert(id_, staged, info)
            self.connection.execute(
                "INSERT INTO holdings VALUES (?, ?, ?, ?, ?, ?)",
                (id_, doc_id, info.content_hash, created_at, chunk_count, head),
            )
            self._add_labels(id_, info.metadata)
            self._mark_changed(id_)
        return StoreResult("replaced" if stored else "indexed", doc_id, chunk_count, changed)

    def change_model(self, settings: Mapping[str, str]) -> None:
        """Set the embedding model in the manifest, and delete all vectors."""
        with writing(self.connection):
            self.rows.reset_vectors(int(settings["embedding_dimensions"]))
            self.rows.set_meta(settings)
            self.mark_all_changed()

    def change_model_if_empty(self, settings: Mapping[str, str]) -> dict[str, str]:
        """:meth:`change_model` in a library without documents. Returns the manifest that is then valid."""
        with writing(self.connection):
            if not self.reader.count_documents(None):
                self.change_model(settings)
            return self.reader.meta()

    def mark_all_changed(self) -> None:
        """Make every search, in all processes, read every document again."""
        with writing(self.connection):
            self.connection.execute(
                "INSERT OR REPLACE INTO changes SELECT id, ? FROM documents", (self.reader.version() + 1,)
            )

    def delete(self, doc_id: str) -> int | None:
        """Delete a document; how many passages it had, or None when there is no such document."""
        with writing(self.connection):
            row = self.connection.execute(
                "SELECT d.id, d.file_path, d.library, h.chunk_count FROM holdings h JOIN documents d ON d.id = h.id "
                "WHERE h.doc_id = ?",
                (doc_id,),
            ).get
            if row is None:
                return None
            id_, source, library, chunk_count = row
            self._remove(id_, source, library)
            self._mark_changed(id_)
        return int(chunk_count)

    def update(self, doc_id: str, given: Mapping[str, Any]) -> Updated | None:
        """Merge ``given`` into a document's metadata; None when there is no such document."""
        with writing(self.connection):
            document = self.reader.full_document(doc_id)
            if document is None:
                return None
            metadata = merged_metadata(document.metadata, given)
            id_ = self._value("SELECT id FROM holdings WHERE doc_id = ?", doc_id)
            self.connection.execute("UPDATE documents SET metadata = ? WHERE id = ?", (canonical(metadata), id_))
            self.connection.execute("DELETE FROM labels WHERE document_id = ?", (id_,))
            self._add_labels(id_, metadata)
            self._mark_changed(id_)
        return Updated(
            status="updated", doc_id=doc_id, source=document.source, library=document.library, metadata=metadata
        )

    def _value(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(sql, values).get

    def _add_labels(self, id_: int, metadata: Mapping[str, Any]) -> None:
        self.connection.executemany(
            "INSERT INTO labels VALUES (?, ?, ?)", ((key, value, id_) for key, value in labels_of(metadata))
        )

    def _remove(self, id_: int, source: str, library: str) -> None:
        self.rows.remove(source, library)
        self.connection.execute("DELETE FROM holdings WHERE id = ?", (id_,))
        self.connection.execute("DELETE FROM labels WHERE document_id = ?", (id_,))

    def _insert(self, id_: int, staged: StagedDocument, info: DocumentInfo) -> int:
        """Copy the staged rows to the row numbers of document ``id_``; the number of chunks."""
        chunk_range = table_rows.chunk_range(id_)
        first, shift = chunk_range[0], chunk_range[0] << table_rows.WINDOW_BITS
        self.connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, '', '', x'', ?, ?, NULL, NULL, ?, x'')",
            (
                id_,
                info.library,
                info.source,
                info.title,
                info.file_type,
                info.size,
                info.last_modified,
                canonical(info.metadata),
            ),
        )
        chunks = ((row[0] + first, row[1], id_, *row[3:]) for row in _staged_rows(staged, "chunks"))
        self.connection.executemany(INSERT_CHUNK, chunks)
        self.rows.make_searchable(id_)
        windows = ((row[0] + shift, *row[1:]) for row in _staged_rows(staged, "windows"))
        self.connection.executemany("INSERT INTO windows VALUES (?, ?, ?, ?)", windows)
        self.rows.put_vectors((row + shift, vector) for row, vector in staged.rows.reader.vectors())
        return int(self._value("SELECT count(*) FROM chunks WHERE id BETWEEN ? AND ?", *chunk_range))

    def _mark_changed(self, id_: int) -> None:
        self.connection.execute("INSERT OR REPLACE INTO changes VALUES (?, ?)", (id_, self.reader.version() + 1))


def _staged_rows(staged: StagedDocument, table: str) -> Iterator[tuple[Any, ...]]:
    yield from staged.rows.connection.execute(f"SELECT * FROM {table} ORDER BY id")


def doc_id_for(source: str, library: str) -> str:
    """The ``doc_id`` of a source in a library, the same on every machine and at every time."""
    digest = hashlib.sha256(f"{library}\0{source}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:DOC_ID_CHARACTERS]


def utc_now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
