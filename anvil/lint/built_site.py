"""A built site of any generator in which the linter looks up links: whether their address and their anchor exist."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from anvil.sites import page_addresses
from anvil.text.headings import plain
from anvil.text.references import Link
from anvil.values import PAGE_ENDING

if TYPE_CHECKING:
    from anvil.sites.html_page import HtmlLinks, PageLink

MAX_ROOTED = 2_000
"""Links with a leading slash from which the base of a site is found."""
_ROOT = "https://site.invalid/"
_NAME_ENDINGS = re.compile(rf"(?:{PAGE_ENDING}|\.(?:rst|ipynb|html?))$", re.I)
_NUMBERED = re.compile(r"^\d+[-_.]")
_MADE_BY_SCRIPTS = re.compile(r"top$|/|!|:~:")
"""Anchors that work without an element."""


class Lookup(NamedTuple):
    """The result of looking up a link. ``reason`` says what the site lacks."""

    verdict: Literal["sound", "no address", "no anchor"]
    reason: str = ""


class BuiltSite:
    """The pages of a site and their links.

    ``pages``: path of an HTML file -> its links. ``sources``: path of a documentation page -> its HTML file.
    ``has_file``: whether the site has a file at a path. ``base``: the path at which the site is published, with slashes
    at both ends; None if unknown.
    """

    def __init__(
        self,
        pages: Mapping[str, HtmlLinks],
        sources: Mapping[str, str],
        has_file: Callable[[str], bool],
        base: str | None,
    ) -> None:
        self._pages = pages
        self._sources = sources
        self._has_file = has_file
        self._files = {page_addresses.key(path): path for path in sorted(pages, reverse=True)}
        self._base = self._base_by_links() if base is None else base
        self._knows_base = base is not None
        self._has_redirects = has_file("_redirects")
        """Whether the host has redirects, which may answer any address."""

    def look_up(self, page: str, link: Link) -> Lookup | None:
        """The result for a link of a documentation page; None if the site does not show the link, or if the link leads
        to another site. A link that it shows several times is broken if all of them are."""
        file = self._sources.get(page)
        if file is None:
            return None
        lookups = [self._follow(file, shown.target) for shown in self._html_links(file, link)]
        results = [lookup for lookup in lookups if lookup is not None]
        if not results or len(results) < len(lookups):  # one without a result may be sound
            return None
        return next((lookup for lookup in results if lookup.verdict == "sound"), results[0])

    @property
    def pages(self) -> frozenset[str]:
        """The documentation pages, in any format, that the site has."""
        return frozenset(self._sources)

    def broken(self, page: str, verdict: str, source: str) -> Iterator[tuple[int, PageLink, str]]:
        """(line, link, reason) of the links with this verdict in the content of a documentation page, each once.

        ``source``: the text of the page. The line is the first in it with the target or the text of the link, else 1.
        """
        file = self._sources[page]
        for link in dict.fromkeys(link for link in self._pages[file].links if link.is_content):
            lookup = self._follow(file, link.target)
            if lookup is not None and lookup.verdict == verdict:
                at = next((at for text in (link.target, link.text) if text and (at := source.find(text)) >= 0), 0)
                yield source.count("\n", 0, at) + 1, link, lookup.reason

    def shows_label(self, page: str, label: str) -> bool:
        """Whether the page shows a reference link as text in brackets, because its label has no definition. True for a
        page that the site does not have."""
        file = self._sources.get(page)
        return file is None or f"[{' '.join(plain(label).split())}]" in self._pages[file].text

    @cached_property
    def unlinked(self) -> frozenset[str]:
        """The documentation pages without a link from another page of the site, without redirects."""
        linked: set[str | None] = set()
        for file, page in self._pages.items():
            targets = {link.target.partition("#")[0] for link in page.links if not link.is_image}
            addresses = (self._inside(file, target) for target in targets)
            linked |= {self._page_at(address) for address in addresses if address is not None} - {file}
        return frozenset(
            page for page, file in self._sources.items() if file not in linked and not self._pages[file].is_redirect
        )

    # --- the HTML of a link ------------------------------------------------------------------------------------------

    def _html_links(self, file: str, link: Link) -> list[PageLink]:
        """The links of an HTML file that were made of a link of its source. The first of these that exist:

        1. links with the same target
        2. links with the same text and tail (:func:`_tail`), or for images with the same text
        3. links with the same tail
        4. links with the same text and anchor, if they all have one target
        """
        is_image = link.kind in ("image", "html image")
        links = [each for each in self._pages[file].links if each.is_content and each.is_image == is_image]
        target = unquote(link.target)
        if same_target := [each for each in links if unquote(each.target) == target]:
            return same_target
        text = " ".join(plain(link.text or "").split()).casefold()
        same_text = [each for each in links if each.text.casefold() == text]
        if is_image:  # generators put a hash into their names
            return same_text if text else []
        name, anchor = _tail(link.target)
        if both := [each for each in same_text if _tail(each.target) == (name, anchor)]:
            return both
        if name and (same_tail := [each for each in links if _tail(each.target) == (name, anchor)]):
            return same_tail
        renamed = [each for each in same_text if text and _tail(each.target)[1] == anchor]
        return renamed if len({each.target for each in renamed}) == 1 else []

    def _follow(self, file: str, target: str) -> Lookup | None:
        """The result for a link in an HTML file; None if the link leads to another site or only the host can tell."""
        inside = self._inside(file, target)
        if inside is None:
            return None
        written = target.partition("#")[2]
        fragment = unquote(written)
        page = self._page_at(inside)
        if page is None:
            if self._has_file(inside) or self._has_file(unquote(inside)):
                return Lookup("sound")
            # A target with more ".." than its file has folders leads to a site beside this one, unless this one is
            # published at the top of its host.
            path = posixpath.join(posixpath.dirname(file), re.split(r"[?#]", target, maxsplit=1)[0])
            climbs_out = posixpath.normpath(path).startswith("../")
            if self._has_redirects or (not self._knows_base and climbs_out):
                return None
            return Lookup("no address", f"the site has nothing at /{inside}")
        if not fragment or _MADE_BY_SCRIPTS.match(fragment) or self._pages[page].is_redirect:
            return Lookup("sound")
        if not self._pages[page].ids.isdisjoint((written, fragment)):
            return Lookup("sound")
        return Lookup("no anchor", f"{page} of the site has no element with this id")

    # --- addresses -----------------------------------------------------------------------------------------------

    def _inside(self, file: str, target: str) -> str | None:
        """The address of a target within the site; None if it is elsewhere."""
        try:
            parts = urlsplit(urljoin(_ROOT + self._base[1:] + quote(file), target))
        except ValueError:
            return None
        if f"{parts.scheme}://{parts.netloc}/" != _ROOT:
            return None
        return parts.path[len(self._base) :] if f"{parts.path}/".startswith(self._base) else None

    def _page_at(self, address: str) -> str | None:
        return self._files.get(page_addresses.key(address))

    def _base_by_links(self) -> str:
        """The base of the site by the links of its pages."""
        targets = {link.target for page in self._pages.values() for link in page.links if not link.is_image}
        rooted = sorted(urlsplit(target).path for target in targets if re.match(r"/[^/]", target))
        return f"/{page_addresses.common_prefix(rooted[:MAX_ROOTED], self._files)}"


def _tail(target: str) -> tuple[str, str]:
    """(last name of a target without ending and number, anchor): what generators keep when they rewrite links."""
    path, _, fragment = target.partition("#")
    path = unquote(path.partition("?")[0])
    names = [_NAME_ENDINGS.sub("", name).lower() for name in path.split("/") if name not in ("", ".", "..")]
    if names and names[-1] in ("index", "readme", "_index"):
        names.pop()
    return _NUMBERED.sub("", names[-1]) if names else "", unquote(fragment).casefold()
