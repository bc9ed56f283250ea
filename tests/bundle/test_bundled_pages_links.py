"""Where links lead: in a documentation folder by the rules of its generator, in a site as in a browser."""

from __future__ import annotations

import pytest

from anvil.bundle.bundled_pages import PageOrAddress, SiteTargets, SourceTargets
from anvil.documents.repository_files import FileTree
from anvil.lint.link_targets import Site, SiteRules
from anvil.lint.linted_page import LintPage
from anvil.settings.schema import SiteOptions
from anvil.site_markdown.paths_and_links import SitePlace
from anvil.text import references

FILES = {
    "": {"docs": True, "src": True},
    "docs": {"index.md": False, "guide": True, "a.png": False},
    "src": {"x.py": False},
}
FILES["docs/guide"] = {"use.md": False, "index.md": False}


def sources(rules: SiteRules, url: str = "") -> SourceTargets:
    paths = ("index.md", "guide/use.md", "guide/index.md")
    pages = {path: LintPage(path, references.read(""), ()) for path in paths}
    files = FileTree("docs", FILES.get, lambda path: None)
    return SourceTargets(Site(pages, rules, files), SiteOptions(url))


MKDOCS = SiteRules("mkdocs", "directory", content="docs")


@pytest.mark.parametrize(
    ("target", "destination"),
    [
        ("../index.md#top", PageOrAddress("index.md")),
        ("use.md", PageOrAddress("guide/use.md")),
        ("../", PageOrAddress("index.md")),
        ("/guide/use", PageOrAddress("guide/use.md")),
        ("./use.html", PageOrAddress("guide/use.md")),
        ("../a.png", PageOrAddress(url="https://x.test/d/a.png")),
        ("/made/by-script/", PageOrAddress(url="https://x.test/d/made/by-script/")),
        ("../../src/x.py", PageOrAddress()),
        ("https://else.test/", PageOrAddress(url="https://else.test/")),
        ("mailto:a@b.test", PageOrAddress(url="mailto:a@b.test")),
        ("#part", PageOrAddress("guide/use.md")),
        ("gone.md", PageOrAddress()),
    ],
)
def test_links_of_source_files(target: str, destination: PageOrAddress) -> None:
    assert sources(MKDOCS, "https://x.test/d").destination("guide/use.md", target) == destination


def test_a_link_from_the_top_leads_into_the_documentation_or_beside_it() -> None:
    targets = sources(
        SiteRules("docusaurus", "docusaurus", content="docs", published_at="docs"), "https://x.test/acme/docs/"
    )
    assert targets.destination("index.md", "/docs/guide/use") == PageOrAddress("guide/use.md")
    assert targets.destination("index.md", "/docs/made") == PageOrAddress(url="https://x.test/acme/docs/made")
    assert targets.destination("index.md", "/img/a.png") == PageOrAddress(url="https://x.test/acme/img/a.png")


def test_where_the_site_is_not_known_a_file_has_no_address() -> None:
    assert sources(MKDOCS).destination("guide/use.md", "../a.png") == PageOrAddress()


PLACES = {
    "index.md": SitePlace("index.html", "", ""),
    "guide/use.md": SitePlace("guide/use/index.html", "guide/use/", "guide/use/"),
    "api/x.html": SitePlace("api/x.html", "api/x.html", "api/x.html"),
}


@pytest.mark.parametrize(
    ("target", "destination"),
    [
        ("../../", PageOrAddress("index.md")),
        ("../../api/x.html#f", PageOrAddress("api/x.html")),
        ("/d/api/x", PageOrAddress("api/x.html")),
        ("https://x.test/d/guide/use/", PageOrAddress("guide/use.md")),
        ("../../_images/a.png", PageOrAddress(url="https://x.test/d/_images/a.png")),
        ("/other/", PageOrAddress(url="https://x.test/other/")),
        ("https://else.test/a", PageOrAddress(url="https://else.test/a")),
        ("mailto:a@b.test", PageOrAddress(url="mailto:a@b.test")),
        ("http://[", PageOrAddress(url="http://[")),
        ("#part", PageOrAddress(url="#part")),
    ],
)
def test_links_of_a_built_site(target: str, destination: PageOrAddress) -> None:
    assert SiteTargets(PLACES, "https://x.test/d/", ()).destination("guide/use.md", target) == destination


def test_links_of_a_site_without_an_address() -> None:
    targets = SiteTargets(PLACES, "", ["[One](/d/api/x.html) [two](/d/guide/use/)"])
    assert targets.destination("guide/use.md", "/d/api/x") == PageOrAddress("api/x.html")
    assert targets.destination("guide/use.md", "../../api/x.html") == PageOrAddress("api/x.html")
    assert targets.destination("guide/use.md", "../../a.png") == PageOrAddress()
    assert targets.destination("guide/use.md", "//else.test/a") == PageOrAddress(url="//else.test/a")
