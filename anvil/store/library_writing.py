"""Changing a library: a whole document comes, takes another's place or goes, in one transaction each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from anvil.errors import ConfigError
from anvil.filters import labels_of
from anvil.holdings import Outcome
from anvil.store import identity
from anvil.store.digest import canonical
from anvil.store.library_file import writing
from anvil.store.library_reading import LibraryReader
from anvil.store.staging import Particulars, Stage
from anvil.store.writing import INSERT_CHUNK, SETTINGS, Writer

DOC_ID_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A document as it stands in a library, and whether another stood in its place."""

    status: Outcome
    doc_id: str
    chunk_count: int


class LibraryWriter(LibraryReader, Writer):
    """Questions and changes to one library file; each change waits for other writers, and is there whole or not."""

    def keep(self, staged: Stage, particulars: Particulars, head: str) -> Kept | None:
        """Put a document in, in place of the one with its source and library.

        None, and nothing is written, when the same content stands there: another process was quicker.
        Raises :class:`ConfigError` when the library's vectors are of another model by now.
        """
        given = staged.meta()
        with writing(self.connection):
            own = self.meta()  # not before: while we wait, who has the lock may change the model
            if any(own[key] != given[key] for key in SETTINGS if key.startswith("embedding_")):
                raise ConfigError("The library's embedding model was changed by another process. Ingest it again.")
            stands = self.standing(particulars.source, particulars.library)
            if stands is not None and stands[2] == particulars.content_hash:
                return None
            created = None
            if stands is not None:
                created = self._one("SELECT created_at FROM holdings WHERE id = ?", stands[0])
                self._take_out(stands[0], particulars.source, particulars.library)
            id_ = stands[0] if stands else self.new_id(particulars.library, particulars.source)
            doc_id = document_name(particulars.source, particulars.library)
            count = self._put_in(id_, staged, particulars)
            self.connection.execute(
                "INSERT INTO holdings VALUES (?, ?, ?, ?, ?, ?)",
                (id_, doc_id, particulars.content_hash, created or now(), count, head),
            )
            self.connection.executemany(
                "INSERT INTO labels VALUES (?, ?, ?)",
                ((key, value, id_) for key, value in labels_of(particulars.metadata)),
            )
            self._changed(id_)
        return Kept("replaced" if stands else "indexed", doc_id, count)

    def adopt(self, settings: Mapping[str, str]) -> None:
        """Say that vectors are of another model from now on. All that there are go."""
        with writing(self.connection):
            self.reset_vectors(int(settings["embedding_dimensions"]))
            self.set_meta(settings)
            self._all_changed()

    def adopt_when_empty(self, settings: Mapping[str, str]) -> dict[str, str]:
        """:meth:`adopt` in a library without documents; the manifest as it is then."""
        with writing(self.connection):
            if not self.how_many(None):
                self.adopt(settings)
            return self.meta()

    def touch_all(self) -> None:
        """Tell all who search that every document changed."""
        with writing(self.connection):
            self._all_changed()

    def _all_changed(self) -> None:
        self.connection.execute(
            "INSERT OR REPLACE INTO changes SELECT id, ? FROM documents", (self.version() + 1,)
        )

    def delete(self, doc_id: str) -> int | None:
        """Take a document out; how many passages it had, or None when it is not there."""
        with writing(self.connection):
            row = self.connection.execute(
                "SELECT d.id, d.file_path, d.library, h.chunk_count FROM holdings h JOIN documents d ON d.id = h.id "
                "WHERE h.doc_id = ?",
                (doc_id,),
            ).get
            if row is None:
                return None
            id_, source, library, count = row
            self._take_out(id_, source, library)
            self._changed(id_)
        return int(count)

    def _take_out(self, id_: int, source: str, library: str) -> None:
        self.remove(source, library)
        self.connection.execute("DELETE FROM holdings WHERE id = ?", (id_,))
        self.connection.execute("DELETE FROM labels WHERE document_id = ?", (id_,))

    def _put_in(self, id_: int, staged: Stage, p: Particulars) -> int:
        """Copy what was staged under row numbers of its own; the number of chunks."""
        chunks, execute = identity.chunk_range(id_), self.connection.execute
        first, shift = chunks[0], chunks[0] << identity.WINDOW_BITS
        execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, '', '', x'', ?, ?, NULL, NULL, ?, x'')",
            (id_, p.library, p.source, p.title, p.file_type, p.size, p.last_modified, canonical(p.metadata)),
        )
        self.connection.executemany(INSERT_CHUNK, _moved(staged, "chunks", first, id_))
        execute(
            "INSERT INTO chunks_fts (rowid, title, heading_path, content, terms) "
            "SELECT id, title, heading_path, content, terms FROM chunks WHERE id BETWEEN ? AND ?",
            chunks,
        )
        self.connection.executemany("INSERT INTO windows VALUES (?, ?, ?, ?)", _moved(staged, "windows", shift))
        self.put_vectors((row + shift, vector) for row, vector in staged.vectors())
        return int(self._one("SELECT count(*) FROM chunks WHERE id BETWEEN ? AND ?", *chunks))

    def _changed(self, id_: int) -> None:
        self.connection.execute("INSERT OR REPLACE INTO changes VALUES (?, ?)", (id_, self.version() + 1))


def _moved(staged: Stage, table: str, shift: int, document: int | None = None) -> Iterator[tuple[Any, ...]]:
    for row in staged.connection.execute(f"SELECT * FROM {table} ORDER BY id"):
        if document is None:
            yield (row[0] + shift, *row[1:])
        else:
            yield (row[0] + shift, row[1], document, *row[3:])


def document_name(source: str, library: str) -> str:
    """The ``doc_id`` of a source in a library: the same wherever and whenever it is ingested."""
    whole = hashlib.sha256(f"{library}\0{source}".encode("utf-8", "surrogatepass"))
    return whole.hexdigest()[:DOC_ID_CHARACTERS]


def now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
