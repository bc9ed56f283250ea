"""``context.json``: what a repository says of itself, handed out as it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

NAME = "context.json"
LARGEST = 1_000_000
"""Bytes of the largest one that is handed out."""


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
        return json.loads(path.read_text(encoding="utf-8-sig")), ()
    except json.JSONDecodeError as error:
        return None, (f"{NAME} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",)
    except (OSError, ValueError, RecursionError) as error:
        return None, (f"{NAME} cannot be read ({type(error).__name__}).",)
