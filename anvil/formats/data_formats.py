"""JSON, TOML, YAML and times as texts: they are read within limits, and as plain data, because others wrote them.

Canonical JSON is for digests and for columns of an index. PyYAML and the TOML reader are imported at first use.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from anvil.formats.patterns import lazy_pattern

if TYPE_CHECKING:
    import yaml

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_SIMPLE = {str, int, float, bool, type(None)}
LEFT_OUT = {"optional", "usual", "unsent"}
"""Keys in the metadata of a dataclass field by which :func:`plain` leaves the field out."""
MAX_TOML_STEPS, MAX_TOML_STEPS_PER_CHARACTER = 1_000_000, 20
"""The TOML reader compares each part of a key ``a.b.c`` with all parts before it, and with those of the header
``[a.b.c]``. It may take so many steps. A hundred million take a second; a lockfile takes two for each character."""
MAX_DEPTH = 32
"""Nested levels of mappings and lists, in YAML and in front matter."""
MAX_ALIASED_NODES = 10_000
"""The nodes of all aliases and merge keys of a YAML text, because aliases of aliases multiply ("billion laughs")."""
Tags = Literal["refuse", "plain", "null"]
"""A value with a tag of another program, such as ``!ENV``, is an error, the value without the tag, or None."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""The first second of the year 1 and the last second of the year 9999, counted from 1970."""
_SPELLED_TIME = lazy_pattern(
    r"(\d{4}(?:-\d\d(?:-\d\d(?:[Tt ]\d\d(?::\d\d(?::\d\d)?)?)?)?)?)(?:(?<=:\d\d:\d\d)[.,]\d{1,30})?"
    r"( ?(?:[Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d))?",
    re.ASCII,
)
_LENGTHS = {
    **{4: timedelta(days=366), 7: timedelta(days=31), 10: timedelta(days=1)},
    **{13: timedelta(hours=1), 16: timedelta(minutes=1), 19: timedelta(seconds=1)},
}
"""Length of a time's text without zone -> length of its time span; that of the longest year and month."""


def timestamp(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, whole seconds: ``2026-01-31T09:30:00Z``.

    A damaged time stamp can be outside the years 1 to 9999. Then the nearest time inside is returned.
    """
    moment = _EPOCH + timedelta(seconds=min(max(int(seconds), _EARLIEST), _LATEST))
    # Not by strftime, which writes the year 1 without leading zeros, and fails on some systems.
    return moment.isoformat().replace("+00:00", "Z")


def time_span(text: str) -> tuple[str, str]:
    """The time span of a text such as ``2026-01`` or ``2026-01-31T10:30+01:00``: its first second and the first second
    after it, in the form of :func:`timestamp`.

    The text can name a year, month, day, hour, minute or second. Without a zone, it is UTC. Fractions of a second are
    dropped. Raises :class:`ValueError` for other texts.
    """
    match = _SPELLED_TIME.fullmatch(text.strip())  # datetime.fromisoformat of Python 3.10 reads no Z and no month
    plain, zone = (match[1], (match[2] or "").strip()) if match else ("", "")
    if not plain or (zone and len(plain) <= len("2026-01-31")):
        raise ValueError("that is written in another way")
    start = datetime.fromisoformat(plain + "0000-01-01T00:00:00"[len(plain) :])
    if zone not in ("", "Z", "z"):
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        try:
            start += offset if zone[0] == "-" else -offset
        except OverflowError:
            raise ValueError("not in any calendar") from None
    try:
        end = start + _LENGTHS[len(plain)]
    except OverflowError:  # beyond the year 9999
        return f"{start.isoformat()}Z", "A"  # sorts after every time
    # A month or year may be shorter than the longest one. Its end is the first day of the next month.
    end = end.replace(day=1) if len(plain) < len("2026-01-31") else end
    return f"{start.isoformat()}Z", f"{end.isoformat()}Z"


# --- JSON ------------------------------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """Canonical JSON: with sorted keys, without spaces, and without escapes for characters outside ASCII."""
    return _CANONICAL.encode(value)


def plain(value: Any, *, lean: bool = False) -> Any:
    """A result as JSON values: dataclasses and named tuples become objects, and other tuples arrays.

    ``lean``: without fields that have their usual value, such as a URL that is None: agents pay for each character.
    """
    kind: Any = type(value)
    if kind in _SIMPLE:
        return value
    if (names := _fields(kind)) is not None:
        fields = {
            name: item if type(item := getattr(value, name)) in _SIMPLE else plain(item, lean=lean) for name in names
        }
        for name, usual in _left_out(kind, lean):
            if fields[name] == usual or usual is ...:
                del fields[name]
        return fields
    if isinstance(value, (tuple, list)):
        return [item if type(item) in _SIMPLE else plain(item, lean=lean) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item, lean=lean) for key, item in value.items()}
    return value


@cache
def _left_out(kind: Any, lean: bool) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass that may be left out, each with the value at which it is; ``...`` for any."""
    if not dataclasses.is_dataclass(kind):
        return ()
    names = LEFT_OUT if lean else {"optional"}
    fields = [field for field in dataclasses.fields(kind) if field.metadata.keys() & names]
    return tuple((f.name, ... if f.metadata.get("unsent") else f.metadata.get("usual")) for f in fields)


@cache
def _fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a dataclass or named tuple; None for another type."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


def compact(value: Any) -> str:
    """A plain value as JSON without spaces, and without escapes for characters outside ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """The object in a JSON text; None for other values, for texts that are not JSON, and for deeply nested ones."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def strict_json(text: str) -> Any:
    """The value of a JSON text; None if it is no JSON, or has numbers such as NaN."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def no_constant(name: str) -> NoReturn:
    """Refuse constants that Python reads and JSON does not have, such as NaN. It is a ``parse_constant``."""
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=no_constant)  # made once, because json.loads makes one for each call


def is_deep(value: Any, levels: int) -> bool:
    """Whether a JSON value has more than ``levels`` nested levels."""
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for value in level
            if isinstance(value, (Mapping, list, tuple))
            for inner in (value.values() if isinstance(value, Mapping) else value)
        ]
        if not level:
            return False
    return True


def value_at(value: Any, *keys: str) -> Any:
    """The value ``value[key][key]...``; None if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def objects(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The objects in the list ``value[key]...``; an empty list if there is no such list."""
    items = value_at(value, *keys)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


# --- TOML ------------------------------------------------------------------------------------------------


def read_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises :class:`ValueError` if it is invalid or over a limit."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    limit = MAX_TOML_STEPS + MAX_TOML_STEPS_PER_CHARACTER * len(text)
    steps = header = 0
    for line in text.split("\n"):
        dots = line.count(".")
        if line.lstrip().startswith("["):
            header = max(header, dots)  # of the longest header so far: a line in a string may look like a header
        steps += (dots + 1) * (dots + header + 1)
    if steps > limit:
        raise ValueError("it has keys of too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("it has a number of too many digits") from None


def toml_string(text: str) -> str:
    """A text as a TOML string in one line. It is a JSON string, with an escape for DEL, which JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- YAML ------------------------------------------------------------------------------------------------


def read_yaml(text: str, tags: Tags = "refuse", *, strings: bool = False) -> Any:
    """The value of a YAML text. ``strings``: scalars stay texts, so that ``1.10`` is not 1.1. Then tags are ignored.

    Raises :class:`ValueError`, which names the line, if the text is no YAML or has too many levels or aliases.
    """
    import yaml

    try:
        for _ in _bounded_events(text):
            pass
        return yaml.load(text, Loader=_loader("strings" if strings else tags))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = f"line {mark.line + 1}" if mark else "it"
        problem = getattr(error, "problem", None)
        raise ValueError(f"{location} is not YAML" + (f": {problem}" if problem else "")) from error
    except (TypeError, OverflowError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError("it is not YAML") from error  # PyYAML raises these for some scalars


@cache
def _loader(kind: Tags | Literal["strings"]) -> Any:
    """PyYAML's loader, in C if that is available, with constructors for unknown tags."""
    import yaml

    if kind == "strings":
        return getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if kind == "refuse":
        return safe
    loader: Any = type("Loader", (safe,), {})  # a new class, because constructors are added to it
    loader.add_multi_constructor("", _untagged if kind == "plain" else lambda loader, suffix, node: None)
    return loader


def _untagged(loader: Any, suffix: str, node: yaml.Node) -> Any:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value or suffix


def _bounded_events(text: str) -> Iterator[Any]:
    """The events of a YAML text. Raises :class:`ValueError` for too many levels, or aliases of too many nodes.

    Events need no recursion, so they are checked before a value is built from the text.
    """
    import yaml

    sizes: dict[str, int] = {}  # anchor -> number of nodes of its value, with aliases expanded
    open_collections: list[tuple[str | None, int]] = []
    size = aliased = 0
    for event in yaml.parse(text, Loader=_loader("refuse")):
        if isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, size))
            size = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, outer = open_collections.pop()
            if anchor is not None:
                sizes[anchor] = size
            size += outer
        elif isinstance(event, yaml.AliasEvent):
            nodes = sizes.get(event.anchor or "", MAX_ALIASED_NODES)  # an unknown alias is one inside its own value
            aliased += nodes if nodes > 1 else 0
            size += nodes
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor is not None:
                sizes[event.anchor] = 1
            size += 1
        if len(open_collections) > MAX_DEPTH or aliased >= MAX_ALIASED_NODES:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise ValueError(f"line {line} has too many levels or aliases")
        yield event
