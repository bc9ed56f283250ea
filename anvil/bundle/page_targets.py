"""What a link of a page leads to: another page of the documentation, or an address.

Links of source files follow the rules of the generator of the site, links of a built site those of a browser.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote, urljoin

from anvil.documents.file_tree import FileTree
from anvil.lint.link_targets import Site, SiteRules
from anvil.markdown import twins
from anvil.markdown.twins import SiteLinks, SitePlace
from anvil.settings.schema import SiteOptions
from anvil.sites import page_addresses
from anvil.text.references import Link

_SAFE = "/:@!$&'()*+,;=~-._"


class PageOrAddress(NamedTuple):
    """Of the two what is known: ``page``, the path of a page of the documentation, and ``url``, an address."""

    page: str | None = None
    url: str | None = None


class LinkTargets(Protocol):
    """The targets of the links of a documentation."""

    def destination(self, path: str, target: str) -> PageOrAddress:
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

    def destination(self, path: str, target: str) -> PageOrAddress:
        page, link = self._site.pages[path], Link(0, target, "link", None)
        found = self._site.resolve(page, link)
        if found.kind not in ("page", "file", "external"):
            lenient = self._lenient.resolve(page, link)
            found = lenient if lenient.kind == "page" else found
        if found.kind == "page":
            return PageOrAddress(page=found.page)
        if found.kind == "external" or self._url is None or target.startswith("#"):
            return PageOrAddress()
        if target.startswith("/"):
            base = self._site.rules.base
            inside = target[1:]
            return PageOrAddress(
                url=urljoin(self._url, inside[len(base) :].lstrip("/") if _is_in(inside, base) else inside)
            )
        docs, content = self._site.files.docs, self._site.rules.content
        file = posixpath.normpath(posixpath.join(docs, posixpath.dirname(path), unquote(target.partition("#")[0])))
        if found.kind != "file" or not _is_in(file, content):
            return PageOrAddress()
        return PageOrAddress(url=urljoin(self._url, quote(file[len(content) :].lstrip("/"), safe=_SAFE)))


class SiteTargets:
    """The links of a built site. ``places``: path of a page -> where it is. ``url``: the address of the site; empty
    where it is not known, and then the path of the site is told by the links in ``texts``."""

    def __init__(self, places: Mapping[str, SitePlace], url: str, texts: Iterable[str]) -> None:
        self._places = places
        self._paths = {place.html: path for path, place in places.items()}
        self._url = url
        base_path = "/" if url else twins.base_path(texts, places.values())
        self._links = SiteLinks(places.values(), url, base_path)

    def destination(self, path: str, target: str) -> PageOrAddress:
        base = self._places[path].base
        inside, html = self._links.destination(target, base)
        if html is not None:
            return PageOrAddress(page=self._paths[html])
        is_of_host = target.startswith("/") or inside is not None
        return PageOrAddress(url=page_addresses.joined(self._url + base, target) if self._url and is_of_host else None)


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
