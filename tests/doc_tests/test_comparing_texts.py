"""Moved pages are paired by what they say, and a page's first differing line is found."""

from __future__ import annotations

import pytest

from anvil.doc_tests import comparing

TEXT = "# A\n\nSome words that say what this page is about.\n\nAnd a second paragraph with more of them.\n"


def test_equal_texts_are_paired_before_similar_ones() -> None:
    removed = {"a.md": TEXT, "b.md": TEXT + "More.\n", "c.md": "Quite another page.\n"}
    added = {"x.md": TEXT + "More.\n", "y.md": TEXT, "z.md": "Nothing in common here.\n"}
    assert comparing.moved(removed, added) == {"x.md": "b.md", "y.md": "a.md"}


def test_a_page_that_was_moved_and_edited_is_found() -> None:
    assert comparing.moved({"a.md": TEXT}, {"n.md": "# A\n\nOther words on quite another subject.\n"}) == {}
    longer = TEXT + "A third paragraph, which is new in this version.\n"
    assert comparing.moved({"a.md": TEXT}, {"n.md": longer, "m.md": "# A\n"}) == {"n.md": "a.md"}


def test_empty_pages_are_no_pair() -> None:
    assert comparing.moved({"a.md": ""}, {"b.md": ""}) == {}


@pytest.mark.parametrize(
    ("old", "new", "line"), [("a\nb\n", "a\nc\n", 2), ("a\n", "a\n", 1), ("a\nb", "a", 1), ("", "a", 1)]
)
def test_the_first_line_that_differs(old: str, new: str, line: int) -> None:
    assert comparing.first_difference(old, new) == line
