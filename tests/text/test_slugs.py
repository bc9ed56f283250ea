"""Anchors that are taken get a number, as each site generator counts."""

from __future__ import annotations

import pytest
from markdown.extensions.toc import unique

from anvil.text.slugs import Anchors


@pytest.mark.parametrize("titles", [["a 1", "a 1", "a 1"], ["a_5", "a_5", "a", "a"], ["", "", "_1"], ["a", "a", "a_1"]])
def test_mkdocs_numbers_are_those_of_python_markdown(titles: list[str]) -> None:
    ours, ids = Anchors("mkdocs"), set[str]()
    slugs = [title.replace(" ", "-") for title in titles]
    assert [ours.claim(title) for title in titles] == [unique(slug, ids) for slug in slugs]


def test_github_numbers_begin_at_one() -> None:
    ours = Anchors("github")
    assert [ours.claim(title) for title in ("a", "a", "a-1", "a")] == ["a", "a-1", "a-1-1", "a-2"]
