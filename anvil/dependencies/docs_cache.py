"""The user's cache of dependencies' documentation: index files by their SHA-256, shared by all projects.

An index of its publisher is the file with the SHA-256 of the entry of ``anvil.lock``. An index that is built here may
have other vectors on another machine, in a last digit, and so another SHA-256; its digest, which covers the text, must
be the same. A note says which file was built here for an entry. Without the note nothing was: an edited lock could name
the SHA-256 of a download.
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
"""Index files; over that, those that were not used for a day are removed, the oldest first."""


def cache(folder: Path | None = None) -> FetchedCache:
    """The cache in ``folder``, by default in the user's cache folder."""
    return FetchedCache(folder or safe_files.user_cache() / "deps", MAX_ENTRIES)


def kept(folder: Path) -> FetchedCache:
    """The cache in a folder that a CI job keeps between runs. Raises :class:`ConfigError` for one in the user's own
    cache: what one lock does not name is removed from it."""
    own = safe_files.user_cache()
    if folder.resolve().is_relative_to(own.resolve()):
        raise ConfigError(f"{folder} is in {own}, which other projects share. Name another folder with --keep.")
    return cache(folder)


def copy(
    source: FetchedCache, target: FetchedCache, entries: Iterable[LockedDocs], options: FetchOptions, base: Path
) -> None:
    """Copy the indexes of entries from one cache to another which lacks them, and the notes about them.

    Raises :class:`BuildError` when the other cannot be written.
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
                note = source.held_by(name)
                if note is not None and target.held_by(name) is None:
                    target.note(name, note)


def keep_only(cache: FetchedCache, entries: Sequence[LockedDocs], options: FetchOptions, base: Path) -> None:
    """Remove from a cache all that these entries do not use. Raises :class:`BuildError` when that fails."""
    paths = [find(cache, entry) for entry in entries]
    notes = {*map(name, entries), *_attestations(entries, options, base)}
    with safe_files.writing(cache.folder):
        cache.keep_only({path.stem for path in paths if path is not None}, notes)


def _attestations(entries: Iterable[LockedDocs], options: FetchOptions, base: Path) -> list[str]:
    """The names of the notes that say who built the indexes of entries, where that is demanded."""
    if not options.require_attestation:
        return []
    from anvil.fetch import attestation

    root = attestation.rule_of(options, base).trusted_root
    return [attestation.note_of(entry.sha256, root) for entry in entries if entry.attested_by is not None]


def find(cache: FetchedCache, entry: LockedDocs) -> Path | None:
    """The index of an entry, if it is in the cache and has not changed."""
    sha256 = entry.sha256 if entry.anvil_version is None else cache.held_by(name(entry))
    path = cache.object(sha256) if sha256 else None
    return path if path is not None and is_of(path, entry) else None


def path(cache: FetchedCache, entry: LockedDocs) -> Path:
    """Where the index of an entry is, or will be after ``anvil deps sync``. Its bytes are not read."""
    own = cache.folder / "objects" / f"{entry.sha256}.db"
    if entry.anvil_version is None:
        return own
    if sha256 := cache.held_by(name(entry)):
        return own.with_name(f"{sha256}.db")
    return own.with_suffix(".not-built") if own.is_file() else own  # the file is there for another entry


def pages(path: Path) -> int:
    with verify.open_checked(path) as reader:
        return reader.counts()["documents"]


def is_of(path: Path, entry: LockedDocs) -> bool:
    """Whether an index file has the text that the entry says. The file is checked before its first use."""
    try:
        with verify.open_checked(path) as reader:
            return reader.meta()["digest"] == entry.digest
    except ArtifactError:
        return False


def is_attested(cache: FetchedCache, entry: LockedDocs, options: FetchOptions, base: Path) -> bool:
    """Whether an index in the cache may be used as far as attestations go: none is demanded, it was built here, or it
    was verified that the repository in the entry built it. ``base``: the project's folder."""
    if not options.require_attestation:
        return True
    if entry.anvil_version is not None:
        return cache.held_by(name(entry)) is not None
    if entry.attested_by is None:
        return False
    from anvil.fetch import attestation  # imported where attestations are demanded only

    root = attestation.rule_of(options, base).trusted_root
    return attestation.recalled(cache, entry.sha256, entry.attested_by, root) is not None


def keep(cache: FetchedCache, file: Path, entry: LockedDocs) -> Path:
    """Move an index that belongs to the entry into the cache."""
    sha256 = safe_files.sha256(file)
    kept_path = cache.object(sha256) or cache.keep(file, sha256)
    if entry.anvil_version is not None:
        cache.note(name(entry), sha256)
    return kept_path


def remember(cache: FetchedCache, question: str, entry: LockedDocs) -> None:
    """Keep where the documentation of a release was found. Releases do not change. ``question``: all that the answer
    depends on."""
    cache.note(f"found {question}", anvil_lock.render([entry]))


def recall(cache: FetchedCache, question: str) -> LockedDocs | None:
    """What :func:`remember` kept, if it is still there."""
    text = cache.held_by(f"found {question}")
    try:
        entries = anvil_lock.parse(text, "the cache") if text else []
    except ConfigError:
        return None  # written by another version
    return entries[0] if entries and find(cache, entries[0]) is not None else None


def name(entry: LockedDocs) -> str:
    """The note that says which file was built here for an entry: all of it but what the user said about it."""
    return f"built {json.dumps(dataclasses.asdict(dataclasses.replace(entry, named=())), sort_keys=True)}"


def locked_collections(base: Path, config: Config | None = None, taken: Container[str] = ()) -> tuple[Collection, ...]:
    """The documentation of a project's dependencies, as ``anvil.lock`` in ``base`` names it; empty without the file.

    Nothing is fetched: an entry that is not in the cache leads to a file that does not exist, until ``anvil deps sync``
    puts it there. So does one whose attestation ``config`` demands, if it was not verified. A name that is in several
    ecosystems has the ecosystem in front in all but the last of :data:`ECOSYSTEMS`. So has one of ``taken``, in all: a
    package must not stand for the project's own documentation because it has the same name.
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
