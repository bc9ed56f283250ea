"""docs/reference/mkdocs.md, from the plugin's own options and the texts under them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as options

from anvil.settings.schema import Config
from mkdocs_anvil.plugin import AnvilConfig, Sources
from scripts.config_reference import KINDS
from scripts.tables import meanings, table

OPENING = """\
# MkDocs plugin options

The keys under `anvil:` in the `plugins` of `mkdocs.yml`. How to use it: [MkDocs](../guides/mkdocs.md).

`chunking` and `embedding` say the same as in `anvil.toml`; what is not given there comes from
[the configuration](configuration.md).
"""


def reference() -> str:
    """The page, whole. KeyError for an option without a text under it."""
    return "\n".join([OPENING, table(("option", "type", "default", "meaning"), rows(AnvilConfig))])


def rows(config: type[base.Config]) -> Iterator[tuple[str, str, str, str]]:
    """(dotted option, type, default, meaning) of all options; those of a group mean what they do in ``Config``."""
    said, groups = meanings(config), meanings_of_groups()
    for name, option in config._schema:
        if isinstance(option, options.SubConfig):
            for inner, each in option.config_class._schema:
                yield f"`{name}.{inner}`", kind(each), default(each), groups[name][inner]
        else:
            yield f"`{name}`", kind(option), default(option), said[name]


def meanings_of_groups() -> dict[str, dict[str, str]]:
    """Group -> key -> meaning, of the tables of ``anvil.toml``."""
    config = Config()
    return {name: meanings(type(getattr(config, name))) for name in ("chunking", "embedding")}


def kind(option: Any) -> str:
    """What an option takes, in plain words."""
    if isinstance(option, options.Optional):
        return kind(option.option)
    if isinstance(option, options.Choice):
        return " or ".join(f"`{each}`" for each in option.choices)
    if isinstance(option, options.ListOfItems):
        return f"list of {kind(option.option_type)}s"
    if isinstance(option, Sources):
        return "text, or a list of texts"
    return KINDS[option._type]


def default(option: Any) -> str:
    """What an option is when it is not given."""
    value = None if isinstance(option, options.Optional) else option.default
    return "not set" if value is None else f"`{json.dumps(value)}`"
