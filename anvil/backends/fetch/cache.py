"""What was fetched, on this machine: index files by their SHA-256, and for each source the one it stands at.

    fetched/objects/<sha256>.db        every index, once
    fetched/names/<digest>             the SHA-256 of the index that an archive or an asset holds
    fetched/sources/<key>/index.db     the one a source stands at, replaced by rename; its manifest beside it
    fetched/sources/<key>/state.json   where and when it was found; no credential, no signature

Several processes may share it: writes are renames, and a source is fetched by one of them at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from anvil.backends import safe_write, user_dirs
from anvil.backends.store import lock, manifest_file, publish, verified_cache
from anvil.core import manifest
from anvil.errors import AnvilError
from anvil.models.documents import Manifest

MAX_ENTRIES = 12
"""Objects, and sources, that are kept. The least recently used ones are removed first."""
MIN_AGE_S = 24 * 3600.0
"""Nothing is removed earlier than this after its last use."""


@dataclass(frozen=True, slots=True)
class CacheState:
    """What is known of the index a source stands at. Times in seconds since 1970.

    ``place`` is where below the source it was found, ``etag`` and ``modified`` what was asked for there. ``vouched``:
    whether its digest was published besides. ``revision`` is what the source calls it (an artifact, a release),
    ``commit`` the one it was made at as the source says.
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


class Cache:
    """A folder of fetched indexes; ``folder`` None for the user's own."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_dirs.cache() / "fetched"

    def entry(self, key: str) -> CacheEntry:
        """The place of a source. ``key`` names it, and where its HEAD matters, the repository."""
        return CacheEntry(self, hashlib.sha256(key.encode()).hexdigest()[:32])

    def object(self, sha256: str) -> Path | None:
        """The index file of this SHA-256, when it is here and whole."""
        path = self.folder / "objects" / f"{sha256}.db"
        try:
            if verified_cache.sha256(path) == sha256:
                if time.time() - path.stat().st_mtime > 3600:  # no oftener: a server takes it for a change
                    os.utime(path)
                return path
            path.unlink()  # damaged since
        except OSError:
            pass
        return None

    def keep(self, file: Path, sha256: str) -> Path:
        """Move a verified file into the cache."""
        target = self.folder / "objects" / f"{sha256}.db"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)
        return target

    def held_by(self, name: str) -> str | None:
        """The SHA-256 of the index that something seen before held: an archive by its own digest, an asset."""
        with contextlib.suppress(OSError):
            return (self.folder / "names" / _hashed(name)).read_text(encoding="ascii")
        return None

    def note(self, name: str, sha256: str) -> None:
        """Note which index an archive or an asset held, which is never another one."""
        _written(self.folder / "names" / _hashed(name), sha256)

    def prune(self) -> None:
        """Let go of what was not used for long, beyond the newest few."""
        now = time.time()
        for name in ("objects", "names", "sources"):
            with contextlib.suppress(OSError):
                entries = sorted(os.scandir(self.folder / name), key=lambda entry: -entry.stat().st_mtime)
                limit = MAX_ENTRIES if name != "names" else MAX_ENTRIES * 20
                for entry in entries[limit:]:
                    if now - entry.stat().st_mtime > MIN_AGE_S:
                        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)


class CacheEntry:
    """One source in the cache."""

    def __init__(self, cache: Cache, name: str) -> None:
        self.cache = cache
        self.folder = cache.folder / "sources" / name
        self.index = self.folder / "index.db"
        self.part = self.folder / "part"
        self.unpacked = self.folder / "unpacked.db"

    @contextlib.contextmanager
    def lock(self, timeout_s: float) -> Iterator[None]:
        """Keep other processes from fetching this source. Raises :class:`IndexBusy` after so many seconds, and
        :class:`OSError` or :class:`BuildError` where nothing can be written."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.utime(self.folder)
        with lock.exclusive(self.index, timeout_s):
            yield

    def state(self) -> CacheState | None:
        """What the source stands at, when that is here and whole."""
        for _ in range(2 if self.index.is_file() else 1):
            try:
                told = CacheState(**json.loads((self.folder / "state.json").read_text(encoding="utf-8")))
                if verified_cache.sha256(self.index) == told.sha256:
                    return told
            except (OSError, ValueError, TypeError):
                pass  # never fetched, by another Anvil, or damaged: it is fetched anew
            time.sleep(0.1)  # whoever holds no lock may come between two renames
        return None

    def manifest(self, state: CacheState) -> Manifest:
        """The manifest of :attr:`index`, made when it was fetched."""
        path = manifest_file.manifest_path(self.index)
        try:
            found = manifest.parse(path.read_text(encoding="utf-8"), str(path))
            if found.sha256 == state.sha256:
                return found
        except (OSError, AnvilError):
            pass  # gone, or from another time
        return manifest_file.describe(self.index)

    def confirm(self, state: CacheState) -> None:
        """Note what is known of the index that stands here already."""
        _written(self.folder / "state.json", json.dumps(asdict(state), indent=2) + "\n")

    def stand_at(self, found: Path, described: Manifest, state: CacheState) -> None:
        """Put an index of the cache in the place of this source's."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.index.with_name("index.db.new")
        fresh.unlink(missing_ok=True)
        try:
            os.link(found, fresh)
        except OSError:  # a file system without links
            shutil.copyfile(found, fresh)
        (self.folder / "state.json").unlink(missing_ok=True)  # between the two renames nothing is claimed
        publish.replace(fresh, self.index)
        fresh.unlink(missing_ok=True)  # two names of one file: then the rename did nothing
        _written(manifest_file.manifest_path(self.index), manifest.render(replace(described, file=self.index.name)))
        self.confirm(state)


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    safe_write.write_file(path, text)


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
