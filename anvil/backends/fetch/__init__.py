"""An index from where it is published to a verified file on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anvil.backends.fetch.fetch_index import cached_path, fetch
    from anvil.backends.fetch.http_client import Limits
    from anvil.backends.fetch.result import FetchResult

__all__ = ["FetchResult", "Limits", "cached_path", "fetch"]
_MODULES = {"FetchResult": "result", "Limits": "http_client", "cached_path": "fetch_index", "fetch": "fetch_index"}


def __getattr__(name: str) -> Any:
    """Import what is used: the cache, for one, needs none of it."""
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
