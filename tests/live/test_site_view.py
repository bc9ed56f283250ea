"""Pages handed over by a site generator, and the folder seen from beside their index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anvil.build import builder
from anvil.build.report import BuildReport
from anvil.documents import document_source
from anvil.documents.document_source import compare, identity
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.index_file import verify
from anvil.live import site_view
from anvil.settings.schema import ChunkingOptions
from anvil.values import Changes, Document, Skipped
from mkdocs_anvil.pages import PagesSource
from tests.conftest import write
from tests.support.repositories import commit, isolated, root, run  # noqa: F401

OPTIONS = ChunkingOptions(slugs="mkdocs")


def page(path: str, text: str, **more: Any) -> Document:
    return replace(Document(path, "", text, 0, "", url=f"https://x.test/{path}"), **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {"a.md": "# A\n", "b.md": "# B\n", "out.md": "# Out\n"})


def built(
    folder: Path, pages: list[Document], provider: EmbeddingProvider, unread: tuple[str, ...] = ()
) -> BuildReport:
    source = PagesSource(pages, WorkingTree(folder), unread=unread)
    return builder.build(source, folder.parent / "index.db", provider, OPTIONS)


def test_nothing_is_written_when_the_same_is_handed_over(folder: Path, keywords: EmbeddingProvider) -> None:
    pages = [page("a.md", "# A\n\nmade\n"), page("made.md", "# Made\n")]
    assert built(folder, pages, keywords).outcome == "built"
    assert built(folder, pages[::-1], keywords).outcome == "unchanged"


@pytest.mark.parametrize(
    "change",
    [
        {"text": "# A\n\nother\n"},
        {"title": "T"},
        {"url": "https://y.test/"},
        {"nav_path": "N > A"},
        {"metadata": {"edit_url": "e"}},
        {"headings": ((1, "other", "A"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_was_handed_over_anew_is_noticed(
    folder: Path, keywords: EmbeddingProvider, change: dict[str, Any]
) -> None:
    pages = [page("a.md", "# A\n"), page("b.md", "# B\n")]
    built(folder, pages, keywords)
    report = built(folder, [replace(pages[0], **change), pages[1]], keywords)
    assert report.changes == Changes(changed=("a.md",))


def test_a_file_that_the_site_leaves_out_from_now_on_is_written_down(folder: Path, keywords: EmbeddingProvider) -> None:
    built(folder, [page("a.md", "# A\n")], keywords)
    write(folder, {"later.md": "# Later\n"})
    assert built(folder, [page("a.md", "# A\n")], keywords).outcome == "built"
    with verify.open_checked(folder.parent / "index.db") as reader:
        assert reader.excluded_hashes() == frozenset(map(document_source.hash_path, ("b.md", "out.md", "later.md")))
    assert b"later" not in (folder.parent / "index.db").read_bytes(), "nor is its name told"


def test_incremental_and_from_scratch_are_the_same_bytes(folder: Path, keywords: EmbeddingProvider) -> None:
    index = folder.parent / "index.db"
    built(folder, [page("a.md", "# A\n"), page("b.md", "# B\n"), page("made.md", "# Made\n")], keywords)
    pages = [page("a.md", "# A\n\nedited\n"), page("made.md", "# Made\n")]
    built(folder, pages, keywords)
    first = index.read_bytes()
    index.unlink()
    built(folder, pages, keywords)
    assert index.read_bytes() == first


def test_pages_not_made_anew_stay_as_they_stand(folder: Path, keywords: EmbeddingProvider) -> None:
    built(folder, [page("a.md", "# A\n"), page("b.md", "# B\n"), page("made.md", "# Made\n")], keywords)
    unread = ("b.md", "made.md", "out.md", "unheard-of.md")
    report = built(folder, [page("a.md", "# A\n\nedited\n")], keywords, unread)
    assert report.changes == Changes(changed=("a.md",)) and report.pages == 3
    with verify.open_checked(folder.parent / "index.db") as reader:
        assert reader.excluded_hashes() == frozenset({document_source.hash_path("out.md")})
    assert built(folder, [page("a.md", "# A\n\nedited\n")], keywords, unread).outcome == "unchanged"


def test_a_page_without_a_file_has_the_time_of_the_newest_that_has_one(root: Path) -> None:  # noqa: F811
    write(root / "docs", {"b.md": "# B\n", ".gitignore": "made.md\n"})
    commit(root, "second", at=1_700_005_000)
    write(root / "docs", {"made.md": "# Made\n"})
    source = PagesSource(
        [page("a.md", "# A\n"), page("b.md", "# B\n"), page("made.md", "# M\n")], WorkingTree(root / "docs")
    )
    assert source.last_modified(["a.md", "b.md", "made.md"], {}, None) == {
        "a.md": "2023-11-14T22:13:20Z",
        "b.md": "2023-11-14T23:36:40Z",
        "made.md": "2023-11-14T23:36:40Z",
    }
    assert source.scan().entries["made.md"].startswith(":"), "ignored by git: never compared with a file"
    assert source.commit() == run(root, "rev-parse", "HEAD") and source.root_path == "docs"


def test_a_page_whose_name_forges_a_line_is_left_out(folder: Path, keywords: EmbeddingProvider) -> None:
    """The check of an index refuses such a path, so a site with one such page had no index."""
    report = built(folder, [page("a.md", "# A\n"), page("x\u202e.md", "# X\n")], keywords)
    assert [(each.path, each.reason.partition(",")[0]) for each in report.skipped] == [
        ("x\\u202e.md", "its name is not valid Unicode")
    ]
    assert report.pages == 1


def test_what_is_no_text_is_skipped_with_a_reason(folder: Path) -> None:
    pages = [page("a.md", "x" * 50), page("b.md", "\ud800"), page("c.md", "fine")]
    source = PagesSource(pages, WorkingTree(folder), limit=20)
    assert list(source.scan().entries) == ["c.md"]
    assert [(each.path, each.reason.partition(":")[0]) for each in source.scan().skipped] == [
        ("a.md", "too large"),
        ("b.md", "not UTF-8"),
    ]
    assert isinstance(source.read("a.md"), Skipped)


def test_beside_an_index_without_a_site_the_folder_is_itself(folder: Path, keywords: EmbeddingProvider) -> None:
    tree = WorkingTree(folder)
    builder.build(tree, folder.parent / "index.db", keywords, OPTIONS)
    with verify.open_checked(folder.parent / "index.db") as reader:
        assert site_view.view_of(tree, reader) is tree


def test_beside_a_sites_index_pages_keep_their_place_and_say_that_they_are_not_rendered(
    folder: Path, keywords: EmbeddingProvider
) -> None:
    write(folder, {"a.md": "---\nowner: me\n---\n# A\n"})
    pages = [
        page("a.md", "# A\n", nav_path="N > A", metadata={"edit_url": "e", "rendered": True}),
        page("b.md", "# B\n", title="In the navigation"),
    ]
    built(folder, pages, keywords)
    write(folder, {"a.md": "---\nowner: you\n---\n# A new title\n", "new.md": "# New\n"})
    with verify.open_checked(folder.parent / "index.db") as reader:
        tree = site_view.view_of(WorkingTree(folder), reader)
        scan = tree.scan(reader.blob_ids())
        assert tree.scan(reader.blob_ids()) is scan, "the same object as long as nothing changes"
        assert compare(reader.blob_ids(), scan.entries) == Changes(changed=("a.md",), added=("new.md",))
        a, b, new = (tree.read(path) for path in ("a.md", "b.md", "new.md"))
    assert isinstance(a, Document) and isinstance(b, Document) and isinstance(new, Document)
    assert (a.title, a.url, a.nav_path) == (None, "https://x.test/a.md", "N > A"), "its own title may have changed"
    assert a.metadata == {"edit_url": "e", "rendered": False}
    assert b.title == "In the navigation" and new.url is None and new.metadata == {"rendered": False}


def test_an_identity_tells_files_from_pages() -> None:
    assert len({identity("a", ""), identity("a", "f"), identity("", "f"), identity("", "a")}) == 4
