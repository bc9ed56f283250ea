"""Titles of pages: the one that says most of those that a page has."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

_NO_TITLES = frozenset({"", "_index", "default", "index", "readme", "untitled"})


def says_nothing(title: str) -> bool:
    """Whether a title is only the usual name of a file, such as "README"."""
    return posixpath.splitext(title.strip().lower())[0] in _NO_TITLES


def of_page(path: str, given: str | None, headings: Iterable[tuple[int, str]]) -> str:
    """The title of a page: the one that it was ``given`` or has as h1, else the name of its file.

    The name of the folder is used instead of one that says nothing, and for ``README.md`` or ``index.md`` also instead
    of an h1 below other headings, which is that of a part. ``headings``: level and text, in order.
    """
    folder, name = posixpath.split(path)
    stem = posixpath.splitext(name)[0]
    own = given or ""
    following = iter(headings)
    first = next(following, None)
    is_below = says_nothing(stem) and first is not None and first[1] != own
    is_of_part = is_below and any(text == own for level, text in following if level == 1)
    candidates = ["" if is_of_part else own, stem, posixpath.basename(folder), own]
    candidates += [first[1]] if first is not None else []
    return next((title for title in candidates if not says_nothing(title)), own or stem)
