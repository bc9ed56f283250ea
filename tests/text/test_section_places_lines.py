"""Where the sections of a page stand in its source."""

from __future__ import annotations

import time

import pytest

from anvil.settings.schema import ChunkingOptions
from anvil.text import markdown_sections, section_places
from anvil.text.chunker import chunks


def lines(text: str, source: str, path: str = "page.md") -> list[tuple[int | None, int | None]]:
    page, _ = section_places.with_lines(markdown_sections.parse(text), (), source, path)
    return [(section.start_line, section.end_line) for section in page.sections]


@pytest.mark.parametrize(
    ("path", "source", "line"),
    [
        ("a.md", "intro\n\n## Set `up` [it](x.md) {#it}\n\ntext\n", 3),
        ("a.md", "Set up it\n---------\n", 1),
        ("a.mdx", "<h2 id='x'>Set <b>up</b> it</h2>\n", 1),
        ("a.md", "??? note\n\n    ## Set up it\n", 3),
        ("a.md", "```\n## Set up it\n```\n\n## Set up it :rocket:\n", 5),
        ("a.md", "---\ntitle: 'Set up it'\n---\nText.\n", 2),
        ("a.md", "---\ntitle: Set up it\n---\n\n# Set up it\n", 5),
        ("a.rst", ".. _it:\n\n=========\nSet up it\n=========\n", 4),
        ("a.rst", "# Set up it\n\nSet up it\n~~~~~~~~~\n", 3),
        ("a.adoc", "= Doc\n\n== Set up it\n", 3),
        ("a.org", "* Doc\n** Set up it\n", 2),
        ("a.ipynb", '{"source": [\n  "## Set up it\\n",\n  "text"\n]}\n', 2),
        ("a.md", "## Set it\n\n## Another\n", None),
        ("a.md", "", None),
    ],
)
def test_a_heading_is_found_in_each_markup(path: str, source: str, line: int | None) -> None:
    assert lines("## Set up it\n\nshort\n", source, path)[0][0] == line


def test_a_name_of_an_api_is_found_where_the_source_asks_for_it() -> None:
    text = "# API\n\n## click.echo\n\nx\n\n## Command\n\ny\n\n### Command.run\n\nz\n"
    source = "API\n===\n\n.. autofunction:: echo\n\n.. autoclass:: Command\n   :members:\n"
    assert lines(text, source, "api.rst") == [(1, 3), (4, 4), (6, 7), (None, None)]


def test_equal_headings_are_told_apart_by_their_text() -> None:
    text = "# A\n\n## Fixed\n\nfirst thing here\n\n## Fixed\n\nsecond thing there\n"
    source = (
        "# A\n\n## Fixed\n\nleft out by the site\n\n## Fixed\n\nfirst thing here\n\n## Fixed\n\nsecond thing there\n"
    )
    assert lines(text, source)[1:] == [(7, 10), (11, 13)]


def test_text_without_a_heading_in_the_source_is_found_by_its_lines() -> None:
    text = "The harbour opens at dawn and closes.\n\n# Title\n\nCranes lift the heavy loads with care.\n\n## End\n\nx\n"
    source = text.replace("at dawn", "at\ndawn").replace("# Title", "{{ macro }}").replace("loads with", "loads\nwith")
    assert lines(text, source) == [(1, 4), (6, 7), (9, 11)]


def test_a_part_of_a_long_section_has_its_own_lines() -> None:
    paragraphs = [f"Paragraph {number} tells of the harbour at quite some length." for number in range(20)]
    text = "# Long\n\n" + "\n\n".join(paragraphs) + "\n"
    source = "---\na: 1\n---\n" + text.replace("harbour at", "harbour\nat")
    page = markdown_sections.parse(text)
    _, placed = section_places.with_lines(page, chunks(page, ChunkingOptions(max_chunk_size=400)), source, "page.md")
    whole = source.split("\n")
    assert len(placed) > 2
    for chunk in placed:
        assert chunk.start_line is not None and chunk.end_line is not None
        first, last = chunk.content.split("\n\n")[0], chunk.content.strip().split("\n\n")[-1]
        assert whole[chunk.start_line - 1].removeprefix("# ") in first
        assert last.endswith(whole[chunk.end_line - 1])


def test_hostile_pages_take_no_long_time() -> None:
    began = time.process_time()
    lines("# A\n\n" + "## Same\n\nword\n\n" * 1000, "# A\n\n" + "## Same\n\nother\n\n" * 1000)
    lines(
        "# A\n\n" + "## Nowhere {#x}\n\n" + "words of this section here\n" * 15_000, "another line of text\n" * 15_000
    )
    lines("# A\n", "[" * 2000 + "\n" + "{" * 100_000 + "\n" + "<" * 1900 + "\n" + ".. " * 600)
    assert time.process_time() - began < 3
