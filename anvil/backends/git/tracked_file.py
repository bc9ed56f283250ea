"""The index file as git holds it: the one that is staged, or the one in a commit, whatever lies in the folder."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anvil.backends import installation
from anvil.backends.git.repository import Repository
from anvil.core.config.schema import INDEX_FOLDER
from anvil.errors import ArtifactError, ArtifactMissing, ArtifactRejected, SourceError

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_MAX_POINTER_BYTES = 1024
"""What Git LFS commits in place of a file is never longer."""


class TrackedIndex:
    """The index file at a path of the work tree, as git knows it.

    Raises :class:`SourceError` outside a repository, and when the documents lie in another one (a submodule): what
    is committed there is not what is committed here.
    """

    def __init__(self, index: Path, docs: Path) -> None:
        self.index = index
        self.docs = docs
        repository = Repository.discover(index.parent)
        if repository is None:
            raise SourceError(f"{index} is not in a git repository. Keep it in that of its pages, or run 'git init'.")
        around = Repository.discover(docs)
        if around is None or around.root != repository.root:
            raise SourceError(
                f"{docs} and {index} lie in different repositories, so no commit holds both. "
                "Keep the index in the repository of the documents, and run the hook there."
            )
        self.repository = repository
        folder = repository.relative(index.parent)
        self.path = index.name if folder == "." else f"{folder}/{index.name}"
        """Relative to the repository's root, POSIX."""

    def adding(self) -> str:
        """What to do so that the index is in the next commit: a sentence."""
        if not self.ignored:
            return f"Run: {shlex.join(['git', 'add', self.path])}"
        if self.index.parent == self.docs / INDEX_FOLDER:
            return f"Git is told to ignore it: run '{self._let_in()}', or choose another place with --index."
        return f"Git is told to ignore it: 'git check-ignore -v {shlex.quote(self.path)}' names the rule to take out."

    @property
    def ignored(self) -> bool:
        """Whether git is told to leave it out."""
        self.repository.reload()
        return self.repository.is_ignored(self.path)

    def _let_in(self) -> str:
        """The command that has git take in an index at its default place."""
        folder = os.path.relpath(self.docs)
        named = [] if folder == "docs" else ["--docs", folder]
        return installation.line([*installation.typed(), "init", *named, "--commit-index"])

    def _building(self) -> str:
        """What to do when there is neither an index in git nor a file: sentences."""
        build = installation.line([*installation.typed(), "build", "--staged"])
        folder = self.index.parent
        if folder == self.docs / INDEX_FOLDER and not (folder / ".gitignore").exists():  # a build keeps it out of git
            add = installation.line(["git", "add", os.path.relpath(folder)])
            return (
                'Name another place: index = "docs.anvil.db" in anvil.toml, or args: [--index, docs.anvil.db] of the '
                f"hook. Or let git have this one: {self._let_in()} && {build} && {add}"
            )
        return f"Build it with '{build}', and the options of the hook if it has any. {self.adding()}"

    def is_staged(self) -> bool:
        """Whether the file that lies in the folder is the one that would be committed."""
        entry = self.repository.entry(self.path)
        return entry is not None and entry.kind == "file" and self._lies_there(entry.id)

    @contextmanager
    def file(self, revision: str | None = None) -> Iterator[Path]:
        """The index as staged, or as in a commit, as a file to read. Raises :class:`ArtifactError`.

        It is the one in the folder when that is the same, else a copy that is gone afterwards.
        """
        where = f"in the commit {revision}" if revision is not None else "staged"
        blob = self._blob(where, None if revision is None else self.repository.resolve(revision))
        if self._lies_there(blob):
            yield self.index
            return
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
            build = installation.line([*installation.typed(), "build", "--staged"])
            raise ArtifactRejected(f"{self.path} is in conflict. Run '{build}'. {self.adding()}")
        if entry.kind != "file":
            raise ArtifactRejected(f"{self.path}, {where}, is a {entry.kind}, not a file. Name the index with --index.")
        return entry.id

    def _lies_there(self, blob: str) -> bool:
        try:
            header = b"blob %d\0" % self.index.stat().st_size
            if _hashed(self.index, hashlib.sha1(header, usedforsecurity=False)) == blob:
                return True
            pointed = self._pointed(blob)
            return pointed is not None and _hashed(self.index, hashlib.sha256()) == pointed
        except OSError:
            return False

    def _pointed(self, blob: str) -> str | None:
        """The SHA-256 of the file that a Git LFS pointer stands for; None when the blob is none."""
        data = self.repository.read_blob(blob)
        found = _POINTER.match(data) if len(data) <= _MAX_POINTER_BYTES else None
        return found[1].decode() if found else None

    def _content(self, blob: str) -> bytes:
        pointed = self._pointed(blob)
        if pointed is None:
            return self.repository.read_blob(blob)
        stored = self.repository.common_dir / "lfs" / "objects" / pointed[:2] / pointed[2:4] / pointed
        try:
            return stored.read_bytes()
        except OSError:
            raise ArtifactMissing(
                f"{self.path} is kept by Git LFS and is not here. Run 'git lfs fetch', and try again."
            ) from None


def is_pointer(file: Path) -> bool:
    """Whether a file is what Git LFS leaves in the place of one that it has not fetched."""
    try:
        with file.open("rb") as opened:
            return _POINTER.match(opened.read(_MAX_POINTER_BYTES)) is not None
    except OSError:
        return False


def _hashed(file: Path, whole: hashlib._Hash) -> str:
    """The hash of a file's bytes, hex, after what is in it already; block by block, since an index may be large."""
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()
