"""Library files that somebody damaged: each is an error with a way out, never a traceback and never a wrong type."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactRejected, ConfigError
from anvil.formats.data_formats import plain
from anvil.library import library_file
from anvil.library.library import Library
from anvil.library.stored_documents import LibraryReader
from anvil.settings.schema import Config

DEEP = json.dumps({"a": 1})[:-1] + ', "b": ' + "[" * 50_000 + "]" * 50_000 + "}"
TEXTS = {
    "documents": ("library", "file_path", "title", "file_type", "last_modified", "metadata"),
    "holdings": ("doc_id", "content_hash", "created_at", "head"),
    "chunks": ("heading_path", "title", "terms", "content"),
    "labels": ("value",),
}
NUMBERS = {
    "documents": ("size",),
    "holdings": ("chunk_count",),
    "changes": ("number",),
    "windows": ("start", "end"),
    "chunks": ("document_id", "ordinal", "heading_level", "start", "start_line", "end_line", "page", "char_count"),
}
DAMAGES: dict[str, str] = {
    **{
        f"{table}.{column} is a blob": f"UPDATE OR IGNORE {table} SET {column} = x'ff00'"
        for table, columns in TEXTS.items()
        for column in columns
    },
    **{
        f"{table}.{column} is no UTF-8": f"UPDATE OR IGNORE {table} SET {column} = CAST(x'ff61' AS TEXT)"
        for table, columns in TEXTS.items()
        for column in columns
    },
    **{
        f"{table}.{column} is text": f"UPDATE {table} SET \"{column}\" = '³'"
        for table, columns in NUMBERS.items()
        for column in columns
    },
    **{
        f"{column} is {value}": f"UPDATE {table} SET {column} = {value}"
        for value in (-7, 9e300)
        for table, column in [("holdings", "chunk_count"), ("changes", "number"), ("chunks", "page")]
    },
    "page beyond": "UPDATE chunks SET page = 1 << 40",
    "metadata no JSON": "UPDATE documents SET metadata = '{'",
    "metadata a list": "UPDATE documents SET metadata = '[1]'",
    "metadata deep": f"UPDATE documents SET metadata = '{DEEP}'",
    "metadata deep for Python": "UPDATE documents SET metadata = '" + '{"a":' * 900 + "1" + "}" * 900 + "'",
    "a label no JSON": "UPDATE labels SET value = '\"'",
    "dimensions": "UPDATE anvil_meta SET value = '³' WHERE key = 'embedding_dimensions'",
    "dimensions huge": "UPDATE anvil_meta SET value = '99999999' WHERE key = 'embedding_dimensions'",
    "dimensions another": "UPDATE anvil_meta SET value = '383' WHERE key = 'embedding_dimensions'",
    "no dimensions": "DELETE FROM anvil_meta WHERE key = 'embedding_dimensions'",
    "no model": "DELETE FROM anvil_meta WHERE key = 'embedding_model'",
    "a blob in the manifest": "UPDATE anvil_meta SET value = x'00' WHERE key = 'chunking'",
    "no manifest": "DROP TABLE anvil_meta",
    "no holdings": "DELETE FROM holdings",
    "no documents": "DELETE FROM documents",
    "documents renumbered": "UPDATE documents SET id = id + 300000",
    "no chunks": "DELETE FROM chunks",
    "chunks renumbered": "UPDATE chunks SET id = id + (1 << 40)",
    "chunks below 0": "UPDATE chunks SET id = -id",
    "no docsize": "DELETE FROM chunks_fts_docsize",
    "no windows": "DELETE FROM windows",
    "vectors of no window": "UPDATE vectors_rowids SET rowid = rowid + 1000000",
    "vectors short": "UPDATE vectors_vector_chunks00 SET vectors = x'00'",
    "vectors gone": "DELETE FROM vectors_vector_chunks00",
    "validity": "UPDATE vectors_chunks SET validity = x'ff'",
    "rowids": "UPDATE vectors_chunks SET rowids = zeroblob(length(rowids))",
    "rowids short": "UPDATE vectors_chunks SET rowids = x'00'",
    "offset": "UPDATE vectors_rowids SET chunk_offset = 'x'",
    "averages": "UPDATE chunks_fts_data SET block = x'ff' WHERE id = 1",
}
"""What was done to a library -> the statement that does it."""
UNSEEN = {"averages", "no windows", "no chunks", "page beyond", "a label no JSON", "vectors of no window"}
"""These make results worse or fewer, or give a page another number."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, local: EmbeddingProvider) -> Path:
    path = tmp_path_factory.mktemp("sound") / "library.db"
    with contextlib.closing(Library(path, Config(), _Kept(local))) as made:
        made.ingest_content(
            "# Tides\n\nHigh water is at noon.\n\n# Lamps\n\n" + "A lamp is lit. " * 30,
            "t.md",
            metadata={"year": 2026, "by": "Ada"},
        )
        made.ingest_content("# More\n\nLow water is at dusk.", "m.md", "other", {"year": 2025})
    return path


class _Kept:
    """A provider that a library does not close: other tests use it."""

    def __init__(self, inner: EmbeddingProvider) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def close(self) -> None:
        pass


def questions(library: Library) -> dict[str, Callable[[], Any]]:
    """Everything that can be asked of a library."""
    return {
        "search": lambda: library.search("high water", 10),
        "filtered": lambda: library.search("water", filter={"metadata.year": {"gt": 1}, "metadata.by": {"gte": "A"}}),
        "times": lambda: library.search("water", filter={"last_modified": {"gte": "2020"}, "page": 0}),
        "list": lambda: library.list_documents(),
        "libraries": lambda: library.list_libraries(),
        "read": lambda: library.get_document(library.doc_id_of("t.md")),
        "prune": lambda: library.prune(),
        "update": lambda: library.update_document(library.doc_id_of("t.md"), {"a": 1}),
        "replace": lambda: library.ingest_content("# Tides\n\nNow at six.", "t.md"),
        "add": lambda: library.ingest_content("new", "n.md"),
        "search again": lambda: library.search("high water at six", 10),
        "delete": lambda: library.delete_document(library.doc_id_of("m.md")),
        "reembed": lambda: library.reembed(),
    }


def test_a_library_waits_for_the_disk_at_checkpoints_alone(sound: Path) -> None:
    """SQLite's "normal", which keeps a file in WAL mode whole, and not "full", which waits at each change."""
    with contextlib.closing(library_file.open_library(sound, {})) as handle:
        assert (handle.pragma("journal_mode"), handle.pragma("synchronous")) == ("wal", 1)


def test_a_sound_library_is_found_sound(sound: Path) -> None:
    before = sound.read_bytes()
    assert library_file.examine(sound)[0]["embedding_dimensions"] == "384"
    assert sound.read_bytes() == before and not [*sound.parent.glob("library.db-*")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_an_error_with_a_way_out(sound: Path, tmp_path: Path, local: EmbeddingProvider, damage: str) -> None:
    path = tmp_path / "library.db"
    shutil.copyfile(sound, path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        connection.execute(DAMAGES[damage])
        connection.commit()
    told: list[str] = []
    for name in questions(Library(path, Config(), _Kept(local))):
        with Library(path, Config(), _Kept(local)) as library:
            try:
                fits(questions(library)[name]())
            except AnvilError as error:
                told.append(str(error))
                assert isinstance(error, (ArtifactError, ConfigError)) or "No document has the id" in str(error), name
                if isinstance(error, ArtifactRejected):
                    assert str(path) in str(error) and "ut a copy back, or move it away" in str(error), error
    if not told and damage not in UNSEEN:  # in a column that no answer needs
        shutil.copyfile(sound, path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(DAMAGES[damage])
            connection.commit()
        with pytest.raises(ArtifactRejected, match=r"is damaged: .* Put a copy back"):
            library_file.examine(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors_vector_chunks00 SET vectors = x'00'",
        "UPDATE vectors_chunks SET rowids = x'00'",
        "UPDATE vectors_chunks SET validity = x''",
        "DELETE FROM windows",
        "UPDATE labels SET value = '{'",
    ],
)
def test_the_doctor_finds_the_damage_for_which_a_search_fails_or_finds_less(
    sound: Path, tmp_path: Path, damage: str
) -> None:
    """The error of such a search says that 'anvil doctor' checks the library."""
    path = tmp_path / "library.db"
    shutil.copyfile(sound, path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(ArtifactRejected, match=r"is damaged: .* Put a copy back"):
        library_file.examine(path)


def test_a_mistake_of_anvils_is_not_told_as_damage(
    sound: Path, tmp_path: Path, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(_: LibraryReader) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(LibraryReader, "libraries", mistaken)
    path = Path(shutil.copyfile(sound, tmp_path / "library.db"))
    with Library(path, Config(), _Kept(local)) as library, pytest.raises(ValueError, match="a mistake"):
        library.list_libraries()


def fits(found: Any) -> None:
    """Every value of an answer is of the type that its class says, and it can be sent."""
    json.dumps(plain(found)) if dataclasses.is_dataclass(found) else None
    for each in dataclasses.fields(found) if dataclasses.is_dataclass(found) else ():
        value = getattr(found, each.name)
        for inner in value if isinstance(value, tuple) else ():
            fits(inner)
        if each.type in ("str", "int"):
            assert type(value).__name__ == each.type, (each.name, value)


@pytest.mark.parametrize("row", [(1, -1), (1, True), (1, "1"), (1, None), (1, 1.0)])
def test_a_value_of_a_wrong_type_and_a_negative_number_are_damage(row: tuple[object, object]) -> None:
    assert library_file.check_types((0, 1), "the row", int, int) == (0, 1)
    with pytest.raises(library_file.Damage, match="the row has a value of a wrong type"):
        library_file.check_types(row, "the row", int, int)
