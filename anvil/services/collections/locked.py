"""The collections that ``anvil.lock`` adds to a project."""

from __future__ import annotations

from pathlib import Path

from anvil.core.config.schema import Collection

LOCK_NAME = "anvil.lock"


def locked_collections(base: Path) -> tuple[Collection, ...]:
    """The documentation of a project's dependencies, as its lock file in ``base`` names it; empty without the file."""
    return ()
