"""The user's own folders, by each system's conventions, and platformdirs' only door. None is made here."""

from __future__ import annotations

from pathlib import Path


def cache() -> Path:
    """For what can be had again: checked indexes, fetched ones."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("anvil", appauthor=False))


def data() -> Path:
    """For what is the user's own: the library."""
    import platformdirs

    return Path(platformdirs.user_data_dir("anvil", appauthor=False))
