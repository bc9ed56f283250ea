"""Which Markdown files a page of a site has beside its HTML, and where links between them lead. Pure.

A client that knows a page's address asks for it with ``.md`` behind it (without the slash at its end), or for
``index.md`` in the page's folder. So a page has two files: one beside its HTML, and one at its address with ``.md``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from anvil.sites import page_addresses
from anvil.sites.site_pages import SitePage
from anvil.text import references

SAMPLE_PAGES = 100
"""Pages whose links tell the path of a site that does not say its address."""
_SAFE = "/@!$&'()*+,;=~-._"


class SitePlace(NamedTuple):
    """A page in a site: the path of its HTML, and its address in the site. ``base``: the path or address in the site
    that the relative links in its text start from."""

    html: str
    address: str
    base: str


def place_of(page: SitePage) -> SitePlace:
    """Where a page is whose text is that of its HTML."""
    return SitePlace(page.file, page.address, page.address)


@dataclass(frozen=True, slots=True)
class Layout:
    """The Markdown files of the pages of a site: path of the HTML -> paths. The first of a page is the one that links
    lead to. ``refused``: path -> the page that has no file there, because another page has it."""

    files: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]


def lay_out(places: Iterable[SitePlace]) -> Layout:
    """The files of all pages. Where two would have one, the page with HTML beside it has it, else the first."""
    ordered = sorted(places)
    files: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    taken: set[str] = set()
    for is_beside in (True, False):  # first all that are beside HTML: they go before a page with the same address
        for place in ordered:
            path = posixpath.splitext(place.html)[0] + ".md" if is_beside else _behind(place)
            own = files.setdefault(place.html, [])
            if path is None or path in own or not page_addresses.is_plain(path):  # nor is it read from a record
                continue
            if path.casefold() in taken:  # the same file on many systems
                refused[path] = place.html
                continue
            taken.add(path.casefold())
            own.append(path)
    return Layout({html: tuple(own) for html, own in files.items()}, refused)


def _behind(place: SitePlace) -> str | None:
    """The file at a page's address with ``.md`` behind it. None for the first page of a site."""
    stem, ending = posixpath.splitext(place.html)
    folder, _, name = stem.rpartition("/")
    if name == "index":
        return f"{folder}.md" if folder else None
    return f"{place.html}.md" if place.address.endswith(ending) else None


class Destination(NamedTuple):
    """Where a link leads: the path in the site, None for a place elsewhere, and the HTML of the page that is there."""

    path: str | None = None
    html: str | None = None


class SiteLinks:
    """Where the links of a site's pages lead, as in a browser.

    ``site_url``: the address of the site, which ends in ``/``; empty when it is not known, and then ``base_path`` is
    the path that addresses from the top of the host begin with. ``sources``: path of a source file -> path of the HTML,
    for texts whose links lead to source files.
    """

    def __init__(
        self,
        places: Iterable[SitePlace],
        site_url: str = "",
        base_path: str = "/",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._site_url = urlsplit(site_url)
        self._base_path = self._site_url.path if site_url else base_path
        self._pages = {
            key: place.html
            for place in sorted(places, reverse=True)
            for key in (page_addresses.key(place.html), page_addresses.key(place.address))
        }
        self._sources = sources or {}

    def destination(self, target: str, base: str) -> Destination:
        """Where a target leads. ``base``: as in :class:`SitePlace`."""
        try:
            parts = urlsplit(target)
        except ValueError:  # such as http://[
            return Destination()
        if not parts.path and not parts.netloc:
            return Destination()
        path = unquote(parts.path)
        inside = self._inside(parts.scheme, parts.netloc, path, posixpath.dirname(base))
        if inside is None:
            return Destination()
        html = self._sources.get(inside) or self._pages.get(page_addresses.key(inside))
        if html is None and not base.endswith("/") and not path.startswith("/") and not parts.netloc:
            # a page at "guide" is often served at "guide/", from where its links are relative
            html = self._pages.get(page_addresses.key(_normal(posixpath.join(base, path))))
        return Destination(inside, html)

    def _inside(self, scheme: str, host: str, path: str, above: str) -> str | None:
        """The path in the site that a target leads to; None for one elsewhere."""
        if scheme or host:
            own = self._site_url.netloc.removeprefix("www.")
            if scheme not in ("", "http", "https") or not host or host.removeprefix("www.") != own:
                return None
        elif not path.startswith("/"):
            return _normal(posixpath.join(above, path))
        if not f"{path}/".startswith(self._base_path):
            return None
        return _normal(path[len(self._base_path) :].lstrip("/"))


class MarkdownLinks:
    """The targets of links in the Markdown files of ``layout``; ``site``: where the links of the pages lead."""

    def __init__(self, layout: Layout, site: SiteLinks) -> None:
        self.layout = layout
        self._site = site

    def of(self, base: str, file: str) -> Callable[[str], str]:
        """A function: the target of a link in the text of a page -> the target in its Markdown file. ``base``: as in
        :class:`SitePlace`."""
        return lru_cache(1024)(lambda target: self._target(target, base, posixpath.dirname(file)))

    def _target(self, target: str, base: str, folder: str) -> str:
        path, html = self._site.destination(target, base)
        if path is None:
            return target
        parts = urlsplit(target)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        for twin in self.layout.files.get(html or "", ())[:1]:  # the first one, if the page has any
            return relative(twin, folder) + fragment
        if posixpath.dirname(base) == folder or parts.netloc or parts.scheme or parts.path.startswith("/"):
            return target
        query = f"?{parts.query}" if parts.query else ""
        slash = "/" if parts.path.endswith("/") else ""
        return relative(path, folder) + slash + query + fragment


def _normal(path: str) -> str:
    """A path without steps; empty for the site itself."""
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


_TOP = "/a/b/c/d/e/f/g/h/"
"""A folder for the site, so that a path that leads out of it stays one."""


def relative(path: str, folder: str) -> str:
    """A path in the site as a link from a folder of it."""
    return quote(posixpath.relpath(f"{_TOP}{path}", f"{_TOP}{folder}"), safe=_SAFE)


def base_path(texts: Iterable[str], places: Iterable[SitePlace]) -> str:
    """The path that the addresses in links from the top of the host begin with, by the links in some texts of a site
    whose pages do not say their address."""
    targets = (span.target for text in islice(texts, SAMPLE_PAGES) for span in references.target_spans(text))
    keys = {key: place.html for place in places if (key := page_addresses.key(place.address))}
    return f"/{page_addresses.common_prefix((target for target in targets if target.startswith('/')), keys)}"
