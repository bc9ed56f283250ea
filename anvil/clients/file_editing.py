"""Edits of configuration files in JSON with comments, TOML and YAML, as text: comments, order and other entries stay.

A file in an unusual form may be edited wrongly. So the caller parses the new text and compares its value with the
expected one. PyYAML is imported for YAML only, because its import takes long and few clients have YAML.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from anvil.clients.known_clients import Format
from anvil.formats import data_formats


class Editor(NamedTuple):
    """The functions of a format. Two of them take the key of the entries, and the name and value of an entry.

    ``loads``: the value of a text. Raises ValueError. ``dumps``: the text of a file with this entry alone. ``put``: the
    given text with this entry in it. Raises ValueError if the text is invalid or in a form that cannot be edited.
    """

    loads: Callable[[str], Any]
    dumps: Callable[[str, str, dict[str, Any]], str]
    put: Callable[[str, str, str, dict[str, Any]], str]


# --- JSON with comments and trailing commas --------------------------------------------------------------------------

# The first group of both expressions is a string, in which nothing is a comment or a comma of the format.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))|,(?=\s*[\]}])', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def _put_json(text: str, key: str, name: str, value: Any) -> str:
    start = _skip(_plain(text), 0)
    members, _ = _members(_plain(text), start)
    if key not in members:
        return _put_member(text, start, key, {name: value})
    return _put_member(text, members[key][1], name, value)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """``text`` with spaces for matches of ``pattern`` outside of strings, so that positions do not change."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def _plain(text: str) -> str:
    """``text`` without comments and trailing commas, with the same positions."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def _skip(plain: str, at: int) -> int:
    match = _SPACE.match(plain, at)
    return match.end() if match else at


def _members(plain: str, start: int) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Key -> (its start, start and end of the value) of the object at ``start``; and the position of its ``}``."""
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


def _put_member(text: str, start: int, key: str, value: Any) -> str:
    """The text with ``value`` under ``key`` of the object at ``start``."""
    members, brace = _members(_plain(text), start)
    newline = "\r\n" if "\r\n" in text else "\n"
    # ``outer``: the indentation of the object, ``inner``: that of its members
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
    comment = re.match(r"[ \t]*(?://[^\n\r]*)?", text[at:])[0]  # type: ignore[index]  # stays on its line
    return f"{text[:at]}{missing}{comment}{added}{text[at + len(comment) :]}"


# --- TOML ------------------------------------------------------------------------------------------------------------

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
"""The beginning of the next table. Blank lines and comments before it belong to that table."""


def _loads_toml(text: str) -> Any:
    return data_formats.read_toml(text.replace("\r\n", "\n"))


def _dumps_toml(key: str, name: str, value: Mapping[str, Any]) -> str:
    return f"[{_key(key)}.{_key(name)}]\n{_statements(value)}"


def _put_toml(text: str, key: str, name: str, value: Mapping[str, Any]) -> str:
    """The text with the entry as a table ``[key.name]``, in place of an existing one's values, else at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    whole = _loads_toml(text)
    servers = whole.get(key) or {}
    if name not in servers:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return text + gap + _dumps_toml(key, name, value).replace("\n", newline)
    names = [f"(?:{re.escape(part)}|{re.escape(_value(part))})" for part in (key, name)]
    head = re.search(rf"^[ \t]*\[[ \t]*{names[0]}[ \t]*\.[ \t]*{names[1]}[ \t]*\].*(?:\n|\Z)", text, re.MULTILINE)
    if head is None:
        raise ValueError(f"{key}.{name} is not in a table [{_key(key)}.{_key(name)}] of its own")
    written = _statements({**servers[name], **value}).replace("\n", newline)
    after = _TABLE.search(text, head.end())
    lines = _LINE.findall(text, head.end(), after.start() if after else len(text))
    while lines and lines[-1].strip()[:1] in ("", "#"):
        lines.pop()
    below = text[head.end() + len("".join(lines)) :]
    return text[: head.end()] + ("" if head[0].endswith("\n") else newline) + written + below


def _statements(entry: Mapping[str, Any]) -> str:
    """The keys and values of a table, without values that are tables."""
    return "".join(f"{_key(part)} = {_value(value)}\n" for part, value in entry.items() if not isinstance(value, dict))


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: Any) -> str:
    """A text, a number, a boolean or a list of these as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return data_formats.toml_string(value) if isinstance(value, str) else json.dumps(value)


# --- YAML ------------------------------------------------------------------------------------------------------------

_LINE_WIDTH = 10**6
"""Characters of a line. PyYAML would break longer texts into several lines."""


def _loads_yaml(text: str) -> Any:
    value = data_formats.read_yaml(text)
    return {} if value is None else value


def _put_yaml(text: str, key: str, name: str, value: Any) -> str:
    """The text with the entry in place of an old one, else as the first."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n")
    lines += "\n" if lines and not lines.endswith("\n") else ""
    head = re.search(rf"^{re.escape(key)}:(?:[ \t]*(?:\{{\}}|~|null))?([ \t]*(?:#.*)?)\n", lines, re.MULTILINE)
    if head is None:
        return (lines + _yaml({key: {name: value}})).replace("\n", newline)
    above, below = f"{lines[: head.start()]}{key}:{head[1]}\n", lines[head.end() :]
    first = re.match(r"(?:[ \t]*(?:#.*)?\n)*( +)[^ #\n]", below)
    indent = first[1] if first else "  "
    block = textwrap.indent(_yaml({name: value}), indent)
    label = re.escape(_yaml({name: None}).removesuffix(" null\n"))
    old = re.search(rf"^{indent}{label}.*\n(?:(?:[ \t]*\n)*{indent} .*\n)*", below, re.MULTILINE)
    at, end = old.span() if old else (first.start(1) if first else 0,) * 2
    return (above + below[:at] + block + below[end:]).replace("\n", newline)


def _yaml(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH)


EDITORS: Mapping[Format, Editor] = {
    "json": Editor(
        lambda text: json.loads(_plain(text)),
        lambda key, name, value: json.dumps({key: {name: value}}, indent=2) + "\n",
        _put_json,
    ),
    "toml": Editor(_loads_toml, _dumps_toml, _put_toml),
    "yaml": Editor(_loads_yaml, lambda key, name, value: _yaml({key: {name: value}}), _put_yaml),
}
