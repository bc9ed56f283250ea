"""A built site, in which the links of pages are looked up as a reader's browser follows them, whatever generator wrote
it: the address exists or not, and its page has the id or not."""

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
"""Links that begin with a slash from which the base of a site is found."""
_ROOT = "https://site.invalid/"
_NAME_ENDINGS = re.compile(rf"(?:{PAGE_ENDING}|\.(?:rst|ipynb|html?))$", re.I)
_NUMBERED = re.compile(r"^\d+[-_.]")
_MADE_BY_SCRIPTS = re.compile(r"top$|/|!|:~:")
"""Anchors that no element needs to have."""


class Lookup(NamedTuple):
    """What the site has for a link; ``reason`` says what it lacks."""

    verdict: Literal["sound", "no address", "no anchor"]
    reason: str = ""


class BuiltSite:
    """The pages of a site by the paths of their HTML files.

    ``sources``: path of a documentation page -> its HTML. ``has_file``: whether the site has a file that is no page.
    ``base``: the path at which the site is published, with slashes at both ends; None if unknown.
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
        self._base = self._own_base() if base is None else base
        self._knows_base = base is not None
        self._has_redirects = has_file("_redirects")  # of the host, which may have any address

    def look_up(self, page: str, link: Link) -> Lookup | None:
        """What the site has where it shows a link of a documentation page; None where it does not show the link, and
        for links to other sites. A link that it shows several times is broken if each of them is."""
        file = self._sources.get(page)
        if file is None:
            return None
        lookups = [self._followed(file, shown.target) for shown in self._shown(file, link)]
        known = [lookup for lookup in lookups if lookup is not None]
        if not known or len(known) < len(lookups):  # one of them may be sound
            return None
        return next((lookup for lookup in known if lookup.verdict == "sound"), known[0])

    @property
    def pages(self) -> frozenset[str]:
        """The documentation pages that the site has, whatever their format."""
        return frozenset(self._sources)

    def broken(self, page: str, verdict: str, source: str) -> Iterator[tuple[int, PageLink, str]]:
        """(line, link, reason) of the links with this verdict in the content of a documentation page, each once. The
        line: that of the page's ``source`` with the target or the text, else the first."""
        file = self._sources[page]
        for link in dict.fromkeys(link for link in self._pages[file].links if link.is_content):
            lookup = self._followed(file, link.target)
            if lookup is not None and lookup.verdict == verdict:
                at = next((at for text in (link.target, link.text) if text and (at := source.find(text)) >= 0), 0)
                yield source.count("\n", 0, at) + 1, link, lookup.reason

    def shows_label(self, page: str, label: str) -> bool:
        """Whether the page shows a reference link as text with its brackets, as one without a definition."""
        file = self._sources.get(page)
        return file is None or f"[{' '.join(plain(label).split())}]" in self._pages[file].text

    @cached_property
    def unlinked(self) -> frozenset[str]:
        """The documentation pages to which no other page of the site leads, nor its navigation; no redirects."""
        leading: dict[str, set[str]] = {}
        for file, page in self._pages.items():
            for target in dict.fromkeys(link.target.partition("#")[0] for link in page.links if not link.is_image):
                if (inside := self._inside(file, target)) is not None and (led := self._page_at(inside)) is not None:
                    leading.setdefault(led, set()).add(file)
        return frozenset(
            page
            for page, file in self._sources.items()
            if not (leading.get(file, set()) - {file} or self._pages[file].is_redirect)
        )

    # --- the HTML of a link ------------------------------------------------------------------------------------------

    def _shown(self, file: str, link: Link) -> list[PageLink]:
        """The links of an HTML file that a link of its source became: those with its target, else those with its text
        and what is left of its target, else the only address with its text and anchor."""
        is_image = link.kind in ("image", "html image")
        links = [each for each in self._pages[file].links if each.is_content and each.is_image == is_image]
        written = unquote(link.target)
        if same := [each for each in links if unquote(each.target) == written]:
            return same
        tail = _tail(link.target)
        text = " ".join(plain(link.text or "").split()).casefold()
        if is_image:  # generators put a hash into their names
            return [each for each in links if text and each.text.casefold() == text]
        alike = [each for each in links if _tail(each.target) == tail]
        if texts := [each for each in alike if each.text.casefold() == text]:
            return texts
        if alike and tail[0]:
            return alike
        renamed = [each for each in links if text and (each.text.casefold(), _tail(each.target)[1]) == (text, tail[1])]
        return renamed if len({each.target for each in renamed}) == 1 else []

    def _followed(self, file: str, target: str) -> Lookup | None:
        inside = self._inside(file, target)
        if inside is None:
            return None
        written = target.partition("#")[2]
        fragment = unquote(written)
        page = self._page_at(inside)
        if page is None:
            if self._has_file(inside) or self._has_file(unquote(inside)):
                return Lookup("sound")
            # A relative target with more ".." than its HTML file has folders leads to a site beside this one, if this
            # one is not published at the top of its host.
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
        """A target as an address within the site; None for one elsewhere."""
        try:
            parts = urlsplit(urljoin(_ROOT + self._base[1:] + quote(file), target))
        except ValueError:
            return None
        if f"{parts.scheme}://{parts.netloc}/" != _ROOT:
            return None
        return parts.path[len(self._base) :] if f"{parts.path}/".startswith(self._base) else None

    def _page_at(self, address: str) -> str | None:
        return self._files.get(page_addresses.key(address))

    def _own_base(self) -> str:
        """The base of a site that does not say where it is published, by the links of its pages."""
        targets = {link.target for page in self._pages.values() for link in page.links if not link.is_image}
        rooted = sorted(urlsplit(target).path for target in targets if re.match(r"/[^/]", target))
        return f"/{page_addresses.common_prefix(rooted[:MAX_ROOTED], self._files)}"


def _tail(target: str) -> tuple[str, str]:
    """What generators keep of a target: the last name without ending and number, and the anchor."""
    path, _, fragment = target.partition("#")
    path = unquote(path.partition("?")[0])
    names = [_NAME_ENDINGS.sub("", name).lower() for name in path.split("/") if name not in ("", ".", "..")]
    if names and names[-1] in ("index", "readme", "_index"):
        names.pop()
    return _NUMBERED.sub("", names[-1]) if names else "", unquote(fragment).casefold()
