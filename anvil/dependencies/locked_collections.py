"""The collections that ``anvil.lock`` adds to a project."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from anvil.fetch.settings import FetchOptions
from anvil.settings.schema import LOCK_NAME, Collection, Config


def locked_collections(base: Path, config: Config | None = None, taken: Container[str] = ()) -> tuple[Collection, ...]:
    """The documentation of a project's dependencies, as ``anvil.lock`` in ``base`` names it; empty without the file.

    Nothing is fetched: an entry that is not in the cache leads to a file that does not exist, until ``anvil deps sync``
    puts it there. So does one whose attestation ``config`` demands, if it was not verified. A name that is in both
    ecosystems has the ecosystem in front for npm. So has one of ``taken``, in both: a package must not stand for the
    project's own documentation because it has the same name.
    """
    if not (base / LOCK_NAME).is_file():
        return ()
    from anvil.dependencies import anvil_lock, docs_cache  # for projects that have documentation of dependencies only

    options = (config or Config()).table(FetchOptions)
    entries = anvil_lock.read_lock(base)
    cache = docs_cache.cache()
    labels = {(entry.name, entry.version) for entry in entries if entry.ecosystem == "pypi"}
    collections = []
    for entry in entries:
        path = docs_cache.path(cache, entry)
        if not docs_cache.is_attested(cache, entry, options, base):
            path = path.with_suffix(".not-attested")
        is_taken = entry.name in taken or (entry.ecosystem == "npm" and (entry.name, entry.version) in labels)
        name = f"{entry.ecosystem}-{entry.name}" if is_taken else entry.name
        missing = f"The documentation of {entry.name} {entry.version} is not on this machine. Run 'anvil deps sync'."
        collections.append(Collection(name=name, missing=missing, index=str(path), version=entry.version))
    return tuple(collections)
