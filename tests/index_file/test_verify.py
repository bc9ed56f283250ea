"""Files from anywhere: what is sound opens, everything else is refused with the reason."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

import anvil
from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, ArtifactRejected, BuildError, FormatTooNew
from anvil.index_file import connection, publish, verify
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions
from tests.conftest import PAGES, write


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, local: EmbeddingProvider) -> Path:
    """The four pages and their index, with vectors."""
    folder = tmp_path_factory.mktemp("built")
    build(WorkingTree(write(folder / "docs", PAGES)), folder / "index.db", local, ChunkingOptions())
    return folder / "index.db"


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    """A copy of the index, which a test may change."""
    return Path(shutil.copyfile(built, tmp_path / "index.db"))


def tamper(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA writable_schema = on")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refusal(path: Path, fix: str = "anvil build --force") -> str:
    with pytest.raises(ArtifactRejected) as error:
        verify.check(path)
    assert str(path) in str(error.value) and fix in str(error.value)
    assert publish.is_foreign(path) <= ("--force" not in str(error.value))  # it would not be replaced
    return str(error.value)


def test_a_built_index_is_sound(index: Path) -> None:
    with verify.open_checked(index) as reader:
        assert reader.counts()["documents"] == 4
        assert reader.counts()["vectors"] == reader.counts()["windows"] > 4


def test_an_index_of_pages_with_included_files_is_sound(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "part.txt").write_text("A part.\n")
    (docs / "index.md").write_text('# Index\n\n--8<-- "part.txt"\n\n--8<-- "docs/missing.txt"\n')
    with anvil.open(docs, tmp_path / "included.db", provider="none") as opened:
        opened.index()
    verify.check(tmp_path / "included.db")


def test_an_index_of_a_version_with_other_comments_in_its_tables_is_sound(index: Path) -> None:
    tamper(index, "UPDATE sqlite_schema SET sql = replace(sql, '-- ', '-- once: ')")
    verify.check(index)


@pytest.mark.parametrize("added", ["DEFAULT '--\n '", 'DEFAULT "--\n "'])
def test_quoted_text_is_no_comment(index: Path, added: str) -> None:
    text = added.replace("'", "''")
    tamper(index, f"UPDATE sqlite_schema SET sql = replace(sql, 'title TEXT NOT NULL,', 'title TEXT NOT NULL {text},')")
    assert "is not defined as it must be" in refusal(index)


def test_nothing_can_be_written_through_it(index: Path) -> None:
    with verify.open_checked(index) as reader, pytest.raises(Exception, match=r"(?i)read.?only"):
        reader.connection.execute("DELETE FROM chunks")


@pytest.mark.parametrize(
    ("place", "options"),
    [("docs/.anvil/index.db", ""), ("site/anvil/index.db", " --site site"), ("d.db", " --index d.db")],
)
def test_a_missing_index_is_built_where_it_was_looked_for(place: str, options: str) -> None:
    with pytest.raises(ArtifactMissing) as caught:
        connection.open_artifact(Path(place))
    assert str(caught.value) == f"There is no index at {Path(place)}. Build it with 'anvil build{options}'."


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ArtifactMissing, match="anvil build"):
        verify.check(tmp_path / "none.db")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"<html>not found</html>", b"\0" * 5000])
def test_what_is_no_index_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.db"
    path.write_bytes(content)
    refusal(path, "")


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    tamper(path, "CREATE TABLE t (a)")
    refusal(path, "not an Anvil index. Name another, or build one in another place.")


def test_a_truncated_file_is_refused(index: Path) -> None:
    data = index.read_bytes()
    for share in (0.2, 0.5, 0.9):
        index.write_bytes(data[: int(len(data) * share)])
        refusal(index)


def test_a_future_format_asks_for_an_upgrade(index: Path) -> None:
    tamper(index, "PRAGMA user_version = 99")
    with pytest.raises(FormatTooNew, match="pip install -U anvil-docs"):
        verify.check(index)


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
        ("UPDATE anvil_meta SET value = 'x' WHERE key = 'embedding_dimensions'", "values for embedding_dimensions"),
        ("UPDATE anvil_meta SET value = '{}' WHERE key = 'chunking'", "impossible values for chunking"),
        (
            'UPDATE anvil_meta SET value = replace(value, \'"terms":5\', \'"terms":"5"\')',
            "impossible values for chunking",
        ),
        ("UPDATE anvil_meta SET value = replace(value, '6000', '5000') WHERE key = 'chunking'", "match its digest"),
        ("UPDATE chunks SET content = 'poison' WHERE id = (SELECT min(id) FROM chunks)", "a value in the chunk"),
        ("UPDATE chunks SET content = replace(content, 'a', 'e')", "does not match its digest"),
        ("UPDATE chunks SET heading_path = 'Elsewhere' WHERE id = (SELECT min(id) FROM chunks)", "digest"),
        ("UPDATE documents SET blob_id = '' WHERE file_path = 'index.md'", "'index.md' does not match its digest"),
        ("UPDATE documents SET fingerprint = 'x+1{}'", "a value in the document"),
        ("UPDATE documents SET file_path = char(10) || '::error::x' WHERE file_path = 'index.md'", "the path or"),
        ("UPDATE anvil_meta SET value = char(10) || '::error::x' WHERE key = 'count_chunks'", "'\\n::error::x'"),
        ("UPDATE sections SET anchor = 'a'", "digest"),
        ("DELETE FROM documents WHERE file_path = 'index.md'", "is not that of its document"),
        ("DELETE FROM windows WHERE id = (SELECT min(id) FROM windows)", "windows"),
        ("UPDATE vectors_vector_chunks00 SET vectors = x'00'", "vectors are damaged"),
        ("UPDATE vectors_rowids SET chunk_offset = 100000", "vectors are damaged"),
        ("DELETE FROM vectors_rowids", "has 0 vectors"),
        ("INSERT INTO anvil_meta VALUES ('site', '5')", "impossible values for site"),
        ("INSERT INTO anvil_meta VALUES ('site', '[\"https://x.test/\",\"hugo\",3]')", "impossible values for site"),
        ("INSERT INTO anvil_meta VALUES ('site', '[\"https://x.test/\",\"none\"]')", "impossible values for site"),
        ("INSERT INTO anvil_meta VALUES ('weights', '{}')", "impossible values for weights"),
        ("INSERT INTO anvil_meta VALUES ('weights', '[[\"a\",9]]')", "impossible values for weights"),
        ("INSERT INTO anvil_meta VALUES ('weights', '[1]')", "impossible values for weights"),
        ("INSERT INTO anvil_meta VALUES ('weights', '[[[],1]]')", "impossible values for weights"),
        ("INSERT INTO anvil_meta VALUES ('weights', 'none')", "impossible values for weights"),
        ("INSERT INTO anvil_meta VALUES ('extra', '[]')", "do not match their checksum"),
        ("UPDATE anvil_meta SET value = 'elsewhere' WHERE key = 'docs_root_path'", "do not match their checksum"),
        ("UPDATE windows SET key = randomblob(10)", "do not match their checksum"),
        ("UPDATE documents SET last_modified = '2000-01-01T00:00:00Z'", "for last_index_timestamp"),
        (
            "UPDATE sqlite_schema SET sql = replace(sql, 'porter', 'ascii') WHERE name = 'chunks_fts'",
            "'chunks_fts' is not defined as it must be",
        ),
    ],
)
def test_a_tampered_file_is_refused(index: Path, statement: str, reason: str) -> None:
    tamper(index, statement)
    assert reason in refusal(index)


def test_flipped_bits_never_pass_unseen(index: Path) -> None:
    """Either the flip is found, or what can be asked is what it was."""
    with verify.open_checked(index) as reader:
        before = [reader.page_chunks(d.id) for d in reader.documents()]
    data = bytearray(index.read_bytes())
    chance = random.Random(7)
    found = 0
    for _ in range(150):
        place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        data[place] ^= bit
        index.write_bytes(data)
        try:
            with verify.open_checked(index) as reader:
                assert [reader.page_chunks(d.id) for d in reader.documents()] == before
        except ArtifactError:
            found += 1
        except AnvilError as error:  # pragma: no cover - the assertion says what to look at
            raise AssertionError(f"refused as something else: {error!r}") from error
        data[place] ^= bit
    assert found > 30  # the rest lies in unused space


def test_a_damaged_index_of_a_site_is_made_again_by_its_site(index: Path, keywords: EmbeddingProvider) -> None:
    tamper(index, "INSERT INTO anvil_meta VALUES ('left_out', '[]')")
    assert "anvil build" not in refusal(index, "Build its site again with 'mkdocs build', or fetch it again.")
    docs, options = write(index.parent / "docs", PAGES), ChunkingOptions()
    with pytest.raises(BuildError, match="was built with a site"):
        build(WorkingTree(docs), index, keywords, options)
    assert build(WorkingTree(docs), index, keywords, options, BuildRequest(force=True)).outcome == "built"
