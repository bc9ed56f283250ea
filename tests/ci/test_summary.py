"""The summary of a run, compared with the pages in tests/data that show how it should look."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from anvil.build.report import BuildReport
from anvil.ci import summary
from anvil.ci.runners import visible
from anvil.ci.summary import Contents
from anvil.git_drivers.index_diff import IndexDifference, PageChange, SectionChange
from anvil.values import Changes

DATA = Path(__file__).parents[1] / "data"
NASTY = "a|b\n::error::`x`` <script>*_[l](u)&amp;.md"
REPORT = BuildReport("built", "x", "0" * 64, 41, 296, 331, 6, 1, Changes(), seconds=1.234)
AFTER = {"documents": 41, "sections": 312, "chunks": 296, "windows": 331, "bytes": 2_112_000}
BEFORE = {"documents": 40, "sections": 310, "chunks": 297, "windows": 330, "bytes": 2_100_000}
DIFFERENCE = IndexDifference(
    (
        PageChange("changed", "index.md", tuple(SectionChange("changed", f"Home > {n}") for n in range(8))),
        PageChange("changed", "meta.md", ()),
        PageChange("changed", "mixed.md", (SectionChange("added", "M > New"), SectionChange("removed", "M > Old"))),
        PageChange("moved", "guides/new.md", (SectionChange("changed", "New"),), "guides/old|name.md"),
        PageChange("moved", "guides/same.md", (), "same.md"),
        PageChange("added", NASTY, (SectionChange("added", "A"),)),
        PageChange("removed", "old.md", (SectionChange("removed", "Old"), SectionChange("removed", "Old > Er"))),
    ),
    (("chunking", '{"max_chunk_size":6000}', '{"max_chunk_size":5000}'),),
)
COMMON = ("docs/.anvil/index.db", "docs", "48ba61fc131ec1951505", "3cc14de45525" + "0" * 28)
CASES = {
    "first": Contents(*COMMON, AFTER, None, None, report=REPORT),
    "changed": Contents(*COMMON, AFTER, BEFORE, DIFFERENCE, report=REPORT),
    "unchanged": Contents(*COMMON, AFTER, AFTER, IndexDifference((), ()), report=REPORT),
    "stale": Contents(*COMMON, AFTER, None, None, stale=Changes(("a.md",), (NASTY,), ("gone.md",))),
    "fresh": Contents(*COMMON, AFTER, None, None, stale=Changes()),
}


@pytest.mark.parametrize("name", CASES)
def test_the_summary_looks_as_it_should(name: str) -> None:
    file = DATA / f"summary_{name}.md"
    text = summary.render_index(CASES[name])
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8", newline="\n")
    assert text == file.read_text(encoding="utf-8"), "run with WRITE_GOLDEN=1, look at the page, and commit it"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text("`|\\ \n:<*_[]()&x", max_size=12))
def test_a_code_span_is_one_cell_of_code(text: str) -> None:
    page = summary.table(("a", "b"), [(summary.code(text), "end")])
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    cells = [token.children or [] for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    (span,) = cells[2]
    assert span.type == "code_inline" and span.content.strip() == visible(text).strip()


@pytest.mark.parametrize(
    ("site", "way_out"),
    [
        ({"of_site": True}, "Run `mkdocs build` and commit the index."),
        (
            {"has_site_folder": True, "build": "anvil build --site public"},
            "Build the site, and run `anvil build --site public`.",
        ),
        ({"build": "anvil build --docs notes"}, "Run `anvil build --docs notes` and commit the index."),
    ],
)
def test_the_summary_names_the_command_that_updates_the_index(site: dict[str, Any], way_out: str) -> None:
    contents = Contents(*COMMON, AFTER, None, None, stale=Changes(("a.md",)), **site)
    assert way_out in summary.render_index(contents).splitlines()


def test_pages_are_listed_by_what_happened_to_them() -> None:
    removed, changed = PageChange("removed", "0.md", ()), PageChange("changed", "1.md", ())
    moved, added = PageChange("moved", "2.md", ()), PageChange("added", "3.md", ())
    difference = IndexDifference((removed, changed, moved, added), ())
    text = summary.render_index(Contents(*COMMON, AFTER, BEFORE, difference, report=REPORT))
    assert re.findall(r"^\| .*`(\d)\.md`", text, re.MULTILINE) == ["3", "2", "1", "0"]


def test_long_lists_are_folded_and_very_long_ones_are_cut() -> None:
    many = IndexDifference(tuple(PageChange("added", f"{n:05}.md", ()) for n in range(20_000)), ())
    text = summary.render_index(Contents(*COMMON, AFTER, BEFORE, many, report=REPORT))
    open_rows, folded = text.split("<details><summary>500 more</summary>\n\n| page |")
    assert "`00024.md`" in open_rows and "`00025.md`" not in open_rows
    assert "`00025.md`" in folded and folded.rstrip().endswith(
        "`00524.md` | added | 0 sections |\n\n</details>\n\n… and 19,475 more."
    )
    assert len(summary.code("x" * 9999)) < 200


def test_pages_are_linked_to_their_files_and_the_artifact_is_named() -> None:
    pages = "https://github.test/o/r/blob/0/docs/"
    told = Contents(*COMMON, AFTER, BEFORE, DIFFERENCE, report=REPORT, since="main", pages_url=pages)
    text = summary.render_index(told)
    assert f"| [`index.md`]({pages}index.md) | changed |" in text and "| `old.md` | removed |" in text
    assert "### Changed since `main`" in text and "since `main` |" in text
    targets = re.findall(r"\]\((https://github\.test[^)]*)\)", text)
    assert len(targets) == 6 and all(re.fullmatch(r"[A-Za-z0-9:/._~%-]+", each) for each in targets)
    assert "anvil pull" not in text
    uploaded = summary.render_index(replace(told, artifact=("o/r", "my index`")))
    assert uploaded.endswith("``anvil pull github:o/r 'artifact:my index`'``\n")


def test_settings_that_changed_are_named_without_a_page_that_changed() -> None:
    text = summary.render_index(Contents(*COMMON, AFTER, AFTER, IndexDifference((), (("chunking", "a", "b"),))))
    assert "| setting | was | is |" in text and "| `chunking` | `a` | `b` |" in text
