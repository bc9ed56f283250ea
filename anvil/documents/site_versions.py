"""Versions of a site in folders of their own, such as ``1.2/`` and ``latest/``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_NUMBER = re.compile(
    r"v\d+(?:\.(?:\d+|x))*(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?|"
    r"\d+(?:\.(?:\d+|x))+(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?",
    re.I,
)
_NAMES = frozenset({"latest", "stable", "dev", "main", "master", "next", "nightly", "current", "canary", "edge"})
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")


def version_folders(paths: Iterable[str], declared: Collection[str] = ()) -> frozenset[str]:
    """The folders of versions, as a site's pages show them: ``1.2``, or ``de/1.2``.

    A folder is one if it has a page of its own and its name is a version's number. Names such as ``latest`` are one
    next to a number. ``declared``: those that a file of the site names.
    """
    starts = {path.rpartition("/")[0] for path in paths if path.endswith(("/index.html", "/index.htm"))}
    candidates = {folder for folder in starts if folder.count("/") == 0 or _is_language(folder)}
    numbered = {folder for folder in candidates if _NUMBER.fullmatch(_name(folder)) or folder in declared}
    above = {folder.rpartition("/")[0] for folder in numbered}
    named = {f for f in candidates if _name(f).lower() in _NAMES and f.rpartition("/")[0] in above}
    return frozenset(numbered | named)


def version_of(path: str, folders: Collection[str]) -> str | None:
    """The version that a page is of; None for one in no version's folder."""
    parts = path.split("/")
    for depth in (1, 2):
        folder = "/".join(parts[:depth])
        if len(parts) > depth and folder in folders:
            return _name(folder)
    return None


def speaks(own: str, language: str) -> bool:
    """Whether a page's language is the given one: ``en-GB`` is ``en`` too."""
    own, language = own.lower().replace("_", "-"), language.lower().replace("_", "-")
    return own == language or own.startswith(f"{language}-")


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]


def _is_language(folder: str) -> bool:
    first, _, rest = folder.partition("/")
    return "/" not in rest and bool(_LANGUAGE.fullmatch(first))
