from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

import anvil
from anvil.embedding.provider import PROVIDERS, CachedProvider, Embedded, EmbeddingProvider
from anvil.errors import (
    AnvilError,
    ArtifactError,
    ArtifactRejected,
    BuildError,
    ConfigError,
    DocumentRejected,
    DocumentTooLarge,
    NotFound,
    ProviderError,
)
from anvil.formats.data_formats import timestamp
from anvil.index_file.manifests import settings
from anvil.library import stored_documents
from anvil.library.document_chunker import DocumentPart
from anvil.library.ingestion import stage_document
from anvil.library.library import Library
from anvil.library.library_file import open_library as open_file
from anvil.library.library_file import writing
from anvil.library.settings import LibraryOptions
from anvil.library.stored_documents import LibraryWriter, StagedDocument
from anvil.library.values import DocumentInfo
from anvil.settings.schema import ChunkingOptions, Config, EmbeddingSettings
from tests.support import documents

ROOT = Path(__file__).resolve().parents[2]
NONE = Config(embedding=EmbeddingSettings(provider="none"))
_LAMPS, _BOATS = "The keeper lights the lamp when it gets dark. " * 6, "A boat leaves the harbour at noon. " * 8
GUIDE = f"---\ntitle: Sea guide\n---\n# Lamps\n\n{_LAMPS}\n\n# Boats\n\n{_BOATS}\n"


@contextlib.contextmanager
def opened(path: Path, config: Config = NONE) -> Iterator[Library]:
    with anvil.open_library(path, config=config) as library:
        yield library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with opened(tmp_path / "library.db") as made:
        yield made


def sources(opened: Library, query: str, **more: Any) -> list[str]:
    return [each.source for each in opened.search(query, **more).results]


def test_a_search_that_finds_nothing_says_why(library: Library) -> None:
    assert library.search("noon").notes[1:] == (  # the first: there are no vectors
        "There is no document yet. Add some, as with 'anvil ingest FOLDER' or ingest_file.",
    )
    library.ingest_content(GUIDE, "guide.md", library="tides")
    assert library.search("noon", library="tide").notes[1:] == ("There is no library 'tide'. There are: tides.",)
    _, note = library.search("noon", filter={"file_type": "pfd"}).notes
    assert note.startswith("No passage fits the question and the filter.")
    assert library.search("noon", library="tides").notes[1:] == ()


# --- one document ------------------------------------------------------------------------------------------------


def test_index_skip_replace_delete(library: Library) -> None:
    first = library.ingest_content(GUIDE, "guide.md", metadata={"team": "sea"})
    assert (first.status, first.source, first.library, first.chunk_count) == ("indexed", "guide.md", "default", 2)
    changes = library_changes(library)
    assert library.ingest_content(GUIDE, "guide.md").status == "skipped"
    assert library_changes(library) == changes, "a skipped document writes nothing"
    second = library.ingest_content(GUIDE.replace("noon", "dusk"), "guide.md")
    assert (second.status, second.doc_id) == ("replaced", first.doc_id)
    assert sources(library, "noon") == [] and sources(library, "dusk") == ["guide.md"]
    assert library.get_document(first.doc_id).metadata == {"team": "sea"}
    deleted = library.delete_document(first.doc_id)
    assert (deleted.status, deleted.doc_id, deleted.deleted_chunks) == ("deleted", first.doc_id, 2)
    assert sources(library, "dusk") == []
    for gone in (library.delete_document, library.get_document, library.doc_id_of):
        for doc_id in (first.doc_id, "\udcff"):  # what a byte of a command line is that is not UTF-8
            with pytest.raises(NotFound, match="No document has the id"):
                gone(doc_id)
    assert library.list_documents(offset=10**30).documents == ()
    assert rows(library) == {"documents": 0, "chunks": 0, "holdings": 0, "labels": 0, "windows": 0}


def library_changes(library: Library) -> int:
    with library._read() as reader:
        return reader.version()


def rows(library: Library) -> dict[str, int]:
    with library._read() as reader:
        tables = ("documents", "chunks", "holdings", "labels", "windows")
        return {table: reader.connection.execute(f"SELECT count(*) FROM {table}").get for table in tables}


@pytest.mark.parametrize(
    "text",
    [
        GUIDE,
        "\ufeff# A\r\n\r\ntext\r\n",
        "no heading at all",
        "\n\n  \n# Late\n",
        "---\na: 1\n---\n",
        "   \n",
        "",
        "# A\n\n" + "word " * 5000,
        "~~~\nopen fence\n\n# not a heading\n",
        "\x0c\x85\u2028odd\x1cspace",
        "é" * 7000,
    ],
)
def test_a_document_comes_back_exactly(library: Library, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_bytes(text.encode())
    taken = library.ingest_file(str(tmp_path / "a.md"))
    assert library.get_document(taken.doc_id).content == text
    if text.strip():
        taken = library.ingest_content(text, "a.md")
        assert library.get_document(taken.doc_id).content == text


def test_a_document_of_many_slices_comes_back_exactly(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "---\ntitle: Long\n---\n" + "".join(f"## Part {n}\n\n{'words of it ' * 200}\n\n" for n in range(600))
    assert len(text) > 1_000_000
    taken = library.ingest_content(text, "long.md")
    found = library.get_document(taken.doc_id)
    assert found.content == text and found.title == "Long" and found.chunk_count == taken.chunk_count >= 300
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part = library.get_document(taken.doc_id, offset, 400_000)
        parts.append(part.content)
        offset = part.next_offset
    assert "".join(parts) == text and len(parts) == 4 and max(map(len, parts)) <= 400_000


def test_an_empty_document_says_so(library: Library, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("  \n")
    taken = library.ingest_file(str(tmp_path / "a.md"))
    assert taken.chunk_count == 0 and "no text" in taken.notes[0]


def test_titles(library: Library, tmp_path: Path) -> None:
    for source, text in [
        ("/x/plan.v2.md", "text"),
        ("https://x.org/a/tides.html?q=1", "text"),
        ("b.md", "# Head"),
        ("https://x.org/", "text"),
        (r"C:\docs\notes.txt", "text"),
        ("c.md", "---\ntitle: Front\n---\n# Head"),
    ]:
        library.ingest_content(text, source)
    titles = {each.source: each.title for each in library.list_documents().documents}
    assert titles == {
        "/x/plan.v2.md": "plan.v2",
        "https://x.org/a/tides.html?q=1": "tides",
        "b.md": "Head",
        "https://x.org/": "x.org",
        r"C:\docs\notes.txt": "notes",
        "c.md": "Front",
    }


def test_the_same_source_in_two_libraries_is_two_documents(library: Library) -> None:
    one, two = (library.ingest_content(GUIDE, "a.md", name) for name in ("one", "two"))
    assert one.doc_id != two.doc_id and two.status == "indexed"
    assert [(each.library, each.document_count, each.chunk_count) for each in library.list_libraries().libraries] == [
        ("one", 1, 2),
        ("two", 1, 2),
    ]
    assert [each.library for each in library.search("lamp", library="two").results] == ["two"]
    assert len(library.search("lamp").results) == 2
    library.delete_document(one.doc_id)
    assert [each.library for each in library.search("lamp").results] == ["two"]


def test_a_file_and_what_is_known_of_it(library: Library, tmp_path: Path) -> None:
    path = documents.pdf(tmp_path / "tides.pdf", ["High water at six.", "Low water at noon.", "Springs and neaps."])
    os.utime(path, (1_600_000_000, 1_600_000_000))
    taken = library.ingest_file(str(path), "papers", {"year": 2020})
    (found,) = library.search("low water noon", 1).results
    assert (found.doc_id, found.source, found.title, found.library) == (taken.doc_id, str(path), "tides", "papers")
    assert (found.file_type, found.last_modified, found.page) == ("pdf", "2020-09-13T12:26:40Z", 2)
    assert (found.content.strip(), found.chunk_index, found.metadata) == ("Low water at noon.", 1, {"year": 2020})
    assert 0 < found.score <= 1
    text = library.get_document(taken.doc_id).content
    assert text == "High water at six.\n\nLow water at noon.\n\nSprings and neaps.\n\n"
    (row,) = library.list_documents().documents
    assert len(row.content_hash) == 64 and row.created_at.endswith("Z") and row.chunk_count == 3


def test_what_cannot_be_taken_in(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.exe").write_text("x")
    (tmp_path / "plain").write_text("x")
    for name in ("a.md", "folder"):
        (tmp_path / name).mkdir()
    for path, told in [
        (tmp_path / "no.md", "There is no file"),
        (tmp_path / "a.exe", "are not read"),
        (tmp_path / "no", "There is no file"),
        (tmp_path / "plain", "Files without an ending"),
        (tmp_path / "a.md", "is a folder. Use ingest_folder, or 'anvil ingest "),
        (tmp_path / "folder", "is a folder. Use ingest_folder"),
        *([(Path(os.devnull), "neither a file nor a folder")] * (os.name != "nt")),
    ]:
        with pytest.raises(DocumentRejected, match=told):
            library.ingest_file(str(path))
    for arguments in ({"library": " "}, {"metadata": [1]}, {"metadata": {"a": "x" * 20_000}}):
        with pytest.raises(ConfigError):
            library.ingest_content("x", "a.md", **arguments)
    with pytest.raises(ConfigError, match="path has control characters"):
        library.ingest_file("a\0b.md")
    assert rows(library)["documents"] == 0


def test_a_document_has_so_many_passages_at_most(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored_documents.MAX_PASSAGES == 32_768
    monkeypatch.setattr(stored_documents, "MAX_PASSAGES", 2)
    assert library.ingest_content(GUIDE, "a.md").chunk_count == 2
    with pytest.raises(DocumentTooLarge, match="more than 2 passages"):
        library.ingest_content(f"{GUIDE}\n# Tides\n\n{_BOATS}\n", "b.md")


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_what_is_empty_is_an_error(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: str
) -> None:
    monkeypatch.chdir(tmp_path)  # what would be taken in for a blank name
    (tmp_path / "here.md").write_text("text")
    taken = library.ingest_content("text", "notes.md")
    refused: list[tuple[str, Callable[[], object]]] = [
        ("folder is empty", lambda: library.ingest_folder(blank)),
        ("path is empty", lambda: library.ingest_file(blank)),
        ("source is empty", lambda: library.ingest_content("text", blank)),
        ("content is empty", lambda: library.ingest_content(blank, "notes.md")),
        ("url is empty", lambda: library.ingest_url(blank)),
        ("library must be a name", lambda: library.ingest_content("text", "a.md", blank)),
        ("library must be a name", lambda: library.search("text", library=blank)),
        ("library must be a name", lambda: library.list_documents(blank)),
        ("query parameter is required", lambda: library.search(blank)),
        ("library.index is empty", lambda: anvil.open_library(blank)),
    ]
    for told, call in refused:
        with pytest.raises(ConfigError, match=told):
            call()
    check = library.server_info(blank).path_check
    assert check is not None and not check.readable and check.error is not None and "empty" in check.error
    assert library.get_document(taken.doc_id).content == "text" and library.list_documents().total == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("x" * 5000, "has 5,0.* characters; the limit is 4,096"),
        ("y/" * 2000 + "z", "cannot be read|no folder"),
        ("x" * 300, "cannot be read|no folder"),
        ("a\0b", "has control characters"),
        ("~nobody-here/x", "There is no"),
    ],
)
def test_names_that_no_system_has(library: Library, name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        library.ingest_folder(name)
    with pytest.raises((ConfigError, DocumentRejected)):
        library.ingest_file(name)


def test_a_file_over_the_limit(tmp_path: Path) -> None:
    config = Config(embedding=NONE.embedding, tables={"library": LibraryOptions(max_file_bytes=10)})
    (tmp_path / "a.md").write_text("x" * 11)
    with opened(tmp_path / "l.db", config) as library:
        with pytest.raises(DocumentTooLarge, match="has 11 bytes; the limit is 10"):
            library.ingest_file(str(tmp_path / "a.md"))
        with pytest.raises(DocumentTooLarge, match="The content has 11 bytes"):
            library.ingest_content("x" * 11, "a.md")


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.md"
    path.write_text("old")
    pieces = library.converter.parts

    def slow(*arguments: Any) -> Any:
        found = list(pieces(*arguments))
        path.write_text("new text")
        return iter(found)

    monkeypatch.setattr(library.converter, "parts", slow)
    with pytest.raises(DocumentRejected, match="changed while it was read"):
        library.ingest_file(str(path))
    assert rows(library)["documents"] == 0


# --- search and lists --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("shelf")
    with opened(folder / "library.db") as made:
        fill(made, documents.pdf(folder / "p.pdf", [f"page {n} has a lamp" for n in range(1, 5)]))
        yield made


def fill(library: Library, paged: Path) -> None:
    for number in range(12):
        kind = "txt" if number % 3 == 0 else "md"
        library.ingest_content(
            f"# Note {number}\n\nThe lamp of house {number} burns.\n",
            f"note{number}.{kind}",
            "odd" if number % 2 else "even",
            {"house": number, "keeper": f"k{number % 4}", "lit": number > 5},
        )
    library.ingest_file(str(paged), "even")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"file_type": "txt"}, {0, 3, 6, 9}),
        ({"source": "note4.md"}, {4}),
        ({"title": "Note 7"}, {7}),
        ({"library": "odd"}, {1, 3, 5, 7, 9, 11}),
        ({"metadata.house": 5}, {5}),
        ({"metadata.house": "5"}, set()),
        ({"metadata.keeper": "k1"}, {1, 5, 9}),
        ({"metadata.lit": True, "metadata.keeper": "k1"}, {9}),
        ({"library": "odd", "file_type": "txt"}, {3, 9}),
        ({"metadata.nothing": 1}, set()),
        ({"metadata.house": {"gte": 3, "lt": 6}}, {3, 4, 5}),
        ({"metadata.house": {"gt": 9}}, {10, 11}),
        ({"metadata.house": {"gte": "0"}}, set()),
        ({"metadata.keeper": {"gt": "k1", "lte": "k2"}}, {2, 6, 10}),
        ({"metadata.keeper": {"gte": 0}}, set()),
        ({"metadata.lit": {"gte": 0}}, set()),
        ({"created_at": {"lt": "2000-01-01"}}, set()),
        ({"created_at": {"gte": "2000-01-01"}, "file_type": "txt"}, {0, 3, 6, 9}),
        ({"chunk_index": 1, "file_type": "txt"}, set()),
        ({"chunk_index": {"lt": 1}, "file_type": "txt"}, {0, 3, 6, 9}),
    ],
)
def test_filters(shelf: Library, wanted: dict[str, Any], expected: set[int]) -> None:
    found = shelf.search("lamp", 100, filter=wanted).results
    assert {each.metadata["house"] for each in found} == expected


def test_filter_by_page_and_time(shelf: Library) -> None:
    (found,) = shelf.search("lamp", 100, filter={"page": 3}).results
    assert (found.page, found.content.strip()) == (3, "page 3 has a lamp")
    wanted = {"last_modified": found.last_modified, "file_type": "pdf"}
    assert len(shelf.search("lamp", 100, filter=wanted).results) == 4
    assert shelf.search("lamp", 100, filter={"page": 3}, library="odd").results == ()
    hits = shelf.search("lamp", 100, filter={"page": {"gte": 2, "lt": 4}}).results
    assert {(each.page, each.chunk_index) for each in hits} == {(2, 1), (3, 2)} and len(hits) == 2
    hits = shelf.search("lamp", 100, filter={"chunk_index": {"gt": 1}}).results
    assert {each.page for each in hits} == {3, 4} and len(hits) == 2
    doc_id = hits[0].doc_id
    assert {each.doc_id for each in shelf.search("lamp", 100, filter={"doc_id": doc_id}).results} == {doc_id}


def test_times_are_compared_as_times(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("a lamp")
    os.utime(path, (1_735_689_600, 1_735_689_600))  # 2025-01-01T00:00:00Z
    library.ingest_file(str(path))
    spellings = ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00+00:00", "2025-01-01T01:00:00.0+01:00", "2025")
    ranges = ({"gte": "2025-01-01", "lt": "2025-01-02"}, {"gt": "2024-12-31"}, {"lte": "2025-01-01"})
    for same in (*spellings, *ranges):
        assert sources(library, "lamp", filter={"last_modified": same}) == [str(path)], same
    for other in ("2025-01-01T00:00:01Z", "2024", {"lt": "2025-01-01"}, {"gt": "2025-01-01"}):
        assert sources(library, "lamp", filter={"last_modified": other}) == [], other


def test_filters_narrow_before_the_ranking(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.search.ranking.MAX_WHOLE", 5)  # so that the keyword index has to do it
    for number in range(60):
        library.ingest_content(f"lamp lamp lamp {number}", f"a{number}.md", "loud")
    for number in range(30):
        library.ingest_content(f"one lamp among many other words {number}", f"b{number}.md", "quiet", {"n": number % 3})
    assert len(library.search("lamp", 25, library="quiet").results) == 25
    assert len(library.search("lamp", 100, library="quiet").results) == 30
    assert {each.library for each in library.search("lamp", 25, library="quiet").results} == {"quiet"}
    found = library.search("lamp", 10, filter={"metadata.n": 2, "page": 0}).results
    assert len(found) == 10 and all(each.metadata["n"] == 2 for each in found)
    found = library.search("lamp", 10, filter={"metadata.n": {"gt": 1}, "chunk_index": {"gte": 0}}).results
    assert len(found) == 10 and all(each.metadata["n"] == 2 for each in found)
    assert library.search("lamp", 10, filter={"metadata.n": {"gt": 1}, "chunk_index": 1}).results == ()


def test_the_texts_of_results_have_a_budget(library: Library) -> None:
    for number in range(12):
        text = f"Lamp {number} is lit.\n\n" + "\n\n".join(f"The harbour has boat {boat}." for boat in range(150))
        library.ingest_content(text, f"note{number}.md")

    def contents(top_k: int, **more: Any) -> list[str]:
        found = library.search("which lamp is lit", top_k, **more).results
        assert len(found) == top_k
        assert [each.truncated for each in found] == [len(each.content) < 3500 for each in found]
        return [each.content for each in found]

    assert 1000 < len("".join(contents(5))) <= 5000 and all(text.startswith("Lamp") for text in contents(5))
    assert len("".join(contents(12))) <= 12_000
    assert len("".join(contents(3, max_chars=500))) <= 500
    assert contents(2, max_chars=0) and all(len(text) > 3500 for text in contents(12, max_chars=10**400))


def test_results_descend_and_are_clamped(shelf: Library) -> None:
    found = shelf.search("lamp of house 7", 100).results
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert found[0].source == "note7.md"
    assert len(shelf.search("lamp", 0).results) == 1 and len(shelf.search("lamp", 5000).results) == 16
    with pytest.raises(ConfigError, match="query parameter is required"):
        shelf.search("  ")
    with pytest.raises(ConfigError, match="Unknown filter field 'colour'"):
        shelf.search("lamp", filter={"colour": "red"})


def test_listing_pages_through_all_in_order(shelf: Library) -> None:
    seen: list[tuple[str, str]] = []
    for offset in range(0, 20, 5):
        found = shelf.list_documents(limit=5, offset=offset)
        assert found.total == 13 and found.count == len(found.documents)
        seen += [(each.library, each.source) for each in found.documents]
    assert seen == sorted(set(seen)) and len(seen) == 13
    assert shelf.list_documents("odd", 100).total == 6 and shelf.list_documents("none").documents == ()
    assert shelf.list_documents(limit=0).count == 1 and shelf.list_documents(offset=-5).count == 13


def test_listing_far_down_is_quick(library: Library) -> None:
    with library._write() as writer:
        statement = (
            "INSERT INTO {} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
            "SELECT {} FROM n"
        )
        columns = "i, 'x', printf('d%06d', i), 't', 'md', '', '', x'', 0, '', NULL, NULL, '{}', x''"
        writer.connection.execute(statement.format("documents", columns))
        writer.connection.execute(statement.format("holdings", "i, printf('id%d', i), 'h', 'now', 0, ''"))
    started = time.thread_time()
    found = library.list_documents("x", 20, 49_980)
    assert time.thread_time() - started < 1
    assert [each.source for each in found.documents] == [f"d{n:06d}" for n in range(49_981, 50_001)]
    assert library.list_documents("x", 1001).count == 1000
    plan = library_plan(library, "SELECT id FROM documents WHERE library = 'x' ORDER BY library, file_path LIMIT 20")
    assert "documents_path" in plan and "TEMP B-TREE" not in plan


def library_plan(library: Library, statement: str) -> str:
    with library._read() as reader:
        return " ".join(str(row[-1]) for row in reader.connection.execute(f"EXPLAIN QUERY PLAN {statement}"))


def test_nothing_in_it_is_no_error(library: Library) -> None:
    assert library.search("lamp").results == () and library.list_documents().total == 0
    assert library.list_libraries().libraries == ()


# --- vectors -----------------------------------------------------------------------------------------------------


class Counting:
    """The bundled model, counting the texts that it is given."""

    def __init__(self, inner: EmbeddingProvider) -> None:
        self.inner, self.texts = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def close(self) -> None:
        pass

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.texts += len(texts)
        return self.inner.embed(texts)


@pytest.fixture
def meaning(tmp_path: Path, local: EmbeddingProvider) -> Iterator[Library]:
    with Library(tmp_path / "library.db", Config(), Counting(local)) as made:
        yield made


def test_meaning_finds_what_words_do_not(meaning: Library) -> None:
    meaning.ingest_content("# Vessels\n\nThe ship sinks in a storm at sea.\n", "a.md", "one")
    meaning.ingest_content("# Kitchen\n\nBake the bread for an hour.\n", "b.md", "two")
    assert sources(meaning, "boats going under in bad weather")[0] == "a.md"
    assert sources(meaning, "boats going under in bad weather", library="two") == ["b.md"]


def test_only_new_text_is_embedded(tmp_path: Path, local: EmbeddingProvider) -> None:
    text = "# A\n\n" + "".join(f"## Part {n}\n\n{f'words of part {n} ' * 20}\n\n" for n in range(10))
    counted: Any = Counting(local)
    with Library(tmp_path / "library.db", Config(), CachedProvider(counted)) as library:
        library.ingest_content(text, "a.md")
        counted.texts = 0
        assert library.ingest_content(text.replace("of part 3", "of the third"), "a.md").status == "replaced"
    assert 1 <= counted.texts <= 2


def test_the_tables_in_memory_are_those_of_a_new_search(meaning: Library) -> None:
    """What is exchanged piece by piece is what would be read anew."""
    import numpy as np

    from anvil.library.library_search import LibraryIndex

    def write(step: int) -> None:
        if step % 4 == 3:
            meaning.delete_document(meaning.list_documents(limit=1).documents[0].doc_id)
        else:
            name = f"n{step % 5}.md"
            meaning.ingest_content(f"# Step {step}\n\n" + f"text {step} of {name} " * (20 + 60 * (step % 3)), name)

    meaning.ingest_content("# Start\n\ntext", "start.md")
    meaning.search("text")
    for step in range(10):
        write(step)
        found = meaning.search(f"text of step {step}", 50)
        searcher: Any = meaning._searcher
        kept = searcher.index
        with meaning._read() as reader:
            fresh = LibraryIndex(reader)
            for name in ("rows", "documents"):
                assert np.array_equal(getattr(kept, name), getattr(fresh, name)), (step, name)
            assert np.array_equal(kept.vectors.rows, fresh.vectors.rows)
            assert np.allclose(kept.vectors._centroids, fresh.vectors._centroids, atol=1e-6)
        assert len(found.results) == len(kept.rows)


def test_a_filter_of_passages_does_not_search_once_for_each_of_them(tmp_path: Path) -> None:
    """FTS5 did so: among 12,000 passages a word took 6 s."""
    from anvil.library.library_search import LibraryIndex
    from anvil.library.metadata_filter import document_filter

    chunking = ChunkingOptions(merge_short_sections=False, min_chunk_size=0)
    with opened(tmp_path / "library.db", Config(embedding=NONE.embedding, chunking=chunking)) as library:
        for name in ("a.md", "b.md"):
            library.ingest_content("\n\n".join(f"## Part {number}\n\nharbour" for number in range(3000)), name)
        with library._read() as reader:
            index = LibraryIndex(reader)
            selection = index.select(document_filter({"chunk_index": {"lt": 2000}}))
            began = time.thread_time()
            found = index.matching(["harbour"], 200, selection)
            seconds = time.thread_time() - began
            assert selection is not None and set(found) <= set(index.rows_in(selection)) and len(found) == 200
    assert seconds < 0.3


def test_words_are_counted_as_they_are_after_each_change(tmp_path: Path) -> None:
    """Also among many documents, where one more changes little."""
    with opened(tmp_path / "library.db") as library:
        for number in range(210):
            library.ingest_content(f"# Part {number}\n\nabout the harbour", f"n{number}.md")
        library.ingest_content("# Lamp\n\nabout the lamp", "lamp.md")
        library.search("lamp harbour")
        library.ingest_content("# Another lamp\n\nabout the lamp", "another.md")
        with opened(tmp_path / "library.db") as fresh:
            scores = [(each.source, each.score) for each in fresh.search("lamp harbour", 10).results]
        assert [(each.source, each.score) for each in library.search("lamp harbour", 10).results] == scores


def is_semantic(library: Library) -> bool:
    return not any("Semantic search is off" in note for note in library.search("who lights it?").notes)


def test_another_model_is_named_and_the_library_stays_readable(meaning: Library, tmp_path: Path) -> None:
    meaning.ingest_content(GUIDE, "a.md")
    with opened(meaning.path) as other:
        found = other.search("lamp")
        assert {each.source for each in found.results} == {"a.md"}
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "b.md").write_text("new")
        for take in (lambda: other.ingest_content("new", "b.md"), lambda: other.ingest_folder(str(tmp_path / "in"))):
            with pytest.raises(
                ConfigError, match=r"made with all-MiniLM-L6-v2-docs; the configured model is none.*--reembed"
            ):
                take()
        assert other.reembed() == 2
        assert other.ingest_content("new", "b.md").status == "indexed"
    with opened(meaning.path) as again:
        assert again.list_documents().total == 2
    found = meaning.search("lamp")
    assert found.results and "--reembed" in found.notes[0]
    assert meaning.reembed() == 3
    assert is_semantic(meaning)


def test_an_empty_library_takes_the_model_at_hand(tmp_path: Path, local: EmbeddingProvider) -> None:
    with opened(tmp_path / "library.db") as none:
        assert none.list_documents().total == 0
    with Library(tmp_path / "library.db", Config(), Counting(local)) as made:
        assert made.ingest_content(GUIDE, "a.md").status == "indexed"
        assert is_semantic(made)


class Namesake(Counting):
    """Another model, by its manifest, with as many dimensions."""

    name, model, digest, server = "local", "namesake", "0" * 64, ""


def staged(library: Library, source: str) -> contextlib.AbstractContextManager[StagedDocument]:
    """A document that is ready to be kept in a library."""
    info = DocumentInfo(source, "default", "T", "md", "h", 4, "2026-01-01T00:00:00Z", {})
    return stage_document(
        [DocumentPart("# T\n\ntext\n")],
        info,
        provider=library.provider,
        chunking=library.config.chunking,
        settings=library.ensure_writable(),
        is_halted=lambda: False,
    )


@contextlib.contextmanager
def another_writer(library: Library, waiting: threading.Event) -> Iterator[LibraryWriter]:
    """Another connection, in the middle of a change; ``waiting`` is set when the library's own waits for its end."""

    def wait(_: int) -> bool:
        waiting.set()
        time.sleep(0.01)
        return True

    with library._write() as own:
        own.connection.set_busy_handler(wait)
    with contextlib.closing(open_file(library.path, library._settings)) as connection, writing(connection):
        yield LibraryWriter(connection)


def test_no_vectors_of_a_model_that_was_changed_meanwhile(meaning: Library, local: EmbeddingProvider) -> None:
    waiting = threading.Event()
    with staged(meaning, "a.md") as stage, ThreadPoolExecutor() as threads:
        with another_writer(meaning, waiting) as other:
            with meaning._write() as own:
                keeping = threads.submit(own.store, stage)
                assert waiting.wait(30)
            other.change_model(settings(Namesake(local), meaning.config.chunking))
        with pytest.raises(ConfigError, match="model was changed by another process"):
            keeping.result(30)
    assert rows(meaning) == {"documents": 0, "chunks": 0, "holdings": 0, "labels": 0, "windows": 0}


def test_no_model_is_adopted_once_there_is_a_document(meaning: Library, local: EmbeddingProvider) -> None:
    waiting = threading.Event()
    with Library(meaning.path, Config(), Namesake(local)) as late, ThreadPoolExecutor() as threads:
        with staged(meaning, "a.md") as stage, another_writer(late, waiting) as other:
            taking = threads.submit(late.ingest_content, "text", "b.md")
            assert waiting.wait(30)
            other.store(stage)
        with pytest.raises(ConfigError, match="made with all-MiniLM-L6-v2-docs; the configured model is namesake"):
            taking.result(30)
    assert rows(meaning)["windows"] == 1 and is_semantic(meaning)


def test_new_vectors_are_all_there_or_none(meaning: Library, local: EmbeddingProvider) -> None:
    class Breaking(Namesake):
        def embed(self, texts: Sequence[str]) -> Embedded:
            raise ProviderError("no credit")

    meaning.ingest_content(GUIDE, "a.md")
    with Library(meaning.path, Config(), Breaking(local)) as other:
        with pytest.raises(ProviderError):
            other.reembed()
        with pytest.raises(ConfigError, match="made with all-MiniLM-L6-v2-docs"):
            other.ingest_content("text", "b.md")
    assert is_semantic(meaning) and rows(meaning)["windows"] == 2
    assert meaning.ingest_content("text", "b.md").status == "indexed"


# --- folders -----------------------------------------------------------------------------------------------------


def test_a_folder_with_one_corrupt_file(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.md").write_text("alpha")
    (folder / "sub" / "b.txt").write_text("beta")
    documents.docx(folder / "c.docx", "Gamma", "text")
    (folder / "bad.docx").write_bytes(b"PK broken")
    for name in ("d.exe", ".e.md", "~$c.docx", ".hidden/f.md"):
        (folder / name).write_text("left out")
    report = library.ingest_folder(str(folder), "in", {"from": "folder"})
    assert (report.folder, report.library, report.total_files) == (str(folder), "in", 4)
    assert (report.indexed, report.replaced, report.skipped, report.failed) == (3, 0, 0, 1)
    assert [Path(each.source).name for each in report.results] == ["a.md", "c.docx", "b.txt"]
    assert [Path(each.file).name for each in report.errors] == ["bad.docx"] and "DOCX" in report.errors[0].error
    (folder / "a.md").write_text("alpha and more")
    again = library.ingest_folder(str(folder), "in", recursive=False)
    assert (again.total_files, again.replaced, again.skipped, again.failed) == (3, 1, 1, 1)


def test_a_file_at_which_anvil_fails_stops_no_other(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(9):
        (folder / f"{number}.md").write_text(f"text {number}")
    pieces = library.converter.parts

    def failing(path: Path, *more: Any) -> Any:
        if path.name == "4.md":
            raise ValueError("year 11476 is out of range\nand more")
        return pieces(path, *more)

    monkeypatch.setattr(library.converter, "parts", failing)
    report = library.ingest_folder(str(folder))
    assert (report.indexed, report.failed) == (8, 1) and Path(report.errors[0].file).name == "4.md"
    assert "(ValueError: year 11476 is out of range)" in report.errors[0].error and "\n" not in report.errors[0].error

    def broken(*_: Any) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError, match="nobody listens"):
        library.ingest_folder(str(folder), progress=broken)
    monkeypatch.setattr(library.converter, "parts", pieces)
    assert library.ingest_file(str(folder / "4.md")).status == "indexed", "the library goes on"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (300_000_000_000, "9999-12-31T23:59:59Z"),
        (-70_000_000_000, "0001-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
    ],
)
def test_time_stamps_that_no_calendar_has(seconds: int, told: str) -> None:
    assert timestamp(seconds) == told


def test_a_folder_that_is_none(library: Library, tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("x")
    for folder, told in [("nowhere", "There is no folder"), ("file.md", "use ingest_file")]:
        with pytest.raises(ConfigError, match=told):
            library.ingest_folder(str(tmp_path / folder))
    with pytest.raises(ConfigError, match="max_concurrency must be 1 or more"):
        library.ingest_folder(str(tmp_path), max_concurrency=0)
    (tmp_path / "empty").mkdir()
    assert library.ingest_folder(str(tmp_path / "empty")).total_files == 0


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_links_out_of_the_folder_are_left_out(library: Library, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.md").write_text("text")
    (folder / "inside.md").symlink_to(folder / "a.md")
    (folder / "outside.md").symlink_to(tmp_path / "secret.md")
    (folder / "loop").symlink_to(folder)
    report = library.ingest_folder(str(folder))
    assert sorted(Path(each.source).name for each in report.results) == ["a.md", "inside.md"]


def test_a_library_that_this_user_may_only_read_is_left_alone(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.ingest_content("text", "notes.md")
    copy = tmp_path / "other" / "library.db"
    copy.parent.mkdir()
    library.close()
    shutil.copyfile(tmp_path / "library.db", copy)
    read_only = partial(apsw.Connection, flags=apsw.SQLITE_OPEN_READONLY)  # as SQLite opens what it may not write
    monkeypatch.setattr("anvil.library.library_file.apsw.Connection", read_only)
    with (
        pytest.raises(BuildError, match="cannot be written by this user"),
        anvil.open_library(copy, provider="none") as opened,
    ):
        opened.list_documents()
    assert [each.name for each in copy.parent.iterdir()] == ["library.db"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="for root and on Windows nothing is locked")
@pytest.mark.parametrize("mode", [0o400, 0o000])
def test_a_folder_that_is_locked_stops_no_other(library: Library, tmp_path: Path, mode: int) -> None:
    locked = tmp_path / "in" / "locked"
    locked.mkdir(parents=True)
    (locked / "a.md").write_text("text")
    (tmp_path / "in" / "b.md").write_text("text")
    locked.chmod(mode)
    try:
        report = library.ingest_folder(str(tmp_path / "in"))
    finally:
        locked.chmod(0o700)
    assert (report.indexed, report.failed) == (1, 1) and "Check its permissions" in report.errors[0].error


def test_no_more_at_once_than_asked(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.md").write_text(f"text {number}")
    at_once, most, lock = 0, 0, threading.Lock()
    ingest = library.ingest_file

    def watched(*arguments: Any) -> Any:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        try:
            return ingest(*arguments)
        finally:
            with lock:
                at_once -= 1

    monkeypatch.setattr(library, "ingest_file", watched)
    steps: list[tuple[str, int, int]] = []
    report = library.ingest_folder(str(folder), max_concurrency=3, progress=lambda *step: steps.append(step))
    assert report.indexed == 12 and most == 3
    assert steps[0] == ("ingesting", 0, 12) and steps[-1] == ("ingesting", 12, 12)


# --- several at once ---------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
import anvil
from anvil.settings.schema import Config, EmbeddingSettings
with anvil.open_library(sys.argv[1], config=Config(embedding=EmbeddingSettings(provider="none"))) as library:
    for number in range(int(sys.argv[3])):
        print(library.ingest_content(f"# {sys.argv[2]} {number}\\n\\n" + "shared words " * 200, f"{number % 10}.md",
                                     sys.argv[2]).status, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_several_processes_write_and_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    processes = [writer(path, f"w{n}", 25) for n in range(3)]
    with opened(path) as library:
        while any(process.poll() is None for process in processes):
            for each in library.search("shared words", 100).results:
                assert each.content.startswith("# w") or "shared" in each.content
            for row in library.list_documents(limit=100).documents:
                with contextlib.suppress(NotFound):
                    assert library.get_document(row.doc_id).content.endswith("shared words ")
        for process in processes:
            out, err = process.communicate()
            assert process.returncode == 0, err
            assert out.split() == ["indexed"] * 10 + ["replaced"] * 15
        assert library.list_documents().total == 30
        assert [each.document_count for each in library.list_libraries().libraries] == [10, 10, 10]
        assert {each.library for each in library.search("shared words", 100).results} == {"w0", "w1", "w2"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_kill_leaves_nothing_half(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    for wait in (3, 11, 25):
        process = writer(path, "w", 100_000)
        assert process.stdout is not None
        for _ in range(wait):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with opened(path) as library:
            for row in library.list_documents(limit=100).documents:
                assert library.get_document(row.doc_id).content.endswith("shared words ")
            counts = rows(library)
            assert counts["documents"] == counts["holdings"] > 0
            assert sum(each.chunk_count for each in library.list_libraries().libraries) == counts["chunks"]
            with library._read() as reader:
                reader.connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')")
                assert reader.connection.execute("PRAGMA quick_check").get == "ok"


def test_an_interrupt_leaves_what_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02}.md").write_text(f"text {number}")
    documents.pdf(folder / "00-long.pdf", [f"page {n} " * 60 for n in range(400)])

    def interrupt(_: str, done: int, __: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with opened(tmp_path / "library.db") as library:
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            library.ingest_folder(str(folder), max_concurrency=2, progress=interrupt)
        assert time.monotonic() - started < 30
        held = library.list_documents(limit=100)
        assert 5 <= held.total < 41 and not any(each.source.endswith(".pdf") for each in held.documents)
    (folder / "00-long.pdf").unlink()
    with opened(tmp_path / "library.db") as library:
        report = library.ingest_folder(str(folder))
        assert report.failed == 0 and report.skipped == held.total and report.indexed == 40 - held.total


# --- the file ----------------------------------------------------------------------------------------------------


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database" * 100)
    sqlite3.connect(tmp_path / "b.db").execute("CREATE TABLE x (y)").connection.close()
    with opened(tmp_path / "c.db") as library:
        library.ingest_content("x", "a.md")
    with contextlib.closing(sqlite3.connect(tmp_path / "c.db")) as foreign:
        foreign.execute("CREATE TRIGGER evil AFTER DELETE ON labels BEGIN SELECT 1; END")
    for name, told in [("a.db", "not a library"), ("b.db", "not a library"), ("c.db", "tables that a library")]:
        with opened(tmp_path / name) as library, pytest.raises(ArtifactRejected, match=told):
            library.search("x")


def test_a_library_of_a_version_with_other_comments_in_its_tables_is_read(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as library:
        library.ingest_content("High water is at noon.", "a.md")
    with sqlite3.connect(tmp_path / "a.db") as file:
        file.execute("PRAGMA writable_schema = on")
        file.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(sql, '-- JSON', '-- a text'), 'NULL,', 'NULL, --x')"
        )
    file.close()
    with opened(tmp_path / "a.db") as library:
        assert library.search("water").results[0].source == "a.md"


@pytest.mark.parametrize("kind", ["index", "database", "named", "future"])
def test_a_refused_file_is_left_as_it_was(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "index.db"
    if kind == "index":
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs/a.md").write_text("# A\n\nText.\n")
        with anvil.open(tmp_path / "docs", file, "none") as index:
            index.index()
    elif kind == "future":
        with opened(file) as library:
            library.ingest_content("x", "a.md")
    with contextlib.closing(sqlite3.connect(file)) as foreign:
        if kind == "database":
            foreign.execute("CREATE TABLE x (y)")
        elif kind == "named":  # empty, but somebody else's
            foreign.execute("PRAGMA application_id = 7")
        elif kind == "future":
            foreign.execute("PRAGMA journal_mode = delete")
            foreign.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    with opened(file) as library, pytest.raises(ArtifactError):
        library.search("x")
    assert file.read_bytes() == before and not [*tmp_path.glob("index.db-*")]


def test_it_lies_where_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with anvil.open_library(provider="none") as library:
        assert library.path.name == "library.db" and library.path.parent.name == "anvil"
    (tmp_path / "sub").mkdir()
    (tmp_path / "anvil.toml").write_text('[library]\nindex = "own.db"\n[embedding]\nprovider = "none"\n')
    with anvil.open_library(config=tmp_path / "anvil.toml") as library:
        assert library.path == tmp_path / "own.db"
    monkeypatch.chdir(tmp_path / "sub")
    with anvil.open_library("flag.db", config=tmp_path / "anvil.toml", allow_private_urls=True) as library:
        assert library.path == tmp_path / "sub" / "flag.db" and library.config.table(LibraryOptions).allow_private_urls
    monkeypatch.setenv("ANVIL_LIBRARY_INDEX", "env.db")
    with anvil.open_library(config=tmp_path / "anvil.toml") as library:
        assert library.path == tmp_path / "sub" / "env.db"


def test_limits_must_make_sense() -> None:
    with pytest.raises(ConfigError, match=r"library\.max_pages is 0"):
        LibraryOptions(max_pages=0)


def test_a_closed_library_says_so(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as library:
        library.ingest_content("x", "a.md")
    with pytest.raises(ConfigError, match="closed"):
        library.search("x")


def test_server_info_explains_a_missing_file(library: Library, tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("12345")
    info = library.server_info(str(tmp_path / "there.md"))
    assert info.path_check is not None and (info.path_check.readable, info.path_check.size_bytes) == (True, 5)
    assert info.index_path == str(library.path) and info.cwd == os.getcwd() and "md" in info.formats
    missing = library.server_info(str(tmp_path / "away" / "a.md")).path_check
    assert missing is not None and not missing.readable
    assert missing.error == f"There is no such file: {tmp_path} exists, the rest of the path does not."
    folder = library.server_info(str(tmp_path)).path_check
    assert folder is not None and folder.error is not None and "ingest_folder" in folder.error
    assert library.server_info("\0").path_check is not None and library.server_info().path_check is None
    library.path.write_text("no database" * 100)
    assert library.server_info().index_path == str(library.path), "a damaged one is not opened for it"


def test_a_failing_provider_keeps_the_text(tmp_path: Path, local: EmbeddingProvider) -> None:
    class Failing(Counting):
        def embed(self, texts: Sequence[str]) -> Embedded:
            found = self.inner.embed(texts)
            return Embedded(found.vectors, {0: "no credit"})

    with Library(tmp_path / "l.db", Config(), Failing(local)) as library:
        taken = library.ingest_content("# A\n\nThe keeper sleeps.\n", "a.md")
        assert taken.chunk_count == 1 and "1 passage could not be embedded" in taken.notes[0]
        assert sources(library, "keeper") == ["a.md"]


def test_json_is_what_dataclasses_say(library: Library) -> None:
    from anvil.formats.data_formats import plain

    library.ingest_content(GUIDE, "a.md", metadata={"a": {"b": [1, None]}})
    assert json.loads(json.dumps(plain(library.search("lamp"))))["results"][0]["metadata"] == {"a": {"b": [1, None]}}
    assert issubclass(DocumentRejected, AnvilError) and PROVIDERS
