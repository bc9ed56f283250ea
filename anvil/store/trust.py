"""Files that passed their check are remembered by their bytes, so that each is checked once on a machine.

What is remembered is the SHA-256 of the file and the Anvil that checked it, as the name of an empty file in the
user's cache. A changed byte is another file; a cache that cannot be written or is gone costs a check, no more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from anvil import __version__, userfolders

KEPT = 500
"""Names kept; the oldest go first."""


def sha256(path: Path) -> str:
    """SHA-256 of a file, hex."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()


def is_known(digest: str) -> bool:
    """Whether a file of this SHA-256 passed the check of this Anvil before."""
    return (folder() / _name(digest)).is_file()


def remember(digest: str) -> None:
    """Note that a file of this SHA-256 passed."""
    kept = folder()
    with contextlib.suppress(OSError):  # a read-only home: the next time is a check again
        kept.mkdir(parents=True, exist_ok=True)
        (kept / _name(digest)).touch()
        names = sorted(os.scandir(kept), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-KEPT]:
            os.unlink(entry.path)


def _name(digest: str) -> str:
    return f"{digest}-{__version__}"


def folder() -> Path:
    """Where it is remembered: in the user's cache folder."""
    return userfolders.cache() / "checked"
