"""A cache of documentation maps, by the state of the documents that they were made of, and of what the map needs of
each page: an unchanged folder costs a look at its files, an edited page a reading of that page."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from anvil.agents.values import DocumentationMap
from anvil.errors import ConfigError
from anvil.system import safe_write, user_folders

MAX_FILES = 100
"""Files that are kept; the oldest are removed first."""
MAX_BYTES = 16_000_000
"""A larger file is neither a map nor the data of pages."""


def cached_map(state: str, make: Callable[[], DocumentationMap]) -> DocumentationMap:
    """The map that was kept for a state, else a new one, which is kept."""
    cached = load(state)
    if cached is not None:
        with contextlib.suppress(ValueError, TypeError):
            return DocumentationMap(**json.loads(cached))
    made = make()
    save(state, json.dumps(made._asdict()))
    return made


def load(state: str) -> str | None:
    """The text that was kept for a state (hex digits); None without one."""
    try:
        with open(folder() / state, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        return data.decode() if len(data) <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError, ConfigError):
        return None


def save(state: str, text: str) -> None:
    """Keep a text for a state; where the folder cannot be written, it is made again next time."""
    if len(text) > MAX_BYTES:
        return
    with contextlib.suppress(OSError, ConfigError):
        user_folders.make(folder())
        safe_write.write_file(folder() / state, text, flush=False)
        names = sorted(os.scandir(folder()), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-MAX_FILES]:
            os.unlink(entry.path)


def folder() -> Path:
    return user_folders.cache() / "maps"
