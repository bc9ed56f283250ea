"""What a caller passed, validated against a tool's parameters: values of the right type, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from anvil.errors import ConfigError

Kind = Literal["string", "integer", "boolean", "object"]
_SPOKEN: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
}
_WANTED = {"string": "a string", "integer": "an integer", "boolean": "a boolean", "object": "an object"}


class InvalidArguments(Exception):
    """The call does not fit the tool's schema; the message says what does."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. ``minimum`` and ``maximum`` clamp integers, they never refuse one."""

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
        found: dict[str, Any] = {"type": self.kind}
        if self.description:
            found["description"] = self.description
        if self.choices:
            found["enum"] = list(self.choices)
        if self.default is not None:
            found["default"] = self.default
        return found


def validated(tool: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters by name, from what was ``given``.

    ``null`` counts as not given. Raises :class:`ConfigError` when a required one is missing, and
    :class:`InvalidArguments` for a wrong type or a name that the tool does not have.
    """
    unknown = sorted(given.keys() - {each.name for each in parameters})
    if unknown:
        takes = ", ".join(each.name for each in parameters) or "no parameters"
        raise InvalidArguments(f"{tool} has no parameter {unknown[0][:60]!r}; it takes {takes}.")
    return {each.name: _value(tool, each, given.get(each.name)) for each in parameters}


def _value(tool: str, parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.required:
            raise ConfigError(f"{parameter.name} parameter is required")
        return parameter.default
    if parameter.kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows one kind of number
    fits: type = {"string": str, "integer": int, "boolean": bool, "object": dict}[parameter.kind]
    if not isinstance(value, fits) or (fits is int and isinstance(value, bool)):
        raise InvalidArguments(
            f"{parameter.name} of {tool} must be {_WANTED[parameter.kind]}, not {_SPOKEN.get(type(value), 'that')}."
        )
    if parameter.choices and value not in parameter.choices:
        raise InvalidArguments(f"{parameter.name} of {tool} must be one of {', '.join(parameter.choices)}.")
    return _clamped(value, parameter) if isinstance(value, int) else value


def _clamped(value: int, parameter: Parameter) -> int:
    if parameter.minimum is not None:
        value = max(value, parameter.minimum)
    if parameter.maximum is not None:
        value = min(value, parameter.maximum)
    return value
