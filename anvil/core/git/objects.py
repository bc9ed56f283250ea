"""Git's object format: blob ids, and trees read from their bytes: the folder at a path, the files below it,
and how two folders differ.

Pure: whoever has the objects hands in a function that reads one. A history of thousands of commits is
compared tree by tree, and only folders whose ids differ are looked into.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from anvil.core.file_selection import LINK_ABSOLUTE, LINK_NOWHERE, LINK_OUT

# Mode, name, and the 20 bytes of a SHA-1 id; entries follow one another without a gap.
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER = b"40000"
_NOTHING = (b"", b"")
_MAX_CACHED_TREES = 512
_MAX_LINKS = 40  # as Linux

_Raw = tuple[bytes, bytes, bytes]
Kind = Literal["file", "symlink", "submodule", "conflict"]


class Entry(NamedTuple):
    """A name in a tree or in the index: its object id (40 hex digits), and what kind of thing it names."""

    id: str
    kind: Kind


def blob_id(data: bytes) -> str:
    """The id git gives these bytes, as 40 hex digits; needs no repository."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def kind(mode: int) -> Kind:
    """What git's file mode says."""
    return "symlink" if mode == 0o120000 else "submodule" if mode == 0o160000 else "file"


def landing(path: str, target: Callable[[str], str | None]) -> tuple[str, str]:
    """Where a path (POSIX, from the root) leads when links on its way are followed, and why it does not where it leads
    out of the root or never ends. ``target`` gives the text of a link, None for what is none."""
    done: list[str] = []
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
            if link.startswith("/") or link[1:2] == ":":
                return "", LINK_ABSOLUTE
            done.pop()
            todo = link.split("/") + todo
    return ("/".join(done), "") if done else ("", LINK_NOWHERE)


class Trees:
    """Trees by id (40 hex digits). ``read`` gives a tree object's bytes; names that are not UTF-8 keep
    their bytes as surrogate escapes."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._parsed: dict[str, frozenset[_Raw]] = {}
        self._children_by_tree: dict[str, dict[bytes, tuple[bytes, bytes]]] = {}

    def folder(self, root: str, path: str) -> str | None:
        """The id of the folder at a path (POSIX, ``.`` for the root itself); None when there is none."""
        tree: str | None = root
        for name in [] if path == "." else path.encode("utf-8", "surrogateescape").split(b"/"):
            mode, id_ = self._children(tree).get(name, _NOTHING) if tree else _NOTHING
            tree = id_.hex() if mode == _FOLDER else None
        return tree

    def entry(self, root: str, path: str) -> Entry | None:
        """What is at a path (POSIX); None for a folder, or when there is nothing."""
        folder, _, name = path.rpartition("/")
        tree = self.folder(root, folder or ".")
        mode, id_ = self._children(tree).get(name.encode("utf-8", "surrogateescape"), _NOTHING) if tree else _NOTHING
        return None if mode in (_FOLDER, b"") else Entry(id_.hex(), kind(int(mode, 8)))

    def files(self, tree: str) -> Iterator[tuple[str, Entry]]:
        """Path and entry of everything below that is not a folder, in no particular order."""
        for path, mode, found in self._differing(None, tree, b""):
            yield path.decode("utf-8", "surrogateescape"), Entry(found.hex(), kind(int(mode, 8)))

    def changed(self, old: str | None, new: str | None) -> set[str]:
        """The paths in ``new`` whose content or mode is another, or none, in ``old``."""
        if new is None:
            return set()
        return {path.decode("utf-8", "surrogateescape") for path, _, _ in self._differing(old, new, b"")}

    def _differing(self, old: str | None, new: str, head: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        before = self._entries(old) if old else frozenset()
        differing = self._entries(new) - before
        for mode, name, found in differing:
            if mode != _FOLDER:
                yield head + name, mode, found
            else:
                counterpart = self.folder(old, name.decode("utf-8", "surrogateescape")) if old else None
                yield from self._differing(counterpart, found.hex(), head + name + b"/")

    def _children(self, tree: str) -> dict[bytes, tuple[bytes, bytes]]:
        """Name -> (mode, binary id) of everything directly in a folder."""
        names = self._children_by_tree.get(tree)
        if names is None:
            if len(self._children_by_tree) >= _MAX_CACHED_TREES:
                self._children_by_tree.clear()
            names = self._children_by_tree[tree] = {name: (mode, id_) for mode, name, id_ in self._entries(tree)}
        return names

    def _entries(self, tree: str) -> frozenset[_Raw]:
        parsed = self._parsed.get(tree)
        if parsed is None:
            if len(self._parsed) >= _MAX_CACHED_TREES:
                self._parsed.clear()
            parsed = self._parsed[tree] = frozenset(_ENTRY.findall(self._read(tree)))
        return parsed
