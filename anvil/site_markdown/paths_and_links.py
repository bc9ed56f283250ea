"""Paths of the Markdown files of a site's pages, and links between these files.

A client that knows the address of a page asks for that address with ``.md`` appended, or for ``index.md`` in the page's
folder. So a page has two files: one beside its HTML, and one at its address (without the final slash) with ``.md``.
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
"""Pages whose links are read to find the path at which a site is published."""
_SAFE = "/@!$&'()*+,;=~-._"


class SitePlace(NamedTuple):
    """A page in a site. ``html``: the path of its HTML. ``address``: its address within the site. ``base``: the path or
    address within the site to which the links in its text are relative."""

    html: str
    address: str
    base: str


def place_of(page: SitePage) -> SitePlace:
    """The place of a page whose text was made from its HTML."""
    return SitePlace(page.file, page.address, page.address)


@dataclass(frozen=True, slots=True)
class Layout:
    """The Markdown files of a site. ``files``: path of a page's HTML -> paths of its Markdown; links lead to the first.
    ``refused``: path -> HTML of the page that cannot have this file, because another page has it."""

    files: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]


def lay_out(places: Iterable[SitePlace]) -> Layout:
    """The Markdown files of all pages. One that two need goes to that with its HTML beside it, else to the first."""
    ordered = sorted(places)
    files: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    taken: set[str] = set()
    for is_beside in (True, False):  # files beside HTML come first, because they have precedence
        for place in ordered:
            path = posixpath.splitext(place.html)[0] + ".md" if is_beside else _file_at_address(place)
            paths = files.setdefault(place.html, [])
            if path is None or path in paths or not page_addresses.is_plain(path):
                continue
            if path.casefold() in taken:  # many systems do not distinguish upper and lower case
                refused[path] = place.html
                continue
            taken.add(path.casefold())
            paths.append(path)
    return Layout({html: tuple(paths) for html, paths in files.items()}, refused)


def _file_at_address(place: SitePlace) -> str | None:
    """A page's address with ``.md`` appended. None for the start page, and if the address hides the HTML's ending."""
    stem, ending = posixpath.splitext(place.html)
    folder, _, name = stem.rpartition("/")
    if name == "index":
        return f"{folder}.md" if folder else None
    return f"{place.html}.md" if place.address.endswith(ending) else None


class Destination(NamedTuple):
    """The destination of a link. ``path``: the path in the site; None if it is elsewhere. ``html``: the HTML of the
    page at that path; None without one."""

    path: str | None = None
    html: str | None = None


class SiteLinks:
    """The destinations of links in a site's pages, as in a browser.

    ``site_url``: the address of the site, which ends in ``/``; empty if unknown. In that case ``base_path`` is the path
    on the host at which the site is published. ``sources``: path of a source file -> path of its HTML, for texts whose
    links lead to source files.
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
        """The destination of a link's target. ``base``: as in :class:`SitePlace`."""
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
            # a page at "guide" is often served at "guide/", and then its links are relative to "guide/"
            html = self._pages.get(page_addresses.key(_normal(posixpath.join(base, path))))
        return Destination(inside, html)

    def _inside(self, scheme: str, host: str, path: str, above: str) -> str | None:
        """The path in the site of a target; None if it is elsewhere. ``above``: the folder of the page."""
        if scheme or host:
            site_host = self._site_url.netloc.removeprefix("www.")
            if scheme not in ("", "http", "https") or not host or host.removeprefix("www.") != site_host:
                return None
        elif not path.startswith("/"):
            return _normal(posixpath.join(above, path))
        if not f"{path}/".startswith(self._base_path):
            return None
        return _normal(path[len(self._base_path) :].lstrip("/"))


class MarkdownLinks:
    """The targets that links have in the Markdown files of ``layout``. ``site``: the destinations of these links."""

    def __init__(self, layout: Layout, site: SiteLinks) -> None:
        self.layout = layout
        self._site = site

    def of(self, base: str, file: str) -> Callable[[str], str]:
        """A function that gives the target in the Markdown file ``file`` for the target of a link in a page's text.
        ``base``: as in :class:`SitePlace`."""
        return lru_cache(1024)(lambda target: self._target(target, base, posixpath.dirname(file)))

    def _target(self, target: str, base: str, folder: str) -> str:
        path, html = self._site.destination(target, base)
        if path is None:
            return target
        parts = urlsplit(target)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        query = f"?{parts.query}" if parts.query else ""
        if html is not None:
            files = self.layout.files.get(html)
            return relative(files[0], folder) + fragment if files else relative(html, folder) + query + fragment
        if posixpath.dirname(base) == folder or parts.netloc or parts.scheme or parts.path.startswith("/"):
            return target
        slash = "/" if parts.path.endswith("/") else ""
        return relative(path, folder) + slash + query + fragment


def _normal(path: str) -> str:
    """A path without ``.`` and ``..``; empty for the site itself."""
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


_TOP = "/a/b/c/d/e/f/g/h/"
"""A made-up folder of the site, so that a path that leads out of the site keeps its ``..``."""


def relative(path: str, folder: str) -> str:
    """The relative link from a folder of the site to a path in the site."""
    return quote(posixpath.relpath(f"{_TOP}{path}", f"{_TOP}{folder}"), safe=_SAFE)


def base_path(texts: Iterable[str], places: Iterable[SitePlace]) -> str:
    """The path on the host at which a site is published, by the links in its texts that begin with a slash."""
    targets = (span.target for text in islice(texts, SAMPLE_PAGES) for span in references.target_spans(text))
    keys = {key: place.html for place in places if (key := page_addresses.key(place.address))}
    return f"/{page_addresses.common_prefix((target for target in targets if target.startswith('/')), keys)}"
