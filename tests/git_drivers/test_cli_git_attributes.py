"""The lines for an index in .gitattributes."""

from __future__ import annotations

import pytest

from anvil.git_drivers.cli import attribute_line


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("docs.anvil.db", "/docs.anvil.db"),
        ("docs/.anvil/index.db", "/docs/.anvil/index.db"),
        ("my docs/\u00edndex.db", "/my[[:space:]]docs/\u00edndex.db"),
        ("a*b?[c]\\d.db", "/a\\*b\\?\\[c\\]\\\\d.db"),
    ],
)
def test_a_name_is_spelled_so_that_git_takes_it_literally(path: str, pattern: str) -> None:
    assert attribute_line(path) == f"{pattern} -text diff=anvil merge=anvil"
