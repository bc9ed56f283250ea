"""The last commit that changed each path, for many paths in one walk through the history.

The result is that of ``git log -1 -- path`` for every path. At a merge, a path follows the first parent with the same
content. A commit changed a path when no parent has that content. The caller passes a function that reads a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from anvil.git.objects import Trees


class Commit(NamedTuple):
    """``tree``: the id of the documents' folder, None without one. ``time``: seconds since 1970."""

    time: int
    parents: tuple[str, ...]
    tree: str | None


class Commits:
    """A repository's commits, with the folder ``prefix`` of each. A commit is read once.

    ``read``: commit id -> time, parents and root tree. The last commits of a shallow clone have no parents.
    """

    def __init__(self, read: Callable[[str], tuple[int, tuple[str, ...], str]], trees: Trees, prefix: str) -> None:
        self._read = read
        self._trees = trees
        self._prefix = prefix
        self._known: dict[str, Commit] = {}
        self.changed = trees.changed

    def commit(self, commit: str) -> Commit:
        cached = self._known.get(commit)
        if cached is None:
            time, parents, root = self._read(commit)
            folder = self._trees.folder(root, self._prefix)
            cached = self._known[commit] = Commit(time, parents, folder)
        return cached


def last_touched(
    history: Commits,
    head: str,
    paths: Collection[str],
    known_times: Mapping[str, int],
    since: str | None,
    boundary: Collection[str],
) -> dict[str, int]:
    """Path -> commit time in seconds, for paths that all exist in ``head``.

    ``known_times``: the result of an earlier walk from commit ``since``, for paths with the same content as then. A
    path that reaches ``since`` unchanged has that time. It is not used at other commits, because a path can have
    another history there. ``boundary``: the last commits of a shallow clone. They seem to change every path, so known
    times are used there too.
    """
    times: dict[str, int] = {}
    pending: dict[str, set[str]] = {}
    newest_first: list[tuple[int, str]] = []

    def follow(commit: str, along: set[str]) -> None:
        waiting = pending.get(commit)
        if waiting is None:
            # Any order is correct. With the newest first, branches that join again are walked once.
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
            times.update((path, known_times[path]) for path in here & known_times.keys())
            here -= known_times.keys()
        for parent in commit.parents:
            if not here:
                break
            before = history.commit(parent).tree
            differing = here & history.changed(before, commit.tree) if before != commit.tree else set()
            here -= differing
            if here:
                follow(parent, here)
            here = differing
        times.update((path, commit.time) for path in here)
    return times
