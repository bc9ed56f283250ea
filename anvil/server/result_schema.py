"""Results as JSON Schema.

The schemas are short on purpose: they are in the context of each agent, in each session.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from anvil.formats.data_formats import LEFT_OUT

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
ARRAY_KEY = "result"
"""The key of an array in structured content, which must be an object. The official SDK uses the same key."""


@cache
def output_schema(kind: Any, *, whole: bool = False) -> dict[str, Any]:
    """The JSON Schema of a result: a dataclass ``D``, or ``tuple[D, ...]``, which is wrapped in an object.

    Nested schemas are written in place, since clients differ on ``$ref``. Only the outermost has ``required``.
    ``whole``: with the fields inside of opaque ones, for the reference.
    """
    if typing.get_origin(kind) is tuple:
        return {"type": "object", "properties": {ARRAY_KEY: _schema(kind, whole)}, "required": [ARRAY_KEY]}
    required = [field.name for field in dataclasses.fields(kind) if not field.metadata.keys() & LEFT_OUT]
    return {**_object(kind, whole), "required": required}


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
