"""docs/reference/configuration.md, from the classes of the configuration and the texts under their fields."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from anvil import registry
from anvil.settings.configuration import keys
from anvil.settings.schema import Collection, Config
from scripts.tables import meanings, prose, table

OPENING = """\
# Configuration keys

Every key of `anvil.toml`, which is the same in `[tool.anvil]` of `pyproject.toml`. Where files are looked for, and what
wins over what: [Configuration](../guides/configuration.md). Keys may be written `max_chunk_size`, `max-chunk-size` or
`maxChunkSize`.

Each key but tables can also be set by a variable of the environment: `ANVIL_`, and the key in capitals with `_` for the
dot. The variable of `source.include` is `ANVIL_SOURCE_INCLUDE`. Lists in it are separated by commas outside of braces:
`guides/*.md, api/*.{md,mdx}`. True and false may be `1`, `yes`, `on` and `0`, `no`, `off`.
"""
KINDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    tuple: "list of texts",
    Mapping: "table",
}


def reference() -> str:
    """The page, whole. KeyError for a field without a text under it."""
    return "\n".join([OPENING, *tables(Config()), *collections()])


def collections() -> Iterator[str]:
    """The keys of a collection, which no variable can set."""
    said = meanings(Collection)
    guide = "[Several indexes](../guides/collections.md) has more."
    yield f"## collections.NAME\n\n{prose(Collection.__doc__ or '')}\n{guide}\n"
    yield table(
        ("key", "type", "default", "meaning"),
        (
            (f"`{name}`", named(hint), shown(getattr(Collection(), name)), said[name])
            for name, hint in keys(Collection).items()
        ),
    )


def tables(config: Any, prefix: str = "") -> Iterator[str]:
    """The keys of a configuration object that are not objects themselves; then those that are, one after the other."""
    kind: type = type(config)
    said = meanings(kind)
    hints = keys(kind)
    values = {
        name: registry.load(hint)() if isinstance(hint, str) else getattr(config, name) for name, hint in hints.items()
    }
    rows = [
        (f"`{prefix}{name}`", named(hints[name]), shown(value), said[name])
        for name, value in values.items()
        if not dataclasses.is_dataclass(value) and name != "collections"
    ]
    yield f"## {prefix.removesuffix('.')}\n\n{prose(kind.__doc__ or '')}\n" if prefix else "## At the top\n"
    yield table(("key", "type", "default", "meaning"), rows)
    for name, value in values.items():
        if dataclasses.is_dataclass(value):
            yield from tables(value, f"{prefix}{name}.")


def named(hint: Any) -> str:
    """A type in plain words; ``None`` is said by the default."""
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(f"`{each}`" for each in typing.get_args(hint))
    parts = typing.get_args(hint)
    plain = parts[0] if type(None) in parts else hint
    return KINDS[typing.get_origin(plain) or plain]


def shown(default: Any) -> str:
    """A default as TOML writes it."""
    return "not set" if default is None or default == {} else f"`{json.dumps(default)}`"
