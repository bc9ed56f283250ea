"""What is published beside what the libraries would have written themselves."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import apsw
import pytest

import anvil
from anvil.errors import ArtifactRejected, BuildError, FolderVanished
from anvil.index_file import connection, publish, table_rows, verify
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.publish import Publication
from anvil.index_file.reader import Reader
from anvil.index_file.writer import Writer
from anvil.system import safe_files
from anvil.text import markdown_sections
from anvil.values import Document, Window
from tests.conftest import linked, write

DIMENSIONS = 16
STORAGE = ("vectors_info", "vectors_chunks", "vectors_rowids", "vectors_vector_chunks00")


def published(path: Path, vectors: dict[int, bytes], gone: list[int]) -> None:
    """An index whose vectors came in this order, those of ``gone`` taken out again."""
    writer = Writer(connection.open_scratch())
    connection.create_tables(writer.connection, DIMENSIONS)
    writer.set_meta(dict.fromkeys(SETTINGS, "x"))
    writer.set_meta({"embedding_dimensions": DIMENSIONS, "anvil_version": "x", "docs_root_path": "docs"})
    text = "# Page\n"
    id_ = writer.put(Document("a.md", "1", text, len(text), "2026-01-31T09:30:00Z"), markdown_sections.parse(text), ())
    assert id_ == table_rows.document_id("default", "a.md", lambda _: False, {})
    for row in {window >> table_rows.WINDOW_BITS for window in vectors}:
        count = sum(window >> table_rows.WINDOW_BITS == row for window in vectors)
        writer.put_windows(row, [Window(0, 1, f"{row} {number}") for number in range(count)])
    writer.put_vectors(vectors.items())
    for window in gone:
        writer.connection.execute("DELETE FROM vectors WHERE id = ?", (window,))
        writer.connection.execute("DELETE FROM windows WHERE id = ?", (window,))
    with contextlib.closing(writer), publish.exclusive(path) as lock:
        publication = Publication(writer, lock)
        publication.write_text()
        writer.seal()
        publication.finish()


@pytest.mark.parametrize("layout", [connection.SMALL, connection.LARGE])
@pytest.mark.parametrize(("count", "gone"), [(0, 0), (1, 0), (32, 0), (33, 1), (184, 0), (185, 1), (700, 90)])
def test_vectors_lie_as_sqlite_vec_would_lay_them(
    tmp_path: Path, count: int, gone: int, layout: connection.FileLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "layout", lambda characters: layout)
    monkeypatch.setattr(verify, "check_written", lambda *given, **more: None)  # its windows are of no chunk
    chance = random.Random(count)
    first = table_rows.chunk_range(table_rows.document_id("default", "a.md", lambda _: False, {}))[0]
    windows = [table_rows.window_row(first + number // 3 * 7, number % 3) for number in range(count)]
    chance.shuffle(windows)
    vectors = {window: chance.randbytes(DIMENSIONS) for window in windows}
    lost = chance.sample(windows, gone)
    path = tmp_path / "index.db"
    published(path, vectors, lost)
    kept = sorted((window, vector) for window, vector in vectors.items() if window not in lost)

    with Reader(connection.open_artifact(path)) as found, contextlib.closing(connection.open_scratch()) as expected:
        assert list(found.vectors()) == kept
        assert [(window, found.vector(window)) for window, _ in kept] == kept
        connection.create_tables(expected, DIMENSIONS, layout.vector_group)
        assert found.connection.pragma("page_size") == layout.page_size
        expected.executemany("INSERT INTO vectors (id, embedding) VALUES (?, vec_int8(?))", kept)
        for table in STORAGE:
            assert rows(found.connection, table) == rows(expected, table), table


def rows(handle: apsw.Connection, table: str) -> list[tuple[object, ...]]:
    return handle.execute(f"SELECT rowid, * FROM {table} ORDER BY 1").fetchall()


# --- what a checkout brings --------------------------------------------------------------------------------------


def test_an_index_is_on_the_disk_before_it_takes_its_place(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is flushed, then renamed, and then the folder is flushed, which has its name."""
    steps: list[tuple[str, int]] = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append(("flushed", os.fstat(descriptor).st_ino)))

    def replacing(source: Path, target: Path) -> None:
        steps.append(("renamed", os.stat(source).st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "replace", replacing)
    with anvil.open(docs, provider="none") as opened:
        opened.index()
    index = (docs / ".anvil/index.db").stat().st_ino
    of_index = [step for step in steps if step[1] in (index, (docs / ".anvil").stat().st_ino)]
    folder = [("flushed", (docs / ".anvil").stat().st_ino)] if hasattr(os, "O_DIRECTORY") else []
    assert of_index == [("flushed", index), ("renamed", index), *folder]


def test_links_beside_an_index_are_not_written_through(tmp_path: Path) -> None:
    for name in ("index.db", "index.db.new", "index.json"):
        (tmp_path / f"away-{name}").write_text("" if name == "index.db" else "mine")  # else it is refused, not replaced
        linked(tmp_path / "new" / name, tmp_path / f"away-{name}")
    away = {each: each.read_text() for each in tmp_path.glob("away-*")}
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nText.\n"})
    with anvil.open(docs, tmp_path / "new/index.db", "none") as opened:
        opened.index()
    publish.write_manifest(tmp_path / "new/index.db")
    linked(tmp_path / "new/copy.db.new", tmp_path / "away-index.db")
    publish.place(tmp_path / "new/index.db", tmp_path / "new/copy.db")
    assert len(away) == 3 and all(each.read_text() == text for each, text in away.items())
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["copy.db", "index.db", "index.json"]
    assert not any(each.is_symlink() for each in (tmp_path / "new").iterdir())


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "index.db.new").mkdir()
    with pytest.raises(BuildError, match=r"index\.db\.new is in the way"):
        published(tmp_path / "index.db", {}, [])


def test_a_default_folder_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "docs").mkdir()
    linked(tmp_path / "docs/.anvil", tmp_path / "away")
    with pytest.raises(BuildError, match="leads out"):
        publish.keep_out_of_git(tmp_path / "docs/.anvil")
    assert list((tmp_path / "away").iterdir()) == []


def test_a_documentation_folder_that_was_renamed_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot be made"):
        publish.keep_out_of_git(tmp_path / "docs/.anvil")
    docs = write(tmp_path / "away", {"a.md": "# A\n\nText.\n"})
    index = tmp_path / "docs/.anvil/index.db"
    with anvil.open(docs, index, "none") as opened, pytest.raises(BuildError, match="cannot be made"):
        opened.index()
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("stage", ["reading", "writing"])
def test_a_folder_that_is_replaced_while_an_index_is_written_is_told_and_left_alone(tmp_path: Path, stage: str) -> None:
    """As by a deployment, which changes a link on the path. The new folder has what another process writes."""
    write(tmp_path / "old/docs", {"a.md": "# A\n\nText.\n"})
    linked(tmp_path / "current", tmp_path / "old")
    lock = tmp_path / "new/index.db.lock"
    write(tmp_path / "new", {"docs/a.md": "# B\n"})
    with anvil.open(tmp_path / "new/docs", tmp_path / "new/index.db.new", "none") as opened:
        opened.index()
    theirs = (tmp_path / "new/index.db.new").read_bytes()

    def deploy(now: str, done: int, total: int) -> None:
        if now == stage and not lock.exists():
            write(tmp_path / "new", {"index.db.lock": ""})
            (tmp_path / "link").symlink_to("new")
            os.replace(tmp_path / "link", tmp_path / "current")

    current = tmp_path / "current"
    with (
        anvil.open(current / "docs", current / "index.db", "none", progress=deploy) as opened,
        pytest.raises(FolderVanished, match="current was emptied or replaced while the index was written"),
    ):
        opened.index()
    assert lock.exists() and (tmp_path / "new/index.db.new").read_bytes() == theirs
    assert not (tmp_path / "new/index.db").exists()


def test_a_file_that_was_replaced_after_its_examination_is_not_placed(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nText.\n"})
    with anvil.open(docs, tmp_path / "from.db", "none") as opened:
        opened.index()
    examined = safe_files.sha256(tmp_path / "from.db")
    publish.place(tmp_path / "from.db", tmp_path / "to.db", examined)
    before = (tmp_path / "to.db").read_bytes()
    write(docs, {"b.md": "# B\n\nMore.\n"})
    with anvil.open(docs, tmp_path / "from.db", "none") as opened:
        opened.index()
    with pytest.raises(ArtifactRejected, match="was replaced while it was copied"):
        publish.place(tmp_path / "from.db", tmp_path / "to.db", examined)
    assert (tmp_path / "to.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("to.db*")) == ["to.db"]
