"""A toolset: tools over one object that answers them. Plain data, independent of the protocol.

The modules in :data:`anvil.registry.TOOLSETS` each have a :class:`Toolset` named ``TOOLSET``, and a function ``open``
that makes its object from the options of the command line. An object has the methods ``start``, which begins slow work
in the background, and ``close``; tools call it from any thread. One process can serve several toolsets.
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

    from anvil.server.threads import ThreadBridge


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
"""Kinds of JSON values, for messages."""
ARRAY_KEY = "result"
"""The key of an array in structured content, which must be an object. The official SDK uses the same key."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. An integer outside of ``minimum`` and ``maximum`` is clamped, not refused; a fraction is
    cut off. Digits in a string count as a number, and ``true`` and ``false`` in one as what they say."""

    name: str
    description: str
    kind: Kind = "string"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.kind}
        if self.description:
            schema["description"] = self.description
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return schema


def validated(tool: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all parameters by name, from the arguments ``given``.

    ``null`` counts as not given. Raises :class:`ConfigError` for a required argument that is missing, a wrong type and
    an unknown name.
    """
    unknown = sorted(given.keys() - {parameter.name for parameter in parameters})
    if unknown:
        names = ", ".join(parameter.name for parameter in parameters) or "no parameters"
        raise ConfigError(f"{tool} has no parameter {unknown[0][:60]!r}; it takes {names}.")
    return {parameter.name: _value(tool, parameter, given.get(parameter.name)) for parameter in parameters}


def _value(tool: str, parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.required:
            raise ConfigError(f"{parameter.name} parameter is required")
        return parameter.default
    if parameter.kind == "integer":
        value = _whole(value)
    elif parameter.kind == "boolean" and value in ("true", "false"):  # models and query strings have these, too
        value = value == "true"
    fits = _TYPES[parameter.kind]
    if not isinstance(value, fits) or (fits is int and isinstance(value, bool)):  # True is an int in Python
        given_type = KINDS.get(type(value), "that")
        raise ConfigError(f"{parameter.name} of {tool} must be {KINDS[fits]}, not {given_type}.")
    if parameter.choices and value not in parameter.choices:
        raise ConfigError(f"{parameter.name} of {tool} must be one of {', '.join(parameter.choices)}.")
    if isinstance(value, int):
        least = value if parameter.minimum is None else max(value, parameter.minimum)
        value = least if parameter.maximum is None else min(least, parameter.maximum)
    return value


def _whole(value: Any) -> Any:
    """A number without its fraction, and the number in a string of digits: models write both, and clients send them.
    Other values are returned as they are."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


@dataclass(frozen=True, slots=True)
class ServeRequest(OpenRequest):
    """What a server opens: an index, and a repository or library beside it. None: not given."""

    watch: bool = True
    root: str | None = None
    library_index: str | None = None
    allow_private_urls: bool = False
    transport: str = "stdio"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its texts, parameters, result type, function and annotations.

    ``result`` is a dataclass ``D``, or ``tuple[D, ...]`` for a tool that returns an array; or a function that returns
    it, so that it is imported when the tool is described. ``call`` gets the toolset's
    object and the validated arguments by name; None for the object's method of the tool's name. ``writes``: it changes
    something. ``destructive``: it may delete or replace. ``idempotent``: repeating the call changes nothing more.
    ``open_world``: it uses the network. ``in_parts``: its method takes ``offset`` and ``max_chars``, which answers in
    Markdown have.
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

    def bind(self, given: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The call with validated arguments, as a function of the toolset's object.

        Raises :class:`ConfigError`.
        """
        values = validated(self.name, self.parameters, given)
        call = self.call or (lambda target, values: getattr(target, self.name)(**values))
        return lambda target: call(target, values)


@cache
def output_schema(kind: Any, *, whole: bool = False) -> dict[str, Any]:
    """The JSON Schema of a result: a dataclass ``D``, or ``tuple[D, ...]``, which is wrapped in an object.

    It is short on purpose: it is in the context of each agent, in each session. Nested schemas are written in place,
    since clients differ on ``$ref``. Only the outermost has ``required``.
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
        schema = _schema(hints[field.name], whole)
        value = schema["anyOf"][0] if "anyOf" in schema else schema
        if field.metadata.get("opaque") and not whole:
            del value.get("items", value)["properties"]
        is_omitted = field.metadata.get("optional") or field.metadata.get("usual", ...) is None  # and never null
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
        return {"anyOf": [_schema(other, whole), {"type": "null"}]}  # some clients take no list of types
    return {"type": _SCHEMA_TYPES[kind]}


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools over one object, with the server's title, instructions, health and HTTP routes.

    ``instructions`` are for the model. ``health`` answers ``GET /health``: it runs in a thread, like a tool. It returns
    an object with ``status`` ``ok`` or ``degraded``. ``routes`` makes further HTTP routes, which call the target
    through the bridge. Those in ``public_paths`` need no token. ``has_pages``: the target is an :class:`anvil.Anvil`,
    whose pages become resources. ``errors_as_values``: an error is ``{"status": "error", "error": message}``, as
    structured content and as text, instead of the message alone. ``configured``: the toolset for an open object, where
    tools or instructions depend on it; ``optional``: tools that this may add. ``topics``: what the object is about, a
    sentence that the instructions begin with. ``render``: the text of a result, in place of JSON and structured
    content.
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
        """The toolset with instructions that begin with what its object is about."""
        return replace(self, instructions=f"{topics} {self.instructions}", topics=None) if topics else self


@dataclass(frozen=True, slots=True)
class RunningToolset:
    toolset: Toolset
    target: Any

    @classmethod
    def of(cls, toolset: Toolset, target: Any) -> RunningToolset:
        return cls(toolset if toolset.configured is None else toolset.configured(toolset, target), target)


@contextmanager
def open_toolset(name: str, options: ServeRequest, progress: Progress) -> Iterator[RunningToolset]:
    """Open the object of a toolset, and close it with the context. Slow work only begins with :meth:`Target.start`.

    ``progress`` gets the progress of long work. Raises :class:`AnvilError`.
    """
    module = load(TOOLSETS[name])
    target = module.open(options, progress)
    try:
        yield RunningToolset.of(module.TOOLSET, target)
    finally:
        target.close()
