"""Versions, translations and copies of a page: an answer shows one of them.

Pages are versions of each other, such as ``docs/v2/a.md`` and ``docs/v3/a.md``, if their addresses, or their paths
without addresses, are the same without the folder of the version. Translations are the same without the language.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from anvil.formats import patterns
from anvil.formats.version_names import (
    cached_for_pages,
    closest_tags,
    plain,
    version_folders,
    version_of,
    version_order,
    without_prefix,
)
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import CHUNK_BITS, SearchedText, VersionAndLanguage, version_and_language
from anvil.search.ranking import SCORE_DIGITS, RankedChunk
from anvil.text.query import AROUND
from anvil.values import PAGE_ENDING

NEWER_SHARE = 0.8
"""Share of the score of a page's best version from which on a newer one replaces it. With less, the newer one may lack
the section that answers.

Measured with headings as questions to two versions of six documentation sets. Of 709 headings that both versions have,
97 of 100 got the newer page (88 with a share of .9). Of 456 that only the older version has, 63 of 100 got the older
page (73).
"""
OTHER_SHARE = 0.8
"""Share of its score that a page keeps if the wanted version lacks it: its subject was moved or removed. With
more, older pages go before those of the newest version; with less, a page that only an older version has is found less
often (``benchmarks/versioned_docs.py``)."""
LEAST_SHARE = 0.1
"""A version needs this share of the pages that the largest version has in common with others: a single ``index.md``
outside of all folders of versions is not the newest version."""
_ENDING = re.compile(rf"(?:^|/)(?:index(?:\.\w+)?)?$|(?:{PAGE_ENDING}|\.html?)$", re.I)


class Versioned(NamedTuple):
    """A page of a version. ``family``: what all versions of the page share. ``version``: None for a page in no
    version's folder. ``root``: the folder of these folders."""

    family: str
    version: str | None
    root: str


class Versions(NamedTuple):
    """The versions of pages of which at least one has several.

    - ``pages``: document id -> its :class:`Versioned`.
    - ``families``: family -> the names of the versions that have the page.
    - ``around``: family -> the names of all versions of the documentation or component that the page belongs to.

    Names are in order, the newest first. The name for pages outside of folders of versions is empty.
    """

    pages: Mapping[int, Versioned]
    families: Mapping[str, tuple[str, ...]]
    around: Mapping[str, tuple[str, ...]]


NO_VERSIONS = Versions({}, {}, {})
Editions: TypeAlias = Mapping[str, VersionAndLanguage]
"""Path of a page -> the version and language in its metadata."""


class Wanted(NamedTuple):
    """The versions that a question names; none for the newest. ``words``: the question without the name of its only
    version."""

    versions: frozenset[str]
    words: str

    def among(self, names: Sequence[str]) -> str:
        """The newest wanted one of the ``names`` of versions, which are newest first; the newest if none is wanted."""
        return next((name for name in names if name in self.versions), names[0])


def versions(pages: Iterable[tuple[int, str, str | None]]) -> Versions:
    """The versions of ``pages``. Each page is an id, an address or path, and the name of its version, if it has one."""
    members: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    roots: dict[str, str] = {}  # family -> the folder of its versions' folders
    for id_, address, version in pages:
        parts = _ENDING.sub("", address).split("/")
        if version in parts:
            depth = parts.index(version)
            family = "/".join(parts[:depth] + parts[depth + 1 :])
            roots[family] = "/".join(parts[:depth])
        else:
            family = "/".join(parts)
        members[family].append((id_, version))
    # Two pages of one version that look alike, a.md and a/index.md, are two pages.
    families = [
        family for family in roots if len({version or "" for _, version in members[family]}) == len(members[family])
    ]
    return _gathered({id_: Versioned(family, v, roots[family]) for family in families for id_, v in members[family]})


def _gathered(pages: Mapping[int, Versioned]) -> Versions:
    families: dict[str, set[str]] = defaultdict(set)
    for page in pages.values():
        families[page.family].add(page.version or "")
    shared: dict[str, Counter[str]] = defaultdict(Counter)  # folder -> version -> its pages that have others
    for page in pages.values():
        if len(families[page.family]) > 1:
            shared[page.root][page.version or ""] += 1
    if not shared:
        return NO_VERSIONS
    around = {
        root: _newest_first(name for name, count in counts.items() if LEAST_SHARE * max(counts.values()) <= count)
        for root, counts in shared.items()
    }
    return Versions(
        pages,
        {family: _newest_first(own) for family, own in families.items()},
        {page.family: around.get(page.root, ()) for page in pages.values()},
    )


def _newest_first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (newest(name or None), name), reverse=True))


def of_index(index: IndexReader) -> Versions:
    """The versions of the pages of an index: of a site as their metadata name them, of a folder by
    :func:`of_folder`."""
    if index.excluded_hashes() is None:
        return of_folder(index.paths())
    return versions(
        (page.id, page.url or page.file_path, version_and_language(page.metadata).version) for page in index.documents()
    )


def editions(index: IndexReader) -> Editions:
    return {page.file_path: version_and_language(page.metadata) for page in index.documents()}


@cached_for_pages
def of_folder(paths: Iterable[tuple[int, str]]) -> Versions:
    """The versions in a folder of documents: :func:`version_folders`. All other pages are in no version's folder."""
    pages = [(id_, plain(path)) for id_, path in paths]
    folders = version_folders(path for _, path in pages)
    return versions((id_, path, version_of(path, folders)) for id_, path in pages) if folders else NO_VERSIONS


def among(
    versions: Versions, pages: Iterable[tuple[int, str]], file_filter: str | None, paths: Collection[str] | None
) -> Versions:
    """The versions of the ``pages`` in a filter and ``paths``: these may leave out the newest one."""
    is_selected = patterns.selects(file_filter or "")
    chosen = {id_ for id_, path in pages if (paths is None or path in paths) and is_selected(path)}
    return _gathered({id_: page for id_, page in versions.pages.items() if id_ in chosen})


def wanted(versions: Versions, question: str) -> Wanted:
    """The versions that a question names. With two of them, as in "from v1 to v2", their names stay in the words."""
    words = {word: word.lower().strip(AROUND) for word in question.split()}
    version_of = names_by_spelling(versions)
    named = frozenset(version_of[word] for word in words.values() if word in version_of)
    if len(named) != 1:
        return Wanted(named, question)
    others = " ".join(word for word in question.split() if words[word] not in version_of)
    return Wanted(named, others or question)


def names_by_spelling(versions: Versions) -> dict[str, str]:
    """Word by which a question names a version -> the name of the version."""
    distinct = dict.fromkeys(versions.around.values())  # families share them
    names = dict.fromkeys(name for around in distinct for name in around)
    return {spelling: name for name in names for spelling in sorted(spellings(name))}


def closest_versions(versions: Versions, editions: Editions, version: str) -> Sequence[str]:
    """The names that are nearest to a version that no page has, without a number the newest. Empty if a page has it."""
    folders = (page.version for page in versions.pages.values())
    names = {name for name in (*folders, *(own.version for own in editions.values())) if name is not None}
    if is_of_version(names, version):
        return ()
    has_number = any(map(str.isdigit, version))
    return closest_tags(names, "", version, 3) if has_number else _newest_first(names)[:3]


def is_of_version(names: Iterable[str | None], version: str) -> bool:
    """Whether one of the ``names`` is this version. ``1.2`` is ``v1.2`` too, as in a question."""
    return any(name is not None and (version == name or version.lower() in spellings(name)) for name in names)


@lru_cache(1024)  # names of few folders, for many pages
def spellings(version: str) -> frozenset[str]:
    """The words by which a question names a version: ``1.2`` and ``v1.2`` for ``v1.2.x``.

    A name without a number has none: "the next page" does not ask for the version ``next``. Nor do "2 results" ask for
    version 2.
    """
    number = without_prefix(version)
    if not number[:1].isdigit():
        return frozenset()
    short = number.removesuffix(".x")
    return frozenset({f"v{number}", f"v{short}", *(each for each in (version.lower(), number, short) if "." in each)})


def newest(version: str | None) -> tuple[bool, Any]:
    """A sort key, highest for the version that most readers want: the one without a name, then as
    :func:`version_order`."""
    return version is None, version_order(version or "")


def left_out(versions: Versions, want: Wanted) -> frozenset[int]:
    """The pages of which another version is searched first: the wanted one, or the newest if the page is not in
    that."""
    chosen = {family: want.among(names) for family, names in versions.families.items()}
    return frozenset(id_ for id_, page in versions.pages.items() if (page.version or "") != chosen[page.family])


def is_foreign(versions: Versions, want: Wanted, page: int) -> bool:
    """Whether a page is in another version than those that the question names or, if it names none, is not in the
    newest version of the documentation that it belongs to."""
    if page not in versions.pages:
        return False
    family, version, _ = versions.pages[page]
    around = versions.around[family]
    if asked := want.versions.intersection(around):
        return (version or "") not in asked
    return bool(around) and around[0] not in versions.families[family]


def in_version(
    results: Sequence[RankedChunk], versions: Versions, want: Wanted, *, is_weighed: bool
) -> list[RankedChunk]:
    """The results with one version of each page, best first: the wanted version, else the newest whose best score is
    near that of the page's best one.

    ``is_weighed``: a page for which :func:`is_foreign` keeps :data:`OTHER_SHARE` of its score.
    """
    best: dict[str, dict[int, float]] = defaultdict(dict)  # family -> page -> its best score, without links
    for result in results:
        page = result.row >> CHUNK_BITS
        if page in versions.pages:
            scores = best[versions.pages[page].family]
            own_score = result.score - result.summands[3]  # others link to a page, not to what it says
            scores[page] = max(own_score, scores.get(page, own_score))

    def preference(page: int) -> tuple[bool, bool, object]:
        family, version, _ = versions.pages[page]
        is_near = best[family][page] >= NEWER_SHARE * max(best[family].values())
        return version in want.versions, is_near, newest(version)

    kept = {max(scores, key=preference) for scores in best.values()}
    own = [result for result in results if (page := result.row >> CHUNK_BITS) not in versions.pages or page in kept]
    if not is_weighed:
        return own
    weighed = [
        result._replace(
            score=round(OTHER_SHARE * result.score, SCORE_DIGITS), summands=[OTHER_SHARE * s for s in result.summands]
        )
        if is_foreign(versions, want, result.row >> CHUNK_BITS)
        else result
        for result in own
    ]
    return sorted(weighed, key=lambda result: -result.score)  # stable


def others(versions: Versions, page: int) -> tuple[str, ...]:
    """The names of the other versions of a page, the newest first."""
    versioned = versions.pages.get(page)
    if versioned is None:
        return ()
    return tuple(name for name in versions.families[versioned.family] if name and name != versioned.version)


# --- translations and copies ------------------------------------------------------------------------------------------


def without_copies(
    results: Sequence[RankedChunk], texts: Mapping[int, SearchedText], versions: Versions, wanted: Collection[str]
) -> list[RankedChunk]:
    """The results without copies: the same text below the same headings in another page.

    The copy in a wanted version stays, else that in the newest. Of equal versions the best result stays.
    """
    copies: dict[tuple[str, str, str], list[RankedChunk]] = defaultdict(list)
    for result in results:
        copies[texts[result.row][:3]].append(result)  # title, headings and content

    def preference(copy: RankedChunk) -> tuple[bool, tuple[bool, Any]]:
        page = versions.pages.get(copy.row >> CHUNK_BITS)
        version = None if page is None else page.version
        return version in wanted, newest(version)

    return [max(same, key=preference)._replace(score=same[0].score) for same in copies.values()]


def one_translation(results: Sequence[RankedChunk], translated: Mapping[int, str]) -> list[RankedChunk]:
    """The results without other translations of a page. The best one stays: most often that in the question's
    language."""
    kept: dict[str, int] = {}
    pages = ((result, result.row >> CHUNK_BITS) for result in results)
    return [
        result for result, page in pages if page not in translated or kept.setdefault(translated[page], page) == page
    ]
