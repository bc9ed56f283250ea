"""What a link of a page leads to: another page of the documentation, or an address.

Links of source files follow the rules of the generator of the site, links of a built site those of a browser.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote, urljoin, urlsplit

from anvil.documents.file_tree import FileTree
from anvil.lint.link_targets import Site, SiteRules
from anvil.settings.schema import SiteOptions
from anvil.sites import page_addresses
from anvil.text.references import Link

_NO_SITE = "https://site.invalid/"
_SAFE = "/:@!$&'()*+,;=~-._"


class Destination(NamedTuple):
    """Of the two what is known: ``page``, the path of a page of the documentation, and ``url``, an address."""

    page: str | None = None
    url: str | None = None


class Targets(Protocol):
    """The targets of the links of a documentation."""

    def destination(self, path: str, target: str) -> Destination:
        """Where ``target`` leads in the page at ``path``; both parts are None where that is not known, and for what is
        an address already."""


class SourceTargets:
    """The links of a documentation folder. ``site``: its pages and the rules of its generator.

    A link that these rules do not resolve may lead to a page with and without its ending, from the page and from the
    top, as most generators take it: their configuration may be elsewhere.
    """

    def __init__(self, site: Site, options: SiteOptions) -> None:
        self._site = site
        self._lenient = Site(site.pages, SiteRules("vitepress", "vitepress"), _tree_of(site.pages))
        self._url = options.url.rstrip("/") + "/" if options.url else None

    def destination(self, path: str, target: str) -> Destination:
        page, link = self._site.pages[path], Link(0, target, "link", None)
        found = self._site.resolve(page, link)
        if found.kind not in ("page", "file", "external"):
            lenient = self._lenient.resolve(page, link)
            found = lenient if lenient.kind == "page" else found
        if found.kind == "page":
            return Destination(page=found.page)
        if found.kind == "external" or self._url is None or target.startswith("#"):
            return Destination()
        if target.startswith("/"):
            base = self._site.rules.base
            inside = target[1:]
            return Destination(
                url=urljoin(self._url, inside[len(base) :].lstrip("/") if _is_in(inside, base) else inside)
            )
        docs, content = self._site.files.docs, self._site.rules.content
        file = posixpath.normpath(posixpath.join(docs, posixpath.dirname(path), unquote(target.partition("#")[0])))
        if found.kind != "file" or not _is_in(file, content):
            return Destination()
        return Destination(url=urljoin(self._url, quote(file[len(content) :].lstrip("/"), safe=_SAFE)))


class SiteTargets:
    """The links of a built site. ``html``: path of a page -> that of its HTML; ``urls``: path of a page -> its
    address, where it is known. ``base``: the path at which the site is published, with slashes at both ends."""

    def __init__(self, html: Mapping[str, str], urls: Mapping[str, str], base: str | None) -> None:
        self._addresses = {path: page_addresses.of_file(file) for path, file in html.items()}
        self._pages = {page_addresses.key(file): path for path, file in sorted(html.items(), reverse=True)}
        known = page_addresses.base_of({html[path]: url for path, url in urls.items()})
        self._is_published = bool(known)
        self._root = known or urljoin(_NO_SITE, base or "/")

    def destination(self, path: str, target: str) -> Destination:
        if target.startswith("#"):
            return Destination()
        try:
            absolute = urljoin(self._root + self._addresses[path], target)
            parts = urlsplit(absolute)
        except ValueError:
            return Destination()
        if parts.scheme not in ("http", "https"):
            return Destination()
        inside = page_addresses.within(absolute, self._root)
        if inside is not None and (page := self._pages.get(page_addresses.key(inside))) is not None:
            return Destination(page=page)
        return Destination(url=absolute) if self._is_published else Destination()


def _tree_of(paths: Iterable[str]) -> FileTree:
    """The files at these paths, and no others."""
    folders: dict[str, dict[str, bool]] = {"": {}}
    for path in paths:
        is_folder = False
        while path:
            folder, name = posixpath.split(path)
            folders.setdefault(folder, {})[name] = is_folder
            path, is_folder = folder, True
    return FileTree("", folders.get, lambda path: None)


def _is_in(path: str, folder: str) -> bool:
    return (bool(folder) and f"{path}/".startswith(f"{folder}/")) or (not folder and not path.startswith("../"))
