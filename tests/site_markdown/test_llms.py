"""``llms.txt``, from values alone."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from anvil.site_markdown import llms
from anvil.site_markdown.llms import PublishedSite
from anvil.site_markdown.page_file import MarkdownPage

SITE = PublishedSite("Site", "", "https://x.test/")


def page(path: str, title: str = "", above: tuple[str, ...] | None = None, description: str = "") -> MarkdownPage:
    return MarkdownPage(path, title or path, "", description=description, above=above)


def test_sections_keep_the_order_of_the_navigation_and_the_rest_is_optional() -> None:
    pages = [
        page("l/index.md", "Loose"),
        page("index.md", "Home", (), "Where\nit begins"),
        page("a b.md", "A [1]", ("Guide", "Deep")),
        page("b.md", "B", ("Guide",)),
    ]
    assert (
        llms.list_file(PublishedSite(" My\nsite", "", "https://x.test/"), pages)
        == """\
# My site

## Pages

- [Home](https://x.test/index.md): Where it begins

## Guide

- [A (1)](https://x.test/a%20b.md)
- [B](https://x.test/b.md)

## Optional

- [Loose](https://x.test/l/index.md)
"""
    )


def test_without_a_navigation_the_sections_are_folders_called_as_their_first_page() -> None:
    pages = [
        page("docs/index.md", "Home"),
        page("docs/guide/index.md", "The guide"),
        page("docs/guide/a/index.md", "A"),
        page("docs/alone/index.md", "Alone"),
        page("docs/api/x.md", "X"),
        page("docs/api/y.md", "Y"),
        page("docs/lib.md", "Library"),
        page("docs/lib/z.md", "Z"),
        page("docs/lib/w.md", "W"),
    ]
    text = llms.list_file(PublishedSite("S"), pages)
    sections = [block.split("\n") for block in text.split("\n## ")[1:]]
    assert [(lines[0], len([line for line in lines if line.startswith("- ")])) for lines in sections] == [
        ("Pages", 3),
        ("The guide", 2),
        ("api", 2),
        ("Library", 2),
    ]


def test_a_large_site_gets_shorter_descriptions_and_then_no_deep_pages() -> None:
    def size(count: int, description: str) -> tuple[int, str]:
        pages = [
            page(f"a/b{number % 7}/{number}/index.md", f"P {number}", None, description) for number in range(count)
        ]
        text = llms.list_file(SITE, [page("index.md", "Home"), page("a/index.md", "A"), *pages])
        return len(text.encode()), text

    assert "d" * 300 in size(100, "d" * 300)[1]
    cut = size(300, "d" * 400)[1]
    assert "d" * 99 + "…\n" in cut
    assert "d" * 100 not in cut
    bytes_of_list, text = size(5000, "d" * 400)
    assert bytes_of_list <= 100_000
    assert "[Home]" in text
    assert "- 4,9" in text or "- 7" in text
    assert "more: [llms-full.txt](https://x.test/llms-full.txt)\n" in text


def test_a_server_over_the_pages_is_named_above_their_list() -> None:
    site = PublishedSite("Site", "About it.", "https://x.test/", "https://search.x.test/mcp")
    server = "To search these pages, use the MCP server at <https://search.x.test/mcp>."
    assert llms.list_file(site, []) == f"# Site\n\n> About it.\n\n{server}\n"
    assert server not in llms.head(site)


@given(st.lists(st.builds(page, st.just("p.md"), st.text(), st.none() | st.tuples(st.text()), st.text()), max_size=8))
def test_whatever_pages_are_called_there_is_a_link_a_line(pages: list[MarkdownPage]) -> None:
    lines = llms.list_file(PublishedSite("x", "y"), pages).split("\n")
    assert sum(bool(re.match(r"- \[[^\[\]]*\]\(p\.md\)", line)) for line in lines) == len(pages)
    assert all(not line or line[:2] in ("# ", "> ", "##", "- ") for line in lines)
