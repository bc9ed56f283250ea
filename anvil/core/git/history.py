"""The last commit that touched each path, for many paths in one walk down the history.

Pure: whoever has the commits hands in a function that reads one. Promises the answer of ``git log -1 --
path`` for every path: at a merge a path follows the first parent that holds the same content, and a commit
touches a path when no parent does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from anvil.core.git.objects import Trees


class Commit(NamedTuple):
    """``tree`` identifies the documents' folder, None where it does not exist; ``time`` is seconds since
    1970."""

    time: int
    parents: tuple[str, ...]
    tree: str | None


class Commits:
    """A repository's commits and the folder ``prefix`` in each; every commit is read once.

    ``read`` gives a commit's time, parents and root tree by its id; a shallow clone's boundary has no
    parents.
    """

    def __init__(self, read: Callable[[str], tuple[int, tuple[str, ...], str]], trees: Trees, prefix: str) -> None:
        self._read = read
        self._trees = trees
        self._prefix = prefix
        self._known: dict[str, Commit] = {}
        self.changed = trees.changed

    def commit(self, commit: str) -> Commit:
        known = self._known.get(commit)
        if known is None:
            time, parents, root = self._read(commit)
            folder = self._trees.folder(root, self._prefix)
            known = self._known[commit] = Commit(time, parents, folder)
        return known


def last_touched(
    history: Commits,
    head: str,
    paths: Collection[str],
    known: Mapping[str, int],
    since: str | None,
    boundary: Collection[str],
) -> dict[str, int]:
    """Path -> commit time in seconds, for paths that all exist in ``head``.

    ``known`` holds times that an earlier walk from commit ``since`` found, for paths whose content is still
    the same: a path that gets as far down as ``since`` unchanged needs no further walk. Elsewhere they are
    not used, for beside the line from ``since`` a path may have another past. The commits of ``boundary``
    are where a shallow clone was cut off: they seem to touch everything, so what is known goes first there.
    """
    found: dict[str, int] = {}
    pending: dict[str, set[str]] = {}
    newest_first: list[tuple[int, str]] = []

    def follow(commit: str, along: set[str]) -> None:
        waiting = pending.get(commit)
        if waiting is None:
            # Any order gives the right answer; newest first lets lines that join again be walked as one.
            pending[commit] = along
            heappush(newest_first, (-history.commit(commit).time, commit))
        else:
            waiting |= along

    if paths:
        follow(head, set(paths))
    while newest_first:
        name = heappop(newest_first)[1]
        here = pending.pop(name)
        commit = history.commit(name)
        if name == since or name in boundary:
            found.update((path, known[path]) for path in here & known.keys())
            here -= known.keys()
        for parent in commit.parents:
            if not here:
                break
            before = history.commit(parent).tree
            differing = here & history.changed(before, commit.tree) if before != commit.tree else set()
            here -= differing
            if here:
                follow(parent, here)
            here = differing
        found.update((path, commit.time) for path in here)
    return found
