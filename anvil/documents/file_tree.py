"""The names of a repository's files, always case-sensitive, as on a web server."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal

Listing = Callable[[str], "Mapping[str, bool] | None"]
"""The names in a folder (POSIX, from the root, ``""`` for the root), each with whether it is a folder; None for what is
no folder."""


class FileTree:
    """The files and folders below a root folder. Each folder is listed once, at its first use.

    ``docs``: the documentation folder from the root, ``""`` where it is that. ``read``: the text of a small file, None
    where there is none. ``ignored``: whether git ignores a path, so that it may be a product of the build; None where
    the root is not that of a repository, but only a folder above ``docs``.
    """

    def __init__(
        self,
        docs: str,
        listing: Listing,
        read: Callable[[str], str | None],
        ignored: Callable[[str], bool] | None = None,
    ) -> None:
        self.docs = docs
        self.read = read
        self.is_repository = ignored is not None
        self.is_ignored = ignored or (lambda path: False)
        self._listing = listing
        self._folders: dict[str, Mapping[str, bool] | None] = {}

    def kind(self, path: str) -> Literal["file", "folder"] | None:
        """What is at a normal path from the root; None for nothing, and for a path that leads out of the root."""
        if path in ("", "."):
            return "folder"
        if path == ".." or path.startswith(("../", "/")):
            return None
        folder, _, name = path.rpartition("/")
        names = self.names(folder)
        is_folder = names.get(name if name.isascii() else unicodedata.normalize("NFC", name)) if names else None
        return None if is_folder is None else "folder" if is_folder else "file"

    def names(self, folder: str) -> Mapping[str, bool] | None:
        """The names in a folder, composed (NFC), each with whether it is a folder; None for what is no folder."""
        if folder not in self._folders:
            listing = self._listing(folder) if self.kind(folder) == "folder" else None
            if listing is not None:
                listing = {unicodedata.normalize("NFC", name): is_folder for name, is_folder in listing.items()}
            self._folders[folder] = listing
        return self._folders[folder]

    def other_case(self, path: str) -> str | None:
        """The path that differs from ``path`` in capital letters only; None without one."""
        actual = ""
        for name in path.split("/"):
            names = self.names(actual) or {}
            folded = unicodedata.normalize("NFC", name).casefold()
            spelled = name if name in names else next((other for other in names if other.casefold() == folded), None)
            if spelled is None:
                return None
            actual = posixpath.join(actual, spelled)
        return actual if actual != path else None

    def ancestors(self) -> list[str]:
        """The documentation folder and those above it up to the root."""
        folders = [self.docs]
        while folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        return folders
