"""Pages taken apart: spans, lines, titles, tasks; and what holds for any text whatever."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.settings.schema import ChunkingOptions
from anvil.text.markdown_sections import parse
from anvil.values import ROOT, ParsedPage

SPEC = (Path(__file__).parents[1] / "data" / "commonmark-spec-0.31.2.txt").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^`{32} example\n(.*?)^\.\n.*?^`{32}$", SPEC, re.MULTILINE | re.DOTALL)
LINES = [
    "# A",
    "## A",
    "## A [2]",
    "A\n=",
    "#",
    "text",
    "- [ ] a",
    "  - [x] b",
    "```",
    "    c",
    "> # q",
    "- - 1. x",
    "| a |\n|---|",
    "<!--",
    "-->",
    "---",
    "+++",
    "a: 1",
    "",
    "\ufeff",
    "\x0c",
    "\u2028",
    "e\u0301\r",
    "\t",
    "# {#x}",
    "[a]: b",
    "!!! n",
]
markdown_text = st.lists(st.sampled_from(LINES)).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(lines))
)
any_text = st.one_of(st.text(), markdown_text)


def check(source: str, page: ParsedPage) -> None:
    """What is promised of every page."""
    assert source.removeprefix("\ufeff").endswith(page.text)
    front = source.removeprefix("\ufeff")[: len(source.removeprefix("\ufeff")) - len(page.text)]
    assert not front or front[:3] in ("---", "+++")
    assert page.first_line == 1 + len(re.findall(r"\r\n|\r|\n", front))
    for spans in (page.sections, page.blocks):
        if not spans:
            assert not (page.text.strip() if spans is page.sections else page.text)
            continue
        assert [spans[0].start, *(span.end for span in spans)] == [
            *(span.start for span in spans),
            len(page.text),
        ]
        assert all(span.start < span.end for span in spans)
    assert {section.start for section in page.sections} <= {block.start for block in page.blocks}
    paths = [section.heading_path for section in page.sections]
    assert len(set(paths)) == len(paths)
    assert [section.ordinal for section in page.sections] == list(range(len(paths)))
    lines = [1] + [found.end() for found in re.finditer(r"\r\n|\r|\n", page.text)]
    for section in page.sections:
        before = len(re.findall(r"\r\n|\r|\n", page.text[: section.start]))
        within = len(re.findall(r"\r\n|\r|\n", page.text[section.start : section.end].rstrip("\r\n") + "x"))
        assert section.start_line == page.first_line + before
        assert section.start_line is not None and section.end_line is not None
        assert section.start_line + within <= section.end_line + 1 <= page.first_line + len(lines)
        assert (section.heading_level == 0) == (section.heading_path == ROOT)
    for task in page.boxes:
        assert task.heading_path in paths


@given(any_text)
@settings(max_examples=300, deadline=None)
def test_promises_hold_for_any_text(source: str) -> None:
    page = parse(source)
    check(source, page)
    assert page == parse(source)


def test_promises_hold_for_the_examples_of_commonmark() -> None:
    assert len(EXAMPLES) > 600
    for source in [SPEC, *EXAMPLES]:
        check(source, parse(source))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_change_offsets_only(end: str) -> None:
    source = "---\na: 1\n---\n\n# A\ntext\n\nB\n---\n- [ ] do\n".replace("\n", end)
    page = parse(source)
    check(source, page)
    assert [(s.heading_path, s.start_line, s.end_line) for s in page.sections] == [
        ("A", 4, 7),
        ("A > B", 8, 10),
    ]
    assert page.boxes[0].line == 10


def test_tabs_marks_and_a_missing_last_line_end() -> None:
    page = parse("\ufeff#\tA\t##\nx\n\n\t# code\n## B")
    assert [(s.title, s.start_line, s.end_line) for s in page.sections] == [("A", 1, 4), ("B", 5, 5)]
    assert page.text.startswith("#\tA")


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("---\ntitle: Given\n---\n# H1\n", "Given"),
        ("---\ntitle: 2.5\n---\n# H1\n", "2.5"),
        ("---\ntitle: [a]\n---\n# H1\n", "H1"),
        ("---\ntitle: true\n---\n# H1\n", "H1"),
        ("---\ntitle: ''\n---\n# H1\n", "H1"),
        ("## H2\n\n#\n\n# `H1`\n", "H1"),
        ("## H2\n", None),
        ("", None),
        ("<div>\n<h1 align=center><code>just</code> &amp; more</h1>\n</div>\n\n## H2\n\n# H1\n", "just & more"),
        ("<h1\nid='x'>\n<img src=a.svg alt='Fiber'>\n</h1>\n\n## H2\n", "Fiber"),
        (f"<H1><img src={'a' * 3000}>Long</H1>", "Long"),
        ("<h1><img alt></h1>\n\n# H1\n", "H1"),
        ("<!-- <h1>Not shown</h1> -->\n`<h1>code</h1>`\n\n```html\n<h1>code</h1>\n```\n\n# H1\n", "H1"),
        ("## H2\n\n<h1>Below</h1>\n", None),
        ("<h1>Open\n\n# H1\n", "H1"),
    ],
)
def test_the_title(source: str, title: str | None) -> None:
    assert parse(source).title == title


def test_titles_know_the_references_of_the_page() -> None:
    page = parse("# [Unreleased]\n\n# [Not defined] [^1]\n\n[unreleased]: /x\n\n[^1]: note\n")
    assert [section.title for section in page.sections] == ["Unreleased", "[Not defined]"]


def test_a_footnote_mark_behind_a_heading_is_a_word_of_its_title_and_part_of_its_anchor() -> None:
    (section,) = parse("## `run`<sup>1.2</sup>\n").sections
    assert (section.title, section.anchor) == ("run 1.2", "run12")


def test_anchors_of_both_styles() -> None:
    source = "# Über uns\n\n## Über uns\n\n## Own {#here}\n\n## here\n"
    assert [s.anchor for s in parse(source).sections] == ["über-uns", "über-uns-1", "here", "here-1"]
    assert [s.anchor for s in parse(source, ChunkingOptions(slugs="mkdocs")).sections] == [
        "uber-uns",
        "uber-uns_1",
        "here",
        "here_1",
    ]


def test_tasks() -> None:
    source = (
        "---\na: 1\n---\n- [ ] before any **heading**\n\n# A\n\n* [x] done\n  on two lines\n"
        "  + [X] nested\n\n1. [ ] numbered `code`\n\n"
        "> - [ ] quoted\n\n```\n- [ ] fenced\n```\n\n    - [ ] indented code\n\n"
        "- item\n\n      - [ ] code in an item\n\n- [] none\n- [y] none\n- [ ]none\n- [ ]\n- text [ ] none\n"
        "-\n  - [ ] after a bare marker\n\n[ ] none\n\n## B\n- [ ] last\n"
    )
    page = parse(source)
    assert source.split("\n")[31] == "  - [ ] after a bare marker"
    boxed = [task for task in page.boxes if task.mark in (" ", "x", "X")]
    others = {task.line: task.mark for task in page.boxes if task not in boxed}
    assert others == {22: "", 26: "", 27: "y", 28: "", 29: "", 30: ""}
    assert [(task.line, task.text, task.mark != " ", task.heading_path) for task in boxed] == [
        (4, "before any heading", False, "(root)"),
        (8, "done on two lines", True, "A"),
        (10, "nested", True, "A"),
        (12, "numbered code", False, "A"),
        (14, "quoted", False, "A"),
        (32, "after a bare marker", False, "A"),
        (37, "last", False, "A > B"),
    ]


def test_break_points() -> None:
    source = "# A\n\ntext\n\n```\n\n```\n\n- a\n\n  b\n- c\n\n| t |\n|---|\n\n    code\n\n<p>\n</p>\n"
    page = parse("\n" + source)
    parts = [(page.text[block.start : block.end], block.atomic) for block in page.blocks]
    assert parts == [
        ("\n# A\n\n", False),
        ("text\n\n", False),
        ("```\n\n```\n\n", True),
        ("- a\n\n  b\n", False),
        ("- c\n\n", False),
        ("| t |\n|---|\n\n", True),
        ("    code\n\n", True),
        ("<p>\n</p>\n", True),
    ]


def test_headings_after_fifty_thousand_are_text_of_the_last_section() -> None:
    page = parse("# a\n" * 50_000 + "## b\n\nEnd.\n")
    assert len(page.sections) == 50_000
    assert page.text[page.sections[-1].start : page.sections[-1].end] == "# a\n## b\n\nEnd.\n"
    assert len(parse("# a\n" * 49_999 + "## b\n").sections) == 50_000


def test_ten_thousand_lines_and_a_million_in_a_fence() -> None:
    page = "# A\n\nSome *text* here, with `code`.\n\n- item\n- [ ] task\n\n| a |\n|---|\n| b |\n" * 1_000
    began = time.thread_time()
    assert len(parse(page).sections) == 1_000
    assert time.thread_time() - began < 2
    began = time.thread_time()
    parsed = parse("# A\n```\n" + "# x\n" * 1_000_000)
    assert time.thread_time() - began < 20
    assert [block.atomic for block in parsed.blocks] == [False, True]
    assert parsed.sections[0].end_line == 1_000_002
