"""Which Markdown files pages have, and where links between them lead."""

from __future__ import annotations

import pytest

from anvil.site_markdown import paths_and_links
from anvil.site_markdown.paths_and_links import MarkdownLinks, SiteLinks, SitePlace, lay_out


def place(html: str, address: str | None = None, base: str | None = None) -> SitePlace:
    folder = html.removesuffix("index.html") if html.endswith("index.html") else html
    address = folder if address is None else address
    return SitePlace(html, address, address if base is None else base)


@pytest.mark.parametrize(
    ("html", "address", "files"),
    [
        ("index.html", "", ("index.md",)),
        ("guide/index.html", "guide/", ("guide/index.md", "guide.md")),
        ("guide/index.html", "guide", ("guide/index.md", "guide.md")),
        ("guide.html", "guide.html", ("guide.md", "guide.html.md")),
        ("guide.html", "guide", ("guide.md",)),
        ("v1.2/a.b.htm", "v1.2/a.b.htm", ("v1.2/a.b.md", "v1.2/a.b.htm.md")),
    ],
)
def test_a_page_has_a_file_beside_it_and_one_at_its_address(html: str, address: str, files: tuple[str, ...]) -> None:
    assert lay_out([place(html, address)]).files == {html: files}


def test_two_pages_that_would_have_one_file() -> None:
    layout = lay_out(
        [place("guide/index.html"), place("guide.html", "guide"), place("x.htm", "x"), place("x.html", "x")]
    )
    assert layout.files["guide.html"] == ("guide.md",)
    assert layout.files["guide/index.html"] == ("guide/index.md",)
    assert layout.files["x.htm"] == ("x.md",)
    assert layout.files["x.html"] == ()
    assert layout.refused == {"guide.md": "guide/index.html", "x.md": "x.html"}
    assert lay_out([place("Guide.html", "Guide"), place("guide/index.html")]).files["guide/index.html"] == (
        "guide/index.md",
    )


PLACES = [
    place("index.html"),
    place("guide/index.html"),
    place("guide/first steps/index.html", "guide/first%20steps/"),
    place("api/x.html"),
    place("clean.html", "clean"),
    place("flat/index.html", "flat"),
    place("a/b:c.html", "a/b:c.html"),
]
LINKS = MarkdownLinks(lay_out(PLACES), SiteLinks(PLACES, "https://x.test/docs/"))


@pytest.mark.parametrize(
    ("target", "beside", "behind"),
    [
        ("../api/x.html#f", "../api/x.md#f", "api/x.md#f"),
        ("../api/x#f", "../api/x.md#f", "api/x.md#f"),
        ("first%20steps/", "first%20steps/index.md", "guide/first%20steps/index.md"),
        ("..", "../index.md", "index.md"),
        ("https://x.test/docs/clean?x=1#y", "../clean.md#y", "clean.md#y"),
        ("https://www.x.test/docs/", "../index.md", "index.md"),
        ("//x.test/docs/clean", "../clean.md", "clean.md"),
        ("/docs/clean", "../clean.md", "clean.md"),
        ("./", "index.md", "guide/index.md"),
        ("../a/b:c.html", "../a/b%3Ac.html", "a/b%3Ac.html"),  # which has no Markdown
        ("../a/b:c.html?x=1#y", "../a/b%3Ac.html?x=1#y", "a/b%3Ac.html?x=1#y"),
        # no pages
        ("#part", "#part", "#part"),
        ("?x=1", "?x=1", "?x=1"),
        ("pic.png?v=2", "pic.png?v=2", "guide/pic.png?v=2"),
        ("../assets/", "../assets/", "assets/"),
        ("../../other/", "../../other/", "../other/"),
        ("/elsewhere/x.html", "/elsewhere/x.html", "/elsewhere/x.html"),
        ("https://y.test/docs/clean", "https://y.test/docs/clean", "https://y.test/docs/clean"),
        ("mailto:me@x.test", "mailto:me@x.test", "mailto:me@x.test"),
        ("http://[", "http://[", "http://["),
        ("", "", ""),
    ],
)
def test_links_of_a_page_lead_to_the_same_from_both_files(target: str, beside: str, behind: str) -> None:
    assert LINKS.of("guide/", "guide/index.md")(target) == beside
    assert LINKS.of("guide/", "guide.md")(target) == behind


def test_a_page_without_a_slash_behind_it_may_be_served_with_one() -> None:
    link = LINKS.of("flat", "flat/index.md")
    assert link("../clean") == "../clean.md"  # from flat/
    assert link("clean") == "../clean.md"  # from the top


def test_links_to_source_files_lead_to_the_markdown_of_their_pages() -> None:
    places = [place("guide/a/index.html", base="guide/a.md"), place("b/index.html", base="b.md")]
    sources = {"guide/a.md": "guide/a/index.html", "b.md": "b/index.html"}
    links = MarkdownLinks(lay_out(places), SiteLinks(places, sources=sources))
    link = links.of("guide/a.md", "guide/a/index.md")
    assert link("../b.md#x") == "../../b/index.md#x"
    assert link("img/pic.png") == "../img/pic.png"
    assert link("gone.md") == "../gone.md"


def test_the_path_of_a_site_is_known_from_its_links() -> None:
    places = [place("index.html"), place("guide/index.html"), place("api/x.html")]
    texts = ["[One](/docs/guide/), [two](/docs/api/x.html)", "[three](/docs/), [four](x), ![five](/pic.png)"]
    assert paths_and_links.base_path(texts, places) == "/docs/"
    assert paths_and_links.base_path(["[One](/guide/), [two](/api/x), [three](/download)"], places) == "/"
    assert paths_and_links.base_path([], places) == "/"
    links = MarkdownLinks(lay_out(places), SiteLinks(places, base_path="/docs/"))
    assert links.of("guide/", "guide.md")("/docs/api/x.html") == "api/x.md"
