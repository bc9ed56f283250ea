"""Toolsets and tools as plain data: descriptions, parameters and their checks, and the JSON Schema of results.

A toolset has tools over one object. Each module in :data:`anvil.registry.TOOLSETS` has a :class:`Toolset` named
``TOOLSET``, and a function ``open`` that makes its object from the options of ``anvil serve``. The object has the
methods ``start``, which begins slow work in the background, and ``close``. Tools call it from any thread. One process
can serve several toolsets.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import FunctionType, UnionType
from typing import TYPE_CHECKING, Any, Literal

from anvil.errors import ConfigError
from anvil.formats.data_formats import LEFT_OUT
from anvil.formats.patterns import lazy_pattern
from anvil.registry import TOOLSETS, load
from anvil.requests import OpenRequest
from anvil.values import Progress

if TYPE_CHECKING:
    from starlette.routing import Route

    from anvil.server.tool_calls import ThreadBridge


Kind = Literal["string", "integer", "boolean", "object"]
_TYPES: dict[Kind, type] = {"string": str, "integer": int, "boolean": bool, "object": dict}
_DIGITS = lazy_pattern(r"[+-]?[0-9]{1,18}")
_SCHEMA_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
KINDS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
}
"""Type -> the kind of JSON value, for messages."""
ARRAY_KEY = "result"
"""The key of an array in structured content, which must be an object. The official SDK uses the same key."""
MAX_ARGUMENT = 1_000_000_000
"""The largest integer that a tool gets. No index has as many characters."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    An integer outside of ``minimum`` and ``maximum`` is clamped, not refused. A fraction is cut off. A string of digits
    counts as a number, and the strings ``true`` and ``false`` as booleans, since models send them.
    """

    name: str
    description: str
    kind: Kind = "string"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = MAX_ARGUMENT

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.kind}
        if self.description:
            schema["description"] = self.description
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return schema


def validated(tool: str, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all parameters by name, from the arguments of a call.

    ``null`` counts as not given. Raises :class:`ConfigError` if a required argument is missing, and for a wrong type
    and an unknown name.
    """
    unknown = sorted(arguments.keys() - {parameter.name for parameter in parameters})
    if unknown:
        names = ", ".join(parameter.name for parameter in parameters) or "no parameters"
        raise ConfigError(f"{tool} has no parameter {unknown[0][:60]!r}; it takes {names}.")
    return {parameter.name: _value(tool, parameter, arguments.get(parameter.name)) for parameter in parameters}


def _value(tool: str, parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.required:
            raise ConfigError(f"{parameter.name} parameter is required")
        return parameter.default
    if parameter.kind == "integer":
        value = _integer(value)
    elif parameter.kind == "boolean" and value in ("true", "false"):  # models and query strings have these, too
        value = value == "true"
    wanted_type = _TYPES[parameter.kind]
    if not isinstance(value, wanted_type) or (wanted_type is int and isinstance(value, bool)):  # bool is an int
        kind = KINDS.get(type(value), "that")
        raise ConfigError(f"{parameter.name} of {tool} must be {KINDS[wanted_type]}, not {kind}.")
    if parameter.choices and value not in parameter.choices:
        raise ConfigError(f"{parameter.name} of {tool} must be one of {', '.join(parameter.choices)}.")
    if isinstance(value, int):
        value = min(max(value, parameter.minimum), parameter.maximum)
    return value


def _integer(value: Any) -> Any:
    """A number without its fraction, or the number in a string of digits: models send both. Other values are returned
    as they are."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


@dataclass(frozen=True, slots=True)
class ServeRequest(OpenRequest):
    """The options of ``anvil serve`` for the objects that it opens: an index, a repository, a library."""

    watch: bool = True
    root: str | None = None
    library_index: str | None = None
    allow_private_urls: bool = False
    transport: str = "stdio"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its texts, parameters, result type, function and annotations.

    ``result`` is a dataclass ``D``, or ``tuple[D, ...]`` for a tool that returns an array. It may be a function that
    returns this type, so that it is imported when the tool is described and not before. ``call`` gets the toolset's
    object and the validated arguments by name; None for the object's method with the name of the tool.

    - ``writes``: the tool changes something.
    - ``destructive``: it may delete or replace something.
    - ``idempotent``: repeating the call changes nothing more.
    - ``open_world``: it uses the network.
    - ``in_parts``: its method takes ``offset`` and ``max_chars``; see :mod:`anvil.server.markdown_results`.
    """

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    result: Any
    call: Callable[..., Any] | None = None
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    in_parts: bool = False

    @property
    def result_type(self) -> Any:
        return self.result() if isinstance(self.result, FunctionType) else self.result

    def input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
        }
        required = [parameter.name for parameter in self.parameters if parameter.required]
        if required:
            schema["required"] = required
        return schema

    def bind(self, arguments: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The call with these arguments, as a function of the toolset's object. Raises :class:`ConfigError` as
        :func:`validated` does."""
        values = validated(self.name, self.parameters, arguments)
        call = self.call or (lambda target, values: getattr(target, self.name)(**values))
        return lambda target: call(target, values)


@cache
def output_schema(kind: Any, *, whole: bool = False) -> dict[str, Any]:
    """The JSON Schema of a result: a dataclass ``D``, or ``tuple[D, ...]``, which is wrapped in an object.

    It is short on purpose, since each agent has it in its context in each session. Nested schemas are written in place,
    since clients differ on ``$ref``. Only the outermost schema has ``required``. ``whole``: also with the fields inside
    of fields that are marked as opaque, for the reference.
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
        schema = _schema(hints[field.name], whole)
        value = schema["anyOf"][0] if "anyOf" in schema else schema
        if field.metadata.get("opaque") and not whole:
            del value.get("items", value)["properties"]
        # such a field is left out of the JSON instead of being null
        is_omitted = field.metadata.get("optional") or field.metadata.get("usual", ...) is None
        properties[field.name] = value if is_omitted else schema
        if not is_omitted and "usual" in field.metadata:
            schema["default"] = field.metadata["usual"]
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
    if origin in (typing.Union, UnionType):
        (other,) = [argument for argument in arguments if argument is not type(None)]
        # not "type": ["string", "null"], which some clients do not accept
        return {"anyOf": [_schema(other, whole), {"type": "null"}]}
    return {"type": _SCHEMA_TYPES[kind]}


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools over one object, with the server's title, instructions, health and HTTP routes.

    - ``instructions`` are for the model of the client.
    - ``health`` answers ``GET /health``, in a thread like a tool, with an object whose ``status`` is ``ok`` or
      ``degraded``.
    - ``routes`` makes further HTTP routes, which call the object through the bridge. Those in ``public_paths`` need no
      token.
    - ``has_pages``: the object is an :class:`anvil.Anvil`, whose pages become resources.
    - ``errors_as_values``: an error is ``{"status": "error", "error": message}``, as structured content and as text,
      instead of the message alone.
    - ``configured`` makes the toolset for an open object, if tools or instructions depend on it. It may add the tools
      in ``optional``, which the reference describes.
    - ``topics``: a sentence on what the object is about, which is put before the instructions.
    - ``render``: the text of a result, in place of JSON and structured content.
    """

    name: str
    title: str
    instructions: str
    tools: tuple[Tool, ...]
    health: Callable[[Any], Mapping[str, Any]]
    routes: Callable[[ThreadBridge], Sequence[Route]] = lambda bridge: ()
    public_paths: tuple[str, ...] = ()
    has_pages: bool = False
    errors_as_values: bool = False
    configured: Callable[[Toolset, Any], Toolset] | None = None
    topics: Callable[[Any], str] | None = None
    optional: tuple[Tool, ...] = ()
    render: Callable[[Any], str] | None = None

    def about(self, topics: str) -> Toolset:
        """The toolset with this sentence before its instructions."""
        return replace(self, instructions=f"{topics} {self.instructions}", topics=None) if topics else self


@dataclass(frozen=True, slots=True)
class RunningToolset:
    """A toolset and the open object that its tools call."""

    toolset: Toolset
    target: Any

    @classmethod
    def of(cls, toolset: Toolset, target: Any) -> RunningToolset:
        return cls(toolset if toolset.configured is None else toolset.configured(toolset, target), target)


@contextmanager
def open_toolset(name: str, options: ServeRequest, progress: Progress) -> Iterator[RunningToolset]:
    """A context with the open object of a toolset. Slow work begins with its method ``start``, not here.

    ``progress`` gets the progress of long work. Raises :class:`AnvilError` if the object cannot be opened.
    """
    module = load(TOOLSETS[name])
    target = module.open(options, progress)
    try:
        yield RunningToolset.of(module.TOOLSET, target)
    finally:
        target.close()
