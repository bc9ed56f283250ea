"""Mappings of a YAML file, changed as text: comments, order and other entries stay.

The caller compares the value of the new text with the expected one: a file in an unusual form is not changed.
"""

from __future__ import annotations

import textwrap
from typing import Any

import yaml

from anvil.formats import data_formats

_EMPTY = ("", "{}", "~", "null")
_LINE_WIDTH = 10**6
"""Characters after which a text would be folded."""


def loads(text: str) -> Any:
    """The value of a text; an empty one is an empty mapping. Raises ValueError."""
    value = data_formats.read_yaml(text)
    return {} if value is None else value


def dumps(key: str, name: str, value: Any) -> str:
    """The text of a file with this entry alone."""
    return _dump({key: {name: value}})


def put(text: str, key: str, name: str, value: Any) -> str:
    """``text`` with ``value`` as ``name`` of the mapping ``key``: in its place, else as the first entry.

    Raises ValueError for invalid text, and for a form that is not changed here.
    """
    loads(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    servers = _member(yaml.compose(text, yaml.SafeLoader), key)
    if servers is None:
        gap = "" if not text or text.endswith("\n") else newline
        return text + gap + dumps(key, name, value).replace("\n", newline)
    _, mapping = servers
    start, end = mapping.start_mark.index, mapping.end_mark.index
    if text[start:end] in _EMPTY:
        line = text[end:].split("\n")[0].removesuffix("\r")
        head, tail = text[:start].rstrip(" ") + line, text[end + len(line) :]
        block = textwrap.indent(_dump({name: value}), "  ").replace("\n", newline)
        return f"{head}{newline}{block.removesuffix(newline)}{tail or newline}"
    if not isinstance(mapping, yaml.MappingNode):
        raise ValueError(f"{key} is not a mapping")
    if mapping.flow_style:
        raise ValueError(f"{key} is written in braces")
    first = mapping.value[0][0].start_mark
    indent = " " * first.column
    block = textwrap.indent(_dump({name: value}), indent).replace("\n", newline)
    old = _member(mapping, name)
    if old is None:
        at = first.index - first.column
        return text[:at] + block + text[at:]
    start = old[0].start_mark.index - old[0].start_mark.column
    return text[:start] + block.removesuffix(newline) + text[_end(old[1], text) :]


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH)


def _member(node: Any, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The nodes of a key and its value in a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next(((name, value) for name, value in pairs if getattr(name, "value", None) == key), None)


def _end(node: Any, text: str) -> int:
    """The end of the last text of a node, without blank lines and comments behind it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    start, end = node.start_mark.index, node.end_mark.index
    return int(start + len(text[start:end].rstrip()))
