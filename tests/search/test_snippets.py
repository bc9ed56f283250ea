"""The snippet that matched: whole lines, within its size, around the best line; and marked words."""

from __future__ import annotations

import re

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anvil.search import excerpts, snippets

line = st.lists(st.sampled_from(["cache", "caching", "index", "the", "über", "x", "a,b", ""]), max_size=8).map(" ".join)
texts = st.tuples(st.lists(line, min_size=1, max_size=12), st.sampled_from(["\n", "\r\n", "\r"])).map(
    lambda pair: pair[1].join(pair[0])
)


def ends(text: str) -> set[int]:
    """Where lines of a source file may begin or end."""
    return {0, len(text)} | {found.end() for found in re.finditer(r"\r\n|\r|\n", text)}


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(1, 80), st.sampled_from(["cache", "index cache", "", "nothing here"]))
def test_a_passage_is_whole_lines_within_its_size(text: str, size: int, question: str) -> None:
    start, end = snippets.best_snippet(text, excerpts.query_stems(question), size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= size
    borders = ends(text)
    assert start in borders
    assert end in borders or end - start == size  # a line longer than the size is cut
    assert end > start or not text


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(0, 11), st.integers(60, 120))
def test_the_line_that_fits_best_is_in_the_passage(text: str, at: int, size: int) -> None:
    lines = text.splitlines(keepends=True)
    assume(lines and all(len(each) <= size for each in lines))
    target = at % len(lines)
    lines[target] = "zebra quagga okapi" + ("\r\n" if lines[target].endswith("\r\n") else "\n")
    marked = "".join(lines)
    start, end = snippets.best_snippet(marked, excerpts.query_stems("zebra quagga okapi"), size)
    assert "zebra quagga okapi" in marked[start:end]


def test_a_text_that_fits_is_left_whole() -> None:
    assert snippets.best_snippet("one\ntwo", excerpts.query_stems("two"), 7) == (0, 7)
    assert snippets.best_snippet("", frozenset(), 10) == (0, 0)


def test_more_different_words_count_before_more_matches() -> None:
    text = "cache cache cache\n" + "filler line\n" * 5 + "cache index\n"
    start, end = snippets.best_snippet(text, excerpts.query_stems("cache index"), 20)
    assert text[start:end].endswith("cache index\n")


def test_of_equals_the_first_is_taken() -> None:
    text = "cache a\nfiller x\ncache b\n"
    assert snippets.best_snippet(text, excerpts.query_stems("cache"), 8) == (0, 8)


def test_a_line_too_long_is_cut_at_the_size() -> None:
    text = "short\n" + "cache " * 50 + "\nend\n"
    start, end = snippets.best_snippet(text, excerpts.query_stems("cache"), 30)
    assert (start, end) == (6, 36)


def test_marking_touches_the_wanted_words_only() -> None:
    marked = snippets.highlight(
        "Cached pages are cached; uncached are not.", excerpts.query_stems("caching"), "<{}>".format
    )
    assert marked == "<Cached> pages are <cached>; uncached are not."


def test_words_without_spaces_between_them_are_found_and_marked() -> None:
    wanted = excerpts.query_stems("検索")
    text = "一行目です\n" * 10 + "全文検索エンジン\n" + "最後の行です\n" * 10
    start, end = snippets.best_snippet(text, wanted, 20)
    assert "全文検索エンジン" in text[start:end]
    assert snippets.highlight("全文検索エンジン", wanted, "<{}>".format) == "全文<検索>エンジン"


@settings(max_examples=60, deadline=None)
@given(texts)
def test_marking_loses_nothing(text: str) -> None:
    assert snippets.highlight(text, excerpts.query_stems("cache index"), lambda word: word) == text


def test_matched_words_are_spelled_as_in_the_text() -> None:
    text = "Caches are cached; the CACHE's key. 検索する"
    found = snippets.matched_words(text, excerpts.query_stems("what is caching? 検索"))
    assert found == {"Caches", "cached", "CACHE", "検索"}
