"""Front matter: the YAML (``---``) or TOML (``+++``) block at the start of a page, as JSON values and words to search.

A block that is incomplete, invalid, too large or malicious is not front matter. It stays in the text, without an error.
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
"""The limit for the values of a block. A value counts for each alias, as a few lines of YAML can stand for billions."""
MAX_BITS = 2048
"""The limit for a whole number, of 617 digits. Python reads longer ones in hex, and writes at most 4,300 digits, or 640
if so configured."""
SEARCHED = ("description", "keywords", "tags", "aliases")
"""Keys whose texts find the page: authors add them for search, or readers see them next to the title."""
MAX_SEARCHED = 1000
"""So many characters of these texts are searched, so that they do not outweigh the text of the page."""

_CLOSERS = {"---": ("---", "..."), "+++": ("+++",)}  # YAML itself ends a document with three dots


class Refused(Exception):
    """Raised for valid front matter that is over a limit."""


def split(text: str) -> tuple[Mapping[str, Any], int]:
    """The metadata of a page, and the offset at which its text begins; ``({}, 0)`` without front matter.

    ``text`` has no byte order mark. In the metadata, keys are strings, and dates and times are ISO 8601 strings.
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
    """The offset after the block at the start of a page, whether it is valid front matter or not; 0 without a block."""
    return _block(text)[-1]


def plain(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Metadata from another program as JSON values. Values that are over a limit or of another type are left out."""
    values: dict[str, Any] = {}
    for key, value in metadata.items():
        with contextlib.suppress(Refused):  # the limit is for each value, so that a large one does not affect others
            values[_key(key)] = _plain(value, 0, [MAX_NODES])
    return values


def searched(metadata: Mapping[str, Any]) -> str:
    """The texts of the keys in :data:`SEARCHED`, in one line of at most :data:`MAX_SEARCHED` characters."""
    texts: list[str] = []
    for key in SEARCHED:
        value = metadata.get(key)
        texts += [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    return " ".join(" ".join(texts)[:MAX_SEARCHED].replace("\0", " ").split())


def _block(text: str) -> tuple[str, int, int, int]:
    """The fence of the block at the start of a page, the span of its content, and the offset after it; 0 for all three
    without a block."""
    start = position = _line(text, 0)
    fence = text[:start].rstrip()
    while fence in _CLOSERS and position < len(text) and position - start <= MAX_CHARS:
        following = _line(text, position)
        if text[position:following].rstrip() in _CLOSERS[fence]:
            return fence, start, position, following
        position = following
    return fence, 0, 0, 0


def _line(text: str, position: int) -> int:
    """The offset after the line that begins at ``position``."""
    match = LINE.match(text, position)
    return match.end() if match else len(text)


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    """``value`` as a JSON value. ``budget``: the number of values that are still allowed, in a list of one item."""
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise Refused
    if value is None or isinstance(value, bool):  # before int, because a bool is an int
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
    # Sorted, because the order of sets differs between processes; by repr, because types may differ.
    if isinstance(value, (set, frozenset)):
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
