"""The files around a documentation folder, by their paths from the root of its repository: read as git stores them,
for pages that include them and for links that lead to them.

Without a repository, paths start from the documentation folder. A documentation folder that git ignores as a whole,
such as one in an environment inside a checkout, counts as outside of it: otherwise it would have no page.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from anvil.documents.file_selection import refusal, too_large
from anvil.documents.stat_cache import Signature, StatCache, is_stable, signature
from anvil.errors import GitError
from anvil.git.objects import LINK_ABSOLUTE, LINK_NOWHERE, LINK_OUT, blob_id, landing
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.text import includes

# Without O_NONBLOCK, a pipe in place of a file would block forever.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class RepositoryFiles:
    """The files around ``folder``, which has no links on its path. Not thread-safe."""

    def __init__(self, folder: Path, options: SourceOptions) -> None:
        self._folder = folder
        self._options = options
        self.problem: str | None = None
        """Why the repository cannot be read; None without a problem."""
        self.git: Repository | None = None
        self._is_ignored_whole: bool | None = None  # decided once: the paths of all pages depend on it
        self.reopen()
        self.root = long_path(str(folder if self.git is None else self.git.root))
        self._included: dict[str, tuple[Signature | None, str]] = {}
        self._straight: dict[str, bool] = {}

    def reopen(self) -> None:
        """Open the repository again: libgit2 caches settings."""
        try:
            git = Repository.discover(self._folder)
            if self._is_ignored_whole is None:
                inside = "." if git is None else git.relative(self._folder)
                self._is_ignored_whole = git is not None and inside != "." and git.is_ignored(f"{inside}/")
            self.git = None if self._is_ignored_whole else git
        except GitError as error:
            self.git, self.problem = None, str(error)

    def real(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self.root, *path.split("/"))

    def is_ignored(self, path: str) -> bool:
        """Whether git ignores a path."""
        if self.git is None:
            return False
        try:
            return self.git.is_ignored(path)
        except GitError as error:
            self.problem = str(error)
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
        """A file's bytes, or why it was not read, and its stat after reading. Links are not followed."""
        try:
            if not _NO_FOLLOW and os.path.islink(real):
                return LINK_NOWHERE, None
            descriptor = os.open(real, _OPEN)
        except OSError:
            if os.path.islink(real):
                return LINK_NOWHERE, None
            raise
        limit = self._options.max_file_bytes
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return "not a regular file", state
            if state.st_size > limit:
                return too_large(state.st_size, limit, self._options.limit_key), state
            data = os.read(descriptor, state.st_size + 1)
            while len(data) != state.st_size and len(data) <= limit and (more := os.read(descriptor, 1 << 20)):
                data += more
            return data, os.fstat(descriptor)
        finally:
            os.close(descriptor)

    # --- links -----------------------------------------------------------------------------------------------------

    def landing(self, path: str) -> tuple[str, str]:
        """Follow a link; see :func:`anvil.git.objects.landing`."""

        def target(each: str) -> str | None:
            real = self.real(each)
            return os.readlink(real).replace("\\", "/") if os.path.islink(real) else None

        inside, reason = landing(path, target)
        if reason == LINK_ABSOLUTE:
            real = os.path.realpath(self.real(path))
            reason = reason if real == self.root or real.startswith(self.root + os.sep) else LINK_OUT
        return inside, reason

    def forget_links(self) -> None:
        """Look at the folders on the way to files again."""
        self._straight.clear()

    def _is_straight(self, folder: str) -> bool:
        """Whether no link is on the way to a folder; looked at once, until :meth:`forget_links`."""
        known = self._straight.get(folder)
        if known is None:
            inside = folder != self.root and folder.startswith(self.root + os.sep)
            if inside and os.name != "nt":  # there, other things than links lead elsewhere
                known = not os.path.islink(folder) and self._is_straight(os.path.dirname(folder))
            else:
                known = os.path.realpath(folder) == folder
            self._straight[folder] = known
        return known

    # --- files that pages include ----------------------------------------------------------------------------------

    def included(self, path: str) -> includes.IncludedFile:
        """A file that a page includes, which must be in the repository, with no link on the way."""
        id_, data = self._read_included(path)
        fit = id_ and refusal(data, includes.MAX_FILE_BYTES) is None
        return includes.IncludedFile(id_, data.decode("utf-8-sig") if fit else None)

    def included_id(self, path: str) -> str:
        """The blob id of a file that a page includes; empty when there is none. It is read only if it changed."""
        known = self._included.get(path)
        if known is not None and known[0] is not None:
            try:
                if signature(os.stat(self.real(path))) == known[0]:
                    return known[1]
            except OSError:
                return ""
        return self._read_included(path)[0]

    def _read_included(self, path: str) -> tuple[str, bytes]:
        """Blob id and bytes, both empty when there is none."""
        real, began = self.real(path), time.time_ns()
        self._included.pop(path, None)
        try:
            if includes.is_private(path) or not self._is_straight(os.path.dirname(real)) or self.is_ignored(path):
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
        """Tell the cache that pages depend on these files."""
        for path in paths:
            known, real = self._included.get(path), self.real(path)
            if known is None:
                try:
                    stat_cache.followed(real, signature(os.stat(real)))
                except OSError:
                    stat_cache.absent(real)
            elif known[0] is None:
                stat_cache.doubt()
            else:
                stat_cache.followed(real, known[0])


def long_path(path: str) -> str:
    """On Windows, the form of a path without the limit of 260 characters and reserved names such as ``con.md``."""
    if os.name != "nt" or path.startswith("\\\\"):
        return path
    return "\\\\?\\" + path
