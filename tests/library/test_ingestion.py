"""What is not stored: anything more when the disk of the library is full."""

from __future__ import annotations

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
