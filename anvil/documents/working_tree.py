"""The documents of a folder on disk: listing, reading and skipping files, and the cache by which edits are noticed.

A second scan costs one ``stat`` for each page. A signature is trusted only if the file was changed long enough before
it was hashed, as git does for its own index. So the result depends on content only."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import NamedTuple

from anvil.documents import document_source
from anvil.documents.document_source import BAD_NAME, LINK_FOLDER, LINK_PRIVATE, POINTER_ALONE, SUBMODULE, Selection
from anvil.documents.folder_advice import no_folder
from anvil.documents.repository_files import (
    RepositoryFiles,
    Signature,
    StatCache,
    is_stable,
    long_path,
    mark,
    signature,
    written_back,
)
from anvil.errors import GitError, SourceError
from anvil.formats.characters import is_plain_name, plain_name
from anvil.formats.data_formats import timestamp
from anvil.git.objects import LINK_NOWHERE, blob_id, start_of
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.text import includes
from anvil.values import Document, KnownTimes, Scan, Skipped

_RULES = (".gitignore", ".gitattributes")
_CONTENT_RULES = (".gitattributes", "attributes", "config")
"""Endings of the names of files by which git changes the bytes of a file when it stores it, such as line endings."""
_PRECOMPOSES = sys.platform == "darwin"

_VANISHED = "vanished"

_MAX_REREAD_FILES = 64
"""So many recently written files are read at each scan. Further ones are read once more when they are old enough."""
_CLOCK_STEP_NS = 1_000_000_000
"""If the clock goes back by more, the cache is dropped: a file could get a time stamp that it had before."""


class _CachedFile(NamedTuple):
    """A file as it was read: its identity (:func:`anvil.documents.document_source.identity`), or why it is skipped.

    - ``signature``: None if it cannot be trusted. For a link (``linked``) it is that of the target.
    - ``files``: included files and their blob ids.
    - ``target``: the target of a link, from the repository's root.
    """

    signature: Signature | None
    result: str | Skipped
    linked: bool = False
    files: Mapping[str, str] = {}
    target: str = ""


class _Committed(NamedTuple):
    """A file in a commit: its blob id, and the time of the last commit that changed it; both are empty for an untracked
    file. ``target``: see :class:`_CachedFile`."""

    blob: str = ""
    time: str = ""
    target: str = ""


class WorkingTree:
    """The documents of a folder on disk, a :class:`anvil.documents.document_source.DocumentSource`."""

    name = "working tree"
    excluded_hashes: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions = SourceOptions()) -> None:
        self._docs = docs
        self._absolute = docs.absolute()  # the working folder of the process may change
        self._options = options
        self._selection = Selection(options)
        self._lock = RLock()
        folder = os.path.realpath(docs)
        if not os.path.isdir(long_path(folder)):
            raise SourceError(no_folder(docs))
        self._reset(folder)

    def _reset(self, folder: str) -> None:
        """Start with an empty cache. ``folder``: the documents' folder, as a path without links."""
        self._folder = Path(folder)
        self._root = long_path(folder)
        self._repo_files = RepositoryFiles(self._folder, self._options)
        git = self._repo_files.git
        self.root_path = self._repo_files.root_path
        self._decoder = self._repo_files.decoder
        self._composes = _PRECOMPOSES and git is not None and git.composes_names
        self._files: dict[str, _CachedFile] = {}
        self._indexed: Mapping[str, str] = {}
        self._recent: set[str] = set()
        """Files that were written so recently that each scan reads them; see :data:`_MAX_REREAD_FILES`."""
        self._reread_at: dict[str, int] = {}
        """Further recently written files -> when they are read once more, in nanoseconds since 1970."""
        self._admitted: dict[str, bool] = {}
        """Path -> result of :meth:`_admits`."""
        self._rules: dict[str, object] | None = None
        """Ignore and attribute files -> their marks; None before the first walk."""
        self._stat_cache: StatCache | None = None
        self._last = Scan({})
        self._times: tuple[str | None, dict[str, _Committed]] = (None, {})
        """A commit, and its files whose times were looked up."""
        self._clock_ns = _clock_ns()

    @property
    def problem(self) -> str | None:
        return self._repo_files.problem

    def commit(self) -> str | None:
        """The commit of HEAD; None outside a repository, before the first commit, and if HEAD cannot be read."""
        with self._lock:
            try:
                return None if self._repo_files.git is None else self._repo_files.git.head()
            except GitError as error:
                self._repo_files.problem = str(error)
                return None

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """All documents and their identities; the same object as last time if nothing changed. Of ``indexed``, only the
        names of included files are used."""
        with self._lock:
            self._indexed = indexed or {}
            folder = os.path.realpath(self._absolute)
            clock_ns = _clock_ns()
            if folder != str(self._folder) or clock_ns < self._clock_ns - _CLOCK_STEP_NS:
                self._reset(folder)  # a deployment changed a link on the path, or the clock was set back
            self._clock_ns = max(self._clock_ns, clock_ns)
            if due := [path for path, time_ns in self._reread_at.items() if time_ns <= time.time_ns()]:
                self._stat_cache = None
                for path in due:
                    del self._reread_at[path]
                    self._files.pop(path, None)
            if self._stat_cache is not None and self._stat_cache.is_current(self._reread):
                return self._last
            before = self._rules
            entries, skipped, self._rules = self._walk(self._files)
            if before is not None and self._rules != before:
                # The rules for names or line endings changed. The walk has found out only now, so it is repeated.
                changed = [file for file, _ in before.items() ^ self._rules.items()]
                self._admitted.clear()
                self._repo_files.reopen()
                if any(file.endswith(_CONTENT_RULES) for file in changed):
                    self._files.clear()
                entries, skipped, self._rules = self._walk({})
            entries = document_source.without_sources(entries)
            if entries != self._last.entries or skipped != list(self._last.skipped):
                self._last = Scan(dict(sorted(entries.items())), tuple(skipped))
            return self._last

    def read(self, path: str) -> Document | Skipped:
        with self._lock:
            # The path may come from a client of a server.
            if not self._selection.wants(path) or any(part in ("", ".", "..") for part in path.split("/")):
                return Skipped(plain_name(path), "not a document of this folder")
            folder = os.path.dirname(self._real(path))
            # The last walk has followed no link, so its pages need no check.
            if path not in self._last.entries and os.path.realpath(folder) != folder:
                return Skipped(plain_name(path), "it is reached through a symlink; links are not followed")
            self._repo_files.forget_links()
            cached, data = self._read_file(path, self._real(path))
            if isinstance(data, Skipped) or isinstance(cached.result, Skipped):
                return Skipped(path, data.reason if isinstance(data, Skipped) else "")
            page = self._decoder.document(path, document_source.parts(cached.result)[0], data)
            # Included files can have changed since the scan. The page has their new text.
            result = document_source.identity(page.blob_id, page.fingerprint)
            self._files[path] = cached._replace(result=result, files=includes.files(page.fingerprint) or {})
            return page

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        """Path -> time of the page's last commit; of the file if it differs from HEAD. Missing files are left out."""
        with self._lock:
            head = self.commit()
            if self._times[0] != head:
                self._times = (head, {})
            links = {path: cached.target for path, cached in self._files.items() if cached.target}
            committed = self._times[1]
            is_readable = self._repo_files.problem is None  # else the repository is tried again

            def unknown(candidates: Iterable[str]) -> list[str]:
                return [
                    path
                    for path in candidates
                    if not is_readable or path not in committed or committed[path].target != links.get(path, "")
                ]

            # One walk over the history for all documents: a server reads pages a few at a time.
            new = unknown(dict.fromkeys((*paths, *self._last.entries))) if unknown(paths) else []
            times: dict[str, str] = {}
            blobs: dict[str, str] = {}
            if (git := self._repo_files.git) is not None and head is not None and new:
                try:
                    times = modified(git, new, self.root_path, links, known, since, head)
                    in_git = {path: links.get(path) or self._in_repository(path) for path in times}
                    entries = git.entries(list(in_git.values()), head)
                    blobs = {path: entry.id for path, at in in_git.items() if (entry := entries[at])}
                except GitError as error:
                    self._repo_files.problem = str(error)
            for path in new:
                committed[path] = _Committed(blobs.get(path, ""), times.get(path, ""), links.get(path, ""))
            path_times = ((path, self._time_in(path, committed[path])) for path in paths)
            return {path: time for path, time in path_times if time is not None}

    # --- inner -------------------------------------------------------------------------------------

    def _walk(self, chosen: Mapping[str, _CachedFile]) -> tuple[dict[str, str], list[Skipped], dict[str, object]]:
        """Entries, skipped files, and marks of rule files. ``chosen``: files that were documents by the same rules."""
        self._repo_files.forget_links()
        git = self._repo_files.git
        if git is not None:
            git.reload()
        rule_files = [] if git is None else [git.staging.file, *git.rule_files(self.root_path)]
        rules = {file: mark(file) for file in map(str, rule_files)}
        skipped: list[Skipped] = []
        files: dict[str, _CachedFile] = {}
        stat_cache, self._stat_cache = StatCache(), None
        folders: list[tuple[str, frozenset[tuple[int, int]]]] = [("", frozenset())]
        while folders:
            folder, above = folders.pop()
            items, itself = self._listed(folder, above, skipped, stat_cache)
            head = folder + "/" if folder else ""
            base = self._real(folder) + os.sep
            for item in items:
                name = item.name
                path = head + (unicodedata.normalize("NFC", name) if self._composes else name)
                cached = chosen.get(path)
                if cached is not None and self._is_current(cached, base + name):
                    files[path] = cached
                    stat_cache.file(path, base + name, *cached[:3])
                elif not is_plain_name(name):
                    skipped.append(Skipped(plain_name(path), BAD_NAME))
                elif item.is_dir(follow_symlinks=False):
                    if self._admits(f"{path}/"):
                        folders.append((path, above | {itself}))
                elif self._admits(path):
                    if (cached := self._files.get(path)) is None or not self._is_current(cached, base + name):
                        cached = self._read_file(path, base + name)[0]
                    files[path] = cached
                    stat_cache.file(path, base + name, *files[path][:3])
                elif name in _RULES:
                    rules[base + name] = mark(base + name)
                elif item.is_symlink() and os.path.isdir(base + name) and self._admits(f"{path}/"):
                    reason = self._repo_files.landing(self._in_repository(path))[1]
                    skipped.append(Skipped(path, reason or LINK_FOLDER))
        self._files = files
        self._repo_files.note_included(sorted({path for cached in files.values() for path in cached.files}), stat_cache)
        stat_cache.close(rules)
        self._stat_cache = stat_cache
        entries: dict[str, str] = {}
        for path, cached in files.items():
            if isinstance(cached.result, str):
                entries[path] = cached.result
            elif cached.result.reason not in (_VANISHED, POINTER_ALONE):
                skipped.append(cached.result)
        return entries, sorted(skipped, key=lambda item: item.path), rules

    def _listed(
        self, folder: str, above: frozenset[tuple[int, int]], skipped: list[Skipped], stat_cache: StatCache
    ) -> tuple[list[os.DirEntry[str]], tuple[int, int]]:
        """The items of a folder, and its device and inode. There are no items if the folder is not entered. ``above``:
        device and inode of the folders above it."""
        base = self._real(folder)
        began = time.time_ns()
        try:
            state = os.stat(base)
            with os.scandir(base) as listing:
                items = list(listing)
            stat_cache.folder(base, items, state, began)
        except OSError as error:
            if not folder:
                raise SourceError(no_folder(self._docs)) from error
            if not isinstance(error, FileNotFoundError):  # else the folder was removed since it was listed
                skipped.append(Skipped(folder, f"the folder cannot be listed: {error.strerror}"))
                stat_cache.doubt()  # its permissions can change without a change of its signature
            return [], (0, 0)
        itself = (state.st_dev, state.st_ino)
        if itself in above:  # such as by a bind mount, which is no link
            skipped.append(Skipped(folder, "a loop: the folder is inside itself"))
        elif (
            folder
            and (git := self._repo_files.git) is not None
            and (os.path.lexists(os.path.join(base, ".git")) or git.staging.is_submodule(self._in_repository(folder)))
        ):
            skipped.append(Skipped(folder, SUBMODULE))
        else:
            return items, itself
        return [], itself

    def _admits(self, path: str) -> bool:
        """Whether a file can be a page by its name, or a folder (with a slash at its end) can have pages."""
        if path not in self._admitted:
            selects = self._selection.enters if path.endswith("/") else self._selection.wants
            is_ignored = self._repo_files.is_ignored
            self._admitted[path] = selects(path.rstrip("/")) and not is_ignored(self._in_repository(path))
        return self._admitted[path]

    def _reread(self, path: str, real: str) -> tuple[Signature | None, str | Skipped, bool]:
        cached = self._files[path] = self._read_file(path, real)[0]
        return cached.signature, cached.result, cached.linked

    def _is_current(self, cached: _CachedFile, real: str) -> bool:
        """Whether a file and its included files are unchanged since they were read."""
        try:
            state = os.stat(real) if cached.linked else os.lstat(real)
        except OSError:
            return False
        return cached.signature == signature(state) and self._are_unchanged(cached.files)

    def _read_file(self, path: str, real: str) -> tuple[_CachedFile, bytes | Skipped]:
        """Read a file. Returns the result for the cache, and its bytes as git stores them or why it is skipped."""
        began = time.time_ns()
        linked = os.path.islink(real)
        inside = self._in_repository(path)
        if linked:
            inside, reason = self._repo_files.landing(inside)
            if reason or includes.is_private(inside) or self._repo_files.is_ignored(inside):
                skipped = Skipped(path, reason or LINK_PRIVATE)
                return _CachedFile(None, skipped, True), skipped
            real = self._repo_files.real(inside)
        stat_after: os.stat_result | None = None
        try:
            raw, stat_after = self._repo_files.read(real)
            data: bytes | Skipped = raw if isinstance(raw, bytes) else Skipped(path, raw)
        except FileNotFoundError:
            self._recent.discard(path)
            data = Skipped(path, LINK_NOWHERE if linked else _VANISHED)
        except OSError as error:
            data = Skipped(path, f"cannot be read: {error.strerror or error}")
        if linked and isinstance(data, Skipped) and os.path.isdir(real):
            data = Skipped(path, LINK_NOWHERE)
        if isinstance(data, bytes):
            data = self._repo_files.clean(inside, data)
            if (refusal := self._decoder.refusal(data)) is not None:
                data = Skipped(path, refusal)
        # The stat was taken from the open file after reading. After a change meanwhile, its time is too recent.
        state = None
        if stat_after and is_stable(stat_after, began) and not self._read_each_time(path, stat_after, began):
            state = signature(stat_after)
        if isinstance(data, Skipped):
            return _CachedFile(state, data, linked), data
        blob = blob_id(data)
        fingerprint = self._fingerprint(path, blob, data)
        result, files = document_source.identity(blob, fingerprint), includes.files(fingerprint) or {}
        return _CachedFile(state, result, linked, files, inside if linked else ""), data

    def _read_each_time(self, path: str, state: os.stat_result, began: int) -> bool:
        """Whether a file was written so recently that each scan must read it. Only a few files are treated so."""
        self._reread_at.pop(path, None)
        if written_back(state) < began or state.st_mtime_ns > began:  # a time in the future would never be old enough
            self._recent.discard(path)
            return False
        if path in self._recent or len(self._recent) < _MAX_REREAD_FILES:
            self._recent.add(path)
            return True
        self._reread_at[path] = written_back(state)
        return False

    def _are_unchanged(self, files: Mapping[str, str]) -> bool:
        """Whether included files still have these blob ids. ``files``: path -> blob id."""
        return all(self._repo_files.included_id(path) == id_ for path, id_ in files.items())

    def _fingerprint(self, path: str, blob: str, data: bytes) -> str:
        """The fingerprint of the files that a page includes. If nothing changed since it was indexed, it is taken from
        there, and the page is not searched for includes."""
        indexed, fingerprint = document_source.parts(self._indexed.get(path, ""))
        if indexed == blob and self._options.includes:
            of_includes = document_source.included(fingerprint)
            files = includes.files(of_includes) if of_includes else {}
            if files is not None and self._are_unchanged(files):
                return of_includes
        return self._decoder.document(path, blob, data).fingerprint

    def _time_in(self, path: str, committed: _Committed) -> str | None:
        """The time of the last commit that changed a file, or of the file if edited since; None without a file."""
        if committed.time and not self._is_edited(path, committed.blob):
            return committed.time
        return file_time(self._real(path), follow=True) or committed.time or None

    def _is_edited(self, path: str, committed: str) -> bool:
        """Whether a file differs from the blob ``committed``; False if that is not known."""
        cached = self._files.get(path) or self._read_file(path, self._real(path))[0]
        if not isinstance(cached.result, str) or document_source.parts(cached.result)[0] == committed:
            return False
        git = self._repo_files.git
        try:  # external filters, such as that of LFS, are not run, so the bytes that git stores are not known
            return git is not None and git.attribute(cached.target or self._in_repository(path), "filter") is None
        except GitError as error:
            self._repo_files.problem = str(error)
            return False

    def _in_repository(self, path: str) -> str:
        return start_of(self.root_path) + path

    def _real(self, path: str) -> str:
        return os.path.join(self._root, *path.split("/")) if path else self._root


def _clock_ns() -> int:
    """The system's clock relative to the monotonic clock. It changes only when somebody sets the system's clock."""
    return time.time_ns() - time.monotonic_ns()


def modified(
    repository: Repository,
    paths: Collection[str],
    prefix: str,
    links: Mapping[str, str],
    known: KnownTimes,
    since: str | None,
    revision: str,
) -> dict[str, str]:
    """The times of :meth:`Repository.last_modified`. A link has the time of its target. ``links``: path -> target from
    the repository's root."""
    own = [path for path in paths if path not in links]
    times = repository.last_modified(own, prefix, known, since, revision)
    linked = {path: links[path] for path in paths if path in links}
    if linked:
        before = {target: known[path] for path, target in linked.items() if path in known}
        target_times = repository.last_modified([*dict.fromkeys(linked.values())], ".", before, since, revision)
        times |= {path: target_times[target] for path, target in linked.items() if target in target_times}
    return times


def file_time(real: str, follow: bool = False) -> str | None:
    """A file's modification time, but not later than ``SOURCE_DATE_EPOCH`` if that is set; None without a file.
    ``follow``: the time of a link's target."""
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
