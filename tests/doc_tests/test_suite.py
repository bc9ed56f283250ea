"""A suite is read whole or refused with one message that names line and key; answers are added as lines."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.doc_tests import suite
from anvil.doc_tests.values import Expectation
from anvil.errors import ConfigError
from anvil.values import Section

GOOD = """\
# what users ask
[defaults]
within = 3
[[question]]
ask = "How do I rotate the signing key?"
expect = ["security/keys.md#rotation", "./faq.md#keys"]
[[question]]
ask = "Does it run on Windows 95?"   # surely not
expect = "nothing"
within = 1
[[question]]
ask = "New one"
mode = "keyword"
[suite]
min_hit = 0.9
min_mrr = 0.5
"""


def test_all_keys_are_read() -> None:
    found = suite.parse(GOOD)
    rotate, windows, new = found.questions
    assert rotate.expect == (Expectation("security/keys.md", "rotation"), Expectation("faq.md", "keys"))
    assert (rotate.within, rotate.mode, rotate.line, rotate.new) == (3, "hybrid", 4, False)
    assert (windows.nothing, windows.expect, windows.within, windows.line) == (True, (), 1, 7)
    assert (new.new, new.mode, new.line) == (True, "keyword", 11)
    assert (found.min_hit, found.min_mrr) == (0.9, 0.5)


def test_without_a_bar_all_questions_must_pass() -> None:
    assert suite.parse('[[question]]\nask = "a"\n').min_hit == 1.0
    assert suite.parse('[[question]]\nask = "a"\n[suite]\nmin_mrr = 0.5\n').min_hit is None


QUESTION = '[[question]]\nask = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no question"),
        ("[suite]\nmin_hit = 1", "holds no question"),
        ("[[questions]]\nask = 'x'", "Unknown key 'questions' in t.toml. Did you mean question?"),
        ("[question]\nask = 'x'", "must be a list of tables"),
        (QUESTION + "expects = 'a.md'", "Unknown key 'expects' in t.toml, line 1. Did you mean expect?"),
        ("\n\n" + QUESTION + "zzz = 1", "Unknown key 'zzz' in t.toml, line 3. Known keys: within, mode, ask"),
        ("[[question]]\nexpect = 'a.md'", "line 1: the question has no ask"),
        ("[[question]]\nask = ' '", "line 1: the question has no ask"),
        ("[[question]]\nask = 7", "ask in t.toml, line 1 must be a string, not a number"),
        (QUESTION + "expect = ''", "expect is empty"),
        (QUESTION + "expect = []", "expect is empty"),
        (QUESTION + "expect = ['a.md', 'nothing']", 'lists "nothing" with others'),
        (QUESTION + "expect = {a = 1}", "expect in t.toml, line 1 must be a list of strings, not a table"),
        (QUESTION + "within = 0", "line 1: within is 0. Use a value from 1 to 20"),
        (QUESTION + "within = true", "within in t.toml, line 1 must be a whole number, not true or false"),
        (QUESTION + "mode = 'magic'", "line 1: mode has an unknown value. Use one of hybrid, semantic, keyword"),
        (QUESTION + "mode = []", "mode in t.toml, line 1 must be a string, not a list"),
        (QUESTION + "[suite]\nmin_hit = 90", "min_hit is 90.0. Use a value from 0 to 1"),
        (QUESTION + "[suite]\nmin_hit = nan", "min_hit is nan"),
        (QUESTION + "[suite]\nmin_hits = .9", "is not TOML"),
        (QUESTION + "[suite]\nmin_hits = 0.9", "Unknown key 'suite.min_hits' in t.toml. Did you mean suite.min_hit?"),
        ("suite = 3\n" + QUESTION, "suite in t.toml must be a table"),
        (QUESTION + '[[question]]\nask = " X "', "lines 1 and 3: the question 'X' is asked twice"),
        (f"[[question]]\nask = '{'x' * 1_000_000}'", "ask has 1,000,000 characters"),
        (f"[[question]]\nask = '{'x' * 3_000_000}'", "has 3,000,021 bytes"),
        ("a = " + "[" * 100_000, "is not TOML: it"),
        ("a = " + "9" * 10_000, "is not TOML: it"),
        ("a" + ".a" * 100_000 + " = 1", "keys of too many parts"),
        ("a" + ".a" * 200 + " = 1", "Unknown key 'a'"),
        ("a" * 100_000 + " = 1", "Unknown key 'aaa"),
        ("\ufffe", "is not TOML"),
        ("[[question]]\nask = '''\nunclosed", "is not TOML"),
    ],
)
def test_a_wrong_suite_costs_one_message(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        suite.parse(text, "t.toml")
    assert said in str(raised.value)
    assert "t.toml" in str(raised.value)
    assert len(str(raised.value)) < 400


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        suite.parse(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50))
def test_what_is_written_is_read_again(text: str) -> None:
    assert suite.read_table(suite.question_entry(text, text), "t")["question"] == [{"ask": text, "expect": text}]


def test_a_suite_has_ten_thousand_questions_at_most() -> None:
    most = "".join(f'[[question]]\nask = "q{number}"\n' for number in range(10_000))
    assert len(suite.parse(most).questions) == 10_000
    with pytest.raises(ConfigError, match="holds 10,001 questions"):
        suite.parse(most + QUESTION)


def test_headers_in_strings_are_no_questions() -> None:
    first = '[[question]]\nask = """\n[[question]]\n"""\n'
    text = first + "[[question]]\nask = \"b\" # \"\"\"\n[[ question ]]\nask = '''c'''\n"
    assert suite.question_lines(text) == [1, 5, 7]
    assert [question.line for question in suite.parse(text).questions] == [1, 5, 7]


def test_answers_are_added_and_all_else_stays() -> None:
    written = suite.add_answers(GOOD, {2: "guides/a.md#b"}, "t")
    assert written == GOOD.replace('ask = "New one"\n', 'ask = "New one"\nexpect = "guides/a.md#b"\n')


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_answers_are_added_to_any_layout(ending: str) -> None:
    lines = ["  [[question]]", "  # why", '  ask = """', 'a"""', "", "[[question]]", "'ask' = 'b'"]
    written = suite.add_answers(ending.join(lines), {0: "x.md", 1: 'y"z.md'}, "t")
    found = suite.parse(written)
    assert [str(question.expect[0]) for question in found.questions] == ["x.md", 'y"z.md']
    assert set(written.replace(ending, "\n").split("\n")) >= set(lines)
    assert written.count("\n") == written.count(ending)


def test_headings_that_are_questions() -> None:
    def section(level: int, title: str) -> Section:
        return Section(0, title, level, title, "", 0, 0, None, None)

    def found(path: str, title: str, *sections: Section) -> list[str]:
        return [text for text, _ in suite.questions_in(path, title, sections)]

    asked = "How do I start it?"
    assert found("a.md", "A", section(0, asked), section(1, asked), section(2, "Why?"), section(2, "A part of it")) == [
        asked
    ]
    in_faq = [section(1, "Frequently asked"), section(2, "The lamp is dark"), section(1, "The end of it")]
    assert found("a.md", "A", *in_faq) == ["The lamp is dark"]
    assert found("faq.md", "A", *in_faq) == ["The lamp is dark"]


def test_an_inline_list_is_left_alone() -> None:
    (question,) = suite.parse('question = [{ask = "a"}]').questions
    assert (question.ask, question.line) == ("a", 0)
    text = 'question = [{ask = "a"}]\n[suite]\nmin_hit = 2.0\n'
    with pytest.raises(ConfigError, match="min_hit"):
        suite.parse(text)
    with pytest.raises(ConfigError, match="Write each question under a line"):
        suite.add_answers('question = [{ask = "a"}]', {0: "a.md"}, "t")
