"""The names of all files around a documentation folder: in the working tree, the staged tree, or a commit.

They are always case-sensitive, as on a web server.
"""

from __future__ import annotations

import os
import posixpath
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from anvil.documents.document_source import DocumentSource
from anvil.errors import GitError
from anvil.git.objects import landing, start_of
from anvil.git.repository import Repository
from anvil.system import safe_files

MAX_CONFIG_BYTES = 1_000_000
"""A larger file is not read."""
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


def repository_of(docs: Path) -> Repository | None:
    """The repository that a folder is in; None outside one, and for one that cannot be read."""
    try:
        return Repository.discover(docs)
    except GitError:
        return None


def of(source: DocumentSource, docs: Path, repository: Repository | None) -> FileTree:
    """The files of the tree that ``source`` has its documents from."""
    if repository is None or source.name == "working tree":
        return in_working_tree(docs, repository)
    return in_git(docs, repository, None if source.name == "staged tree" else source.commit())


def in_working_tree(docs: Path, repository: Repository | None) -> FileTree:
    """The files as they are on disk, below the repository's root; without one, two folders above ``docs``."""
    folder = Path(os.path.realpath(docs))
    root = folder.parent.parent if repository is None else repository.root

    def listing(path: str) -> Mapping[str, bool] | None:
        try:
            with os.scandir(root.joinpath(*path.split("/")) if path else root) as entries:
                return {entry.name: _is_folder(entry) for entry in entries}
        except OSError:
            return None

    def read(path: str) -> str | None:
        file = root.joinpath(*path.split("/"))
        try:
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_CONFIG_BYTES:
                return None
            return safe_files.text(file, MAX_CONFIG_BYTES, "replace")
        except OSError:
            return None

    inside = folder.relative_to(root).as_posix()
    return FileTree(
        "" if inside == "." else inside, listing, read, None if repository is None else _ignored(repository)
    )


def in_git(docs: Path, repository: Repository, revision: str | None) -> FileTree:
    """The files of a commit, or the staged ones for ``revision`` None."""
    entries = repository.staging.folder("") if revision is None else repository.tree(repository.resolve(revision), "")
    submodules = tuple(f"{path}/" for path, entry in entries.items() if entry.kind == "submodule")
    folders = _folders(entries, submodules)
    is_ignored = _ignored(repository)

    def link(path: str) -> str | None:
        entry = entries.get(path)
        if entry is None or entry.kind != "symlink":
            return None
        return repository.read_blob(entry.id).decode("utf-8", "surrogateescape")

    def listing(folder: str) -> Mapping[str, bool] | None:
        real = landing(folder, link)[0] if folder else ""
        if folder and not real:
            return None
        names = folders.get(real)
        return names and {
            name: is_folder or landing(start_of(real) + name, link)[0] in folders for name, is_folder in names.items()
        }

    def read(path: str) -> str | None:
        entry = entries.get(path)
        if entry is None or entry.kind != "file":
            return None
        data = repository.read_blob(entry.id)
        return data.decode("utf-8-sig", "replace") if len(data) <= MAX_CONFIG_BYTES else None

    def ignored(path: str) -> bool:
        return path.startswith(submodules) or is_ignored(path)  # what is in a submodule, this repository does not know

    inside = repository.relative(docs)
    return FileTree("" if inside == "." else inside, listing, read, ignored)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _ignored(repository: Repository) -> Callable[[str], bool]:
    def ignored(path: str) -> bool:
        try:
            return repository.is_ignored(path)
        except GitError:
            return False

    return ignored


def _folders(paths: Iterable[str], submodules: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Folder -> its names, each with whether it is a folder. ``submodules``: with a slash at their ends."""
    folders: dict[str, dict[str, bool]] = {"": {}, **{path.rstrip("/"): {} for path in submodules}}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, {})[name] = path in folders
        while folder:
            above, _, name = folder.rpartition("/")
            names = folders.setdefault(above, {})
            if name in names:
                break
            names[name] = True
            folder = above
    return folders
