"""The types of arguments of the Python API, checked at each call: an error of Anvil instead of one from deep inside."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar

from anvil.errors import ConfigError

_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "a string"),
    "os.PathLike[str]": (os.PathLike, "a path"),
    "int": (numbers.Integral, "a whole number"),
    "float": (numbers.Real, "a number"),
    "bool": (bool, "True or False"),
    "Mapping[str, Any]": (Mapping, "a mapping"),
    "None": (type(None), "None"),
}
"""An annotation, as it is written -> its type, and its name in messages."""

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def checks_arguments(cls: C) -> C:
    """Check the arguments of all public methods of a class; see :func:`checked`."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and isinstance(method, FunctionType):
            setattr(cls, name, checked(method))
    return cls


def checked(function: F) -> F:
    """The function, which raises :class:`ConfigError` for an argument of a type that its annotation does not name.

    Annotations with other types than those of ``_TYPES`` are not checked.
    """
    signature = inspect.signature(function)
    annotations = {name: str(each.annotation).split(" | ") for name, each in signature.parameters.items()}
    expected = {
        name: [_TYPES[part] for part in parts]
        for name, parts in annotations.items()
        if all(part in _TYPES for part in parts)
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # raises the usual error, for a name or number of arguments
        for name in expected.keys() & given.keys():
            value, kinds = given[name], expected[name]
            is_number = isinstance(value, bool) and not any(kind is bool for kind, _ in kinds)
            if is_number or not isinstance(value, tuple(kind for kind, _ in kinds)):
                names = [each for _, each in kinds]
                choices = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
                raise ConfigError(
                    f"{name} of {function.__name__} must be {choices}, not {type(value).__name__}: {value!r:.80}."
                )
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]
