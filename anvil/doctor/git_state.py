"""Git: the repository of the documents."""

from __future__ import annotations

from collections.abc import Iterator

from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding
from anvil.errors import GitError, NotOwned


def examine(place: Place) -> Iterator[Finding]:
    """Whether git's data can be read, and whether the history is complete."""
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(place.folder)
        head = repository.head() if repository else None
        commit = repository.short(head) if repository and head else None
    except NotOwned as error:
        yield Finding("git", "wrong", str(error).partition(" If you trust")[0], error.trust_command)
        return
    except GitError as error:
        yield Finding("git", "wrong", f"{error} Until then pages are indexed without the times of commits.")
        return
    if repository is None:
        yield Finding("git", "ok", "The documents are in no repository: their times are those of the files.")
    elif commit is None:
        yield Finding("git", "ok", f"The repository {repository.root} has no commit yet.")
    elif repository.is_shallow:
        text = f"HEAD is {commit}. The clone is shallow: older pages get the time of its first commit."
        yield Finding("git", "note", text, "git fetch --unshallow")
    else:
        yield Finding("git", "ok", f"HEAD of {repository.root} is {commit}.")
