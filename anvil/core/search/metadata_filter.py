"""What a caller says of documents, checked: metadata to keep with one, and filters that choose among them.

Pure. Whatever a client sends comes out as values that are safe to store and compare, or as an error that says what
would have been.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anvil.core import iso_time
from anvil.errors import ConfigError

TIMES = ("last_modified", "created_at")
NUMBERS = ("page", "chunk_index")
FIELDS = ("file_type", "page", "chunk_index", "last_modified", "created_at", "source", "title", "library", "doc_id")
"""What can be filtered by, besides ``metadata.KEY``."""
OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""Of ranges, and what they are in SQL."""
MAX_METADATA_BYTES = 16_384
MAX_DEPTH = 64
"""Levels of metadata: it has to travel through other programs."""
MAX_NAME_CHARACTERS = 200
MAX_SOURCE_CHARACTERS = 4096
MAX_INTEGER = 2**63 - 1
"""Numbers that SQLite compares exactly."""
_KEY = "metadata."


class Condition(NamedTuple):
    """``name operator value``; the operator is ``=`` or one of SQL's of ``OPERATORS``."""

    name: str
    operator: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold.

    ``fields``: of documents; times are compared as they are stored. ``labels``: of metadata, by key; with ``=`` the
    value is JSON, in a range it is a number or text. ``passages``: page and chunk_index, of passages.
    """

    fields: tuple[Condition, ...] = ()
    labels: tuple[Condition, ...] = ()
    passages: tuple[Condition, ...] = ()

    @property
    def of_documents(self) -> bool:
        """Whether it says anything of documents."""
        return bool(self.fields or self.labels)


def document_filter(given: Mapping[str, Any] | None, library: str | None = None) -> Filter:
    """The filter that a caller means, within one library or all (None). Raises :class:`ConfigError`."""
    fields = [] if library is None else [Condition("library", "=", library_name(library))]
    labels: list[Condition] = []
    passages: list[Condition] = []
    for name, value in (given or {}).items():
        if name.startswith(_KEY) and len(name) > len(_KEY):
            labels += _of_metadata(name, value)
        elif name not in FIELDS:
            raise ConfigError(f"Unknown filter field {_shown(name)!r}. Use {', '.join(FIELDS)} or metadata.KEY.")
        elif name in NUMBERS:
            passages += _of_number(name, value)
        elif name in TIMES:
            fields += _of_time(name, value)
        elif isinstance(value, Mapping):
            ranged = ", ".join((*NUMBERS, *TIMES))
            raise ConfigError(f"filter.{name} takes a value, no range. Ranges are for {ranged} and metadata.KEY.")
        elif not isinstance(value, str):
            raise ConfigError(f"filter.{name} must be a string.")
        else:
            fields.append(Condition(name, "=", _sound(value)))
    return Filter(tuple(fields), tuple(labels), tuple(passages))


def _of_metadata(name: str, value: Any) -> Iterator[Condition]:
    key = _sound(name[len(_KEY) :])
    if isinstance(value, (str, int)):
        yield Condition(key, "=", _spelled(value))
        return
    for operator, bound in _range(name, value, "a string, a whole number, true or false"):
        if isinstance(bound, str):
            yield Condition(key, operator, _sound(bound))
        else:
            yield Condition(key, operator, _number(name, bound, "a string or a whole number"))


def _of_number(name: str, value: Any) -> Iterator[Condition]:
    if isinstance(value, int):
        yield Condition(name, "=", _number(name, value))
    else:
        for operator, bound in _range(name, value, "a whole number"):
            yield Condition(name, operator, _number(name, bound))


def _of_time(name: str, value: Any) -> Iterator[Condition]:
    if isinstance(value, str):
        first, beyond = _span(name, value)
        yield Condition(name, ">=", first)
        yield Condition(name, "<", beyond)
        return
    for operator, bound in _range(name, value, "an ISO 8601 time such as 2026-01-31"):
        first, beyond = _span(name, bound)
        yield Condition(name, "<" if operator[0] == "<" else ">=", first if operator in ("<", ">=") else beyond)


def _range(name: str, value: Any, else_: str) -> Iterator[tuple[str, Any]]:
    """(SQL's operator, bound) of each operator in a range; ``else_`` is what a plain value may be."""
    if not isinstance(value, Mapping) or not value:
        wanted = f'{else_}, or a range such as {{"gte": ..., "lt": ...}}'
        raise ConfigError(f"filter.{_shown(name)} must be {wanted}.")
    for operator, bound in value.items():
        if operator not in OPERATORS:
            known = ", ".join(OPERATORS)
            raise ConfigError(f"Unknown operator {_shown(str(operator))!r} in filter.{_shown(name)}. Use {known}.")
        yield OPERATORS[operator], bound


def _span(name: str, value: Any) -> tuple[str, str]:
    try:
        return iso_time.span(value if isinstance(value, str) else "")
    except ValueError as error:
        told = f" ({error})" if isinstance(value, str) else ""
        raise ConfigError(
            f"filter.{name} must be an ISO 8601 time such as 2026-01-31 or 2026-01-31T09:30:00Z{told}."
        ) from None


def _number(name: str, value: Any, wanted: str = "a whole number") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"filter.{_shown(name)} must be {wanted}.")
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise ConfigError(f"filter.{_shown(name)} must be a number from {-MAX_INTEGER} to {MAX_INTEGER}.")
    return value


def checked_metadata(given: Any) -> dict[str, Any]:
    """A document's metadata: a JSON object of at most ``MAX_METADATA_BYTES``. Raises :class:`ConfigError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ConfigError("metadata must be a JSON object.")
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("metadata must be a JSON object, of strings, numbers, lists and objects.") from None
    if size > MAX_METADATA_BYTES:
        raise ConfigError(f"metadata has {size:,} bytes as JSON; the limit is {MAX_METADATA_BYTES:,}. Send less of it.")
    if is_deep(given):
        raise ConfigError(f"metadata nests deeper than {MAX_DEPTH} levels. Send it flatter.")
    found: dict[str, Any] = json.loads(text)
    return found


def is_deep(value: Any) -> bool:
    """Whether a JSON value nests deeper than ``MAX_DEPTH`` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, (Mapping, list, tuple))
            for inner in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not level:
            return False
    return True


def labels_of(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, value as JSON) of what can be filtered by: strings, whole numbers and truth values of the top level."""
    return [(key, _spelled(value)) for key, value in metadata.items() if isinstance(value, (str, int))]


def library_name(given: str) -> str:
    """A library's name. Raises :class:`ConfigError`."""
    if not given.strip() or len(given) > MAX_NAME_CHARACTERS or not given.isprintable():
        raise ConfigError(f"library must be a name of 1 to {MAX_NAME_CHARACTERS} printable characters.")
    return given


def source_name(given: str, parameter: str = "source") -> str:
    """A document's source: its path, its URL or a name. ``parameter`` is what errors call it. Raises
    :class:`ConfigError`."""
    if not given.strip():
        raise ConfigError(f"{parameter} is empty. {_EXAMPLES.get(parameter, _EXAMPLES['source'])}")
    if len(given) > MAX_SOURCE_CHARACTERS:
        raise ConfigError(f"{parameter} has {len(given):,} characters; the limit is {MAX_SOURCE_CHARACTERS:,}.")
    if not given.isprintable():
        raise ConfigError(f"{parameter} must be printable characters. Rename what it names.")
    return given


_EXAMPLES = {
    "source": "Give the document a name such as notes/today.md.",
    "path": "Name a file.",
    "folder": "Name a folder; '.' is the working folder.",
    "url": "Give an http or https URL.",
}


def _spelled(value: str | int) -> str:
    return json.dumps(_sound(value) if isinstance(value, str) else value, ensure_ascii=False)


def _sound(text: str) -> str:
    """Half a surrogate pair is no text that could be stored, or be found."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shown(name: str) -> str:
    return name[:60]
