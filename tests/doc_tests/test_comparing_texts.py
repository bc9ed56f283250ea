"""A page's first differing line is found."""

from __future__ import annotations

import pytest

from anvil.doc_tests import comparing


@pytest.mark.parametrize(
    ("old", "new", "line"), [("a\nb\n", "a\nc\n", 2), ("a\n", "a\n", 1), ("a\nb", "a", 1), ("", "a", 1)]
)
def test_the_first_line_that_differs(old: str, new: str, line: int) -> None:
    assert comparing.first_difference(old, new) == line
