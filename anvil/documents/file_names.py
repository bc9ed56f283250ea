"""The names of all files around a documentation folder: in the working tree, the staged tree, or a commit."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from anvil.documents.document_source import DocumentSource
from anvil.documents.file_tree import FileTree
from anvil.errors import GitError
from anvil.git.objects import landing, start_of
from anvil.git.repository import Repository
from anvil.system import safe_read

MAX_CONFIG_BYTES = 1_000_000
"""A larger file is not read."""


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
            return safe_read.text(file, MAX_CONFIG_BYTES, "replace")
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
