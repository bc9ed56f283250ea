"""libgit2: opening a repository, git's index of its work tree, and translation of errors."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.errors import GitError, NotOwned
from anvil.git.objects import Entry, kind, start_of
from anvil.system import safe_files

if TYPE_CHECKING:
    import pygit2


def open_repository(folder: Path) -> pygit2.Repository:
    """The repository with this work tree. Raises :class:`GitError`."""
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

    try:
        # The caller has found the folder, so libgit2 must not search the folders above it.
        return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH)
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        reason = str(error)
        if "not owned by" in reason:
            trust = shlex.join(["git", "config", "--global", "--add", "safe.directory", folder.as_posix()])
            raise NotOwned(
                f"The repository {folder} belongs to another user, so git's rules forbid reading it. "
                f"If you trust it: {trust}",
                trust,
            ) from error
        if "object format" in reason:
            raise GitError(
                f"The repository {folder} uses SHA-256 object ids, which libgit2 cannot read. "
                "Its pages can still be indexed as files, without commit times."
            ) from error
        if "extensions.refstorage" in reason:
            raise GitError(
                f"The repository {folder} has its branches in a reftable, which libgit2 cannot read. To change "
                "that, run: git refs migrate --ref-format=files"
            ) from error
        raise GitError(
            f"The repository {folder} cannot be opened: {_reason(error).removeprefix(f'{folder}: ')}."
        ) from error


@contextlib.contextmanager
def failures(what: str) -> Iterator[None]:
    """Raise :class:`GitError` in place of libgit2's errors. ``what``: a clause such as "HEAD cannot be read"."""
    import pygit2

    try:
        yield
    except KeyError as error:  # libgit2's error for a missing object
        named = re.search(r"[0-9a-f]{40}", str(error))
        missing = f"object {named[0]} is missing" if named else "an object is missing"
        raise GitError(
            f"{what}: {missing} (a partial or damaged clone). To get all objects: git fetch --refetch --no-filter"
        ) from error
    except (pygit2.GitError, ValueError, OSError) as error:
        raise GitError(f"{what}: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    reason = str(error).rstrip(".")
    if "'link'" in reason:
        return "it is a split index, which libgit2 cannot read; run `git update-index --no-split-index`"
    if "'sdir'" in reason:
        return "it is a sparse index, which libgit2 cannot read; run `git sparse-checkout reapply --no-sparse-index`"
    return reason


_LOOPS_IN_IGNORE_RULE = re.compile(rb"^(?!#)[^\n]*[\v\f]", re.MULTILINE)
"""A line of a ``.gitignore`` that libgit2, at least up to 1.9.7, reads in an endless loop. For git it is a pattern."""

_MAX_RULES_BYTES = 100_000_000
"""libgit2 ignores larger files of rules."""


def ensure_readable(files: Iterable[Path]) -> None:
    """Raise :class:`GitError` if libgit2 cannot read one of these files with ignore rules. They may be missing."""
    for file in files:
        try:
            has_loop = _LOOPS_IN_IGNORE_RULE.search(safe_files.data(file, _MAX_RULES_BYTES))
        except OSError:  # it is missing, or libgit2 does not read it, either
            continue
        if has_loop:
            raise GitError(f"{file}: libgit2 cannot read a rule with a form feed or a vertical tab. Take it out.")


_EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_INTENT_TO_ADD, SKIP_WORKTREE = 1 << 13, 1 << 14
"""Bits of ``flags_extended`` in libgit2's ``git_index_entry``."""


class StagingArea:
    """Git's index of the work tree with the git folder ``git_dir``: the staged files. Not thread-safe."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._index: tuple[object, pygit2.Index] | None = None

    @property
    def file(self) -> Path:
        """The file of git's index: ``GIT_INDEX_FILE`` if git set it for this repository, else the repository's own.

        Git sets it for hooks of a partial commit (``git commit -a``, ``git commit FILE``).
        """
        own = self.git_dir / "index"
        variable = os.environ.get("GIT_INDEX_FILE")
        if not variable:
            return own
        other = Path(os.path.realpath(variable))
        git_dir = os.environ.get("GIT_DIR")
        is_foreign = Path(os.path.realpath(git_dir)) != self.git_dir if git_dir else (other.parent / "HEAD").exists()
        # In a submodule, a hook of the outer repository has the variable for the index of the outer repository.
        return own if is_foreign and other.parent != self.git_dir else other

    @property
    def temporary(self) -> Literal["all", "named"] | None:
        """``all`` for the temporary index of ``git commit -a``, ``named`` for that of ``git commit FILE``; None for the
        repository's own."""
        name = self.file.name
        if self.file.parent != self.git_dir or not name.endswith(".lock"):
            return None
        return "named" if name.startswith("next-index") else "all"

    def folder(self, prefix: str) -> dict[str, Entry]:
        """The staged files of a folder: path relative to ``prefix`` -> entry. The work tree is not read."""
        with failures("The git index cannot be read"):
            index = self.current()
            head = start_of(prefix)
            entries: dict[str, Entry] = {}
            for at in range(self._first(index, head), len(index)):
                item = index[at]
                path = os.fspath(item.path)
                if not path.startswith(head):  # the entries are sorted, so the folder ends here
                    break
                if (entry := _entry(index, item)) is not None:
                    entries[path[len(head) :]] = entry
            conflicts = _conflicts(index).items()
            return entries | {path[len(head) :]: entry for path, entry in conflicts if path.startswith(head)}

    def has_folder(self, folder: str) -> bool:
        """Whether a folder has staged files, by binary search."""
        with failures("The git index cannot be read"):
            index, head = self.current(), start_of(folder)
            at = self._first(index, head)
            return at < len(index) and os.fspath(index[at].path).startswith(head)

    def entries(self, paths: Collection[str]) -> dict[str, Entry | None]:
        """Path relative to the root -> staged entry; None if there is none."""
        entries: dict[str, Entry | None] = {}
        with failures("The git index cannot be read"):
            index = self.current()
            conflicts = _conflicts(index)
            for path in paths:
                entries[path] = conflicts.get(path)
                if path not in conflicts:
                    with contextlib.suppress(KeyError):
                        entries[path] = _entry(index, index[path])
            return entries

    def reload(self) -> None:
        """Read git's index again if it changed, for :meth:`holds` and :meth:`is_submodule`."""
        try:
            self.current()
        except GitError:
            self._index = None

    def holds(self, path: str) -> bool:
        """Whether a file, or a file in a folder (with a trailing ``/``), was staged at the last :meth:`reload`."""
        if self._index is None:
            return False
        index = self._index[1]
        if not path.endswith("/"):
            return path in index
        at = self._first(index, path)
        return at < len(index) and os.fspath(index[at].path).startswith(path)

    def is_submodule(self, folder: str) -> bool:
        """Whether a folder was a submodule at the last :meth:`reload`, even if its files are not checked out."""
        index = None if self._index is None else self._index[1]
        return index is not None and folder in index and kind(int(index[folder].mode)) == "submodule"

    def current(self) -> pygit2.Index:
        """The present index of git. Raises :class:`GitError`.

        It is opened as a file, because the entries of the repository object's index are not always in byte order.
        """
        file = self.file
        with failures("The git index cannot be read"):
            try:
                state = file.stat()
                signature: object = (file, state.st_mtime_ns, state.st_size, state.st_ino)
            except FileNotFoundError:  # nothing was ever staged here
                signature = (file, None)
            if self._index is None or self._index[0] != signature:
                self._index = (signature, _index_class()(file))
            return self._index[1]

    @staticmethod
    def _first(index: pygit2.Index, prefix: str) -> int:
        """The position of the first entry that is not before ``prefix``, in git's byte order."""
        return bisect_left(range(len(index)), os.fsencode(prefix), key=lambda at: os.fsencode(index[at].path))


def _conflicts(index: pygit2.Index) -> dict[str, Entry]:
    """Path -> entry of each file in conflict. Its id is that of one of the sides, and is not used."""
    sides = (side for conflict in index.conflicts or () for side in conflict)
    return {side.path: Entry(str(side.id), "conflict") for side in sides if side is not None}


def _entry(index: pygit2.Index, item: pygit2.IndexEntry) -> Entry | None:
    """The entry of a staged file; None after ``git add --intent-to-add``, because a commit leaves such a file out."""
    entry = Entry(str(item.id), kind(int(item.mode)))
    if entry.id == _EMPTY_BLOB:
        from pygit2.ffi import C  # pygit2's IndexEntry does not have the flags

        c_entry = C.git_index_get_bypath(index._index, os.fsencode(item.path), 0)
        if c_entry.flags_extended & _INTENT_TO_ADD:
            return None
    return entry


def _index_class() -> type[pygit2.Index]:
    """pygit2's Index without an error on stderr: the destructor of the original prints one after opening failed."""
    import pygit2

    class QuietIndex(pygit2.Index):
        def __del__(self) -> None:
            if hasattr(self, "_index"):
                super().__del__()

    return QuietIndex
