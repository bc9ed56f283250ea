"""Addresses of pages: all spellings have one key, and the site's base follows from what the pages say."""

from __future__ import annotations

import pytest

from anvil.formats import version_names
from anvil.sites import page_addresses, site_listing


@pytest.mark.parametrize(
    "address", ["guide/x/", "guide/x", "guide/x.html", "guide/x/index.html", "/guide/x/", "guide%2Fx"]
)
def test_all_spellings_have_one_key(address: str) -> None:
    assert page_addresses.key(address) == "guide/x"


@pytest.mark.parametrize(
    ("path", "address"),
    [("index.html", ""), ("a/index.html", "a/"), ("a.html", "a.html"), ("ä b.html", "%C3%A4%20b.html")],
)
def test_the_address_of_a_file(path: str, address: str) -> None:
    assert page_addresses.of_file(path) == address


@pytest.mark.parametrize(
    ("named", "base"),
    [
        ({"index.html": "https://x.org/d/", "a/index.html": "https://x.org/d/a/"}, "https://x.org/d/"),
        ({"a.html": "https://x.org/a"}, "https://x.org/"),
        ({"a/index.html": "https://x.org//d//a"}, "https://x.org/d/"),
        ({"a.html": "https://x.org/", "b.html": "https://x.org/"}, ""),
        ({"a.html": "https://x.org/a", "b.html": "https://y.org/b"}, ""),
        ({"a.html": "/a"}, ""),
        ({}, ""),
    ],
)
def test_the_base_is_what_most_pages_say(named: dict[str, str], base: str) -> None:
    assert page_addresses.base_of(named) == base


def test_an_address_within_the_site() -> None:
    assert page_addresses.within("https://x.org/d/a/", "https://x.org/d/") == "a/"
    assert page_addresses.within("https://www.x.org/d", "https://x.org/d/") == ""
    assert page_addresses.within("https://x.org/e/a/", "https://x.org/d/") is None
    assert page_addresses.within("https://y.org/d/a/", "https://x.org/d/") is None


def test_a_sitemap_below_a_folder() -> None:
    files = {"": "index.html", "a": "a/index.html", "b": "b.html"}
    named = site_listing.locations(
        b"<urlset><url><loc>https://x.org/docs/</loc></url><url><loc>\n https://x.org/docs/a/?x=1&amp;y </loc></url>"
        b"<url><loc><![CDATA[https://x.org/docs/b]]></loc></url><url><loc>https://x.org/blog/</loc></url></urlset>"
    )
    assert site_listing.file_addresses(named, files) == {
        "index.html": "https://x.org/docs/",
        "a/index.html": "https://x.org/docs/a/?x=1&y",
        "b.html": "https://x.org/docs/b",
    }


def test_the_version_of_a_page() -> None:
    assert version_names.version_of("de/1.2/a/index.html", {"de/1.2"}) == "1.2"
    assert version_names.version_of("1.2/index.html", {"1.2"}) == "1.2"
    assert version_names.version_of("guide/1.2.html", {"1.2"}) is None


def test_each_component_of_antora_has_versions() -> None:
    folders = ["core/1.2", "core/2", "core/latest", "news/1.3", "news/2", "de/1.2", "de/1.3"]
    paths = [f"{folder}/{name}.html" for folder in folders for name in ("index", "api/a", "api/b")]
    assert version_names.version_folders([*paths, "core/api/index.html", "web/1.0/index.html"]) == set(folders)
