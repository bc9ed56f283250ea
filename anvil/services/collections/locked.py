"""The collections that ``anvil.lock`` adds to a project."""

from __future__ import annotations

from pathlib import Path

from anvil.core.config.schema import Collection
from anvil.core.dependencies.anvil_lock import LOCK_NAME


def locked_collections(base: Path) -> tuple[Collection, ...]:
    """The documentation of a project's dependencies, as ``anvil.lock`` in ``base`` names it; empty without the file.

    Nothing is fetched: an entry that is not in the cache leads to a file that does not exist, until ``anvil deps sync``
    puts it there. A name that is in both ecosystems has the ecosystem in front for npm.
    """
    if not (base / LOCK_NAME).is_file():
        return ()
    from anvil.backends.packages import project_files  # imported by projects that have dependencies' documentation only
    from anvil.services.dependencies import docs_cache

    entries = project_files.read_lock(base)
    cache = docs_cache.cache()
    labels = {(entry.name, entry.version) for entry in entries if entry.ecosystem == "pypi"}
    return tuple(
        Collection(
            name=f"npm-{entry.name}"
            if entry.ecosystem == "npm" and (entry.name, entry.version) in labels
            else entry.name,
            missing=f"The documentation of {entry.name} {entry.version} is not on this machine. Run 'anvil deps sync'.",
            index=str(docs_cache.path(cache, entry)),
            version=entry.version,
        )
        for entry in entries
    )
