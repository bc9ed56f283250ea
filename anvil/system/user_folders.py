"""The user's folders, by the conventions of each system. They are not created here."""

from __future__ import annotations

from pathlib import Path


def cache() -> Path:
    """The cache folder: fetched indexes, and names of checked ones."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("anvil", appauthor=False))


def data() -> Path:
    """The data folder: the library."""
    import platformdirs

    return Path(platformdirs.user_data_dir("anvil", appauthor=False))
