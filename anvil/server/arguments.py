"""Validation of a call's arguments against the tool's parameters. Defaults are filled in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from anvil.errors import ConfigError

Kind = Literal["string", "integer", "boolean", "object"]
_TYPES: dict[Kind, type] = {"string": str, "integer": int, "boolean": bool, "object": dict}
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
_NAMES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
}


class InvalidArguments(Exception):
    """The call does not match the tool's schema. The message says what is expected."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. An integer outside of ``minimum`` and ``maximum`` is clamped, not refused; a fraction is
    cut off, and digits in a string count as a number."""

    name: str
    description: str
    kind: Kind = "string"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameter."""
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

    ``null`` counts as not given. Raises :class:`ConfigError` when a required argument is missing, and
    :class:`InvalidArguments` for a wrong type or an unknown name.
    """
    unknown = sorted(given.keys() - {parameter.name for parameter in parameters})
    if unknown:
        names = ", ".join(parameter.name for parameter in parameters) or "no parameters"
        raise InvalidArguments(f"{tool} has no parameter {unknown[0][:60]!r}; it takes {names}.")
    return {parameter.name: _value(tool, parameter, given.get(parameter.name)) for parameter in parameters}


def _value(tool: str, parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.required:
            raise ConfigError(f"{parameter.name} parameter is required")
        return parameter.default
    if parameter.kind == "integer":
        value = _whole(value)
    fits = _TYPES[parameter.kind]
    if not isinstance(value, fits) or (fits is int and isinstance(value, bool)):
        given_type = _NAMES.get(type(value), "that")
        raise InvalidArguments(f"{parameter.name} of {tool} must be {_NAMES[fits]}, not {given_type}.")
    if parameter.choices and value not in parameter.choices:
        raise InvalidArguments(f"{parameter.name} of {tool} must be one of {', '.join(parameter.choices)}.")
    return _clamped(value, parameter) if isinstance(value, int) else value


def _whole(value: Any) -> Any:
    """A number without its fraction, and the number in a string of digits: models write both, and clients send them.
    Other values are returned as they are."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value


def _clamped(value: int, parameter: Parameter) -> int:
    if parameter.minimum is not None:
        value = max(value, parameter.minimum)
    if parameter.maximum is not None:
        value = min(value, parameter.maximum)
    return value
