"""Results as JSON Schema, and as JSON values.

The schemas are short on purpose: they are in the context of each agent, in each session.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LEFT_OUT = {"optional", "usual", "unsent"}
ARRAY_KEY = "result"
"""The key of an array in structured content, which must be an object. The official SDK uses the same key."""


@cache
def output_schema(kind: Any, *, whole: bool = False) -> dict[str, Any]:
    """The JSON Schema of a result: a dataclass ``D``, or ``tuple[D, ...]``, which is wrapped like :func:`structured`.

    Nested schemas are written in place, since clients differ on ``$ref``. Only the outermost has ``required``.
    ``whole``: with the fields inside of opaque ones, for the reference.
    """
    if typing.get_origin(kind) is tuple:
        return {"type": "object", "properties": {ARRAY_KEY: _schema(kind, whole)}, "required": [ARRAY_KEY]}
    required = [field.name for field in dataclasses.fields(kind) if not field.metadata.keys() & _LEFT_OUT]
    return {**_object(kind, whole), "required": required}


def structured(value: Any) -> dict[str, Any]:
    """A plain value as structured content."""
    return {ARRAY_KEY: value} if isinstance(value, list) else value


def _object(kind: Any, whole: bool) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        if (field.metadata.get("several") and not whole) or field.metadata.get("unsent"):
            continue
        schema = properties[field.name] = _schema(hints[field.name], whole)
        if field.metadata.get("optional") or field.metadata.get("usual", ...) is None:
            schema["type"] = schema["type"][0]  # omitted, never null
        elif "usual" in field.metadata:
            schema["default"] = field.metadata["usual"]
        if field.metadata.get("opaque") and not whole:
            del schema.get("items", schema)["properties"]
    return {"type": "object", "properties": properties}


def _schema(kind: Any, whole: bool) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return _object(kind, whole)
    if kind is Any:
        return {}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], whole)}
    if origin is Mapping:
        return {"type": "object"}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        (other,) = [argument for argument in arguments if argument is not type(None)]
        schema = _schema(other, whole)
        return {**schema, "type": [schema["type"], "null"]}
    return {"type": _SIMPLE[kind]}


def plain(value: Any, *, lean: bool = False) -> Any:
    """A result as JSON values: dataclasses and named tuples become objects, other tuples arrays.

    ``lean``: without what is as usual, such as a URL that is None, because agents pay for every character.
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
    """The fields of a dataclass that are left out, each with the value at which it is; ``...``: at any."""
    if not dataclasses.is_dataclass(kind):
        return ()
    names = _LEFT_OUT if lean else {"optional"}
    fields = [field for field in dataclasses.fields(kind) if field.metadata.keys() & names]
    return tuple((f.name, ... if f.metadata.get("unsent") else f.metadata.get("usual")) for f in fields)


@cache
def _fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a dataclass or named tuple; None for another type."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


def text(value: Any) -> str:
    """A plain value as compact JSON, with characters outside ASCII unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
