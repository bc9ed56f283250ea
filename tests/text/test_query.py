"""Words: what a chunk is found by, and what a question asks for."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.text import query, visible_text


def stem(word: str) -> list[str]:
    """A stand-in for the index's tokenizer: folding only."""
    return [word.lower()]


def asked(text: str) -> dict[str, float]:
    return {token: weight for token, (weight, _) in query.parse_query(text, stem).terms.items()}


def phrases(text: str) -> dict[str, float]:
    return query.parse_query(text, stem).phrases


def test_a_plain_question_asks_for_its_telling_words() -> None:
    assert asked("How do I keep the index fresh?") == {"keep": 1.0, "index": 1.0, "fresh": 1.0}
    assert phrases("How do I keep the index fresh?") == {}


def test_a_question_of_stop_words_alone_asks_for_them() -> None:
    assert set(asked("what is this")) == {"what", "is", "this"}


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("DEC-0054", "DEC 0054"),
        ("snake_case_name", "snake case name"),
        ("--flag-name", "flag name"),
        ("a.b.c", "a b c"),
        ("`quoted.code`", "quoted code"),
        ("(lib/path/file.py)", "lib path file py"),
    ],
)
def test_an_identifier_asks_for_its_words_side_by_side(identifier: str, words: str) -> None:
    assert phrases(identifier) == {words: query.PHRASE_WEIGHT}
    assert phrases(f"so what is {identifier}") == {words: 0.5}  # by the square root of the number of words
    wanted = {word.lower() for word in words.split()} - query.STOP
    assert wanted <= set(asked(identifier))


def test_a_name_of_code_is_no_stop_word() -> None:
    assert asked("value() or at() of an array") == {"value": 1.0, "at": 1.0, "array": 1.0}
    assert asked("what does `with` do?") == {"with": 1.0}
    assert asked("what is (a) with it") == asked("what is a with it")


def test_in_another_script_no_word_is_an_english_stop_word() -> None:
    assert asked("箭头函数的 this")["this"] == 1.0
    assert asked("цикл for") == {"цикл": 1.0, "for": 1.0}
    assert asked("what is the λ of this function") == {"λ": 1.0, "function": 1.0}


def test_quotes_make_a_phrase_and_keep_its_words() -> None:
    found = query.parse_query('find "exact words here" and “curly ones too” please', stem)
    assert {"exact words here", "curly ones too"} <= set(found.phrases)
    assert found.phrases["exact words here"] == query.PHRASE_WEIGHT
    assert {"exact", "words", "curly"} <= set(found.terms)


def test_one_word_in_quotes_is_a_word() -> None:
    assert phrases('"single"') == {} and asked('"single"') == {"single": 1.0}


def test_the_parts_of_a_compound_weigh_less() -> None:
    assert asked("optimizeDeps") == {"optimizedeps": 1.0, "optimize": 0.5, "deps": 0.5}
    assert asked("optimizeDeps deps") == {"optimizedeps": 1.0, "optimize": 0.5, "deps": 1.0}


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("camelCase", ["camel", "Case"]),
        ("HTTPServer2", ["HTTP", "Server", "2"]),
        ("lower", []),
        ("UPPER", []),
        ("Title", []),
        ("v8", ["v", "8"]),
    ],
)
def test_compounds_part_at_humps_and_numbers(word: str, parts: list[str]) -> None:
    found = query.compound_parts(word)
    assert found == parts or (word == "HTTPServer2" and "".join(found) == word)


def test_cjk_runs_become_pairs_on_both_sides() -> None:
    assert query.pairs("全文検索") == ["全文", "文検", "検索"] and query.pairs("字") == ["字"]
    assert set(asked("検索 engine")) == {"検索", "engine"}
    assert {"全文", "文検", "検索"} <= set(query.derived_terms("全文検索エンジン").split())
    assert phrases("全文、検索") == {}


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("\uff21\uff30\uff29", "api"),
        ("ﬁlter", "filter"),
        ("Άνθρωπος", "ΑΝΘΡΩΠΟΣ"),
        ("δρομος", "Δρόμος"),
        ("أيضًا", "ايضا"),
        ("مَرْحَبًا", "مرحبا"),
        ("हिन्दी", "हिन्दी"),
        ("می\u200cرود", "میرود"),
        ("Donau\u00addampfer", "Donaudampfer"),
    ],
)
def test_a_word_in_unusual_characters_and_its_plain_form_find_each_other(written: str, typed: str) -> None:
    for text, question in ((written, typed), (typed, written)):
        found = {token for word in query.words(f"{text} {query.derived_terms(text)}") for token in stem(word)}
        assert found & asked(question).keys()


def test_a_name_between_chinese_or_japanese_characters_is_found() -> None:
    terms = query.derived_terms("使用Vitest创建ReactDOM应用, 全角ＡＢＣ１２, 选项A").split()
    assert {"vitest", "reactdom", "react", "dom", "abc12", "abc", "12", "a"} <= set(terms)
    assert {"vitest", "使用"} <= set(asked("使用Vitest"))


def test_the_letters_between_marks_count_less_than_the_word() -> None:
    weights = {token: weight for token, (weight, _) in query.parse_query("हिन्दी docs", stem).terms.items()}
    assert weights == {"हनद": 1.0, "ह": 0.5, "न": 0.5, "द": 0.5, "docs": 1.0}


def test_words_of_a_heading_are_also_parts_of_compounds_and_words_without_their_marks() -> None:
    text = "表示Vitest Настройка optimizeDeps हिन्दी"
    assert query.heading_terms(text) == ["deps", "optimize", "vitest", "हनद"]
    counts = query.Stemmer(lambda data: data.decode().lower().split()).heading_counts(text)
    assert counts["optimize"] == counts["हनद"] == counts["настройка"] == 1 and "настр" not in counts


def test_a_word_typed_in_half_width_asks_for_the_usual_one_alone() -> None:
    assert query.parse_query("手順 ｲﾝ \uff21\uff30\uff29", stem) == query.parse_query("手順 イン API", stem)
    assert [weight for weight, _ in query.parse_query("Δρόμος", stem).terms.values()] == [1.0, 1.0, 0.5]


def test_a_greek_or_cyrillic_word_is_also_asked_and_stored_by_its_first_five_letters() -> None:
    assert query.derived_terms("Настройка баз: токен, token-based") == "настр"
    assert list(asked("настроек базы")) == ["настроек", "настр", "базы"]
    assert query.beginning("ενημέρωση") == "ενημέ" and query.derived_terms("ενημέρωση").split()[0] == "ενημε"
    assert query.beginning("settings") is query.beginning("базы") is None


def test_derived_terms_are_the_parts_that_the_text_itself_lacks() -> None:
    assert query.derived_terms("Set optimizeDeps and deps.") == "optimize"


def test_a_word_with_a_tag_inside_is_found_as_it_is_read() -> None:
    masked = visible_text.masked("Drink H<sub>2</sub>O, <b>S</b>trong tea, and `code`<sup>2</sup>.")
    assert query.derived_terms(masked) == "h2o strong"


def test_letters_written_apart_ask_for_the_same() -> None:
    composed = unicodedata.normalize("NFC", "Über Änderungen")
    assert query.parse_query(unicodedata.normalize("NFD", composed), stem) == query.parse_query(composed, stem)


def test_a_literal_is_a_string_to_fts5_whatever_it_holds() -> None:
    assert query.literal('a" OR *') == '"a"" OR *"'


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_taken_apart(text: str) -> None:
    found = query.parse_query(text, stem)
    assert query.parse_query(text, stem) == found
    for weight, word in found.terms.values():
        assert 0 < weight <= 1 and word and "\0" not in word
    for phrase, weight in found.phrases.items():
        assert len(phrase.split()) > 1 and 0 < weight <= 1
    if any(c.isascii() and c.isalnum() for c in text):
        assert found.terms


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_derived_terms_do_not_depend_on_chance(text: str) -> None:
    found = query.derived_terms(text).split()
    assert found == sorted(set(found))


def test_a_question_of_a_megabyte_is_taken_apart_in_time_linear_in_its_length() -> None:
    for text in ('"' * 1_000_000, "a" * 1_000_000, "a." * 500_000, "aB" * 200_000, "検" * 300_000, "(" * 1_000_000):
        assert len(query.parse_query(text, stem).terms) < 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("asyncio.TaskGroup", "asyncio.TaskGroup"),
        (" `Session.get()` ", "Session.get"),
        ("a.b._c1", "a.b._c1"),
        ("TaskGroup", None),
        ("what is asyncio.TaskGroup", None),
        ("1.2", None),
        ("e.g.", None),
        ("", None),
    ],
)
def test_a_query_that_is_the_name_of_something(text: str, name: str | None) -> None:
    assert query.qualified_name(text) == name


def test_a_letter_with_thousands_of_accents_is_read() -> None:
    parsed = query.parse_query("\u03b9" + "\u0301\u0308" * 3000, lambda word: [word])
    assert 0 < len(parsed.terms) < 5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("READ_HISTORY", "READ_HISTORY"),
        (" `a.b()`? ", "a.b"),
        ("--max-size", "--max-size"),
        ("maxSize", "maxSize"),
        ("timeout", ""),
        ("max size", ""),
        ("如何使用a_b", ""),
        ("", ""),
    ],
)
def test_a_query_that_is_one_name(text: str, name: str) -> None:
    assert query.single_name(text) == name
