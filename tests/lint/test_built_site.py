"""Links, anchors, labels and orphans, looked up in a built site; and what the source alone may say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import anvil
from anvil.errors import SourceError
from anvil.lint.linter import LintReport
from anvil.settings.schema import Config, SiteOptions
from tests.support.html_sites import page
from tests.support.repositories import write

PAGES = {
    "index.md": "# Start\n\n[Install](guide/install.md#Step) [Gone](guide/gone.md)\n",
    "guide/install.md": "# Install\n\n## Step\n\n[up](../index.md) ![Map](../map.png)\n",
}


def linted(folder: Path, pages: Mapping[str, str], site: Mapping[str, str], *rules: str, url: str = "") -> LintReport:
    for path, text in pages.items():
        write(folder / "docs" / path, text)
    for path, text in site.items():
        write(folder / "site" / path, text)
    config = Config(site=SiteOptions(url=url))
    with anvil.open(folder / "docs", index=folder / "none.db", provider="none", config=config) as opened:
        return opened.lint(rules=rules or None, site=folder / "site" if site else None)


def messages(report: LintReport) -> list[str]:
    return [f"{each.path}:{each.line} {each.level} {each.message}" for each in report.findings]


def html(title: str, content: str) -> str:
    return page(title, f"<nav><a href='/'>Home</a></nav><main><h1>{title}</h1><p>Some text of it.</p>{content}</main>")


def test_the_site_decides_where_it_shows_a_link(tmp_path: Path) -> None:
    site = {
        "index.html": html(
            "Start", "<a href='guide/install/#Step'>Install</a> <a href='guide/gone/'>Gone</a> <a href='#no'>here</a>"
        ),
        "guide/install/index.html": html(
            "Install", "<h2 id='Step'>Step</h2><a href='../../'>up</a><img alt=Map src=x>"
        ),
    }
    rules = ("broken-link", "broken-anchor", "orphan-page")
    pages = {**PAGES, "index.md": PAGES["index.md"] + "\n[here](#no) [cut](out.md)\n"}
    assert messages(linted(tmp_path, pages, site, *rules)) == [
        "guide/install.md:5 error Broken image '../map.png': the site has nothing at /guide/install/x.",
        "index.md:3 error Broken link 'guide/gone.md': the site has nothing at /guide/gone/.",
        "index.md:5 error '#no': index.html of the site has no element with this id.",
        "index.md:5 error Broken link 'out.md': there is no file out.md.",  # the site shows no link
    ]


def test_links_of_pages_that_are_not_markdown_are_looked_up_too(tmp_path: Path) -> None:
    docs = {
        "index.rst": "Start\n=====\n\n`Install <install.html#gone>`_\n\n:doc:`Lost`\n\n.. image:: map.png\n",
        "install.rst": "Install\n=======\n\n`Start <index.html#start>`_\n",
        "a.md": "# A\n\nText.\n",
    }
    links = "<a href='install.html#gone'>Install</a> <a href='lost.html'>Lost</a> <img src='_images/map.png'>"
    site = {
        "index.html": html("Start", f"<p id=start>{links} {links}</p>"),
        "install.html": html("Install", "<a href='index.html#start'>Start</a>"),
        "api.html": html("No source", "<a href='nowhere.html'>x</a>"),
        "a.html": html("A", ""),
    }
    report = linted(tmp_path, docs, site)
    assert report.pages == 3 and not [note for note in report.notes if "not read" in note]
    assert [message for message in messages(report) if "rst:" in message or "api" in message] == [
        "index.rst:1 error Broken image '_images/map.png': the site has nothing at /_images/map.png.",
        "index.rst:4 error '#gone': install.html of the site has no element with this id.",
        "index.rst:6 error Broken link 'lost.html': the site has nothing at /lost.html.",
    ]
    assert [note for note in report.notes if "near-duplicate" in note], "a.md could be compared"


def test_no_index_is_missed_where_no_page_is_markdown(tmp_path: Path) -> None:
    """'anvil build' cannot make one for near-duplicate to compare: it reads Markdown."""
    report = linted(tmp_path, {"index.rst": "Start\n=====\n"}, {"index.html": html("Start", "<p>Text.</p>")})
    assert report.pages == 1 and not [note for note in report.notes if "near-duplicate" in note]


def test_generators_write_targets_their_own_way(tmp_path: Path) -> None:
    pages = {
        "index.md": "# Start\n\n[The A](./OwnSlug.md#x) "
        "[A](01-a.mdx) [b](sub/b.md#X-Y) [c](https://other.org/c) [d](/d) ![Logo](logo.png)\n",
        "01-a.mdx": "# A\n",
        "OwnSlug.md": "---\nslug: own-slug\n---\n# The A\n",
        "sub/b.md": "# B\n\n## X Y\n",
    }
    site = {
        "index.html": html(
            "Start",
            "<a href='/base/own-slug#x'>The A</a> "
            "<a href='/base/a'>A</a> <a href='/base/sub/b.html#%C3%A4'>b</a> <a href='/base/sub/b#x-y'>b</a> "
            "<a href='/elsewhere/d'>d</a> <img alt=Logo src='/base/assets/logo-1f.png'>",
        ),
        "a/index.html": html("A", ""),
        "own-slug.html": html("The A", "<p id=x>x</p>"),
        "sub/b.html": html("B", "<h2 id='x-y'>X Y</h2>"),
        "assets/logo-1f.png": "png",
    }
    rules = ("broken-link", "broken-anchor")
    assert messages(linted(tmp_path, pages, site, *rules, url="https://example.org/base/")) == []
    (tmp_path / "site/assets/logo-1f.png").unlink()
    found = messages(
        linted(tmp_path, pages, site | {"assets/logo-1f.png": "x"}, *rules, url="https://example.org/base/")
    )
    assert found == []
    (tmp_path / "site/a/index.html").unlink()
    found = messages(
        linted(tmp_path, pages, {"sub/b.html": site["sub/b.html"]}, *rules, url="https://example.org/base/")
    )
    assert found == ["index.md:3 error Broken link '01-a.mdx': the site has nothing at /a."]
    write(tmp_path / "site/_redirects", "/base/a /base/sub/b\n")  # the host's
    assert messages(linted(tmp_path, pages, {"sub/b.html": site["sub/b.html"]}, *rules)) == []


def test_orphans_and_labels_of_the_site(tmp_path: Path) -> None:
    pages = {
        "index.md": "# Start\n\n[text][defined] [other][un defined]\n",
        "lost.md": "# Lost\n",
        "in-menu.md": "# Menu\n",
        "moved.md": "---\nredirect: /\n---\n",
    }
    menu = "<nav><a href='/in-menu/'>Menu</a></nav>"
    site = {
        "index.html": page(
            "Start", f"{menu}<main><h1>Start</h1><p>[text] is a link, [other][un defined] not</p></main>"
        ),
        "lost/index.html": html("Lost", ""),
        "in-menu/index.html": html("Menu", ""),
        "moved/index.html": html("moved", ""),
    }
    assert messages(linted(tmp_path, pages, site, "orphan-page", "undefined-reference")) == [
        "index.md:3 warning The link label '[un defined]' is not defined in this page.",
        "lost.md:1 warning No other page of the site links to this page.",
    ]


def test_a_folder_that_is_no_site_is_an_error_and_one_of_the_configuration_is_used(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no HTML page"):
        linted(tmp_path, PAGES, {"x.txt": "x"})
    write(tmp_path / "anvil.toml", '[site]\nfolder = "public"\n[embedding]\nprovider = "none"\n')
    with anvil.open(config=tmp_path / "anvil.toml") as opened:
        assert [each.level for each in opened.lint(rules=["broken-link"]).findings] == [
            "error",
            "error",
        ]  # not built yet
        write(tmp_path / "public/index.html", html("Start", "<a href='ok.html'>Gone</a><a href=gone>Gone</a>"))
        write(tmp_path / "public/guide/install.html", html("Install", "<a href='../index.html'>up</a>"))
        found = opened.lint(rules=["broken-link"])
    assert [each.message for each in found.findings] == [
        "Broken image '../map.png': there is no file map.png.",
        "Broken link 'guide/gone.md': the site has nothing at /gone.",
    ]


# --- the source alone ----------------------------------------------------------------------------------------------


def test_docusaurus_looks_for_files_in_the_content_and_the_site_too(tmp_path: Path) -> None:
    write(tmp_path / "docusaurus.config.js", "module.exports = {}")
    pages = {
        "a/b.mdx": "# B\n\n[c](c/d.mdx#part) [e](docs/c/d.mdx) [up](./c/d.mdx) [to](gone/address) [x](c/gone.mdx)\n",
        "c/d.mdx": "# D\n\n## Part\n",
    }
    assert messages(linted(tmp_path, pages, {}, "broken-link", "broken-anchor")) == [
        "a/b.mdx:3 error Broken link './c/d.mdx': there is no file a/c/d.mdx. Did you mean c/d.mdx?",
        "a/b.mdx:3 error Broken link 'c/gone.mdx': there is no file a/c/gone.mdx.",
    ]


def test_where_vitepress_has_its_own_slugs_an_anchor_is_a_note(tmp_path: Path) -> None:
    config = "export const shared = {markdown: {anchor: {slugify: (s) => s}}}"
    write(tmp_path / "docs/.vitepress/config/shared.ts", config)
    pages = {"index.md": "# A\n\n## Shared Getters\n\n[x](#Shared-Getters)\n"}
    (found,) = linted(tmp_path, pages, {}, "broken-anchor").findings
    assert found.level == "note"
    site = {"index.html": html("A", "<h2 id=Shared-Getters>S</h2><a href='#Shared-Getters'>x</a>")}
    assert linted(tmp_path, pages, site, "broken-anchor").findings == ()
    site = {"index.html": html("A", "<h2 id=shared-getters>S</h2><a href='#Shared-Getters'>x</a>")}
    (found,) = linted(tmp_path, pages, site, "broken-anchor").findings
    assert found.level == "error"


def test_properdocs_is_read_as_mkdocs_is(tmp_path: Path) -> None:
    write(tmp_path / "properdocs.yml", "site_name: A\nnav: [index.md, b.md]\n")
    pages = {
        "index.md": "# A\n\nA paragraph, [text][label].\n[label]: b.md\n\n[other][none]\n",
        "b.md": "# B\n",
        "old.md": "---\ntemplate: redirect.html\nlocation: https://example.org\n---\n",
        "lost.md": "# Lost\n",
    }
    report = linted(tmp_path, pages, {}, "undefined-reference", "orphan-page")
    assert report.generator == "mkdocs"
    assert messages(report) == [
        "index.md:6 warning The link label '[none]' is not defined in this page.",
        "lost.md:1 warning No page links to this page, and the navigation does not show it.",
    ]


def test_a_site_beside_others_leads_out_of_itself(tmp_path: Path) -> None:
    """As books at ``/book/`` and ``/std/`` of one host do. Where the site is at the top, it has nothing there."""
    pages = {"index.md": "# Start\n\n[String](../std/string.html) [Up](a/../../index.html)\n", "../book.toml": ""}
    site = {"index.html": html("Start", "<a href='../std/string.html'>String</a> <a href='a/../../index.html'>Up</a>")}
    assert messages(linted(tmp_path, pages, site, "broken-link")) == []
    assert messages(linted(tmp_path, pages, site, "broken-link", url="https://example.org/")) == [
        "index.md:3 error Broken link '../std/string.html': the site has nothing at /std/string.html."
    ]
