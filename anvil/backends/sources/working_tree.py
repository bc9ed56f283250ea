"""The documents of a folder, in a repository or not, with a cache of their blob ids.

A second scan costs one ``stat`` for each page. The result depends on content only: a signature is trusted only when the
file was changed long enough before it was hashed, as git does for its own index.
"""

from __future__ import annotations

import os
import stat
import sys
import time
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import NamedTuple

from anvil.backends.git.repository import Repository, blob_id
from anvil.backends.sources.stat_cache import Signature, StatCache, is_stable, mark, signature, written_back
from anvil.core import staleness
from anvil.core.config.schema import SourceOptions
from anvil.core.file_selection import (
    BAD_NAME,
    LINK_ABSOLUTE,
    LINK_FOLDER,
    LINK_NOWHERE,
    LINK_OUT,
    LINK_PRIVATE,
    SUBMODULE,
    Selection,
    is_private,
    is_unicode,
    printable,
    refusal,
    too_large,
)
from anvil.core.git.objects import landing
from anvil.core.markdown import includes
from anvil.core.timestamps import timestamp
from anvil.errors import GitError, SourceError
from anvil.models.documents import Document, Scan, Skipped

_RULES = (".gitignore", ".gitattributes")
_CONTENT_RULES = (".gitattributes", "attributes", "config")
_PRECOMPOSES = sys.platform == "darwin"

_VANISHED = "vanished"

# Without O_NONBLOCK, a pipe in place of a file would block forever.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_MAX_REREAD_FILES = 64
"""Recently written files that are read at each scan. Other such files are read once more when they are old enough."""


class _Seen(NamedTuple):
    """The result of reading a file: its identity (see :func:`anvil.core.staleness.identity`), or why it is skipped.

    ``signature``: None when it cannot be trusted; for a link (``linked``) that of the file it leads to. ``files``:
    included files and their blob ids. ``target``: path that a link leads to, from the repository's root.
    """

    signature: Signature | None
    result: str | Skipped
    linked: bool = False
    files: Mapping[str, str] = {}
    target: str = ""

    def state(self, real: str) -> os.stat_result | None:
        """The stat of the file; None without the file."""
        try:
            return os.stat(real) if self.linked else os.lstat(real)
        except OSError:
            return None


class WorkingTree:
    """The ``DocumentSource`` of a folder. ``problem``: why its repository cannot be read."""

    name = "working tree"
    excluded_hashes: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        self._docs = docs
        self._absolute = docs.absolute()  # also when the working folder changes
        self._options = options
        self._selection = Selection(options)
        self._lock = RLock()
        folder = os.path.realpath(docs)
        if not os.path.isdir(_long(folder)):
            raise SourceError(_no_folder(docs))
        self._reset(folder)

    def _reset(self, folder: str) -> None:
        """Start with an empty cache for ``folder``, the documents' folder without links."""
        self._folder = Path(folder)
        self._root = _long(folder)
        self.problem: str | None = None
        self._git = self._repository()
        self.root_path = "." if self._git is None else self._git.relative(self._folder)
        self._composes = _PRECOMPOSES and self._git is not None and self._git.composes_names
        self._around = self._root if self._git is None else _long(str(self._git.root))
        self._files: dict[str, _Seen] = {}
        self._shared: dict[str, tuple[Signature | None, str]] = {}
        self._straight: dict[str, bool] = {}
        self._indexed: Mapping[str, str] = {}
        self._young: set[str] = set()
        self._due: dict[str, int] = {}
        self._verdicts: dict[str, bool] = {}
        self._rules: dict[str, object] | None = None
        self._stat_cache: StatCache | None = None
        self._last = Scan({})
        self._times: tuple[str | None, dict[str, str | None]] = (None, {})

    def commit(self) -> str | None:
        """The commit of HEAD; None outside a repository, before the first commit, and when it cannot be read."""
        with self._lock:
            try:
                return None if self._git is None else self._git.head()
            except GitError as error:
                self.problem = str(error)
                return None

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """All documents and their blob ids; the same object as last time when nothing changed. Of ``indexed``, only the
        names of included files are used."""
        with self._lock:
            self._indexed = indexed or {}
            folder = os.path.realpath(self._absolute)
            if _long(folder) != self._root:  # a deployment changed a link on the path
                self._reset(folder)
            if self._due and min(self._due.values()) <= time.time_ns():
                self._stat_cache = None
                for path in [path for path, due in self._due.items() if due <= time.time_ns()]:
                    del self._due[path]
                    self._files.pop(path, None)
            if self._stat_cache is not None and self._stat_cache.is_current(self._glance):
                return self._last
            before = self._rules
            entries, skipped, self._rules = self._walk(self._files)
            if before is not None and self._rules != before:
                # The rules for names and line endings changed.
                changed = [file for file, _ in before.items() ^ self._rules.items()]
                self._verdicts.clear()
                self._git = self._repository()  # libgit2 caches settings
                if any(file.endswith(_CONTENT_RULES) for file in changed):
                    self._files.clear()
                entries, skipped, self._rules = self._walk({})
            if entries != self._last.entries or skipped != list(self._last.skipped):
                self._last = Scan(dict(sorted(entries.items())), tuple(skipped))
            return self._last

    def read(self, path: str) -> Document | Skipped:
        """The document, with the id of the bytes that were read."""
        with self._lock:
            document = self.text(path)
            return replace(document, last_modified=self._time(path)) if isinstance(document, Document) else document

    def text(self, path: str) -> Document | Skipped:
        """As :meth:`read`, without its time."""
        with self._lock:
            if not self._selection.wants(path) or any(part in ("", ".", "..") for part in path.split("/")):
                return Skipped(printable(path), "not a document of this folder")
            if self._leads_astray(path):
                return Skipped(printable(path), "it is reached through a symlink; links are not followed")
            self._straight.clear()
            seen, data = self._look(path, self._real(path))
            if isinstance(data, Skipped) or isinstance(seen.result, Skipped):
                return Skipped(path, data.reason if isinstance(data, Skipped) else "")
            self._files[path] = seen
            blob, fingerprint = staleness.parts(seen.result)
            text, size = data.decode("utf-8-sig"), len(data)
            if not seen.files:
                return Document(
                    path=path, blob_id=blob, text=text, size=size, last_modified="", fingerprint=fingerprint
                )
            expanded = self._expanded(path, text)  # included files can have changed since; the new ones are used
            fingerprint = includes.fingerprint(expanded.files)
            self._files[path] = seen._replace(result=staleness.identity(blob, fingerprint), files=expanded.files)
            return expanded_document(path, blob, size, expanded)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Path -> time of the last commit that changed it, else of the file; missing files are left out."""
        with self._lock:
            head = self.commit()
            times: dict[str, str] = {}
            if self._git is not None and head is not None:
                links = {path: seen.target for path, seen in self._files.items() if seen.target}
                try:
                    times = modified(self._git, paths, self.root_path, links, known, since, head)
                except GitError as error:
                    self.problem = str(error)
            if self._times[0] != head:
                self._times = (head, {})
            self._times[1].update((path, times.get(path)) for path in paths)
            for path in paths:
                if path not in times and (own := file_time(self._real(path), follow=True)) is not None:
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
        """Entries, skipped files, and the marks of the rule files. ``chosen``: files that are known to be documents."""
        self._straight.clear()
        if self._git is not None:
            self._git.reload()
        rules = {file: mark(file) for file in self._rule_files()}
        skipped: list[Skipped] = []
        files: dict[str, _Seen] = {}
        stat_cache, self._stat_cache = StatCache(), None
        folders: list[tuple[str, frozenset[tuple[int, int]]]] = [("", frozenset())]
        while folders:
            folder, above = folders.pop()
            base = self._real(folder)
            began = time.time_ns()
            try:
                identity = os.stat(base)
                with os.scandir(base) as listing:
                    items = list(listing)
                stat_cache.folder(base, items, identity, began)
            except OSError as error:
                if not folder:
                    raise SourceError(_no_folder(self._docs)) from error
                if not isinstance(error, FileNotFoundError):
                    skipped.append(Skipped(folder, f"the folder cannot be listed: {error.strerror}"))
                    stat_cache.doubt()  # its permissions can change without a change of its signature
                continue
            itself = (identity.st_dev, identity.st_ino)
            if itself in above:
                skipped.append(Skipped(folder, "a loop: the folder is inside itself"))
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
                    state = seen.state(base + name)
                    if state is None and not seen.linked:
                        continue  # removed since it was listed
                    if state is not None and seen.signature == signature(state) and self._holds(seen):
                        files[path] = seen
                        stat_cache.file(path, base + name, *seen[:3])
                        continue
                if not is_unicode(name):
                    skipped.append(Skipped(printable(path), BAD_NAME))
                elif item.is_dir(follow_symlinks=False):
                    if self._enters(path):
                        folders.append((path, above | {itself}))
                elif self._wants(path):
                    files[path] = self._looked(path, base + name)
                    stat_cache.file(path, base + name, *files[path][:3])
                elif name in _RULES:
                    rules[base + name] = mark(base + name)
                elif item.is_symlink() and os.path.isdir(base + name) and self._enters(path):
                    reason = self._landing(path)[1]
                    skipped.append(Skipped(path, reason or LINK_FOLDER))
        self._files = files
        self._note_included(stat_cache)
        stat_cache.close(rules)
        self._stat_cache = stat_cache
        entries: dict[str, str] = {}
        for path, seen in files.items():
            if isinstance(seen.result, str):
                entries[path] = seen.result
            elif seen.result.reason != _VANISHED:
                skipped.append(seen.result)
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

    def _glance(self, path: str, real: str) -> tuple[Signature | None, str | Skipped, bool]:
        seen = self._files[path] = self._look(path, real)[0]
        return seen.signature, seen.result, seen.linked

    def _looked(self, path: str, real: str) -> _Seen:
        """The cached result of a file if it is current, else a new one."""
        seen = self._files.get(path)
        if seen is not None and seen.signature is not None:
            state = seen.state(real)
            if state is None and not seen.linked:
                return _Seen(None, Skipped(path, _VANISHED))
            if state is not None and seen.signature == signature(state) and self._holds(seen):
                return seen
        return self._look(path, real)[0]

    def _look(self, path: str, real: str) -> tuple[_Seen, bytes | Skipped]:
        """Read a file: the result for the cache, and its bytes as git stores them or why it is skipped."""
        began = time.time_ns()
        linked = os.path.islink(real)
        inside = self._in_repository(path)
        if linked:
            inside, reason = self._landing(path)
            if reason or is_private(inside) or self._is_ignored(inside):
                return _Seen(None, Skipped(path, reason or LINK_PRIVATE), True), Skipped(path, reason or LINK_PRIVATE)
            real = self._beneath(inside)
        found: os.stat_result | None = None
        try:
            raw, found = self._read(real, self._options.max_file_bytes)
            data: bytes | Skipped = raw if isinstance(raw, bytes) else Skipped(path, raw)
        except FileNotFoundError:
            self._young.discard(path)
            data = Skipped(path, LINK_NOWHERE if linked else _VANISHED)
        except OSError as error:
            data = Skipped(path, f"cannot be read: {error.strerror or error}")
        if linked and isinstance(data, Skipped) and os.path.isdir(real):
            data = Skipped(path, LINK_NOWHERE)
        if isinstance(data, bytes):
            if self._git is not None:
                data = self._cleaned(inside, data)
            if (unfit := refusal(data, self._options.max_file_bytes, self._options.limit_key)) is not None:
                data = Skipped(path, unfit)
        # The stat is from the open file after reading. A change meanwhile has a time stamp that is not trusted.
        trusted = found is not None and is_stable(found, began) and not self._read_each_time(path, found, began)
        state = signature(found) if found and trusted else None
        if isinstance(data, Skipped):
            return _Seen(state, data, linked), data
        blob = blob_id(data)
        files: Mapping[str, str] = {}
        fingerprint = ""
        if self._options.includes:
            files = self._named(path, blob, data)
            fingerprint = includes.fingerprint(files)
        elif includes.may_include(data):
            fingerprint = includes.NOT_FOLLOWED
        return _Seen(
            signature=state,
            result=staleness.identity(blob, fingerprint),
            linked=linked,
            files=files,
            target=inside if linked else "",
        ), data

    def _read_each_time(self, path: str, state: os.stat_result, began: int) -> bool:
        """Whether a file was written so recently that its signature is not reliable, and there are few such files."""
        self._due.pop(path, None)
        if written_back(state) < began or state.st_mtime_ns > began:  # a time in the future is useless
            self._young.discard(path)
            return False
        if path in self._young or len(self._young) < _MAX_REREAD_FILES:
            self._young.add(path)
            return True
        self._due[path] = written_back(state)
        return False

    def _read(self, real: str, limit: int) -> tuple[bytes | str, os.stat_result | None]:
        """A file's bytes, or why it was not read, and its stat after reading."""
        try:
            if not _NO_FOLLOW and os.path.islink(real):
                return LINK_NOWHERE, None
            descriptor = os.open(real, _OPEN)
        except OSError:
            if os.path.islink(real):
                return LINK_NOWHERE, None
            raise
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return "not a regular file", state
            if state.st_size > limit:
                return too_large(state.st_size, limit, self._options.limit_key), state
            data = os.read(descriptor, state.st_size + 1)
            while len(data) != state.st_size and len(data) <= limit and (more := os.read(descriptor, 1 << 20)):
                data += more
            return data, os.fstat(descriptor)
        finally:
            os.close(descriptor)

    # --- links, and files that pages include; their paths start from the repository's root ------------------------

    def _landing(self, path: str) -> tuple[str, str]:
        """Follow a link; see :func:`anvil.core.git.objects.landing`."""

        def target(each: str) -> str | None:
            real = self._beneath(each)
            return os.readlink(real).replace("\\", "/") if os.path.islink(real) else None

        inside, reason = landing(self._in_repository(path), target)
        if reason == LINK_ABSOLUTE:
            real = os.path.realpath(self._real(path))
            reason = reason if real == self._around or real.startswith(self._around + os.sep) else LINK_OUT
        return inside, reason

    def _beneath(self, path: str) -> str:
        return os.path.join(self._around, *path.split("/"))

    def _holds(self, seen: _Seen) -> bool:
        """Whether all included files of a page are unchanged."""
        return all(self._shared_id(path) == id_ for path, id_ in seen.files.items())

    def _shared_id(self, path: str) -> str:
        known = self._shared.get(path)
        if known is not None and known[0] is not None:
            try:
                if signature(os.stat(self._beneath(path))) == known[0]:
                    return known[1]
            except OSError:
                return ""
        return self._read_included(path)[0]

    def _included(self, path: str) -> includes.Found:
        id_, data = self._read_included(path)
        fit = id_ and refusal(data, includes.MAX_FILE_BYTES) is None
        return includes.Found(id_, data.decode("utf-8-sig") if fit else None)

    def _read_included(self, path: str) -> tuple[str, bytes]:
        """Blob id and bytes of a file that a page includes, both empty when there is none. It must lie in the
        repository, with no link on the way."""
        real, began = self._beneath(path), time.time_ns()
        self._shared.pop(path, None)
        try:
            if is_private(path) or not self._is_straight(os.path.dirname(real)) or self._is_ignored(path):
                return "", b""
            raw, state = self._read(real, self._options.max_file_bytes)
        except OSError:
            return "", b""
        if not isinstance(raw, bytes) or state is None:
            return "", b""
        data = raw if self._git is None else self._cleaned(path, raw)
        id_ = blob_id(data)
        self._shared[path] = (signature(state) if is_stable(state, began) else None, id_)
        return id_, data

    def _named(self, path: str, blob: str, data: bytes) -> Mapping[str, str]:
        """The files that a page includes: as an index knows them where nothing moved, else by reading the page."""
        indexed, fingerprint = staleness.parts(self._indexed.get(path, ""))
        if indexed == blob:
            files = includes.files(staleness.included(fingerprint))
            if files and all(self._shared_id(file) == id_ for file, id_ in files.items()):
                return files
        return self._expanded(path, data.decode("utf-8-sig")).files if includes.may_include(data) else {}

    def _is_straight(self, folder: str) -> bool:
        """Whether no link is on the way to a folder; asked once a walk."""
        known = self._straight.get(folder)
        if known is None:
            inside = folder != self._around and folder.startswith(self._around + os.sep)
            if inside and os.name != "nt":  # there, other things than links lead elsewhere
                known = not os.path.islink(folder) and self._is_straight(os.path.dirname(folder))
            else:
                known = os.path.realpath(folder) == folder
            self._straight[folder] = known
        return known

    def _expanded(self, path: str, text: str) -> includes.Expanded:
        return includes.expand(text, path, self.root_path, self._included)

    def _note_included(self, stat_cache: StatCache) -> None:
        """Tell the cache which further files the pages depend on."""
        for path in sorted({path for seen in self._files.values() for path in seen.files}):
            known, real = self._shared.get(path), self._beneath(path)
            if known is None and (refused := _Seen(None, "", True).state(real)) is not None:
                stat_cache.followed(real, signature(refused))
            elif known is None:
                stat_cache.absent(real)
            elif known[0] is None:
                stat_cache.doubt()
            else:
                stat_cache.followed(real, known[0])

    def _cleaned(self, inside: str, data: bytes) -> bytes:
        """The bytes as git stores them. ``inside``: the path from the repository's root."""
        assert self._git is not None
        try:
            return self._git.clean(inside, data)
        except GitError as error:
            self.problem = str(error)
            return data

    def _ignored(self, path: str) -> bool:
        return self._git is not None and self._is_ignored(self._in_repository(path))

    def _is_ignored(self, inside: str) -> bool:
        if self._git is None:
            return False
        try:
            return self._git.is_ignored(inside)
        except GitError as error:
            self.problem = str(error)
            return False

    def _time(self, path: str) -> str:
        head = self.commit()
        if head is not None and (self._times[0] != head or path not in self._times[1]):
            self.last_modified({*self._last.entries, path}, {}, None)  # one walk for all documents
        committed = self._times[1].get(path) if head is not None else None
        return committed or file_time(self._real(path), follow=True) or timestamp(0)

    def _leads_astray(self, path: str) -> bool:
        """Whether a folder on the path is a symlink. Documents of the last walk have none."""
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


def expanded_document(path: str, blob: str, size: int, expanded: includes.Expanded) -> Document:
    """A page with the text that it includes, without its time. ``size``: of its own file."""
    return Document(
        path=path,
        blob_id=blob,
        text=expanded.text,
        size=size,
        last_modified="",
        fingerprint=includes.fingerprint(expanded.files),
        inserted=expanded.inserted,
        missing=expanded.missing,
    )


def modified(
    repository: Repository,
    paths: Collection[str],
    prefix: str,
    links: Mapping[str, str],
    known: Mapping[str, tuple[str, str]],
    since: str | None,
    revision: str,
) -> dict[str, str]:
    """See :meth:`Repository.last_modified`. A link has the time of the file that it leads to. ``links``: path -> target
    from the repository's root."""
    own = [path for path in paths if path not in links]
    times = repository.last_modified(own, prefix, known, since, revision)
    linked = {path: links[path] for path in paths if path in links}
    if linked:
        before = {target: known[path] for path, target in linked.items() if path in known}
        target_times = repository.last_modified([*dict.fromkeys(linked.values())], ".", before, since, revision)
        times |= {path: target_times[target] for path, target in linked.items() if target in target_times}
    return times


def file_time(real: str, follow: bool = False) -> str | None:
    """A file's modification time, ``SOURCE_DATE_EPOCH`` at most if that is set; None without the file. ``follow``: of
    the file that a link leads to."""
    try:
        seconds = int((os.stat if follow else os.lstat)(real).st_mtime)
    except OSError:
        return None
    latest = os.environ.get("SOURCE_DATE_EPOCH")
    if latest:
        try:
            seconds = min(seconds, int(latest))
        except ValueError:
            raise SourceError(f"SOURCE_DATE_EPOCH is {latest!r}; it must be whole seconds since 1970.") from None
    return timestamp(seconds)


def _long(path: str) -> str:
    """On Windows, the form of a path without the limit of 260 characters and reserved names such as ``con.md``."""
    if os.name != "nt" or path.startswith("\\\\"):
        return path
    return "\\\\?\\" + path


def _no_folder(docs: Path) -> str:
    if docs.exists() and not docs.is_dir():
        return f"{docs} is a file, not a folder of documents. Name the folder that contains it."
    return f"There is no folder {docs}. Name the folder of your documents."
