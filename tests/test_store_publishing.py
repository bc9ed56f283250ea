"""What is published beside what the libraries would have written themselves."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import apsw
import pytest

from anvil import markdown
from anvil.models import Document, Window
from anvil.store import connection, identity
from anvil.store.publishing import Publication
from anvil.store.reading import Reader
from anvil.store.writing import SETTINGS, Writer

DIMENSIONS = 16
STORAGE = ("vectors_info", "vectors_chunks", "vectors_rowids", "vectors_vector_chunks00")


def published(path: Path, vectors: dict[int, bytes], gone: list[int]) -> None:
    """An index whose vectors came in this order, those of ``gone`` taken out again."""
    writer = Writer(connection.open_scratch())
    connection.lay_out(writer.connection, DIMENSIONS)
    writer.set_meta(dict.fromkeys(SETTINGS, "x"))
    writer.set_meta({"embedding_dimensions": DIMENSIONS, "anvil_version": "x", "docs_root_path": "docs"})
    text = "# Page\n"
    id_ = writer.put(Document("a.md", "1", text, len(text), "2026-01-31T09:30:00Z"), markdown.parse(text), ())
    assert id_ == identity.document_id("default", "a.md", ())
    for row in {window >> identity.WINDOW_BITS for window in vectors}:
        count = sum(window >> identity.WINDOW_BITS == row for window in vectors)
        writer.put_windows(row, [Window(0, 1, f"{row} {number}") for number in range(count)])
    writer.put_vectors(vectors.items())
    for window in gone:
        writer.connection.execute("DELETE FROM vectors WHERE id = ?", (window,))
        writer.connection.execute("DELETE FROM windows WHERE id = ?", (window,))
    with contextlib.closing(writer):
        publication = Publication(writer, path)
        publication.write_text()
        writer.seal()
        publication.finish()


@pytest.mark.parametrize(
    ("count", "gone"), [(0, 0), (1, 0), (connection.VECTOR_GROUP, 0), (connection.VECTOR_GROUP + 1, 1), (700, 90)]
)
def test_vectors_lie_as_sqlite_vec_would_lay_them(tmp_path: Path, count: int, gone: int) -> None:
    chance = random.Random(count)
    first = identity.chunk_range(identity.document_id("default", "a.md", ()))[0]
    windows = [identity.window_row(first + number // 3 * 7, number % 3) for number in range(count)]
    chance.shuffle(windows)
    vectors = {window: chance.randbytes(DIMENSIONS) for window in windows}
    lost = chance.sample(windows, gone)
    path = tmp_path / "index.db"
    published(path, vectors, lost)
    kept = sorted((window, vector) for window, vector in vectors.items() if window not in lost)

    with Reader(connection.open_artifact(path)) as found, contextlib.closing(connection.open_scratch()) as expected:
        assert list(found.vectors()) == kept
        assert [(window, found.vector(window)) for window, _ in kept] == kept
        connection.lay_out(expected, DIMENSIONS)
        expected.executemany("INSERT INTO vectors (id, embedding) VALUES (?, vec_int8(?))", kept)
        for table in STORAGE:
            assert rows(found.connection, table) == rows(expected, table), table


def rows(handle: apsw.Connection, table: str) -> list[tuple[object, ...]]:
    return handle.execute(f"SELECT rowid, * FROM {table} ORDER BY 1").fetchall()
