"""The file that a page was made from: by its link to edit, by data of the generator, or by its path."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from urllib.parse import unquote

from anvil.sites import page_addresses
from anvil.sites.site_pages import SitePage
from anvil.values import PAGE_ENDINGS

ENDINGS = (*PAGE_ENDINGS, ".rst", ".adoc", ".ipynb", ".mdoc", ".txt", ".qmd", ".org", ".html")
"""The endings of files that generators make pages of, the likeliest first."""
GLOBS = tuple(f"**/*{ending}" for ending in (".rst", ".adoc", ".ipynb", ".mdoc", ".qmd", ".org"))
"""The files that are sources of a site's pages, in addition to those that are pages themselves."""
_NUMBERED = re.compile(r"^\d+[-_.\s]+(?=[^\d])")
_NAMED_AS_FOLDER = re.compile(r"(^|/)([^/]+)/\2$")
"""A source that is named as its folder, ``guides/guides``. Of Eleventy and Docusaurus it is the page of the folder."""
_ANTORA = re.compile(r"(?:^|.*/)modules/(?:ROOT|([^/]+))/pages/")
"""The folder of a module in Antora. The address of a page has the module's name, but for the module ``ROOT``."""


def mapped(
    pages: Sequence[SitePage], files: Collection[str], copies: Mapping[str, str], title_of: Callable[[str], str]
) -> dict[str, str]:
    """Path of a page's HTML -> path of its source. A source is that of one page.

    ``files``: the paths in the documentation folder. ``copies``: key of an address -> path of the source of which the
    generator keeps a copy, as Sphinx in ``_sources``. ``title_of``: the title that a file gives its page; it decides
    where a path alone does not.
    """
    existing = frozenset(files)
    sources: dict[str, str] = {}
    taken: set[str] = set()

    def take(page: SitePage, source: str | None) -> None:
        if source is not None and source not in taken and page.file not in sources:
            sources[page.file] = source
            taken.add(source)

    # Of a site with versions, the pages of none are those of the documentation folder as it is now.
    # Docusaurus names them of another version than its last release.
    stated = [page for page in pages if page.facts.version in ("", page_addresses.UNRELEASED)]
    is_stated = any(page.facts.version == page_addresses.UNRELEASED for page in pages)
    candidates = stated if is_stated else [page for page in pages if page.version is None] or list(pages)
    candidates.sort(key=lambda page: len(page.file))  # before the copy that replaces a missing translation
    edited = {
        page.file: unquote(page_addresses.split(page.facts.edit_url).path) for page in candidates if page.facts.edit_url
    }
    prefix = _common_prefix(edited.values(), existing)
    copied = _common_prefix(files, frozenset(copies.values())) or ""
    # The surest evidence first, because a source that is taken is no candidate for another page: the link to edit, the
    # copies of the generator, a path that only one source has, the same name and title.
    for page in candidates:
        path = edited.get(page.file)
        if prefix is not None and path is not None and path.startswith(prefix):
            source = path[len(prefix) :]
            take(page, source if source in existing else None)
    for page in candidates:
        copy = copies.get(page_addresses.key(page.file))
        if copy is not None and f"{copied}{copy}" in existing:
            take(page, f"{copied}{copy}")
    by_key = _grouped(existing - taken, _key)
    for page in candidates:
        own = _plain(page_addresses.key(page.file))
        for name in (own, *((f"{page.language.lower()}/{own}".rstrip("/"),) if page.language else ())):
            if len(by_key.get(name, ())) == 1:
                take(page, by_key[name][0])
    remaining = _grouped(existing - taken, lambda path: _key(path).rpartition("/")[2])
    for page in candidates:
        if page.file not in sources:
            own = _plain(page_addresses.key(page.file))
            same = [path for path in remaining.get(own.rpartition("/")[2], ()) if path not in taken]
            keys = {path: (_key(path), _NAMED_AS_FOLDER.sub(r"\1\2", _key(path))) for path in same}
            same = [path for path in same if any(_ends_alike(own, key) for key in keys[path])]
            title = _folded(page.facts.title)
            titled = [path for path in same if title and _folded(title_of(path)) == title]
            if len(titled) == 1:
                take(page, titled[0])
    # Where all other pages are in one folder, such as content/, a README above it is that of the project, unless the
    # page has its title or a link to edit.
    at_top = [page for page in candidates if "/" not in sources.get(page.file, "/")]
    folders = {source.partition("/")[0] for source in sources.values() if "/" in source}
    if len(at_top) == len(folders) == 1 and (source := sources[at_top[0].file]).lower().startswith("readme."):
        page = at_top[0]
        if page.file not in edited and _folded(title_of(source)) != _folded(page.facts.title):
            del sources[page.file]
    return sources


def _common_prefix(paths: Iterable[str], known: frozenset[str]) -> str | None:
    """What is in front of ``known`` paths in most of the given ones; None when none ends with a known one."""
    prefixes: Counter[str] = Counter()
    for path in paths:
        for at in (0, *(slash.end() for slash in re.finditer("/", path))):
            if path[at:] in known:
                prefixes[path[:at]] += 1
    return page_addresses.most_common(prefixes)


def _key(path: str) -> str:
    """What a source and its page have in common: no ending, no numbers for the order, no ``index``."""
    stem = path
    for ending in ENDINGS:
        if path.lower().endswith(ending):
            stem = path[: -len(ending)]
            break
    return _plain(_ANTORA.sub(r"\1/", stem, count=1))


def _plain(stem: str) -> str:
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
    """Whether one of two keys ends with the other, as ``docs/guide`` and ``guide``."""
    return page == source or f"/{page}".endswith(f"/{source}") or f"/{source}".endswith(f"/{page}")


def _folded(title: str) -> str:
    return "".join(character for character in title.casefold() if character.isalnum())
