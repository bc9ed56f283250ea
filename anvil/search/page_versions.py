"""Versions of a page in one index, such as ``docs/v2/`` beside ``docs/v3/``: an answer shows one of them.

A site, or a folder of documents, has a page once for each version. Pages are versions of each other if their addresses,
or their paths without addresses, are the same without the folder of the version.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from anvil.formats.version_names import VERSION_NAMES, VERSION_NUMBER, version_order
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import edition
from anvil.values import PAGE_ENDING

T = TypeVar("T")

NEARLY = 0.8
"""Share of the score of a page's best version from which on a newer one replaces it. With less, the newer one may lack
the section that answers.

Measured with headings as questions to two versions of six documentation sets. Of 709 headings that both versions have,
97 of 100 got the newer page (88 with a share of .9). Of 456 that only the older version has, 63 of 100 got the older
page (73).
"""
MIN_SHARED = 3
"""Pages that a folder of documents must have in common with another version to be a version: ``v2/index.md`` alone may
say how to get to this version."""
_ENDING = re.compile(rf"(?:^|/)(?:index(?:\.\w+)?)?$|(?:{PAGE_ENDING}|\.html?)$", re.I)


class Versioned(NamedTuple):
    """A page of a version. ``family``: what all versions of the page share. ``version``: None for a page in no
    version's folder."""

    family: str
    version: str | None


class Versions(NamedTuple):
    """The pages that have several versions.

    ``pages``: document id -> its :class:`Versioned`. ``families``: family -> the names of its versions, the newest
    first; the one without a name is empty.
    """

    pages: Mapping[int, Versioned]
    families: Mapping[str, tuple[str, ...]]


NO_VERSIONS = Versions({}, {})


def versions(pages: Iterable[tuple[int, str, str | None]]) -> Versions:
    """The versions of ``pages``. Each page is an id, an address or path, and the name of its version, if it has one."""
    members: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    for id_, address, version in pages:
        parts = _ENDING.sub("", address).split("/")
        if version in parts:
            parts.remove(version)
        members["/".join(parts)].append((id_, version))
    # two pages of one version that look alike, a.md and a/index.md, are two pages
    families = {
        family: sorted(found, key=lambda member: newest(member[1]), reverse=True)
        for family, found in members.items()
        if len({version for _, version in found}) == len(found) > 1
    }
    return Versions(
        {id_: Versioned(family, version) for family, found in families.items() for id_, version in found},
        {family: tuple(version or "" for _, version in found) for family, found in families.items()},
    )


def of_index(index: IndexReader) -> Versions:
    """The versions of the pages of an index: of a site as their metadata name them, of a folder by
    :func:`of_folder`."""
    if index.excluded_hashes() is None:
        return of_folder(index.paths())
    return versions((page.id, page.url or page.file_path, edition(page.metadata).version) for page in index.documents())


def of_folder(paths: Iterable[tuple[int, str]]) -> Versions:
    """The versions in a folder of documents: folders at its top named ``v2``, ``1.x`` and the like, or ``latest``
    beside one. All other pages are in no version's folder."""
    pages = [(id_, path, path.partition("/")[0] if "/" in path else "") for id_, path in paths]
    tops = {top for _, _, top in pages}
    if not any(map(VERSION_NUMBER.fullmatch, tops)):
        return NO_VERSIONS
    folders = {top for top in tops if VERSION_NUMBER.fullmatch(top) or top.lower() in VERSION_NAMES}

    def versions_in(folders: Collection[str]) -> Versions:
        return versions((id_, path, top if top in folders else None) for id_, path, top in pages)

    shared = Counter(page.version for page in versions_in(folders).pages.values())
    return versions_in([folder for folder in folders if shared[folder] >= MIN_SHARED])


def newest(version: str | None) -> tuple[bool, Any]:
    """A sort key, highest for the version that most readers want: the one without a name, then by
    :func:`version_order`."""
    return version is None, version_order(version or "")


def one_of_each(
    results: Sequence[T],
    versions: Versions,
    question: str,
    page: Callable[[T], int],
    score: Callable[[T], float],
) -> list[T]:
    """Ranked results without other versions of the same page, in the same order.

    The newest version whose best score is near that of the page's best one stays. A version that the question names
    goes before it.
    """
    if not versions.pages:
        return list(results)
    words = frozenset(question.lower().split())
    best: dict[str, dict[int, float]] = defaultdict(dict)  # family -> page -> its best score
    for result in results:
        versioned = versions.pages.get(page(result))
        if versioned is not None:
            scores = best[versioned.family]
            scores[page(result)] = max(score(result), scores.get(page(result), score(result)))
    kept: dict[str, int] = {}
    for family, scores in best.items():
        enough = NEARLY * max(scores.values())

        def preference(page: int, family: str = family, enough: float = enough) -> tuple[bool, bool, object]:
            version = versions.pages[page].version
            is_named = version is not None and not words.isdisjoint((version.lower(), f"v{version.lower()}"))
            return is_named, best[family][page] >= enough, newest(version)

        kept[family] = max(scores, key=preference)
    return [
        result
        for result in results
        if (versioned := versions.pages.get(page(result))) is None or kept[versioned.family] == page(result)
    ]


def others(versions: Versions, page: int) -> tuple[str, ...]:
    """The names of the other versions of a page, the newest first."""
    versioned = versions.pages.get(page)
    if versioned is None:
        return ()
    return tuple(name for name in versions.families[versioned.family] if name and name != versioned.version)
