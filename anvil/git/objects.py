"""Git objects: blob ids, links, trees and their differences, and the last commit that changed each path.

The caller passes functions that read objects. Only folders with different ids are compared, so thousands of commits are
compared quickly.
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
_MAX_CACHED_TREES = 512
"""Trees kept during a walk through the history: neighbouring commits share nearly all of their folders."""
_MAX_LINKS = 40
"""The limit of links on one path, as on Linux."""

Kind = Literal["file", "symlink", "submodule", "conflict"]


class Entry(NamedTuple):
    """An entry of a tree or of git's index: its object id (40 hex digits) and its kind."""

    id: str
    kind: Kind


def blob_id(data: bytes) -> str:
    """Git's blob id of these bytes, 40 hex digits."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def kind(mode: int) -> Kind:
    """The kind of an entry with this file mode of git."""
    return "symlink" if mode == 0o120000 else "submodule" if mode == 0o160000 else "file"


def start_of(folder: str) -> str:
    """The prefix of the paths of all files in a folder (POSIX): ``""`` for the root, which is ``.`` or ``""``."""
    return "" if folder in ("", ".") else f"{folder}/"


def landing(path: str, target: Callable[[str], str | None]) -> tuple[str, str]:
    """Follow the links on a path (POSIX, from the root). Returns (path without links, "") or ("", reason).

    A reason is returned for a path that leads out of the root or in a circle. ``target`` returns the text of the link
    at a path; None if there is no link.
    """
    done: list[str] = []  # the names so far, without links
    todo = path.split("/")  # the names that follow
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
    """Trees by id (40 hex digits), with a cache. ``read`` returns the bytes of the tree object with an id. Bytes of
    names that are not UTF-8 become surrogate escapes."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        @lru_cache(_MAX_CACHED_TREES)
        def entries(tree: str) -> frozenset[bytes]:
            # The entries are not parsed: most are equal in the next commit, and a folder may have thousands.
            return frozenset(_WHOLE_ENTRY.findall(read(tree)))

        @lru_cache(_MAX_CACHED_TREES)
        def children(tree: str) -> dict[bytes, tuple[bytes, bytes]]:
            """Name -> (mode, binary id) of each entry of a folder."""
            return {name: (mode, id_) for mode, name, id_ in _ENTRY.findall(read(tree))}

        self._entries, self._children = entries, children

    def folder(self, root: str, path: str) -> str | None:
        """The id of the folder at a path (POSIX, ``.`` or ``""`` for the root itself); None if there is none."""
        tree: str | None = root
        for name in start_of(path).encode("utf-8", "surrogateescape").split(b"/")[:-1]:
            mode, id_ = self._children(tree).get(name, _NOTHING) if tree else _NOTHING
            tree = id_.hex() if mode == _FOLDER else None
        return tree

    def entries(self, root: str, paths: Iterable[str]) -> dict[str, Entry | None]:
        """Path (POSIX) -> entry; None for a folder or a missing path."""
        entries: dict[str, Entry | None] = {}
        trees: dict[str, str | None] = {}
        for path in sorted(paths):  # the paths of a folder together, while its tree is in the cache
            folder, _, name = path.rpartition("/")
            if folder not in trees:
                trees[folder] = self.folder(root, folder)
            tree = trees[folder]
            entry = self._children(tree).get(name.encode("utf-8", "surrogateescape")) if tree else None
            mode, id_ = entry or _NOTHING
            entries[path] = None if mode in (_FOLDER, b"") else Entry(id_.hex(), kind(int(mode, 8)))
        return entries

    def files(self, tree: str) -> Iterator[tuple[str, Entry]]:
        """All files below a folder as (path, entry), in any order."""
        for path, mode, id_ in self._differing(None, tree, b""):
            yield path.decode("utf-8", "surrogateescape"), Entry(id_.hex(), kind(int(mode, 8)))

    def changed(self, old: str | None, new: str | None) -> set[str]:
        """The paths that ``new`` has and ``old`` has not, or has with another content or mode."""
        if new is None:
            return set()
        return {path.decode("utf-8", "surrogateescape") for path, _, _ in self._differing(old, new, b"")}

    def _differing(self, old: str | None, new: str, head: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        before = self._entries(old) if old else frozenset()
        after = self._entries(new)
        replaced: dict[bytes, str] | None = None  # mode and name of a folder -> its old id
        for entry in after - before:  # folders with equal ids have equal files, and are not entered
            begin, id_ = entry[:-_ID_BYTES], entry[-_ID_BYTES:]
            mode, _, name = begin[:-1].partition(b" ")
            if mode != _FOLDER:
                yield head + name, mode, id_
                continue
            if replaced is None:
                replaced = {old_entry[:-_ID_BYTES]: old_entry[-_ID_BYTES:].hex() for old_entry in before - after}
            yield from self._differing(replaced.get(begin), id_.hex(), head + name + b"/")


class Commit(NamedTuple):
    """A commit. ``time``: seconds since 1970. ``tree``: the id of the documents' folder; None without it."""

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
    """Path -> time of the last commit that changed it, in seconds since 1970. All paths exist in ``head``.

    The result for each path is that of ``git log -1 -- path``, but one walk through the history finds all. At a merge,
    a path follows the first parent with the same content. A commit changed a path if no parent has that content.

    - ``read``: commit id -> commit, with a cache. The oldest commits of a shallow clone have no parents.
    - ``changed``: see :meth:`Trees.changed`.
    - ``known_times``: the result of an earlier walk from the commit ``since``, for paths that still have the content
      that they had then. A path that reaches ``since`` unchanged has this time. Times are not used at other commits,
      because a path can have another history there.
    - ``boundary``: the oldest commits of a shallow clone. They seem to change each path, so known times are used there,
      too.
    """
    times: dict[str, int] = {}
    pending: dict[str, set[str]] = {}  # commit -> paths that have not changed since, and have no time yet
    newest_first: list[tuple[int, str]] = []

    def follow(commit: str, along: set[str]) -> None:
        waiting = pending.get(commit)
        if waiting is None:
            # Any order is correct. With the newest commit first, no part of the history is walked twice.
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
        times.update((path, commit.time) for path in left)  # no parent has the content of these paths
    return times
