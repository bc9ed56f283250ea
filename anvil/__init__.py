"""Anvil: documentation indexes as build artifacts.

``anvil.open(docs="docs")`` gives an :class:`Anvil` that searches a folder of Markdown, its answers checked
against the files before each one. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.config import Config
    from anvil.errors import AnvilError
    from anvil.library import Library, open_library
    from anvil.models import (
        BuildReport,
        Changes,
        ChunkMetadata,
        Freshness,
        Hit,
        Page,
        PageChunk,
        PageList,
        PageSummary,
        SearchResult,
        SectionText,
    )
    from anvil.opening import open
    from anvil.status import Status

_HOMES = {
    "anvil.api": ("Anvil",),
    "anvil.config": ("Config",),
    "anvil.errors": ("AnvilError",),
    "anvil.library": ("Library", "open_library"),
    "anvil.models": ("BuildReport", "Changes", "ChunkMetadata", "Freshness", "Hit", "Page", "PageChunk", "PageList",
                     "PageSummary", "SearchResult", "SectionText"),
    "anvil.opening": ("open",),
    "anvil.status": ("Status",),
}  # fmt: skip

__all__ = [  # noqa: RUF022 - the object first
    "Anvil",
    "AnvilError",
    "BuildReport",
    "Changes",
    "ChunkMetadata",
    "Config",
    "Freshness",
    "Hit",
    "Library",
    "Page",
    "PageChunk",
    "PageList",
    "PageSummary",
    "SearchResult",
    "SectionText",
    "Status",
    "open",
    "open_library",
    "__version__",
]


def __getattr__(name: str) -> Any:
    import importlib

    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'anvil' has no attribute {name!r}")
