"""Front matter becomes plain metadata, or stays in the text."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anvil.formats.data_formats import canonical
from anvil.text import front_matter
from anvil.text.markdown_sections import parse


def test_yaml_values_become_plain_json() -> None:
    text = (
        "---\ntitle: A\ndate: 2026-01-31\nat: 2026-01-31T09:30:00Z\n1: one\nfalse: yes\n"
        "nan: .nan\nraw: !!binary aGk=\nlist: [a, {b: null}]\nset: !!set {b, a}\n---\nText.\n"
    )
    metadata, begin = front_matter.split(text)
    assert text[begin:] == "Text.\n"
    assert json.loads(json.dumps(metadata, allow_nan=False)) == {
        "title": "A",
        "date": "2026-01-31",
        "at": "2026-01-31T09:30:00+00:00",
        "1": "one",
        "false": True,
        "nan": "nan",
        "raw": "aGk=",
        "list": ["a", {"b": None}],
        "set": ["a", "b"],
    }


def test_toml_values_become_plain_json() -> None:
    metadata, begin = front_matter.split("+++\r\ntitle = 'A'\r\nday = 2026-01-31\r\n[extra]\r\nn = 1\r\n+++\r\nText.")
    assert metadata == {"title": "A", "day": "2026-01-31", "extra": {"n": 1}}
    assert begin == len("+++\r\ntitle = 'A'\r\nday = 2026-01-31\r\n[extra]\r\nn = 1\r\n+++\r\n")


@pytest.mark.parametrize("text", ["---\na: 1\n...\nText.", "---  \na: 1\n---\t\nText.", "---\ra: 1\r---\rText."])
def test_the_forms_of_the_fence(text: str) -> None:
    metadata, begin = front_matter.split(text)
    assert metadata == {"a": 1}
    assert text[begin:] == "Text."


def test_empty_front_matter_is_taken_off() -> None:
    assert front_matter.split("---\n---\nText.") == ({}, 8)
    assert front_matter.split("---\n# only a comment\n---\n") == ({}, 25)


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 8)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join(['*' + old] * 8)}]}}\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    "inner",
    [
        "title: [unclosed",
        "just text",
        "- a list",
        "a: !!python/object/apply:os.system [true]",
        "when: 2026-13-45",
        "{[1]: a}",
        "a: " + "[" * 5_000,
        "- " * 5_000 + "x",
        "a: &a [*a]",
        BOMB,
        MERGES,
        "n: " + "9" * 5_000 + "\n" + "x: y\n" * front_matter.MAX_CHARS,
        "\x00",
        "a: \ud800",
        'a: "\\ud800"',
        "big: 0x" + "f" * 3_600,
        "big: -0x" + "f" * 3_600,
        "big: 0" + "7" * 6_000,
        "big: 0b" + "1" * 20_000,
        "big: " + ":".join(["59"] * 9_000),
        "title: 0x" + "f" * 3_600,
        "? 0x" + "f" * 3_600 + "\n: key",
        "set: !!set {0x" + "f" * 3_600 + "}",
        "a: [1, {b: 0x" + "f" * 3_600 + "}]",
    ],
    ids=range(24),
)
def test_what_is_invalid_or_hostile_stays_text(inner: str) -> None:
    text = f"---\n{inner}\n---\n\n# Title\n"
    page = parse(text)
    assert page.text == text
    assert page.metadata == {}
    assert page.title == "Title"
    assert page.first_line == 1


@pytest.mark.parametrize("value", ["0x" + "f" * 3_600, "0o" + "7" * 6_000, "[" * 40 + "]" * 40])
def test_hostile_toml_stays_text(value: str) -> None:
    text = f"+++\ntitle = {value}\n+++\n# Title\n"
    page = parse(text)
    assert (page.text, page.metadata, page.title) == (text, {}, "Title")


def test_large_numbers_that_any_python_can_write_are_kept() -> None:
    whole = 2**front_matter.MAX_BITS - 1
    assert parse(f"---\ntitle: {whole:#x}\n---\n").title == str(whole)
    assert len(str(whole)) < 640  # the lowest limit that sys.set_int_max_str_digits takes
    assert parse(f"---\ntitle: {whole + 1:#x}\n---\n").metadata == {}


SCALARS = st.one_of(
    st.text("ab-1", min_size=1, max_size=4).map(json.dumps),
    st.text(max_size=8),
    st.sampled_from(["0x" + "f" * 3_600, "0b" + "1" * 15_000, "1:" * 4_000 + "1", "0o" + "7" * 6_000]),
    st.sampled_from(
        [
            ".inf",
            "-.inf",
            ".nan",
            "1e999",
            "9" * 4_000,
            "9" * 5_000,
            "2026-02-30",
            "9999-12-31T23:59:59-23:59",
            "0001-01-01T00:00:00+23:59",
            '"\\ud800"',
            '"\\0"',
            "!!binary aGk=",
            "!!set {b, .nan}",
            "!!omap [a: 1]",
            "~",
            "yes",
            "'",
        ]
    ),
    st.integers().map(hex),
    st.floats().map(repr),
    st.dates().map(str),
    st.datetimes().map(str),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(SCALARS, inner).map(lambda pair: f"{{? {pair[0]} : {pair[1]}}}"),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@example("---", [("a", "[0x" + "f" * 3_600 + "]")], True)
@given(st.sampled_from(["---", "+++"]), st.lists(st.tuples(SCALARS, VALUES), max_size=3), st.booleans())
def test_whatever_is_read_can_be_stored(fence: str, pairs: list[tuple[str, str]], plain_keys: bool) -> None:
    sign = ":" if fence == "---" else " ="
    lines = [
        f"{f'k{number}' if plain_keys else key if fence == '+++' else f'? {key}' + chr(10)}{sign} {value}\n"
        for number, (key, value) in enumerate(pairs)
    ]
    page = parse(f"{fence}\n{''.join(lines)}{fence}\n# Title\n")
    assert json.loads(canonical(page.metadata).encode()) == page.metadata
    assert page.title is not None and page.title.encode()


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.just("\ud800"),
    st.just((1, "\ud800")),
    st.just(object()),
)


INNER = st.one_of(ODD, st.lists(ODD, max_size=2), st.frozensets(ODD, max_size=2), st.dictionaries(ODD, ODD, max_size=2))


@settings(deadline=None)
@given(st.dictionaries(ODD, st.one_of(INNER, st.lists(INNER, max_size=2)), max_size=3))
def test_whatever_another_program_read_can_be_stored(metadata: dict[Any, Any]) -> None:
    kept = front_matter.plain(metadata)
    assert json.loads(canonical(kept).encode()) == kept


@pytest.mark.parametrize(
    "text", ["---", "---\n", "---\na: 1\n", " ---\na: 1\n---\n", "\n---\na: 1\n---\n", "+++\na\n+++\n"]
)
def test_what_is_unbalanced_or_not_at_the_start_stays_text(text: str) -> None:
    assert front_matter.split(text) == ({}, 0)


def test_a_byte_order_mark_hides_nothing() -> None:
    page = parse("\ufeff---\ntitle: 7\n---\n# A\n")
    assert (page.title, page.text, page.first_line) == ("7", "# A\n", 4)


def test_metadata_of_another_program_becomes_json() -> None:
    several = [datetime(2024, 1, 2, 3), (1, 2.5, float("inf"))]
    given: dict[Any, Any] = {1: date(2024, 1, 2), "a": several, "b": {"c": object()}, None: {1}}
    assert front_matter.plain(given) == {"1": "2024-01-02", "a": ["2024-01-02T03:00:00", [1, 2.5, "inf"]], "null": [1]}
    huge = 1 << 20_000  # longer than Python writes
    given = {"a": huge, huge: 1, "b": {1, huge}, (huge,): 1, "c": "\ud800", "\ud800": 1, "d": [{huge: 1}], "e": 1}
    assert front_matter.plain(given) == {"e": 1}


def test_a_page_is_found_by_the_words_of_its_front_matter() -> None:
    values = {
        "description": "Of  one\nline.",
        "keywords": ["kiwi", 3, None, "two words"],
        "tags": "one, text",
        "aliases": {"a": "map of a site"},
        "title": "is searched anyway",
    }
    assert front_matter.searched(values) == "Of one line. kiwi two words one, text"
    assert front_matter.searched({"keywords": ["k" * 600, "a\0b", "z" * 600]}) == f"{'k' * 600} a b {'z' * 395}"
