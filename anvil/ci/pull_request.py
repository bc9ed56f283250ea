"""The pull request that a job runs for: its branch, and the index of the branch that it is for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci import kept_folders
from anvil.errors import AnvilError
from anvil.git.repository import Repository
from anvil.git.tracked_file import TrackedIndex

if TYPE_CHECKING:
    from anvil.api import Anvil


def base_branch() -> str | None:
    """The branch that a pull request is for; None in other runs."""
    return os.environ.get("GITHUB_BASE_REF") or None


def own_branch() -> str:
    """The branch that the run is for."""
    return os.environ.get("GITHUB_HEAD_REF") or os.environ.get("GITHUB_REF_NAME") or ""


def base_commit(opened: Anvil) -> str | None:
    """The commit that a pull request is compared with; None where this checkout does not have it."""
    for revision in _revisions():
        with suppress(AnvilError):
            repository = Repository.discover(opened.folder or Path.cwd())
            if repository is not None:
                return repository.resolve(revision)
    return None


def _revisions() -> list[str]:
    """Where the branch of a pull request is found: below the merge that GitHub checks out, or as fetched."""
    merge = os.environ.get("GITHUB_SHA") if os.environ.get("GITHUB_REF", "").endswith("/merge") else None
    return ([f"{merge}^1"] if merge else []) + [f"origin/{base_branch()}"]


@contextmanager
def base_index(opened: Anvil, kept_index: Path | None, kept_key: str, shard: str | None) -> Iterator[Path | None]:
    """The index of the branch that a pull request is for: the committed one, or the last one that a run kept there.
    ``kept_key``: the cache key from which ``kept_index`` was restored.

    None if there is neither, as in a checkout without history, and for a shard.
    """
    from anvil.index_file import verify

    branch = None if shard else base_branch()
    with ExitStack() as stack:
        base = None
        if branch is not None:
            is_of_base = kept_key.startswith(kept_folders.index_key(opened, shard) + kept_folders.branch_key(branch))
            base = kept_index if is_of_base else None
            for revision in _revisions():
                with suppress(AnvilError):  # no history, or no usable index in that commit
                    tracked = TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)
                    file = stack.enter_context(tracked.file(revision))
                    verify.open_checked(file).close()
                    base = file
                    break
        yield base
