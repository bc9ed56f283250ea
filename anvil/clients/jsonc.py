"""Objects in JSON with comments and trailing commas, changed as text: comments, order and other entries stay."""

from __future__ import annotations

import json
import re
from typing import Any

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def loads(text: str) -> Any:
    """The value of a text. Raises ValueError."""
    return json.loads(_plain(text))


def dumps(key: str, name: str, value: Any) -> str:
    """The text of a file with this entry alone."""
    return json.dumps({key: {name: value}}, indent=2) + "\n"


def put(text: str, key: str, name: str, value: Any) -> str:
    """``text`` with ``value`` as ``name`` in the object ``key`` of the outermost object."""
    start = _skip(_plain(text), 0)
    members, _ = _members(_plain(text), start)
    if key not in members:
        return _put(text, start, key, {name: value})
    return _put(text, members[key][1], name, value)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """``text`` with spaces for matches of ``pattern`` outside of strings, so that positions do not change."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def _plain(text: str) -> str:
    """``text`` without comments and trailing commas, with the same positions."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def _skip(plain: str, at: int) -> int:
    """The position after white space."""
    match = _SPACE.match(plain, at)
    return match.end() if match else at


def _members(plain: str, start: int) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Key -> (start of the key, start and end of the value) of the object at ``start``; the position of its ``}``."""
    decode = json.JSONDecoder().raw_decode
    members: dict[str, tuple[int, int, int]] = {}
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        begin = at
        key, at = decode(plain, at)
        value = _skip(plain, _skip(plain, at) + 1)
        end = decode(plain, value)[1]
        members[key] = begin, value, end
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return members, at


def _put(text: str, start: int, key: str, value: Any) -> str:
    """The text with ``value`` under ``key`` of the object at ``start``."""
    members, brace = _members(_plain(text), start)
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = re.match(r"[ \t]*", text[text.rfind("\n", 0, start) + 1 :])[0]  # type: ignore[index]
    inner = outer + ("\t" if "\n\t" in text else "  ")
    first = min((begin for begin, _, _ in members.values()), default=start)
    before = text[text.rfind("\n", 0, first) + 1 : first]
    if before and not before.strip() and "\n" in text[start:first]:
        inner = before
    written = json.dumps(value, indent=inner.removeprefix(outer) or "  ").replace("\n", newline + inner)
    if key in members:
        _, begin, end = members[key]
        return text[:begin] + written + text[end:]
    last = max((end for _, _, end in members.values()), default=start + 1)
    comma = _blanked(_COMMENT, text).find(",", last, brace)
    at, missing = (comma + 1, "") if comma >= 0 else (last, "," if members else "")
    added = f"{newline}{inner}{json.dumps(key)}: {written}"
    if not text[at:brace].strip(" \t"):  # the brace is on the same line
        return f"{text[:at]}{missing}{added}{newline}{outer}{text[brace:]}"
    rest = re.match(r"[ \t]*(?://[^\n\r]*)?", text[at:])[0]  # type: ignore[index]  # the comment on that line
    return f"{text[:at]}{missing}{rest}{added}{text[at + len(rest) :]}"
