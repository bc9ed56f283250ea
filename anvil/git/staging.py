"""Git's index of a work tree: the files that are staged for the next commit."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.errors import GitError
from anvil.git.libgit2 import failures, index_class
from anvil.git.objects import Entry, kind, start_of

if TYPE_CHECKING:
    import pygit2


class StagingArea:
    """The index of the work tree whose git folder is ``git_dir``. Not thread-safe."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._index: tuple[object, pygit2.Index] | None = None

    @property
    def file(self) -> Path:
        """Git's index: ``GIT_INDEX_FILE`` if git set it for this repository, as for hooks of a partial commit
        (``git commit -a``, ``git commit FILE``), else the repository's own."""
        own = self.git_dir / "index"
        named = os.environ.get("GIT_INDEX_FILE")
        if not named:
            return own
        other = Path(os.path.realpath(named))
        elsewhere = os.environ.get("GIT_DIR")
        foreign = Path(os.path.realpath(elsewhere)) != self.git_dir if elsewhere else (other.parent / "HEAD").exists()
        # A hook of the outer repository of a submodule passes its own index, which is not that of the submodule.
        return own if foreign and other.parent != self.git_dir else other

    @property
    def temporary(self) -> Literal["all", "named"] | None:
        """The kind of a temporary index: ``all`` for ``git commit -a``, ``named`` for ``git commit FILE``; None for the
        repository's own index."""
        name = self.file.name
        if self.file.parent != self.git_dir or not name.endswith(".lock"):
            return None
        return "named" if name.startswith("next-index") else "all"

    def folder(self, prefix: str) -> dict[str, Entry]:
        """The staged files of a folder: path relative to ``prefix`` -> entry. The work tree is not read."""
        with failures("The git index cannot be read"):
            index = self._current()
            head = start_of(prefix)
            entries: dict[str, Entry] = {}
            for at in range(self._first(index, head), len(index)):
                item = index[at]
                path = os.fspath(item.path)
                if not path.startswith(head):
                    break
                entries[path[len(head) :]] = Entry(str(item.id), kind(int(item.mode)))
            for sides in index.conflicts or ():
                for side in sides:
                    if side is not None and side.path.startswith(head):
                        entries[side.path[len(head) :]] = Entry(str(side.id), "conflict")
            return entries

    def entries(self, paths: Collection[str]) -> dict[str, Entry | None]:
        """The staged entries at paths relative to the root; None where there is none."""
        entries: dict[str, Entry | None] = {}
        with failures("The git index cannot be read"):
            index = self._current()
            sides = [side for conflict in index.conflicts or () for side in conflict if side is not None]
            conflicts = {side.path: Entry(str(side.id), "conflict") for side in reversed(sides)}
            for path in paths:
                entries[path] = conflicts.get(path)
                if path not in conflicts:
                    with contextlib.suppress(KeyError):
                        item = index[path]
                        entries[path] = Entry(str(item.id), kind(int(item.mode)))
            return entries

    def reload(self) -> None:
        """Read git's index again if it changed. ``holds`` uses the one that was read last, because it is called
        often."""
        try:
            with failures("The git index cannot be read"):
                self._current()
        except GitError:
            self._index = None

    def holds(self, path: str) -> bool:
        """Whether a file, or one in a folder (with a trailing ``/``), was in the index at the last :meth:`reload`."""
        if self._index is None:
            return False
        index = self._index[1]
        if not path.endswith("/"):
            return path in index
        at = self._first(index, path)
        return at < len(index) and os.fspath(index[at].path).startswith(path)

    def _current(self) -> pygit2.Index:
        """Git's index, opened as a file: unlike the repository's own object, its entries are always in byte order."""
        file = self.file
        try:
            stat = file.stat()
            signature: object = (file, stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            signature = (file, None)
        if self._index is None or self._index[0] != signature:
            self._index = (signature, index_class()(file))
        return self._index[1]

    @staticmethod
    def _first(index: pygit2.Index, prefix: str) -> int:
        """The position of the first entry from ``prefix`` on, in git's byte order."""
        return bisect_left(range(len(index)), os.fsencode(prefix), key=lambda at: os.fsencode(index[at].path))
