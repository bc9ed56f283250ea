from __future__ import annotations

import pytest

from anvil.formats.data_formats import json_object


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": [1]}', {"a": [1]}), (b'{"a": 1}', {"a": 1}), ("[]", None), ("null", None), ("", None), ("{", None)],
)
def test_an_object_or_nothing(text: str | bytes, value: dict[str, object] | None) -> None:
    assert json_object(text) == value


@pytest.mark.parametrize("text", ['{"a": ' * 200_000, b"\xff\xfe{"])
def test_what_cannot_be_parsed_raises_nothing(text: str | bytes) -> None:
    assert json_object(text) is None
