"""The cache of fetched indexes: index files by their SHA-256, notes, and the current index of each source.

    fetched/objects/<sha256>.db        each index, once
    fetched/names/<hash>               a note, such as the SHA-256 of the index in an archive or an asset
    fetched/sources/<key>/index.db     the current index of a source, replaced by rename, with its manifest
    fetched/sources/<key>/state.json   where and when it was found, without credentials and signatures

Several processes can share it: files are written by rename, and one process at a time fetches a source.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_type_hints

from anvil.errors import AnvilError, BuildError
from anvil.index_file import manifests, publish
from anvil.index_file.manifests import Manifest
from anvil.system import safe_files
from anvil.values import Progress

MAX_ENTRIES = 12
"""The largest number of objects, and of sources. The least recently used ones are removed first."""
MIN_AGE_S = 24 * 3600.0
"""Time since the last use before anything is removed."""
USE_INTERVAL_S = 3600.0
"""Time after which a use is recorded again. A running server takes each new time stamp for a change of the file."""
NOTES_FACTOR = 20
"""The largest number of notes, divided by that of objects. Notes are small."""
RENAME_PAUSE_S = 0.1
"""Pause before a source is read again that another process was just replacing."""
_OWN = re.compile(r"[0-9a-f]{64}\.db|[0-9a-f]{64}|[0-9a-f]{32}")
"""The names of an object, of a note, and of a source."""


@dataclass(frozen=True, slots=True)
class CacheState:
    """The current index of a source. Times in seconds since 1970.

    ``place``: the path below the source of the index, or of its manifest, which names ``file``. ``etag`` and
    ``modified``: validators of the file at ``place``. ``vouched``: whether the server published its digest, too.
    ``revision``: the source's name for this version (an artifact, a release). ``commit``: its commit, from the source.
    """

    shown: str
    place: str
    sha256: str
    etag: str | None
    modified: str | None
    vouched: bool
    fetched: float
    checked: float
    revision: str | None = None
    commit: str | None = None
    file: str | None = None

    @property
    def is_sound(self) -> bool:
        """Whether each value has its type, and times are finite numbers."""
        has_types = all(isinstance(getattr(self, name), kind) for name, kind in get_type_hints(CacheState).items())
        return has_types and math.isfinite(self.fetched) and math.isfinite(self.checked)


class CacheUnwritable(BuildError):
    """The cache in ``folder`` cannot be written, as in a read-only home folder or on a full disk."""

    def __init__(self, folder: Path, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or "another program holds it"
        elsewhere = "" if os.name == "nt" else ", or set XDG_CACHE_HOME to another folder"
        super().__init__(
            f"The cache folder {folder} cannot be written ({reason}). Make it writable or free some space{elsewhere}."
        )


class FetchedCache:
    """The cache in ``folder``; None means the user's own. ``max_entries``: see :data:`MAX_ENTRIES`."""

    def __init__(self, folder: Path | None = None, max_entries: int = MAX_ENTRIES) -> None:
        self.folder = folder or safe_files.user_cache() / "fetched"
        self._max_entries = max_entries

    def entry(self, key: str) -> CacheEntry:
        """The entry of a source. ``key``: its name, with the repository if HEAD selects the index."""
        return CacheEntry(self, hashlib.sha256(key.encode()).hexdigest()[:32])

    def object(self, sha256: str) -> Path | None:
        """The index file with this SHA-256; None if it is not in the cache. A damaged one is removed."""
        path = self.folder / "objects" / f"{sha256}.db"
        try:
            if safe_files.sha256(path) == sha256:
                if time.time() - path.stat().st_mtime > USE_INTERVAL_S:
                    os.utime(path)
                return path
            path.unlink()
        except OSError:
            pass
        return None

    def keep(self, file: Path, sha256: str) -> Path:
        """Move a verified file into the cache. Raises :class:`CacheUnwritable`."""
        target = self.folder / "objects" / f"{sha256}.db"
        with self._writing():
            safe_files.make_folder(target.parent)
            os.replace(file, target)
        return target

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """The path of a new file in the cache's folder, to be renamed into place. Raises :class:`CacheUnwritable`."""
        with self._writing():
            safe_files.make_folder(self.folder)
            temporary = tempfile.TemporaryDirectory(prefix="new-", dir=self.folder)
        with temporary as folder:
            yield Path(folder, "index.db")

    def read_note(self, name: str) -> str | None:
        """The text of a note; None if there is none. For an archive or an asset it is the SHA-256 of its index."""
        with contextlib.suppress(OSError):
            return (self.folder / "names" / _hash(name)).read_text(encoding="utf-8")
        return None

    def note(self, name: str, text: str) -> None:
        """Store a note, such as the SHA-256 of the index in an archive or an asset, whose content does not change.
        Raises :class:`CacheUnwritable`."""
        with self._writing():
            _write(self.folder / "names" / _hash(name), text)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CacheUnwritable(self.folder, error) from error

    def keep_only(self, objects: Collection[str], names: Collection[str]) -> None:
        """Remove all sources, all indexes but those with the SHA-256 in ``objects``, and all notes but ``names``. Files
        that the cache did not write stay."""
        wanted = {f"{each}.db" for each in objects} | {_hash(each) for each in names}
        for name in ("objects", "names", "sources"):
            folder = self.folder / name
            is_here = folder.is_dir() and not folder.is_symlink()  # a link may lead to another cache
            for entry in list(os.scandir(folder)) if is_here else []:
                if entry.name not in wanted and _OWN.fullmatch(entry.name):
                    shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)

    def prune(self) -> None:
        """Remove entries over the limit that were not used for :data:`MIN_AGE_S`."""
        now = time.time()
        for name in ("objects", "names", "sources"):
            with contextlib.suppress(OSError):
                entries = sorted(os.scandir(self.folder / name), key=lambda entry: -entry.stat().st_mtime)
                limit = self._max_entries if name != "names" else self._max_entries * NOTES_FACTOR
                for entry in entries[limit:]:
                    if now - entry.stat().st_mtime > MIN_AGE_S:
                        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)


class CacheEntry:
    """The files of one source in the cache."""

    def __init__(self, cache: FetchedCache, name: str) -> None:
        self.cache = cache
        self.folder = cache.folder / "sources" / name
        self.index = self.folder / "index.db"
        self.part = self.folder / "part"
        self.unpacked = self.folder / "unpacked.db"

    @contextlib.contextmanager
    def lock(self, timeout_s: float, progress: Progress) -> Iterator[None]:
        """Hold the lock of this source. Raises :class:`IndexBusy` if another process still holds it after the timeout,
        and :class:`OSError` or :class:`BuildError` if the folder cannot be written."""
        safe_files.make_folder(self.folder)
        os.utime(self.folder)
        with publish.exclusive(self.index, timeout_s, progress):
            yield

    def state(self) -> CacheState | None:
        """The state of the current index; None if there is none, or it is damaged."""
        for is_last in (not self.index.is_file(), True):
            with contextlib.suppress(OSError):
                state = self.stored_state()
                if state is not None and safe_files.sha256(self.index) == state.sha256:
                    return state
            if is_last:
                break
            time.sleep(RENAME_PAUSE_S)  # another process, with the lock, may be between two renames
        return None

    def stored_state(self) -> CacheState | None:
        """The state that :meth:`confirm` stored last; the index is not looked at. None if there is none, it is damaged,
        or another version of Anvil wrote it: then the index is fetched again."""
        try:
            state = CacheState(**json.loads((self.folder / "state.json").read_text(encoding="utf-8")))
            return state if state.is_sound else None
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def manifest(self, state: CacheState) -> Manifest:
        path = manifests.manifest_path(self.index)
        try:
            stored = manifests.parse(path.read_text(encoding="utf-8"), str(path))
            if stored.sha256 == state.sha256:
                return stored
        except (OSError, AnvilError):
            pass  # it is missing or damaged
        return publish.describe(self.index)

    def confirm(self, state: CacheState) -> None:
        """Store the state of the current index, which is still that of the source."""
        _write(self.folder / "state.json", json.dumps(asdict(state), indent=2) + "\n")

    def replace(self, file: Path, described: Manifest, state: CacheState) -> None:
        """Make an index file of the cache the current one of this source."""
        safe_files.make_folder(self.folder)
        fresh = self.index.with_name("index.db.new")
        fresh.unlink(missing_ok=True)
        try:
            os.link(file, fresh)
        except OSError:  # a file system without links
            shutil.copyfile(file, fresh)
        (self.folder / "state.json").unlink(missing_ok=True)  # so no state belongs to the wrong index meanwhile
        publish.replace(fresh, self.index)
        fresh.unlink(missing_ok=True)  # if both are names of one file already, the rename has done nothing
        _write(
            manifests.manifest_path(self.index), manifests.render(dataclasses.replace(described, file=self.index.name))
        )
        self.confirm(state)


def _write(path: Path, text: str) -> None:
    safe_files.make_folder(path.parent)
    safe_files.write_file(path, text)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
