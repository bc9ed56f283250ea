"""The Markdown that an HTML file names: paths within the site, on all systems, and its words."""

from __future__ import annotations

import ntpath

import pytest

from anvil.sites import html_page


def named(href: str) -> tuple[str, ...]:
    return html_page.linked_twins(f'<link rel="alternate" type="text/markdown" href="{href}">'.encode(), "a/b.html")


@pytest.mark.parametrize(
    ("href", "paths"),
    [
        ("b.md", ("a/b.md", "b.md")),
        ("/docs/a/b.md", ("docs/a/b.md", "a/b.md", "b.md")),
        ("/caf%C3%A9%20(1).md", ("caf\xe9 (1).md",)),
        ("https://example.com/b.md?x=1:2", ("b.md",)),
    ],
)
def test_the_paths_of_a_link(href: str, paths: tuple[str, ...]) -> None:
    assert named(href) == paths


@pytest.mark.parametrize(
    "href",
    [
        "/%5C%5Cevil%5Cshare%5Cnotes.md",
        "/\\\\evil\\share\\notes.md",
        "/docs/%5C%5Cevil%5Cshare%5Cnotes.md",
        "/C:%5CUsers%5Cme%5Cnotes.md",
        "/C:/Users/me/notes.md",
        "/docs/C%3Anotes.md",
        "/..%5C..%5Cnotes.md",
        "/%2e%2e%5Cnotes.md",
        "/index.html:notes.md",
        "/notes%00.md",
        "/&#92;&#92;evil&#92;share&#92;notes.md",
    ],
)
def test_a_link_to_another_folder_of_windows_has_no_path(href: str) -> None:
    assert named(href) == ()


@pytest.mark.parametrize(
    "href", ["b.md", "/docs/a/b.md", "//evil/share/b.md", "////evil/share/b.md", "/%2F%2Fevil/b.md"]
)
def test_a_path_on_windows_is_in_the_site(href: str) -> None:
    assert named(href)
    for path in named(href):
        file = ntpath.normpath(ntpath.join("C:\\site", *path.split("/")))
        assert file.startswith("C:\\site\\")


def test_marks_and_links_do_not_separate_words_and_images_do() -> None:
    line = "[int](a.md)s, un[`happy`](x)ly, [**b**](c)d [![sun](a.png)](b)rise\\[no](x)"
    assert html_page.markdown_words(line) == ["ints", "unhappyly", "bd", "sun", "rise", "no"]
