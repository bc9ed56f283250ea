"""Files that passed their check are remembered by their bytes, so that each is checked once on a machine.

What is remembered is the SHA-256 of the file and the Anvil that checked it, as the name of an empty file in the
user's cache. A changed byte is another file; a cache that cannot be written or is gone costs a check, no more.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from anvil._version import __version__
from anvil.backends import user_dirs

MAX_FILES = 500
"""Names that are kept; the oldest go first."""
CHECK_VERSION = 3
"""Raised when the check finds more than before, so that what passed a weaker one is checked again."""


def sha256(path: Path) -> str:
    """SHA-256 of a file, hex."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()


def contains(digest: str, thorough: bool = False) -> bool:
    """Whether a file of this SHA-256 passed the check of this Anvil before. One that passed the thorough check passed
    the other one too."""
    return any((folder() / _name(digest, kind)).is_file() for kind in {thorough, True})


def remember(digest: str, thorough: bool = False) -> None:
    """Note that a file of this SHA-256 passed."""
    cache = folder()
    with contextlib.suppress(OSError):  # a read-only home: the next time is a check again
        cache.mkdir(parents=True, exist_ok=True)
        (cache / _name(digest, thorough)).touch()
        names = sorted(os.scandir(cache), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-MAX_FILES]:
            os.unlink(entry.path)


def _name(digest: str, thorough: bool) -> str:
    return f"{digest}-{__version__}-{CHECK_VERSION}{'-thorough' if thorough else ''}"


def folder() -> Path:
    """The folder of these names, in the user's cache."""
    return user_dirs.cache() / "checked"
