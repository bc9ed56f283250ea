"""Front matter: the YAML (``---``) or TOML (``+++``) block at the start of a page.

:func:`split` returns it as plain JSON values. A block that is incomplete, invalid, too large or malicious is not front
matter. It stays in the text, and nothing is raised.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from anvil.formats.characters import LINE, LINE_END, is_unicode
from anvil.formats.data_formats import MAX_DEPTH, read_toml, read_yaml

MAX_CHARS = 65_536
"""Longer front matter is text. Real pages stay under 4,000 characters."""
MAX_NODES = 10_000
"""Values of a block, each as often as it is named: a few lines of YAML aliases can stand for billions of them."""
MAX_BITS = 2048
"""Of a whole number: 617 digits. Python writes 4,300 at most (640 if configured), but reads more in hex."""
SEARCHED = ("description", "keywords", "tags", "aliases")
"""Keys with words that authors add for search, or texts that readers see next to the title. A page is found by them."""
MAX_SEARCHED = 1000
"""Characters of these that are searched, so that they do not outweigh a page's text."""

_CLOSERS = {"---": ("---", "..."), "+++": ("+++",)}  # YAML itself ends a document with three dots


class Refused(Exception):
    """Valid front matter that is over a limit."""


def split(text: str) -> tuple[Mapping[str, Any], int]:
    """The page's metadata and the offset at which its text begins: ``({}, 0)`` without front matter.

    ``text`` has no byte order mark. Keys are strings; dates and times are ISO 8601 strings.
    """
    fence, start, end, following = _block(text)
    if not following:
        return {}, 0
    try:
        loaded = read_toml(LINE_END.sub("\n", text[start:end])) if fence == "+++" else read_yaml(text[start:end])
        metadata = {} if loaded is None else _plain(loaded, 0, [MAX_NODES])
    except (ValueError, RecursionError, Refused):
        return {}, 0
    return (metadata, following) if isinstance(metadata, dict) else ({}, 0)


def end(text: str) -> int:
    """The offset at which the text begins if the block at its start is front matter, valid or not; 0 without one."""
    return _block(text)[-1]


def plain(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Metadata from another program as JSON values; other values are left out."""
    values: dict[str, Any] = {}
    for key, value in metadata.items():
        with contextlib.suppress(Refused):  # a limit for each value, so that one that is too large loses no other
            values[_key(key)] = _plain(value, 0, [MAX_NODES])
    return values


def searched(metadata: Mapping[str, Any]) -> str:
    """The texts of :data:`SEARCHED` keys, in a line: :data:`MAX_SEARCHED` characters at most."""
    texts: list[str] = []
    for key in SEARCHED:
        value = metadata.get(key)
        texts += [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return " ".join(" ".join(texts)[:MAX_SEARCHED].replace("\0", " ").split())


def _block(text: str) -> tuple[str, int, int, int]:
    """The fence of the block at the start, the span of its content, and the offset after it; 0 without a block."""
    start = position = _line(text, 0)
    fence = text[:start].rstrip()
    while fence in _CLOSERS and position < len(text) and position - start <= MAX_CHARS:
        following = _line(text, position)
        if text[position:following].rstrip() in _CLOSERS[fence]:
            return fence, start, position, following
        position = following
    return fence, 0, 0, 0


def _line(text: str, position: int) -> int:
    """Offset after the line that begins at ``position``."""
    match = LINE.match(text, position)
    return match.end() if match else len(text)


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    """``value`` as a JSON value. ``budget``: number of nodes that are still allowed."""
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise Refused
    if value is None or isinstance(value, bool):  # before int, which a bool is too
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no infinity and no NaN
    if isinstance(value, (date, time)):  # datetime is a date
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, depth + 1, budget) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):  # sorted: their order differs between processes. By repr: types may differ
        return sorted((_plain(item, depth + 1, budget) for item in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1, budget) for item in value]
    raise Refused


def _key(key: Any) -> str:
    """A key as text: YAML reads ``1:``, ``on:`` and ``2026-01-31:`` as a number, a bool and a date."""
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, int):
        return str(_whole(key))
    if isinstance(key, (date, time)):
        return key.isoformat()
    if not isinstance(key, (str, float, bytes)):
        raise Refused
    return _text(str(key))


def _whole(number: int) -> int:
    if number.bit_length() > MAX_BITS:
        raise Refused
    return number


def _text(text: str) -> str:
    if not is_unicode(text):  # a lone surrogate, from an escape
        raise Refused
    return text
