"""A cache of documentation maps, by the state of the documents that they were made of: an unchanged folder costs a look
at its files, not a reading of its pages."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from anvil.backends import safe_write, user_dirs

MAX_FILES = 100
"""Maps that are kept; the oldest are removed first."""
MAX_BYTES = 100_000
"""A larger file is no map."""


def load(state: str) -> str | None:
    """The text that was kept for a state (hex digits); None without one."""
    try:
        data = (folder() / state).read_bytes()
        return data.decode() if len(data) <= MAX_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def save(state: str, text: str) -> None:
    """Keep a text for a state; where the folder cannot be written, it is made again next time."""
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        safe_write.write_file(folder() / state, text, flush=False)
        names = sorted(os.scandir(folder()), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-MAX_FILES]:
            os.unlink(entry.path)


def folder() -> Path:
    """The folder of the cache."""
    return user_dirs.cache() / "maps"
