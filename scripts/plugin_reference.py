"""docs/reference/mkdocs.md, from the plugin's own options and the texts under them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as options

from mkdocs_anvil.plugin import AnvilConfig
from scripts.tables import meanings, table

OPENING = """\
# MkDocs plugin options

What may stand under `anvil:` in the `plugins` of `mkdocs.yml`. How to use it: [MkDocs](../guides/mkdocs.md).
"""
KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "mapping"}


def reference() -> str:
    """The page, whole. KeyError for an option without a text under it."""
    return "\n".join([OPENING, table(("option", "type", "default", "meaning"), rows(AnvilConfig))])


def rows(config: type[base.Config], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """(dotted option, type, default, meaning) of a class of options and of those in it."""
    said = meanings(config)
    for name, option in config._schema:
        inner = getattr(option, "config_class", None)
        if inner is not None and len(inner._schema):
            yield from rows(inner, f"{prefix}{name}.")
        else:
            yield f"`{prefix}{name}`", kind(option), default(option), said[name]


def kind(option: Any) -> str:
    """What an option takes, in plain words."""
    if isinstance(option, options.Optional):
        return kind(option.option)
    if isinstance(option, options.Choice):
        return " or ".join(f"`{each}`" for each in option.choices)
    if isinstance(option, options.ListOfItems):
        return f"list of {kind(option.option_type)}"
    return KINDS.get(getattr(option, "_type", None) or str, "text")


def default(option: Any) -> str:
    """What an option is when it is not given."""
    value = None if isinstance(option, options.Optional) else option.default
    if value is None:
        return "required" if getattr(option, "required", False) else "not set"
    return f"`{json.dumps(value)}`"
