"""Which HTML files of a site are pages."""

from __future__ import annotations

import pytest

from anvil.settings.schema import SiteOptions
from anvil.sites import page_choice
from anvil.sites.page_choice import PageFacts


@pytest.mark.parametrize(
    ("path", "reason"),
    [("404.html", "the page for addresses that do not exist"), ("search/index.html", "the search page")],
)
def test_a_search_page_has_a_hundred_words_at_most(path: str, reason: str) -> None:
    """One with more is about searching, or about the status 404."""
    for words, is_page in ((1, False), (100, False), (101, True)):
        facts = {path: PageFacts("A", word_count=words, own_words=words, digest="a")}
        chosen = page_choice.choose(facts, None, SiteOptions())
        assert [page.file for page in chosen.pages] == ([path] if is_page else [])
        assert [skipped.reason for skipped in chosen.left_out] == ([] if is_page else [f"it is {reason}"])


def test_a_listing_has_thirty_words_at_most() -> None:
    for words, is_page in ((30, False), (31, True)):
        facts = {"tags/index.html": PageFacts("Tags", word_count=500, own_words=words, digest="a")}
        chosen = page_choice.choose(facts, None, SiteOptions())
        assert [page.file for page in chosen.pages] == (["tags/index.html"] if is_page else [])
