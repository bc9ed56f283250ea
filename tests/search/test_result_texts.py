"""Which section a result names, where several share a chunk; and that its address leads to the text that matched."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import anvil
from anvil.results import Hit, Mode
from anvil.search.result_texts import is_link_list, with_targets
from anvil.settings.schema import ChunkingOptions
from anvil.wording import full_heading
from benchmarks import section_hits
from tests.conftest import PAGES, write

GLOSSARY = """\
---
title: Glossary of ropes
url: x
---
Words that sailors use.

## Anchor

A hook that holds a ship.

## Euphroe

A block of wood with holes, through which a crowfoot passes. See DEC-0054.

## Gimbal

Rings that keep a compass level. The decision 0054 was about rings.

## Optimising

Set `optimizeDeps` there.

## Anchor

A second meaning: the person who reads the news.
"""
LONG = (
    "# Manual\n\n## Hauling\n\n"
    + "\n\n".join(f"Paragraph {number} tells how rope number {number} is hauled in." for number in range(200))
    + "\n\nAt last the capstan is pawled.\n"
)

Opener = Callable[..., anvil.Anvil]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens a folder of pages, without vectors unless said otherwise."""
    with ExitStack() as stack:

        def make(pages: dict[str, str], provider: str = "none", config: anvil.Config | None = None) -> anvil.Anvil:
            (tmp_path / "docs").mkdir(exist_ok=True)
            found = anvil.open(write(tmp_path / "docs", pages), tmp_path / "i.db", provider, config)
            stack.callback(found.close)
            found.index()
            return found

        yield make


def first(found: anvil.Anvil, question: str, mode: Mode = "hybrid", max_chars: int = 1_000_000) -> Hit:
    return found.search(question, 1, mode=mode, max_chars=max_chars).results[0]


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("what is a euphroe?", "Euphroe"),
        ("anchor", "Anchor"),
        ("who reads the news", "Anchor [2]"),
        ("compass rings", "Gimbal"),
        ("DEC-0054", "Euphroe"),
        ("optimize", "Optimising"),
        ("sailors", "(root)"),
    ],
)
def test_a_result_names_the_section_whose_words_match(opened: Opener, question: str, heading: str) -> None:
    found = opened({"glossary.md": GLOSSARY})
    hit = first(found, question)
    place, lines = hit.metadata, GLOSSARY.splitlines(keepends=True)
    section = found.get_section("glossary.md", heading)
    assert (place.heading_path, hit.title) == (heading, "Glossary of ropes")
    assert place.start_line is not None and place.end_line is not None
    assert "".join(lines[place.start_line - 1 : place.end_line]) == section.content
    assert (place.start_line, place.end_line) == (section.metadata.start_line, section.metadata.end_line)
    assert section.content in hit.content and not hit.truncated
    assert place.heading_level == section.metadata.heading_level


def test_what_is_cut_is_of_the_section_that_is_named(opened: Opener) -> None:
    found = opened({"glossary.md": GLOSSARY})
    whole = found.get_section("glossary.md", "Euphroe").content
    for max_chars in (90, 40, 10, 1):
        hit = first(found, "what is a euphroe?", max_chars=max_chars)
        assert hit.metadata.heading_path == "Euphroe" and hit.truncated == (hit.content != whole)
        assert hit.content and hit.content in found.get_section("glossary.md", "Euphroe").content
        assert max_chars > 11 or len(hit.content) <= max_chars


def test_a_part_names_its_section_and_is_not_the_whole(opened: Opener) -> None:
    found = opened({"manual.md": LONG})
    parts = [chunk.heading_path for chunk in found.get_page("manual.md").chunks if "[part" in chunk.heading_path]
    hit = first(found, "capstan pawled")
    assert len(parts) > 1 and hit.metadata.heading_path == "Manual > Hauling" and hit.truncated
    assert "capstan" in hit.content and "capstan" in found.get_section("manual.md", "Manual > Hauling").content
    last_part = found.get_section("manual.md", parts[-1])
    assert "capstan" in last_part.content and hit.metadata.start_line == 209
    assert hit.content == last_part.content == "".join(LONG.splitlines(keepends=True)[hit.metadata.start_line - 1 :])
    assert hit.metadata.end_line == last_part.metadata.end_line == len(LONG.splitlines())
    assert hit.metadata.start_line == last_part.metadata.start_line
    assert hit.metadata.char_count == last_part.metadata.char_count == len(hit.content)
    assert "capstan" not in found.get_section("manual.md", parts[0]).content


def test_the_characters_of_a_hit_are_those_of_the_section_that_it_names(opened: Opener) -> None:
    found = opened({"glossary.md": GLOSSARY, "manual.md": LONG})
    hit = first(found, "what is a euphroe?")
    section = found.get_section("glossary.md", "Euphroe")
    assert len(hit.content) > hit.metadata.char_count == section.metadata.char_count == len(section.content)
    cut = first(found, "what is a euphroe?", max_chars=40)
    assert cut.truncated and cut.metadata == hit.metadata


def test_in_place_of_a_heading_without_text_a_result_names_the_best_section_below_it(opened: Opener) -> None:
    page = (
        "# Notes\n\n## Arrow functions\n\n### Usage\n\nWrite them so.\n\n### Pitfalls\n\n"
        f"{'They have no this of their own. ' * 7}\n\n## Empty\n"
    )
    found = opened({"notes.md": page})
    assert len(found.get_page("notes.md").chunks) == 5
    hits = found.search("arrow functions pitfalls").results
    assert [hit.metadata.heading_path for hit in hits] == [
        "Notes > Arrow functions > Pitfalls",
        "Notes > Arrow functions > Usage",
    ]
    assert first(found, "usage").metadata.heading_path == "Notes > Arrow functions > Usage"
    assert first(found, "empty").metadata.heading_path == "Notes > Empty"


def test_cells_of_a_table_in_html_are_lines_without_indentation(opened: Opener) -> None:
    row = (
        "        <tr>\n            <td><code>path</code></td>\n            <td>A file to import.</td>\n        </tr>\n"
    )
    found = opened({"api.md": f"# Import\n\n<table>\n    <tbody>\n{row}    </tbody>\n</table>\n\n    code()\n"})
    lines = first(found, "import").content.splitlines()
    assert [line.rstrip() for line in lines if line.strip()] == [
        "# Import",
        "path",
        "A file to import.",
        "    code()",
    ]
    assert len(lines) == 12, "each is a line of the file"


def test_a_list_of_links_stands_back_behind_a_section_of_its_page_that_is_nearly_as_good(opened: Opener) -> None:
    links = "".join(f"- [Live queries {number}](live{number}.md)\n" for number in range(8))
    text = f"Live queries tell you of each change. {'A table is watched for you by live queries. ' * 5}"
    found = opened({"guide.md": f"# Guide\n\n## Changes\n\n{text}\n\n## See also\n\n{links}\n"})
    by_words = found.search("live queries", mode="keyword").results
    assert [hit.metadata.heading_path for hit in by_words] == ["Guide > See also", "Guide > Changes"]
    hits = found.search("live queries").results
    assert [hit.metadata.heading_path for hit in hits] == ["Guide > Changes"]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("## See also\n\n- [The other](other.md)\n* **[The next](next.md)**, briefly\n  and more\n", True),
        ("1. [The other](../other/)\n", True),
        ("- [A plugin](https://x.test)\n", False),
        ("- [#12](https://x.test/pull/12) Fix it\n", False),
        ("- [`d98b0c1`](https://x.test/commit/d98b0c1) Fix\n", False),
        ("- [A](a.md) " + "is explained at length " * 5, False),
        ("See:\n\n- [A](a.md)\n", False),
        ("## Heading\n", False),
    ],
)
def test_what_is_a_list_of_links(section: str, expected: bool) -> None:
    assert is_link_list(section) is expected


def test_where_words_say_nothing_the_nearest_window_decides_and_then_the_first_section(opened: Opener) -> None:
    body = "The harbour master writes the tides of the week on a board near the old quay, where all can read them. "
    dough = "Knead flour, water, yeast and salt until the dough is smooth, let it rise, then bake it in a hot oven. "
    sections = [("One", body), ("Two", body), ("Three", dough), ("Four", body)]
    page = "".join(f"## {name}\n\n{text * 9}\n\n" for name, text in sections)
    config = anvil.Config(chunking=ChunkingOptions(min_chunk_size=5000))
    found = opened({"notes.md": page}, "local", config)
    assert len(found.get_page("notes.md").chunks) == 1
    assert first(found, "making bread loaves", "semantic").metadata.heading_path == "Three"
    merged = opened({"notes.md": "", "few.md": "## Uno\n\nShort.\n\n## Due\n\nShort.\n"}, "local")
    assert first(merged, "brevity", "semantic").metadata.heading_path == "Uno"


def test_nobody_reads_root_and_no_breadcrumb_lacks_its_page() -> None:
    assert full_heading("Glossary", "(root)") == "Glossary"
    assert full_heading("Glossary", "(root) [part 1/2]") == "Glossary [part 1/2]"
    assert full_heading("Glossary", "Anchor > Use") == "Glossary > Anchor > Use"
    assert full_heading("Glossary", "Glossary > Anchor") == "Glossary > Anchor"
    assert full_heading("Two\nlines", "A\n::error::b") == "Two lines > A ::error::b"
    assert full_heading("Glossary", "Glossary") == "Glossary"
    assert full_heading("Glossary", "Glossary [part 1/2]") == "Glossary [part 1/2]"
    assert full_heading("Glossary", "Glossary of ropes") == "Glossary > Glossary of ropes"
    assert full_heading(" Glossary\nof ropes ", "Glossary of ropes > A") == "Glossary of ropes > A"


def test_sections_are_named_by_their_own_words_and_their_addresses_hold_the_match(tmp_path: Path) -> None:
    """The short form of ``benchmarks/section_hits.py``, over generated pages of mostly short sections."""
    chance = random.Random(13)
    syllables = ("bar", "kel", "mon", "tiv", "dro", "lum", "pex")
    vocabulary = [f"{a}{b}{c}" for a in syllables for b in "aeiou" for c in syllables]
    pages = dict(PAGES)
    for number in range(7):
        front = f"---\ntitle: Page {number}\n---\n" if number % 2 else f"# Page {number}\n\n"
        sections = []
        for at in range(chance.randint(3, 12)):
            text = " ".join(chance.choices(vocabulary, k=chance.choice((6, 12, 200))))
            level = chance.choice(("##", "##", "###"))
            sections.append(f"{level} Part {chance.randint(1, 4)}\n\nUnique{number}x{at} {text}.\n\n")
        pages[f"generated/{number}.md"] = front + "Before the first heading.\n\n" + "".join(sections)
    tally = section_hits.measured(write(tmp_path / "docs", pages), tmp_path / "i.db")
    assert tally.asked > 40
    assert tally.named >= 0.99 * tally.asked, tally.missed
    assert tally.held == tally.hits > 0


DEFINED = {
    "24": "rope.md",
    "25": "all ropes.md",
    "26": "b_(knot)",
    "the knots": "knots.md#all",
    "bend": "https://bends.example",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "See [a rope][24], [the Knots][] and [bend].",
            "See [a rope](rope.md), [the Knots](knots.md#all) and [bend](h).",
        ),
        ("A [hitch][]: not [a sail][99] of `x[bend]`.", "A hitch: not a sail of `x[bend]`."),
        ("[x] done, [ ] open, see [`furl()`][ship.furl].", "[x] done, [ ] open, see [`furl()`][ship.furl]."),
        ("`[a][24]`, rows[0][24], \\[a][24], ![pic][24].", "`[a][24]`, rows[0][24], \\[a][24], ![pic][24]."),
        ("```\n[a][24]\n```\n[a][24][^1]", "```\n[a][24]\n```\n[a](rope.md)[^1]"),
        ("[a][25], [b][26]", "[a](<all ropes.md>), [b](<b_(knot)>)"),
        ("[a][24](b) [c](d) [bend](e) [bend]: f", "[a][24](b) [c](d) [bend](e) [bend]: f"),
    ],
)
def test_a_link_by_label_has_its_target(text: str, shown: str) -> None:
    assert with_targets(text, lambda: DEFINED) == shown.replace("(h)", "(https://bends.example)")


def test_a_link_whose_definition_is_elsewhere_in_the_page_leads_there(opened: Opener) -> None:
    found = opened(
        {
            "a.md": "# Ship\n\n## Capstan\n\nIt hauls [the cable][1].\n\n## Rest\n\nText.\n\n[1]: cable.md\n",
            "cable.md": "# Cable\n",
        }
    )
    hit = first(found, "capstan hauls")
    assert "It hauls [the cable](cable.md)." in hit.content and (hit.metadata.start_line, hit.metadata.end_line) == (
        3,
        6,
    )
    assert "[the cable][1]" in found.get_section("a.md", "Ship > Capstan").content
    assert "[the cable](cable.md)" in first(found, "capstan hauls", max_chars=60).content


def test_of_equal_scores_the_first_by_path_is_first(opened: Opener) -> None:
    twins = {f"{name}.md": f"# Capstan\n\nIt hauls the cable {name}.\n" for name in ("d", "b", "e", "c")}
    results = opened(twins).search("capstan").results
    assert [hit.metadata.file_path for hit in results] == ["b.md", "c.md", "d.md", "e.md"]
    assert len({hit.score for hit in results}) == 1
