"""Titles that say something."""

from __future__ import annotations

from pathlib import Path

import pytest

import anvil
from anvil.sites.html_page import read_page
from anvil.text.headings import page_title
from tests.conftest import write


@pytest.mark.parametrize(
    ("path", "given", "headings", "title"),
    [
        ("vmauth/README.md", None, (), "vmauth"),
        ("vmauth/README.md", "README", ((1, "README"),), "vmauth"),
        ("a/vmauth/index.md", "Index", ((1, "Index"), (2, "Use")), "vmauth"),
        ("vmauth/README.md", "vmauth, the proxy", ((1, "vmauth, the proxy"),), "vmauth, the proxy"),
        ("gocui/README.md", "Gotcha", ((2, "Install"), (1, "Gotcha")), "gocui"),
        ("guide.md", "Gotcha", ((2, "Install"), (1, "Gotcha")), "Gotcha"),
        ("README.md", "Gotcha", ((2, "Install"), (1, "Gotcha")), "Gotcha"),
        ("README.md", None, ((2, "Install"),), "Install"),
        ("README.md", None, (), "README"),
        ("skills/theme-factory/SKILL.md", None, ((2, "Install"),), "theme-factory"),
        ("SKILL.md", None, (), "SKILL"),
        ("guide/setup.md", None, (), "setup"),
        ("pages/Board___Action Bar.md", None, (), "Board/Action Bar"),  # of Logseq
        ("api/index.html", None, (), "api"),
    ],
)
def test_the_title_of_a_page(path: str, given: str | None, headings: tuple[tuple[int, str], ...], title: str) -> None:
    assert page_title(path, given, headings) == title


def test_a_folder_of_markdown_has_titles_that_say_something(tmp_path: Path) -> None:
    pages = {"vmauth/README.md": "Text only.\n", "cache/index.md": "# Index\n\nText.\n", "a.md": "# A\n"}
    with anvil.open(write(tmp_path / "docs", pages), provider="none") as opened:
        listed = {page.file_path: page.title for page in opened.list_pages().pages}
        assert listed == {"a.md": "A", "cache/index.md": "cache", "vmauth/README.md": "vmauth"}
        assert opened.search("vmauth").results[0].title == "vmauth"


@pytest.mark.parametrize(
    ("head", "title"),
    [("<title>Cranes - Harbour</title>", "Cranes"), ("<title>index - Harbour</title>", "README")],
)
def test_a_page_of_html_with_a_heading_that_says_nothing_is_called_by_its_title(head: str, title: str) -> None:
    html = f"<html><head>{head}</head><body><main><h1>README</h1><p>x</p></main></body></html>"
    assert read_page(html).facts.title == title
