"""Reading a library: its documents, its list of libraries, and what a search in it needs.

A search narrows before it ranks: a filter becomes conditions on indexed columns, inside the same statements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from anvil.filters import Filter
from anvil.holdings import Holding, LibrarySummary, Passage, WholeDocument
from anvil.store import identity
from anvil.store.reading import Reader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COLUMNS = {"source": "file_path", "library": "library", "title": "title", "file_type": "file_type",
            "last_modified": "last_modified"}  # fmt: skip


class Former:
    """The version of a document that stands in a library, as a cache: its vectors are taken over where its text stays.

    It is read whole, since it is used when nobody holds the library.
    """

    def __init__(self, meta: dict[str, str], vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """``vectors``: (reuse key, int8 vector) of its windows."""
        self._meta, self._vectors = meta, vectors

    def meta(self) -> dict[str, str]:
        """The library's manifest."""
        return self._meta

    def window_keys(self) -> dict[bytes, int]:
        """Reuse key -> number."""
        return {key: number for number, (key, _) in enumerate(self._vectors)}

    def vector(self, window: int) -> bytes:
        """The vector of a number."""
        return self._vectors[window][1]


class LibraryReader(Reader):
    """Questions to one library file. Several statements that belong together want a transaction around them."""

    # --- documents ----------------------------------------------------------------------------------------

    def standing(self, source: str, library: str) -> tuple[int, str, str, int] | None:
        """(row id, doc_id, content hash, number of chunks) of a document; None when it is not there."""
        found: tuple[int, str, str, int] | None = self.connection.execute(
            "SELECT h.id, h.doc_id, h.content_hash, h.chunk_count FROM documents d JOIN holdings h ON h.id = d.id "
            "WHERE d.library = ? AND d.file_path = ?",
            (library, source),
        ).get
        return found

    def whole(self, doc_id: str) -> WholeDocument | None:
        """A document with all its text."""
        row = self.connection.execute(
            "SELECT d.id, h.doc_id, d.file_path, d.title, d.library, h.head, h.chunk_count, d.metadata "
            "FROM holdings h JOIN documents d ON d.id = h.id WHERE h.doc_id = ?",
            (doc_id,),
        ).get
        if row is None:
            return None
        id_, doc_id, source, title, library, head, count, metadata = row
        chunks = self.connection.execute(
            "SELECT content FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id", identity.chunk_range(id_)
        )
        content = head + "".join(content for (content,) in chunks)
        return WholeDocument(doc_id, source, title, library, content, count, json.loads(metadata))

    def holdings(self, library: str | None, limit: int, offset: int) -> list[Holding]:
        """Some documents, by library and source; the index gives the order, and steps over ``offset``."""
        within = "" if library is None else "WHERE library = ?3"
        rows = self.connection.execute(
            "SELECT h.doc_id, d.file_path, d.title, d.library, h.content_hash, h.created_at, d.metadata, h.chunk_count "
            f"FROM (SELECT id FROM documents {within} ORDER BY library, file_path LIMIT ?1 OFFSET ?2) some "
            "JOIN documents d ON d.id = some.id JOIN holdings h ON h.id = d.id ORDER BY d.library, d.file_path",
            (limit, offset) if library is None else (limit, offset, library),
        )
        return [
            Holding(doc_id, source, title, name, digest, created, json.loads(metadata), count)
            for doc_id, source, title, name, digest, created, metadata, count in rows
        ]

    def how_many(self, library: str | None) -> int:
        """Documents of one library, or of all."""
        if library is None:
            return int(self._one("SELECT count(*) FROM documents"))
        return int(self._one("SELECT count(*) FROM documents WHERE library = ?", library))

    def libraries(self) -> list[LibrarySummary]:
        """The libraries by name."""
        rows = self.connection.execute(
            "SELECT d.library, count(*), sum(h.chunk_count) FROM documents d JOIN holdings h ON h.id = d.id "
            "GROUP BY 1 ORDER BY 1"
        )
        return [LibrarySummary(*row) for row in rows]

    # --- what a search needs ------------------------------------------------------------------------------

    def version(self) -> int:
        """Grows with each change that any process makes."""
        return int(self._one("SELECT coalesce(max(number), 0) FROM changes"))

    def changed_since(self, version: int) -> list[int]:
        """Row ids of documents that came, went or changed after ``version``."""
        return [id_ for (id_,) in self.connection.execute(
            "SELECT document_id FROM changes WHERE number > ? ORDER BY document_id", (version,)
        )]  # fmt: skip

    def pages_of_chunks(self, document: int | None = None) -> list[tuple[int, int]]:
        """(chunk row, page) of all chunks in any order, or of one document's by row."""
        if document is None:
            return list(self.connection.execute("SELECT id, page FROM chunks"))
        return list(
            self.connection.execute(
                "SELECT id, page FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id", identity.chunk_range(document)
            )
        )

    def document_vectors(self, document: int, dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """One document's vectors: the chunk row of each (n,), int8 (n, dimensions); by window."""
        import numpy as np

        if not self.has_vectors():
            return np.empty(0, np.int64), np.empty((0, dimensions), np.int8)
        rows: list[tuple[int, bytes]] = list(self.connection.execute(
            "SELECT r.rowid, substr(v.vectors, r.chunk_offset * ?3 + 1, ?3) FROM vectors_rowids r "
            "JOIN vectors_vector_chunks00 v ON v.rowid = r.chunk_id WHERE r.rowid BETWEEN ?1 AND ?2 ORDER BY 1",
            (*identity.window_range(*identity.chunk_range(document)), dimensions),
        ))  # fmt: skip
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), np.int8).reshape(-1, dimensions)
        return np.array([row for row, _ in rows], np.int64) >> identity.WINDOW_BITS, vectors

    def former(self, document: int) -> Former | None:
        """A document's vectors, for its next version; None without any."""
        if not self.has_vectors():
            return None
        meta, (first, last) = self.meta(), identity.window_range(*identity.chunk_range(document))
        rows: list[tuple[bytes, bytes]] = list(self.connection.execute(
            "SELECT w.key, substr(v.vectors, r.chunk_offset * ?3 + 1, ?3) FROM windows w "
            "JOIN vectors_rowids r ON r.rowid = w.id JOIN vectors_vector_chunks00 v ON v.rowid = r.chunk_id "
            "WHERE w.id BETWEEN ?1 AND ?2",
            (first, last, int(meta["embedding_dimensions"])),
        ))  # fmt: skip
        return Former(meta, rows) if rows else None

    def fitting(self, wanted: Filter) -> list[int]:
        """Row ids of the documents that a filter lets through; its page is not looked at."""
        condition, values = _condition(wanted)
        return [id_ for (id_,) in self.connection.execute(f"SELECT id FROM documents WHERE {condition}", values)]

    def matching_within(
        self, expression: str, weights: Sequence[float], limit: int, wanted: Filter
    ) -> list[int]:
        """As :meth:`matching`, only passages that a filter lets through."""
        condition, values = _condition(wanted)
        within = f"AND rowid >> {identity.CHUNK_BITS} IN (SELECT id FROM documents WHERE {condition})"
        if wanted.page is not None:
            within += " AND rowid IN (SELECT id FROM chunks WHERE page = ?)"
            values.append(wanted.page)
        ranking = f"bm25({', '.join(format(weight, 'g') for weight in weights)})"
        rows = self.connection.execute(
            f"SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? AND rank MATCH ? {within} ORDER BY rank LIMIT ?",
            (expression, ranking, *values, limit),
        )
        return [row for (row,) in rows]

    def passages(self, rows: Iterable[int]) -> dict[int, Passage]:
        """Row id -> passage, its score 0."""
        found: Iterable[Any] = self.connection.execute(
            "SELECT c.id, h.doc_id, d.file_path, d.title, d.library, d.file_type, d.last_modified, c.page, c.content, "
            "c.ordinal, d.metadata FROM chunks c JOIN documents d ON d.id = c.document_id "
            "JOIN holdings h ON h.id = d.id WHERE c.id IN (SELECT value FROM json_each(?))",
            (json.dumps([int(row) for row in rows]),),
        )
        return {row[0]: _passage(row) for row in found}


def _passage(row: Sequence[Any]) -> Passage:
    doc_id, source, title, library, kind, modified, page, content, ordinal, metadata = row[1:]
    found = json.loads(metadata)
    return Passage(doc_id, source, title, library, kind, modified, page, content, ordinal, found, 0.0)


def _condition(wanted: Filter) -> tuple[str, list[Any]]:
    """A condition on ``documents``, and its values."""
    parts, values = ["1"], []
    for name, value in wanted.fields:
        parts.append(f"{_COLUMNS[name]} = ?")
        values.append(value)
    for key, value in wanted.labels:
        parts.append("id IN (SELECT document_id FROM labels WHERE key = ? AND value = ?)")
        values += [key, value]
    return " AND ".join(parts), values
