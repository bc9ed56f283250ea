"""Files from anywhere: what is sound opens, everything else is refused with the reason."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from anvil.building import build
from anvil.config import ChunkingOptions
from anvil.embedding import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, ArtifactRejected, FormatTooNew
from anvil.sources import working_tree
from anvil.store import checking, foreign


@pytest.fixture
def index(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> Path:
    path = tmp_path / "index.db"
    build(working_tree(docs), path, local, ChunkingOptions())
    return path


def tamper(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = on")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refusal(path: Path, mend: str = "anvil build --force") -> str:
    with pytest.raises(ArtifactRejected) as error:
        checking.check(path)
    assert str(path) in str(error.value) and mend in str(error.value)
    assert foreign.is_foreign(path) <= ("--force" not in str(error.value))  # it would not be replaced
    return str(error.value)


def test_a_built_index_is_sound(index: Path) -> None:
    with checking.open_checked(index) as reader:
        assert reader.counts()["documents"] == 4
        assert reader.counts()["vectors"] == reader.counts()["windows"] > 4


def test_nothing_can_be_written_through_it(index: Path) -> None:
    with checking.open_checked(index) as reader, pytest.raises(Exception, match=r"(?i)read.?only"):
        reader.connection.execute("DELETE FROM chunks")


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ArtifactMissing, match="anvil build"):
        checking.check(tmp_path / "none.db")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"<html>not found</html>", b"\0" * 5000])
def test_what_is_no_index_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.db"
    path.write_bytes(content)
    refusal(path, "anvil build")


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    tamper(path, "CREATE TABLE t (a)")
    assert "not an Anvil index. Name another, or build one in another place" in refusal(path, "anvil build")


def test_a_truncated_file_is_refused(index: Path) -> None:
    data = index.read_bytes()
    for share in (0.2, 0.5, 0.9):
        index.write_bytes(data[: int(len(data) * share)])
        refusal(index)


def test_a_future_format_asks_for_an_upgrade(index: Path) -> None:
    tamper(index, "PRAGMA user_version = 99")
    with pytest.raises(FormatTooNew, match="pip install -U anvil-docs"):
        checking.check(index)


def test_an_old_format_is_refused(index: Path) -> None:
    tamper(index, "PRAGMA user_version = 0")
    assert "old format" in refusal(index)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON chunks BEGIN DELETE FROM chunks; END", "trigger 't' does not belong"),
        ("CREATE VIEW v AS SELECT * FROM chunks", "view 'v' does not belong"),
        ("CREATE VIRTUAL TABLE f USING fts5(a)", "'f' does not belong"),
        ("CREATE INDEX i ON chunks (title)", "index 'i' does not belong"),
        ("DROP TABLE sections", "table 'sections' is missing"),
        ("DROP TABLE anvil_meta", "manifest"),
        ("DELETE FROM anvil_meta WHERE key = 'digest'", "lacks digest"),
        ("UPDATE anvil_meta SET value = '0' WHERE key = 'embedding_dimensions'", "vectors"),
        ("UPDATE anvil_meta SET value = 'x' WHERE key = 'embedding_dimensions'", "impossible dimensions"),
        ("UPDATE anvil_meta SET value = '{}' WHERE key = 'chunking'", "does not match its digest"),
        ("UPDATE chunks SET content = 'poison' WHERE id = (SELECT min(id) FROM chunks)", "does not match its digest"),
        ("UPDATE chunks SET heading_path = 'Elsewhere' WHERE id = (SELECT min(id) FROM chunks)", "digest"),
        ("UPDATE documents SET blob_id = 'a' WHERE file_path = 'index.md'", "'index.md' does not match its digest"),
        ("UPDATE sections SET anchor = 'a'", "digest"),
        ("DELETE FROM documents WHERE file_path = 'index.md'", "digest"),
        ("DELETE FROM windows WHERE id = (SELECT min(id) FROM windows)", "windows"),
        ("UPDATE vectors_vector_chunks00 SET vectors = x'00'", "vectors are damaged"),
        ("UPDATE vectors_rowids SET chunk_offset = 100000", "vectors are damaged"),
        ("DELETE FROM vectors_rowids", "holds 0 vectors"),
        ("UPDATE windows SET key = x'00'", "do not match their checksum"),
        ("UPDATE documents SET last_modified = '2000-01-01T00:00:00Z'", "do not match their checksum"),
        ("UPDATE sqlite_schema SET sql = replace(sql, 'porter', 'ascii') WHERE name = 'chunks_fts'",
         "'chunks_fts' is not defined as it must be"),
    ],
)  # fmt: skip
def test_a_tampered_file_is_refused(index: Path, statement: str, reason: str) -> None:
    tamper(index, statement)
    assert reason in refusal(index)


def test_flipped_bits_never_pass_unseen(index: Path) -> None:
    """Either the flip is found, or what can be asked is what it was."""
    with checking.open_checked(index) as reader:
        before = [reader.page_chunks(d.id) for d in reader.documents()]
    data = bytearray(index.read_bytes())
    chance = random.Random(7)
    found = 0
    for _ in range(150):
        place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        data[place] ^= bit
        index.write_bytes(data)
        try:
            with checking.open_checked(index) as reader:
                assert [reader.page_chunks(d.id) for d in reader.documents()] == before
        except ArtifactError:
            found += 1
        except AnvilError as error:  # pragma: no cover - the assertion says what to look at
            raise AssertionError(f"refused as something else: {error!r}") from error
        data[place] ^= bit
    assert found > 30  # the rest lies in unused space
