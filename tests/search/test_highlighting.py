"""The words in a text that match a query: by their stems, and marked."""

from __future__ import annotations

import re
import unicodedata

import pytest
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
    assert highlighting.highlight("水曜と水道", excerpts.query_stems("水"), "<{}>".format) == "<水>曜と<水>道"


@settings(max_examples=60, deadline=None)
@given(texts)
def test_marking_loses_nothing(text: str) -> None:
    assert highlighting.highlight(text, excerpts.query_stems("cache index"), lambda word: word) == text


def test_matched_words_are_spelled_as_in_the_text() -> None:
    text = "Caches are cached; the CACHE's key. 検索する"
    found = highlighting.matched_words(text, excerpts.query_stems("what is caching? 検索"))
    assert found == {"Caches", "cached", "CACHE", "検索"}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("caches", "caching"),
        ("builds", "building"),
        ("Query", "queries"),
        ("Über", "über"),
        ("Приложение", "приложений"),
    ],
)
def test_words_of_one_root_match(a: str, b: str) -> None:
    assert excerpts.stem(a) == excerpts.stem(b)


def test_short_words_are_not_wanted_but_cjk_ones_are() -> None:
    assert excerpts.query_stems("is it a do of") == frozenset()
    assert excerpts.query_stems("検索 索") >= {"検索"}


@pytest.mark.parametrize("word", ["हिन्दी", "أيضًا", "Än", "می\u200cرود"])
def test_the_marks_of_a_word_are_part_of_it(word: str) -> None:
    word = unicodedata.normalize("NFD", word)
    assert excerpts.query_stems(word) == {word.casefold()}
    assert (
        highlighting.highlight(f"x {word}, 使用{word}创建", {word.casefold()}, "<{}>".format)
        == f"x <{word}>, 使用<{word}>创建"
    )


def test_a_word_of_more_than_100_characters_is_not_cached() -> None:
    """A caller could fill the memory with such words."""
    excerpts._cached_keys.cache_clear()
    assert excerpts.query_stems("b" * 101) == {"b" * 101} and excerpts._cached_keys.cache_info().currsize == 0
    assert excerpts.query_stems("b" * 100) == {"b" * 100} and excerpts._cached_keys.cache_info().currsize == 1


def test_stems_are_found_where_their_words_begin() -> None:
    stems = excerpts.query_stems("caching files")
    assert excerpts.matches_at("Cached: a file, profiles and Files_x", stems) == [(0, "cach"), (10, "fil")]
    assert excerpts.matches_at("Straße: cached", stems) == [(8, "cach")]  # folded, the text is longer
    assert excerpts.matches_at("文件 cached", excerpts.query_stems("文件")) == [(0, "文件")]


@given(st.text(alphabet="aAbBeEsS _-é\n世界", max_size=80), st.text(alphabet="abes世界 ", max_size=20))
def test_matches_are_those_of_each_word(text: str, question: str) -> None:
    stems = excerpts.query_stems(question)
    words = re.finditer(r"[^\W世界]+|[世界]+", text)
    assert [key for _, key in excerpts.matches_at(text, stems)] == [
        key for word in words for key in excerpts.keys_of(word[0]) if key in stems
    ]
