"""A page of a site: what its HTML says about it, and its content as Markdown, made from the HTML or by the site."""

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
"""What has the name of the site."""
_LINK_OR_HEADING = re.compile(r"\[[^\]\n]*\]\([^()\s]*\)|^#.*", re.M)
_SCRIPTS = "script[src], script[type=module]"
_WAITING = frozenset({"loading", "please", "wait"})
"""The words of a page whose text is not made yet."""


class PageContent(NamedTuple):
    """A page as readers see it: its content, its headings in order, and what is known of it."""

    markdown: str
    headings: tuple[Heading, ...]
    facts: PageFacts


def read_page(html: bytes | str, rules: PageRules = NO_RULES) -> PageContent:
    """Read a page. Raises :class:`html_tree.Unreadable` when it is too deep, and :class:`ConfigError` for an invalid
    selector of ``rules``."""
    tree = html_tree.parse(html)
    generator = generator_of(tree)
    content = content_of(tree, rules, generator)
    converted = markdown.to_markdown(content)
    word_count = len(words(converted.markdown))
    metas = [element.attributes for element in html_tree.select(tree, "meta")]
    refresh = _REFRESH.match(_meta(metas, "refresh", "http-equiv"))
    facts = PageFacts(
        title=_title(tree, converted.headings, generator),
        generator=generator.name,
        language=_attribute(tree, "html", "lang") or "",
        description=_meta(metas, "description"),
        version=_meta(metas, "docusaurus_version"),
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
    """Whether a reader sees any text without scripts, also around the content, but that it is loading."""
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
    """What the generator's ``title`` selects, if it has one. Else the h1 of the content that ``<title>`` is, or the
    first; else ``<title>`` without the name of the site: the first that says something."""
    if generator.title and (element := html_tree.first(tree, generator.title)) is not None:
        ignored = html_tree.ids(html_tree.select(element, generator.ignore)) if generator.ignore else frozenset()
        if given := text_of(element, ignored):
            return _TITLE_SEPARATOR.split(given)[0] if element.tag == "title" else given
    title = _text(html_tree.first(tree, "head > title") or html_tree.first(tree, "title"))
    parts = [part for part in _TITLE_SEPARATOR.split(title) if part] or [title]
    top = [heading.text for heading in headings if heading.level == 1 and heading.text]
    first = next((text for text in top if text == parts[0]), top[0] if top else "")
    if not says_nothing(first):
        return first
    # the part that is a heading, or has the first one; else the last behind the name of the site, or the first
    letters = dict.fromkeys(bare(heading.text) for heading in headings if heading.text and not top)
    named = [part for part in parts if bare(part) in letters]
    named += [part for part in parts if letters and next(iter(letters)) in bare(part)]
    banners = outermost(html_tree.select(tree, _BANNER)) if len(parts) > 1 else []  # a text once, however deep it is
    of_site = [bare(element.text()) for element in banners]
    in_banner = [any(bare(part) in name for name in of_site) for part in (parts[0], parts[-1])]
    short = [*named, parts[-1 if in_banner == [True, False] else 0]][0]
    return first if first and says_nothing(short) else short


def _text(element: Element | None) -> str:
    return " ".join(element.text().split()) if element is not None else ""


class PageLink(NamedTuple):
    """A link or an image of a page: what it leads to as written, its text or alternative text, and whether it is in the
    page's content, not around it."""

    target: str
    text: str
    is_image: bool
    is_content: bool


class HtmlLinks(NamedTuple):
    """``ids``: of all elements. ``text``: that of the content, its white space single blanks. ``is_redirect``: the page
    only leads to another."""

    ids: frozenset[str]
    links: tuple[PageLink, ...]
    text: str
    is_redirect: bool


def read_links(html: bytes | str, rules: PageRules = NO_RULES) -> HtmlLinks:
    """Read a page. Raises :class:`html_tree.Unreadable` when it is too deep."""
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
"""Words of a passage that is looked for in other pages."""
# Marks of Markdown whose letters and numbers are no words of the page: languages of code, numbers of lists and notes,
# kinds of admonitions, targets of links.
_FENCE = re.compile(r"(?:(?:[-*+]|\d+\.)\s+)*(`{3,})")
_MARKER = re.compile(r"^[ >]*(?:(?:-|\d{1,9}\.) +)*(?:\[![A-Z]+\]|\[\^[^\]]+\]:|\d{1,9}\. |-+$|(?:- )*\[[x ]\] )?")
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(?<!\\)(\*\*|~~|\*)(?=\S)(.*?\S)\1")
_PLACEHOLDER = "\ufdd0"
"""For a code span, whose marks are text. No character of Unicode."""
_LINK = re.compile(r"(?<!\\)(!?)\[((?:\\.|[^\[\]\\])*)\]\([^()\s]*\)")
_TARGET = re.compile(r"\]\([^()\s]*\)")
_HEADING_LINE = re.compile(r"^#{1,6} .*\n?", re.M)
MAX_FOLDERS_ABOVE = 4
"""Folders of an address in which the site may be published."""


def linked_twins(data: bytes, path: str) -> tuple[str, ...]:
    """The paths at which the Markdown may be that an HTML file names: ``<link rel=alternate type="text/markdown">``.

    The address may begin with folders in which the site is published, so there are several.
    """
    link = _TWIN_LINK.search(data) if b"text/markdown" in data else None
    target = _HREF.search(link[0]) if link else None
    if target is None:
        return ()
    href = unescape((target[1] or target[2] or target[3] or b"").decode("utf-8", "replace"))
    try:
        # ".invalid" is no domain (RFC 2606): where the site will be is not known, and the host is dropped
        address = unquote(urlsplit(urljoin(f"https://site.invalid/{quote(path)}", href)).path)
    except ValueError:
        return ()
    parts = posixpath.normpath(address).strip("/").split("/")
    if not parts[-1].endswith(".md") or not page_addresses.is_plain("/".join(parts)):
        return ()
    return tuple("/".join(parts[above:]) for above in range(min(len(parts), MAX_FOLDERS_ABOVE + 1)))


def read_with_twin(data: bytes, twin: bytes | None, rules: PageRules) -> PageContent:
    """Read an HTML file. ``twin``: the Markdown that the site has of this page, which is used if it says the same. A
    page without text has no Markdown."""
    try:
        markdown, headings, facts = read_page(data, rules)
    except html_tree.Unreadable as error:
        return PageContent("", (), PageFacts(problem=str(error)))
    if twin is not None and (same := _said_by(twin, markdown)) is not None:
        markdown, facts = same, facts._replace(images=())  # it has its images in the text
    values = [markdown, headings, facts.title, facts.description, facts.language]
    digest = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()
    heading_digests = " ".join(site_pages.short_digest(heading.text) for heading in headings)
    facts = facts._replace(digest=digest, passages=_passages(markdown), heading_digests=heading_digests)
    return PageContent(markdown if facts.word_count else "", headings, facts)


def _passages(markdown: str) -> str:
    """The texts between the headings of a page, in short: digest and number of words of all of them together, then of
    each that is long enough to be looked for."""
    bodies = [markdown_words(body) for body in _HEADING_LINE.split(markdown)]
    whole = [word for body in bodies for word in body]
    passages = (whole, *(body for body in bodies if len(body) >= MIN_PASSAGE_WORDS))
    return " ".join(f"{site_pages.short_digest(' '.join(passage))}{len(passage)}" for passage in passages)


def _said_by(twin: bytes, markdown: str) -> str | None:
    try:
        text = twin.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    _, begin = front_matter.split(text)
    return text[begin:] if _say_the_same(markdown, text[begin:]) else None


def markdown_words(text: str) -> list[str]:
    """The words that readers of Markdown see: without the targets of links, the languages of code, and the marks of
    footnotes and admonitions. Escaped characters are text."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip(" >")
        marks = _FENCE.match(bare)
        if fence:
            if bare.rstrip() == fence:
                fence = ""
            else:
                lines.append(line)
        elif marks:
            fence = marks[1]
        else:
            lines.append(_without_marks(_MARKER.sub("", line)))
    return words("\n".join(lines))


MAX_DIFFERENT_SHARE = 0.02
"""The share of words in which two texts that say the same may differ."""


def _say_the_same(left: str, right: str) -> bool:
    """Whether two pieces of Markdown have the same words, nearly."""
    first, second = Counter(markdown_words(left)), Counter(markdown_words(right))
    different = (first - second) + (second - first)
    return different.total() <= MAX_DIFFERENT_SHARE * (first.total() + second.total()) / 2


def _without_marks(line: str) -> str:
    """A line without the marks of code, emphasis and links. They do not separate words: "`int`s" and "[int](a.md)s" are
    one. Images do."""
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
    # not strict: a link's target that had a code span in it is gone with it
    return first + "".join(code + text for code, text in zip(spans, others, strict=False))
