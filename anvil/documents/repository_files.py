"""Files in and around a documentation folder, by their paths from the root of its repository; unchanged files by stat.

- :class:`RepositoryFiles` reads pages, included files and links, with the bytes that git stores.
- :class:`StatCache` decides by one ``stat`` for each file whether anything has changed.
- :class:`FileTree` knows the names of all files in the working tree, the staged tree or a commit. It is case-sensitive
  on each system, as a web server is.

Without a repository, paths start from the documentation folder. If git ignores the whole documentation folder, it
counts as outside the repository, because otherwise it would have no page, such as an environment in a checkout."""

from __future__ import annotations

import copy
import os
import posixpath
import stat
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anvil.documents.document_source import DocumentSource, PageDecoder, too_large
from anvil.errors import GitError
from anvil.git.objects import LINK_ABSOLUTE, LINK_NOWHERE, LINK_OUT, blob_id, landing, start_of
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.system import safe_files
from anvil.text import includes
from anvil.values import Skipped

# Without O_NONBLOCK, a pipe in place of a file would block forever.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
MAX_CONFIG_BYTES = 1_000_000
"""A larger configuration file is not read."""
_WITHOUT_RULES = "Files that git ignores are not left out."
Listing = Callable[[str], "Mapping[str, bool] | None"]
"""A function from a folder to its names, each with whether it is a folder; None if there is no such folder. Paths are
POSIX and start from the root, which is ``""``."""


# --- signatures of files, by which changes are noticed ---------------------------------------------------------------

Signature = tuple[int, int, int, int, int]

# Time stamps come from a clock that ticks every 4 to 16 ms. A whole second is the time stamp of a file system without
# fractions (FAT has only even seconds).
_TICK_NS = 50_000_000
_COARSE_NS = 2_000_000_000
# A program can write to a file through mapped memory. The system updates the time stamp when it writes the page back,
# up to some thirty seconds later.
_WRITTEN_BACK_NS = 40_000_000_000


def signature(state: os.stat_result) -> Signature:
    """Values from a file's stat. Writing or replacing the file changes one, if time stamps can show it."""
    return (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns)


def modified_ns(signature: Signature) -> int:
    """The time at which a file was last written, in nanoseconds since 1970."""
    return signature[2]


def is_stable(state: os.stat_result, moment_ns: int) -> bool:
    """Whether a file's last change is so long before ``moment_ns`` that its signature can be trusted."""
    touched = _touched(state)
    return touched + (_TICK_NS if touched % 1_000_000_000 else _COARSE_NS) < moment_ns


def written_back(state: os.stat_result) -> int:
    """The time (ns since 1970) from which each change of a file, also by mapped memory, changes its signature."""
    return _touched(state) + _WRITTEN_BACK_NS


def _touched(state: os.stat_result) -> int:
    # On Windows the ctime is the time of creation. On other systems it changes even if a program sets the mtime back.
    return state.st_mtime_ns if os.name == "nt" else max(state.st_mtime_ns, state.st_ctime_ns)


def mark(file: str) -> object:
    """A value that stays equal only while the file is certainly unchanged."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return (file, signature(state), None if is_stable(state, time.time_ns()) else time.time_ns())


class StatCache:
    """The folders, files and rule files of one walk over a folder.

    It is filled during the walk. Before the next walk, one ``stat`` for each entry decides whether a walk is needed. A
    folder with an unchanged signature has the same names, so it is not listed again. Only signatures that can be
    trusted are stored, see :func:`is_stable`. Other files are read each time, and other folders listed."""

    def __init__(self) -> None:
        self._is_complete = True
        self._folders: list[tuple[str, Signature]] = []
        self._listed: list[tuple[str, frozenset[tuple[str, bool]]]] = []
        self._files: list[tuple[str, Signature, bool]] = []
        """Path, signature, and whether the path is a link. Then the signature is that of the link's target."""
        self._absent: list[str] = []
        self._without_signature: list[tuple[str, str, str | Skipped]] = []
        """Path, real path and result of each file that must be read each time."""
        self._rules: Mapping[str, object] = {}

    def folder(self, real: str, items: Iterable[os.DirEntry[str]], state: os.stat_result, began_ns: int) -> None:
        """Add a folder and its names. ``state``: its stat, taken after ``began_ns`` and before it was listed."""
        # A time in whole seconds is not trusted: programs that copy set such times, and some file systems without
        # fractions do not update the time of a folder when a name is added.
        if is_stable(state, began_ns) and state.st_mtime_ns % 1_000_000_000:
            self._folders.append((real, signature(state)))
        else:
            self._listed.append((real, _names(items)))

    def doubt(self) -> None:
        """Mark the cache as incomplete, so that the next walk is a full one."""
        self._is_complete = False

    def file(
        self, path: str, real: str, recorded: Signature | None, result: str | Skipped, linked: bool = False
    ) -> None:
        """Add a file. Without a signature it is read each time. ``linked``: it is that of a link's target."""
        if recorded is None:
            self._without_signature.append((path, real, result))
        else:
            self._files.append((real, recorded, linked))

    def included(self, real: str, recorded: Signature) -> None:
        self._files.append((real, recorded, True))

    def absent(self, real: str) -> None:
        self._absent.append(real)

    def close(self, rules: Mapping[str, object]) -> None:
        """End the walk. ``rules``: marks of the ignore and attribute files, see :func:`mark`."""
        self._rules = rules

    def is_current(self, look: Callable[[str, str], tuple[Signature | None, str | Skipped, bool]]) -> bool:
        """Whether a walk would give the same result now. ``look`` reads a file again: (path, real path) -> signature if
        it can be trusted, result, whether it is a link."""
        if not self._is_complete:
            return False
        try:
            if any(signature(os.stat(real)) != recorded for real, recorded in self._folders):
                return False
            # Without a call of signature(): every search waits for this loop (benchmarks/freshness.py).
            for real, recorded, linked in self._files:
                state = os.stat(real) if linked else os.lstat(real)
                if (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns) != recorded:
                    return False
            for real, names in self._listed:
                with os.scandir(real) as items:
                    if _names(items) != names:
                        return False
        except OSError:
            return False
        # The quick checks come first. Files without a trusted signature must be read, so they come last.
        if any(os.path.lexists(real) for real in self._absent):
            return False
        if any(mark(file) != value for file, value in self._rules.items()):
            return False
        to_read, self._without_signature = self._without_signature, []
        for path, real, result in to_read:
            trusted, new_result, linked = look(path, real)
            if new_result != result:
                self.doubt()
            self.file(path, real, trusted, new_result, linked)
        return self._is_complete


def _names(items: Iterable[os.DirEntry[str]]) -> frozenset[tuple[str, bool]]:
    return frozenset((item.name, item.is_dir(follow_symlinks=False)) for item in items)


# --- reading files ----------------------------------------------------------------------------------------------------


class RepositoryFiles:
    """The files in the repository of ``folder``, which is a path without links. Not thread-safe."""

    def __init__(self, folder: Path, options: SourceOptions) -> None:
        self._folder = folder
        self._options = options
        self.problem: str | None
        """Why the repository cannot be read; None without a problem."""
        self.git: Repository | None = None
        self._is_ignored_whole: bool | None = None  # decided only once, because the paths of all pages depend on it
        self.reopen()
        self.root = long_path(str(folder if self.git is None else self.git.root))
        self.root_path = "." if self.git is None else self.git.relative(folder)
        """The path of the folder from the repository's root, POSIX."""
        self.decoder = PageDecoder(options, includes.Look(self.root_path, self.included))
        self._included: dict[str, tuple[Signature | None, str]] = {}
        """Path of an included file -> its signature if it can be trusted, and its blob id."""
        self._link_free: dict[str, bool] = {}
        """Absolute folder -> whether no part of its path is a link."""

    def reopen(self) -> None:
        """Open the repository again, because libgit2 caches settings."""
        self.problem = None
        try:
            git = Repository.discover(self._folder)
            if self._is_ignored_whole is None:
                # Not asked for the root itself, which a rule such as "*" may match.
                inside = "." if git is None else git.relative(self._folder)
                if git is not None:
                    git.reload()  # reads the staged tree: a folder with tracked files is not ignored
                self._is_ignored_whole = git is not None and inside != "." and git.is_ignored(f"{inside}/")
            self.git = None if self._is_ignored_whole else git
        except GitError as error:
            self.git, self.problem = None, f"{_WITHOUT_RULES} {error}"

    def real(self, path: str) -> str:
        return os.path.join(self.root, *path.split("/"))

    def is_ignored(self, path: str) -> bool:
        if self.git is None:
            return False
        try:
            return self.git.is_ignored(path)
        except GitError as error:
            self.problem = f"{_WITHOUT_RULES} {error}"
            return False

    def clean(self, path: str, data: bytes) -> bytes:
        """The bytes of a file as git stores them."""
        if self.git is None:
            return data
        try:
            return self.git.clean(path, data)
        except GitError as error:
            self.problem = str(error)
            return data

    def read(self, real: str) -> tuple[bytes | str, os.stat_result | None]:
        """The bytes of a file or why it was not read, and its stat after reading. Links are not followed."""
        try:
            if not _NO_FOLLOW and os.path.islink(real):  # on Windows
                return LINK_NOWHERE, None
            descriptor = os.open(real, _OPEN)
        except OSError:
            if os.path.islink(real):  # the error for a link differs between systems: ELOOP, EMLINK or EFTYPE
                return LINK_NOWHERE, None
            raise
        limit = self._options.max_file_bytes
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return "not a regular file", state
            if state.st_size > limit:
                return too_large(state.st_size, limit, self._options.limit_key), state
            # One byte more than the size, to notice a file that grows in the meantime. A read may also return less.
            data = os.read(descriptor, state.st_size + 1)
            while len(data) != state.st_size and len(data) <= limit and (more := os.read(descriptor, 1 << 20)):
                data += more
            return data, os.fstat(descriptor)
        finally:
            os.close(descriptor)

    # --- links -----------------------------------------------------------------------------------------------------

    def landing(self, path: str) -> tuple[str, str]:
        """Follow a link; see :func:`anvil.git.objects.landing`."""

        def target(link: str) -> str | None:
            real = self.real(link)
            return os.readlink(real).replace("\\", "/") if os.path.islink(real) else None

        inside, reason = landing(path, target)
        if reason == LINK_ABSOLUTE:
            real = os.path.realpath(self.real(path))
            reason = reason if real == self.root or real.startswith(self.root + os.sep) else LINK_OUT
        return inside, reason

    def forget_links(self) -> None:
        """Check again which folders are links."""
        self._link_free.clear()

    def _is_link_free(self, folder: str) -> bool:
        """Whether no part of a folder's path is a link. Cached until :meth:`forget_links`."""
        is_link_free = self._link_free.get(folder)
        if is_link_free is None:
            inside = folder != self.root and folder.startswith(self.root + os.sep)
            if inside and os.name != "nt":  # on Windows, junctions lead elsewhere, too
                is_link_free = not os.path.islink(folder) and self._is_link_free(os.path.dirname(folder))
            else:
                is_link_free = os.path.realpath(folder) == folder
            self._link_free[folder] = is_link_free
        return is_link_free

    # --- files that pages include ----------------------------------------------------------------------------------

    def included(self, path: str) -> includes.IncludedFile:
        """A file that a page includes. It must be in the repository, and no part of its path may be a link."""
        return self.decoder.included(*self._read_included(path))

    def included_id(self, path: str) -> str:
        """The blob id of a file that a page includes; empty if there is none. The file is read only if it changed."""
        recorded, id_ = self._included.get(path, (None, ""))
        if recorded is not None:
            try:
                if signature(os.stat(self.real(path))) == recorded:
                    return id_
            except OSError:
                return ""
        return self._read_included(path)[0]

    def _read_included(self, path: str) -> tuple[str, bytes]:
        """The blob id and the bytes of an included file; both are empty if there is none."""
        real, began = self.real(path), time.time_ns()
        self._included.pop(path, None)
        try:
            if includes.is_private(path) or not self._is_link_free(os.path.dirname(real)) or self.is_ignored(path):
                return "", b""
            raw, state = self.read(real)
        except OSError:
            return "", b""
        if not isinstance(raw, bytes) or state is None:
            return "", b""
        data = self.clean(path, raw)
        id_ = blob_id(data)
        self._included[path] = (signature(state) if is_stable(state, began) else None, id_)
        return id_, data

    def note_included(self, paths: Iterable[str], stat_cache: StatCache) -> None:
        """Add the files that pages include to the cache."""
        for path in paths:
            real = self.real(path)
            if path not in self._included:  # a file that is never read, such as an ignored one, or a missing file
                try:
                    stat_cache.included(real, signature(os.stat(real)))
                except OSError:
                    stat_cache.absent(real)
            elif (recorded := self._included[path][0]) is None:
                stat_cache.doubt()
            else:
                stat_cache.included(real, recorded)


def long_path(path: str) -> str:
    """The form of a path that on Windows has no limit of 260 characters and no reserved names such as ``con.md``."""
    if os.name != "nt" or path.startswith("\\\\"):
        return path
    return "\\\\?\\" + path


@dataclass(eq=False)
class FileTree:
    """The files and folders below a root folder. Each folder is listed once, at its first use."""

    docs: str
    """The documentation folder from the root; ``""`` for the root itself."""
    listing: Listing
    read: Callable[[str], str | None]
    """The text of a small file; None if there is none."""
    ignored: Callable[[str], bool] | None = None
    """Whether git ignores a path, which may then be made by a build. None if the root is not that of a repository, but
    only a folder above ``docs``."""

    def __post_init__(self) -> None:
        self.is_repository = self.ignored is not None
        self.is_ignored = self.ignored or (lambda path: False)
        self._folders: dict[str, Mapping[str, bool] | None] = {}

    def at(self, docs: str) -> FileTree:
        """A tree of these files for another documentation folder."""
        tree = copy.copy(self)
        tree.docs = docs
        return tree

    def kind(self, path: str) -> Literal["file", "folder"] | None:
        """Whether a normal path from the root is a file or a folder; None for neither, or outside the root."""
        if path in ("", "."):
            return "folder"
        if path == ".." or path.startswith(("../", "/")):
            return None
        folder, _, name = path.rpartition("/")
        names = self.names(folder)
        # Composed (NFC), because macOS may list names decomposed that pages have composed.
        is_folder = names.get(name if name.isascii() else unicodedata.normalize("NFC", name)) if names else None
        return None if is_folder is None else "folder" if is_folder else "file"

    def names(self, folder: str) -> Mapping[str, bool] | None:
        """The names in a folder, composed (NFC), each with whether it is a folder; None if ``folder`` is no folder."""
        if folder not in self._folders:
            listing = self.listing(folder) if self.kind(folder) == "folder" else None
            if listing is not None:
                listing = {unicodedata.normalize("NFC", name): is_folder for name, is_folder in listing.items()}
            self._folders[folder] = listing
        return self._folders[folder]

    def other_case(self, path: str) -> str | None:
        """The path of an existing file that differs from ``path`` only in capital letters; None if there is none."""
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
    """The repository of a folder; None if there is none, or if it cannot be read."""
    try:
        return Repository.discover(docs)
    except GitError:
        return None


def of(source: DocumentSource, docs: Path, repository: Repository | None) -> FileTree:
    """All files of the tree from which ``source`` reads documents."""
    if repository is None or source.name == "working tree":
        return in_working_tree(docs, repository)
    return in_git(docs, repository, None if source.name == "staged tree" else source.commit())


def in_working_tree(docs: Path, repository: Repository | None) -> FileTree:
    """Files on disk below the repository's root; without a repository, below the folder two levels above ``docs``."""
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
            state = file.lstat()
            if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_CONFIG_BYTES:
                return None
            return safe_files.text(file, MAX_CONFIG_BYTES, "replace")
        except OSError:
            return None

    inside = folder.relative_to(root).as_posix()
    return FileTree(
        "" if inside == "." else inside, listing, read, None if repository is None else _ignored(repository)
    )


def in_git(docs: Path, repository: Repository, revision: str | None) -> FileTree:
    """The files of a commit; the staged files if ``revision`` is None."""
    entries = repository.staging.folder("") if revision is None else repository.tree(repository.resolve(revision), "")
    submodules = tuple(f"{path}/" for path, entry in entries.items() if entry.kind == "submodule")
    folders = folders_of(entries, submodules)
    is_ignored = _ignored(repository)

    def link(path: str) -> str | None:
        return repository.link_target(entries.get(path))

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
        return path.startswith(submodules) or is_ignored(path)  # the files of a submodule are not in this repository

    inside = repository.relative(docs)
    return FileTree("" if inside == "." else inside, listing, read, ignored)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself
        return False


def _ignored(repository: Repository) -> Callable[[str], bool]:
    def ignored(path: str) -> bool:
        try:
            return repository.is_ignored(path)
        except GitError:
            return False

    return ignored


def folders_of(paths: Iterable[str], submodules: Iterable[str] = ()) -> dict[str, dict[str, bool]]:
    """Folder -> its names, each with whether it is a folder. ``submodules``: with a slash at their ends."""
    folders: dict[str, dict[str, bool]] = {"": {}, **{path.rstrip("/"): {} for path in submodules}}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, {})[name] = path in folders
        while folder:
            above, _, name = folder.rpartition("/")
            names = folders.setdefault(above, {})
            if name in names:  # then the folders above have their names, too
                break
            names[name] = True
            folder = above
    return folders
