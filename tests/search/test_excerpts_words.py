"""The passage that matched: whole lines, within its size, around the best line."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anvil.search import excerpts

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
    start, end = excerpts.best_snippet(text, excerpts.query_stems(question), size)
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
    start, end = excerpts.best_snippet(marked, excerpts.query_stems("zebra quagga okapi"), size)
    assert "zebra quagga okapi" in marked[start:end]


def test_a_text_that_fits_is_left_whole() -> None:
    assert excerpts.best_snippet("one\ntwo", excerpts.query_stems("two"), 7) == (0, 7)
    assert excerpts.best_snippet("", frozenset(), 10) == (0, 0)


def test_more_different_words_count_before_more_matches() -> None:
    text = "cache cache cache\n" + "filler line\n" * 5 + "cache index\n"
    start, end = excerpts.best_snippet(text, excerpts.query_stems("cache index"), 20)
    assert text[start:end].endswith("cache index\n")


def test_of_equals_the_first_is_taken() -> None:
    text = "cache a\nfiller x\ncache b\n"
    assert excerpts.best_snippet(text, excerpts.query_stems("cache"), 8) == (0, 8)


def test_a_line_too_long_is_cut_at_the_size() -> None:
    text = "short\n" + "cache " * 50 + "\nend\n"
    start, end = excerpts.best_snippet(text, excerpts.query_stems("cache"), 30)
    assert (start, end) == (6, 36)


@pytest.mark.parametrize(
    ("a", "b"), [("caches", "caching"), ("builds", "building"), ("Query", "queries"), ("Über", "über")]
)
def test_words_of_one_root_match(a: str, b: str) -> None:
    assert excerpts.stem(a) == excerpts.stem(b)


def test_marking_touches_the_wanted_words_only() -> None:
    marked = excerpts.highlight(
        "Cached pages are cached; uncached are not.", excerpts.query_stems("caching"), "<{}>".format
    )
    assert marked == "<Cached> pages are <cached>; uncached are not."


def test_short_words_are_not_wanted_but_cjk_ones_are() -> None:
    assert excerpts.query_stems("is it a do of") == frozenset()
    assert excerpts.query_stems("検索 索") >= {"検索"}


def test_words_without_spaces_between_them_are_found_and_marked() -> None:
    wanted = excerpts.query_stems("検索")
    text = "一行目です\n" * 10 + "全文検索エンジン\n" + "最後の行です\n" * 10
    start, end = excerpts.best_snippet(text, wanted, 20)
    assert "全文検索エンジン" in text[start:end]
    assert excerpts.highlight("全文検索エンジン", wanted, "<{}>".format) == "全文<検索>エンジン"


@settings(max_examples=60, deadline=None)
@given(texts)
def test_marking_loses_nothing(text: str) -> None:
    assert excerpts.highlight(text, excerpts.query_stems("cache index"), lambda word: word) == text


def test_matched_words_are_spelled_as_in_the_text() -> None:
    text = "Caches are cached; the CACHE's key. 検索する"
    found = excerpts.matched_words(text, excerpts.query_stems("what is caching? 検索"))
    assert found == {"Caches", "cached", "CACHE", "検索"}


def test_a_word_of_more_than_100_characters_is_not_cached() -> None:
    """A caller could fill the memory with such words."""
    excerpts._known_keys.cache_clear()
    assert excerpts.query_stems("b" * 101) == {"b" * 101} and excerpts._known_keys.cache_info().currsize == 0
    assert excerpts.query_stems("b" * 100) == {"b" * 100} and excerpts._known_keys.cache_info().currsize == 1


def test_stems_are_found_where_their_words_begin() -> None:
    stems = excerpts.query_stems("caching files")
    assert excerpts.matches_at("Cached: a file, profiles and Files_x", stems) == [(0, "cach"), (10, "fil")]
    assert excerpts.matches_at("Straße: cached", stems) == [(8, "cach")]  # folded, the text is longer
    assert excerpts.matches_at("文件 cached", excerpts.query_stems("文件")) == [(0, "文件")]


@given(st.text(alphabet="aAbBeEsS _-é\n世界", max_size=80), st.text(alphabet="abes世界 ", max_size=20))
def test_matches_are_those_of_each_word(text: str, question: str) -> None:
    stems = excerpts.query_stems(question)
    words = re.finditer(r"[^\W世界]+|[世界]+", text)
    assert excerpts.matches(text, stems) == [key for word in words for key in excerpts._keys(word[0]) if key in stems]
