"""Queries against one index: its manifest, documents, sections, chunks, keyword index and vectors.

A :class:`Reader` has one connection, to an index file or a working copy. It is not thread-safe: threads that share one
need a lock around each call.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import apsw

from anvil.documents import document_source
from anvil.errors import ArtifactRejected
from anvil.index_file import connection as connections
from anvil.index_file import table_rows
from anvil.index_file.table_rows import SearchedText, SectionPlace, StoredChunk, StoredDocument, VectorRows
from anvil.text import visible_text
from anvil.text.headings import listed_headings, section_titles
from anvil.text.link_popularity import LinkablePage, PageText
from anvil.text.query import path_words
from anvil.values import PageChunk, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self


_SECTIONS_IN = """
    SELECT span.key, s.heading_path, s.heading_level, s.anchor, s.start, s."end", s.start_line, s.end_line
    FROM json_each(?) span CROSS JOIN sections s ON s.document_id = span.value ->> 0 AND s.start < span.value ->> 2
    AND s.ordinal >= (SELECT ordinal FROM sections WHERE document_id = span.value ->> 0 AND start <= span.value ->> 1
                      ORDER BY ordinal DESC LIMIT 1)
    ORDER BY span.key, s.ordinal
"""
"""The sections in spans (document id, start, end). The starts of a page's sections ascend."""


MAX_ROW = (1 << 63) - 1
"""The largest row id of SQLite."""
# The id of a window is that of its chunk and a number (table_rows.py), so the windows of a chunk are a range of ids.
_OWN_WINDOWS = (
    f"SELECT 1 FROM windows w WHERE w.id BETWEEN c.id << {table_rows.WINDOW_BITS} "
    f"AND (c.id << {table_rows.WINDOW_BITS}) + {(1 << table_rows.WINDOW_BITS) - 1}"
)
"""A subquery for the windows of a chunk ``c``, to which conditions can be added."""
WITHOUT_WINDOWS = f"NOT EXISTS ({_OWN_WINDOWS})"
"""A condition: the chunk ``c`` has no window."""
WINDOW_WITHOUT_VECTOR = "NOT EXISTS (SELECT 1 FROM vectors_rowids v WHERE v.rowid = w.id)"
"""A condition: the window ``w`` has no vector."""
WITHOUT_VECTORS = f"({WITHOUT_WINDOWS} OR EXISTS ({_OWN_WINDOWS} AND {WINDOW_WITHOUT_VECTOR}))"
"""A condition: the chunk ``c`` lacks windows, or its windows lack vectors."""


def signature(path: Path) -> tuple[int, ...] | None:
    """Numbers by which a file at ``path`` differs from the next one there; None without a file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    # The inode: another file that is renamed to this path may have the same size and, if it was copied, the same time.
    # The time of the change itself (ctime): a program may write a file over and keep its mtime, but cannot set this.
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


@contextlib.contextmanager
def reporting_damage(place: object) -> Iterator[None]:
    """A context for queries to an index that was checked: an error of SQLite means that the file was damaged since.

    Raises :class:`ArtifactRejected` for it.
    """
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        advice = connections.rebuild_advice(Path(str(place)))
        raise ArtifactRejected(f"{place} was damaged since it was opened ({error}).", advice) from error


class IndexReader(Protocol):
    """The queries of an index that is searched: a file, a copy in memory, or a collection on a server. :class:`Reader`
    has all of them, with their docstrings."""

    def meta(self) -> dict[str, str]: ...
    def excluded_hashes(self) -> frozenset[str] | None: ...
    def blob_ids(self) -> dict[str, str]: ...
    def identities(self) -> dict[str, str]: ...
    def paths(self) -> Iterator[tuple[int, str]]: ...
    def documents(self, prefix: str = "") -> Iterator[StoredDocument]: ...
    def document(self, file_path: str) -> StoredDocument | None: ...
    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]: ...
    def chunks_of_pages(self, documents: Iterable[int]) -> Iterator[tuple[PageChunk, ...]]: ...
    def sections(self, document_id: int) -> tuple[Section, ...]: ...
    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]: ...
    def page_sizes(self) -> dict[int, tuple[int, int]]: ...
    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]: ...
    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]: ...
    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]: ...


class Reader:
    """Queries against one index."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _one(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(sql, values).get

    def _column(self, sql: str, *values: Any) -> list[Any]:
        return [value for (value,) in self.connection.execute(sql, values)]

    # --- manifest and counts -----------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        return dict(self.connection.execute("SELECT key, value FROM anvil_meta ORDER BY key"))

    def counts(self) -> dict[str, int]:
        """The number of rows of each table; ``vectors`` is 0 without a table of vectors."""
        counts = {name: self._one(f"SELECT count(*) FROM {name}") for name in _COUNTED}
        # The list of row ids, because SQLite counts a virtual table by scanning it.
        return {**counts, "vectors": self._one("SELECT count(*) FROM vectors_rowids") if self.has_vectors() else 0}

    def has_vectors(self) -> bool:
        return bool(self._one("SELECT count(*) FROM sqlite_schema WHERE name = 'vectors'"))

    def lacking_vectors(self) -> int:
        """The number of windows without a vector plus that of chunks without a window; 0 without a table of vectors."""
        if not self.has_vectors():
            return 0
        return (
            int(self._one(f"SELECT count(*) FROM windows w WHERE {WINDOW_WITHOUT_VECTOR}"))
            + self.count_without_windows()
        )

    def count_without_windows(self) -> int:
        return int(self._one(f"SELECT count(*) FROM chunks c WHERE {WITHOUT_WINDOWS}"))

    def page_size(self) -> int:
        """Bytes of a page of the file."""
        return int(self._one("PRAGMA page_size"))

    def root_pages(self) -> dict[str, int]:
        """Table -> the number of the page at the root of its tree, of all tables but virtual ones."""
        sql = "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
        return dict(self.connection.execute(sql))

    # --- documents --------------------------------------------------------------------------------------

    def blob_ids(self) -> dict[str, str]:
        """POSIX path -> the state of a document's files, as :func:`document_source.of_file` writes it.

        The state has the git blob ids of its source and of the files that it includes. Documents without a source file
        are left out.
        """
        rows = self.connection.execute(
            "SELECT file_path, blob_id, fingerprint FROM documents WHERE blob_id <> '' ORDER BY file_path"
        )
        return {path: document_source.of_file(blob, fingerprint) for path, blob, fingerprint in rows}

    def identities(self) -> dict[str, str]:
        """POSIX path -> the identity that a build compares: see :func:`anvil.documents.document_source.identity`."""
        rows = self.connection.execute("SELECT file_path, blob_id, fingerprint FROM documents ORDER BY file_path")
        return {path: document_source.identity(blob, fingerprint) for path, blob, fingerprint in rows}

    def excluded_hashes(self) -> frozenset[str] | None:
        """Hashed paths of the files that the site leaves out; None if the index was built without a site."""
        hashes = self._one("SELECT value FROM anvil_meta WHERE key = 'left_out'")
        return None if hashes is None else frozenset(json.loads(hashes))

    def times(self) -> dict[str, tuple[str, str]]:
        """POSIX path -> (blob id, last modified)."""
        rows = self.connection.execute("SELECT file_path, blob_id, last_modified FROM documents")
        return {path: (blob, time) for path, blob, time in rows}

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        """Documents sorted by path. ``prefix``: a folder without trailing slash; all without one."""
        rows = self.connection.execute(
            f"SELECT {table_rows.DOCUMENT_COLUMNS} FROM documents WHERE ?1 = '' OR file_path = ?1 "
            "OR substr(file_path, 1, length(?1) + 1) = ?1 || '/' ORDER BY file_path",
            (prefix,),
        )
        yield from map(table_rows.stored_document, rows)

    def paths(self) -> Iterator[tuple[int, str]]:
        """(document id, path) of all documents, in any order."""
        yield from self.connection.execute("SELECT id, file_path FROM documents")

    def about_deprecation(self) -> Iterator[tuple[int, Any, str, str]]:
        """(document id, value of ``deprecated`` in its front matter, title, first characters of its text) of the
        documents with such a value, or with the word "deprecated" in the title or the first chunk.

        A document may have two rows, one for front matter and title and one for the text. Other values are empty.
        """
        yield from self.connection.execute(
            "SELECT id, json_extract(metadata, '$.deprecated'), title, '' FROM documents "
            "WHERE json_extract(metadata, '$.deprecated') IS NOT NULL OR title LIKE '%deprecated%' "
            "UNION ALL SELECT c.document_id, NULL, '', substr(c.content, 1, 500) FROM chunks_fts f "
            "JOIN chunks c ON c.id = f.rowid WHERE chunks_fts MATCH 'content: deprecated' AND c.ordinal = 0"
        )

    def document(self, file_path: str) -> StoredDocument | None:
        sql = f"SELECT {table_rows.DOCUMENT_COLUMNS} FROM documents WHERE library = ? AND file_path = ?"
        row = self.connection.execute(sql, (table_rows.DEFAULT_LIBRARY, file_path)).get
        return table_rows.stored_document(row) if row else None

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        """A document's chunks in order, with the text that readers do not see."""
        rows = self.connection.execute(
            "SELECT content, hidden, heading_path, heading_level, char_count, ordinal FROM chunks "
            "WHERE id BETWEEN ? AND ? ORDER BY ordinal",
            table_rows.chunk_range(document_id),
        )
        return tuple(PageChunk(visible_text.restored(content, hidden), *row) for content, hidden, *row in rows)

    def chunks_of_pages(self, documents: Iterable[int]) -> Iterator[tuple[PageChunk, ...]]:
        """The chunks of many documents, as :meth:`page_chunks` of each. An index on a server reads them in batches."""
        return map(self.page_chunks, documents)

    def chunk_rows(self, document_id: int) -> list[int]:
        """The row ids of a document's chunks, in order."""
        chunks = table_rows.chunk_range(document_id)
        return self._column("SELECT id FROM chunks WHERE id BETWEEN ? AND ? ORDER BY ordinal", *chunks)

    def sections(self, document_id: int) -> tuple[Section, ...]:
        # Texts of headings are not stored: a breadcrumb has them, see section_titles().
        rows = self.connection.execute(
            f"SELECT {table_rows.SECTION_COLUMNS} FROM sections WHERE document_id = ? ORDER BY ordinal", (document_id,)
        ).fetchall()
        paths: list[Any] = [(row[1], row[2]) for row in rows]
        titles = section_titles(paths)
        return tuple(table_rows.stored_section(row, title) for row, title in zip(rows, titles, strict=True))

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        """For each span (document id, start, end) of a page's text: the sections that overlap it, in order."""
        wanted = list(spans)
        sections: list[list[SectionPlace]] = [[] for _ in wanted]
        for number, path, level, anchor, start, end, first, last in self.connection.execute(
            _SECTIONS_IN, (json.dumps(wanted),)
        ):
            sections[number].append(SectionPlace(path, level, anchor, start, end, first or None, last or None))
        return list(map(tuple, sections))

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        """Document id -> (number of chunks, characters)."""
        rows = self.connection.execute("SELECT document_id, count(*), sum(char_count) FROM chunks GROUP BY 1")
        return {document: (count, size) for document, count, size in rows}

    def chunk_sizes(self) -> list[int]:
        """Characters of each chunk, ascending."""
        return self._column("SELECT char_count FROM chunks ORDER BY 1")

    def characters(self) -> int:
        return int(self._one("SELECT coalesce(sum(char_count), 0) FROM chunks"))

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Document id -> the texts of its h1 and h2 in order, see :func:`listed_headings`."""
        paths_of: dict[int, list[tuple[str, int]]] = {}
        for document, path, level in self.connection.execute(
            "SELECT document_id, heading_path, heading_level FROM sections WHERE heading_level BETWEEN 1 AND 2 "
            "AND document_id IN (SELECT value FROM json_each(?)) ORDER BY 1, ordinal",
            (json.dumps(list(documents)),),
        ):
            paths_of.setdefault(document, []).append((path, level))
        return {document: listed_headings(paths) for document, paths in paths_of.items()}

    # --- search -------------------------------------------------------------------------------------------

    def chunk_documents(self) -> Iterator[tuple[int, int]]:
        """(chunk row, document id) of all chunks, by path and position."""
        yield from self.connection.execute(
            "SELECT c.id, c.document_id FROM chunks c JOIN documents d ON d.id = c.document_id "
            "ORDER BY d.file_path, c.ordinal"
        )

    def matching(
        self, expression: str, weights: Sequence[float], limit: int, documents: Sequence[int] | None = None
    ) -> list[int]:
        """Rows of the ``limit`` best chunks for an FTS5 expression, by BM25; of all documents, or only ``documents``.

        ``weights``: of title, breadcrumb, content and derived terms.
        """
        if documents is None:
            return self._matching(expression, weights, limit)
        within = f"AND rowid >> {table_rows.CHUNK_BITS} IN (SELECT value FROM json_each(?))"
        return self._matching(expression, weights, limit, within, json.dumps(documents))

    def _matching(
        self, expression: str, weights: Sequence[float], limit: int, within: str = "", *values: Any
    ) -> list[int]:
        """The rows of :meth:`matching`. ``within``: a further condition in SQL, with its ``values``."""
        title, heading, content, terms = weights
        # Not by FTS5's column "rank", which is computed for all matches before ``within`` leaves rows out.
        sql = (
            f"SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? {within} "
            "ORDER BY bm25(chunks_fts, ?, ?, ?, ?), rowid LIMIT ?"
        )
        return self._column(sql, expression, *values, content, heading, title, terms, limit)

    def rows_matching(self, expression: str, limit: int) -> list[int]:
        """Rows of up to ``limit`` chunks that match an FTS5 expression, in any order."""
        return self._column("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?", expression, limit)

    def frequency(self, expression: str) -> int:
        """Number of chunks that match an FTS5 expression."""
        return int(self._one("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", expression))

    def addresses(self) -> list[LinkablePage]:
        """The pages, by path, with all that a link to them can name."""
        rows = self.connection.execute("SELECT id, file_path, url, digest FROM documents ORDER BY file_path")
        return list(starmap(LinkablePage, rows))

    def page_texts(self) -> Iterator[PageText]:
        """The texts of all pages, in the order of their ids. Text that readers do not see is apart."""
        return _page_texts(self.connection.execute("SELECT document_id, content, hidden FROM chunks ORDER BY id"))

    def page_text(self, document_id: int) -> PageText:
        """The text of one page; empty for an unknown page."""
        rows = self.connection.execute(
            "SELECT document_id, content, hidden FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",
            table_rows.chunk_range(document_id),
        )
        return next(_page_texts(rows), PageText(document_id, "", ""))

    def vocabulary(self, first: str = "") -> Iterator[tuple[str, int]]:
        """(token, number of chunks with it) of the tokens that begin with ``first``, ascending."""
        yield from self._vocabulary("row", "term, doc", first)

    def instances(self) -> Generator[tuple[str, int, str, int], None, None]:
        """(token, chunk row, column, position) of all tokens in the keyword index, in its order."""
        yield from self._vocabulary("instance", "term, doc, col, offset")

    def _vocabulary(self, kind: str, columns: str, first: str = "") -> Iterator[Any]:
        # A table for the time of the query: in the file it would be one more definition that the check must know.
        is_read_only = self.connection.pragma("query_only")
        self.connection.pragma("query_only", False)  # for the connection; the file itself stays read-only
        self.connection.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'chunks_fts', '{kind}')")
        try:
            bounds = (first, first + chr(0x10FFFF))
            yield from self.connection.execute(
                f"SELECT {columns} FROM temp.vocabulary WHERE term BETWEEN ? AND ?", bounds
            )
        finally:
            self.connection.execute("DROP TABLE temp.vocabulary")
            self.connection.pragma("query_only", is_read_only)

    def average_length(self) -> float:
        """Mean number of words in a chunk, over all indexed columns.

        FTS5 stores the number of rows, then the number of tokens of each column.
        """
        # FTS5's own averages are right for the whole index; a mean over "docsize" would read a row for each chunk.
        numbers = _varints(self._one("SELECT block FROM chunks_fts_data WHERE id = 1") or b"")[: 1 + _INDEXED]
        return sum(numbers[1:]) / numbers[0] if numbers and numbers[0] else 0.0

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        """Row -> its searched texts. Their length is that in the keyword index."""
        chunk_rows = self.connection.execute(
            "SELECT c.id, c.title, c.heading_path, c.content, c.terms, d.file_path, s.sz FROM chunks c "
            "JOIN documents d ON d.id = c.document_id JOIN chunks_fts_docsize s ON s.id = c.id "
            "WHERE c.id IN (SELECT value FROM json_each(?))",
            (_json_list(rows),),
        )
        return {
            row: SearchedText(title, heading, content, f"{terms} {path_words(path)}", sum(_varints(sizes)[:_INDEXED]))
            for row, title, heading, content, terms, path, sizes in chunk_rows
        }

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        """Row id -> chunk. Its content is masked, see :mod:`anvil.text.visible_text`."""
        chunk_rows = self.connection.execute(
            f"{table_rows.STORED_CHUNKS} WHERE c.id IN (SELECT value FROM json_each(?))", (_json_list(rows),)
        )
        return {chunk.row: chunk for chunk in map(table_rows.stored_chunk, chunk_rows)}

    # Apart from chunks(), because a search shows only what readers see. An export to Milvus stores this, too.
    def hidden(self, rows: Iterable[int]) -> dict[int, str]:
        """Row id -> the characters of the chunk that readers do not see, in order."""
        sql = "SELECT id, hidden FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self.connection.execute(sql, (_json_list(rows),)))

    def chunk_keys(self, rows: Iterable[int]) -> dict[int, bytes]:
        """Row id -> the chunk's portable id, 8 bytes."""
        sql = "SELECT id, chunk_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self.connection.execute(sql, (_json_list(rows),)))

    def chunks_of(self, windows: Iterable[int]) -> list[StoredChunk]:
        """The chunks of windows, without repeats, by row."""
        chunks = self.chunks({window >> table_rows.WINDOW_BITS for window in windows})
        return [chunks[row] for row in sorted(chunks)]

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        """(start, end, stored vector) of a chunk's windows that have a vector, in order."""
        sql = (
            'SELECT w.start, w."end", v.embedding FROM windows w JOIN vectors v ON v.id = w.id '
            "WHERE w.id BETWEEN ? AND ? ORDER BY w.id"
        )
        return list(self.connection.execute(sql, table_rows.window_range(row, row)))

    def matrix(self) -> tuple[NDArray[np.int64], VectorRows]:
        """All vectors in the order of the file: the chunk row of each (n,), and its numbers (n, dimensions)."""
        windows, vectors = self.window_vectors()
        return windows >> table_rows.WINDOW_BITS, vectors

    def window_vectors(self) -> tuple[NDArray[np.int64], VectorRows]:
        """All vectors in the order of the file: the window of each (n,), and its numbers (n, dimensions).

        It reads sqlite-vec's own tables, whose definitions :mod:`verify` checks. A scan of the virtual table takes
        fifteen times as long.
        """
        import numpy as np

        ids, vectors = [np.empty(0, np.int64)], []
        dimensions = int(self.meta()["embedding_dimensions"])
        for validity, rowids, blob in self.connection.execute(
            "SELECT c.validity, c.rowids, v.vectors FROM vectors_chunks c "
            "JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id ORDER BY c.chunk_id"
        ):
            # The last group has room for more vectors than it holds.
            valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
            ids.append(np.frombuffer(rowids, np.int64)[valid])
            vectors.append(table_rows.vector_rows(blob, dimensions)[valid])
        return np.concatenate(ids), np.concatenate([table_rows.vector_rows(b"", dimensions), *vectors])

    # --- reuse ----------------------------------------------------------------------------------------------

    def window_keys(self) -> dict[bytes, int]:
        """Hash of a window's text -> window id, of the windows that have a vector."""
        sql = "SELECT w.key, w.id FROM windows w JOIN vectors_rowids v ON v.rowid = w.id"
        return dict(self.connection.execute(sql))

    def vector(self, window: int) -> bytes:
        """The stored vector of a window."""
        return bytes(self._one("SELECT embedding FROM vectors WHERE id = ?", window))

    def vectors(self, first: int = 0, last: int = MAX_ROW) -> Iterator[tuple[int, bytes]]:
        """(window id, stored vector) of windows ``first`` to ``last`` that have it, by id, in sqlite-vec's tables."""
        if not self.has_vectors():
            return
        size = table_rows.vector_bytes(int(self.meta()["embedding_dimensions"]))

        @lru_cache(64)  # neighbours are mostly in one group, which is a blob of dozens of vectors
        def group(number: int) -> bytes:
            return bytes(self._one("SELECT vectors FROM vectors_vector_chunks00 WHERE rowid = ?", number))

        for window, number, index in self.connection.execute(
            "SELECT rowid, chunk_id, chunk_offset FROM vectors_rowids WHERE rowid BETWEEN ? AND ? ORDER BY rowid",
            (first, last),
        ):
            yield window, group(number)[index * size : (index + 1) * size]


def _page_texts(rows: Iterable[tuple[Any, ...]]) -> Iterator[PageText]:
    """The pages of rows (document, content, hidden), in the order of documents."""
    for document, chunks in groupby(rows, key=itemgetter(0)):
        _, contents, hidden = zip(*chunks, strict=True)
        yield PageText(document, "\n".join(contents), "\n".join(hidden))


def _json_list(rows: Iterable[int]) -> str:
    """Row ids for ``json_each``: a query with a parameter for each row could have too many."""
    return json.dumps([int(row) for row in rows])


def _varints(block: bytes) -> list[int]:
    """The numbers of an FTS5 record: seven bits a byte, high ones first."""
    numbers, value = [], 0
    for byte in bytes(block):
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers


_INDEXED = 4
"""The number of columns of the keyword index."""
_COUNTED = ("documents", "sections", "chunks", "windows")
