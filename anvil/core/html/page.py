"""A page of a site: what its HTML says about it, and its content as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from anvil.core.html import markdown, parser
from anvil.core.html import words as word_lists
from anvil.core.html.content import NO_RULES, PageRules, content_of, generator_of
from anvil.core.html.generators import GENERIC
from anvil.core.html.parser import Tree
from anvil.core.markdown.rendered_anchors import Heading

_REFRESH = re.compile(r"\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.I)
_TITLE_SEPARATOR = re.compile("\\s+[|\u2013\u2014\u00b7\u2022\u00bb\u00ab:-]\\s+")
_LINK_OR_HEADING = re.compile(r"\[[^\]\n]*\]\([^()\s]*\)|^#.*", re.M)
_SCRIPTS = "script[src], script[type=module]"


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page as readers see it, and what its head says.

    ``markdown`` has the content. ``headings`` are (level, id, text) in order. ``canonical``, ``edit_url`` and
    ``refresh`` are addresses as the page has them, or None. ``noindex``: search engines may not index it.
    ``shell``: scripts make its content, so its HTML has none. ``word_count``: words of the content, and ``own_words``:
    those outside of its links and headings. ``frames``: it is a set of frames.
    """

    title: str
    markdown: str
    headings: tuple[Heading, ...]
    generator: str
    language: str
    description: str
    word_count: int
    own_words: int
    canonical: str | None = None
    edit_url: str | None = None
    refresh: str | None = None
    noindex: bool = False
    shell: bool = False
    frames: bool = False


def read_page(html: bytes | str, rules: PageRules = NO_RULES) -> PageContent:
    """Read a page. Raises :class:`parser.Unreadable` when it is too deep, and :class:`ConfigError` for an invalid
    selector of ``rules``."""
    tree = parser.parse(html)
    generator = generator_of(tree)
    content = content_of(tree, rules, generator)
    converted = markdown.to_markdown(content)
    word_count = len(word_lists.words(converted.markdown))
    head = _Head(tree)
    return PageContent(
        title=_title(tree, converted.headings),
        markdown=converted.markdown,
        headings=converted.headings,
        generator=generator.name,
        language=_attribute(tree, "html", "lang") or "",
        description=head.meta("description"),
        word_count=word_count,
        own_words=len(word_lists.words(_LINK_OR_HEADING.sub("", converted.markdown))),
        canonical=_attribute(tree, "link[rel~=canonical i]", "href"),
        edit_url=_edit_url(tree, (*generator.edit, *GENERIC.edit)),
        refresh=_refresh(head.meta("refresh", "http-equiv")),
        noindex=any("noindex" in said or said == "none" for said in (head.meta(name).lower() for name in _ROBOTS)),
        shell=word_count == 0 and parser.first(tree, _SCRIPTS) is not None,
        frames=parser.first(tree, "frameset") is not None,
    )


_ROBOTS = ("robots", "googlebot")


def lost_and_invented(html: bytes | str, rules: PageRules = NO_RULES) -> tuple[Counter[str], Counter[str]]:
    """The words of a page's content that its Markdown lacks, and those that only its Markdown has.

    The Markdown is read with its marks removed, so a mark that hides text counts as a loss.
    """
    tree = parser.parse(html)
    content = content_of(tree, rules)
    seen = word_lists.of_content(content)
    return word_lists.difference(seen, word_lists.of_markdown(markdown.to_markdown(content).markdown))


def _attribute(tree: Tree, selector: str, name: str) -> str | None:
    element = parser.first(tree, selector)
    value = element.attributes.get(name) if element is not None else None
    return value.strip() or None if value else None


class _Head:
    """The ``<meta>`` elements of a page."""

    def __init__(self, tree: Tree) -> None:
        self._metas = [element.attributes for element in parser.select(tree, "meta")]

    def meta(self, name: str, key: str = "name") -> str:
        """The content of the first one with this name."""
        for attributes in self._metas:
            if (attributes.get(key) or "").lower() == name:
                return " ".join((attributes.get("content") or "").split())
        return ""


def _title(tree: Tree, headings: tuple[Heading, ...]) -> str:
    """The first h1 of the content, else ``<title>`` without the name of the site."""
    for heading in headings:
        if heading.level == 1 and heading.text:
            return heading.text
    element = parser.first(tree, "head > title") or parser.first(tree, "title")
    title = " ".join(element.text().split()) if element is not None else ""
    parts = _TITLE_SEPARATOR.split(title)
    return parts[0] or title


def _refresh(value: str) -> str | None:
    match = _REFRESH.match(value) if value else None
    return match[1].strip() or None if match else None


def _edit_url(tree: Tree, selectors: tuple[str, ...]) -> str | None:
    if parser.first(tree, ", ".join(selectors)) is None:  # most pages: one pass tells
        return None
    for selector in selectors:
        target = _attribute(tree, selector, "href")
        if target and not target.startswith("#"):
            return target
    return None
