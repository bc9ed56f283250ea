"""Pages that real generators made, and the Markdown that they give. ``tests/data/sites/README.md`` has their origin.

``WRITE_GOLDEN=1 pytest tests/sites/test_html_page.py`` writes the Markdown.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from anvil.sites import html_tree
from anvil.sites.html_page import read_page
from anvil.text.markdown_sections import parse
from tests.support.html_words import lost_and_invented

FOLDER = Path(__file__).parents[1] / "data" / "sites" / "pages"
PAGES = sorted(path.stem for path in FOLDER.glob("*.html"))


@pytest.mark.parametrize("name", PAGES)
def test_the_markdown_of_a_page(name: str) -> None:
    html = (FOLDER / f"{name}.html").read_bytes()
    page = read_page(html)
    assert page.facts.generator == name.partition("-")[0]
    expected = FOLDER / f"{name}.md"
    if os.environ.get("WRITE_GOLDEN"):
        expected.write_text(page.markdown, encoding="utf-8", newline="\n")
    assert page.markdown == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_lost_or_invented(name: str) -> None:
    html = (FOLDER / f"{name}.html").read_bytes()
    lost, invented = lost_and_invented(html)
    assert not lost and not invented


@pytest.mark.parametrize("name", PAGES)
def test_sections_are_the_headings_of_the_page(name: str) -> None:
    """They have the same order and levels, and each anchor is the id of an element."""
    html = (FOLDER / f"{name}.html").read_bytes()
    page = read_page(html)
    sections = [section for section in parse(page.markdown).sections if section.heading_level]
    assert [section.heading_level for section in sections] == [heading.level for heading in page.headings]
    ids = {element.attributes.get("id") for element in html_tree.select(html_tree.parse(html), "[id]")}
    assert {heading.id for heading in page.headings if heading.id} <= ids
    # Eleventy gives no ids, and Doxygen none to its groups of members
    assert all(heading.id for heading in page.headings if heading.level > 1) or name in ("eleventy", "doxygen")


def test_the_words_of_each_construct() -> None:
    """All generators say the same of the same page, each in the constructs that it has."""
    for name in PAGES:
        markdown = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        if "# The lamp" not in markdown:
            continue
        for text in ("Light it at dusk.", "if 1 < 2 and 3 > 2:", 'Lamp().on()  # "bright" & warm', "Trim the wick"):
            assert text in markdown, (name, text)
        for chrome in ("Edit this page", "Edit page", "Next", "Copy", "On this page", "¶", "​"):
            assert chrome not in markdown, (name, chrome)


@pytest.mark.parametrize(
    ("html", "title", "text"),
    [
        (
            '<meta name="generator" content="mkdocs-1.6, mkdocs-material-9.8"><div class="md-container">'
            '<nav class="md-tabs">Guide</nav><section class="hero"><h1>Harbour</h1><p>Boats at rest.</p></section>'
            '<main><article class="md-content__inner"></article></main><footer class="md-footer">By us</footer></div>',
            "Harbour",
            "# Harbour\n\nBoats at rest.\n",
        ),
        (
            '<meta name="generator" content="VitePress v1.6.4"><div class="VPHome"><div class="VPHero"><h1><span '
            'class="name clip">Harbour</span><span class="text">Boats</span></h1></div><article class="box">'
            '<h2>Lanterns</h2></article><div class="vp-doc"><p>Start.</p></div></div>',
            "Harbour Boats",
            "# Harbour Boats\n\n## Lanterns\n\nStart.\n",
        ),
        (
            '<meta name="generator" content="Hugo 0.152"><header>Docs</header><main class="td-main"><section>'
            '<h1>Harbour</h1><p>Boats at rest.</p></section><div class="td-content"></div></main><footer>Us</footer>',
            "Harbour",
            "# Harbour\n\nBoats at rest.\n",
        ),
    ],
)
def test_the_text_of_a_landing_page(html: str, title: str, text: str) -> None:
    page = read_page(html)
    assert (page.facts.title, page.markdown) == (title, text)


@pytest.mark.parametrize(("content", "description"), [("None of them", "None of them"), ("None", "")])
def test_the_missing_description_of_a_site_by_mkdocs_is_none(content: str, description: str) -> None:
    assert read_page(f'<meta name="description" content="{content}"><main>Text').facts.description == description


@pytest.mark.parametrize(
    "html",
    [
        f"<title>Boats | Nets</title>{'<div class=logo>' * 250}{'x' * 1_000_000}<main>y",
        f"<title>{'Boats | ' * 20_000}Nets</title><main>{'<h2>Lines</h2>' * 40_000}",
        f"<title>Boats</title><main>{'[' * 100_000}",
    ],
)
def test_the_title_of_a_strange_page_takes_linear_time(html: str) -> None:
    """The text of each element in its turn, or each part with each heading, would take a quarter of a minute."""
    began = time.thread_time()
    assert read_page(html).facts.title == "Boats"
    assert time.thread_time() - began < 5
