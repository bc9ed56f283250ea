"""Pages that were moved, which are paired by their text."""

from __future__ import annotations

from anvil.search.moved_pages import moved_pairs

TEXT = "# A\n\nSome words that say what this page is about.\n\nAnd a second paragraph with more of them.\n"


def test_equal_texts_are_paired_before_similar_ones() -> None:
    removed = {"a.md": TEXT, "b.md": TEXT + "More.\n", "c.md": "Quite another page.\n"}
    added = {"x.md": TEXT + "More.\n", "y.md": TEXT, "z.md": "Nothing in common here.\n"}
    assert moved_pairs(removed, added) == {"x.md": "b.md", "y.md": "a.md"}


def test_a_page_that_was_moved_and_edited_is_found() -> None:
    assert moved_pairs({"a.md": TEXT}, {"n.md": "# A\n\nOther words on quite another subject.\n"}) == {}
    longer = TEXT + "A third paragraph, which is new in this version.\n"
    assert moved_pairs({"a.md": TEXT}, {"n.md": longer, "m.md": "# A\n"}) == {"n.md": "a.md"}


def test_empty_pages_are_no_pair() -> None:
    assert moved_pairs({"a.md": ""}, {"b.md": ""}) == {}


def test_equal_texts_are_paired_by_path() -> None:
    assert moved_pairs({"b.md": TEXT, "a.md": TEXT}, {"y.md": TEXT, "x.md": TEXT}) == {"x.md": "a.md", "y.md": "b.md"}
