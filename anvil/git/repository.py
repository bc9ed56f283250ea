"""A git repository: commits, branches, the history and last change of paths, diffs, merges, and ignored paths.

It uses libgit2, not the git program. Errors become :class:`GitError`, which names what could not be read and the next
step. The library is imported at its first use.
"""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.errors import GitError, SourceError
from anvil.formats.data_formats import timestamp
from anvil.git.ignore_rules import IgnoreRules
from anvil.git.libgit2 import SKIP_WORKTREE, StagingArea, ensure_readable, failures, open_repository
from anvil.git.objects import Commit, Entry, Trees, blob_id, last_touched, start_of
from anvil.values import KnownTimes

if TYPE_CHECKING:
    import pygit2
    from pygit2.enums import DiffFind


def distance(folder: Path, commit: str) -> int | None:
    """The number of commits between ``commit`` (40 hex digits) and HEAD of the repository of ``folder``; None if it is
    not an ancestor of HEAD, or unknown."""
    try:
        repository = Repository.discover(folder)
        nearest = repository.nearest([commit]) if repository else None
        return nearest[1] if nearest else None
    except (GitError, SourceError):
        return None


MAX_COMMITS = 2000
"""So many commits are searched for the removal of a file."""
MAX_RENAMES = 5
"""So many renames of one file are followed."""


class Repository:
    """A repository with a work tree; also a linked worktree, or a submodule. Not thread-safe.

    - ``root``: the work tree.
    - ``git_dir``: its git folder.
    - ``common_dir``: the git folder that linked worktrees share.
    - ``staging``: git's index.

    The folders are absolute paths without symlinks.
    """

    def __init__(self, handle: pygit2.Repository, root: Path) -> None:
        self._git = handle
        self.root = root
        self.git_dir = Path(os.path.realpath(handle.path))
        # In a linked worktree, this file names the folder with the objects and the configuration.
        shared = _text(self.git_dir / "commondir")
        self.common_dir = Path(os.path.realpath(self.git_dir / shared.strip())) if shared else self.git_dir
        self._trees = Trees(lambda tree: handle[tree].read_raw())
        self.staging = StagingArea(self.git_dir)

    @classmethod
    def discover(cls, path: Path) -> Repository | None:
        """The repository that contains ``path``, which need not exist; None outside a repository.

        Raises :class:`GitError` if the repository cannot be read: broken, owned by another user, or with SHA-256 ids.
        """
        where = Path(os.path.realpath(path))
        # Not by libgit2, whose search does not tell which repository was broken. As in git, a ceiling does not apply to
        # the folder itself.
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
                return None  # the git folder itself has no work tree
            if broken is None and mark.is_dir() and any(mark.iterdir()):
                broken = mark
        if broken is not None:
            raise GitError(f"{broken} is not a complete repository: it has no HEAD. Clone again or remove it.")
        return None

    def relative(self, path: Path) -> str:
        """The path below ``root``, POSIX, ``.`` for the root itself. Raises :class:`SourceError` for another path."""
        try:
            below = Path(os.path.realpath(path)).relative_to(self.root).as_posix()
        except ValueError:
            raise SourceError(f"{path} is not inside the repository {self.root}.") from None
        return unicodedata.normalize("NFC", below) if self.composes_names else below

    @cached_property
    def composes_names(self) -> bool:
        """Whether git stores names composed (NFC), also if the file system does not, as on macOS."""
        return self._is_set("core.precomposeunicode")

    def _is_set(self, key: str) -> bool:
        with failures("The configuration cannot be read"):
            return key in self._git.config and self._git.config.get_bool(key)

    # --- commits -----------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The commit of HEAD, 40 hex digits; None before the first commit."""
        with failures("HEAD cannot be read"):
            return None if self._git.head_is_unborn else str(self._git.head.target)

    def resolve(self, revision: str) -> str:
        """The commit id of a branch, tag, id or expression such as ``HEAD~2``. Raises :class:`SourceError`."""
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
        return (self.common_dir / "shallow").exists()

    def branch(self, name: str) -> str | None:
        """The commit of a branch, local or of origin, named ``main`` or ``origin/main``; None if there is none."""
        return self._first_commit(f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}")

    def default_branch(self) -> str | None:
        """The commit of a remote's default branch at the last fetch (40 hex digits); None if unknown. The remote is
        ``origin``, else the one that the current branch follows, which may be an old fork, else the only one."""
        with failures("The remotes cannot be read"):
            remotes = list(self._git.remotes.names())
            branch = None if self._git.head_is_unborn else self._git.head.shorthand
            followed = f"branch.{branch}.remote"
            names = [self._git.config[followed]] if branch and followed in self._git.config else []
        names = ["origin", *names, *(remotes if len(remotes) == 1 else ())]
        branches = ("HEAD", "main", "master")
        return self._first_commit(*(f"refs/remotes/{remote}/{branch}" for remote in names for branch in branches))

    def _first_commit(self, *references: str) -> str | None:
        with failures("The branches cannot be read"):
            for name in references:
                try:
                    reference = self._git.references.get(name)
                    if reference is not None:
                        return str(reference.resolve().target)
                except (KeyError, ValueError):  # an invalid name, or origin/HEAD still names a pruned branch
                    continue
        return None

    def merge_base(self, first: str, second: str) -> str | None:
        """The best common ancestor of two commits; None if this clone has none."""
        with failures("The history cannot be read"):
            base = self._git.merge_base(first, second)
            return None if base is None else str(base)

    def steps(self, start: str, limit: int, paths: Sequence[str]) -> Iterator[tuple[str, str, tuple[object, ...]]]:
        """At most ``limit`` commits from ``start`` back along the first parents, as (author's name, id of the root
        tree, ids of the objects at ``paths``). The id is None without an object at a path. ``""`` is the root itself.

        In a shallow clone the commits end earlier.
        """
        with failures("The history cannot be read"):
            for commit in self._first_parents(start, limit):
                yield commit.author.name, str(commit.tree_id), tuple(_at(commit.tree, path) for path in paths)

    def changed(self, old: object, new: object) -> set[str]:
        """The paths that the folder ``new`` has and ``old`` has not, or has with another content. Both are ids from
        :meth:`steps`. There are none if ``new`` is no folder."""
        with failures("The history cannot be read"):
            return self._trees.changed(None if old is None else str(old), None if new is None else str(new))

    def patch(self, base: str | None, *, staged: bool = False, max_bytes: int) -> str:
        """The unified diff from a commit to the work tree or to the ``staged`` tree; as ``git diff``, with renames.

        ``base``: None for the empty tree, before the first commit. After ``max_bytes`` other files are left out."""
        import pygit2
        from pygit2.enums import DiffOption

        flags = DiffOption.NORMAL
        if not staged:
            self._ensure_readable_rules()
        with failures("The change cannot be read"):
            root = self._git.TreeBuilder().write() if base is None else self._commit(base)[2]
            tree = self._git[root].peel(pygit2.Tree)
            diff = tree.diff_to_index(self.staging.current(), flags)
            if not staged:  # as in git, new files count only if they are staged or committed since
                index = self._git.index
                index.read()  # libgit2 has a cache
                for path in _left_out(index):  # for libgit2, these files are deleted
                    index.remove(path)
                diff.merge(index.diff_to_workdir(flags))
            diff.find_similar()
            parts: list[str] = []
            size = 0
            for patch in diff:
                if patch is None:
                    continue
                data = patch.data
                if size + len(data) > max_bytes:
                    break
                size += len(data)
                parts.append(data.decode("utf-8", "replace"))
        return "".join(parts)

    def work_tree_files(self) -> set[str] | None:
        """The paths of the files in the work tree, also of new ones, without those that git ignores; None if a sparse
        checkout leaves some out."""
        from pygit2.enums import DeltaStatus, DiffOption

        self._ensure_readable_rules()
        with failures("The work tree cannot be read"):
            index = self._git.index
            index.read()  # libgit2 has a cache
            if _left_out(index):
                return None
            files = {path for path, entry in self.staging.folder(".").items() if entry.kind == "file"}
            diff = index.diff_to_workdir(DiffOption.INCLUDE_UNTRACKED | DiffOption.RECURSE_UNTRACKED_DIRS)
            for delta in diff.deltas:
                if delta.status == DeltaStatus.DELETED:
                    files.discard(delta.old_file.path)
                elif delta.status == DeltaStatus.UNTRACKED and stat.S_ISREG(delta.new_file.mode):
                    files.add(delta.new_file.path)
        return files

    def subjects(self, head: str, base: str, limit: int) -> list[str]:
        """First lines of commit messages along first parents, ``head`` back to after ``base``; at most ``limit``."""
        subjects: list[str] = []
        with failures("The history cannot be read"):
            for commit in self._first_parents(head, limit):
                if str(commit.id) == base:
                    break
                subjects.append(next((line.strip() for line in commit.message.splitlines() if line.strip()), ""))
        return subjects

    def short(self, commit: str) -> str:
        """The shortest unique form of a commit id, as in git; seven digits if this clone lacks the commit."""
        with failures(f"The commit {commit[:12]} cannot be read"):
            git_object = self._git.get(commit)
            return commit[:7] if git_object is None else str(git_object.short_id)

    def time(self, commit: str) -> int:
        """A commit's committer time in seconds since 1970."""
        with failures(f"The commit {commit[:12]} cannot be read"):
            return self._commit(commit)[0]

    def nearest(self, commits: Iterable[str]) -> tuple[str, int] | None:
        """The commit that is the nearest ancestor of HEAD, and the number of commits after it; None if this clone has
        none of the ``commits`` (40 hex digits) as an ancestor."""
        head, best = self.head(), None
        with failures("The history cannot be read"):
            for commit in commits:
                if head and self._git.get(commit) is not None:
                    ahead, behind = self._git.ahead_behind(head, commit)
                    if not behind and (best is None or ahead < best[1]):
                        best = (commit, ahead)
        return best

    def tree(self, revision: str, prefix: str) -> dict[str, Entry]:
        """The files of a folder in a commit: path relative to ``prefix`` -> entry; empty if there is no such folder.

        Bytes of names that are not UTF-8 become surrogate escapes.
        """
        with failures(f"The tree of {revision[:12]} cannot be read"):
            folder = self._trees.folder(self._commit(revision)[2], prefix)
            return dict(self._trees.files(folder)) if folder else {}

    def has_folder(self, folder: str, revision: str | None = None) -> bool:
        """Whether a folder relative to ``root`` has staged files, or is in a commit."""
        if revision is None:
            return self.staging.has_folder(folder)
        with failures(f"The tree of {revision[:12]} cannot be read"):
            return self._trees.folder(self._commit(revision)[2], folder) is not None

    def entry(self, path: str, revision: str | None = None) -> Entry | None:
        """The staged entry at a path relative to ``root``, or the entry in a commit; None if there is none."""
        return self.entries([path], revision)[path]

    def entries(self, paths: Collection[str], revision: str | None = None) -> dict[str, Entry | None]:
        """Path -> result of :meth:`entry`."""
        if revision is not None:
            with failures(f"The tree of {revision[:12]} cannot be read"):
                root = self._commit(revision)[2]
                return self._trees.entries(root, paths)
        return self.staging.entries(paths)

    def read_blob(self, blob: str) -> bytes:
        with failures(f"The object {blob[:12]} cannot be read; `git fsck` tells what is missing"):
            return self._git[blob].read_raw()

    def link_target(self, entry: Entry | None) -> str | None:
        """The text of a link, its target; None if the entry is no link."""
        if entry is None or entry.kind != "symlink":
            return None
        return self.read_blob(entry.id).decode("utf-8", "surrogateescape")

    def last_modified(
        self, paths: Collection[str], prefix: str, known: KnownTimes, since: str | None, revision: str | None = None
    ) -> dict[str, str]:
        """Path -> time (ISO 8601, UTC) of the last commit that changed it, as in ``git log -1 -- path`` from
        ``revision``. Paths that are not in the commit are left out.

        - ``paths`` and the keys of ``known`` are relative to ``prefix``.
        - ``known``: path -> (blob id, time) in an index that was built at the commit ``since``. It makes the walk
          shorter and does not change the result, except in a shallow clone, which has no older history.
        - ``revision``: HEAD by default.
        """
        head = revision or self.head()
        if head is None or not paths:
            return {}
        entries = self.tree(head, prefix)
        present = [path for path in paths if path in entries]
        trusted: dict[str, int] = {}
        for path in present:
            blob, time = known.get(path, ("", ""))
            if blob == entries[path].id:  # else the page was edited since, and has another time
                trusted[path] = int(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp())
        boundary = set((_text(self.common_dir / "shallow") or "").split())
        with failures("The history cannot be read"):

            @cache
            def read(commit: str) -> Commit:
                time, parents, root = self._commit(commit)
                return Commit(time, parents, self._trees.folder(root, prefix))

            times = last_touched(read, self._trees.changed, head, present, trusted, since, boundary)
        return {path: timestamp(seconds) for path, seconds in times.items()}

    def successors(self, paths: Collection[str]) -> dict[str, str]:
        """Path -> present path of a file in the work tree, after renames that ``git log --follow`` finds; ``""`` if the
        file was deleted.

        A renamed file counts even if it is not added to git yet. Paths that none of the last :data:`MAX_COMMITS`
        commits had are left out. ``paths`` start from ``root``."""
        head = self.head()
        if head is None or not paths:
            return {}
        with failures("The history cannot be read"):
            moves = self._last_moves(head, set(paths))
            present: dict[str, str] = {}
            for path, new in moves.items():
                for _ in range(MAX_RENAMES):  # the new file may have been renamed since
                    if not new or self._is_in_work_tree(new):
                        break
                    new = self._last_moves(head, {new}).get(new, "")
                present[path] = new if new and self._is_in_work_tree(new) else ""
            return present

    def _is_in_work_tree(self, path: str) -> bool:
        """Whether the work tree has a file, or would have it in a checkout that is not sparse."""
        is_here = os.path.lexists(self.root / path)
        return is_here or (self._is_set("core.sparsecheckout") and self.entry(path) is not None)

    def _last_moves(self, head: str, paths: set[str]) -> dict[str, str]:
        """Path of a removed file -> its new path in the change that removed it; ``""`` if that change has none. Changes
        in the work tree come before commits."""
        from pygit2.enums import DiffFind, DiffOption

        entries = self._trees.entries(self._commit(head)[2], paths)
        gone = {path for path, entry in entries.items() if entry and not self._is_in_work_tree(path)}
        moves: dict[str, str] = {}
        if gone:  # only then, because finding renames compares the texts of all added and removed files
            self._ensure_readable_rules()
            new_files = DiffOption.INCLUDE_UNTRACKED | DiffOption.RECURSE_UNTRACKED_DIRS
            diff = self._git.diff(head, flags=new_files)
            moves |= _renames(gone, diff, DiffFind.FIND_RENAMES | DiffFind.FIND_FOR_UNTRACKED)
        paths = paths - gone
        for number, commit in enumerate(self._git.walk(head)):
            if number >= MAX_COMMITS or not paths:
                break
            if not commit.parents or commit.parents[0].tree_id == commit.tree_id:
                continue  # this commit removed nothing
            before, after = str(commit.parents[0].tree_id), str(commit.tree_id)
            old, new = self._trees.entries(before, paths), self._trees.entries(after, paths)
            gone = {path for path in paths if old[path] and not new[path]}
            if gone:
                moves |= _renames(gone, self._git.diff(commit.parents[0], commit), DiffFind.FIND_RENAMES)
                paths = paths - gone
        return moves

    def merge(
        self, base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str], prefix: str = "."
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Merge three states of the folder ``prefix`` as git does. Each state is path in it -> blob id. Returns the
        merged state, and the paths with a conflict.

        Renames are followed, and ``merge=union`` in ``.gitattributes`` is obeyed. A text that changed on both sides in
        different places becomes a new blob, which is written to the repository. For a path with a conflict or with
        missing blobs, one side is used.
        """
        import pygit2

        head = start_of(prefix)  # attributes are for whole paths
        sides = {path: (base.get(path), ours.get(path), theirs.get(path)) for path in {*base, *ours, *theirs}}
        merged = {path: ids[0] for path, ids in sides.items() if ids[0] and len(set(ids)) == 1}
        # A page that is the same on all sides needs no merge, and need not be in this repository.
        differing = {path: ids for path, ids in sides.items() if path not in merged}
        with failures("The pages cannot be merged"):
            present = {item for ids in differing.values() for item in ids if item is None or item in self._git}

            def tree(side: int) -> pygit2.Oid:
                index = pygit2.Index()
                for path, ids in sorted(differing.items()):
                    blob = ids[side]
                    if blob is not None and present.issuperset(ids):
                        index.add(pygit2.IndexEntry(head + path, pygit2.Oid(hex=blob), pygit2.enums.FileMode.BLOB))
                return index.write_tree(self._git)

            merged_index = self._git.merge_trees(tree(0), tree(1), tree(2))
            sides_in_conflict = (side for item in merged_index.conflicts or () for side in item if side is not None)
            conflicts = {side.path.removeprefix(head) for side in sides_in_conflict}
            entries = {item.path.removeprefix(head): str(item.id) for item in merged_index}
            merged |= {path: blob for path, blob in entries.items() if path not in conflicts}
        for path, (before, own, other) in differing.items():
            if path in conflicts or not present.issuperset((before, own, other)):
                if path not in conflicts and own == before and other in present:
                    chosen = other
                elif path not in conflicts and other in (before, own):
                    chosen = own
                else:
                    conflicts.add(path)
                    chosen = own or (other if other in present else None)
                if chosen is not None:
                    merged[path] = chosen
        return merged, tuple(sorted(conflicts))

    def merge_texts(self, base: str, ours: str, theirs: str, path: str) -> tuple[str, bool]:
        """Merge three versions of a file as git does. Returns the text with marks of conflicts, and whether there is no
        conflict. The versions are written to the repository as blobs."""
        import pygit2

        with failures(f"{path} cannot be merged"):

            def entry(text: str) -> pygit2.IndexEntry:
                return pygit2.IndexEntry(path, self._git.create_blob(text.encode()), pygit2.enums.FileMode.BLOB)

            versions = entry(base), entry(ours), entry(theirs)
            result = self._git.merge_file_from_index(*versions, use_deprecated=False)  # the default before pygit2 1.19
        return result.contents, result.automergeable

    def configure(self, values: Mapping[str, str | None]) -> None:
        """Set keys of the repository's configuration, for all its work trees. The value None removes a key."""
        import pygit2

        file = self.common_dir / "config"
        with failures(f"{file} cannot be written"):
            config = pygit2.Config(str(file))
            for key, value in values.items():
                if value is not None:
                    config[key] = value
                elif key in config:
                    del config[key]

    # --- index and work tree -----------------------------------------------------------------------

    def reload(self) -> None:
        """Read git's index and the files with ignore rules again, for :meth:`is_ignored`."""
        self.staging.reload()
        self._ignore_rules.reload()

    def is_ignored(self, path: str) -> bool:
        """Whether git ignores a path relative to ``root``: a rule matches it, and it is not tracked.

        A folder has a trailing ``/``, and is ignored only if it has no tracked files. If git's index cannot be read,
        only the rules decide."""
        if not path.endswith("/") and self.staging.holds(path):  # first, because it takes less time
            return False
        return self._ignore_rules.match(path) and not self.staging.holds(path)

    @cached_property
    def _ignore_rules(self) -> IgnoreRules:
        def staged(path: str) -> bytes:
            entry = self.entry(path) if is_sparse and self.staging.holds(path) else None
            return self.read_blob(entry.id) if entry is not None and entry.kind == "file" else b""

        is_sparse = self._is_set("core.sparsecheckout")
        ignore_case = self._is_set("core.ignorecase")
        return IgnoreRules(self.root, self._shared_rules, ignore_case=ignore_case, staged=staged)

    @cached_property
    def _shared_rules(self) -> tuple[Path, ...]:
        """Files with ignore rules for the whole work tree: the user's file, then the repository's, whose rules win."""
        own = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        user = Path(self.configured("core.excludesfile") or f"{own}/git/ignore").expanduser()
        return self.root / user, self.common_dir / "info/exclude"

    def clean(self, path: str, data: bytes) -> bytes:
        """The bytes of a file in the work tree as git stores them, with the line endings of configuration and
        attributes. External filters such as LFS, and ``ident``, are not applied."""
        if b"\r\n" not in data:
            return data  # reading the filters takes longer than hashing
        with failures(f"The filters of {path} cannot be read"):
            # Only newer versions of libgit2 apply filters to bytes. All versions give the id of the filtered file.
            stored = str(self._git.hashfile(path))
        unix = data.replace(b"\r\n", b"\n")
        return unix if blob_id(unix) == stored else data

    def rule_files(self, prefix: str) -> tuple[Path, ...]:
        """The files outside the folder ``prefix`` on which :meth:`is_ignored` and :meth:`clean` depend, existing or
        not; without git's configuration of the user."""
        folders = [self.root]
        for part in Path(prefix).parts:
            folders.append(folders[-1] / part)
        named = [folder / name for folder in folders for name in (".gitignore", ".gitattributes")]
        return (*named, *self._shared_rules, *(self.common_dir / name for name in ("info/attributes", "config")))

    # --- inner -------------------------------------------------------------------------------------

    def _ensure_readable_rules(self) -> None:
        """Raise :class:`GitError` if the work tree has ignore rules that libgit2 would read in an endless loop."""
        self.reload()
        ensure_readable(self._shared_rules)
        for folder, folders, names in os.walk(self.root):
            head = start_of(Path(folder).relative_to(self.root).as_posix())
            folders[:] = [name for name in folders if name != ".git"]
            with contextlib.suppress(GitError):  # our limit for the size of a file of rules is lower than libgit2's
                folders[:] = [name for name in folders if not self.is_ignored(f"{head}{name}/")]
            if ".gitignore" in names:
                ensure_readable([Path(folder, ".gitignore")])

    def configured(self, key: str) -> str | None:
        with failures("The configuration cannot be read"):
            config = self._git.config
            return config[key] if key in config else None  # noqa: SIM401 - it has no get

    def attribute(self, path: str, name: str) -> str | None:
        with failures("The attributes cannot be read"):
            value = self._git.get_attr(path, name)
            return value if isinstance(value, str) else None

    def _first_parents(self, start: str | None, limit: int) -> Iterator[pygit2.Commit]:
        """Up to ``limit`` commits from ``start`` back along the first parents; fewer in a shallow clone."""
        import pygit2

        for _ in range(limit):
            git_object = self._git.get(start) if start else None
            if git_object is None:
                return
            commit = git_object.peel(pygit2.Commit)
            yield commit
            start = next(map(str, commit.parent_ids), None)

    def _commit(self, commit: str) -> tuple[int, tuple[str, ...], str]:
        import pygit2

        commit_object = self._git[commit].peel(pygit2.Commit)
        parents = tuple(map(str, commit_object.parent_ids))
        return commit_object.commit_time, parents, str(commit_object.tree_id)


def _left_out(index: pygit2.Index) -> list[str]:
    """The tracked files that a sparse checkout leaves out of the work tree."""
    from pygit2.ffi import C

    def is_left_out(at: int) -> bool:
        return bool(C.git_index_get_byindex(index._index, at).flags_extended & SKIP_WORKTREE)

    return [os.fspath(index[at].path) for at in range(len(index)) if is_left_out(at)]


def _renames(gone: Collection[str], diff: pygit2.Diff, how: DiffFind) -> dict[str, str]:
    """Path in ``gone`` -> new path in the diff; ``""`` if there is none."""
    diff.find_similar(how)
    renames = {delta.old_file.path: delta.new_file.path for delta in diff.deltas if delta.status_char() == "R"}
    return {path: renames.get(path, "") for path in gone}


def _at(tree: pygit2.Tree, path: str) -> object:
    """The id of the file or folder at a path of a root tree; None if there is none."""
    if not path:
        return tree.id
    try:
        return tree[path].id
    except KeyError:
        return None


def _text(file: Path) -> str | None:
    """The text of a file in the git folder; None if there is no such file."""
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return None
