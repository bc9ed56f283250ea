"""Tables of a TOML file, changed as text: comments, order and other tables stay.

An entry is a table of its own, ``[key.name]``. The caller compares the value of the new text with the expected one,
because TOML has other spellings of the same table, which are not changed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from anvil.formats import data_formats

MAX_STATEMENT_LINES = 500
"""Lines of a value that spans several lines."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def loads(text: str) -> Any:
    """The value of a text. Raises ValueError."""
    return data_formats.read_toml(text.replace("\r\n", "\n"))


def dumps(key: str, name: str, value: Mapping[str, Any]) -> str:
    """The text of a file with this entry alone."""
    lines = (f"{_key(part)} = {_value(item)}\n" for part, item in value.items())
    return f"[{_key(key)}.{_key(name)}]\n{''.join(lines)}"


def put(text: str, key: str, name: str, value: Mapping[str, Any]) -> str:
    """``text`` with ``value`` as the table ``[key.name]``: its keys are set there, or it is added at the end.

    Raises ValueError where the entry exists in another spelling.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if name not in (loads(text).get(key) or {}):
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return text + gap + dumps(key, name, value).replace("\n", newline)
    positions = _positions(text, key, name)
    if positions is None:
        raise ValueError(f"{key}.{name} is not in a table [{_key(key)}.{_key(name)}] of its own")
    end, statements = positions
    missing = [part for part in value if part not in statements]
    added = "".join(f"{_key(part)} = {_value(value[part])}{newline}" for part in missing)
    if added and not text[:end].endswith("\n"):
        added = newline + added
    edits = [(end, end, added)]
    for part in value.keys() - set(missing):
        edits.append((*_value_span(text, *statements[part]), _value(value[part])))
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: Any) -> str:
    """A text, number, boolean or list of these as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return data_formats.toml_string(value) if isinstance(value, str) else json.dumps(value)


def _positions(text: str, key: str, name: str) -> tuple[int, dict[str, tuple[int, int]]] | None:
    """The end of the last statement of the table, and the span of the statement of each of its keys; None without the
    table."""
    end: int | None = None
    statements: dict[str, tuple[int, int]] = {}
    for start, stop in _statements(text):
        table = loads(text[start:stop])
        if text[start:stop].lstrip().startswith("["):
            if end is not None:
                break
            if table == {key: {name: {}}}:
                end = stop
        elif end is not None and table:
            end = stop
            statements[next(iter(table))] = start, stop
    return None if end is None else (end, statements)


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the statements, each with its line end; blank lines and comments are statements, too."""
    start, at, lines = 0, 0, 0
    while at < len(text):
        newline = text.find("\n", at)
        at = len(text) if newline < 0 else newline + 1
        lines += 1
        try:
            loads(text[start:at])
        except ValueError:
            if lines == MAX_STATEMENT_LINES:
                raise ValueError("a value is too long") from None
            continue
        yield start, at
        start, lines = at, 0


def _value_span(text: str, start: int, stop: int) -> tuple[int, int]:
    """The span of the value in a statement with a bare key, without the comment behind it."""
    value = next(iter(loads(text[start:stop]).values()))
    begin = text.index("=", start) + 1
    begin += len(text[begin:stop]) - len(text[begin:stop].lstrip(" \t"))
    # a comment may hold quotes and brackets, so the parser is asked: the value ends where one character less is another
    ends = (at for at in range(stop, begin, -1) if not text[at - 1].isspace())
    end = next(at for at in ends if _reads_as(text[begin:at], value) and not _reads_as(text[begin : at - 1], value))
    return begin, end


def _reads_as(source: str, value: Any) -> bool:
    try:
        return bool(loads(f"a = {source}") == {"a": value})
    except ValueError:
        return False
