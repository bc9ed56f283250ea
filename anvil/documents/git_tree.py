"""The documents of the staged tree and of a commit, read from git."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from threading import RLock

from anvil.documents import document_source
from anvil.documents.document_source import (
    BAD_NAME,
    LINK_FOLDER,
    LINK_PRIVATE,
    POINTER_ALONE,
    SUBMODULE,
    PageDecoder,
    Selection,
)
from anvil.documents.working_tree import file_time, modified
from anvil.errors import SourceError
from anvil.formats.characters import is_plain_name, plain_name
from anvil.formats.data_formats import timestamp
from anvil.git.objects import LINK_NOWHERE, Entry, landing, start_of
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.text import includes
from anvil.values import Document, KnownTimes, Scan, Skipped


class _Tree:
    """The staged tree or the tree of a commit. Git knows the blob ids."""

    name: str
    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None

    def __init__(self, docs: Path, options: SourceOptions, revision: str | None) -> None:
        repository = Repository.discover(docs)
        if repository is None:
            raise SourceError(
                f"{docs} is not in a git repository with a work tree. Leave out --staged and --ref, or run `git init`; "
                "in a bare repository, make a work tree with `git worktree add`."
            )
        self._git = repository
        self._docs = docs
        self.root_path = repository.relative(docs)
        self._revision = None if revision is None else repository.resolve(revision)
        # The tree of a commit does not change, so it is read once. The staged tree is read at each scan.
        self._committed = None if self._revision is None else repository.tree(self._revision, self.root_path)
        self._options = options
        self._selection = Selection(options)
        self._decoder = PageDecoder(options, includes.Look(self.root_path, self._included))
        self._lock = RLock()
        self._refusals: dict[str, str | None] = {}
        """Blob id -> why it is no document; None if it is one. Never cleared, because a blob does not change."""
        self._entries: dict[str, str] | None = None
        self._links: dict[str, str] = {}
        """Path of a link -> its target from the repository's root."""
        self._entry_cache: dict[str, Entry | None] = {}
        """Path from the repository's root -> entry, for links and included files during one scan."""

    def _listing(self) -> dict[str, Entry]:
        """All entries, by path relative to the folder."""
        return self._git.staging.folder(self.root_path) if self._committed is None else self._committed

    def _look_up(self, paths: Collection[str]) -> dict[str, Entry | None]:
        return self._git.entries(paths, self._revision)

    def commit(self) -> str | None:
        with self._lock:
            return self._revision or self._git.head()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        with self._lock:
            before = indexed or self._entries or {}
            accepted = frozenset(document_source.parts(identity)[0] for identity in before.values())
            entries: dict[str, str] = {}
            skipped: list[Skipped] = []
            self._entry_cache.clear()  # the staged tree may have changed
            self._links.clear()
            included: dict[str, dict[str, str] | None] = {}
            if self._options.includes:
                included = {
                    path: includes.files(fingerprint) if (fingerprint := document_source.included(identity)) else {}
                    for path, identity in before.items()
                }
                # Together, because each look-up walks the trees from the root.
                files = sorted({file for by_page in included.values() for file in by_page or ()})
                self._entry_cache |= self._look_up(files)
            for path, entry in sorted(self._listing().items()):
                reason, blob = self._judge(path, entry, accepted)
                if reason is None:
                    entries[path] = self._identity(path, blob, before.get(path, ""), included.get(path))
                elif reason:
                    skipped.append(Skipped(plain_name(path), reason))
            self._entries = document_source.without_sources(entries)
            return Scan(self._entries, tuple(skipped))

    def _identity(self, path: str, blob: str, indexed: str, included: Mapping[str, str] | None) -> str:
        """The identity of a page: its blob id and the files that it includes.

        ``indexed`` is the identity in an index. ``included``: the included files that it names, with their blob ids;
        None if the index does not know them. If nothing of this changed, the page is not read.
        """
        indexed_blob, fingerprint = document_source.parts(indexed)
        of_includes = document_source.included(fingerprint)
        if not self._options.includes:
            is_same = of_includes in ("", includes.NOT_FOLLOWED)
        else:
            is_same = included is not None and all(self._blob(file) == id_ for file, id_ in included.items())
        if indexed_blob == blob and is_same:
            return document_source.identity(blob, of_includes)
        page = self._decoder.document(path, blob, self._git.read_blob(blob))
        return document_source.identity(blob, page.fingerprint)

    def _included(self, path: str) -> includes.IncludedFile:
        blob = self._blob(path)
        return self._decoder.included(blob, self._git.read_blob(blob) if blob else b"")

    def _blob(self, path: str) -> str:
        """The blob id of a file that a page may include, by its path from the repository's root; empty if none."""
        entry = self._at(path)
        return entry.id if entry is not None and entry.kind == "file" and not includes.is_private(path) else ""

    def _at(self, path: str) -> Entry | None:
        if path not in self._entry_cache:
            self._entry_cache |= self._look_up([path])
        return self._entry_cache[path]

    def read(self, path: str) -> Document | Skipped:
        with self._lock:
            if self._entries is None:
                self.scan()
            identity = (self._entries or {}).get(path)
            if identity is None:
                return Skipped(plain_name(path), f"not a document of the {self.name}")
            blob, _ = document_source.parts(identity)
            data = self._git.read_blob(blob)
            reason = self._refusals[blob] = self._decoder.refusal(data)
            if reason is not None:
                return Skipped(path, reason)
            return self._decoder.document(path, blob, data)

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        with self._lock:
            head = self.commit()
            times = modified(self._git, paths, self.root_path, self._links, known, since, head) if head else {}
            # A new staged page has no commit yet, so it has the time of its file. If there is no file, as in CI, it has
            # the time of HEAD, which is at least the same on each machine.
            for path in paths:
                if path not in times:
                    own = file_time(str(self._docs.joinpath(*path.split("/"))), follow=path in self._links)
                    times[path] = own or timestamp(self._git.time(head) if head else 0)
            return times

    def _judge(self, path: str, entry: Entry, accepted: frozenset[str]) -> tuple[str | None, str]:
        """The reason for skipping an entry, and its blob id. The reason is None for a document, and empty for a file
        that is not meant to be one. ``accepted``: ids of blobs that are documents in an index."""
        if not is_plain_name(path):
            return BAD_NAME, ""
        if entry.kind == "submodule":
            return (SUBMODULE if self._selection.enters(path) else ""), ""
        if not self._selection.wants(path):
            linked = self._landing(path)[0] if entry.kind == "symlink" and self._selection.enters(path) else ""
            return (LINK_FOLDER if linked and self._git.has_folder(linked, self._revision) else ""), ""
        if entry.kind == "symlink":
            target = self._target(path)
            if isinstance(target, str):
                return target, ""
            entry = target
        if entry.kind == "conflict":
            return "a merge conflict; resolve it and stage the result", ""
        if entry.id not in accepted and entry.id not in self._refusals:
            self._refusals[entry.id] = self._decoder.refusal(self._git.read_blob(entry.id))
        reason = self._refusals.get(entry.id)
        return ("" if reason == POINTER_ALONE else reason), entry.id

    def _landing(self, path: str) -> tuple[str, str]:
        """Follow a link in the folder; see :func:`anvil.git.objects.landing`."""
        return landing(start_of(self.root_path) + path, lambda each: self._git.link_target(self._at(each)))

    def _target(self, path: str) -> Entry | str:
        """The entry that a link leads to, or why it is not followed."""
        target, reason = self._landing(path)
        if reason:
            return reason
        if includes.is_private(target):
            return LINK_PRIVATE
        entry = self._at(target)
        if entry is None or entry.kind not in ("file", "conflict"):
            return LINK_NOWHERE
        self._links[path] = target
        return entry


class StagedTree(_Tree):
    """The staged files of a folder, a :class:`anvil.documents.document_source.DocumentSource`."""

    name = "staged tree"

    def __init__(self, docs: Path, options: SourceOptions = SourceOptions()) -> None:
        super().__init__(docs, options, None)
        # In a sparse checkout, a staged folder may be missing on disk.
        if not docs.is_dir() and not self._listing():
            raise SourceError(f"Nothing is staged under {docs}, and there is no such folder. Name the docs folder.")


class CommitTree(_Tree):
    """The files of a folder in a commit, a :class:`anvil.documents.document_source.DocumentSource`."""

    def __init__(self, docs: Path, revision: str, options: SourceOptions = SourceOptions()) -> None:
        super().__init__(docs, options, revision)
        self.name = f"commit {self._git.short(self.commit() or revision)}"
        if not self._listing():
            raise SourceError(f"The {self.name} has no folder {self.root_path}. Name another folder or commit.")
