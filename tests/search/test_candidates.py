"""The candidates of an index file: what is kept of one text when the next one is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import NoProvider
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.search.candidates import FileIndex, LinkCache
from anvil.settings.schema import ChunkingOptions, EmbeddingSettings
from anvil.text.link_popularity import PageText
from tests.conftest import write

PAGES = {
    "a.md": "# A\n\n[lamp](b.md) and [oil](sub/c.md)\n",
    "b.md": "# B\n\nText.\n",
    "sub/c.md": "# C\n\n[home](../a.md)\n",
}


def test_after_an_edit_only_the_links_of_that_page_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache: LinkCache = {}
    assert linked(tmp_path, PAGES, cache) == {"a.md": {"home"}, "b.md": {"lamp"}, "sub/c.md": {"oil"}}
    read: list[int] = []
    page_text = Reader.page_text

    def recorded(reader: Reader, page: int) -> PageText:
        read.append(page)
        return page_text(reader, page)

    monkeypatch.setattr(Reader, "page_text", recorded)
    edited = {**PAGES, "b.md": "# B\n\n[wick](sub/c.md)\n"}
    assert linked(tmp_path, edited, cache) == {"a.md": {"home"}, "b.md": {"lamp"}, "sub/c.md": {"oil", "wick"}}
    assert len(read) == 1


def test_a_page_that_moved_is_linked_from_its_new_place(tmp_path: Path) -> None:
    cache: LinkCache = {}
    linked(tmp_path, PAGES, cache)
    (tmp_path / "docs/sub/c.md").unlink()
    moved = {"a.md": PAGES["a.md"], "b.md": PAGES["b.md"], "sub/deep/c.md": PAGES["sub/c.md"], "sub/a.md": "# D\n"}
    assert linked(tmp_path, moved, cache) == {"sub/a.md": {"home"}, "b.md": {"lamp"}}


def linked(folder: Path, pages: dict[str, str], cache: LinkCache) -> dict[str, set[str]]:
    """Path -> the words of the links to that page, in an index of ``pages``."""
    (folder / "docs").mkdir(exist_ok=True)
    build(
        WorkingTree(write(folder / "docs", pages)),
        folder / "i.db",
        NoProvider(EmbeddingSettings(provider="none")),
        ChunkingOptions(),
    )
    with verify.open_checked(folder / "i.db") as reader:
        links = FileIndex(reader, cache).links
        assert links is not None
        words = ("home", "lamp", "oil", "wick")
        found = {
            page.path: {word for word in words if links.coverage(page.id, {word: 1.0}, lambda text: [text])}
            for page in reader.addresses()
        }
        return {path: held for path, held in found.items() if held}
