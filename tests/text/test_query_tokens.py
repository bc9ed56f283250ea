"""The keyword index's own tokens: the quick count of a few of them is the slow count of all, cut down to these."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anvil.index_file import connection
from anvil.index_file.fts_table import tokenizer
from anvil.text.query import Stemmer, words

ENDINGS = """
    ational tional enci anci izer abli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti
    iviti biliti logi icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion ou
    ism ate iti ous ive ize eed ed ing s es ies y sses ility ability ically ely
""".split()  # noqa: SIM905 - sixty quoted words are not read
BEGINNINGS = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product("abetsyl", repeat=n)]
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def stem() -> Iterator[Stemmer]:
    handle = connection.open_scratch(":memory:")
    connection.create_tables(handle, 0)
    yield Stemmer(tokenizer(handle))
    handle.close()


def test_a_word_begins_with_all_but_the_last_letter_of_its_token(stem: Stemmer) -> None:
    real = {word for path in DOCS.rglob("*.md") for word in words(path.read_text(encoding="utf-8").lower())}
    made = {first + last for first in BEGINNINGS for last in ENDINGS}
    twice = {first + middle + last for first in BEGINNINGS[:20] for middle in ENDINGS for last in ENDINGS}
    for word in sorted({each for each in real if each.isascii()} | made | twice):
        (token,) = stem.counts(word)
        assert word.startswith(token[:-1]), f"{word} -> {token}"


TEXT = st.text(st.sampled_from("abe sty-ing_ed.ies AB9é\u0301—\u2019字ß") | st.characters(codec="utf-8"), max_size=80)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(text=TEXT, asked=TEXT)
def test_counting_a_few_tokens_gives_what_counting_all_gives(stem: Stemmer, text: str, asked: str) -> None:
    tokens = {token for word in words(asked) for token in stem(word)}
    every = stem.counts(text + " " + asked)
    few = stem.counter(tokens)(text + " " + asked)
    assert {token: few.get(token, 0) for token in tokens} == {token: every.get(token, 0) for token in tokens}


def test_what_is_no_word_of_the_question_is_not_counted(stem: Stemmer) -> None:
    count = stem.counter({"cach", "file"})
    assert count("Caches cache the filing; a cached_file, files of CACHING") == {"cach": 4, "file": 3}
    assert count("précaching") == {"precach": 1}, "folding is left to the tokenizer"
    assert stem.counter(())("anything") == {}
