"""``context.json``: a repository's description of itself, which is returned unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from anvil.system import safe_read

NAME = "context.json"
MAX_BYTES, MAX_LEVELS = 1_000_000, 64
"""Limits of a file that is returned, since other programs must be able to read it."""


def read(root: Path) -> tuple[Any, tuple[str, ...]]:
    """The file's value, or None and the reason. ``root`` is a path without symbolic links."""
    path = root / NAME
    if not path.exists():
        return None, (f"There is no {NAME} in the repository.",)
    if not Path(os.path.realpath(path)).is_relative_to(root):
        return None, (f"{NAME} is a link to a place outside the repository and is not read.",)
    try:
        if path.stat().st_size > MAX_BYTES:
            return None, (f"{NAME} is larger than {MAX_BYTES:,} bytes and is not read.",)
        value = json.loads(safe_read.text(path, MAX_BYTES), parse_constant=_refused)
        json.dumps(value, ensure_ascii=False).encode()  # raises for half a surrogate pair
        if _is_deep(value):
            return None, (f"{NAME} is nested deeper than {MAX_LEVELS} levels and is not read.",)
        return value, ()
    except json.JSONDecodeError as error:
        return None, (f"{NAME} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",)
    except (OSError, ValueError, RecursionError) as error:
        return None, (f"{NAME} cannot be read: {str(error)[:200] or type(error).__name__}.",)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
