"""A library after documents were taken in: metadata changed, vanished files, and what another program had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.errors import ConfigError, DocumentRejected, NotFound, SourceError
from anvil.library import lancedb_import
from anvil.library.document_formats import Format
from anvil.library.library import Library
from anvil.library.settings import LibraryOptions
from anvil.library.values import FileError, FolderReport, Ingested
from anvil.settings.schema import Config, EmbeddingSettings
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Answer, serving


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with anvil.open_library(tmp_path / "library.db", "none") as made:
        yield made


# --- metadata ----------------------------------------------------------------------------------------------------


def test_metadata_is_changed_without_the_text(library: Library) -> None:
    taken = library.ingest_content("# Tides\n\nhigh water", "t.md", metadata={"year": 2025, "draft": True})
    assert library.search("water", filter={"metadata.year": 2025}).results
    found = library.update_document(taken.doc_id, {"year": 2026, "draft": None, "by": {"name": "Ada"}})
    assert (found.status, found.doc_id, found.source) == ("updated", taken.doc_id, "t.md")
    assert found.metadata == {"year": 2026, "by": {"name": "Ada"}} == library.get_document(taken.doc_id).metadata
    assert library.search("water", filter={"metadata.year": 2025}).results == ()
    assert library.search("water", filter={"metadata.draft": True}).results == ()
    (hit,) = library.search("water", filter={"metadata.year": {"gt": 2025}}).results
    assert hit.metadata == found.metadata
    with pytest.raises(NotFound, match="list_documents and search name"):
        library.update_document("none", {"a": 1})
    with pytest.raises(ConfigError, match="the limit is 16,384"):
        library.update_document(taken.doc_id, {"a": "x" * 16_370})
    assert library.get_document(taken.doc_id).metadata == found.metadata


@pytest.mark.parametrize("way", ["content", "file", "folder", "url"])
def test_a_replaced_document_keeps_its_metadata(tmp_path: Path, way: str) -> None:
    tables = {"library": LibraryOptions(allow_private_urls=True)}
    config = Config(embedding=EmbeddingSettings(provider="none"), tables=tables)
    page = tmp_path / "in" / "tides.md"
    page.parent.mkdir()
    with serving() as server, anvil.open_library(tmp_path / "library.db", config=config) as library:

        def ingest(text: str, metadata: dict[str, Any] | None = None) -> Ingested:
            if way == "content":
                return library.ingest_content(text, "tides.md", metadata=metadata)
            if way == "url":
                server.answers["/tides.md"] = Answer(text.encode())
                return library.ingest_url(f"{server.url}/tides.md", metadata=metadata)
            page.write_text(text)
            if way == "file":
                return library.ingest_file(str(page), metadata=metadata)
            report = library.ingest_folder(str(page.parent), metadata=metadata)
            if report.errors:
                raise ConfigError(report.errors[0].error)
            return report.results[0]

        doc_id = ingest("high water at six", {"year": 2025, "team": "sea", "draft": True}).doc_id
        library.update_document(doc_id, {"year": 2026, "team": "harbour"})
        replaced = ingest("high water at noon")
        assert (replaced.status, replaced.notes) == ("replaced", ())
        assert library.get_document(doc_id).metadata == {"year": 2026, "team": "harbour", "draft": True}
        assert library.search("noon", filter={"metadata.year": 2026, "metadata.team": "harbour"}).results
        same = ingest("high water at noon", {"team": "harbour", "year": 2027})
        assert (same.status, library.get_document(doc_id).metadata["year"]) == ("skipped", 2026)
        assert same.notes == (
            "The metadata year was not stored, because the content is the same. Use update_document.",
        )
        again = ingest("high water at midnight", {"year": 2027, "draft": None, "team": "harbour", "by": "Ada"})
        assert again.status == "replaced" and again.notes == ("Its metadata has new values for draft, year.",)
        assert library.get_document(doc_id).metadata == {"year": 2027, "team": "harbour", "by": "Ada"}
        assert not library.search("midnight", filter={"metadata.draft": True}).results
        with pytest.raises(ConfigError, match="the limit is 16,384"):
            ingest("high water at dawn", {"note": "x" * 16_330})
        whole = library.get_document(doc_id)
        assert whole.content == "high water at midnight" and whole.metadata["by"] == "Ada"


def test_what_cannot_be_read_is_answered_with_what_to_do(tmp_path: Path) -> None:
    tables = {"library": LibraryOptions(allow_private_urls=True)}
    config = Config(embedding=EmbeddingSettings(provider="none"), tables=tables)
    (tmp_path / "bad.pdf").write_text("no pdf")
    with serving() as server, anvil.open_library(tmp_path / "library.db", config=config) as library:
        with pytest.raises(DocumentRejected, match=r"/none\.md has status 404\. Open it in a browser to see why\."):
            library.ingest_url(f"{server.url}/none.md")
        with pytest.raises(DocumentRejected, match=r"cannot be read as PDF: .*Open it in its own program, and save"):
            library.ingest_file(str(tmp_path / "bad.pdf"))


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("docx", r"To read \.docx files, run: pip install 'anvil-docs\[library\]'\."),
        ("jpg", r"To read \.jpg files, install ExifTool \(https://exiftool\.org\)\."),
    ],
)
def test_a_format_that_needs_more_names_what_to_run(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, told: str
) -> None:
    monkeypatch.setattr(Format, "is_available", lambda *_: False)
    (tmp_path / f"a.{ending}").write_bytes(b"x")
    with pytest.raises(DocumentRejected, match=told):
        library.ingest_file(str(tmp_path / f"a.{ending}"))


# --- vanished files ----------------------------------------------------------------------------------------------


def test_vanished_files_are_shown_and_then_taken_out(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"text of {name}")
    library.ingest_folder(str(folder))
    library.ingest_file(str(folder / "b.md"), "other")
    library.ingest_content("text", "notes/none.md")
    library.ingest_content("text", "https://example.org/none.md")
    assert library.prune().documents == () and library.prune().looked_at == 3
    (folder / "b.md").unlink()
    found = library.prune()
    assert found.status == "found" and library.list_documents().total == 5
    assert [(each.library, each.source) for each in found.documents] == [
        ("default", str(folder / "b.md")),
        ("other", str(folder / "b.md")),
    ]
    found = library.prune("other", delete=True)
    assert (found.status, len(found.documents), library.list_documents().total) == ("deleted", 1, 4)
    (folder / "a.md").unlink()
    folder.rmdir()
    folder.write_text("a file where a folder was")
    assert len(library.prune(delete=True).documents) == 2 and library.list_documents().total == 2
    with pytest.raises(ConfigError, match="library must be a name"):
        library.prune(" ")


# --- the command line --------------------------------------------------------------------------------------------


def test_the_answer_on_a_large_folder_is_short_and_counts_all_files() -> None:
    results = [
        Ingested("skipped" if number < 300 else "indexed", f"{number}", f"/in/{number}.md", "default", 1)
        for number in range(450)
    ]
    report = FolderReport.of("/in", "default", results, [FileError("/in/a.pdf", "It holds no text.")])
    short = report.shortened(100)
    assert [each.source for each in short.results] == [f"/in/{number}.md" for number in range(300, 400)]
    assert (short.total_files, short.indexed, short.skipped, short.failed) == (451, 150, 300, 1)
    assert short.errors == report.errors and "at most 100 results" in short.notes[0]
    assert report.shortened(450) is report


def test_the_library_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tides.md").write_text("# Tides\n\nHigh water is at noon.\n")
    (tmp_path / "in" / "lamps.md").write_text("# Lamps\n\nThe lamp is lit at dusk.\n")
    given = ("--index", tmp_path / "l.db", "--provider", "none")
    program("ingest", tmp_path / "in", *given, "--library", "sea")

    def ask(*words: str, code: int = 0) -> str:
        name, *rest = words
        return program("library", name, *given, *rest, cwd=tmp_path / "in", code=code).stdout

    path, doc_id = str(tmp_path / "in" / "tides.md"), ask("list").splitlines()[1].split()[0]
    assert ask("list") == printed_lines(given) and ask("list", "--libraries") == "sea  2 documents, 2 passages\n"
    told = ask("search", "high water")
    assert told.startswith(f"1. {path}  ") and f"Tides (sea, {doc_id})" in told and "| High water is at noon." in told
    assert told.endswith("\n\n"), "an empty line ends each result, as in anvil search"
    assert ask("search", "high water", "--filter", "last_modified<2000") == "Nothing found.\n"
    (cut, *_) = printed("library", "search", *given, "high water", "--max-chars", "9")["results"]
    assert cut["truncated"] and 0 < len(cut["content"]) <= 9
    assert ask("show", "tides.md") == ask("show", doc_id) == ask("show", path) == "# Tides\n\nHigh water is at noon.\n"
    assert printed("library", "show", *given, doc_id)["source"] == path
    changes = ("--set", "year=2026", "--set", "by=Ada", "--set", "ok=true")
    assert "Updated" in ask("update", "tides.md", *changes)
    conditions = ("metadata.year>=2026", "page=0", "metadata.ok=true", "metadata.by>=A", "metadata.by<B")
    filters = [word for each in conditions for word in ("--filter", each)]
    found = printed("library", "search", *given, "water", *filters)
    assert found["results"][0]["metadata"] == {"year": 2026, "by": "Ada", "ok": True}
    assert printed("library", "update", *given, doc_id, "--unset", "by")["metadata"] == {"year": 2026, "ok": True}
    assert ask("prune") == "2 documents checked, 0 without their source file.\n"
    (tmp_path / "in" / "tides.md").unlink()
    assert doc_id in ask("prune", code=1) and len(printed("library", "list", *given)["documents"]) == 2
    assert printed("library", "prune", *given, "--yes")["documents"][0]["doc_id"] == doc_id
    assert "Deleted lamps.md" in ask("delete", "lamps.md") and ask("list") == ""
    assert "'anvil library list' names the ids" in complaint("library", "show", *given, doc_id)
    for wrong in (
        ["search", "x", "--filter", "colour=red"],
        ["search", "x", "--filter", "page"],
        ["search", " "],
        ["search", "x", "--filter", "page=1", "--filter", "page>1"],
        ["update", doc_id],
        ["show", ""],
        ["update", doc_id, "--set", "=1"],
        ["list", "--limit", "0"],
        ["list", "--library", ""],
        ["prune", "--library", " "],
        ["import", ""],
        ["import", "."],
    ):
        done = program("library", wrong[0], *given, *wrong[1:], cwd=tmp_path / "in", code=2)
        assert done.stdout == "" and done.stderr and "Traceback" not in done.stderr


def printed_lines(given: tuple[Any, ...]) -> str:
    rows = printed("library", "list", *given)["documents"]
    return "".join(f"{each['doc_id']}  {each['library']}  {each['source']}  {each['title']}\n" for each in rows)


# --- mcpvectordb -------------------------------------------------------------------------------------------------

CHUNKS = {
    ("papers", "/srv/papers/tides.pdf", "d1"): [
        "The tide turns at noon. High water follows six hours later.",
        "High water follows six hours later.\n\nSprings come with the full moon.",
        "A short end.",
    ],
    ("default", "https://example.org/lamps", "d2"): ["# Lamps\n\nThe lamp is lit at dusk."],
    ("default", "notes.txt", "old"): ["The note as it was."],
    ("default", "notes.txt", "new"): ["The note as it is."],
}


def lance_database(folder: Path, without: tuple[str, ...] = (), **changed: Any) -> Path:
    """A LanceDB with the table that mcpvectordb makes."""
    lancedb = pytest.importorskip("lancedb")
    rows = [
        {
            "id": f"{doc_id}-{number}",
            "doc_id": doc_id,
            "library": library,
            "source": source,
            "content_hash": doc_id,
            "title": f"Title {doc_id}",
            "content": text,
            "embedding": [0.0, 1.0],
            "chunk_index": number,
            "created_at": f"2026-0{2 if doc_id == 'new' else 1}-01T10:00:00.123456+00:00",
            "metadata": '{"year": 2025}',
            "file_type": {"d1": "pdf", "d2": "url"}.get(doc_id, "txt"),
            "page": 0,
            "last_modified": "2025-05-05T05:05:05.5+02:00" if doc_id == "d1" else "",
            **changed,
        }
        for (library, source, doc_id), texts in CHUNKS.items()
        for number, text in reversed(list(enumerate(texts)))
    ]
    kept = [{key: value for key, value in row.items() if key not in without} for row in rows]
    lancedb.connect(str(folder)).create_table("documents", kept)
    return folder


def test_a_lancedb_of_mcpvectordb_is_taken_in(tmp_path: Path) -> None:
    database = lance_database(tmp_path / "lancedb")
    before = {each: each.read_bytes() for each in database.rglob("*") if each.is_file()}
    given = ("--index", tmp_path / "l.db", "--provider", "none")
    found = printed("library", "import", *given, database)
    assert [found[key] for key in ("total_files", "indexed", "skipped", "failed")] == [3, 3, 0, 0]
    assert {each: each.read_bytes() for each in database.rglob("*") if each.is_file()} == before
    with anvil.open_library(tmp_path / "l.db", "none") as library:
        texts = {}
        for each in library.list_documents().documents:
            whole = library.get_document(each.doc_id)
            texts[each.library, each.source] = whole.content
            assert whole.metadata == {"year": 2025}
        assert texts == {
            ("papers", "/srv/papers/tides.pdf"): "The tide turns at noon. High water follows six hours later.\n\n"
            "Springs come with the full moon.\n\nA short end.",
            ("default", "https://example.org/lamps"): "# Lamps\n\nThe lamp is lit at dusk.",
            ("default", "notes.txt"): "The note as it is.",
        }
        (hit,) = library.search("tide", filter={"last_modified": "2025-05-05T03:05:05Z", "file_type": "pdf"}).results
        assert (hit.title, hit.library, hit.metadata) == ("Title d1", "papers", {"year": 2025})
        (hit,) = library.search("lamp dusk", filter={"created_at": {"gte": "2026"}}).results
        assert (hit.file_type, hit.last_modified) == ("url", "2026-01-01T10:00:00Z")
        assert {each.created_at for each in library.list_documents("default").documents} == {
            "2026-01-01T10:00:00Z",
            "2026-02-01T10:00:00Z",
        }
        assert not library.search("lamp dusk", filter={"created_at": {"gte": "2026-01-02"}, "file_type": "url"}).results
        library.ingest_content("Another text by now.", "notes.txt")
    told = program("library", "import", *given, tmp_path, "--library", "default").stdout
    assert told.startswith(f"3 documents of {tmp_path}: 1 new, 2 there already.")
    with anvil.open_library(tmp_path / "l.db", "none") as library:
        assert library.get_document(library.doc_id_of("notes.txt")).content == "Another text by now."


@pytest.mark.parametrize("metadata", ["no json", "[1]", "[" * 50_000])
def test_what_cannot_be_imported_is_named(tmp_path: Path, metadata: str) -> None:
    database = lance_database(tmp_path / "db", without=("file_type", "last_modified"), metadata=metadata)
    given = ("--index", tmp_path / "l.db", "--provider", "none")
    done = program("library", "import", *given, database)
    assert "3 new" in done.stdout and done.stderr.count("metadata is no JSON object and was left out") == 3
    other = lance_database(tmp_path / "other", content=" ")
    assert "It has no text" in program("library", "import", *given, other, "--library", "x", code=1).stderr
    foreign = lance_database(tmp_path / "foreign", without=("chunk_index",))
    assert "has no column chunk_index" in complaint("library", "import", *given, foreign)
    assert "It has documents: name one with --table" in complaint("library", "import", *given, database, "--table", "x")
    for each in (database / "documents.lance" / "data").iterdir():
        each.write_bytes(b"no lance" * 100)
    assert "cannot be read" in complaint("library", "import", *given, database)


def test_no_lancedb_no_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "documents.lance").mkdir()
    monkeypatch.setitem(__import__("sys").modules, "lancedb", None)
    with pytest.raises(ConfigError, match=r"\[lancedb\]"):
        lancedb_import.read_documents(str(tmp_path), "documents")
    with pytest.raises(SourceError, match="has no LanceDB table"):
        lancedb_import.read_documents(str(tmp_path / "none"), "documents")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["one end", "end two"], "one end\n\nend two"),
        (["x x a sentence of its own", "a sentence of its own goes on"], "x x a sentence of its own goes on"),
        (["xa sentence of its own", "a sentence of its own"], "xa sentence of its own\n\na sentence of its own"),
        (
            ["same words, same words, same words,", "same words, same words, more"],
            "same words, same words, same words, more",
        ),
    ],
)
def test_what_chunks_share_is_there_once(chunks: list[str], text: str) -> None:
    assert lancedb_import.join_chunks(chunks) == text


def test_an_import_into_a_library_that_cannot_be_written_is_one_error(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Library) -> None:
        raise ConfigError("It was made by another model.")

    monkeypatch.setattr(lancedb_import, "read_documents", lambda path, table: [{}, {}])
    monkeypatch.setattr(Library, "ensure_writable", refuse)
    with pytest.raises(ConfigError, match="made by another model"):
        library.import_lancedb("folder")
