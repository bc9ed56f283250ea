"""``context.json``: what a repository says of itself, handed out as it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

NAME = "context.json"
LARGEST, DEEPEST = 1_000_000, 64
"""Bytes of the largest one that is handed out, and its levels: it has to travel through other programs."""


def read(root: Path) -> tuple[Any, tuple[str, ...]]:
    """What the file says, or None and why not. ``root`` holds no symbolic link."""
    path = root / NAME
    if not path.exists():
        return None, (f"There is no {NAME} in the repository.",)
    if not Path(os.path.realpath(path)).is_relative_to(root):
        return None, (f"{NAME} leads out of the repository and is not read.",)
    try:
        if path.stat().st_size > LARGEST:
            return None, (f"{NAME} is larger than {LARGEST:,} bytes and is not read.",)
        said = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refused)
        json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
        if _is_deep(said):
            return None, (f"{NAME} is nested deeper than {DEEPEST} levels and is not read.",)
        return said, ()
    except json.JSONDecodeError as error:
        return None, (f"{NAME} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",)
    except (OSError, ValueError, RecursionError) as error:
        return None, (f"{NAME} cannot be read: {str(error)[:200] or type(error).__name__}.",)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
