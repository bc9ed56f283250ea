"""Which files are documents: globs, hidden folders, size, and text that can be decoded.

Pure, and the same for the working tree, the staged tree and commits, so that an index built from one is
fresh when compared with another. What is left out is left out with a reason that a person can act on.
"""

from __future__ import annotations

import itertools
import re

from anvil.core import globs
from anvil.core.config.schema import INDEX_FOLDER, SourceOptions

_KEYS = re.compile(r"^id_(?:rsa|dsa|ecdsa|ed25519)$|\.(?:pem|key|p12|pfx|jks|keystore|kdbx)$", re.IGNORECASE)
_UNWANTED_FOLDERS = frozenset({"node_modules"})
SUBMODULE = "a repository of its own (submodule); index it by itself"
BAD_NAME = "its name is not valid Unicode; rename it"

LINK_OUT = "a symlink that leads out of the repository, or of the documents' folder where there is none"
LINK_ABSOLUTE = "an absolute symlink; make it relative, so that it leads to the same file in every clone"
LINK_NOWHERE = "a symlink that leads to no file, or in a circle"
LINK_FOLDER = "a symlink to a folder; only links to files are followed"
LINK_PRIVATE = "a symlink to a file that no page may show: hidden, a key, or ignored by git"

_NEVER = frozenset({".git", INDEX_FOLDER})
_FAILURES = ("not UTF-8", "binary", "cannot be read", "the folder cannot be listed")


class Selection:
    """The name rules of a ``SourceOptions``, compiled.

    A file is a document when an ``include`` fits it and no ``exclude`` fits it or a folder it lies in;
    globs ignore case. Names that begin with a dot, and ``node_modules``, are left out unless an ``include``
    spells them out (``.github/**/*.md``); ``.git`` and ``.anvil`` always are.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._include = [(globs.compile(p, ignore_case=True), _literal_names(p)) for p in options.include]
        self._exclude = [globs.compile(p.rstrip("/") or p, ignore_case=True) for p in options.exclude]
        self._heads = [_head(p) for p in options.include]
        self._spelled = frozenset[str]().union(*(names for _, names in self._include))
        self._folders: dict[str, frozenset[str] | None] = {"": frozenset()}

    def enters(self, folder: str) -> bool:
        """Whether documents may lie in this folder (relative, POSIX, ``""`` for the top)."""
        return self._unasked_on_the_way(folder) is not None

    def wants(self, path: str) -> bool:
        """Whether a file of this name is a document."""
        folder, _, name = path.rpartition("/")
        unasked = self._unasked_on_the_way(folder)
        if unasked is None or any(glob.matches(path) for glob in self._exclude):
            return False
        if _unasked(name):
            unasked |= {name.lower()}
        return any(glob.matches(path) and unasked <= names for glob, names in self._include)

    def _unasked_on_the_way(self, folder: str) -> frozenset[str] | None:
        """The folders on the way that an ``include`` has to spell out; None when documents cannot lie
        here."""
        if folder in self._folders:
            return self._folders[folder]
        above, _, name = folder.rpartition("/")
        unasked = self._unasked_on_the_way(above)
        if name in _NEVER or any(glob.matches(folder) for glob in self._exclude) or not self._leads_on(folder):
            unasked = None
        elif unasked is not None and _unasked(name):
            unasked = unasked | {name.lower()} if name.lower() in self._spelled else None
        self._folders[folder] = unasked
        return unasked

    def _leads_on(self, folder: str) -> bool:
        """Whether an ``include`` may fit something in this folder: it need not be walked else."""
        names = folder.lower().split("/")
        return any(all(a == b for a, b in zip(head, names, strict=False)) for head in self._heads)


def refusal(data: bytes, max_bytes: int, key: str = SourceOptions.limit_key) -> str | None:
    """Why these bytes are no document; None when they are UTF-8 text within the limit, which ``key`` sets."""
    if len(data) > max_bytes:
        return too_large(len(data), max_bytes, key)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "not UTF-8: it begins with a UTF-16 byte order mark; save it as UTF-8"
    if (at := data.find(b"\0")) >= 0:
        return f"binary: it has a NUL byte at offset {at}"
    if data.isascii():
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; save it as UTF-8"
    return None


def is_private(path: str) -> bool:
    """Whether a file of the repository is never read for a page that links to it or includes it: hidden names (but for
    ``.github``), and keys."""
    names = path.split("/")
    return any(name[:1] == "." and name != ".github" for name in names) or _KEYS.search(names[-1]) is not None


def is_failure(reason: str) -> bool:
    """Whether a file was left out because something is wrong with it, rather than by a rule."""
    return reason == BAD_NAME or reason.startswith(_FAILURES)


def too_large(size: int, max_bytes: int, key: str) -> str:
    """The reason for a file over the limit that ``key`` sets."""
    return f"too large: {size:,} bytes, the limit is {max_bytes:,} ({key})"


def printable(path: str) -> str:
    """A path fit to be shown and stored: bytes that are not Unicode as ``\\xNN``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_unicode(path: str) -> bool:
    """Whether a path as the operating system gave it is valid Unicode."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)


def _unasked(name: str) -> bool:
    return name[:1] == "." or name.lower() in _UNWANTED_FOLDERS


def _literal_names(pattern: str) -> frozenset[str]:
    return frozenset(name.lower() for name in pattern.split("/") if not any(c in name for c in "*?[{\\"))


def _head(pattern: str) -> tuple[str, ...]:
    """The folders that a pattern spells out before its first wildcard."""
    folders = [name for name in pattern.lower().split("/")[:-1] if name not in ("", ".")]
    return tuple(itertools.takewhile(lambda name: not any(c in name for c in "*?[{\\"), folders))
