"""YAML of other people's files."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.formats import data_formats

LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 5)}]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    ("tags", "value"), [("plain", {"key": ["TOKEN", "none"], "name": "!fn"}), ("null", {"key": None, "name": None})]
)
def test_values_under_tags_of_other_programs(tags: Any, value: object) -> None:
    assert data_formats.read_yaml("key: !ENV [TOKEN, none]\nname: !fn\n", tags) == value


def test_an_unknown_tag_is_an_error_where_nobody_expects_one() -> None:
    with pytest.raises(ValueError, match="line 1 is not YAML: could not determine a constructor"):
        data_formats.read_yaml("key: !ENV [TOKEN]\n")


def test_scalars_can_stay_text() -> None:
    assert data_formats.read_yaml("version: 1.10\nday: 2026-01-01\n", strings=True) == {
        "version": "1.10",
        "day": "2026-01-01",
    }
    assert data_formats.read_yaml("- &y 1\n- &z [*y]\n- *z\n- {}\n- ", strings=True) == ["1", ["1"], ["1"], {}, ""]
    for wrong, reason in (
        ("--- 1\n--- 2\n", "line 2 is not YAML"),
        ("? [a]\n: b\n", "not YAML"),
        ("a: *a\n", "aliases"),
    ):
        with pytest.raises(ValueError, match=reason):
            data_formats.read_yaml(wrong, strings=True)


def test_an_anchor_may_be_used_often() -> None:
    hooks = "files: &f docs/\nhooks:\n" + "".join(f"- {{id: h{n}, files: *f}}\n" for n in range(40))
    assert data_formats.read_yaml(hooks)["hooks"][39] == {"id": "h39", "files": "docs/"}
    assert data_formats.read_yaml("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n")["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200, "too many levels"),
        (LAUGHS, "line 7 has too many levels or aliases"),
        ("a: &a [*a]", "line 1 has too many levels or aliases"),
        ("a:\n  - b\n c", "line 3 is not YAML"),
        ("\x00", "is not YAML"),
        ("? [a]\n: b", "is not YAML"),
        ("2026-13-45", "month must be in"),
    ],
)
def test_what_is_refused_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data_formats.read_yaml(text)


@given(st.text(alphabet="ab1:-[]{}&*!|>#?'\" \n\t.~", max_size=60), st.sampled_from(["refuse", "plain", "null"]))
def test_any_text_is_a_value_or_a_value_error(text: str, tags: Any) -> None:
    with contextlib.suppress(ValueError):
        data_formats.read_yaml(text, tags)
