"""docs/reference/hooks.md, from .pre-commit-hooks.yaml: each hook, and when it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from scripts.tables import prose, table

OPENING = """\
# Hooks

The hooks that this repository offers to [pre-commit](https://pre-commit.com). How to use them:
[pre-commit hooks](../guides/pre-commit.md).
"""
USUAL = {"pass_filenames": True, "always_run": False, "require_serial": False}
"""What pre-commit takes when a hook does not say; shown when a hook differs from it."""


def reference(file: Path) -> str:
    """The page, whole. ValueError, naming it, for a hook without a description."""
    hooks = yaml.safe_load(file.read_text(encoding="utf-8"))
    return "\n".join([OPENING, *(part for hook in hooks for part in parts(hook))])


def parts(hook: Mapping[str, Any]) -> Iterator[str]:
    """One hook: what it does, and its settings."""
    text = prose(hook.get("description") or "")
    if not text:
        raise ValueError(f"{hook['id']} has no description")
    yield f"## {hook['id']}\n\n{text}\n"
    command = " ".join([hook["entry"], *map(str, hook.get("args") or [])])
    settings = [("runs", f"`{command}`")]
    settings += [(key, f"`{hook[key]}`") for key in ("files", "exclude") if hook.get(key)]
    settings += [
        (key, ", ".join(f"`{each}`" for each in hook[key]))
        for key in ("types", "types_or", "exclude_types", "stages")
        if hook.get(key)
    ]
    settings += [(key, f"`{str(hook[key]).lower()}`") for key, usual in USUAL.items() if hook.get(key, usual) != usual]
    yield table(("setting", "value"), settings)
