from __future__ import annotations

import pytest

from anvil.core.pluralize import counted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(0, "page"), "0 pages"),
        (counted(1, "page"), "1 page"),
        (counted(1200, "page"), "1,200 pages"),
        (counted(1, "page", "differ"), "1 page differs"),
        (counted(2, "page", "differ"), "2 pages differ"),
        (counted(1, "vector", "are"), "1 vector is"),
        (counted(1, "file", "could"), "1 file could"),
    ],
)
def test_one_and_many(said: str, expected: str) -> None:
    assert said == expected
