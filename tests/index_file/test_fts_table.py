"""The keyword index has the same rows for the same chunks, however they came there."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import apsw
import pytest

from anvil.index_file import connection, fts_table, publish, table_rows
from anvil.index_file.writer import Writer
from anvil.settings.schema import ChunkingOptions
from anvil.text import chunker, markdown_sections
from anvil.values import Document

WORDS = [f"word{number}" for number in range(300)]
TABLES = ("data", "idx", "docsize", "config")


def text(chance: random.Random) -> str:
    return "".join(
        f"## {chance.choice(WORDS)}\n\n{' '.join(chance.choices(WORDS, k=chance.randrange(60)))}\n\n"
        for _ in range(chance.randrange(1, 4))
    )


def put(writer: Writer, path: str, content: str) -> None:
    page = markdown_sections.parse(content)
    document = Document(path, content, content, len(content), "2026-01-31T09:30:00Z")
    writer.put(document, page, chunker.chunks(page, ChunkingOptions(min_chunk_size=0)))


def working_copy() -> Writer:
    writer = Writer(connection.open_scratch(":memory:"))
    connection.create_tables(writer.connection, 0)
    fts_table.begin(writer.connection)
    return writer


def merged(writer: Writer) -> list[list[tuple[object, ...]]]:
    """The rows as they are published: with the ids of an index built from scratch, in one merged part."""
    with writer.atomic():
        writer.renumber(publish.moves(writer), True)
    fts_table.merge(writer.connection)
    return [list(fts_table.rows(writer.connection, table)) for table in TABLES]


@pytest.mark.parametrize("seed", range(6))
def test_the_rows_do_not_depend_on_the_changes_before(seed: int) -> None:
    chance = random.Random(seed)
    pages = {f"{number}.md": text(chance) for number in range(seed * 12)}
    with contextlib.closing(working_copy()) as changed, contextlib.closing(working_copy()) as straight:
        for _ in range(4):  # pages come, change back and forth, and go
            with changed.atomic():
                for path in chance.sample([*pages, "gone.md"], k=len(pages) // 2):
                    put(changed, path, chance.choice([pages.get(path, "# Gone"), text(chance)]))
            fts_table.merge(changed.connection)
        with changed.atomic():
            changed.remove("gone.md")
            for path in chance.sample([*pages], k=len(pages)):
                put(changed, path, pages[path])
        with straight.atomic():
            for path in pages:
                put(straight, path, pages[path])
        expected = merged(straight)
        assert merged(changed) == expected
        assert merged(changed) == expected, "merging again changes nothing"
        fts_table.rebuild(changed.connection)
        assert merged(changed) == expected


@pytest.mark.parametrize("seed", range(4))
def test_documents_get_other_ids_with_their_keywords(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In so few slots most documents that come or go move others, and some swap their ids."""
    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 5)
    monkeypatch.setattr(table_rows, "DOCUMENT_SLOT_BITS", 3)
    chance = random.Random(seed)
    pages = {f"{number}.md": text(chance) for number in range(24)}
    with contextlib.closing(working_copy()) as changed, contextlib.closing(working_copy()) as straight:
        with changed.atomic():
            for path in reversed(pages):
                put(changed, path, pages[path])
        expected_moves = publish.moves(changed)
        assert {old for old, _ in expected_moves} & {new for _, new in expected_moves}, "some take the id of another"
        kept = dict(chance.sample(list(pages.items()), k=20))
        with changed.atomic():
            for path in pages.keys() - kept.keys():
                changed.remove(path)
        with straight.atomic():
            for path in sorted(kept):
                put(straight, path, kept[path])
        assert not publish.moves(straight)
        assert merged(changed) == merged(straight)
        rows = "SELECT id, content FROM chunks ORDER BY id"
        assert list(changed.connection.execute(rows)) == list(straight.connection.execute(rows))


def test_a_copy_is_a_sound_keyword_index(tmp_path: Path) -> None:
    chance = random.Random(7)
    with contextlib.closing(working_copy()) as writer:
        with writer.atomic():
            for number in range(40):
                put(writer, f"{number}.md", text(chance))
        fts_table.merge(writer.connection)
        with contextlib.closing(connection.open_scratch(tmp_path / "copy.db")) as empty:
            connection.create_tables(empty, 0)
        handle = writer.connection
        handle.execute("ATTACH ? AS fresh", (str(tmp_path / "copy.db"),))
        with handle:
            handle.execute("INSERT INTO fresh.chunks SELECT * FROM main.chunks ORDER BY id")
            fts_table.copy(handle, "fresh")
        expected = found(handle)
    with contextlib.closing(connection.open_scratch(tmp_path / "copy.db")) as copy:
        copy.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        assert found(copy) == expected != []
        assert merged_of_one(copy)


def test_an_index_that_fts5_merged_by_itself_is_made_again() -> None:
    writer = Writer(connection.open_scratch(":memory:"))
    with contextlib.closing(writer), contextlib.closing(working_copy()) as other:
        connection.create_tables(writer.connection, 0)
        for number in range(30):  # a part for each page
            put(writer, f"{number}.md", f"# Page {number}\n")
        with other.atomic():
            for number in range(30):
                put(other, f"{number}.md", f"# Page {number}\n")
        assert merged(writer) == merged(other)


def found(handle: apsw.Connection) -> list[tuple[object, ...]]:
    return handle.execute("SELECT rowid FROM main.chunks_fts WHERE chunks_fts MATCH 'word7' ORDER BY rowid").fetchall()


def merged_of_one(handle: apsw.Connection) -> bool:
    """Whether all rows of the keyword index are those of its canonical form."""
    stored = handle.execute("SELECT id, block FROM chunks_fts_data ORDER BY id").fetchall()
    return stored == list(fts_table.rows(handle, "data"))
