"""What a CI service keeps between runs: the folders, and the keys of its cache."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci.annotations import shown
from anvil.settings.schema import LOCK_NAME

if TYPE_CHECKING:
    from anvil.api import Anvil

INDEX_NAME = "index.db"
"""The index's name in the folder that is kept."""
DEPS_PREFIX = "anvil-deps-1-"
"""The beginning of cache keys of dependencies' documentation."""


def index(folder: str | None) -> Path | None:
    """The index that an earlier run left in the folder."""
    kept = Path(folder, INDEX_NAME) if folder else None
    return kept if kept and kept.is_file() else None


def branch_key(name: str) -> str:
    """A branch as a part of a cache key."""
    return f"{_id(name)}-"


def index_folder(opened: Anvil, shard: str | None) -> str:
    """The name of a folder for this index, or for this shard, among others of the same checkout."""
    return f"anvil-index-{_place(opened, shard)}"


def index_key(opened: Anvil, shard: str | None) -> str:
    """The prefix of cache keys. It depends on format and model, since other indexes cannot be reused."""
    from anvil.index_file.connection import FORMAT_VERSION

    return f"anvil-{FORMAT_VERSION}-{opened.provider.digest[:12]}-{_place(opened, shard)}-"


def deps_cache(base: Path, temporary: Path) -> dict[str, str]:
    """The folder in which to keep dependencies' documentation between runs, and its cache key. Files are named by their
    content: those of an earlier ``anvil.lock`` are of use."""
    lock = base / LOCK_NAME
    name = hashlib.sha256(lock.read_bytes()).hexdigest()[:16] if lock.is_file() else "none"
    return {
        "deps-folder": str(temporary / f"anvil-deps-{_id(shown(lock))}"),
        "deps-key": f"{DEPS_PREFIX}{name}",
        "deps-prefix": DEPS_PREFIX,
    }


def _place(opened: Anvil, shard: str | None) -> str:
    return _id(f"{shown(opened.index_path)}\n{shard or ''}")


def _id(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
