"""Two indexes side by side: what differs, in pages, sections and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.git_drivers import index_diff
from anvil.git_drivers.index_diff import IndexDifference, PageChange, SectionChange
from anvil.index_file import verify
from anvil.settings.schema import ChunkingOptions
from tests.conftest import PAGES, write

Comparison = Callable[..., tuple[IndexDifference, IndexDifference]]


@pytest.fixture
def compare(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> Comparison:
    """Compares the index of the four pages with one built after a change."""
    build(WorkingTree(docs), tmp_path / "old.db", keywords, ChunkingOptions())

    def compared(
        provider: EmbeddingProvider = keywords, options: ChunkingOptions | None = None
    ) -> tuple[IndexDifference, IndexDifference]:
        build(WorkingTree(docs), tmp_path / "new.db", provider, options or ChunkingOptions())
        with verify.open_checked(tmp_path / "old.db") as old, verify.open_checked(tmp_path / "new.db") as new:
            return index_diff.difference(old, new), index_diff.difference(new, old)

    return compared


def test_equal_indexes_do_not_differ(compare: Comparison) -> None:
    found, back = compare()
    assert found == back == IndexDifference((), ())
    assert index_diff.render(found) == "0 pages differ.\n"


def test_pages_and_sections_come_go_and_change(docs: Path, compare: Comparison) -> None:
    (docs / "install.md").unlink()
    checks = PAGES["guides/checks.md"].replace("status 200", "status 204").replace("## Disk space", "## Volumes")
    write(docs, {"guides/checks.md": checks, "new.md": "# New\n\nText.\n\n## Part\n\nMore.\n"})
    found, back = compare()
    assert found.pages == (
        PageChange(
            "changed",
            "guides/checks.md",
            (
                SectionChange("changed", "Checks > HTTP"),
                SectionChange("added", "Checks > Volumes"),
                SectionChange("removed", "Checks > Disk space"),
            ),
        ),
        PageChange(
            "removed",
            "install.md",
            (
                SectionChange("removed", "Install"),
                SectionChange("removed", "Install > Linux"),
                SectionChange("removed", "Install > Windows"),
            ),
        ),
        PageChange("added", "new.md", (SectionChange("added", "New"), SectionChange("added", "New > Part"))),
    )
    assert [(page.kind, page.file_path) for page in back.pages] == [
        ("changed", "guides/checks.md"),
        ("added", "install.md"),
        ("removed", "new.md"),
    ]
    assert index_diff.render(found) == (
        "~ guides/checks.md\n    ~ Checks > HTTP\n    + Checks > Volumes\n    - Checks > Disk space\n"
        "- install.md\n    - Installing > Install\n    - Installing > Install > Linux\n"
        "    - Installing > Install > Windows\n"
        "+ new.md\n    + New\n    + New > Part\n3 pages differ.\n"
    )


def test_a_page_that_was_moved_and_edited_is_one_page(docs: Path, compare: Comparison) -> None:
    (docs / "install.md").unlink()
    (docs / "guides/checks.md").rename(docs / "guides/health.md")
    edited = PAGES["install.md"].replace("## Windows", "## Microsoft Windows")
    write(docs, {"start/install.md": edited})
    found, back = compare()
    assert found.pages == (
        PageChange("moved", "guides/health.md", (), "guides/checks.md"),
        PageChange(
            "moved",
            "start/install.md",
            (
                SectionChange("added", "Install > Microsoft Windows"),
                SectionChange("removed", "Install > Windows"),
            ),
            "install.md",
        ),
    )
    assert [(page.kind, page.file_path, page.old_path) for page in back.pages] == [
        ("moved", "guides/checks.md", "guides/health.md"),
        ("moved", "install.md", "start/install.md"),
    ]
    assert index_diff.render(found) == (
        "~ guides/health.md (was guides/checks.md)\n~ start/install.md (was install.md)\n"
        "    + Installing > Install > Microsoft Windows\n    - Installing > Install > Windows\n2 pages differ.\n"
    )


def test_front_matter_alone_is_a_change_without_sections(docs: Path, compare: Comparison) -> None:
    write(docs, {"install.md": PAGES["install.md"].replace("tags: [start]", "tags: [begin]")})
    found, _ = compare()
    assert found.pages == (PageChange("changed", "install.md", ()),)
    assert index_diff.render(found) == "~ install.md\n1 page differs.\n"


def test_settings_that_differ_are_named(compare: Comparison, local: EmbeddingProvider) -> None:
    found, _ = compare(local, ChunkingOptions(max_chunk_size=500))
    assert found.pages == ()
    changed = {key: (old, new) for key, old, new in found.settings}
    assert changed["embedding_provider"] == ("none", "local") and "500" in changed["chunking"][1]
    assert "~ embedding_provider: none -> local\n" in index_diff.render(found)


def test_a_page_with_another_title_is_changed(docs: Path, compare: Comparison) -> None:
    write(docs, {"install.md": PAGES["install.md"].replace("title: Installing", "title: Other")})
    found, _ = compare()
    assert [(page.kind, page.file_path, page.sections, page.title) for page in found.pages] == [
        ("changed", "install.md", (), "Other")
    ]
