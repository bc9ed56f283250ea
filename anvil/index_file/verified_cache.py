"""A cache of index files that passed their check, so that each file is checked once on a machine.

An entry is an empty file in the user's cache. Its name has the SHA-256 of the index file, and the version of Anvil, of
the format and of the check that it passed: of two checkouts with the same version, one can read another format.
Without the cache, files are checked each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from anvil._version import __version__
from anvil.errors import ConfigError
from anvil.index_file.connection import FORMAT_VERSION
from anvil.system import user_folders

MAX_FILES = 500
"""Entries of the cache; the oldest are removed first."""
CHECK_VERSION = 3
"""Increased when the check finds more than before, so that files are checked again."""


def sha256(path: Path) -> str:
    """SHA-256 of a file, hex."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()


def contains(digest: str, thorough: bool = False) -> bool:
    """Whether a file with this SHA-256 passed the check of this version. The thorough check includes the other one."""
    with contextlib.suppress(ConfigError):
        cache = folder()
        if user_folders.is_private(cache):  # another user could vouch for a file
            return any((cache / _name(digest, kind)).is_file() for kind in {thorough, True})
    return False


def remember(digest: str, thorough: bool = False) -> None:
    """Add a file with this SHA-256 to the cache."""
    # Without a cache that can be written, the next opening checks again.
    with contextlib.suppress(OSError, ConfigError):
        cache = folder()
        user_folders.make(cache)
        if not user_folders.is_private(cache):
            return
        (cache / _name(digest, thorough)).touch()
        names = sorted(os.scandir(cache), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-MAX_FILES]:
            os.unlink(entry.path)


def _name(digest: str, thorough: bool) -> str:
    return f"{digest}-{__version__}-{FORMAT_VERSION}.{CHECK_VERSION}{'-thorough' if thorough else ''}"


def folder() -> Path:
    """The folder of the cache."""
    return user_folders.cache() / "checked"
