"""Patterns that are compiled when they are used."""

from __future__ import annotations

import re

import pytest

from anvil.formats.patterns import lazy_pattern


def test_it_matches_as_a_compiled_pattern() -> None:
    lazy, compiled = lazy_pattern(r"(?P<word>[a-z]+)", re.I), re.compile(r"(?P<word>[a-z]+)", re.I)
    for _ in range(2):  # the second time the method is an attribute
        assert [match["word"] for match in lazy.finditer("Ab 1 c")] == ["Ab", "c"]
        assert lazy.sub("x", "Ab 1 c") == compiled.sub("x", "Ab 1 c")
        assert lazy.groups == 1 and lazy.pattern == compiled.pattern


def test_nothing_is_compiled_before() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.match("")
