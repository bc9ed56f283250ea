"""libgit2, opened late, and its failures in words that a person can act on. For :mod:`anvil.git` alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.errors import GitError

if TYPE_CHECKING:
    import pygit2


def open_repository(folder: Path) -> pygit2.Repository:
    """The repository whose work tree is this folder; GitError that says why it cannot be read."""
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

    try:
        return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH)
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        reason = str(error)
        if "not owned by" in reason:
            raise GitError(
                f"The repository {folder} belongs to another user, so git's rules forbid reading it. "
                f"If you trust it: git config --global --add safe.directory '{folder}'"
            ) from error
        if "object format" in reason:
            raise GitError(
                f"The repository {folder} uses SHA-256 object ids, which libgit2 cannot read. "
                "Its pages can still be indexed as files, without commit times."
            ) from error
        raise GitError(f"The repository {folder} cannot be opened: {_reason(error)}.") from error


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Translate the library's failures; a bare KeyError from it means an object that is not there."""
    import pygit2

    try:
        yield
    except KeyError as error:
        missing = (
            f"object {error.args[0]} is missing (a partial or damaged clone)" if error.args else "missing"
        )
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
    """The library's Index, made to be quiet: where opening failed, its destructor complained on stderr as
    well."""
    import pygit2

    class QuietIndex(pygit2.Index):
        def __del__(self) -> None:
            if hasattr(self, "_index"):
                super().__del__()

    return QuietIndex
