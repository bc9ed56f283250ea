"""The words in a text that match a query, marked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.search import excerpts, highlighting

line = st.lists(st.sampled_from(["cache", "caching", "index", "the", "über", "x", "a,b", ""]), max_size=8).map(" ".join)
texts = st.tuples(st.lists(line, min_size=1, max_size=12), st.sampled_from(["\n", "\r\n", "\r"])).map(
    lambda pair: pair[1].join(pair[0])
)


def test_marking_touches_the_wanted_words_only() -> None:
    marked = highlighting.highlight(
        "Cached pages are cached; uncached are not.", excerpts.query_stems("caching"), "<{}>".format
    )
    assert marked == "<Cached> pages are <cached>; uncached are not."


def test_words_without_spaces_between_them_are_found_and_marked() -> None:
    wanted = excerpts.query_stems("検索")
    text = "一行目です\n" * 10 + "全文検索エンジン\n" + "最後の行です\n" * 10
    assert "全文検索エンジン" in excerpts.excerpt(text, excerpts.sought("検索"), 20).of(text)
    assert highlighting.highlight("全文検索エンジン", wanted, "<{}>".format) == "全文<検索>エンジン"


@settings(max_examples=60, deadline=None)
@given(texts)
def test_marking_loses_nothing(text: str) -> None:
    assert highlighting.highlight(text, excerpts.query_stems("cache index"), lambda word: word) == text


def test_matched_words_are_spelled_as_in_the_text() -> None:
    text = "Caches are cached; the CACHE's key. 検索する"
    found = highlighting.matched_words(text, excerpts.query_stems("what is caching? 検索"))
    assert found == {"Caches", "cached", "CACHE", "検索"}
