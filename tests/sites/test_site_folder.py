"""The pages of a site between two scans: what is read again, and what is not."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from anvil.documents.working_tree import WorkingTree
from anvil.errors import SourceError
from anvil.settings.schema import SiteOptions, SourceOptions
from anvil.sites import reader_processes, site_folder, site_listing
from anvil.sites.site_folder import SiteFolder
from anvil.values import Document
from tests.support.html_sites import page, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "site", {f"{n}.html": page(f"Page {n}", f"<p>Text {n}.</p>") for n in range(40)})


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as written long ago, a quarter of a second after they were written."""
    monkeypatch.setattr(site_listing, "written_back", lambda state: state.st_ctime_ns + 250_000_000)


def scanned(folder: Path) -> Mapping[str, str]:
    with closing(SiteFolder(folder, SiteOptions())) as source:
        return source.scan().entries


def texts(folder: Path) -> dict[str, str]:
    with closing(SiteFolder(folder, SiteOptions())) as source:
        documents = [source.read(path) for path in source.scan().entries]
    return {document.path: document.text for document in documents if isinstance(document, Document)}


def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read from now on."""
    paths: list[str] = []
    load = reader_processes.load

    def counted(root: Path, path: str, twin: str | None) -> reader_processes.Loaded:
        paths.append(path)
        return load(root, path, twin)

    monkeypatch.setattr(reader_processes, "load", counted)
    return paths


@pytest.mark.usefixtures("old")
def test_files_whose_signature_is_known_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.35)
    entries = scanned(folder)
    paths = loaded(monkeypatch)
    assert scanned(folder) == entries
    assert paths == []
    write(folder, {"3.html": page("Page 3", "<p>Another text.</p>")})
    changed = scanned(folder)
    assert {path for path in entries if changed[path] != entries[path]} == {"3.html"} == set(paths)


def test_files_that_were_just_written_are_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = scanned(folder)
    paths = loaded(monkeypatch)
    assert scanned(folder) == entries
    assert sorted(paths) == sorted(entries)


@pytest.mark.usefixtures("old")
def test_an_edit_that_keeps_size_and_time_is_noticed(folder: Path) -> None:
    time.sleep(0.35)
    entries = scanned(folder)
    file = folder / "7.html"
    state = file.stat()
    file.write_bytes(file.read_bytes().replace(b"Text 7", b"Lies 7"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    changed = scanned(folder)
    assert {path for path in entries if changed[path] != entries[path]} == {"7.html"}


def test_a_selector_of_the_content_that_no_page_has_is_told(folder: Path) -> None:
    write(folder, {"7.html": "<title>Page 7</title><body><div class='text'>Text 7.</div>"})
    for _ in range(2):  # the second time from the cache
        with closing(SiteFolder(folder, SiteOptions(content=("#text", ".txt")))) as source:
            source.scan()
            assert source.notes[-1] == "site.content has no effect: no page has #text or .txt. Correct or remove it."
        with closing(SiteFolder(folder, SiteOptions(content=("#text", ".text")))) as source:
            source.scan()
            assert not any("site.content" in note for note in source.notes)


def test_an_edit_right_after_a_scan_is_noticed(folder: Path) -> None:
    with closing(SiteFolder(folder, SiteOptions())) as source:
        entries = source.scan().entries
        for number in range(5):
            file = folder / f"{number}.html"
            state = file.stat()
            file.write_bytes(file.read_bytes().replace(b"Text", b"Lies"))
            os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        changed = source.scan().entries
    assert len([path for path in entries if changed[path] != entries[path]]) == 5


def test_markdown_that_appears_changes_or_goes_is_noticed(folder: Path) -> None:
    linked = '<link rel="alternate" type="text/markdown" href="/docs/md/1.md">'
    write(folder, {"1.html": page("Page 1", "<p>Text 1.</p>", head=linked), "a/index.html": page("A", "<p>Text.</p>")})
    steps = [
        ({}, {"1.html": "# Page 1\n\nText 1.\n", "a/index.html": "# A\n\nText.\n"}),
        ({"md/1.md": "# Page 1\n\nText *1*.\n"}, {"1.html": "# Page 1\n\nText *1*.\n"}),
        ({"md/1.md": "# Page 1\n\n_Text_ 1.\n"}, {"1.html": "# Page 1\n\n_Text_ 1.\n"}),
        ({"a.md": "# A\n\n*Text*.\n"}, {"a/index.html": "# A\n\n*Text*.\n"}),
        ({"a/index.md": "# A\n\n**Text**.\n"}, {"a/index.html": "# A\n\n**Text**.\n"}),
    ]
    for files, expected in steps:
        write(folder, files)
        found = texts(folder)
        assert {path: found[path] for path in expected} == expected
    shutil.rmtree(folder / "md")
    assert texts(folder)["1.html"] == "# Page 1\n\nText 1.\n"


@pytest.mark.usefixtures("old")
def test_linked_markdown_that_is_written_after_the_page_was_read_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = '<link rel="alternate" type="text/markdown" href="/docs/md/1.md">'
    write(folder, {"1.html": page("Page 1", "<p>Text 1.</p>", head=linked)})
    time.sleep(0.35)
    assert texts(folder)["1.html"] == "# Page 1\n\nText 1.\n"
    for path, markdown in (("md/1.md", "# Page 1\n\n*Text* 1.\n"), ("docs/md/1.md", "# Page 1\n\n**Text** 1.\n")):
        write(folder, {path: markdown})
        time.sleep(0.35)
        paths = loaded(monkeypatch)
        scanned(folder)
        assert set(paths) == {"1.html"}
        assert texts(folder)["1.html"] == markdown
        paths.clear()
        scanned(folder)
        assert paths == []
    shutil.rmtree(folder / "docs")
    assert texts(folder)["1.html"] == "# Page 1\n\n*Text* 1.\n"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_markdown_outside_of_the_site_is_not_read(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret.md": "# Page 1\n\n*Text* 1.\n"})
    (folder / "out").symlink_to(tmp_path)
    for href in ("../secret.md", "out/secret.md", "/../../secret.md", "file:///secret.md"):
        linked = f'<link rel="alternate" type="text/markdown" href="{href}">'
        write(folder, {"1.html": page("Page 1", "<p>Text 1.</p>", head=linked)})
        assert texts(folder)["1.html"] == "# Page 1\n\nText 1.\n"


def test_texts_of_all_pages_are_read_together_if_many_are_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = texts(folder)
    monkeypatch.setattr(site_folder, "MAX_SINGLE_READS", 3)
    paths = loaded(monkeypatch)
    assert texts(folder) == expected
    assert sorted(paths) == sorted([*expected, *expected])  # once for its hash, once for its text


@pytest.fixture
def emptied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SiteFolder]:
    """A site that was read, and is built again: the folder is empty, and its pages come one by one."""
    monkeypatch.setattr(site_folder, "QUIET_S", 1.5)  # a busy machine may stop the generator for a while
    source = SiteFolder(folder, SiteOptions())
    source.scan()
    shutil.rmtree(folder)
    folder.mkdir()

    def build() -> None:
        for number in range(20):
            time.sleep(0.02)
            write(folder, {f"new/{number}.html": page(f"New {number}", "<p>Text.</p>")})

    generator = threading.Thread(target=build)
    generator.start()
    yield source
    generator.join()
    source.close()


def test_a_site_that_is_built_again_is_read_when_it_is_whole(emptied: SiteFolder) -> None:
    assert len(emptied.scan().entries) == 20


def test_a_site_without_a_page_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    moved = '<meta http-equiv="refresh" content="0; url=guide/">'
    write(tmp_path, {"index.html": moved, "404.html": page("No page", "")})
    with pytest.raises(
        SourceError, match=r"no page to index: left out 404\.html: .*; left out index\.html: it leads to"
    ):
        scanned(tmp_path)


def test_a_title_in_asciidoc_leads_to_the_source(tmp_path: Path) -> None:
    write(tmp_path / "site", {"core/2.1/moor.html": page("Moor a boat", "<p>With a rope.</p>")})
    write(tmp_path / "docs", {"modules/ROOT/pages/moor.adoc": ":toc:\n= Moor a boat\n\nWith a rope.\n"})
    tree = WorkingTree(tmp_path / "docs", SourceOptions(include=("**/*.adoc",)))
    with closing(SiteFolder(tmp_path / "site", SiteOptions(), tree)) as source:
        assert list(source.scan().entries) == ["modules/ROOT/pages/moor.adoc"]


def test_a_sitemap_in_the_folder_of_a_language_names_pages_at_the_top(tmp_path: Path) -> None:
    """As Hugo writes them: the default language has its pages at the top, and ``en/`` leads there."""
    start = "<urlset><url><loc>https://x.org/"
    site = write(
        tmp_path / "site",
        {
            "index.html": page("Start", "<p>Go.</p>"),
            "guide/index.html": page("Guide", "<p>Read.</p>"),
            "en/index.html": '<meta http-equiv="refresh" content="0; url=https://x.org/">',
            "en/sitemap.xml": f"{start}</loc></url><url><loc>https://x.org/guide/</loc></url></urlset>",
            "de/index.html": page("Anfang", "<p>Los.</p>"),
            "de/sitemap.xml": f"{start}de/</loc></url></urlset>",
        },
    )
    assert set(scanned(site)) == {"index.html", "guide/index.html", "de/index.html"}


@pytest.mark.parametrize(("listed", "read"), [("a", "abcd"), ("ab", "ab")])
def test_a_sitemap_counts_if_it_names_half_of_the_pages(tmp_path: Path, listed: str, read: str) -> None:
    pages = {f"{name}.html": page(name, f"<p>Of {name}.</p>") for name in "abcd"}
    places = "".join(f"<url><loc>https://x.org/{name}.html</loc></url>" for name in listed)
    site = write(tmp_path / "site", {**pages, "sitemap.xml": f"<urlset>{places}</urlset>"})
    assert set(scanned(site)) == {f"{name}.html" for name in read}


@pytest.mark.parametrize(
    ("declared", "version"),
    [('["7"]', "7"), ('[{"version": "7"}]', "7"), ("[" * 100_000, None), ('{"7": 1}', None), ("\xff", None)],
)
def test_versions_are_those_that_a_site_names(tmp_path: Path, declared: str, version: str | None) -> None:
    write(tmp_path, {"index.html": page("Start", "<p>Text.</p>"), "7/index.html": page("Seven", "<p>Other text.</p>")})
    (tmp_path / "versions.json").write_bytes(declared.encode("latin-1"))
    with closing(SiteFolder(tmp_path, SiteOptions())) as source:
        source.scan()
        assert source.pages()["7/index.html"].version == version


def test_pages_with_the_same_text_in_versions_below_the_top_are_no_copies(tmp_path: Path) -> None:
    pages = {
        f"docs/acme/{version}/{name}/index.html": page(name, f"<p>{f'The {name} holds jobs. ' * 9}</p>")
        for version in ("v1.9", "latest")
        for name in ("queue", "store", "lease")
    }
    pages["docs/acme/v1.9/more/index.html"] = pages["docs/acme/v1.9/queue/index.html"]
    pages["docs/acme/api/index.html"] = page("API", "<p>All of it.</p>")
    with closing(SiteFolder(write(tmp_path / "site", pages), SiteOptions())) as source:
        assert source.scan().entries.keys() == pages.keys() - {"docs/acme/v1.9/queue/index.html"}
        versions = [each.version for each in source.pages().values()]
        assert versions == [None, *["latest"] * 3, *["v1.9"] * 3]
