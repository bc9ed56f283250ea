"""docs/reference/action.md, from action.yml: inputs, outputs, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from scripts.tables import prose, table

OPENING = """\
# Action

The inputs and outputs of the GitHub action `{uses}`. All inputs are optional. How to use it: [In CI](../guides/ci.md).

{description}
"""


def reference(file: Path, uses: str = "anvil-docs/anvil@v0") -> str:
    """The page, whole. ValueError, naming it, for an input or output without a description."""
    action = yaml.safe_load(file.read_text(encoding="utf-8"))
    head = OPENING.format(uses=uses, description=prose(action["description"]).removesuffix(".") + ".")
    return "\n".join([head, *parts(action)])


def parts(action: Mapping[str, Any]) -> Iterator[str]:
    """A table of the inputs, and one of the outputs where there are any."""
    inputs = action.get("inputs") or {}
    outputs = action.get("outputs") or {}
    yield "## Inputs\n"
    taken = [(f"`{name}`", default(said), described(name, said)) for name, said in inputs.items()]
    yield table(("input", "default", "meaning"), taken) if taken else "It takes none.\n"
    yield "## Outputs\n"
    given = [(f"`{name}`", described(name, said)) for name, said in outputs.items()]
    yield table(("output", "meaning"), given) if given else "It has none.\n"


def default(said: Mapping[str, Any]) -> str:
    """What an input is when it is not given."""
    value = said.get("default")
    if value in (None, ""):
        return "required" if said.get("required") else "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def described(name: str, said: Mapping[str, Any] | None) -> str:
    """The description of an input or output."""
    text = prose((said or {}).get("description") or "")
    if not text:
        raise ValueError(f"{name} has no description")
    return text
