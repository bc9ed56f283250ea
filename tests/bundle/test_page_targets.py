"""Where links lead: in a documentation folder by the rules of its generator, in a site as in a browser."""

from __future__ import annotations

import pytest

from anvil.bundle.page_targets import Destination, SiteTargets, SourceTargets
from anvil.documents.file_tree import FileTree
from anvil.lint.link_targets import Site, SiteRules
from anvil.lint.linted_page import LintPage
from anvil.markdown.twins import SitePlace
from anvil.settings.schema import SiteOptions
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
        ("../index.md#top", Destination("index.md")),
        ("use.md", Destination("guide/use.md")),
        ("../", Destination("index.md")),
        ("/guide/use", Destination("guide/use.md")),
        ("./use.html", Destination("guide/use.md")),
        ("../a.png", Destination(url="https://x.test/d/a.png")),
        ("/made/by-script/", Destination(url="https://x.test/d/made/by-script/")),
        ("../../src/x.py", Destination()),
        ("https://else.test/", Destination()),
        ("mailto:a@b.test", Destination()),
        ("#part", Destination("guide/use.md")),
        ("gone.md", Destination()),
    ],
)
def test_links_of_source_files(target: str, destination: Destination) -> None:
    assert sources(MKDOCS, "https://x.test/d").destination("guide/use.md", target) == destination


def test_where_the_site_is_not_known_a_file_has_no_address() -> None:
    assert sources(MKDOCS).destination("guide/use.md", "../a.png") == Destination()


PLACES = {
    "index.md": SitePlace("index.html", "", ""),
    "guide/use.md": SitePlace("guide/use/index.html", "guide/use/", "guide/use/"),
    "api/x.html": SitePlace("api/x.html", "api/x.html", "api/x.html"),
}


@pytest.mark.parametrize(
    ("target", "destination"),
    [
        ("../../", Destination("index.md")),
        ("../../api/x.html#f", Destination("api/x.html")),
        ("/d/api/x", Destination("api/x.html")),
        ("https://x.test/d/guide/use/", Destination("guide/use.md")),
        ("../../_images/a.png", Destination(url="https://x.test/d/_images/a.png")),
        ("/other/", Destination(url="https://x.test/other/")),
        ("https://else.test/a", Destination()),
        ("mailto:a@b.test", Destination()),
        ("http://[", Destination()),
        ("#part", Destination()),
    ],
)
def test_links_of_a_built_site(target: str, destination: Destination) -> None:
    assert SiteTargets(PLACES, "https://x.test/d/", ()).destination("guide/use.md", target) == destination


def test_links_of_a_site_without_an_address() -> None:
    targets = SiteTargets(PLACES, "", ["[One](/d/api/x.html) [two](/d/guide/use/)"])
    assert targets.destination("guide/use.md", "/d/api/x") == Destination("api/x.html")
    assert targets.destination("guide/use.md", "../../api/x.html") == Destination("api/x.html")
    assert targets.destination("guide/use.md", "../../a.png") == Destination()
