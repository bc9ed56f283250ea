"""The user's cache of dependencies' documentation: index files by their SHA-256, shared by all projects.

A note next to them says which file an entry of ``anvil.lock`` has here. For an index of its publisher that is the file
with the SHA-256 of the entry. An index that was built here may have other vectors on another machine, in a last digit,
and so another SHA-256; its digest, which covers the text, must be the same.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from anvil._version import __version__
from anvil.backends import user_dirs
from anvil.backends.fetch.cache import Cache
from anvil.backends.store import verified_cache, verify
from anvil.core.canonical_json import canonical
from anvil.core.config.schema import FetchOptions
from anvil.core.dependencies import anvil_lock
from anvil.errors import ArtifactError, ConfigError
from anvil.models.dependencies import LockedDocs

MAX_ENTRIES = 1000
"""Index files; over that, those that were not used for a day are removed, the oldest first."""


def cache(folder: Path | None = None) -> Cache:
    """The cache in ``folder``, by default in the user's cache folder."""
    return Cache(folder or user_dirs.cache() / "deps", MAX_ENTRIES)


def find(cache: Cache, entry: LockedDocs) -> Path | None:
    """The index of an entry, if it is in the cache and has not changed."""
    path = cache.object(entry.sha256)
    if path is None and entry.anvil_version is not None:
        sha256 = cache.held_by(name(entry))
        path = cache.object(sha256) if sha256 and sha256 != entry.sha256 else None
    return path if path is not None and is_of(path, entry) else None


def path(cache: Cache, entry: LockedDocs) -> Path:
    """Where the index of an entry is, or will be after ``anvil deps sync``. Its bytes are not read."""
    objects = cache.folder / "objects"
    own = objects / f"{entry.sha256}.db"
    sha256 = cache.held_by(name(entry)) if entry.anvil_version is not None and not own.is_file() else None
    return objects / f"{sha256}.db" if sha256 else own


def is_of(path: Path, entry: LockedDocs) -> bool:
    """Whether an index file has the text that the entry says. The file is checked before its first use."""
    try:
        with verify.open_checked(path) as reader:
            return reader.meta()["digest"] == entry.digest
    except ArtifactError:
        return False


def is_attested(cache: Cache, entry: LockedDocs, options: FetchOptions, base: Path) -> bool:
    """Whether an index in the cache may be used as far as attestations go: none is demanded, it was built here, or it
    was verified that the repository in the entry built it. ``base``: the project's folder."""
    if not options.require_attestation or entry.anvil_version is not None:
        return True
    if entry.attested_by is None:
        return False
    from anvil.backends.fetch import attestations  # imported where attestations are demanded only

    root = attestations.rule_of(options, base).trusted_root
    return attestations.recalled(cache, entry.sha256, entry.attested_by, root) is not None


def keep(cache: Cache, file: Path, entry: LockedDocs) -> Path:
    """Move an index that belongs to the entry into the cache."""
    sha256 = verified_cache.sha256(file)
    kept = cache.object(sha256) or cache.keep(file, sha256)
    cache.note(name(entry), sha256)
    return kept


def remember(cache: Cache, question: str, entry: LockedDocs) -> None:
    """Keep where the documentation of a release was found. Releases do not change."""
    cache.note(f"found {question}", anvil_lock.render([entry]))


def recall(cache: Cache, question: str) -> LockedDocs | None:
    """What :func:`remember` kept, if it is still there."""
    text = cache.held_by(f"found {question}")
    try:
        entries = anvil_lock.parse(text, "the cache") if text else []
    except ConfigError:
        return None  # written by another version
    return entries[0] if entries and find(cache, entries[0]) is not None else None


def question(*values: object) -> str:
    """The key of :func:`remember`: all that the answer depends on."""
    return canonical([__version__, *values])


def name(entry: LockedDocs) -> str:
    """The key under which the cache has the file of an entry."""
    return json.dumps(dataclasses.asdict(entry), sort_keys=True)
