"""Lines that contain a text or match an expression: compared with Python's own search, and bounded in time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.errors import ConfigError
from anvil.requests import GrepRequest
from anvil.search import grep

texts = st.text("aAbß ẞİé\n$^", max_size=200)


def lines(pattern: str, text: str, *, regex: bool = False, ignore_case: bool = True, word: bool = False) -> list[int]:
    matcher = grep.compile(GrepRequest(pattern, regex=regex, ignore_case=ignore_case, word=word))
    return [first + line for first, part in matcher.parts(text) for line in matcher.lines(part)]


def text_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


@given(texts, st.text("aAbß ẞİé", min_size=1, max_size=4), st.booleans())
def test_a_fixed_text_is_found_in_the_lines_that_contain_it(text: str, pattern: str, ignore_case: bool) -> None:
    def fold(value: str) -> str:
        return value.casefold() if ignore_case else value

    expected = [number for number, line in enumerate(text.split("\n")) if fold(pattern) in fold(line)]
    assert lines(pattern, text, ignore_case=ignore_case) == expected


@given(texts, st.sampled_from(["a+b", "^a", "b$", "[^b]+", "a|é", r"^$", "a.*b", "a.?b", "(a|b)(a|b)", " *"]))
def test_an_expression_matches_the_lines_that_python_matches(text: str, pattern: str) -> None:
    expected = [number for number, line in enumerate(text_lines(text)) if re.search(pattern, line)] if text else []
    assert lines(pattern, text, regex=True, ignore_case=False) == expected


@pytest.mark.parametrize("pattern", [r"a\nb", r"[^x]b", r"\Wb", r"(?s)a.b", r"a\s+b"])
def test_no_match_goes_over_the_end_of_a_line(pattern: str) -> None:
    assert lines(pattern, "a\nb\n", regex=True) == []


@given(st.text("abß İ", max_size=40), st.sampled_from(["a", "ß", "s", "b ", "i", "SS"]))
def test_the_places_in_a_line_are_those_of_the_text(line: str, pattern: str) -> None:
    spans = list(grep.compile(GrepRequest(pattern)).spans(line))
    assert bool(spans) == (pattern.casefold() in line.casefold())
    assert all(start < end for start, end in spans) and spans == sorted(spans)
    for start, end in spans:
        assert pattern.casefold() in line[start:end].casefold()


def test_places_of_an_expression_count_characters() -> None:
    assert list(grep.compile(GrepRequest("É+", regex=True)).spans("aéÉ éb")) == [(1, 3), (4, 5)]


@given(texts, st.sampled_from(["a", "A b", "é", "ß", "aa", "."]))
def test_a_word_has_no_letter_next_to_it(text: str, word: str) -> None:
    alone = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    expected = [number for number, line in enumerate(text_lines(text)) if alone.search(line)] if text else []
    assert lines(word, text, word=True, ignore_case=False) == expected


def test_the_places_of_words_and_of_expressions_that_are_words() -> None:
    text = "id, id id_2 über-id ID\u0301 id"
    assert list(grep.compile(GrepRequest("id", word=True)).spans(text)) == [(0, 2), (4, 6), (17, 19), (24, 26)]
    matcher = grep.compile(GrepRequest("(i|id)", regex=True, word=True))  # "id" is no word with "i" alone
    assert list(matcher.spans("id id")) == [(0, 2), (3, 5)]
    assert list(grep.compile(GrepRequest("x*", regex=True, word=True)).spans("é")) == []
    with pytest.raises(ConfigError, match="unexpected"):
        grep.compile(GrepRequest("a)(b", regex=True, word=True))


@pytest.mark.parametrize(
    ("pattern", "regex", "message"),
    [
        ("", False, "pattern parameter is required"),
        ("a\nb", False, "line break"),
        ("x" * 1001, True, "1,001 characters"),
        ("(a", True, "not valid: missing ): (a. Correct it"),
        (r"(?=a)b", True, "Look-around and backreferences are not supported"),
        (r"(a)\1", True, "Look-around and backreferences are not supported"),
        (r"(?:\pL{1,90}){1,9}", True, "too large"),
        ("\ud800", True, "not valid"),
    ],
)
def test_a_bad_pattern_is_refused_with_a_reason(pattern: str, regex: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        grep.compile(GrepRequest(pattern, regex=regex))


@pytest.mark.parametrize("pattern", [r"(a+)+$x", r"(a|aa)+z", r"([ab]*a[ab ]{20}){10}z", r"(.*)*=", r"(a?){500}z"])
def test_patterns_that_make_others_backtrack_take_time_in_proportion(pattern: str) -> None:
    matcher = grep.compile(GrepRequest(pattern, regex=True))

    def seconds(text: str) -> float:
        started = time.process_time()
        assert not [line for _, part in matcher.parts(text) for line in matcher.lines(part)]
        return time.process_time() - started

    seconds("a" * 1000)
    assert seconds("ab " * 40_000) < 60 * max(seconds("ab " * 4_000), 0.01)  # a factor of 10, not of 2 to the power


def test_a_line_that_is_very_long_is_matched_in_pieces_and_named_once() -> None:
    text = "first\n" + "ab " * 60_000 + "\nlast ab\n"
    matcher = grep.compile(GrepRequest("ab", regex=True))
    assert [max(map(len, (part for _, part in matcher.parts(text))))] == [grep.MAX_REGEX_LINE_CHARS]
    assert sorted(set(lines("ab", text, regex=True))) == [1, 2]
    assert lines("ab", text) == [1, 2]


@given(st.text("a\r\n", max_size=60))
def test_lines_end_as_in_markdown(text: str) -> None:
    assert grep.with_line_feeds(text).split("\n") == re.split(r"\r\n|\r|\n", text)
