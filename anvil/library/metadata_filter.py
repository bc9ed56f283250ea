"""Metadata, filters and names that clients send: their validation, and filters as conditions in SQL.

The results are safe to store and to compare in SQL. For other values an error names the valid ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from anvil.errors import ConfigError
from anvil.formats.characters import is_plain_name
from anvil.formats.data_formats import canonical, is_deep, time_span
from anvil.index_file.table_rows import most_chunks

TIMES = ("last_modified", "created_at")
NUMBERS = ("page", "chunk_index")
FIELDS = ("file_type", "page", "chunk_index", "last_modified", "created_at", "source", "title", "library", "doc_id")
"""Fields of a filter, in addition to ``metadata.KEY``."""
OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""Operator of a range -> operator in SQL."""
_SQL = {
    **dict.fromkeys(("doc_id", "created_at"), "id IN (SELECT id FROM holdings WHERE {0} {1} ?)"),
    "source": "file_path {1} ?",
    "chunk_index": f"id & {most_chunks() - 1} {{1}} ?",
}
"""Field of a filter -> its condition, if it is not a column of this name. ``{0}``: the field, ``{1}``: the operator."""
_LABEL: dict[tuple[str, type], str] = {
    ("=", str): "value =",
    **{
        (sign, str): f"value >= '\"' AND value < '#' AND json_extract(value, '$') {sign}" for sign in OPERATORS.values()
    },
    **{(sign, int): f"value >= '-' AND value < ':' AND CAST(value AS INTEGER) {sign}" for sign in OPERATORS.values()},
}
"""(operator, type of the value) -> condition. A range compares values of the same type only. The stored value is JSON:
text begins with a quotation mark, a number with a digit or a minus sign, true and false with a letter."""
MAX_METADATA_BYTES = 16_384
MAX_DEPTH = 64
"""Nested levels of metadata. Programs that read JSON have such limits, too."""
MAX_NAME_CHARACTERS = 200
MAX_SOURCE_CHARACTERS = 4096
MAX_INTEGER = 2**63 - 1
"""SQLite compares whole numbers up to this exactly."""
_KEY = "metadata."


class Condition(NamedTuple):
    sql: str
    values: tuple[str | int, ...]

    @classmethod
    def on(cls, name: str, operator: str, value: str | int) -> Condition:
        """A condition on a field. ``operator``: ``=`` or an SQL operator of ``OPERATORS``."""
        return cls(_SQL.get(name, "{0} {1} ?").format(name, operator), (value,))

    @classmethod
    def on_label(cls, key: str, operator: str, value: str | int) -> Condition:
        """A condition on metadata. ``value``: JSON for ``=``, a number or text for other operators."""
        comparison = _LABEL[operator, type(value)]
        return cls(f"id IN (SELECT document_id FROM labels WHERE key = ? AND {comparison} ?)", (key, value))


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all be true: on rows of the table ``documents``, and on rows of ``chunks``."""

    documents: tuple[Condition, ...] = ()
    passages: tuple[Condition, ...] = ()


def all_of(conditions: Sequence[Condition]) -> tuple[str, list[str | int]]:
    """One SQL condition for all of ``conditions``, and its values."""
    sql = " AND ".join(["1", *(condition.sql for condition in conditions)])
    return sql, [value for condition in conditions for value in condition.values]


def document_filter(conditions: Mapping[str, Any] | None, library: str | None = None) -> Filter:
    """The filter for a client's conditions, in one library or in all (None). Raises :class:`ConfigError`."""
    documents = [] if library is None else [Condition.on("library", "=", library_name(library))]
    passages: list[Condition] = []
    for name, value in (conditions or {}).items():
        if name.startswith(_KEY) and len(name) > len(_KEY):
            documents += _of_metadata(name, value)
        elif name not in FIELDS:
            raise ConfigError(f"Unknown filter field {_shown(name)!r}. Use {', '.join(FIELDS)} or metadata.KEY.")
        elif name in NUMBERS:
            bounds = [("=", value)] if isinstance(value, int) else _range(name, value, "a whole number")
            passages += (Condition.on(name, operator, _number(name, bound)) for operator, bound in bounds)
        elif name in TIMES:
            documents += _of_time(name, value)
        elif isinstance(value, Mapping):
            ranged = ", ".join((*NUMBERS, *TIMES))
            raise ConfigError(f"filter.{name} takes a value, not a range. Ranges are for {ranged} and metadata.KEY.")
        elif not isinstance(value, str):
            raise ConfigError(f"filter.{name} must be a string.")
        else:
            value = value.lower().removeprefix(".") if name == "file_type" else value
            documents.append(Condition.on(name, "=", valid_unicode(value)))
    return Filter(tuple(documents), tuple(passages))


def _of_metadata(name: str, value: Any) -> Iterator[Condition]:
    key = valid_unicode(name[len(_KEY) :])
    if isinstance(value, (str, int)):  # also true and false: in Python they are integers
        yield Condition.on_label(key, "=", _as_json(value))
        return
    for operator, bound in _range(name, value, "a string, a whole number, true or false"):
        is_text = isinstance(bound, str)
        limit = valid_unicode(bound) if is_text else _number(name, bound, "a string or a whole number")
        yield Condition.on_label(key, operator, limit)


def _of_time(name: str, value: Any) -> Iterator[Condition]:
    if isinstance(value, str):
        first, beyond = _span(name, value)
        yield Condition.on(name, ">=", first)
        yield Condition.on(name, "<", beyond)
        return
    for operator, bound in _range(name, value, "an ISO 8601 time such as 2026-01-31"):
        # A bound is a span of time, too. "<= 2026" includes that year and "> 2026" begins after it, so both compare
        # with the end of the year.
        first, beyond = _span(name, bound)
        yield Condition.on(name, "<" if operator[0] == "<" else ">=", first if operator in ("<", ">=") else beyond)


def _range(name: str, value: Any, plain_values: str) -> Iterator[tuple[str, Any]]:
    """(SQL operator, bound) of each operator in a range. ``plain_values``: those without a range, for the message."""
    if not isinstance(value, Mapping) or not value:
        expected = f'{plain_values}, or a range such as {{"gte": ..., "lt": ...}}'
        raise ConfigError(f"filter.{_shown(name)} must be {expected}.")
    for operator, bound in value.items():
        if operator not in OPERATORS:
            operators = ", ".join(OPERATORS)
            raise ConfigError(f"Unknown operator {_shown(str(operator))!r} in filter.{_shown(name)}. Use {operators}.")
        yield OPERATORS[operator], bound


def _span(name: str, value: Any) -> tuple[str, str]:
    try:
        return time_span(value if isinstance(value, str) else "")
    except ValueError as error:
        reason = f" ({error})" if isinstance(value, str) else ""
        raise ConfigError(
            f"filter.{name} must be an ISO 8601 time such as 2026-01-31 or 2026-01-31T09:30:00Z{reason}."
        ) from None


def _number(name: str, value: Any, expected: str = "a whole number") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"filter.{_shown(name)} must be {expected}.")
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise ConfigError(f"filter.{_shown(name)} must be a number from {-MAX_INTEGER} to {MAX_INTEGER}.")
    return value


def checked_metadata(value: Any) -> dict[str, Any]:
    """A document's metadata: a JSON object of at most ``MAX_METADATA_BYTES``. Raises :class:`ConfigError`."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError("metadata must be a JSON object.")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("metadata must be a JSON object, of strings, numbers, lists and objects.") from None
    if size > MAX_METADATA_BYTES:
        raise ConfigError(f"metadata has {size:,} bytes as JSON; the limit is {MAX_METADATA_BYTES:,}. Send less of it.")
    if is_deep(value, MAX_DEPTH):
        raise ConfigError(f"metadata has more than {MAX_DEPTH} nested levels. Send fewer levels.")
    metadata: dict[str, Any] = json.loads(text)  # plain JSON: tuples become lists, and nothing is shared
    return metadata


def merged_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """``old`` with the keys of ``new`` set; None removes a key. Raises :class:`ConfigError` if it is too large."""
    return checked_metadata({key: value for key, value in {**old, **new}.items() if new.get(key, value) is not None})


def different_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys of ``new`` with another value than in ``old``, sorted. A missing key counts as None."""
    return sorted(key for key in new if canonical(old.get(key)) != canonical(new[key]))


def labels_of(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, value as JSON) of the metadata that filters compare: top-level strings, whole numbers, true and false."""
    return [(key, _as_json(value)) for key, value in metadata.items() if isinstance(value, (str, int))]


def library_name(name: str) -> str:
    """``name``, if it can be the name of a library. Raises :class:`ConfigError`."""
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise ConfigError(f"library must be a name of 1 to {MAX_NAME_CHARACTERS} printable characters.")
    return name


def source_name(name: str, parameter: str = "source") -> str:
    """``name``, if it can be the source of a document: a path, a URL or another name. ``parameter``: what errors call
    it. Raises :class:`ConfigError`."""
    if not name.strip():
        raise ConfigError(f"{parameter} is empty. {_EXAMPLES.get(parameter, _EXAMPLES['source'])}")
    if len(name) > MAX_SOURCE_CHARACTERS:
        raise ConfigError(f"{parameter} has {len(name):,} characters; the limit is {MAX_SOURCE_CHARACTERS:,}.")
    if not is_plain_name(name):
        raise ConfigError(f"{parameter} has control characters, or is not valid Unicode. Give it another name.")
    return name


_EXAMPLES = {
    "source": "Give the document a name such as notes/today.md.",
    "path": "Name a file.",
    "folder": "Name a folder; '.' is the working folder.",
    "url": "Give an http or https URL.",
}


def _as_json(value: str | int) -> str:
    return json.dumps(valid_unicode(value) if isinstance(value, str) else value, ensure_ascii=False)


def valid_unicode(text: str) -> str:
    """The text with lone surrogates replaced, which cannot be stored as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shown(name: str) -> str:
    return name[:60]
