"""Sources of documents: the protocol, and the staged tree and commits.

All sources give the same documents for the same content, so an index that was built from one can be compared with
another.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Protocol

from anvil.backends.git.repository import Repository
from anvil.backends.sources.working_tree import WorkingTree, file_time, modified
from anvil.core import staleness
from anvil.core.config.schema import SourceOptions
from anvil.core.file_selection import (
    BAD_NAME,
    LINK_NOWHERE,
    LINK_PRIVATE,
    SUBMODULE,
    Selection,
    is_private,
    is_unicode,
    printable,
    refusal,
)
from anvil.core.git.objects import Entry, landing
from anvil.core.markdown import includes
from anvil.core.shards import Shard
from anvil.core.timestamps import timestamp
from anvil.errors import SourceError
from anvil.models.documents import Document, Scan, Skipped

__all__ = ["DocumentSource", "SourceOptions", "commit_tree", "part", "staged_tree", "working_tree"]


class DocumentSource(Protocol):
    """A set of documents. Thread-safe."""

    @property
    def name(self) -> str:
        """``working tree``, ``staged tree`` or ``commit 1a2b3c4``."""

    @property
    def root_path(self) -> str:
        """The documents' folder relative to the repository, POSIX; ``.`` for the root, and outside of git."""

    @property
    def problem(self) -> str | None:
        """Why the rules and times of the repository cannot be used; None without a problem."""

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        """Hashed paths of the files that the site leaves out, see :func:`anvil.backends.sources.site.hash_path`; None
        without a site."""

    def commit(self) -> str | None:
        """The commit of the documents (40 hex digits), HEAD for the working tree and the staged tree; None without
        one."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """All documents by blob id, and the files that are skipped.

        ``indexed``: path -> blob id in an index that was built with the same options. Files with these ids are not read
        again.
        """

    def read(self, path: str) -> Document | Skipped:
        """A document, with the id of the bytes that were read; Skipped when it is not a document any more.

        ``last_modified`` is from the last call of that method, else one walk finds it for all documents.
        """

    def text(self, path: str) -> Document | Skipped:
        """A document with its included text and without ``last_modified``, so no history is read."""

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Path -> ISO 8601 UTC time of the last commit that changed it, else of the file.

        ``known``: path -> (blob id, time) in an index that was built at commit ``since``.
        """


def working_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """The files of a folder. Raises :class:`SourceError` when there is no such folder."""
    return WorkingTree(docs, options or SourceOptions())


def staged_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """The staged files of a folder. Raises :class:`SourceError` outside a repository."""
    return _StagedTree(docs, options or SourceOptions())


def commit_tree(docs: Path, revision: str, options: SourceOptions | None = None) -> DocumentSource:
    """The documents of a commit. Raises :class:`SourceError` outside a repository, and without the commit or folder."""
    return _CommitTree(docs, revision, options or SourceOptions())


def part(source: DocumentSource, shard: Shard) -> DocumentSource:
    """The documents of a source that belong to a shard."""
    return _Part(source, shard)


class Over:
    """A :class:`DocumentSource` that passes each call to another one. Subclasses override some of them."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """See :class:`DocumentSource`, as for all below."""
        return self._source.name

    def text(self, path: str) -> Document | Skipped:
        return self._source.text(path)

    @property
    def root_path(self) -> str:
        return self._source.root_path

    @property
    def problem(self) -> str | None:
        return self._source.problem

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        return self._source.excluded_hashes

    def commit(self) -> str | None:
        return self._source.commit()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return self._source.scan(indexed)

    def read(self, path: str) -> Document | Skipped:
        return self._source.read(path)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return self._source.last_modified(paths, known, since)


class _Part(Over):
    """See :func:`part`."""

    def __init__(self, source: DocumentSource, shard: Shard) -> None:
        super().__init__(source)
        self._shard = shard

    @property
    def name(self) -> str:
        return f"{self._source.name}, shard {self._shard}"

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        whole = self._source.scan(indexed)
        holds = self._shard.holds
        return Scan(
            {path: blob for path, blob in whole.entries.items() if holds(path)},
            tuple(item for item in whole.skipped if holds(item.path)),
        )


class _Tree(ABC):
    """The base class of the staged tree and of commits, whose blob ids git has."""

    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        repository = Repository.discover(docs)
        if repository is None:
            raise SourceError(f"{docs} is not in a git repository. Leave out --staged and --ref, or run `git init`.")
        self._git = repository
        self._docs = docs
        self.root_path = repository.relative(docs)
        self._options = options
        self._selection = Selection(options)
        self._lock = RLock()
        self._refused: dict[str, str | None] = {}
        self._entries: dict[str, str] | None = None
        self._links: dict[str, str] = {}
        self._found: dict[str, Entry | None] = {}
        self._times: dict[str, str] = {}

    @abstractmethod
    def _listing(self) -> dict[str, Entry]:
        """All entries, by path relative to the folder."""

    @abstractmethod
    def _look_up(self, paths: Collection[str]) -> dict[str, Entry | None]:
        """The entries at paths from the repository's root."""

    @abstractmethod
    def commit(self) -> str | None:
        """See :class:`DocumentSource`."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        with self._lock:
            known = indexed or self._entries or {}
            seen = frozenset(staleness.parts(identity)[0] for identity in known.values())
            entries: dict[str, str] = {}
            skipped: list[Skipped] = []
            self._found.clear()
            self._links.clear()
            included: dict[str, dict[str, str] | None] = {}
            if self._options.includes:
                fingerprints = {path: staleness.included(identity) for path, identity in known.items()}
                included = {
                    path: includes.files(fingerprint) if fingerprint else {}
                    for path, fingerprint in fingerprints.items()
                }
                self._found |= self._look_up(sorted({file for files in included.values() for file in files or ()}))
            for path, entry in sorted(self._listing().items()):
                reason, blob = self._judged(path, entry, seen)
                if reason is None:
                    entries[path] = self._identity(path, blob, known.get(path, ""), included.get(path))
                elif reason:
                    skipped.append(Skipped(printable(path), reason))
            self._entries = entries
            return Scan(entries, tuple(skipped))

    def _identity(self, path: str, blob: str, indexed: str, included: Mapping[str, str] | None) -> str:
        """The identity of a page: its blob id and the files that it includes.

        ``indexed`` is the identity that an index holds, ``included`` the files that it names and their blob ids. When
        none of them changed, the page is not read. ``included`` is None when the index does not know them.
        """
        before, fingerprint = staleness.parts(indexed)
        known = staleness.included(fingerprint)
        if not self._options.includes:
            unmoved = known in ("", includes.NOT_FOLLOWED)
        else:
            unmoved = included is not None and all(self._blob(file) == id_ for file, id_ in included.items())
        if before == blob and unmoved:
            return staleness.identity(blob, known)
        data = self._git.read_blob(blob)
        if not includes.may_include(data):
            return blob
        if not self._options.includes:
            return staleness.identity(blob, includes.NOT_FOLLOWED)
        return staleness.identity(blob, includes.fingerprint(self._expanded(path, data.decode("utf-8-sig")).files))

    def _expanded(self, path: str, text: str) -> includes.Expanded:
        return includes.expand(text, path, self.root_path, self._included)

    def _included(self, path: str) -> includes.Found:
        blob = self._blob(path)
        data = self._git.read_blob(blob) if blob else b"\0"
        fit = refusal(data, includes.MAX_FILE_BYTES) is None
        return includes.Found(blob, data.decode("utf-8-sig") if fit else None)

    def _blob(self, path: str) -> str:
        """The blob id of a file that may be included, by its path from the repository's root; empty without one."""
        entry = self._at(path)
        return entry.id if entry is not None and entry.kind == "file" and not is_private(path) else ""

    def _at(self, path: str) -> Entry | None:
        if path not in self._found:
            self._found |= self._look_up([path])
        return self._found[path]

    def read(self, path: str) -> Document | Skipped:
        with self._lock:
            document = self.text(path)
            if isinstance(document, Skipped):
                return document
            if path not in self._times:
                self.last_modified(tuple(self._entries or ()), {}, None)
            return replace(document, last_modified=self._times[path])

    def text(self, path: str) -> Document | Skipped:
        with self._lock:
            if self._entries is None:
                self.scan()
            identity = (self._entries or {}).get(path)
            if identity is None:
                return Skipped(printable(path), f"not a document of the {getattr(self, 'name', 'tree')}")
            blob, _ = staleness.parts(identity)
            data = self._git.read_blob(blob)
            reason = self._refused[blob] = refusal(data, self._options.max_file_bytes)
            if reason is not None:
                return Skipped(path, reason)
            text = data.decode("utf-8-sig")
            if not self._options.includes or not includes.may_include(data):
                fingerprint = includes.NOT_FOLLOWED if includes.may_include(data) else ""
                return Document(
                    path=path, blob_id=blob, text=text, size=len(data), last_modified="", fingerprint=fingerprint
                )
            expanded = self._expanded(path, text)
            return Document(
                path=path,
                blob_id=blob,
                text=expanded.text,
                size=len(data),
                last_modified="",
                fingerprint=includes.fingerprint(expanded.files),
                inserted=expanded.inserted,
                missing=expanded.missing,
            )

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        with self._lock:
            head = self.commit()
            times = modified(self._git, paths, self.root_path, self._links, known, since, head) if head else {}
            for path in paths:
                if path not in times:
                    times[path] = self._uncommitted_time(path, head)
            self._times.update(times)
            return times

    def _uncommitted_time(self, path: str, head: str | None) -> str:
        own = file_time(str(self._docs.joinpath(*path.split("/"))), follow=path in self._links)
        return own or timestamp(self._git.time(head) if head else 0)

    def _judged(self, path: str, entry: Entry, seen: frozenset[str]) -> tuple[str | None, str]:
        """(reason, blob id) of an entry: None for a document, a reason for a skipped file, empty for other files."""
        if not is_unicode(path):
            return BAD_NAME, ""
        if entry.kind == "submodule":
            return (SUBMODULE if self._selection.enters(path) else ""), ""
        if not self._selection.wants(path):
            return "", ""
        if entry.kind == "symlink":
            followed = self._followed(path)
            if isinstance(followed, str):
                return followed, ""
            entry = followed
        if entry.kind == "conflict":
            return "a merge conflict; resolve it and stage the result", ""
        if entry.id not in seen and entry.id not in self._refused:
            self._refused[entry.id] = refusal(self._git.read_blob(entry.id), self._options.max_file_bytes)
        return self._refused.get(entry.id), entry.id

    def _followed(self, path: str) -> Entry | str:
        """The entry that a link leads to, or why it is not followed."""
        target, reason = landing(path if self.root_path == "." else f"{self.root_path}/{path}", self._link)
        if reason:
            return reason
        if is_private(target):
            return LINK_PRIVATE
        entry = self._at(target)
        if entry is None or entry.kind not in ("file", "conflict"):
            return LINK_NOWHERE
        self._links[path] = target
        return entry

    def _link(self, path: str) -> str | None:
        entry = self._at(path)
        if entry is None or entry.kind != "symlink":
            return None
        return self._git.read_blob(entry.id).decode("utf-8", "surrogateescape")


class _StagedTree(_Tree):
    name = "staged tree"

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        super().__init__(docs, options)
        if not docs.is_dir() and not self._listing():
            raise SourceError(f"Nothing is staged under {docs}, and there is no such folder. Name the docs folder.")

    def _listing(self) -> dict[str, Entry]:
        return self._git.staged(self.root_path)

    def _look_up(self, paths: Collection[str]) -> dict[str, Entry | None]:
        return self._git.entries(paths)

    def commit(self) -> str | None:
        with self._lock:
            return self._git.head()


class _CommitTree(_Tree):
    def __init__(self, docs: Path, revision: str, options: SourceOptions) -> None:
        super().__init__(docs, options)
        self._commit = self._git.resolve(revision)
        self.name = f"commit {self._git.short(self._commit)}"
        self._all = self._git.tree(self._commit, self.root_path)
        if not self._all:
            raise SourceError(f"The {self.name} has no folder {self.root_path}. Name another folder or commit.")

    def _listing(self) -> dict[str, Entry]:
        return self._all

    def _look_up(self, paths: Collection[str]) -> dict[str, Entry | None]:
        return self._git.entries(paths, self._commit)

    def commit(self) -> str | None:
        return self._commit


PAGE_ENDINGS = (".md", ".mdx", ".markdown")
MAX_SEARCHED_ENTRIES = 2000
"""Limit of :func:`advice`."""


def advice(missing: Path) -> str:
    """A message for a missing documentation folder, with the names of folders near it that have Markdown."""
    around = next((folder for folder in missing.absolute().parents if folder.is_dir()), Path.cwd())
    near = [str(around / name) for name in _with_pages(around)[:4]]
    names = f"{', '.join(near[:-1])}{' and ' if near[1:] else ''}{near[-1]}" if near else ""
    hold = f": {names} {'hold' if near[1:] else 'holds'} Markdown" if names else ""
    return f"Name the documentation folder with --docs{hold}."


def _with_pages(around: Path) -> list[str]:
    """Names of the folders in ``around`` with Markdown in them or in their subfolders."""
    left = MAX_SEARCHED_ENTRIES
    names_with_pages: list[str] = []
    for name, folder in sorted(_folders(around)):
        inside = [folder, *(subfolder for _, subfolder in sorted(_folders(folder)))]
        for subfolder in inside:
            with contextlib.suppress(OSError), os.scandir(subfolder) as entries:
                names = [entry.name for entry in itertools.islice(entries, left)]
                left -= len(names)
                if any(other.lower().endswith(PAGE_ENDINGS) for other in names):
                    names_with_pages.append(name)
                    break
        if left <= 0:
            break
    return names_with_pages


def _folders(around: Path) -> list[tuple[str, Path]]:
    """(name, path) of folders, without hidden ones, links and installed packages."""
    with contextlib.suppress(OSError), os.scandir(around) as entries:
        return [
            (entry.name, Path(entry.path))
            for entry in itertools.islice(entries, MAX_SEARCHED_ENTRIES)
            if not entry.name.startswith(".")
            and entry.name not in ("node_modules", "venv")
            and entry.is_dir(follow_symlinks=False)
        ]
    return []
