"""Git's objects: blob ids; trees, with the folder at a path, its files, and the differences of two folders; and
commits, with the last one that changed each path.

The caller passes functions that read an object. Only folders with different ids are compared, so thousands of commits
are compared quickly.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heappop, heappush
from typing import Literal, NamedTuple

# Mode, name, and the 20 bytes of a SHA-1 id.
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_WHOLE_ENTRY = re.compile(rb"\d+ [^\0]+\0.{20}", re.DOTALL)
_ID_BYTES = 20
_FOLDER = b"40000"
LINK_OUT = "a symlink that leads out of the repository, or of the documents' folder where there is none"
LINK_ABSOLUTE = "an absolute symlink; make it relative, so that it leads to the same file in every clone"
LINK_NOWHERE = "a symlink that leads to no file, or in a circle"
_NOTHING = (b"", b"")
_MAX_CACHED_TREES = 512  # of a walk through the history: neighbouring commits share nearly all of their folders
_MAX_LINKS = 40  # as on Linux

Kind = Literal["file", "symlink", "submodule", "conflict"]


class Entry(NamedTuple):
    """An entry of a tree or of git's index: its object id (40 hex digits) and its kind."""

    id: str
    kind: Kind


def blob_id(data: bytes) -> str:
    """Git's id for these bytes, 40 hex digits."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def kind(mode: int) -> Kind:
    """The kind for git's file mode."""
    return "symlink" if mode == 0o120000 else "submodule" if mode == 0o160000 else "file"


def start_of(folder: str) -> str:
    """What the paths of all files in a folder (POSIX) begin with. The root is ``.`` or ``""``."""
    return "" if folder in ("", ".") else f"{folder}/"


def landing(path: str, target: Callable[[str], str | None]) -> tuple[str, str]:
    """Follow the links on a path (POSIX, from the root). Returns (path, "") or ("", reason).

    A path that leads out of the root, or in a circle, has a reason. ``target``: path -> text of a link, None for
    others.
    """
    done: list[str] = []  # names up to here, without links; what is still to go is in ``todo``
    todo = path.split("/")
    hops = 0
    while todo:
        name = todo.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            if not done:
                return "", LINK_OUT
            done.pop()
            continue
        done.append(name)
        link = target("/".join(done))
        if link is not None:
            hops += 1
            if hops > _MAX_LINKS:
                return "", LINK_NOWHERE
            if link.startswith("/") or link[1:2] == ":":  # a drive of Windows
                return "", LINK_ABSOLUTE
            done.pop()
            todo = link.split("/") + todo
    return ("/".join(done), "") if done else ("", LINK_NOWHERE)


class Trees:
    """Trees by id (40 hex digits), with a cache. ``read``: id -> bytes of a tree object. Bytes of names that are not
    UTF-8 become surrogate escapes."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        @lru_cache(_MAX_CACHED_TREES)
        def entries(tree: str) -> frozenset[bytes]:
            # Not taken apart: most are the same in the tree of the next commit, and folders may have thousands.
            return frozenset(_WHOLE_ENTRY.findall(read(tree)))

        @lru_cache(_MAX_CACHED_TREES)
        def children(tree: str) -> dict[bytes, tuple[bytes, bytes]]:
            """Name -> (mode, binary id) of the entries of a folder."""
            return {name: (mode, id_) for mode, name, id_ in _ENTRY.findall(read(tree))}

        self._entries, self._children = entries, children

    def folder(self, root: str, path: str) -> str | None:
        """The id of the folder at a path (POSIX, ``.`` or ``""`` for the root itself); None when there is none."""
        tree: str | None = root
        for name in start_of(path).encode("utf-8", "surrogateescape").split(b"/")[:-1]:
            mode, id_ = self._children(tree).get(name, _NOTHING) if tree else _NOTHING
            tree = id_.hex() if mode == _FOLDER else None
        return tree

    def entries(self, root: str, paths: Iterable[str]) -> dict[str, Entry | None]:
        """Path (POSIX) -> the entry there; None for a folder or a missing path."""
        entries: dict[str, Entry | None] = {}
        trees: dict[str, str | None] = {}
        for path in sorted(paths):  # those of a folder together, while its tree is in the cache
            folder, _, name = path.rpartition("/")
            if folder not in trees:
                trees[folder] = self.folder(root, folder)
            tree = trees[folder]
            entry = self._children(tree).get(name.encode("utf-8", "surrogateescape")) if tree else None
            mode, id_ = entry or _NOTHING
            entries[path] = None if mode in (_FOLDER, b"") else Entry(id_.hex(), kind(int(mode, 8)))
        return entries

    def files(self, tree: str) -> Iterator[tuple[str, Entry]]:
        """(path, entry) of all files below a folder, in any order."""
        for path, mode, id_ in self._differing(None, tree, b""):
            yield path.decode("utf-8", "surrogateescape"), Entry(id_.hex(), kind(int(mode, 8)))

    def changed(self, old: str | None, new: str | None) -> set[str]:
        """The paths in ``new`` that are not in ``old``, or have another content or mode there."""
        if new is None:
            return set()
        return {path.decode("utf-8", "surrogateescape") for path, _, _ in self._differing(old, new, b"")}

    def _differing(self, old: str | None, new: str, head: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        before = self._entries(old) if old else frozenset()
        after = self._entries(new)
        replaced: dict[bytes, str] | None = None  # mode and name of a folder -> its id before
        for entry in after - before:  # a folder with the same id has the same files, and is not entered
            begin, id_ = entry[:-_ID_BYTES], entry[-_ID_BYTES:]
            mode, _, name = begin[:-1].partition(b" ")
            if mode != _FOLDER:
                yield head + name, mode, id_
                continue
            if replaced is None:
                replaced = {gone[:-_ID_BYTES]: gone[-_ID_BYTES:].hex() for gone in before - after}
            yield from self._differing(replaced.get(begin), id_.hex(), head + name + b"/")


class Commit(NamedTuple):
    """``tree``: the id of the documents' folder, None without one. ``time``: seconds since 1970."""

    time: int
    parents: tuple[str, ...]
    tree: str | None


def last_touched(
    read: Callable[[str], Commit],
    changed: Callable[[str | None, str | None], set[str]],
    head: str,
    paths: Collection[str],
    known_times: Mapping[str, int],
    since: str | None,
    boundary: Collection[str],
) -> dict[str, int]:
    """Path -> commit time in seconds, for paths that all exist in ``head``, in one walk through the history.

    ``read``: commit id -> commit, with a cache; the last ones of a shallow clone have no parents. ``changed``: as of
    :meth:`Trees.changed`. The result is that of ``git log -1 -- path`` for every path. At a merge, a path follows the
    first parent with the same content. A commit changed a path when no parent has that content.

    ``known_times``: the result of an earlier walk from commit ``since``, for paths with the same content as then. A
    path that reaches ``since`` unchanged has that time. It is not used at other commits, because a path can have
    another history there. ``boundary``: the last commits of a shallow clone. They seem to change every path, so known
    times are used there too.
    """
    times: dict[str, int] = {}
    pending: dict[str, set[str]] = {}  # commit -> the paths that are as in it, and whose last change is not found yet
    newest_first: list[tuple[int, str]] = []

    def follow(commit: str, along: set[str]) -> None:
        waiting = pending.get(commit)
        if waiting is None:
            # Any order is correct. With the newest first, branches that join again are walked once.
            pending[commit] = along
            heappush(newest_first, (-read(commit).time, commit))
        else:
            waiting |= along

    if paths:
        follow(head, set(paths))
    while newest_first:
        name = heappop(newest_first)[1]
        left = pending.pop(name)
        commit = read(name)
        if name == since or name in boundary:
            times.update((path, known_times[path]) for path in left & known_times.keys())
            left -= known_times.keys()
        for parent in commit.parents:
            if not left:
                break
            before = read(parent).tree
            differing = left & changed(before, commit.tree) if before != commit.tree else set()
            left -= differing
            if left:
                follow(parent, left)
            left = differing
        times.update((path, commit.time) for path in left)  # no parent has them as they are here
    return times
