"""Which Markdown files a page of a site has beside its HTML, and where links between them lead. Pure.

A client that knows a page's address asks for it with ``.md`` behind it (without the slash at its end), or for
``index.md`` in the page's folder. So a page has two files: one beside its HTML, and one at its address with ``.md``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from anvil.sites import page_addresses

HTML_ENDINGS = (".html", ".htm", ".xhtml")
_SAFE = "/@!$&'()*+,;=~-._"


class Place(NamedTuple):
    """A page in a site: the path of its HTML, and its address in the site. ``base``: the path or address in the site
    that the relative links in its text start from."""

    html: str
    address: str
    base: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The Markdown files of the pages of a site: path of the HTML -> paths. The first of a page is the one that links
    lead to. ``refused``: path -> the page that has no file there, because another page has it."""

    files: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]


def lay_out(places: Iterable[Place]) -> Layout:
    """The files of all pages. Where two would have one, the page with HTML beside it has it, else the first."""
    ordered = sorted(places)
    files: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    taken: set[str] = set()
    for wanted in (_beside, _behind):
        for place in ordered:
            path = wanted(place)
            own = files.setdefault(place.html, [])
            if path is None or path in own:
                continue
            if path.casefold() in taken:  # the same file on many systems
                refused[path] = place.html
                continue
            taken.add(path.casefold())
            own.append(path)
    return Layout({html: tuple(own) for html, own in files.items()}, refused)


def _beside(place: Place) -> str | None:
    return posixpath.splitext(place.html)[0] + ".md"


def _behind(place: Place) -> str | None:
    """The file at a page's address with ``.md`` behind it. None for the first page of a site."""
    stem, ending = posixpath.splitext(place.html)
    folder, _, name = stem.rpartition("/")
    if name == "index":
        return f"{folder}.md" if folder else None
    return f"{place.html}.md" if place.address.endswith(ending) else None


class TwinLinks:
    """Where the links of pages lead in their Markdown files.

    ``site_url``: the address of the site, which ends in ``/``; empty when it is not known, and then ``base_path`` is
    the path that addresses from the top of the host begin with. ``sources``: path of a source file -> path of the HTML,
    for texts whose links lead to source files.
    """

    def __init__(
        self,
        places: Iterable[Place],
        layout: Layout,
        site_url: str = "",
        base_path: str = "/",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self.layout = layout
        self._site_url = urlsplit(site_url)
        self._base_path = self._site_url.path if site_url else base_path
        self._twins = {
            key: layout.files[place.html][0]
            for place in sorted(places, reverse=True)
            for key in (page_addresses.key(place.html), page_addresses.key(place.address))
            if layout.files[place.html]
        }
        self._sources = {
            source: layout.files[html][0] for source, html in (sources or {}).items() if layout.files.get(html)
        }

    def of(self, base: str, file: str) -> Callable[[str], str]:
        """A function: the target of a link in the text of a page -> the target in its Markdown file. ``base``: as in
        :class:`Place`."""
        return lru_cache(1024)(lambda target: self._target(target, base, posixpath.dirname(file)))

    def _target(self, target: str, base: str, folder: str) -> str:
        try:
            parts = urlsplit(target)
        except ValueError:  # such as http://[
            return target
        if not parts.path and not parts.netloc:
            return target  # a place in the same page
        above = posixpath.dirname(base)
        inside = self._inside(parts.scheme, parts.netloc, unquote(parts.path), above)
        if inside is None:
            return target
        twin = self._sources.get(inside) or self._twins.get(page_addresses.key(inside))
        if twin is None and not base.endswith("/") and not parts.path.startswith("/") and not parts.netloc:
            # a page at "guide" is often served at "guide/", from where its links are relative
            twin = self._twins.get(page_addresses.key(_normal(posixpath.join(base, unquote(parts.path)))))
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if twin is not None:
            return relative(twin, folder) + fragment
        if above == folder or parts.netloc or parts.scheme or parts.path.startswith("/"):
            return target
        query = f"?{parts.query}" if parts.query else ""
        slash = "/" if parts.path.endswith("/") else ""
        return relative(inside, folder) + slash + query + fragment

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


def _normal(path: str) -> str:
    """A path without steps; empty for the site itself."""
    normal = posixpath.normpath(path)
    return "" if normal == "." else normal


_TOP = "/a/b/c/d/e/f/g/h/"
"""A folder for the site, so that a path that leads out of it stays one."""


def relative(path: str, folder: str) -> str:
    """A path in the site as a link from a folder of it."""
    return quote(posixpath.relpath(f"{_TOP}{path}", f"{_TOP}{folder}"), safe=_SAFE)


def base_path(targets: Sequence[str], places: Iterable[Place]) -> str:
    """The path that the addresses in links from the top of the host begin with, by the links of a site whose pages do
    not say their address."""
    keys = {key: place.html for place in places if (key := page_addresses.key(place.address))}
    return f"/{page_addresses.common_prefix((target for target in targets if target.startswith('/')), keys)}"
