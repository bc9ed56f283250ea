"""The only door to git's data: blob ids, the staged tree, commits, ignore rules, and when each path last changed.

Reads repositories through libgit2; the git program is never run. Every failure of the library leaves here as a
``GitError`` that says what could not be read and what to do, and the library is imported when first needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.backends.git.libgit2 import configure, failures, index_class, merge, open_repository
from anvil.core.config.schema import INDEX_FOLDER
from anvil.core.git.history import Commits, last_touched
from anvil.core.git.objects import Entry, Trees, kind
from anvil.core.git.objects import blob_id as blob_id
from anvil.core.timestamps import timestamp
from anvil.errors import GitError, SourceError
from anvil.models.status import GitStatus

if TYPE_CHECKING:
    import pygit2


_IDENT = re.compile(rb"\$Id:[^$\n]*\$")


def status(path: Path) -> GitStatus | None:
    """The repository around a folder of documents; None outside one, and when it cannot be read."""
    try:
        repository = Repository.discover(path)
        if repository is None:
            return None
        head, remote = repository.head(), repository.default_branch()
        return GitStatus(
            head_commit=repository.short(head) if head else None,
            origin_main=repository.short(remote) if remote else None,
            dirty=repository.dirty(repository.relative(path)),
        )
    except (GitError, SourceError):
        return None  # status answers whatever state git is in; building and checking name the reason


def distance(folder: Path, commit: str) -> int | None:
    """How many commits HEAD of the repository around ``folder`` has beyond this one (40 hex digits); None when it is
    no ancestor, or nobody can tell."""
    try:
        repository = Repository.discover(folder)
        found = repository.nearest([commit]) if repository else None
        return found[1] if found else None
    except (GitError, SourceError):
        return None


MAX_RENAMES = 5
"""Renames of one file that are followed."""


class Repository:
    """One repository with a work tree; a linked worktree or a submodule counts as one of its own.

    ``root`` is the work tree, ``git_dir`` its own git folder, ``common_dir`` the one shared by linked
    worktrees; all are absolute, with symlinks resolved. Not for use by two threads at once.
    """

    def __init__(self, handle: pygit2.Repository, root: Path) -> None:
        self._git = handle
        self.root = root
        self.git_dir = Path(os.path.realpath(handle.path))
        shared = _text(self.git_dir / "commondir")
        self.common_dir = Path(os.path.realpath(self.git_dir / shared.strip())) if shared else self.git_dir
        self._trees = Trees(lambda tree: handle[tree].read_raw())
        self._index: tuple[object, pygit2.Index] | None = None

    @classmethod
    def discover(cls, path: Path) -> Repository | None:
        """The repository that ``path`` lies in, existing or not; None outside any. Raises GitError when there is one
        that cannot be read: broken, owned by another user, or in a format that libgit2 does not know (SHA-256 ids)."""
        where = Path(os.path.realpath(path))
        limits = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
        ceilings = {os.path.realpath(limit) for limit in limits if limit}
        broken: Path | None = None
        for folder in (where, *where.parents):
            if str(folder) in ceilings and folder != where:
                break
            mark = folder / ".git"
            if mark.is_file() or (mark / "HEAD").exists():
                return cls(open_repository(folder), folder)
            if folder.name == ".git" and (folder / "HEAD").exists():
                return None  # inside a repository's own folder there is no work tree
            if broken is None and mark.is_dir() and any(mark.iterdir()):
                broken = mark
        if broken is not None:
            raise GitError(f"{broken} is not a complete repository: it has no HEAD. Clone again or remove it.")
        return None

    def relative(self, path: Path) -> str:
        """The path below ``root``, POSIX, ``.`` for the root itself; SourceError when it lies elsewhere."""
        try:
            below = Path(os.path.realpath(path)).relative_to(self.root).as_posix()
        except ValueError:
            raise SourceError(f"{path} is not inside the repository {self.root}.") from None
        return unicodedata.normalize("NFC", below) if self.composes_names else below

    @cached_property
    def composes_names(self) -> bool:
        """Whether git stores this work tree's names composed (NFC), whatever the file system lists (macOS)."""
        return self._config("core.precomposeunicode")

    # --- commits -----------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The commit checked out, as 40 hex digits; None before the first commit. Detached is fine."""
        with failures("HEAD cannot be read"):
            return None if self._git.head_is_unborn else str(self._git.head.target)

    def resolve(self, revision: str) -> str:
        """The commit id that a branch, tag, id or expression such as ``HEAD~2`` names; SourceError if none."""
        import pygit2

        try:
            return str(self._git.revparse_single(revision).peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError):
            step = "Fetch it, or name another one."
            if self.is_shallow:
                step = (
                    "This clone is shallow, so it may lack it: run 'git fetch --unshallow', or set fetch-depth: 0 for "
                    "actions/checkout."
                )
            raise SourceError(f"There is no commit {revision!r} in {self.root}. {step}") from None

    @property
    def is_shallow(self) -> bool:
        """Whether the history was cut off when this repository was cloned."""
        return (self.common_dir / "shallow").exists()

    def branch(self, name: str) -> str | None:
        """The commit of a branch: a local one, ``origin/main``, or ``main`` as last fetched from origin; None for what
        is no branch."""
        with failures("The branches cannot be read"):
            for full in (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}"):
                try:
                    reference = self._git.references.get(full)
                    if reference is not None:
                        return str(reference.resolve().target)
                except (KeyError, ValueError):  # a name that no reference can have
                    continue
        return None

    def merge_base(self, first: str, second: str) -> str | None:
        """The best common ancestor of two commits; None when this clone knows none."""
        with failures("The history cannot be read"):
            base = self._git.merge_base(first, second)
            return None if base is None else str(base)

    def last_with(self, paths: Collection[str], limit: int) -> dict[str, tuple[str, str]]:
        """Path -> the newest commit that holds it and its blob there, from HEAD down the first parents of at most
        ``limit`` commits. ``paths`` are relative to ``root``; those that no commit holds are left out."""
        commit, missing = self.head(), set(paths)
        last: dict[str, tuple[str, str]] = {}
        with failures("The history cannot be read"):
            for _ in range(limit):
                if commit is None or not missing:
                    break
                _, parents, tree = self._commit(commit)
                for path in tuple(missing):
                    entry = self._trees.entries(tree, [path])[path]
                    if entry is not None and entry.kind == "file":
                        last[path] = (commit, entry.id)
                        missing.discard(path)
                commit = parents[0] if parents and self._git.get(parents[0]) is not None else None
        return last

    def short(self, commit: str) -> str:
        """The shortest unique form of an id, as git prints it; its first seven digits when it is not here."""
        with failures(f"The commit {commit[:12]} cannot be read"):
            found = self._git.get(commit)
            return commit[:7] if found is None else str(found.short_id)

    def time(self, commit: str) -> int:
        """A commit's time (of committing) in seconds since 1970."""
        with failures(f"The commit {commit[:12]} cannot be read"):
            return self._commit(commit)[0]

    def nearest(self, commits: Iterable[str]) -> tuple[str, int] | None:
        """Of these commits (40 hex digits) the ancestor of HEAD that it has moved on from least, and by how many
        commits; None when none is one, as far as this clone knows."""
        head, best = self.head(), None
        with failures("The history cannot be read"):
            for commit in commits:
                if head and self._git.get(commit) is not None:
                    ahead, behind = self._git.ahead_behind(head, commit)
                    if not behind and (best is None or ahead < best[1]):
                        best = (commit, ahead)
        return best

    def default_branch(self) -> str | None:
        """The commit of the remote's default branch as last fetched (40 hex digits); None when unknown."""
        for name in ("origin/HEAD", "origin/main", "origin/master"):
            with failures("The remote's branches cannot be read"):
                reference = self._git.references.get(f"refs/remotes/{name}")
                try:
                    if reference is not None:
                        return str(reference.resolve().target)
                except KeyError:  # origin/HEAD names a branch that was pruned since
                    continue
        return None

    def tree(self, revision: str, prefix: str) -> dict[str, Entry]:
        """Everything under a folder in a commit: path relative to ``prefix`` -> entry; empty if there is
        none.

        Names that are not UTF-8 keep their bytes as surrogate escapes.
        """
        with failures(f"The tree of {revision[:12]} cannot be read"):
            folder = self._trees.folder(self._commit(revision)[2], prefix)
            return dict(self._trees.files(folder)) if folder else {}

    def entry(self, path: str, revision: str | None = None) -> Entry | None:
        """What is staged, or lies in a commit, at a path relative to ``root``; None when there is nothing."""
        return self.entries([path], revision)[path]

    def entries(self, paths: Collection[str], revision: str | None = None) -> dict[str, Entry | None]:
        """The same of several paths."""
        if revision is not None:
            with failures(f"The tree of {revision[:12]} cannot be read"):
                root = self._commit(revision)[2]
                return self._trees.entries(root, paths)
        entries: dict[str, Entry | None] = {}
        with failures("The git index cannot be read"):
            index = self._current_index()
            sides = [side for each in index.conflicts or () for side in each if side is not None]
            conflicts = {side.path: Entry(str(side.id), "conflict") for side in reversed(sides)}
            for path in paths:
                entries[path] = conflicts.get(path)
                if path not in conflicts:
                    with contextlib.suppress(KeyError):
                        item = index[path]
                        entries[path] = Entry(str(item.id), kind(int(item.mode)))
            return entries

    def read_blob(self, blob: str) -> bytes:
        """The bytes of a blob."""
        with failures(f"The object {blob[:12]} cannot be read; `git fsck` tells what is missing"):
            return self._git[blob].read_raw()

    def last_modified(
        self,
        paths: Collection[str],
        prefix: str,
        known: Mapping[str, tuple[str, str]],
        since: str | None,
        revision: str | None = None,
    ) -> dict[str, str]:
        """Path -> ISO 8601 UTC time of the last commit that touched it, as ``git log -1 -- path`` from
        ``revision``.

        ``paths`` and the keys of ``known`` (blob id, time) are relative to ``prefix``. ``known`` is what an
        index built at commit ``since`` holds; it shortens the walk, never alters its result, save that in a
        shallow clone it tells what the clone cannot. Paths that the commit does not hold are left out.
        ``revision``: HEAD by default.
        """
        head = revision or self.head()
        if head is None or not paths:
            return {}
        here = self.tree(head, prefix)
        present = [path for path in paths if path in here]
        trusted: dict[str, int] = {}
        for path in present:
            blob, time = known.get(path, ("", ""))
            if blob == here[path].id:
                trusted[path] = int(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp())
        boundary = set((_text(self.common_dir / "shallow") or "").split())
        with failures("The history cannot be read"):
            found = last_touched(Commits(self._commit, self._trees, prefix), head, present, trusted, since, boundary)
        return {path: timestamp(seconds) for path, seconds in found.items()}

    def successors(self, paths: Collection[str], max_commits: int = 2000) -> dict[str, str]:
        """Path -> where its file is in HEAD, renamed as ``git log --follow`` sees it; ``""`` where it was deleted.

        Paths that the last ``max_commits`` commits did not have are left out. ``paths`` start from ``root``.
        """
        head = self.head()
        if head is None or not paths:
            return {}
        with failures("The history cannot be read"):
            moves = self._last_moves(head, set(paths), max_commits)
            present: dict[str, str] = {}
            for path, new in moves.items():
                for _ in range(MAX_RENAMES):  # the new file may have been renamed since
                    if not new or self.entry(new, head) is not None:
                        break
                    new = self._last_moves(head, {new}, max_commits).get(new, "")
                present[path] = new if new and self.entry(new, head) is not None else ""
            return present

    def _last_moves(self, head: str, paths: set[str], max_commits: int) -> dict[str, str]:
        """Path -> the file that the commit which removed it has instead, ``""`` for none."""
        moves: dict[str, str] = {}
        for number, commit in enumerate(self._git.walk(head)):
            if number >= max_commits or not paths:
                break
            if not commit.parents or commit.parents[0].tree_id == commit.tree_id:
                continue
            before, after = str(commit.parents[0].tree_id), str(commit.tree_id)
            old, new = self._trees.entries(before, paths), self._trees.entries(after, paths)
            gone = {path for path in paths if old[path] and not new[path]}
            if gone:
                diff = self._git.diff(commit.parents[0], commit)
                diff.find_similar()
                renames = [delta for delta in diff.deltas if delta.status_char() == "R"]
                moves |= dict.fromkeys(gone, "")
                moves |= {each.old_file.path: each.new_file.path for each in renames if each.old_file.path in gone}
                paths = paths - gone
        return moves

    def merge(
        self, base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Three states of a folder (path -> blob id) merged as git merges them; see :func:`libgit2.merge`."""
        return merge(self._git, base, ours, theirs)

    def configure(self, values: Mapping[str, str | None]) -> None:
        """Set keys of the repository's own configuration, for all its work trees; None removes one."""
        configure(self.common_dir / "config", values)

    # --- index and work tree -----------------------------------------------------------------------

    @property
    def index_file(self) -> Path:
        """The index in use: ``GIT_INDEX_FILE`` where git has set it for this repository, as it does for hooks of a
        partial commit (``git commit -a``, ``git commit FILE``), else the repository's own."""
        own = self.git_dir / "index"
        named = os.environ.get("GIT_INDEX_FILE")
        if not named:
            return own
        other = Path(os.path.realpath(named))
        elsewhere = os.environ.get("GIT_DIR")
        foreign = Path(os.path.realpath(elsewhere)) != self.git_dir if elsewhere else (other.parent / "HEAD").exists()
        # A hook of the repository around a submodule hands its own index on, which says nothing about this one.
        return own if foreign and other.parent != self.git_dir else other

    @property
    def temporary(self) -> Literal["all", "named"] | None:
        """Which files are staged for one commit alone: ``all`` for ``git commit -a``, those that are ``named`` for
        ``git commit FILE``; None when the index in use is the repository's own."""
        name = self.index_file.name
        if self.index_file.parent != self.git_dir or not name.endswith(".lock"):
            return None
        return "named" if name.startswith("next-index") else "all"

    def staged(self, prefix: str) -> dict[str, Entry]:
        """What is staged under a folder: path relative to ``prefix`` -> entry. No file of the folder is
        read."""
        with failures("The git index cannot be read"):
            index = self._current_index()
            head = "" if prefix == "." else f"{prefix}/"
            entries: dict[str, Entry] = {}
            for at in range(self._first(index, head), len(index)):
                item = index[at]
                path = os.fspath(item.path)
                if not path.startswith(head):
                    break
                entries[path[len(head) :]] = Entry(str(item.id), kind(int(item.mode)))
            for sides in index.conflicts or ():
                for side in sides:
                    if side is not None and side.path.startswith(head):
                        entries[side.path[len(head) :]] = Entry(str(side.id), "conflict")
            return entries

    def reload(self) -> None:
        """Read the index anew if it has changed. ``is_ignored`` goes by the one read last: it is asked
        often."""
        try:
            with failures("The git index cannot be read"):
                self._current_index()
        except GitError:
            self._index = None

    def is_ignored(self, path: str) -> bool:
        """Whether git leaves this out: ignored by a rule, and neither tracked nor, for a folder (named with
        a trailing ``/``), holding tracked files. Relative to ``root``.

        libgit2 differs from git in one thing: a ``!`` line does not undo a rule of a file further up. Where
        the index cannot be read the rules alone decide."""
        folder = path.endswith("/")
        with failures("The ignore rules cannot be read"):
            if not folder and self._is_tracked(path):  # asked first: it takes a tenth of the time
                return False
            return self._git.path_is_ignored(path) and not (folder and self._is_tracked(path))

    def _is_tracked(self, path: str) -> bool:
        if self._index is None:
            return False
        index = self._index[1]
        if not path.endswith("/"):
            return path in index
        at = self._first(index, path)
        return at < len(index) and os.fspath(index[at].path).startswith(path)

    def clean(self, path: str, data: bytes) -> bytes:
        """The bytes just read from a work tree file as git would store them: line endings and ``$Id$`` as
        configuration and attributes ask. External filters (LFS) are not run."""
        if b"\r\n" not in data and b"$Id:" not in data:
            return data  # nothing for the built-in filters to do; asking for them costs more than hashing
        collapsed = _IDENT.sub(b"$Id$", data) if b"$Id:" in data else data
        forms = {data, collapsed, data.replace(b"\r\n", b"\n"), collapsed.replace(b"\r\n", b"\n")}
        if len(forms) == 1:
            return data
        # Only newer versions of the library apply filters to bytes; each tells the id that they lead to.
        with failures(f"The filters of {path} cannot be read"):
            stored = str(self._git.hashfile(path))
        return next((form for form in forms if blob_id(form) == stored), data)

    def dirty(self, prefix: str) -> bool:
        """Whether anything under the folder differs from HEAD, untracked files counted, Anvil's own index not."""
        head = "" if prefix == "." else f"{prefix}/"
        with failures("The state of the work tree cannot be read"):
            return any(
                path.startswith(head) and f"/{INDEX_FOLDER}/" not in f"/{path}"
                for path in self._git.status(untracked_files="all")
            )

    def rule_files(self, prefix: str) -> tuple[Path, ...]:
        """Files outside the folder on which ``is_ignored`` and ``clean`` depend, existing or not; the user's global
        configuration is taken to stay as it is while a program runs."""
        folders = [self.root]
        for part in Path(prefix).parts:
            folders.append(folders[-1] / part)
        named = [folder / name for folder in folders for name in (".gitignore", ".gitattributes")]
        return (*named, *(self.common_dir / name for name in ("info/exclude", "info/attributes", "config")))

    # --- inner -------------------------------------------------------------------------------------

    def configured(self, key: str) -> str | None:
        """What git's configuration says of a key, here or for the user; None when nothing."""
        with failures("The configuration cannot be read"):
            config = self._git.config
            return config[key] if key in config else None  # noqa: SIM401 - it has no get

    def attribute(self, path: str, name: str) -> str | None:
        """The value that ``.gitattributes`` gives a file, by its path relative to ``root``; None without one."""
        with failures("The attributes cannot be read"):
            found = self._git.get_attr(path, name)
            return found if isinstance(found, str) else None

    def _config(self, key: str) -> bool:
        with failures("The configuration cannot be read"):
            return key in self._git.config and self._git.config.get_bool(key)

    def _commit(self, commit: str) -> tuple[int, tuple[str, ...], str]:
        import pygit2

        found = self._git[commit].peel(pygit2.Commit)
        return found.commit_time, tuple(map(str, found.parent_ids)), str(found.tree_id)

    def _current_index(self) -> pygit2.Index:
        """The index, opened by file: unlike the repository's own it is always in byte order, and ours to replace."""
        file = self.index_file
        try:
            stat = file.stat()
            signature: object = (file, stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            signature = (file, None)
        if self._index is None or self._index[0] != signature:
            self._index = (signature, index_class()(file))
        return self._index[1]

    @staticmethod
    def _first(index: pygit2.Index, prefix: str) -> int:
        """The position of the first entry not below ``prefix`` in git's order, which is that of bytes."""
        return bisect_left(range(len(index)), os.fsencode(prefix), key=lambda at: os.fsencode(index[at].path))


def _text(file: Path) -> str | None:
    """A small file of the git folder, None when it is not there."""
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return None
