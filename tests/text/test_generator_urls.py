"""Addresses and anchors as site generators make them, for folders whose site Anvil does not build.

The slugs are what github-slugger 2.0.0 and @mdit-vue/shared 3.0.2 gave for these titles; addresses of MkDocs are
compared with MkDocs itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.settings.schema import ChunkingOptions, Config, Rule, SiteOptions
from anvil.text import markdown_sections
from anvil.text.generator_urls import address
from anvil.text.headings import slug
from tests.conftest import write

BASE = "https://example.org/docs/"

SLUGS = [
    ("What's next?", "whats-next", "what-s-next"),
    ("Getting Started", "getting-started", "getting-started"),
    ("1. First steps", "1-first-steps", "_1-first-steps"),
    ("Über uns: Größe", "über-uns-größe", "uber-uns-große"),
    ("API `foo()` & more", "api-foo--more", "api-foo-more"),
    ("C++ / C# — notes", "c--c--notes", "c-c-—-notes"),
    ("snake_case and kebab-case", "snake_case-and-kebab-case", "snake-case-and-kebab-case"),
    ("日本語 見出し", "日本語-見出し", "日本語-見出し"),
    ("Ünï_côdé  double  space", "ünï_côdé--double--space", "uni-code-double-space"),
    ("a.b.c", "abc", "a-b-c"),
    ("Emoji 🎉 party", "emoji--party", "emoji-🎉-party"),
    ("½ price", "-price", "_1\u20442-price"),
    ("-dash-", "-dash-", "dash"),
    ("100% sure", "100-sure", "_100-sure"),
    ("don\u2019t \u201cquote\u201d", "dont-quote", "don-t-quote"),
    ("Ελληνικά Ά", "ελληνικά-ά", "ελληνικα-\u03b1"),
    ("été ②", "été-", "ete-2"),
]


@pytest.mark.parametrize(("title", "github", "vitepress"), SLUGS)
def test_slugs_are_those_of_the_generators(title: str, github: str, vitepress: str) -> None:
    assert (slug(title, "github"), slug(title, "vitepress")) == (github, vitepress)


@pytest.mark.parametrize(
    ("title", "expected"),
    [("What's next?", "whats-next"), ("C++ & more", "c--more"), ("½ price", "-price"), ("Größe_1", "größe_1")],
)
def test_slugs_of_hugo(title: str, expected: str) -> None:
    assert slug(title, "hugo") == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [("1.2 What's new?", "whats-new"), ("is.na() & Co_2", "is.na-co_2"), ("Größe  1", "größe-1"), ("2.0", "")],
)
def test_slugs_of_pandoc(title: str, expected: str) -> None:
    assert slug(title, "pandoc") == expected
    page = markdown_sections.parse("# ?\n\n## 2.0\n", ChunkingOptions(slugs="pandoc"))
    assert [section.anchor for section in page.sections] == ["section", "section-1"]


def test_equal_headings_are_counted_and_an_own_id_wins() -> None:
    page = markdown_sections.parse("# ?\n\n## A\n\n## A\n\n## B {#own}\n", ChunkingOptions(slugs="hugo"))
    assert [section.anchor for section in page.sections] == ["heading", "a", "a-1", "own"]


ADDRESSES: list[tuple[Rule, str, dict[str, object], str | None]] = [
    ("github", "guides/a b.md", {}, "guides/a%20b.md"),
    ("vitepress", "index.md", {}, ""),
    ("vitepress", "guide/index.md", {}, "guide/"),
    ("vitepress", "guide/what-is.md", {}, "guide/what-is.html"),
    ("hugo", "_index.md", {}, ""),
    ("hugo", "en/_index.md", {}, ""),
    ("hugo", "en/docs/a.md", {}, "docs/a/"),
    ("hugo", "de/docs/en/a.md", {}, "de/docs/en/a/"),
    ("hugo", "Getting Started/_index.md", {}, "getting-started/"),
    ("hugo", "getting-started/Quick Start.md", {}, "getting-started/quick-start/"),
    ("hugo", "posts/bundle/index.md", {}, "posts/bundle/"),
    ("hugo", "posts/a.md", {"slug": "Other Name"}, "posts/other-name/"),
    ("hugo", "posts/a.md", {"url": "/elsewhere/"}, "elsewhere/"),
    ("hugo", "posts/a.md", {"draft": True}, None),
    ("docusaurus", "intro.md", {}, "intro"),
    ("docusaurus", "01-intro.md", {}, "intro"),
    ("docusaurus", "02 - Guides/03_setup.mdx", {}, "Guides/setup"),
    ("docusaurus", "2021-11-foo.md", {}, "2021-11-foo"),
    ("docusaurus", "7.0-notes.md", {}, "7.0-notes"),
    ("docusaurus", "guides/index.md", {}, "guides/"),
    ("docusaurus", "guides/README.md", {}, "guides/"),
    ("docusaurus", "01-guides/guides.md", {}, "guides/"),
    ("docusaurus", "guides/a.md", {"slug": "/"}, ""),
    ("docusaurus", "guides/a.md", {"slug": "/top"}, "top"),
    ("docusaurus", "guides/a.md", {"slug": "beside"}, "guides/beside"),
    ("docusaurus", "guides/01-a.md", {"id": "own"}, "guides/own"),
    ("docusaurus", "guides/_partial.mdx", {}, None),
]


@pytest.mark.parametrize(("rule", "path", "metadata", "expected"), ADDRESSES)
def test_addresses(rule: Rule, path: str, metadata: dict[str, object], expected: str | None) -> None:
    found = address(SiteOptions(BASE, rule), path, metadata)
    assert found == (None if expected is None else BASE + expected)
    assert address(SiteOptions("", rule), path, metadata) is None


@pytest.mark.parametrize("rule", ["directory", "html"])
@pytest.mark.parametrize("path", ["index.md", "README.md", "a.md", "guide/index.md", "guide/README.md", "guide/b c.md"])
def test_addresses_are_those_of_mkdocs(rule: Rule, path: str) -> None:
    files = pytest.importorskip("mkdocs.structure.files")
    made = files.File(path, "docs", "site", use_directory_urls=rule == "directory").url
    assert address(SiteOptions(BASE, rule), path, {}) == BASE + ("" if made == "./" else made)


def test_results_of_a_folder_carry_urls(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"guide/start.md": "# Start\n\n## What's next?\n\nQuench the lamp.\n" + "x " * 300})
    index = tmp_path / "i.db"

    def url(site: SiteOptions) -> str | None:
        with anvil.open(config=Config(docs=str(docs), index=str(index), site=site), provider="none") as opened:
            report = opened.index()
            assert report.outcome == "built" and opened.index().outcome == "unchanged"
            assert opened.list_pages().pages[0].url in (None, BASE + "guide/start.html", BASE + "guide/start/")
            return opened.get_section("guide/start.md", "Start > What's next?").metadata.url

    assert url(SiteOptions()) is None
    assert url(SiteOptions(BASE, "vitepress")) == BASE + "guide/start.html#what-s-next"
    assert url(SiteOptions(BASE, "directory")) == BASE + "guide/start/#whats-next"
    with anvil.open(docs, index, "none") as opened:  # what changes is read as the index was made
        write(docs, {"guide/new.md": "# New\n"})
        assert opened.get_section("guide/new.md", "New").metadata.url == BASE + "guide/new/#new"


@pytest.mark.parametrize("site", [{"url": "example.org"}, {"url": "https://e.org/?x"}, {"rule": "jekyll"}])
def test_what_makes_no_sense_is_refused(site: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="site"):
        SiteOptions(**site)
