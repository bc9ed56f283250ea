"""The user's folders, by the conventions of each system. Asking for one does not create it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from anvil.errors import ConfigError


def cache() -> Path:
    """The cache folder: fetched indexes, names of checked ones, vectors, maps.

    What is in it is believed, so it must be this user's own. Where several users share the folder around it, the first
    one has ``anvil`` and each other one ``anvil-UID``. Raises :class:`ConfigError` when that is another user's, too.
    """
    import platformdirs

    usual = Path(platformdirs.user_cache_dir("anvil", appauthor=False))
    if os.name == "nt" or _is_own(usual):
        return usual
    own = usual.with_name(f"anvil-{os.geteuid()}")
    if not _is_own(own):
        raise ConfigError(
            f"The cache folder {own} belongs to another user, or all users may write to it. Remove it, or set "
            "XDG_CACHE_HOME to a folder of your own."
        )
    return own


def data() -> Path:
    """The data folder: the library."""
    import platformdirs

    return Path(platformdirs.user_data_dir("anvil", appauthor=False))


def make(folder: Path) -> None:
    """Create a folder and its parents where they are missing, for this user only. Raises :class:`OSError`."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_private(folder: Path) -> bool:
    """Whether a folder is there, this user's, and writable by nobody else."""
    try:
        state = folder.stat()
    except OSError:
        return False
    return os.name == "nt" or (state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_own(folder: Path) -> bool:
    """Whether a folder is missing, or this user's and not writable by all. A group may be: whoever opens a folder to
    one, as Kubernetes does with a volume, shares it. A link must be this user's, too."""
    try:
        link = folder.lstat()
        state = folder.stat()
    except FileNotFoundError:
        return not folder.is_symlink() or folder.lstat().st_uid == os.geteuid()
    except OSError:
        return True  # what cannot be looked at cannot be used either, and the use of it says why
    return link.st_uid == state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWOTH
