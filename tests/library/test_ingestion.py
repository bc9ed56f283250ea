"""What is not stored: content that the library has, and anything more when its disk is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.errors import BuildError
from anvil.library.library import Library
from anvil.settings.schema import Config, EmbeddingSettings
from tests.conftest import write


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with anvil.open_library(tmp_path / "library.db", config=Config(embedding=EmbeddingSettings("none"))) as made:
        yield made


def test_a_copy_of_a_file_of_the_library_is_skipped_and_named(library: Library, tmp_path: Path) -> None:
    first, copy = tmp_path / "in/first.md", tmp_path / "in/other/copy.md"
    write(tmp_path / "in", {"first.md": "# Tides\n\nNoon.\n", "other/copy.md": "# Tides\n\nNoon.\n"})
    stored = library.ingest_file(str(first))
    report = library.ingest_folder(str(tmp_path / "in"))
    assert (report.skipped, report.total_files) == (2, 2)
    again, skipped = report.results
    assert again.notes == ()
    assert (skipped.source, skipped.doc_id) == (str(copy), stored.doc_id)
    assert skipped.notes == (f"It has the same content as {first}, which is in the library, and was not added.",)
    assert library.ingest_file(str(copy), "another").status == "indexed"
    assert library.ingest_file(str(copy), metadata={"by": "Ada"}).status == "indexed", "a filter finds it"
    assert library.ingest_content("# Tides\n\nNoon.\n", "tides.md").status == "indexed", "it is no file"


@pytest.mark.parametrize("text", [None, "# Tides\n\nAt six.\n"])
def test_a_file_that_moved_or_whose_copy_changed_is_added(library: Library, tmp_path: Path, text: str | None) -> None:
    first, copy = tmp_path / "first.md", tmp_path / "copy.md"
    first.write_text("# Tides\n\nNoon.\n")
    copy.write_text("# Tides\n\nNoon.\n")
    library.ingest_file(str(first))
    first.unlink() if text is None else first.write_text(text)
    assert library.ingest_file(str(copy)).status == "indexed"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_copy_of_what_has_become_a_pipe_is_added_at_once(library: Library, tmp_path: Path) -> None:
    first, copy = tmp_path / "first.md", tmp_path / "copy.md"
    first.write_text("# Tides\n\nNoon.\n")
    copy.write_text("# Tides\n\nNoon.\n")
    library.ingest_file(str(first))
    first.unlink()
    os.mkfifo(first)
    assert library.ingest_file(str(copy)).status == "indexed"  # nobody writes into the pipe


def test_a_document_that_becomes_a_copy_is_replaced(library: Library, tmp_path: Path) -> None:
    """Else the library would go on with its old text."""
    write(tmp_path / "in", {"a.md": "# Tides\n\nNoon.\n", "b.md": "# Boats\n\nA boat.\n"})
    library.ingest_folder(str(tmp_path / "in"))
    write(tmp_path / "in", {"b.md": "# Tides\n\nNoon.\n"})
    report = library.ingest_folder(str(tmp_path / "in"))
    assert (report.skipped, report.replaced) == (1, 1)


def test_a_full_disk_ends_the_ingestion_of_a_folder(library: Library, tmp_path: Path) -> None:
    write(tmp_path / "in", {f"{number:02}.md": f"# {number}\n\n{'text ' * 20_000}\n" for number in range(30)})
    library.ingest_content("a text", "first.md")
    with library._write() as writer:
        pages = writer.connection.pragma("page_count")
        writer.connection.pragma("max_page_count", pages + 40)
    seen: list[int] = []
    with pytest.raises(BuildError, match=r"The disk is full while writing .*library\.db"):
        library.ingest_folder(str(tmp_path / "in"), max_concurrency=1, progress=lambda _, done, __: seen.append(done))
    assert max(seen) < 10
    assert library.list_documents().total >= 1, "what was finished is kept"
