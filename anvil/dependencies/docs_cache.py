"""The cache of dependencies' documentation: index files by their SHA-256, shared by all projects of a user.

A published index is the file with the SHA-256 in the entry of ``anvil.lock``. An index that is built here can have
another SHA-256 on each machine, because vectors differ in their last digit; its digest, which covers the text, is the
same. A note in the cache tells which file was built here for an entry. A file without such a note does not count as
built here, because an edited lock could name the SHA-256 of any download.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from anvil.dependencies import anvil_lock
from anvil.dependencies.ecosystems import ECOSYSTEMS
from anvil.dependencies.values import LockedDocs
from anvil.errors import ArtifactError, ConfigError
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.settings import FetchOptions
from anvil.index_file import verify
from anvil.settings.schema import Collection, Config
from anvil.system import safe_files

MAX_ENTRIES = 1000
"""Index files. Over this number, those that were not used for a day are removed, the oldest first."""


def cache(folder: Path | None = None) -> FetchedCache:
    """The cache in ``folder``, by default in the user's cache folder."""
    return FetchedCache(folder or safe_files.user_cache() / "deps", MAX_ENTRIES)


def cache_to_keep(folder: Path) -> FetchedCache:
    """The cache in a folder that a CI job keeps between runs. Raises :class:`ConfigError` if the folder is in the
    user's own cache, because all that one lock does not name is removed from it."""
    own = safe_files.user_cache()
    if folder.resolve().is_relative_to(own.resolve()):
        raise ConfigError(f"{folder} is in {own}, which other projects share. Name another folder with --keep.")
    return cache(folder)


def copy(
    source: FetchedCache, target: FetchedCache, entries: Iterable[LockedDocs], options: FetchOptions, base: Path
) -> None:
    """Copy the indexes of entries, and the notes about them, to a cache that does not have them.

    Raises :class:`BuildError` if ``target`` cannot be written.
    """
    with safe_files.writing(target.folder):
        for entry in entries:
            path = find(source, entry)
            if path is None:
                continue
            if find(target, entry) is None:
                with target.workplace() as file:
                    keep(target, Path(shutil.copyfile(path, file)), entry)
            for name in _attestations([entry], options, base):
                note = source.read_note(name)
                if note is not None and target.read_note(name) is None:
                    target.note(name, note)


def keep_only(cache: FetchedCache, entries: Sequence[LockedDocs], options: FetchOptions, base: Path) -> None:
    """Remove everything from a cache that these entries do not use. Raises :class:`BuildError` if that fails."""
    paths = [find(cache, entry) for entry in entries]
    notes = {*map(name, entries), *_attestations(entries, options, base)}
    with safe_files.writing(cache.folder):
        cache.keep_only({path.stem for path in paths if path is not None}, notes)


def _attestations(entries: Iterable[LockedDocs], options: FetchOptions, base: Path) -> list[str]:
    """The names of the notes on who built the indexes of entries; none if no attestation is required."""
    if not options.require_attestation:
        return []
    from anvil.fetch import attestation

    root = attestation.rule_of(options, base).trusted_root
    return [attestation.note_of(entry.sha256, root) for entry in entries if entry.attested_by is not None]


def find(cache: FetchedCache, entry: LockedDocs) -> Path | None:
    """The index of an entry, if it is in the cache and undamaged."""
    sha256 = entry.sha256 if entry.anvil_version is None else cache.read_note(name(entry))
    path = cache.object(sha256) if sha256 else None
    if path is None:
        return None
    try:
        with verify.open_checked(path) as reader:
            return path if reader.meta()["digest"] == entry.digest else None
    except ArtifactError:
        return None


def path(cache: FetchedCache, entry: LockedDocs) -> Path:
    """The path of the index of an entry, which exists after ``anvil deps sync``. The file is not read."""
    file = cache.folder / "objects" / f"{entry.sha256}.db"
    if entry.anvil_version is None:
        return file
    if sha256 := cache.read_note(name(entry)):
        return file.with_name(f"{sha256}.db")
    return file.with_suffix(".not-built") if file.is_file() else file  # the file belongs to another entry


def pages(path: Path) -> int:
    with verify.open_checked(path) as reader:
        return reader.counts()["documents"]


def is_attested(cache: FetchedCache, entry: LockedDocs, options: FetchOptions, base: Path) -> bool:
    """Whether the attestation of an index in the cache suffices: none is required, the index was built here, or it was
    verified that the repository in the entry built it. ``base``: the project's folder."""
    if not options.require_attestation:
        return True
    if entry.anvil_version is not None:
        return cache.read_note(name(entry)) is not None
    if entry.attested_by is None:
        return False
    from anvil.fetch import attestation  # late: most projects require no attestations

    root = attestation.rule_of(options, base).trusted_root
    return attestation.verified_before(cache, entry.sha256, entry.attested_by, root) is not None


def keep(cache: FetchedCache, file: Path, entry: LockedDocs) -> Path:
    """Move the index of an entry into the cache."""
    sha256 = safe_files.sha256(file)
    kept_path = cache.object(sha256) or cache.keep(file, sha256)
    if entry.anvil_version is not None:
        cache.note(name(entry), sha256)
    return kept_path


def remember(cache: FetchedCache, question: str, entry: LockedDocs) -> None:
    """Store where the documentation of a release was found, since releases do not change. ``question``: everything that
    the answer depends on."""
    cache.note(f"found {question}", anvil_lock.render([entry]))


def recall(cache: FetchedCache, question: str) -> LockedDocs | None:
    """The entry that :func:`remember` stored, if its index is still in the cache."""
    text = cache.read_note(f"found {question}")
    try:
        entries = anvil_lock.parse(text, "the cache") if text else []
    except ConfigError:
        return None  # another version of Anvil wrote it
    return entries[0] if entries and find(cache, entries[0]) is not None else None


def name(entry: LockedDocs) -> str:
    """The name of the note on which file was built here for an entry: all its fields but ``named``."""
    return f"built {json.dumps(dataclasses.asdict(dataclasses.replace(entry, named=())), sort_keys=True)}"


def locked_collections(base: Path, config: Config | None = None, taken: Container[str] = ()) -> tuple[Collection, ...]:
    """The documentation of a project's dependencies, from ``anvil.lock`` in ``base``; empty if there is no file.

    Nothing is fetched. For an entry that is not in the cache the index is a file that does not exist until ``anvil deps
    sync`` is run. The same is true if ``config`` requires an attestation that was not verified.

    A collection has the name of its package. The ecosystem is put in front of a name in two cases: several ecosystems
    have it (then in all but the last of :data:`ECOSYSTEMS`), or it is in ``taken``. So no package takes the place of
    the project's own documentation.
    """
    options = (config or Config()).table(FetchOptions)
    entries = anvil_lock.read_lock(base)
    docs = cache()
    by_ecosystem = sorted(entries, key=lambda entry: [*ECOSYSTEMS].index(entry.ecosystem))
    last = {(entry.name, entry.version): entry.ecosystem for entry in by_ecosystem}
    collections = []
    for entry in entries:
        file = path(docs, entry)
        if not is_attested(docs, entry, options, base):
            file = file.with_suffix(".not-attested")
        is_taken = entry.name in taken or last[entry.name, entry.version] != entry.ecosystem
        label = f"{entry.ecosystem}-{entry.name}" if is_taken else entry.name
        missing = f"The documentation of {entry.name} {entry.version} is not on this machine. Run 'anvil deps sync'."
        collections.append(Collection(name=label, missing=missing, index=str(file), version=entry.version))
    return tuple(collections)
