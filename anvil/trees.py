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

# Mode, name, and the 20 bytes of a SHA-1 id; entries follow one another without a gap.
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER = b"40000"
_REMEMBERED = 512

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


class Trees:
    """Trees by id (40 hex digits). ``read`` gives a tree object's bytes; names that are not UTF-8 keep
    their bytes as surrogate escapes."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._parsed: dict[str, frozenset[_Raw]] = {}

    def folder(self, root: str, path: str) -> str | None:
        """The id of the folder at a path (POSIX, ``.`` for the root itself); None when there is none."""
        found: str | None = root
        for name in [] if path == "." else path.encode("utf-8", "surrogateescape").split(b"/"):
            found = self._folders(found).get(name) if found else None
        return found

    def entries(self, tree: str) -> Iterator[tuple[str, Entry]]:
        """Name and entry of everything directly in a folder that is not a folder itself."""
        for mode, name, found in self._entries(tree):
            if mode != _FOLDER:
                yield name.decode("utf-8", "surrogateescape"), Entry(found.hex(), kind(int(mode, 8)))

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
                counterpart = self._folders(old).get(name) if old else None
                yield from self._differing(counterpart, found.hex(), head + name + b"/")

    def _folders(self, tree: str) -> dict[bytes, str]:
        return {name: found.hex() for mode, name, found in self._entries(tree) if mode == _FOLDER}

    def _entries(self, tree: str) -> frozenset[_Raw]:
        parsed = self._parsed.get(tree)
        if parsed is None:
            if len(self._parsed) >= _REMEMBERED:
                self._parsed.clear()
            parsed = self._parsed[tree] = frozenset(_ENTRY.findall(self._read(tree)))
        return parsed
