from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.formats.data_formats import json_object, time_span


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": [1]}', {"a": [1]}), (b'{"a": 1}', {"a": 1}), ("[]", None), ("null", None), ("", None), ("{", None)],
)
def test_an_object_or_nothing(text: str | bytes, value: dict[str, object] | None) -> None:
    assert json_object(text) == value


@pytest.mark.parametrize("text", ['{"a": ' * 200_000, b"\xff\xfe{"])
def test_what_cannot_be_parsed_raises_nothing(text: str | bytes) -> None:
    assert json_object(text) is None


@pytest.mark.parametrize(
    ("text", "first", "beyond"),
    [
        ("2025-01-01T00:00:00+00:00", "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"),
        (" 2025-01-01 02:00:00.123456+02:00", "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"),
        ("2024-12-31t23:30:00-0030", "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"),
        ("2025-01-01T00:00", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"),
        ("2025-01-01T00Z", "2025-01-01T00:00:00Z", "2025-01-01T01:00:00Z"),
        ("2025-01-01", "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"),
        ("2025-01", "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z"),
        ("2025", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("9999", "9999-01-01T00:00:00Z", "A"),
        ("2025-02-29", None, None),
        ("2025-01-01T25:00", None, None),
        ("2025T10", None, None),
        ("202501", None, None),
        ("2025-01+01:00", None, None),
        ("2025-01-01T10:00.5", None, None),
        ("2024", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("today", None, None),
        ("", None, None),
        ("0001-01-01T00:00+05:00", None, None),
        ("\u0662\u0660\u0662\u0665", None, None),
        ("2025-01-01T10:00+24:00", None, None),
    ],
)
def test_times_are_spans(text: str, first: str | None, beyond: str | None) -> None:
    if first is None:
        with pytest.raises(ValueError):
            time_span(text)
    else:
        assert time_span(text) == (first, beyond)


@given(st.datetimes(timezones=st.timezones(), min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))
def test_what_python_writes_is_read(moment: datetime) -> None:
    stored = moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
    offset = moment.utcoffset()
    assert offset is not None
    if offset.total_seconds() % 60 == 0:
        assert time_span(moment.isoformat())[0] == stored
