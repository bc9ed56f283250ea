"""Anchors follow the headings of the published page, whatever else stands in either."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anvil.settings.schema import ChunkingOptions
from anvil.text import markdown_sections, section_places
from anvil.text.section_places import Heading


def landed(text: str, *rendered: tuple[int, str, str]) -> list[str]:
    """The anchors of the sections of ``text``, whose page has headings (level, id, text)."""
    page = markdown_sections.parse(text, ChunkingOptions(slugs="mkdocs"))
    return [
        section.anchor for section in section_places.with_anchors(page, [Heading(*each) for each in rendered]).sections
    ]


def test_the_page_decides_whatever_the_text_suggests() -> None:
    assert landed("# A\n\n## B\n", (1, "x1", "A"), (2, "x2", "B")) == ["x1", "x2"]


def test_text_before_the_first_heading_has_no_anchor() -> None:
    assert landed("Intro.\n\n# A\n", (1, "a", "A")) == ["", "a"]


def test_headings_that_only_the_page_has_are_passed_over() -> None:
    rendered = [(1, "a", "A"), (2, "note", "In a note"), (2, "b", "B"), (3, "made", "Made by a macro"), (2, "c", "C")]
    assert landed("# A\n\n## B\n\n## C\n", *rendered) == ["a", "b", "c"]


def test_a_heading_that_only_the_text_has_gets_the_anchor_around_it() -> None:
    text = "# A\n\n## B\n\n### Nowhere to be seen\n\n#### Below it\n\n## C\n\n# Not shown either\n"
    assert landed(text, (1, "a", "A"), (2, "b", "B"), (2, "c", "C")) == ["a", "b", "b", "b", "c", ""]


def test_a_heading_without_an_id_gets_the_anchor_around_it() -> None:
    assert landed("# A\n\n## B\n", (1, "a", "A"), (2, "", "B")) == ["a", "a"]


def test_equal_headings_are_told_apart_by_their_order() -> None:
    rendered = [(1, "a", "A"), (2, "same", "Same"), (2, "same_1", "Same"), (2, "same_2", "Same")]
    assert landed("# A\n\n## Same\n\n## Same\n\n## Same\n", *rendered) == ["a", "same", "same_1", "same_2"]


def test_icons_quotes_and_marks_do_not_hide_a_heading() -> None:
    text = '# :material-floppy-variant: A\n\n## It\'s "quoted" -- so\n\n## ==Marked== ++ctrl+c++\n\n## :fire:\n'
    rendered = [(1, "l", "A"), (2, "q", "It\u2019s “quoted” \u2013 so"), (2, "m", "Marked Ctrl+C"), (2, "f", "")]
    assert landed(text, *rendered) == ["l", "q", "m", "f"]


def test_an_id_that_was_asked_for_is_enough() -> None:
    assert landed("# {{ product }} {#start}\n\n## B\n", (1, "start", "Lighthouse"), (2, "b", "B")) == ["start", "b"]


def test_a_page_whose_level_was_moved_is_still_recognised() -> None:
    assert landed("# A thing\n\n## B thing\n", (2, "a", "A thing"), (3, "b", "B thing")) == ["a", "b"]


TITLES = st.sampled_from(["One", "Two", "Same", "Same", ":fire: Hot", "", "Ünï `code`", "A & B"])
HEADINGS = st.lists(st.tuples(st.integers(1, 6), TITLES), max_size=12)
RENDERED = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["", "a", "b", "c_1"]), TITLES), max_size=12)


@given(HEADINGS, RENDERED)
def test_an_anchor_is_always_an_id_of_the_page_and_nothing_else_changes(
    headings: list[tuple[int, str]], rendered: list[tuple[int, str, str]]
) -> None:
    text = "".join(f"{'#' * level} {title}\n\ntext\n\n" for level, title in headings)
    before = markdown_sections.parse(text, ChunkingOptions(slugs="mkdocs"))
    after = section_places.with_anchors(before, [Heading(*each) for each in rendered])
    assert {section.anchor for section in after.sections} <= {id_ for _, id_, _ in rendered} | {""}
    assert [(s.start, s.end, s.heading_path) for s in after.sections] == [
        (s.start, s.end, s.heading_path) for s in before.sections
    ]


@given(HEADINGS)
def test_a_page_with_the_same_headings_lands_on_each(headings: list[tuple[int, str]]) -> None:
    text = "".join(f"{'#' * level} {title}\n\ntext\n\n" for level, title in headings)
    page = markdown_sections.parse(text, ChunkingOptions(slugs="mkdocs"))
    rendered = [Heading(s.heading_level, f"id-{n}", s.title) for n, s in enumerate(page.sections)]
    assert [s.anchor for s in section_places.with_anchors(page, rendered).sections] == [
        heading.id for heading in rendered
    ]
