"""A page of a site: facts about it, and its content as Markdown, which is made from the HTML or written by the site."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from anvil.formats.data_formats import canonical
from anvil.sites import html_to_markdown as markdown
from anvil.sites import html_tree, page_addresses, site_pages
from anvil.sites.generators import Generator
from anvil.sites.html_tree import Element, Tree
from anvil.sites.page_content import (
    INERT,
    NO_RULES,
    PageRules,
    content_of,
    edit_url,
    generator_of,
    outermost,
    text_of,
    words,
)
from anvil.sites.site_pages import PageFacts
from anvil.text import front_matter
from anvil.text.headings import says_nothing
from anvil.text.section_places import Heading, bare

# "0; url=/new/"
_REFRESH = re.compile(r"\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.I)
# "Page | Site", "Page - Site", "Page :: Site" and the like
_TITLE_SEPARATOR = re.compile("\\s+(?:::|[|\u2013\u2014\u00b7\u2022\u00bb\u00ab:-])\\s+")
_BANNER = "#banner, [role=banner], [class*=brand i], [class*=logo i]"
"""Elements that may have the name of the site."""
_LINK_OR_HEADING = re.compile(r"\[[^\[\]\n]*\]\([^()\s]*\)|^#.*", re.M)
_SCRIPTS = "script[src], script[type=module]"
_WAITING = frozenset({"loading", "please", "wait"})
"""The words of a page whose text is made by scripts."""


class PageContent(NamedTuple):
    """The content of a page as Markdown, its headings in order, and facts about it."""

    markdown: str
    headings: tuple[Heading, ...]
    facts: PageFacts


def read_page(html: bytes | str, rules: PageRules = NO_RULES) -> PageContent:
    """Read a page. Raises :class:`html_tree.Unreadable` if it would take long to parse, and :class:`ConfigError` for a
    CSS selector of ``rules`` that is not valid."""
    tree = html_tree.parse(html)
    generator = generator_of(tree)
    content = content_of(tree, rules, generator)
    converted = markdown.to_markdown(content)
    word_count = len(words(converted.markdown))
    metas = [element.attributes for element in html_tree.select(tree, "meta")]
    description = _meta(metas, "description")
    refresh = _REFRESH.match(_meta(metas, "refresh", "http-equiv"))
    facts = PageFacts(
        title=_title(tree, converted.headings, generator),
        generator=generator.name,
        language=_attribute(tree, "html", "lang") or "",
        description="" if description == "None" else description,  # of MkDocs' own themes, for a site without one
        version=_meta(metas, "docusaurus_version"),
        selected=any(html_tree.first(tree, selector) is not None for selector in rules.content),
        word_count=word_count,
        own_words=len(words(_LINK_OR_HEADING.sub("", converted.markdown))),
        canonical=_attribute(tree, "link[rel~=canonical i]", "href"),
        edit_url=edit_url(tree),
        refresh=refresh[1].strip() or None if refresh else None,
        robots="\n".join(_meta(metas, name).lower() for name in ("robots", "googlebot")),
        shell=word_count <= len(_WAITING) and html_tree.first(tree, _SCRIPTS) is not None and not _has_text(tree),
        frames=html_tree.first(tree, "frameset") is not None,
        images=converted.images,
    )
    return PageContent(converted.markdown, converted.headings, facts)


def _has_text(tree: Tree) -> bool:
    """Whether a page has any text without scripts, in the content or around it. "Loading" and the like do not count."""
    inert = html_tree.ids(html_tree.select(tree, ", ".join(sorted(INERT))))
    return tree.body is not None and not _WAITING.issuperset(words(text_of(tree.body, inert)))


def _attribute(tree: Tree, selector: str, name: str) -> str | None:
    element = html_tree.first(tree, selector)
    value = element.attributes.get(name) if element is not None else None
    return value.strip() or None if value else None


def _meta(metas: Iterable[Mapping[str, str | None]], name: str, key: str = "name") -> str:
    """The content of the first ``<meta>`` with this name."""
    for attributes in metas:
        if (attributes.get(key) or "").lower() == name:
            return " ".join((attributes.get("content") or "").split())
    return ""


def _title(tree: Tree, headings: tuple[Heading, ...], generator: Generator) -> str:
    """The title of a page: the text that the generator's ``title`` selects, else an h1 of the content, else the part of
    ``<title>`` that is not the name of the site.

    Of several h1, it is the one that begins ``<title>``, else the first. An h1 such as "README", which says nothing, is
    used only if ``<title>`` says nothing either.
    """
    if generator.title and (element := html_tree.first(tree, generator.title)) is not None:
        ignored = html_tree.ids(html_tree.select(element, generator.ignore)) if generator.ignore else frozenset()
        if selected := text_of(element, ignored):
            return _TITLE_SEPARATOR.split(selected)[0] if element.tag == "title" else selected
    title = _text(html_tree.first(tree, "head > title") or html_tree.first(tree, "title"))
    parts = [part for part in _TITLE_SEPARATOR.split(title) if part] or [title]
    top_headings = [heading.text for heading in headings if heading.level == 1 and heading.text]
    top = next((text for text in top_headings if text == parts[0]), top_headings[0] if top_headings else "")
    if not says_nothing(top):
        return top
    # A page without h1: the part that is one of its headings, or that contains the first heading.
    names = dict.fromkeys(bare(heading.text) for heading in headings if heading.text and not top_headings)
    candidates = [part for part in parts if bare(part) in names]
    candidates += [part for part in parts if names and next(iter(names)) in bare(part)]
    # Else the first part, or the last where the first is in the banner of the site.
    banners = outermost(html_tree.select(tree, _BANNER)) if len(parts) > 1 else []  # outermost: each text once
    banner_texts = [bare(element.text()) for element in banners]
    in_banner = [any(bare(part) in text for text in banner_texts) for part in (parts[0], parts[-1])]
    candidates.append(parts[-1 if in_banner == [True, False] else 0])
    return top if top and says_nothing(candidates[0]) else candidates[0]


def _text(element: Element | None) -> str:
    return " ".join(element.text().split()) if element is not None else ""


class PageLink(NamedTuple):
    """A link or an image of a page. ``target``: its address as written. ``text``: its text or alternative text.
    ``is_content``: it is in the content of the page, not around it."""

    target: str
    text: str
    is_image: bool
    is_content: bool


class HtmlLinks(NamedTuple):
    """The links and ids of a page.

    ``ids``: the ids of all elements, and the names of anchors. ``text``: the text of the content, with single spaces.
    ``is_redirect``: the page only leads to another one.
    """

    ids: frozenset[str]
    links: tuple[PageLink, ...]
    text: str
    is_redirect: bool


def read_links(html: bytes | str, rules: PageRules = NO_RULES) -> HtmlLinks:
    """Read the links of a page. Raises :class:`html_tree.Unreadable` if it would take long to parse."""
    tree = html_tree.parse(html)
    roots = content_of(tree, rules).roots
    inside = html_tree.ids([element for root in roots for element in html_tree.select(root, "a[href], img[src]")])
    links = []
    for element in html_tree.select(tree, "a[href], img[src]"):
        attributes, is_image = element.attributes, element.tag == "img"
        target = attributes.get("src" if is_image else "href") or ""
        text = " ".join(((attributes.get("alt") or "") if is_image else element.text()).split())
        links.append(PageLink(target.strip(), text, is_image, element.mem_id in inside))
    attributes_of = [element.attributes for element in html_tree.select(tree, "[id], a[name]")]
    ids = frozenset(value for each in attributes_of for name in ("id", "name") if (value := each.get(name)))
    text = " ".join(" ".join(root.text() for root in roots).split())
    return HtmlLinks(ids, tuple(links), text, html_tree.first(tree, "meta[http-equiv=refresh i]") is not None)


# --- the Markdown that a site has of a page --------------------------------------------------------------------------

_TWIN_LINK = re.compile(rb"<link\b[^>]{0,500}\btext/markdown\b[^>]{0,500}>", re.I)
_HREF = re.compile(rb"\shref\s*=\s*(?:\"([^\">]*)\"|'([^'>]*)'|([^\s\"'>]+))", re.I)
MIN_PASSAGE_WORDS = 8
"""Words that a passage needs, so that it is looked for in other pages."""
# Marks of Markdown whose letters and numbers are not words of the page: languages of code, numbers of lists and notes,
# kinds of admonitions, targets of links.
_FENCE = re.compile(r"(?:(?:[-*+]|\d+\.)\s+)*(`{3,})")
_MARKER = re.compile(r"^[ >]*(?:(?:-|\d{1,9}\.) +)*(?:\[![A-Z]+\]|\[\^[^\]]+\]:|\d{1,9}\. |-+$|(?:- )*\[[x ]\] )?")
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(?<!\\)(\*\*|~~|\*)(?=\S)(.*?\S)\1")
_PLACEHOLDER = "\ufdd0"
"""Stands for a code span while other marks are removed, because marks in code are text. Unicode lacks it."""
_LINK = re.compile(r"(?<!\\)(!?)\[((?:\\.|[^\[\]\\])*)\]\([^()\s]*\)")
_TARGET = re.compile(r"\]\([^()\s]*\)")
_HEADING_LINE = re.compile(r"^#{1,6} .*\n?", re.M)
MAX_FOLDERS_ABOVE = 4
"""Folders at the begin of an address that may be the path at which the site is published."""


def linked_twins(data: bytes, path: str) -> tuple[str, ...]:
    """The paths in the site at which the Markdown of a page may be, by its ``<link type="text/markdown">``.

    There are several, because the address may begin with the folders in which the site is published.
    """
    link = _TWIN_LINK.search(data) if b"text/markdown" in data else None
    target = _HREF.search(link[0]) if link else None
    if target is None:
        return ()
    href = unescape((target[1] or target[2] or target[3] or b"").decode("utf-8", "replace"))
    try:
        # The address of the site is not known. Any host will do, because only the path is used.
        address = unquote(urlsplit(urljoin(f"https://site.invalid/{quote(path)}", href)).path)
    except ValueError:
        return ()
    parts = posixpath.normpath(address).strip("/").split("/")
    if not parts[-1].endswith(".md") or not page_addresses.is_plain("/".join(parts)):
        return ()
    return tuple("/".join(parts[above:]) for above in range(min(len(parts), MAX_FOLDERS_ABOVE + 1)))


def read_with_twin(data: bytes, twin: bytes | None, rules: PageRules) -> PageContent:
    """Read an HTML file. ``twin``: the Markdown file that the site has of this page. It is used if it has the same
    words. A page without text has empty Markdown."""
    try:
        markdown, headings, facts = read_page(data, rules)
    except html_tree.Unreadable as error:
        return PageContent("", (), PageFacts(problem=str(error)))
    if twin is not None and (twin_text := _twin_with_same_words(twin, markdown)) is not None:
        markdown, facts = twin_text, facts._replace(images=())  # its text contains the images
    values = [markdown, headings, facts.title, facts.description, facts.language]
    digest = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()
    heading_digests = " ".join(site_pages.short_digest(heading.text) for heading in headings)
    facts = facts._replace(digest=digest, passages=_passages(markdown), heading_digests=heading_digests)
    return PageContent(markdown if facts.word_count else "", headings, facts)


def _passages(markdown: str) -> str:
    """The value of :attr:`PageFacts.passages`. A passage is the text between two headings, written as its digest and
    its number of words. The first is the whole text of the page; the others are the passages that are long enough."""
    bodies = [markdown_words(body) for body in _HEADING_LINE.split(markdown)]
    whole = [word for body in bodies for word in body]
    passages = (whole, *(body for body in bodies if len(body) >= MIN_PASSAGE_WORDS))
    return " ".join(f"{site_pages.short_digest(' '.join(passage))}{len(passage)}" for passage in passages)


def _twin_with_same_words(twin: bytes, markdown: str) -> str | None:
    """The text of a Markdown file without front matter; None if it has other words than ``markdown``."""
    try:
        text = twin.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    _, begin = front_matter.split(text)
    return text[begin:] if _have_same_words(markdown, text[begin:]) else None


def markdown_words(text: str) -> list[str]:
    """The visible words of Markdown, without targets of links, languages of code, marks of footnotes, admonitions."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        unquoted = line.lstrip(" >")
        opening = _FENCE.match(unquoted)
        if fence:
            if unquoted.rstrip() == fence:
                fence = ""
            else:
                lines.append(line)
        elif opening:
            fence = opening[1]
        else:
            lines.append(_without_marks(_MARKER.sub("", line)))
    return words("\n".join(lines))


MAX_DIFFERENT_SHARE = 0.02
"""The share of its words in which the Markdown of a site may differ from that made of the HTML."""


def _have_same_words(left: str, right: str) -> bool:
    """Whether two pieces of Markdown have nearly the same words, in any order."""
    first, second = Counter(markdown_words(left)), Counter(markdown_words(right))
    different = (first - second) + (second - first)
    return different.total() <= MAX_DIFFERENT_SHARE * (first.total() + second.total()) / 2


def _without_marks(line: str) -> str:
    """A line without the marks of code, emphasis, links and images. "`int`s" and "[int](a.md)s" are one word; an image
    is separated from the words around it."""
    if not any(mark in line for mark in ("`", "*", "~", "](")):
        return line
    spans = [span[2] for span in _CODE_SPAN.finditer(line)]
    bare = _CODE_SPAN.sub(_PLACEHOLDER, line)
    for _ in range(2):  # the text of a link may be an image
        bare = _LINK.sub(lambda match: f" {match[2]} " if match[1] else match[2], bare)
    bare = _TARGET.sub("]", bare)
    while (unmarked := _EMPHASIS.sub(r"\2", bare)) != bare:
        bare = unmarked
    first, *others = bare.split(_PLACEHOLDER)
    # not strict: a code span in the target of a link was removed with the target
    return first + "".join(code + text for code, text in zip(spans, others, strict=False))
