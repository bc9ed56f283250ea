"""Links between the pages of a documentation: the link texts that name a page, and how many pages link to it.

The text of a link names a page in the words of another page, and often in the words of readers. A page to which many
pages link is searched more often than one without links.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from anvil.formats.patterns import lazy_pattern
from anvil.text.headings import ESCAPE, label
from anvil.values import PAGE_ENDING

MANY_PAGES = 20
"""A page to which so many other pages link has the highest popularity."""
MAX_LINKS = 2000
"""So many links of a page are read."""
MAX_TEXTS = 200
"""So many different texts of links to a page are kept."""
MAX_ENDS = 6
"""So many parts at the end of a path can be a key of a page, for links whose start is unknown."""
MAX_KEYS = 1 << 16
"""So many keys of paths and URLs are cached: those of 32,000 pages, about 20 MB."""

_INLINE = lazy_pattern(
    r"\[(?<!!\[)([^\[\]]{1,100})\]\([ \t]*"
    r"(?:\{\{[<%][ \t]*(?:rel)?ref[ \t]+\"([^\"{}\r\n]{1,300})\"|<?([^\s()<>]{1,300}))"
)
"""A link ``[text](target)``, also with Hugo's ``{{< ref "target" >}}``. All repetitions are bounded, so time is linear.
The check for an image comes after the bracket, because a pattern that begins with a literal character is faster."""
_DEFINITION = lazy_pattern(r"\[([^\[\]\r\n]{1,100})\]:[ \t]{0,9}(?:<([^<>\[\]\r\n]{1,300})>|([^\s<>\[\]]{1,300}))")
"""A definition in hidden text. That has no line ends, so a target ends where the next definition begins."""
_BY_LABEL = lazy_pattern(r"\[(?<!!\[)([^\[\]]{1,100})\](?:\[([^\[\]]{0,100})\])?(?![(\[:])")
_ELSEWHERE = lazy_pattern(r"[a-z][a-z0-9+.-]*:|//", re.I)
_ENDING = lazy_pattern(rf"(?:{PAGE_ENDING}|\.(?:html?|ipynb|rst|txt))$", re.I)
_ORDER = lazy_pattern(r"(^|/)\d{1,3}[-._](?=[^\W\d])")
_INDEX = lazy_pattern(r"(^|/)(?:index|_index|readme)$")


class PossibleLink(NamedTuple):
    """The text of a link, and the keys of the pages to which it may lead, the likeliest first."""

    text: str
    targets: tuple[str, ...]


class LinkablePage(NamedTuple):
    """A page to which links can lead. ``digest``: the hash of the page with its text."""

    id: int
    path: str
    url: str | None
    digest: bytes


class PageText(NamedTuple):
    """The Markdown of a page that readers see, and its hidden text, which has the definitions of links."""

    id: int
    text: str
    hidden: str


class PageLinks:
    """The links between the pages of an index, by target page."""

    def __init__(self, pages: Collection[LinkablePage], links: Mapping[int, Iterable[PossibleLink]]) -> None:
        """``links``: id of a page -> the links in it."""
        by_key = _by_end((page.id, _key(page.path)) for page in pages)
        by_key.update((_url_key(page.url), page.id) for page in pages if page.url)
        self._linking: dict[int, set[int]] = defaultdict(set)
        self._texts: dict[int, dict[str, None]] = defaultdict(dict)
        self._words: dict[int, frozenset[str]] = {}
        for page in sorted(pages, key=lambda page: page.id):
            for text, targets in links.get(page.id, ()):
                target = next((by_key[key] for key in targets if key in by_key), None)
                if target is not None and target != page.id:  # links of a page to itself do not make it popular
                    self._linking[target].add(page.id)
                    if len(self._texts[target]) < MAX_TEXTS:
                        self._texts[target][text] = None

    def __bool__(self) -> bool:
        return bool(self._linking)

    def popularity(self, page: int) -> float:
        """The number of other pages that link to a page, on a logarithmic scale from 0 to 1."""
        # For the scale and the weight see docs/performance-method.md, "Links between pages".
        return min(math.log1p(len(self._linking.get(page, ()))) / math.log1p(MANY_PAGES), 1.0)

    def words(self, page: int, tokens: Callable[[str], Collection[str]]) -> frozenset[str]:
        """The tokens in the texts of the links to a page."""
        if page not in self._words:
            self._words[page] = frozenset(token for text in self._texts.get(page, ()) for token in tokens(text))
        return self._words[page]

    def coverage(self, page: int, weights: Mapping[str, float], tokens: Callable[[str], Collection[str]]) -> float:
        """The share of ``weights`` (token -> weight) whose tokens are in the texts of the links to a page. ``tokens``
        returns the tokens of a text."""
        linked_words = self.words(page, tokens)
        covered = sum(weight for token, weight in weights.items() if token in linked_words)
        return covered / (sum(weights.values()) or 1.0)


def links_of(pages: Iterable[LinkablePage], texts: Iterable[PageText]) -> dict[int, tuple[PossibleLink, ...]]:
    """Id of each page in ``texts`` -> the links in it."""
    paths = {page.id: page.path for page in pages}
    return {text.id: links_in(paths[text.id], text) for text in texts}


def links_in(path: str, page: PageText) -> tuple[PossibleLink, ...]:
    """The different links in the page at ``path``, at most ``MAX_LINKS``."""
    folder = _bare(posixpath.dirname(path))
    own = _bare(path)  # many sites serve a page as a folder, and its links are relative to that
    pairs = dict.fromkeys(islice(_links(page.text, page.hidden), MAX_LINKS))
    return tuple(PossibleLink(text, keys) for text, target in pairs if (keys := _keys(folder, own, target)))


def _keys(folder: str, own: str, target: str) -> tuple[str, ...]:
    """The keys of pages to which a link may lead from the page ``own`` in ``folder``."""
    target = unquote(ESCAPE.sub(r"\1", target).split("#")[0].split("?")[0])
    if not target:
        return ()
    if _ELSEWHERE.match(target):
        return (_url_key(target),)
    bare = _bare(target)
    if target.startswith("/"):  # from the site's root; it is unknown how many of its folders are above the pages
        parts = _normal(bare).split("/")
        return tuple("/".join(parts[first:]) for first in range(max(len(parts) - MAX_ENDS, 0), len(parts)))
    return (f"/{_normal(f'{folder}/{bare}')}", f"/{_normal(f'{own}/{bare}')}", _normal(bare))


def _links(text: str, hidden: str) -> Iterator[tuple[str, str]]:
    for link in _INLINE.finditer(text) if "](" in text else ():
        yield link[1], link[2] or link[3]
    if targets := definitions(hidden):  # without definitions, brackets are text
        for link in _BY_LABEL.finditer(text):
            if target := targets.get(label(link[2] or link[1])):
                yield link[1], target


def definitions(hidden: str) -> dict[str, str]:
    """Label -> target of each definition in the hidden text of a page, see :class:`PageText`."""
    matches = _DEFINITION.finditer(hidden) if "]:" in hidden else ()
    return {label(match[1]): match[2] or match[3] for match in matches}


@lru_cache(MAX_KEYS)  # all keys are needed again after an edit
def _key(path: str) -> str:
    return _normal(_bare(path))


@lru_cache(4096)  # many links lead to the same pages
def _bare(path: str) -> str:
    """A path in the form of links: without ending, order numbers, index, and slashes at its ends."""
    return _INDEX.sub("", _ORDER.sub(r"\1", _ENDING.sub("", path.strip("/").casefold())))


def _normal(path: str) -> str:
    """A path without ``.`` and ``..``. Steps above its start are left out."""
    path = posixpath.normpath(path).lstrip("/")
    while path.startswith("../"):
        path = path[3:]
    return "" if path in (".", "..") else path


def _url_key(url: str) -> str:
    return f"url {_key(url)}"


def _by_end(pages: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Key -> page. The keys are ``/path`` for each whole path, and the ends of paths that only one page has."""
    whole: dict[str, int] = {}
    ends: dict[str, int | None] = {}
    for page, key in pages:
        whole.setdefault(f"/{key}", page)
        parts = key.split("/")
        for length in range(1, min(len(parts), MAX_ENDS) + 1):
            end = "/".join(parts[-length:])
            ends[end] = page if end not in ends else None  # None for several pages
    return {**{end: page for end, page in ends.items() if end and page is not None}, **whole}
