"""The source file of each page of a site: by the page's link to edit, the generator's copies, its path or its title."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from urllib.parse import unquote

from anvil.sites import page_addresses
from anvil.sites.site_pages import SitePage
from anvil.values import PAGE_ENDINGS, SITE_ENDINGS

ENDINGS = (*PAGE_ENDINGS, *SITE_ENDINGS, ".txt", ".html")
"""The endings of files that generators make pages from. The first that fits is removed from a path."""
_NUMBERED = re.compile(r"^\d+[-_.\s]+(?=[^\d])")
_NAMED_AS_FOLDER = re.compile(r"(^|/)([^/]+)/\2$")
"""A source with the name of its folder, ``guides/guides``. Eleventy and Docusaurus make it the page of the folder."""
_ANTORA = re.compile(r"(?:^|.*/)modules/(?:ROOT|([^/]+))/pages/")
"""The folder of a module in Antora. Addresses of pages have the name of the module, except for the module ``ROOT``."""


def match_sources(
    pages: Sequence[SitePage], files: Collection[str], copies: Mapping[str, str], title_of: Callable[[str], str]
) -> dict[str, str]:
    """Path of a page's HTML -> path of its source. No source has two pages.

    ``files``: the paths in the documentation folder. ``copies``: key of an address -> path of the source that the
    generator copied into the site, as Sphinx does in ``_sources``. ``title_of``: the title that a file gives its page,
    which is compared if several paths fit.
    """
    existing = frozenset(files)
    sources: dict[str, str] = {}
    taken: set[str] = set()

    def assign(page: SitePage, source: str) -> None:
        if source not in taken and page.file not in sources:
            sources[page.file] = source
            taken.add(source)

    # In a site with versions, the documentation folder is the source of the pages without a version. Docusaurus names
    # a version in these pages too.
    stated = [page for page in pages if page.facts.version in ("", page_addresses.UNRELEASED)]
    is_stated = any(page.facts.version == page_addresses.UNRELEASED for page in pages)
    candidates = stated if is_stated else [page for page in pages if page.version is None] or list(pages)
    # the original before its copy in the folder of a language, which replaces a missing translation
    candidates.sort(key=lambda page: len(page.file))
    edited = {
        page.file: unquote(page_addresses.split(page.facts.edit_url).path) for page in candidates if page.facts.edit_url
    }
    prefix = _common_prefix(edited.values(), existing)
    copied = _common_prefix(files, frozenset(copies.values())) or ""
    # The surest evidence comes first, because an assigned source is no candidate for other pages: the link to edit, the
    # generator's copies, a path that only one source has, and the same name and title.
    for page in candidates:
        path = edited.get(page.file)
        if prefix is not None and path is not None and path.startswith(prefix) and path[len(prefix) :] in existing:
            assign(page, path[len(prefix) :])
    for page in candidates:
        copy = copies.get(page_addresses.key(page.file))
        if copy is not None and f"{copied}{copy}" in existing:
            assign(page, f"{copied}{copy}")
    by_key = _grouped(existing - taken, _key)
    for page in candidates:
        page_key = _plain(page_addresses.key(page.file))
        for key in (page_key, *((f"{page.language.lower()}/{page_key}".rstrip("/"),) if page.language else ())):
            if len(by_key.get(key, ())) == 1:
                assign(page, by_key[key][0])
    by_name = _grouped(existing - taken, lambda path: _key(path).rpartition("/")[2])
    for page in candidates:
        if page.file not in sources:
            page_key = _plain(page_addresses.key(page.file))
            same_name = [path for path in by_name.get(page_key.rpartition("/")[2], ()) if path not in taken]
            title = _folded(page.facts.title)
            fitting = [
                path
                for path in same_name
                if title
                and any(_ends_alike(page_key, key) for key in (_key(path), _NAMED_AS_FOLDER.sub(r"\1\2", _key(path))))
                and _folded(title_of(path)) == title
            ]
            if len(fitting) == 1:
                assign(page, fitting[0])
    # If all other sources are in one folder, such as content/, a README above it is that of the project. It is no
    # source, unless the page has its title or a link to edit.
    at_top = [page for page in candidates if "/" not in sources.get(page.file, "/")]
    folders = {source.partition("/")[0] for source in sources.values() if "/" in source}
    if len(at_top) == len(folders) == 1 and (source := sources[at_top[0].file]).lower().startswith("readme."):
        page = at_top[0]
        if page.file not in edited and _folded(title_of(source)) != _folded(page.facts.title):
            del sources[page.file]
    return sources


def _common_prefix(paths: Iterable[str], existing: frozenset[str]) -> str | None:
    """The most common prefix of paths that end with an existing one; None if none does."""
    prefixes: Counter[str] = Counter()
    for path in paths:
        for at in (0, *(slash.end() for slash in re.finditer("/", path))):
            if path[at:] in existing:
                prefixes[path[:at]] += 1
    return page_addresses.most_common(prefixes)


def _key(path: str) -> str:
    """The key of a source, which is equal to that of its page: without ending, numbers for the order, and ``index``."""
    stem = path
    for ending in ENDINGS:
        if path.lower().endswith(ending):
            stem = path[: -len(ending)]
            break
    return _plain(_ANTORA.sub(r"\1/", stem, count=1))


def _plain(stem: str) -> str:
    """A path without ending in lower case, without numbers for the order and ``index``, and with ``-`` in names."""
    parts = [_NUMBERED.sub("", part).lower().replace(" ", "-").replace("_", "-") for part in stem.split("/")]
    if parts and parts[-1] in ("index", "-index", "readme", "home"):
        parts.pop()
    return "/".join(part for part in parts if part)


def _grouped(paths: Collection[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        groups.setdefault(key(path), []).append(path)
    return groups


def _ends_alike(page: str, source: str) -> bool:
    """Whether one of two keys ends with the other, such as ``docs/guide`` and ``guide``."""
    return page == source or f"/{page}".endswith(f"/{source}") or f"/{source}".endswith(f"/{page}")


def _folded(title: str) -> str:
    return "".join(character for character in title.casefold() if character.isalnum())
