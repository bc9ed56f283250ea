"""A page's HTML: its headings with their ids, its words, and its content as Markdown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, Generic, NamedTuple, TypeVar

from anvil.core.markdown.rendered_anchors import Heading
from anvil.core.markdown.visible_text import APART
from anvil.errors import ConfigError

T = TypeVar("T")
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_INERT = frozenset({"template", "textarea", "noscript", "iframe", "xmp", "script", "style", "svg"})
"""Elements whose content is not shown as text of the page."""
_PERMALINKS = frozenset({"headerlink", "anchor-link"})
"""Classes of the permalinks of headings, in Python-Markdown and in notebooks."""


MAX_MISSING_WORDS = 20
"""Words of a page's HTML that its Markdown may lack: labels, keys, additions of the theme."""
MAX_MISSING_SHARE = 0.1
"""The share of words that may be missing instead, on a long page."""
_WORD = re.compile(r"[^\W_]+")
_NO_LETTER = re.compile(r"[\W_]+")


class Read(NamedTuple):
    """The headings of a page's HTML in order, with their ids, and all its words."""

    headings: tuple[Heading, ...]
    words: tuple[str, ...]


def words(text: str) -> list[str]:
    """The words of a text, folded."""
    return _WORD.findall(text.casefold())


def lacks(markdown: str, html: Read) -> bool:
    """Whether a page's HTML has a heading, or many words, that its Markdown lacks: text that a plugin generated."""
    known = set(words(markdown))
    unknown = [heading.text for heading in html.headings if not known.issuperset(words(heading.text))]
    if unknown:
        letters = _NO_LETTER.sub("", markdown.casefold())  # "H~2~O" is read as one word
        if any(_NO_LETTER.sub("", text.casefold()) not in letters for text in unknown):
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
    """The headings and words of a piece of HTML. Never raises."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    parser.finish()
    return Read(tuple(parser.headings), tuple(words("".join(parser.text))))


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.headings: list[Heading] = []
        self._level = 0
        self._id = ""
        self._text: list[str] = []
        self._inert: list[str] = []
        self._permalink = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _INERT:
            self._inert.append(tag)
        if self._inert:
            return
        if tag in APART:
            self.text.append(" ")
        attributes = dict(attrs)
        if tag in _LEVELS:
            self.finish()
            self._level = _LEVELS[tag]
        if self._level:
            self._id = self._id or attributes.get("id") or ""
        if tag == "a" and _PERMALINKS & set((attributes.get("class") or "").split()):
            self._permalink = True

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg":  # foreign content: browsers respect the slash of "<svg/>"
            return
        if tag not in _INERT and tag not in _LEVELS:  # "<h2/>" and "<script/>" are open elements to a browser
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)
        else:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._inert:
            if tag == self._inert[-1]:
                self._inert.pop()
            return
        if tag in APART:
            self.text.append(" ")
        if tag == "a":
            self._permalink = False
        elif tag in _LEVELS:
            self.finish()

    def handle_data(self, data: str) -> None:
        if self._inert or self._permalink:
            return
        self.text.append(data)
        if self._level:
            self._text.append(data)

    def finish(self) -> None:
        """End the open heading: it was closed, another one begins, or the page ends."""
        if self._level:
            self.headings.append(Heading(self._level, self._id, " ".join("".join(self._text).split())))
        self._level, self._id, self._text, self._permalink = 0, "", [], False


def to_markdown(html: str) -> str:
    """A page's HTML as Markdown, without permalinks, scripts and buttons.

    Raises :class:`ConfigError` when markdownify is not installed, and markdownify's own exceptions for HTML that it
    cannot convert.
    """
    try:
        from bs4 import BeautifulSoup
        from markdownify import ATX, MarkdownConverter
    except ImportError:
        raise ConfigError(
            "The option 'rendered' needs markdownify. Install it with pip install 'anvil-docs[mkdocs]'."
        ) from None

    soup = BeautifulSoup(html, "html.parser")
    permalinks = ", ".join(f"a.{name}" for name in sorted(_PERMALINKS))
    for unread in soup.select(f"{permalinks}, script, style, template, button, svg"):
        unread.decompose()
    for table in soup.select("table.highlighttable"):  # code with a column of line numbers
        code = table.select_one("td.code pre")
        if code is not None:
            table.replace_with(code)
    converter = MarkdownConverter(
        heading_style=ATX,
        bullets="-",
        newline_style="backslash",
        code_language_callback=_language,
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,  # names must be searchable as they are shown
    )
    text = str(converter.convert_soup(soup))
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def _language(pre: Any) -> str:
    """The language of a code block, as Pygments' wrapper names it: ``<div class="language-python highlight">``."""
    for element in (pre, *([pre.code] if pre.code else []), *([pre.parent] if pre.parent else [])):
        for name in element.get("class") or ():
            if name.startswith("language-"):
                return str(name.removeprefix("language-"))
    return ""
