"""Front matter becomes plain metadata, or stays in the text."""

from __future__ import annotations

import json
from datetime import date, datetime

import pytest

from anvil import frontmatter
from anvil.markdown import parse


def test_yaml_values_become_plain_json() -> None:
    text = (
        "---\ntitle: A\ndate: 2026-01-31\nat: 2026-01-31T09:30:00Z\n1: one\nfalse: yes\n"
        "nan: .nan\nraw: !!binary aGk=\nlist: [a, {b: null}]\nset: !!set {b, a}\n---\nText.\n"
    )
    metadata, begin = frontmatter.split(text)
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
    metadata, begin = frontmatter.split(
        "+++\r\ntitle = 'A'\r\nday = 2026-01-31\r\n[extra]\r\nn = 1\r\n+++\r\nText."
    )
    assert metadata == {"title": "A", "day": "2026-01-31", "extra": {"n": 1}}
    assert begin == len("+++\r\ntitle = 'A'\r\nday = 2026-01-31\r\n[extra]\r\nn = 1\r\n+++\r\n")


@pytest.mark.parametrize(
    "text", ["---\na: 1\n...\nText.", "---  \na: 1\n---\t\nText.", "---\ra: 1\r---\rText."]
)
def test_the_forms_of_the_fence(text: str) -> None:
    metadata, begin = frontmatter.split(text)
    assert metadata == {"a": 1}
    assert text[begin:] == "Text."


def test_empty_front_matter_is_taken_off() -> None:
    assert frontmatter.split("---\n---\nText.") == ({}, 8)
    assert frontmatter.split("---\n# only a comment\n---\n") == ({}, 25)


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 8)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join(['*' + old] * 8)}]}}\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
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
        "n: " + "9" * 5_000 + "\n" + "x: y\n" * frontmatter.MAX_CHARS,
        "\x00",
        "a: \ud800",
    ],
    ids=range(14),
)
def test_what_is_invalid_or_hostile_stays_text(inner: str) -> None:
    text = f"---\n{inner}\n---\n\n# Title\n"
    page = parse(text)
    assert page.text == text
    assert page.metadata == {}
    assert page.title == "Title"
    assert page.first_line == 1


@pytest.mark.parametrize(
    "text", ["---", "---\n", "---\na: 1\n", " ---\na: 1\n---\n", "\n---\na: 1\n---\n", "+++\na\n+++\n"]
)
def test_what_is_unbalanced_or_not_at_the_start_stays_text(text: str) -> None:
    assert frontmatter.split(text) == ({}, 0)


def test_a_byte_order_mark_hides_nothing() -> None:
    page = parse("\ufeff---\ntitle: 7\n---\n# A\n")
    assert (page.title, page.text, page.first_line) == ("7", "# A\n", 4)


def test_metadata_of_another_program_becomes_json() -> None:
    several = [datetime(2024, 1, 2, 3), (1, 2.5, float("inf"))]
    given = {1: date(2024, 1, 2), "a": several, "b": {"c": object()}, None: {1}}
    assert frontmatter.plain(given) == {"1": "2024-01-02", "a": ["2024-01-02T03:00:00", [1, 2.5, "inf"]], "null": [1]}
