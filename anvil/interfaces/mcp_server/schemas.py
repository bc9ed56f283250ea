"""Results as JSON Schema, and results as JSON values.

The schemas are short on purpose: every agent reads them in every session.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
ARRAY_KEY = "result"
"""Structured content is always an object: an array stands in it under this name, as the official SDK has it."""


@cache
def output_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a result: of a dataclass, or of ``tuple[D, ...]`` of one, wrapped as :func:`structured` does.

    Nested ones stand in place, since clients differ on ``$ref``; only the outermost says ``required``.
    """
    if typing.get_origin(kind) is tuple:
        return {"type": "object", "properties": {ARRAY_KEY: _schema(kind)}, "required": [ARRAY_KEY]}
    required = [each.name for each in dataclasses.fields(kind) if not each.metadata.get("optional")]
    return {**_object(kind), "required": required}


def structured(value: Any) -> dict[str, Any]:
    """A plain value as structured content."""
    return {ARRAY_KEY: value} if isinstance(value, list) else value


def _object(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {each.name: _schema(hints[each.name]) for each in dataclasses.fields(kind)}
    return {"type": "object", "properties": properties}


def _schema(kind: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return _object(kind)
    if kind is Any:
        return {}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is Mapping:
        return {"type": "object"}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        (other,) = [each for each in arguments if each is not type(None)]
        found = _schema(other)
        return {**found, "type": [found["type"], "null"]}
    return {"type": _SIMPLE[kind]}


def plain(value: Any) -> Any:
    """A result as JSON values: dataclasses become objects, tuples arrays."""
    kind: Any = type(value)
    if kind in _SIMPLE:
        return value
    if (names := _fields(kind)) is not None:
        found = {name: each if type(each := getattr(value, name)) in _SIMPLE else plain(each) for name in names}
        for name in _optional(kind):
            if found[name] is None:
                del found[name]
        return found
    if isinstance(value, (tuple, list)):
        return [each if type(each) in _SIMPLE else plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return value


@cache
def _optional(kind: Any) -> frozenset[str]:
    """The fields of a dataclass that are left out where they are None."""
    return frozenset(each.name for each in dataclasses.fields(kind) if each.metadata.get("optional"))


@cache
def _fields(kind: Any) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None of anything else."""
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def text(value: Any) -> str:
    """A plain value as the JSON that agents read: compact, letters as they are."""
    from pydantic_core import to_json  # a third of the time of json's, and here wherever the SDK is

    return to_json(value).decode()
