"""``llms.txt`` and its companions, from values alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkdocs_anvil import llms
from mkdocs_anvil.llms import Entry


@pytest.mark.parametrize(
    ("dest", "path"),
    [
        ("index.html", "index.md"),
        ("guide/index.html", "guide/index.md"),
        ("guide.html", "guide.md"),
        ("v1.2/a.b.html", "v1.2/a.b.md"),
    ],
)
def test_markdown_lies_beside_the_page(dest: str, path: str) -> None:
    assert llms.markdown_path(dest) == path


def test_sections_keep_the_order_of_the_navigation_and_the_rest_is_optional() -> None:
    pages = [
        Entry("Loose", None, "l/index.html", None, "", "# Loose"),
        Entry("Home", (), "index.html", None, "Where\nit begins", "# Home"),
        Entry("A [1]", ("Guide", "Deep"), "a b.html", None, "", "# A"),
        Entry("B", ("Guide",), "b.html", None, "", "# B"),
    ]
    found = llms.files(" My\nsite", "", "https://x.test/", pages)
    assert (
        found["llms.txt"]
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
    assert found["llms-full.txt"].startswith("# My site\n\n<!-- l/index.html -->\n\n# Loose\n\n<!-- index.html -->\n")
    assert found["a b.md"] == "# A\n"


@given(
    st.lists(
        st.builds(
            Entry, st.text(), st.none() | st.tuples(st.text()), st.just("p.html"), st.none(), st.text(), st.text()
        )
    )
)
def test_whatever_pages_are_called_there_is_a_link_a_line(pages: list[Entry]) -> None:
    lines = llms.files("x", "y", "", pages)["llms.txt"].split("\n")
    assert sum(bool(re.match(r"- \[[^\[\]]*\]\(p\.md\)", line)) for line in lines) == len(pages)
    assert all(not line or line[:2] in ("# ", "> ", "##", "- ") for line in lines)


def test_a_server_over_the_pages_is_named_above_their_list() -> None:
    found = llms.files("Site", "About it.", "https://x.test/", [], "https://search.x.test/mcp")
    server = "To search these pages, use the MCP server at <https://search.x.test/mcp>."
    assert found["llms.txt"] == f"# Site\n\n> About it.\n\n{server}\n"
    assert server not in found["llms-full.txt"]
