"""Where documents come from: the working tree, the staged tree, or a commit, behind one protocol.

Whoever builds or compares an index takes any of them. Each promises the same documents for the same
content, so an index built from one is fresh when compared with another.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import RLock
from typing import Protocol

from anvil.config import SourceOptions
from anvil.errors import SourceError
from anvil.git import Repository, timestamp
from anvil.models import Document, Scan, Skipped
from anvil.selecting import BAD_NAME, SUBMODULE, Selection, is_unicode, printable, refusal
from anvil.sharding import Shard
from anvil.trees import Entry
from anvil.working_tree import WorkingTree, file_time

__all__ = ["DocumentSource", "SourceOptions", "commit_tree", "part", "staged_tree", "working_tree"]


class DocumentSource(Protocol):
    """A set of documents at one moment. Usable from several threads."""

    @property
    def name(self) -> str:
        """``working tree``, ``staged tree`` or ``commit 1a2b3c4``."""

    @property
    def root_path(self) -> str:
        """The documents' folder relative to the repository, POSIX; ``.`` when it is the same, or outside
        git."""

    @property
    def problem(self) -> str | None:
        """Why the repository's rules and times are not used although there is one; None when all is well."""

    @property
    def left_out(self) -> frozenset[str] | None:
        """Files that would be documents here but for the site they belong to, which leaves them out, by
        :func:`anvil.published.concealed`; None when the documents are the files themselves."""

    def commit(self) -> str | None:
        """The commit these documents belong to (40 hex digits), HEAD for trees not committed; None without
        one."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """Every document that ``read`` would give, by blob id, and what is left out.

        ``indexed`` (path -> blob id) is what an index built with the same options holds: those contents
        need no look to know that they are text, so a comparison reads only what differs.
        """

    def read(self, path: str) -> Document | Skipped:
        """One document, with the id of the bytes really read; Skipped when it cannot be one (any more).

        ``last_modified`` is what the last call of that name found, else one walk finds it for all documents.
        """

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Path -> ISO 8601 UTC time of the last commit that touched it, or of the file where git knows none.

        ``known``: path -> (blob id, time) as held by an index built at commit ``since``.
        """


def working_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """The files of a folder as they lie there. SourceError when there is no such folder."""
    return WorkingTree(docs, options or SourceOptions())


def staged_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """What would be committed now; the folder itself is never read. SourceError outside a repository."""
    return _StagedTree(docs, options or SourceOptions())


def commit_tree(docs: Path, revision: str, options: SourceOptions | None = None) -> DocumentSource:
    """The documents of a commit. SourceError outside a repository, or when there is no such commit or
    folder."""
    return _CommitTree(docs, revision, options or SourceOptions())


def part(source: DocumentSource, shard: Shard) -> DocumentSource:
    """The documents of a source that belong to a shard."""
    return _Part(source, shard)


class Over:
    """A :class:`DocumentSource` over another one: what a subclass does not say for itself, that one says."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """See :class:`DocumentSource`, as for all below."""
        return self._source.name

    @property
    def root_path(self) -> str:
        return self._source.root_path

    @property
    def problem(self) -> str | None:
        return self._source.problem

    @property
    def left_out(self) -> frozenset[str] | None:
        return self._source.left_out

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
            tuple(each for each in whole.skipped if holds(each.path)),
        )


class _Tree(ABC):
    """What the staged tree and commits share: entries whose blob ids git knows already."""

    problem: str | None = None
    left_out: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        repository = Repository.discover(docs)
        if repository is None:
            raise SourceError(
                f"{docs} is not in a git repository. Leave out --staged and --ref, or run `git init`."
            )
        self._git = repository
        self._docs = docs
        self.root_path = repository.relative(docs)
        self._options = options
        self._selection = Selection(options)
        self._lock = RLock()
        self._refused: dict[str, str | None] = {}
        self._entries: dict[str, str] | None = None
        self._times: dict[str, str] = {}

    @abstractmethod
    def _listing(self) -> dict[str, Entry]:
        """What is there, by path relative to the folder."""

    @abstractmethod
    def commit(self) -> str | None:
        """See :class:`DocumentSource`."""

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        with self._lock:
            seen = frozenset((indexed or {}).values())
            entries: dict[str, str] = {}
            skipped: list[Skipped] = []
            for path, entry in sorted(self._listing().items()):
                reason = self._reason(path, entry, seen)
                if reason is None:
                    entries[path] = entry.id
                elif reason:
                    skipped.append(Skipped(printable(path), reason))
            self._entries = entries
            return Scan(entries, tuple(skipped))

    def read(self, path: str) -> Document | Skipped:
        with self._lock:
            if self._entries is None:
                self.scan()
            blob = (self._entries or {}).get(path)
            if blob is None:
                return Skipped(printable(path), f"not a document of the {getattr(self, 'name', 'tree')}")
            data = self._git.read_blob(blob)
            reason = self._refused[blob] = refusal(data, self._options.max_file_bytes)
            if reason is not None:
                return Skipped(path, reason)
            if path not in self._times:
                self.last_modified(tuple(self._entries or ()), {}, None)
            return Document(path, blob, data.decode("utf-8-sig"), len(data), self._times[path])

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        with self._lock:
            head = self.commit()
            times = self._git.last_modified(paths, self.root_path, known, since, head) if head else {}
            for path in paths:
                if path not in times:
                    times[path] = self._uncommitted_time(path, head)
            self._times.update(times)
            return times

    def _uncommitted_time(self, path: str, head: str | None) -> str:
        own = file_time(str(self._docs.joinpath(*path.split("/"))))
        return own or timestamp(self._git.time(head) if head else 0)

    def _reason(self, path: str, entry: Entry, seen: frozenset[str]) -> str | None:
        """Why an entry is no document: None when it is one, empty when its name does not ask to be."""
        if not is_unicode(path):
            return BAD_NAME
        if entry.kind == "submodule":
            entered = self._selection.enters(path)
            return SUBMODULE if entered else ""
        if not self._selection.wants(path):
            return ""
        if entry.kind == "conflict":
            return "a merge conflict; resolve it and stage the result"
        if entry.kind == "symlink":
            target = self._git.read_blob(entry.id).decode("utf-8", "replace")
            landing = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if landing.startswith(("/", "../")) or landing == "..":
                return "a symlink that leads out of the documents' folder"
            return "a symlink; its target is indexed under its own name"
        if entry.id not in seen and entry.id not in self._refused:
            self._refused[entry.id] = refusal(self._git.read_blob(entry.id), self._options.max_file_bytes)
        return self._refused.get(entry.id)


class _StagedTree(_Tree):
    name = "staged tree"

    def __init__(self, docs: Path, options: SourceOptions) -> None:
        super().__init__(docs, options)
        if not docs.is_dir() and not self._listing():
            raise SourceError(
                f"Nothing is staged under {docs}, and there is no such folder. Name the docs folder."
            )

    def _listing(self) -> dict[str, Entry]:
        return self._git.staged(self.root_path)

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
            raise SourceError(
                f"The {self.name} has no folder {self.root_path}. Name another folder or commit."
            )

    def _listing(self) -> dict[str, Entry]:
        return self._all

    def commit(self) -> str | None:
        return self._commit
