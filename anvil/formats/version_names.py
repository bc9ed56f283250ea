"""Names of versions and languages: their folders, translations of a page, and tags such as ``@acme/ui@1.2.0``."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache, wraps
from itertools import islice, zip_longest
from typing import TypeVar

from anvil.formats.patterns import lazy_pattern

T = TypeVar("T")

ALIASES = {"latest": 2, "current": 2, "stable": 3}
"""Names of the newest version -> their rank, which is above that of numbers. On Read the Docs, "latest" is the main
branch, so "stable" is ranked higher."""
PRERELEASE = re.compile(
    r"(?:^|[^a-z])(?:a|b|c|rc|alpha|beta|pre|preview|dev|next|canary)\b|\d(?:a|b|rc)\d", re.IGNORECASE
)


def newest(versions: Iterable[str]) -> str:
    """The newest of several versions. Each release counts as newer than all pre-releases. ``stable`` and ``latest`` are
    newer than all numbers, and other names without a number are older."""
    return max(versions, key=version_order)


@lru_cache(10_000)  # few names, for many pages
def version_order(version: str) -> tuple[int, bool, list[tuple[float, str]]]:
    """The sort key of a version for :func:`newest`."""
    parts = re.findall(r"\d{1,18}|[a-z]+", without_prefix(version))
    has_number = any(part.isdigit() for part in parts)
    # 1.10 comes after 1.9, and 1.x after all of them. Letters have a number, too: numbers and texts cannot be compared.
    natural = [(float(part), "") if part.isdigit() else (math.inf if part == "x" else -1.0, part) for part in parts]
    return ALIASES.get(version.lower(), int(has_number)), not PRERELEASE.search(version), natural


_NUMBER = (
    r"(?:(?:version|release|rel)-)?(?:v\d+(?:\.(?:\d+|x))*(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?|"
    r"\d+(?:\.(?:\d+|x))+(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre|post)\.?\d*)?)"
)
VERSION_NUMBER = lazy_pattern(_NUMBER, re.I)
"""The name of a folder with one version of the documentation: ``v2``, ``1.x``, ``1.2rc1``, ``release-1.2``."""
VERSION_NAMES = frozenset({"latest", "stable", "dev", "main", "master", "next", "nightly", "current", "canary", "edge"})
"""Names of folders that also hold a version, beside folders named by numbers."""
MIN_SHARED = 3
"""Pages that a folder must have in common with another version to be a version: ``v2/index.md`` alone may say how to
get to this version."""


def without_prefix(version: str) -> str:
    """A version in lower case without ``v`` and ``release-`` in front."""
    return re.sub(r"^(?:(?:version|release|rel)-)?v?", "", version.lower())


@lru_cache(10_000)
def is_version(name: str) -> bool:
    """Whether a folder beside other versions is a version. There, a number needs no ``v`` and no dot."""
    is_short = name.isdecimal() and len(name) <= 3
    return is_short or name.lower() in VERSION_NAMES or VERSION_NUMBER.fullmatch(name) is not None


def version_folders(paths: Iterable[str]) -> frozenset[str]:
    """The folders that have a version of the documentation each, such as ``v2`` or ``docs/en/1.x``.

    They are beside each other, and each has :data:`MIN_SHARED` paths in common with another or with the folder around
    them. Two have names such as ``latest``, or one has a number. Below the top and ``docs`` it has a dot, because
    ``api/v1`` and ``api/v2`` may be APIs that are both in use.
    """
    known = frozenset(paths)
    inside: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))  # folder -> version -> paths
    for path in known:
        parts = path.split("/")
        for depth, name in enumerate(parts[:-1]):
            if is_version(name):
                inside["/".join(parts[:depth])][name].append("/".join(parts[depth + 1 :]))
    found: set[str] = set()
    for around, versions in inside.items():
        start = f"{around}/" if around else ""
        counts = Counter(path for own in versions.values() for path in own)

        def is_shared(path: str, counts: Counter[str] = counts, start: str = start) -> bool:
            return counts[path] > 1 or start + path in known

        names = [name for name, own in versions.items() if sum(map(is_shared, own)) >= MIN_SHARED]
        is_clear = around.rpartition("/")[2] in ("", "docs")
        has_number = any(VERSION_NUMBER.fullmatch(name) and (is_clear or "." in name) for name in names)
        if has_number or sum(name.lower() in VERSION_NAMES for name in names) > 1:
            found.update(start + name for name in names)
    return frozenset(found)


def version_of(path: str, folders: Collection[str]) -> str | None:
    """The version of a page: the name of the version folder that it is in; None outside of these."""
    parents = path.split("/")[:-1] if folders else []
    return next((name for depth, name in enumerate(parents, 1) if "/".join(parents[:depth]) in folders), None)


def by_page(paths: Iterable[str]) -> list[list[str]]:
    """The paths of each page in all its versions. The first is in no version's folder, else in the newest version."""
    usual = [(plain(path), path) for path in paths]
    folders = version_folders(path for path, _ in usual)
    pages = [(version_of(path, folders), path, original) for path, original in usual]
    pages.sort(key=lambda page: (page[0] is None, version_order(page[0] or "")), reverse=True)
    versions: dict[str, list[str]] = defaultdict(list)
    for version, path, original in pages:
        versions[path if version is None else f"/{path}".replace(f"/{version}/", "/", 1)[1:]].append(original)
    return list(versions.values())


# --- languages -------------------------------------------------------------------------------------------

LANGUAGE_NAME = lazy_pattern(
    r"(?:ar|az|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|gu|he|hi|hr|hu|id|it|ja|ka|ko|lt|lv|mr|ms|nb|nl|pl|pt|ro|ru|sk|sl"
    r"|sq|sr|sv|ta|te|th|tr|uk|ur|uz|vi|zh)(?:[-_](?:[a-z]{2,4}|[A-Z]{2}|H[a-z]{3}))?|[a-z]{2,3}-[A-Z]{2}"
)
"""The name of a folder with a translation of the documentation: ``de``, ``pt-BR``, ``zh-Hans``, ``ckb-IR``."""
_ARRANGEMENTS = tuple(
    (lazy_pattern(rf"(^|/){arranged}", re.I), usual)
    for arranged, usual in (
        (r"website/(?=(?:docs|versioned_docs|i18n)/)", r"\1"),
        (r"versioned_docs/version-", r"\1docs/"),
        (r"i18n/([^/]+)/docusaurus-plugin-content-docs/(?:current/|version-)", r"\1\2/docs/"),
        (rf"(?:archived?|archives|old|older|previous|versions)/(?=(?:{_NUMBER}|{'|'.join(VERSION_NAMES)})/)", r"\1"),
    )
)
"""Patterns of folders of Docusaurus and of archives, each with the usual folders in their place."""
NO_LANGUAGE = "", ""
_ENDINGS = "*"
"""In place of a folder, for languages before the endings of files."""
OTHER_MEANINGS = frozenset({"ca", "cs", "et", "hi", "id", "it", "ms", "sl", "ta", "te"})
"""Names of languages that are also words of software, such as certificate authorities, C#, ids, integration tests and
milliseconds. They count beside other languages."""
CLEAR_LANGUAGES = frozenset({"ja", "ko", "ru", "uk", "zh"})
"""Names of folders that mean nothing else, as names with a region do, such as ``pt-BR``."""


def plain(path: str) -> str:
    """The path of a page as if its version and language had the usual folders: ``docs/1.0/a.md`` for Docusaurus'
    ``versioned_docs/version-1.0/a.md`` and for ``docs/archive/1.0/a.md``."""
    folders, slash, name = path.rpartition("/")
    return _usual(folders + slash) + name


@lru_cache(10_000)  # few folders, for many pages
def _usual(folders: str) -> str:
    for arranged, usual in _ARRANGEMENTS:
        folders = arranged.sub(usual, folders)
    return folders


def cached_for_pages(find: Callable[[Iterable[tuple[int, str]]], T]) -> Callable[[Iterable[tuple[int, str]]], T]:
    """``find``, a function of (id, path) of all pages, with a cache: most edits change no path."""
    cached = lru_cache(4)(find)
    return wraps(find)(lambda pages: cached(tuple(pages)))


@cached_for_pages
def translations(paths: Iterable[tuple[int, str]]) -> Mapping[int, str]:
    """The translated pages: document id -> its path without the language, which its translations have too.

    A language is a folder, as in ``docs/de/a.md``, or before the ending, as in ``a.de.md``. It has three or more pages,
    and half of its pages unless its name is clear, in common with languages beside it or with pages that name none.
    """
    members: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)  # path without the language -> place -> document
    for id_, path in paths:
        place, rest = _without_language(plain(path))
        members[rest][place] = id_
    pages_of = Counter(place for pages in members.values() for place in pages)
    shared = Counter(place for pages in members.values() if len(pages) > 1 for place in pages)
    beside: dict[str, set[str]] = defaultdict(set)  # folder -> the languages in it
    for around, language in pages_of.keys() - {NO_LANGUAGE}:
        beside[around].add(language)

    def is_language(place: tuple[str, str]) -> bool:
        around = place[0]
        # Others may lag behind the largest language of a folder.
        is_largest = len(beside[around]) > 1 and pages_of[place] == max(pages_of[around, own] for own in beside[around])
        is_clear = len(place[1]) > 2 or place[1] in CLEAR_LANGUAGES
        return shared[place] >= MIN_SHARED and (is_largest or is_clear or 2 * shared[place] >= pages_of[place])

    places = {place for place in shared if place != NO_LANGUAGE and is_language(place)}
    languages = {around: {own for other, own in places if other == around} for around, _ in places}
    places = {place for place in places if not languages[place[0]] <= OTHER_MEANINGS} | {NO_LANGUAGE}
    kept = {rest: [id_ for place, id_ in pages.items() if place in places] for rest, pages in members.items()}
    return {id_: rest for rest, pages in kept.items() if len(pages) > 1 for id_ in pages}


def _without_language(path: str) -> tuple[tuple[str, str], str]:
    """The folder around the language in a path and the language, or :data:`NO_LANGUAGE`; and the path without it."""
    *folders, name = path.split("/")
    for number, folder in enumerate(folders):
        if LANGUAGE_NAME.fullmatch(folder):
            around = "/".join(folders[:number])
            return (around, folder.lower()), "/".join([*folders[:number], *folders[number + 1 :], name])
    stem, dot, ending = name.rpartition(".")
    start, _, language = stem.rpartition(".")
    if start and LANGUAGE_NAME.fullmatch(language):
        return (_ENDINGS, language.lower()), "/".join([*folders, start + dot + ending])
    return NO_LANGUAGE, path


# --- tags ------------------------------------------------------------------------------------------------

_TAGS = (
    *("v{}", "{}"),
    *(f"{{name}}{between}{{}}" for between in ("@", "@v", "-", "-v", "/", "/v", "==", "_")),
    *("release-{}", "release/{}", "release_{}", "rel_{}", "rel-{}", "r{}", "V{}", "version-{}"),
)
"""The forms of tags, the most usual first."""


def _tag_names(name: str, version: str) -> list[str]:
    """The tags that can mark this version of the package, the most usual first."""
    short = name.rpartition("/")[2]  # without the scope of @scope/pkg
    names = [name, short, name.replace("-", "_"), name.replace("-", ".")]
    # Some projects have the tag 1.2 for version 1.2.0.
    versions = [version, *([version.removesuffix(".0")] if re.fullmatch(r"\d+\.\d+\.0", version) else [])]
    versions += [number.replace(".", "_") for number in versions]
    tags = (tag.format(number, name=own) for number in versions for tag in _TAGS for own in names)
    return list(dict.fromkeys(tags))


def find_tag(tags: Iterable[str], name: str, version: str) -> str | None:
    """The tag of this version; None if there is none. A tag with the name of the package is preferred, because a
    repository of several packages has a tag for each of them."""
    existing = set(tags)
    matching = [tag for tag in _tag_names(name, version) if tag in existing]
    short = name.rpartition("/")[2]
    own = [tag for tag in matching if tag.startswith((name, short, short.replace("-", "_")))]
    return next(iter(own or matching), None)


def closest_tags(tags: Iterable[str], name: str, version: str, limit: int) -> list[str]:
    """The tags whose numbers are nearest to those of the version, the nearest first.

    Only numbers are compared, as a repository may have many long tags, and comparing texts takes more than linear time.
    """
    short, wanted = name.rpartition("/")[2], _numbers(version)

    def distance(tag: str) -> tuple[list[int], bool, str]:
        pairs = zip_longest(_numbers(tag.replace(short, "")), wanted, fillvalue=0)
        return [abs(number - other) for number, other in pairs], short not in tag, tag

    return heapq.nsmallest(limit, tags, distance)


def _numbers(text: str) -> list[int]:
    return [int(match[0]) for match in islice(re.finditer(r"\d{1,12}", text), 6)]
