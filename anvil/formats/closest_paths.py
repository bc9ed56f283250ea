"""Paths that are like one that does not exist, for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_TYPED = 500
"""Characters of a typed path that are compared: the time grows with them, and no path is longer by much."""


def file_name(path: str) -> str:
    """The last part of a path or of an address, ``fastapi:guide/a.md``."""
    return path.replace(":", "/").rpartition("/")[2]


def closest_paths(typed: str, paths: Iterable[str], first: Sequence[str] = (), *, limit: int = 3) -> list[str]:
    """``first``, then paths with the same file name, then those spelled alike. Case does not count."""
    import difflib  # most starts need no such message

    typed = typed[:MAX_TYPED].casefold()
    folded: dict[str, list[str]] = {}
    for path in paths:
        folded.setdefault(path.casefold(), []).append(path)
    same_name = [path for path in folded if file_name(path) == file_name(typed)]
    bare_name = [path for path in folded if file_name(path).rpartition(".")[0] == file_name(typed)]
    alike = difflib.get_close_matches(typed, folded, n=limit, cutoff=0.5)
    near = [path for key in (*same_name, *bare_name, *alike) for path in folded[key]]
    return list(dict.fromkeys((*first, *near)))[:limit]
