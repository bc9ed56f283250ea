"""The documents as they lie in a folder, inside a repository or not, with what was hashed before remembered.

A second scan costs a directory listing and one stat a page. Content decides all the same: a signature is
trusted only when the file was last touched clearly before it was hashed, the rule git keeps for its own
index.
"""

from __future__ import annotations

import os
import stat
import sys
import time
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import RLock
from typing import NamedTuple

from anvil.config import SourceOptions
from anvil.errors import GitError, SourceError
from anvil.footprint import Footprint, Signature, mark, settled, signature
from anvil.git import Repository, blob_id, timestamp
from anvil.models import Document, Scan, Skipped
from anvil.selecting import BAD_NAME, SUBMODULE, Selection, is_unicode, printable, refusal, too_large

_RULES = (".gitignore", ".gitattributes")
_CONTENT_RULES = (".gitattributes", "attributes", "config")
_PRECOMPOSES = sys.platform == "darwin"

_VANISHED = "vanished"

# Without O_NONBLOCK a pipe that took a file's place would block for ever.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

class _Seen(NamedTuple):
    """What looking at a file gave: its blob id, or why it is left out. ``signature`` is None when not to be
    trusted."""

    signature: Signature | None
    result: str | Skipped


class WorkingTree:
    """``DocumentSource`` of a folder. ``problem`` says why its repository is not used, where one cannot be
    read."""

    name = "working tree"
    left_out: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        self._docs = docs
        self._spelled = docs.absolute()  # whatever becomes of the working folder
        self._options = options
        self._selection = Selection(options)
        self._lock = RLock()
        folder = os.path.realpath(docs)
        if not os.path.isdir(_long(folder)):
            raise SourceError(_no_folder(docs))
        self._settle(folder)

    def _settle(self, folder: str) -> None:
        """Begin anew with the folder, free of links, that the documents' one is now; nothing is known of it yet."""
        self._folder = Path(folder)
        self._root = _long(folder)
        self.problem: str | None = None
        self._git = self._repository()
        self.root_path = "." if self._git is None else self._git.relative(self._folder)
        self._composes = _PRECOMPOSES and self._git is not None and self._git.composes_names
        self._files: dict[str, _Seen] = {}
        self._verdicts: dict[str, bool] = {}
        self._rules: dict[str, object] | None = None
        self._footprint: Footprint | None = None
        self._last = Scan({})
        self._times: tuple[str | None, dict[str, str | None]] = (None, {})

    def commit(self) -> str | None:
        """The commit checked out; None outside a repository, before the first commit, or when it cannot be
        read."""
        with self._lock:
            try:
                return None if self._git is None else self._git.head()
            except GitError as error:
                self.problem = str(error)
                return None

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """Every document and its blob id; the very same object as last time when nothing changed. ``indexed`` is
        not needed here: what was looked at is remembered."""
        with self._lock:
            folder = os.path.realpath(self._spelled)
            if _long(folder) != self._root:  # a link on the way leads to another revision, as deployments do it
                self._settle(folder)
            if self._footprint is not None and self._footprint.stands(self._glance):
                return self._last
            before = self._rules
            entries, skipped, self._rules = self._walk(self._files)
            if before is not None and self._rules != before:
                # The names were judged, and contents normalised, by rules that no longer hold.
                changed = [file for file, _ in before.items() ^ self._rules.items()]
                self._verdicts.clear()
                self._git = self._repository()  # libgit2 holds on to settings it has once looked up
                if any(file.endswith(_CONTENT_RULES) for file in changed):
                    self._files.clear()
                entries, skipped, self._rules = self._walk({})
            if entries != self._last.entries or skipped != list(self._last.skipped):
                self._last = Scan(dict(sorted(entries.items())), tuple(skipped))
            return self._last

    def read(self, path: str) -> Document | Skipped:
        """The document as it is now, with the id of the bytes really read."""
        with self._lock:
            if not self._selection.wants(path) or any(part in ("", ".", "..") for part in path.split("/")):
                return Skipped(printable(path), "not a document of this folder")
            if self._leads_astray(path):
                return Skipped(printable(path), "it is reached through a symlink; links are not followed")
            seen, data = self._look(path, self._real(path))
            if isinstance(data, Skipped) or isinstance(seen.result, Skipped):
                return Skipped(path, data.reason if isinstance(data, Skipped) else "")
            self._files[path] = seen
            return Document(path, seen.result, data.decode("utf-8-sig"), len(data), self._time(path))

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Path -> time of the last commit that touched it, else of the file itself; vanished ones are left
        out."""
        with self._lock:
            head = self.commit()
            times: dict[str, str] = {}
            if self._git is not None and head is not None:
                try:
                    times = self._git.last_modified(paths, self.root_path, known, since, head)
                except GitError as error:
                    self.problem = str(error)
            if self._times[0] != head:
                self._times = (head, {})
            self._times[1].update((path, times.get(path)) for path in paths)
            for path in paths:
                if path not in times and (own := file_time(self._real(path))) is not None:
                    times[path] = own
            return times

    # --- inner -------------------------------------------------------------------------------------

    def _repository(self) -> Repository | None:
        try:
            return Repository.discover(self._folder)
        except GitError as error:
            self.problem = str(error)
            return None

    def _walk(self, chosen: Mapping[str, _Seen]) -> tuple[dict[str, str], list[Skipped], dict[str, object]]:
        """Entries, what is skipped, and the state of the rule files. ``chosen`` are files whose names need no
        judging again; what was read of them and of others is in ``_files``."""
        if self._git is not None:
            self._git.reload()
        rules = {file: mark(file) for file in self._rule_files()}
        skipped: list[Skipped] = []
        files: dict[str, _Seen] = {}
        footprint, self._footprint = Footprint(), None
        folders: list[tuple[str, frozenset[tuple[int, int]]]] = [("", frozenset())]
        while folders:
            folder, above = folders.pop()
            base = self._real(folder)
            began = time.time_ns()
            try:
                identity = os.stat(base)
                with os.scandir(base) as listing:
                    items = list(listing)
                footprint.folder(base, items, identity, began)
            except OSError as error:
                if not folder:
                    raise SourceError(_no_folder(self._docs)) from error
                if not isinstance(error, FileNotFoundError):
                    skipped.append(Skipped(folder, f"the folder cannot be listed: {error.strerror}"))
                    footprint.doubt()  # its permissions may change without a trace in what is recorded
                continue
            itself = (identity.st_dev, identity.st_ino)
            if itself in above:
                skipped.append(Skipped(folder, "a loop: the folder lies within itself"))
                continue
            if folder and self._git is not None and os.path.lexists(os.path.join(base, ".git")):
                skipped.append(Skipped(folder, SUBMODULE))
                continue
            head = folder + "/" if folder else ""
            base += os.sep
            for item in items:
                name = item.name
                path = head + (unicodedata.normalize("NFC", name) if self._composes else name)
                seen = chosen.get(path)
                if seen is not None:
                    try:
                        found = os.lstat(base + name)
                    except OSError:
                        continue  # vanished since it was listed
                    if seen[0] == signature(found):
                        files[path] = seen
                        footprint.file(path, base + name, *seen)
                        continue
                if not is_unicode(name):
                    skipped.append(Skipped(printable(path), BAD_NAME))
                elif item.is_dir(follow_symlinks=False):
                    if self._enters(path):
                        folders.append((path, above | {itself}))
                elif self._wants(path):
                    files[path] = self._looked(path, base + name)
                    footprint.file(path, base + name, *files[path])
                elif name in _RULES:
                    rules[base + name] = mark(base + name)
                elif item.is_symlink() and os.path.isdir(base + name) and self._enters(path):
                    skipped.append(Skipped(path, self._link(base + name)))
        self._files = files
        footprint.close(rules)
        self._footprint = footprint
        entries: dict[str, str] = {}
        for path, (_, result) in files.items():
            if isinstance(result, str):
                entries[path] = result
            elif result.reason != _VANISHED:
                skipped.append(result)
        return entries, sorted(skipped, key=lambda item: item.path), rules

    def _enters(self, folder: str) -> bool:
        key = folder + "/"
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = self._selection.enters(folder) and not self._ignored(key)
        return verdict

    def _wants(self, path: str) -> bool:
        verdict = self._verdicts.get(path)
        if verdict is None:
            verdict = self._verdicts[path] = self._selection.wants(path) and not self._ignored(path)
        return verdict

    def _glance(self, path: str, real: str) -> _Seen:
        seen = self._files[path] = self._look(path, real)[0]
        return seen

    def _looked(self, path: str, real: str) -> _Seen:
        """What is remembered of a file where it still holds, else what looking at it gives."""
        seen = self._files.get(path)
        if seen is not None and seen.signature is not None:
            try:
                if seen.signature == signature(os.lstat(real)):
                    return seen
            except FileNotFoundError:
                return _Seen(None, Skipped(path, _VANISHED))
        return self._look(path, real)[0]

    def _look(self, path: str, real: str) -> tuple[_Seen, bytes | Skipped]:
        """Read and judge a file: what to remember, and its bytes as git would store them or why there are
        none."""
        began = time.time_ns()
        try:
            raw, found = self._read(real)
            data: bytes | Skipped = raw if isinstance(raw, bytes) else Skipped(path, raw)
        except FileNotFoundError:
            found, data = None, Skipped(path, _VANISHED)
        except OSError as error:
            found, data = None, Skipped(path, f"cannot be read: {error.strerror or error}")
        if isinstance(data, bytes):
            if self._git is not None:
                data = self._cleaned(path, data)
            if (reason := refusal(data, self._options.max_file_bytes)) is not None:
                data = Skipped(path, reason)
        # Taken from the open file after reading: a change in between has a stamp too young to be trusted.
        trusted = found is not None and settled(found, began)
        result = data if isinstance(data, Skipped) else blob_id(data)
        return _Seen(signature(found) if found and trusted else None, result), data

    def _read(self, real: str) -> tuple[bytes | str, os.stat_result | None]:
        """A file's bytes, or why it is refused unread, and its state after reading."""
        limit = self._options.max_file_bytes
        try:
            if not _NO_FOLLOW and os.path.islink(real):
                return self._link(real), None
            descriptor = os.open(real, _OPEN)
        except OSError:
            if os.path.islink(real):
                return self._link(real), None
            raise
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return "not a regular file", found
            if found.st_size > limit:
                return too_large(found.st_size, limit), found
            data = os.read(descriptor, found.st_size + 1)
            while (
                len(data) != found.st_size and len(data) <= limit and (more := os.read(descriptor, 1 << 20))
            ):
                data += more
            return data, os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _cleaned(self, path: str, data: bytes) -> bytes:
        assert self._git is not None
        try:
            return self._git.clean(self._in_repository(path), data)
        except GitError as error:
            self.problem = str(error)
            return data

    def _link(self, real: str) -> str:
        """Why a symlink is left out. One that stays inside is too: its target is a document under its own
        name, and git's trees, which know links by their text alone, are to give the same documents."""
        try:
            target = os.path.realpath(real, strict=True)
        except OSError:
            return "a symlink that leads nowhere, or in a circle"
        if target == self._root or target.startswith(self._root + os.sep):
            return "a symlink; its target is indexed under its own name"
        return "a symlink that leads out of the documents' folder"

    def _ignored(self, path: str) -> bool:
        if self._git is None:
            return False
        try:
            return self._git.is_ignored(self._in_repository(path))
        except GitError as error:
            self.problem = str(error)
            return False

    def _time(self, path: str) -> str:
        head = self.commit()
        if head is not None and (self._times[0] != head or path not in self._times[1]):
            self.last_modified({*self._last.entries, path}, {}, None)  # one walk for all that may come next
        committed = self._times[1].get(path) if head is not None else None
        return committed or file_time(self._real(path)) or timestamp(0)

    def _leads_astray(self, path: str) -> bool:
        """Whether a folder on the way is a symlink; the walk has made sure of the documents it found."""
        folder = os.path.dirname(self._real(path))
        return path not in self._last.entries and os.path.realpath(folder) != folder

    def _in_repository(self, path: str) -> str:
        return path if self.root_path == "." else f"{self.root_path}/{path}"

    def _real(self, path: str) -> str:
        return os.path.join(self._root, *path.split("/")) if path else self._root

    def _rule_files(self) -> list[str]:
        if self._git is None:
            return []
        return [str(self._git.index_file), *map(str, self._git.rule_files(self.root_path))]


def file_time(real: str) -> str | None:
    """A file's own modification time, no later than ``SOURCE_DATE_EPOCH`` when that is set; None without
    the file."""
    try:
        seconds = int(os.lstat(real).st_mtime)
    except OSError:
        return None
    latest = os.environ.get("SOURCE_DATE_EPOCH")
    if latest:
        try:
            seconds = min(seconds, int(latest))
        except ValueError:
            raise SourceError(
                f"SOURCE_DATE_EPOCH is {latest!r}; it must be whole seconds since 1970."
            ) from None
    return timestamp(seconds)


def _long(path: str) -> str:
    """On Windows, the form that is free of the limit of 260 characters and of reserved names such as
    ``con.md``."""
    if os.name != "nt" or path.startswith("\\\\"):
        return path
    return "\\\\?\\" + path


def _no_folder(docs: Path) -> str:
    if docs.exists() and not docs.is_dir():
        return f"{docs} is a file, not a folder of documents. Name the folder it lies in."
    return f"There is no folder {docs}. Name the folder your documents lie in."
