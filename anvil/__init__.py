"""Anvil: documentation indexes as build artifacts.

``anvil.open(docs="docs")`` gives an :class:`Anvil` that searches a folder of Markdown, its answers checked
against the files before each one. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anvil._version import __version__

if TYPE_CHECKING:
    from anvil.api import Anvil, open
    from anvil.build.report import BuildReport
    from anvil.errors import AnvilError
    from anvil.library.library import Library, open_library
    from anvil.results import (
        Freshness,
        GrepMatch,
        GrepResult,
        Hit,
        Page,
        PageList,
        PageSection,
        PageSummary,
        SearchResult,
        SectionText,
    )
    from anvil.settings.schema import Config
    from anvil.status import Status
    from anvil.values import Changes, ChunkMetadata, PageChunk

_HOMES = {
    "anvil.api": "Anvil open",
    "anvil.build.report": "BuildReport",
    "anvil.settings.schema": "Config",
    "anvil.errors": "AnvilError",
    "anvil.library.library": "Library open_library",
    "anvil.values": "Changes ChunkMetadata PageChunk",
    "anvil.results": "Freshness GrepMatch GrepResult Hit Page PageList PageSection PageSummary SearchResult "
    "SectionText",
    "anvil.status": "Status",
}
"""Module -> the public names that it defines."""

__all__ = [  # noqa: RUF022 - the object first
    "Anvil",
    "AnvilError",
    "BuildReport",
    "Changes",
    "ChunkMetadata",
    "Config",
    "Freshness",
    "GrepMatch",
    "GrepResult",
    "Hit",
    "Library",
    "Page",
    "PageChunk",
    "PageList",
    "PageSection",
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
        if name in names.split():
            value = getattr(importlib.import_module(home), name)
            globals()[name] = value  # so that the next use finds it without this function
            return value
    raise AttributeError(f"module 'anvil' has no attribute {name!r}")
