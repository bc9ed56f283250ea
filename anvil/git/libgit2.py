"""Opening, merging and configuring with libgit2, and translation of its errors."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.errors import GitError, NotOwned

if TYPE_CHECKING:
    import pygit2


def open_repository(folder: Path) -> pygit2.Repository:
    """The repository with this work tree. Raises :class:`GitError`."""
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

    try:
        return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH)
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        reason = str(error)
        if "not owned by" in reason:
            trust = shlex.join(["git", "config", "--global", "--add", "safe.directory", folder.as_posix()])
            raise NotOwned(
                f"The repository {folder} belongs to another user, so git's rules forbid reading it. "
                f"If you trust it: {trust}",
                trust,
            ) from error
        if "object format" in reason:
            raise GitError(
                f"The repository {folder} uses SHA-256 object ids, which libgit2 cannot read. "
                "Its pages can still be indexed as files, without commit times."
            ) from error
        raise GitError(f"The repository {folder} cannot be opened: {_reason(error)}.") from error


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Translate libgit2's errors. Its KeyError means that an object is missing."""
    import pygit2

    try:
        yield
    except KeyError as error:
        missing = f"object {error.args[0]} is missing (a partial or damaged clone)" if error.args else "missing"
        raise GitError(f"{what}: {missing}.") from error
    except (pygit2.GitError, ValueError, OSError) as error:
        raise GitError(f"{what}: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    reason = str(error).rstrip(".")
    if "'link'" in reason:
        return "it is a split index, which libgit2 cannot read; run `git update-index --no-split-index`"
    if "'sdir'" in reason:
        return "it is a sparse index, which libgit2 cannot read; run `git sparse-checkout disable`"
    return reason


def index_class() -> type[pygit2.Index]:
    """pygit2's Index, whose destructor prints an error to stderr when opening failed, without that."""
    import pygit2

    class QuietIndex(pygit2.Index):
        def __del__(self) -> None:
            if hasattr(self, "_index"):
                super().__del__()

    return QuietIndex


def merge(
    handle: pygit2.Repository, base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Merge three states of a folder (path -> blob id) as git does; the result, and the paths with a conflict.

    Renames are followed. Texts that changed on both sides in different places are combined to new blobs, which are
    written to the repository. For a path with a conflict, or with missing blobs, one side is used.
    """
    import pygit2

    sides = {path: (base.get(path), ours.get(path), theirs.get(path)) for path in {*base, *ours, *theirs}}
    merged = {path: ids[0] for path, ids in sides.items() if ids[0] and len(set(ids)) == 1}
    moved = {path: ids for path, ids in sides.items() if path not in merged}
    with failures("The pages cannot be merged"):
        here = {item for ids in moved.values() for item in ids if item is None or item in handle}

        def tree(side: int) -> pygit2.Oid:
            index = pygit2.Index()
            for path, ids in sorted(moved.items()):
                blob = ids[side]
                if blob is not None and here.issuperset(ids):
                    index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=blob), pygit2.enums.FileMode.BLOB))
            return index.write_tree(handle)

        merged_index = handle.merge_trees(tree(0), tree(1), tree(2))
        torn = {side.path for item in merged_index.conflicts or () for side in item if side is not None}
        merged |= {item.path: str(item.id) for item in merged_index if item.path not in torn}
    for path, (before, own, other) in moved.items():
        if path in torn or not here.issuperset((before, own, other)):
            if path not in torn and own == before and other in here:
                chosen = other
            elif path not in torn and other in (before, own):
                chosen = own
            else:
                torn.add(path)
                chosen = own or (other if other in here else None)
            if chosen is not None:
                merged[path] = chosen
    return merged, tuple(sorted(torn))


def merge_texts(handle: pygit2.Repository, base: str, ours: str, theirs: str, path: str) -> tuple[str, bool]:
    """Merge three versions of a file as git does; the text with marks of conflicts, and whether it has none. The
    versions are written to the repository as blobs."""
    import pygit2

    with failures(f"{path} cannot be merged"):

        def entry(text: str) -> pygit2.IndexEntry:
            return pygit2.IndexEntry(path, handle.create_blob(text.encode()), pygit2.enums.FileMode.BLOB)

        result = handle.merge_file_from_index(entry(base), entry(ours), entry(theirs))
    return result.contents, result.automergeable


def configure(file: Path, values: Mapping[str, str | None]) -> None:
    """Set keys of a git configuration file; None removes one."""
    import pygit2

    with failures(f"{file} cannot be written"):
        config = pygit2.Config(str(file))
        for key, value in values.items():
            if value is not None:
                config[key] = value
            elif key in config:
                del config[key]
