"""A page's HTML for the plugin: its headings with their ids, its words, and its content as Markdown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from anvil.sites import content_words as word_lists
from anvil.sites import html_to_markdown, html_tree
from anvil.sites.content_words import words
from anvil.sites.html_headings import headings_of
from anvil.sites.page_content import Content, fragment
from anvil.text.rendered_anchors import Heading

T = TypeVar("T")
MAX_MISSING_WORDS = 20
"""Words of a page's HTML that its Markdown may lack: labels, keys, additions of the theme."""
MAX_MISSING_SHARE = 0.1
"""The share of words that may be missing instead, on a long page."""
_NO_LETTER = re.compile(r"[\W_]+")


class Read(NamedTuple):
    """The headings of a page's HTML in order, with their ids, and all its words."""

    headings: tuple[Heading, ...]
    words: tuple[str, ...]


def lacks(text: str, html: Read) -> bool:
    """Whether a page's HTML has a heading, or many words, that its Markdown lacks: text that a plugin generated."""
    known = set(words(text))
    unknown = [heading.text for heading in html.headings if not known.issuperset(words(heading.text))]
    if unknown:
        letters = _NO_LETTER.sub("", text.casefold())  # "H~2~O" is read as one word
        if any(_NO_LETTER.sub("", heading.casefold()) not in letters for heading in unknown):
            return True
    missing = sum(word not in known for word in html.words)
    return missing > max(MAX_MISSING_WORDS, MAX_MISSING_SHARE * len(html.words))


class Remembered(Generic[T]):
    """A cache of ``make(html)`` by page. The function is called again when the page's HTML changed."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._cache: dict[str, tuple[bytes, T]] = {}

    def of(self, path: str, html: str) -> T:
        """``make(html)`` for the page at ``path``."""
        digest = hashlib.sha256(html.encode("utf-8", "surrogatepass")).digest()
        cached = self._cache.get(path)
        if cached is None or cached[0] != digest:
            cached = self._cache[path] = (digest, self._make(html))
        return cached[1]


def read(html: str) -> Read:
    """The headings and words of a piece of HTML; none of one that is too deep to be read."""
    content = _content(html)
    return Read(headings_of(content), tuple(word_lists.of_content(content)))


def to_markdown(html: str) -> str:
    """A page's HTML as Markdown. Raises :class:`html_tree.Unreadable` for one that is too deep."""
    return html_to_markdown.to_markdown(fragment(html_tree.parse(html))).markdown


def _content(html: str) -> Content:
    try:
        return fragment(html_tree.parse(html))
    except html_tree.Unreadable:
        return Content((), frozenset())
