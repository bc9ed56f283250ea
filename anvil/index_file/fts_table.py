"""The keyword index (FTS5): its tokenizer, its canonical form, and the check that it is that of the text.

The canonical form is one part, as FTS5 writes it when it merges parts. Merging gives the same bytes for the same text,
however the parts were made: at once, or by many changes. So a build changes the entries of edited pages only, which is
four times as fast as making the keyword index of a thousand pages (the edit of one page in ``benchmarks/build.py``).

FTS5 numbers parts in the order in which they are made; the canonical part has number 1.
https://sqlite.org/fts5.html#fts5_data_structures
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apsw

from anvil.index_file import connection as connections
from anvil.index_file.reader import Reader

BUFFER_BYTES = 16 << 20
"""Bytes of the keyword index, about 2,000 pages, that are collected before they are written. With SQLite's default of
one megabyte, parts are written and merged many times."""

_TABLES = ("data", "idx", "docsize", "config")  # FTS5's own tables; the text itself is in the table ``chunks``
_AVERAGES, _STRUCTURE = 1, 10
"""Ids of rows of ``chunks_fts_data`` that are no page of a part."""
_PART_BITS = 37
"""Bits of the id of such a row below the number of its part."""
_PAGE_BITS = 31
"""The lowest of these bits, which number a page. Those between are 0 for a page of entries."""
_NO_CHUNK = -1
"""A row id that no chunk has."""


def tokenizer(connection: apsw.Connection) -> Callable[[bytes], list[str]]:
    """The tokenizer of the keyword index, a function UTF-8 -> tokens."""
    tokenize: Any = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    as_document = {"flags": apsw.FTS5_TOKENIZE_DOCUMENT, "locale": None}
    return partial(tokenize, **as_document, include_offsets=False, include_colocated=False)


def begin(connection: apsw.Connection) -> None:
    """Prepare the keyword index of a working copy that will be published.

    FTS5 must not merge some of its parts on its own: the end of such a merge depends on the order of the changes.
    """
    _configure(connection, "hashsize", BUFFER_BYTES)
    _configure(connection, "automerge", 0)


def is_begun(connection: apsw.Connection) -> bool:
    """Whether :func:`begin` prepared this working copy."""
    return bool(connection.execute("SELECT v FROM chunks_fts_config WHERE k = 'automerge'").get == 0)


def rebuild(connection: apsw.Connection) -> None:
    """Make the keyword index of a working copy again from its chunks."""
    begin(connection)
    with connection:
        _command(connection, "delete-all")
        _command(connection, "rebuild")
    merge(connection)


def merge(connection: apsw.Connection) -> None:
    """Merge the keyword index of a working copy to one part. Without :func:`begin` it is made again."""
    if not is_begun(connection):
        rebuild(connection)
        return
    # A part that was never merged has its entries in other pages. So two more parts are made, to have parts to merge:
    # the second deletes the entry of the first. Each needs a transaction: FTS5 writes a part at the end of one.
    with connection:
        connection.execute("INSERT INTO chunks_fts (rowid, title) VALUES (?, 'x')", (_NO_CHUNK,))
    with connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rowid, title) VALUES ('delete', ?, 'x')", (_NO_CHUNK,))
    with connection:
        _command(connection, "optimize")


def copy(connection: apsw.Connection, schema: str) -> None:
    """Write the merged keyword index of a working copy to the attached database ``schema``, which has an empty one."""
    for table in _TABLES:
        connection.execute(f"DELETE FROM {schema}.chunks_fts_{table}")
    for table, marks in (("data", "?, ?"), ("idx", "?, ?, ?"), ("docsize", "?, ?"), ("config", "?, ?")):
        connection.executemany(f"INSERT INTO {schema}.chunks_fts_{table} VALUES ({marks})", rows(connection, table))


def rows(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """The rows of one of FTS5's tables, in the canonical form of a keyword index of one part."""
    # Number 1 for the part in all tables, and without "automerge", which :func:`begin` set for this working copy only.
    if table == "idx":
        yield from connection.execute("SELECT 1, term, pgno FROM chunks_fts_idx ORDER BY 1, 2")
    elif table == "docsize":
        yield from connection.execute("SELECT id, sz FROM chunks_fts_docsize ORDER BY id")
    elif table == "config":
        yield from connection.execute("SELECT k, v FROM chunks_fts_config WHERE k <> 'automerge' ORDER BY k")
    else:
        pages = connection.execute(
            "SELECT count(*) FROM chunks_fts_data WHERE id > ? AND id >> ? & ? = 0",
            (_STRUCTURE, _PAGE_BITS, (1 << _PART_BITS - _PAGE_BITS) - 1),
        ).get
        for id_, block in connection.execute("SELECT id, block FROM chunks_fts_data ORDER BY id"):
            if id_ == _STRUCTURE:
                yield id_, _structure(pages)
            elif id_ == _AVERAGES:
                yield id_, block
            else:
                yield id_ & (1 << _PART_BITS) - 1 | 1 << _PART_BITS, block


def _structure(pages: int) -> bytes:
    """FTS5's record of its parts: none, or one part of so many pages, at the lowest level."""
    cookie = bytes(4)  # the counter of changes to the settings, as in a new index
    if not pages:
        return cookie + bytes(3)
    last = _varint(pages)
    levels, parts, merging, number, first = b"\x01", b"\x01", b"\0", b"\x01", b"\x01"
    return cookie + levels + parts + last + merging + parts + number + first + last


def _varint(number: int) -> bytes:
    """An integer as SQLite writes it: seven bits a byte, the highest first. https://sqlite.org/fileformat.html#varint"""
    septets = [number & 0x7F]
    while number := number >> 7:
        septets.append(number & 0x7F | 0x80)
    return bytes(reversed(septets))


def _configure(connection: apsw.Connection, key: str, value: int) -> None:
    connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES (?, ?)", (key, value))


def _command(connection: apsw.Connection, name: str) -> None:
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES (?)", (name,))


def agrees(copy: apsw.Connection) -> bool:
    """Whether FTS5's own check finds that the keyword index is that of the text. The check needs a writable file.

    FTS5 reads every entry and every text again and compares an exclusive or of hashes. So two entries that are wrong
    alike can cancel each other out. The manifest's checksum finds such damage, and :func:`agrees_when_rebuilt` finds it
    even if the checksum was written again too.
    """
    rows, chunks = copy.execute("SELECT (SELECT count(*) FROM chunks_fts_docsize), (SELECT count(*) FROM chunks)").get
    try:
        copy.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return bool(rows == chunks)


def agrees_when_rebuilt(handle: apsw.Connection) -> bool:
    """Whether the keyword index of a checked file is equal to one that is made again from its chunks.

    Another version of SQLite may store it in other blocks. Then each word, its position and its chunk are compared.
    """
    with contextlib.closing(connections.open_scratch()) as copy:
        connections.fill(copy, handle)
        definition = copy.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_fts'").get
        with copy:
            copy.execute("DROP TABLE chunks_fts")
            copy.execute(definition)
        rebuild(copy)
        stored_rows = {table: handle.execute(f"SELECT * FROM chunks_fts_{table} ORDER BY 1, 2") for table in _TABLES}
        # The stored bytes first, which is less work than to compare each word.
        if all(_alike(stored, rows(copy, table)) for table, stored in stored_rows.items()):
            return True
        with (
            contextlib.closing(Reader(handle).instances()) as stored,
            contextlib.closing(Reader(copy).instances()) as rebuilt,
        ):
            return _alike(stored, rebuilt)


def _alike(one: Iterable[Any], other: Iterable[Any]) -> bool:
    return all(a == b for a, b in itertools.zip_longest(one, other))
