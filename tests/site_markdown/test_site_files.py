"""Markdown written into a site: what is there of others stays, what is the same is not written, what is gone goes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from anvil.errors import BuildError
from anvil.site_markdown import llms, paths_and_links, site_files
from anvil.site_markdown.page_file import MarkdownPage
from anvil.site_markdown.paths_and_links import MarkdownLinks, SiteLinks, SitePlace
from anvil.site_markdown.site_files import MarkdownReport, PlacedPage
from anvil.sites import site_listing
from anvil.system import safe_files
from tests.conftest import write

HEAD = "<html><head><title>x</title></head><body>"


def publish(
    folder: Path, pages: Mapping[str, str], *, link_html: bool = False, is_whole: bool = True
) -> MarkdownReport:
    """Write pages: path of the HTML -> text."""
    write(folder, {html: HEAD for html in pages if not (folder / html).exists() and len(html) < 200})
    places = {html: SitePlace(html, html.removesuffix("index.html"), html.removesuffix("index.html")) for html in pages}
    layout = paths_and_links.lay_out(places.values())
    return site_files.write(
        folder,
        llms.PublishedSite("Site", "", "https://x.test/"),
        (
            PlacedPage(places[html], MarkdownPage(files[0], html, text))
            for html, text in pages.items()
            if (files := layout.files[html])
        ),
        MarkdownLinks(layout, SiteLinks(places.values(), "https://x.test/")),
        link_html=link_html,
        is_whole=is_whole,
    )


def contents(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8")
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".html"
    }


PAGES = {"index.html": "# Home\n\n[a](a/)\n", "a/index.html": "# A\n\n[b](../b.html)\n", "b.html": "# B\n"}
FILES = {"index.md", "a/index.md", "a.md", "b.md", "b.html.md", "llms.txt", "llms-full.txt"}


def test_all_files_are_written_once_and_their_links_lead_to_each_other(tmp_path: Path) -> None:
    report = publish(tmp_path, PAGES)
    assert (report.pages, report.files, report.written, report.removed, report.notes) == (3, 7, 7, 0, ())
    found = contents(tmp_path)
    assert found.keys() == FILES | {"anvil/markdown.json"}
    assert "[a](a/index.md)" in found["index.md"]
    assert "[b](../b.md)" in found["a/index.md"]
    assert "[b](b.md)" in found["a.md"] and "[b](b.md)" in found["llms-full.txt"]
    assert found["b.md"] == found["b.html.md"]
    record = json.loads(found["anvil/markdown.json"])
    assert record["files"] == {
        path: hashlib.sha256(text.encode()).hexdigest() for path, text in found.items() if path in FILES
    }
    assert str(report) == "Markdown of 3 pages in 7 files: 7 written."
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    again = publish(tmp_path, PAGES)
    assert (again.files, again.written, again.removed) == (7, 0, 0)
    assert str(again) == "Markdown of 3 pages in 7 files: unchanged."
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_a_page_that_changed_or_went_away(tmp_path: Path) -> None:
    publish(tmp_path, PAGES)
    (tmp_path / "a/index.html").unlink()
    report = publish(tmp_path, {"index.html": PAGES["index.html"], "b.html": "# B\n\nNew.\n"})
    assert (report.files, report.removed) == (5, 2)
    assert not (tmp_path / "a").exists() and not (tmp_path / "a.md").exists()
    assert (tmp_path / "b.md").read_text().endswith("New.\n")
    assert publish(tmp_path, {}).removed == 3
    assert contents(tmp_path).keys() == {"llms.txt", "llms-full.txt", "anvil/markdown.json"}


def test_files_of_others_stay_and_are_named(tmp_path: Path) -> None:
    theirs = {"a.md": "theirs", "llms.txt": "theirs", "old.md": "theirs"}
    write(tmp_path, theirs)
    for _ in range(2):
        report = publish(tmp_path, PAGES)
        assert report.notes == ("a.md, llms.txt: not a file of Anvil, so it stays as it is.",)
        assert {path: (tmp_path / path).read_text() for path in theirs} == theirs
        assert (tmp_path / "a/index.md").exists()
    (tmp_path / "b.md").write_text("edited")  # one that Anvil wrote
    report = publish(tmp_path, PAGES)
    assert report.notes == ("a.md, b.md, llms.txt: not a file of Anvil, so it stays as it is.",)
    publish(tmp_path, {})
    assert {path: (tmp_path / path).read_text() for path in theirs} == theirs
    assert (tmp_path / "b.md").read_text() == "edited"


def test_a_file_with_the_same_bytes_is_taken_over(tmp_path: Path) -> None:
    publish(tmp_path, PAGES)
    (tmp_path / "anvil/markdown.json").unlink()
    assert publish(tmp_path, PAGES).notes == ()
    assert publish(tmp_path, {}).removed == 5


def test_a_build_that_was_interrupted_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, PAGES)
    written = []

    def killed(path: Path, content: str | bytes, **options: bool) -> None:
        written.append(path.name)
        if len(written) == 3:
            raise KeyboardInterrupt
        write_file(path, content, **options)

    write_file = safe_files.write_file
    monkeypatch.setattr(safe_files, "write_file", killed)
    changed = {html: f"{text}\nNew.\n" for html, text in PAGES.items()}
    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path, changed)
    monkeypatch.undo()
    assert site_listing.read_record(tmp_path).unfinished
    last = {html: f"{text}\nNewer.\n" for html, text in PAGES.items()}
    report = publish(tmp_path, last)
    assert (report.written, report.notes) == (6, ())  # llms.txt is the same
    assert all("Newer." in text for path, text in contents(tmp_path).items() if path.endswith(".md"))
    assert not site_listing.read_record(tmp_path).unfinished


def test_a_part_of_a_site_removes_nothing_and_writes_no_list(tmp_path: Path) -> None:
    publish(tmp_path, PAGES)
    before = contents(tmp_path)
    report = publish(tmp_path, {"b.html": "# B\n\nNew.\n"}, is_whole=False)
    assert (report.files, report.written, report.removed) == (7, 2, 0)
    found = contents(tmp_path)
    assert {path for path in before if found[path] != before[path]} == {"b.md", "b.html.md", "anvil/markdown.json"}


def test_a_collision_and_a_long_name_cost_a_message_each(tmp_path: Path) -> None:
    long = f"{'n' * 249}.html"  # a name of 254 bytes
    write(tmp_path, {"g.html": HEAD})
    report = publish(tmp_path, {"g.html": "# G\n", "g/index.html": "# H\n", long: "# Long\n"})
    assert len(report.notes) == 2
    assert report.notes[0] == "Another page has this Markdown file too, so it is not written: g.md of g/index.html."
    assert long.removesuffix("html") in report.notes[1]
    assert "it cannot be written (" in report.notes[1]
    assert (tmp_path / "g.md").read_text().endswith("# G\n")
    assert (tmp_path / "g/index.md").read_text().endswith("# H\n")


def test_a_page_with_a_name_that_windows_does_not_have_costs_a_message(tmp_path: Path) -> None:
    """Its Markdown would not be in the record, and so be read as the site's own."""
    report = publish(tmp_path, {"Category:A.html": "# A\n", "b.html": "# B\n"})
    assert report.notes == ("Category:A.html: no Markdown, because such a file name is not valid on Windows.",)
    assert "Category" not in (tmp_path / "llms.txt").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_nothing_is_written_through_links_out_of_the_site(tmp_path: Path) -> None:
    away, site = tmp_path / "away", tmp_path / "site"
    write(away, {"file": "mine", "index.html": HEAD})
    site.mkdir()
    (site / "a").symlink_to(away)
    (site / "b.md").symlink_to(away / "file")
    report = publish(site, PAGES)
    assert [note.split(":")[0] for note in report.notes] == ["a/index.md", "b.md"]
    assert (away / "file").read_text() == "mine" and not (away / "index.md").exists()
    (site / "anvil/markdown.json").unlink()
    (site / "anvil").rmdir()
    (site / "anvil").symlink_to(away)
    (site / "index.md").unlink()
    with pytest.raises(BuildError, match="leads out of"):
        publish(site, PAGES)
    assert not (away / "markdown.json").exists() and not (site / "index.md").exists()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_folder_that_cannot_be_written_costs_one_message(tmp_path: Path) -> None:
    write(tmp_path, {"index.html": HEAD})
    tmp_path.chmod(0o500)
    with pytest.raises(BuildError, match="cannot be written"):
        publish(tmp_path, {"index.html": "# A\n"})
    tmp_path.chmod(0o700)


def test_an_error_of_the_disk_costs_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: str | bytes, **options: bool) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(safe_files, "write_file", full)
    with pytest.raises(BuildError, match="No space left on device"):
        publish(tmp_path, PAGES)


def test_no_full_text_of_a_large_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llms, "MAX_FULL_BYTES", 60)
    report = publish(tmp_path, PAGES)
    assert report.notes == ("llms-full.txt is not written: the text of all pages is larger than 0 MB.",)
    assert not (tmp_path / "llms-full.txt").exists() and (tmp_path / "llms.txt").exists()


# --- links in the HTML ----------------------------------------------------------------------------------------


def test_html_is_touched_only_when_it_is_asked_for_and_is_restored(tmp_path: Path) -> None:
    publish(tmp_path, PAGES)
    original = {html: (tmp_path / html).read_bytes() for html in PAGES}
    os.utime(tmp_path / "b.html", ns=(10**18, 10**18))
    for _ in range(2):
        assert publish(tmp_path, PAGES, link_html=True).notes == ()
        assert (tmp_path / "a/index.html").read_text() == (
            '<html><head><title>x</title><link rel="alternate" type="text/markdown" href="index.md" data-anvil></head>'
            "<body>"
        )
        assert 'href="b.md"' in (tmp_path / "b.html").read_text()
    assert (tmp_path / "b.html").stat().st_mtime_ns == 10**18
    publish(tmp_path, PAGES)
    assert {html: (tmp_path / html).read_bytes() for html in PAGES} == original


def test_a_page_with_another_link_or_without_a_head_stays_and_is_named(tmp_path: Path) -> None:
    own = '<html><head><link rel="alternate" type="text/markdown" href="x.md"></head>'
    write(tmp_path, {"index.html": own, "a/index.html": "<p>no head", "b.html": '<head><base href="/"></head>'})
    report = publish(tmp_path, PAGES, link_html=True)
    (note,) = report.notes
    assert note.startswith("index.html, a/index.html, b.html: no link")
    assert (tmp_path / "index.html").read_text() == own
