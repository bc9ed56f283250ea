"""The index file in git: the staged version, or that of a commit."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anvil.errors import ArtifactError, ArtifactMissing, ArtifactRejected, SourceError
from anvil.git.repository import Repository
from anvil.settings.schema import INDEX_FOLDER
from anvil.system import installation, safe_files

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_MAX_POINTER_BYTES = 1024
"""The largest pointer file, by the specification of Git LFS."""


class TrackedIndex:
    """The index file at a path of the work tree, as git has it.

    Raises :class:`SourceError` outside a repository, and for documents in another repository, such as a submodule.
    """

    def __init__(self, index: Path, docs: Path) -> None:
        # Git adds no file whose path leads through a link, such as a docs folder that is one.
        self.index = Path(os.path.realpath(index.parent), index.name)
        self.docs = Path(os.path.realpath(docs))
        repository = Repository.discover(index.parent)
        if repository is None:
            raise SourceError(f"{index} is not in a git repository. Keep it in that of its pages, or run 'git init'.")
        docs_repository = Repository.discover(docs)
        if docs_repository is None or docs_repository.root != repository.root:
            raise SourceError(
                f"{docs} and {index} are in different repositories, so no commit has both. "
                "Keep the index in the repository of the documents, and run the hook there."
            )
        self.repository = repository
        folder = repository.relative(index.parent)
        self.path = index.name if folder == "." else f"{folder}/{index.name}"
        """Relative to the repository's root, POSIX."""

    def adding(self) -> str:
        """The message how to add the index to the next commit."""
        if not self.ignored:
            return f"Run: {self._git('add')}"
        if self.index.parent == self.docs / INDEX_FOLDER:
            return f"Git ignores it: run '{self._track_command()}', or choose another place with --index."
        return f"Git ignores it: '{self._git('check-ignore', '-v')}' names the rule to remove."

    def _git(self, *words: str) -> str:
        """A git command with the index as its last argument, relative to the working folder."""
        return installation.line(["git", *words, Path(safe_files.from_working_folder(self.index)).as_posix()])

    @property
    def ignored(self) -> bool:
        self.repository.reload()
        return self.repository.is_ignored(self.path)

    def _track_command(self) -> str:
        folder = safe_files.from_working_folder(self.docs)
        docs_option = [] if folder == "docs" else ["--docs", folder]
        return installation.line([*installation.user_command(), "init", *docs_option, "--commit-index"])

    def _building(self) -> str:
        """The message what to do if there is no index, neither in git nor as a file."""
        build = installation.line([*installation.user_command(), "build", "--staged"])
        folder = self.index.parent
        if folder == self.docs / INDEX_FOLDER and not (folder / ".gitignore").exists():  # a build adds a .gitignore
            add = installation.line(["git", "add", safe_files.from_working_folder(folder)])
            return (
                'Name another place: index = "docs.anvil.db" in anvil.toml, or args: [--index, docs.anvil.db] of the '
                f"hook. Or track this one: {self._track_command()} && {build} && {add}"
            )
        return f"Build it with '{build}', and the options of the hook if it has any. {self.adding()}"

    def is_staged(self) -> bool:
        """Whether the file in the work tree has the staged content."""
        entry = self.repository.entry(self.path)
        return entry is not None and entry.kind == "file" and self._is_file(entry.id)

    @contextmanager
    def file(self, revision: str | None = None) -> Iterator[Path]:
        """The staged index or the index in a commit, as a file. Raises :class:`ArtifactError`.

        It is the file in the work tree if that has the same content, else a temporary copy.
        """
        where = f"in the commit {revision}" if revision is not None else "staged"
        blob = self._blob(where, None if revision is None else self.repository.resolve(revision))
        if self._is_file(blob):
            yield self.index
            return
        # SQLite opens only files. Git has the index in an object, or under another name in the folder of Git LFS.
        data = self._content(blob)
        with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
            copy = Path(folder, self.index.name)
            copy.write_bytes(data)
            try:
                yield copy
            except ArtifactError as error:
                raise type(error)(str(error).replace(str(copy), f"{self.path}, {where},")) from error

    def _blob(self, where: str, commit: str | None) -> str:
        entry = self.repository.entry(self.path, commit)
        if entry is None and commit is not None:
            raise ArtifactMissing(f"There is no {self.path} {where}. Name another commit, or the index with --index.")
        if entry is None:
            step = self.adding() if self.index.is_file() else self._building()
            raise ArtifactMissing(f"{self.path} is not in the commit. {step}")
        if entry.kind == "conflict":
            build = installation.line([*installation.user_command(), "build", "--staged"])
            raise ArtifactRejected(
                f"{self.path} is in conflict. Run '{build}', with the options of the hook if it has any, then "
                f"'{self._git('add')}'."
            )
        if entry.kind != "file":
            raise ArtifactRejected(f"{self.path}, {where}, is a {entry.kind}, not a file. Name the index with --index.")
        return entry.id

    def _is_file(self, blob: str) -> bool:
        if not self.index.is_file():  # reading a pipe would block
            return False
        try:
            # Read in blocks, and not by objects.blob_id(), because an index may be larger than the memory.
            header = b"blob %d\0" % self.index.stat().st_size
            if safe_files.hashed(self.index, hashlib.sha1(header, usedforsecurity=False)) == blob:
                return True
            lfs_sha256 = self._lfs_sha256(blob)
            return lfs_sha256 is not None and safe_files.sha256(self.index) == lfs_sha256
        except OSError:
            return False

    def _lfs_sha256(self, blob: str) -> str | None:
        """The SHA-256 in a pointer file of Git LFS; None if the blob is no pointer file."""
        data = self.repository.read_blob(blob)
        match = _POINTER.match(data) if len(data) <= _MAX_POINTER_BYTES else None
        return match[1].decode() if match else None

    def _content(self, blob: str) -> bytes:
        sha256 = self._lfs_sha256(blob)
        if sha256 is None:
            return self.repository.read_blob(blob)
        stored = self.repository.common_dir / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256
        try:
            return stored.read_bytes()
        except OSError:
            raise ArtifactMissing(
                f"{self.path} is in Git LFS and was not fetched. Run 'git lfs fetch', and try again."
            ) from None


def is_pointer(file: Path) -> bool:
    """Whether a file is a pointer file of Git LFS."""
    if not file.is_file():
        return False
    try:
        with file.open("rb") as opened:
            return _POINTER.match(opened.read(_MAX_POINTER_BYTES)) is not None
    except OSError:
        return False
