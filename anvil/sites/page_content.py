"""The content of a page: the elements with its text, what in them is none, such as navigation, its words and headings.

Where it is and what is left out are the rules of the page's generator, of all pages, and of the user.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.generators import CONTENT_CLASS, GENERATORS, Generator
from anvil.sites.html_tree import Element, Tree
from anvil.text.section_places import Heading
from anvil.text.visible_text import APART, is_separate_mark

_TITLE = "h1:not(article *, nav *, aside *, body > header *, [role=banner] *)"
"""A title outside of articles. They are parts of the content then, as in pages of JSDoc."""
_NAME = re.compile(r"[a-z][\w.-]*")
"""Of a generator, in front of its version."""
INERT = frozenset(
    """
    script style noscript iframe svg canvas object embed audio video select textarea datalist dialog xmp
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Elements whose content is not text of the page."""
_TITLES = "h1, h2, h3, h4, h5, h6, dt, caption, figcaption, summary"
"""Elements that have links to themselves, to their source, or to edit what they begin."""
_LINKED_NAMES = ":is(h1, h2, h3, h4, h5, h6, dt, code) > a[href^='#']:only-child"
"""Links that may have all the text, though they have the class of a sign, as in VuePress 2, or are hidden from screen
readers."""
_ANCHOR_SIGN = re.compile(r"[\W_]*", re.S)
"""All the text of a link of a heading to itself, such as "#", "¶" or a picture."""
_SOURCE_SIGN = re.compile(r"\s*\[(?:view )?(?:source|src|docs|edit)\]\s*")
"""All the text of a link of a heading to its source."""
_IN_REPOSITORY = "a[href*='/edit/'], a[href*='/blob/'], a[href*='/tree/']"
_EDIT = re.compile(r"\W*(?:edit|improve|suggest)\b", re.I)
_EDITED_FILE = re.compile(r"/(?:edit|blob|tree)/[^/]+/.*\.\w+$")
"""A file behind a branch, as GitHub and GitLab have it in their addresses."""
_NAVIGATION = """
    :is(div, ul, ol, aside, table, td, p, span, header):not([role=tablist], [role=note], .nav-tabs):is(
    [class^=nav i], [class*=' nav' i], [class$=nav i], [id^=nav i], [class^=sidebar i], [class*=' sidebar' i],
    [id^=sidebar i], [class*=breadcrumb i], [class~=menu i], #path, #page-header)
"""
"""What is navigation if at least half of its text are links."""


class PageRules(NamedTuple):
    """A user's CSS selectors: of the content element, where the generator's is wrong, and of what is left out."""

    content: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


NO_RULES = PageRules()


_NO_SECTION = ":not(.section, [class*=level])"
"""No section below a heading such as "Content", whose id is made of the heading."""
ARTICLES = "article:is(main *, [role=main] *)"
GENERIC = Generator(
    "all",
    content=(
        "section.normal",
        *(ARTICLES, "main", "[role=main]", "article"),
        f":is(div, section, td){_NO_SECTION}:is(#content, #main-content, #page-content, #bodyColumn)",
        *("body article", CONTENT_CLASS, "body"),
    ),
    ignore="""
        nav, [role=navigation], [role=search], [role=banner], [role=contentinfo], [hidden]:not([role=tabpanel]),
        [aria-hidden=true]:not([role=tabpanel], .starlight-aside__title, .rp-tabs__content__item),
        [style='display:none']:not([role=tabpanel]), .sr-only,
        [style='display: none']:not([role=tabpanel]), [role=dialog],
        a:is([data-toggle=modal], [data-bs-toggle=modal]):not(:has(img)),
        .visually-hidden, .skip-link, .breadcrumb, .breadcrumbs, .pagination-nav, .prev-next, .page-nav,
        a:is([rel~=prev], [rel~=next]), .edit-page-link,
        :is(a, button, span, i, svg):is(.headerlink, .header-anchor, .anchor-link, .hash-link, .heading-anchor,
        .anchorjs-link, .heading-link), span.permalink,
        .edit-link, .edit-this-page, .toc, #toc, #TOC, #markdown-toc,
        :is(h2, h3, h4):has(+ #markdown-toc):not(h2:has(+ * + h3, + * + hr + h3), h3:has(+ * + h4, + * + hr + h4)),
        .table-of-contents, [class*=mini-toc], [role=menu], .copybtn, .copy-button, .clipboard-copy-txt,
        .jp-InputPrompt, .jp-OutputPrompt,
        :is(.nbinput, .nboutput) > .prompt, body > header:not(#title-block-header),
        body > footer, main > footer, article > footer, form[role=search],
        button:not([role=tab], li > :has(+ ul), h1 *, h2 *, h3 *, h4 *, h5 *, h6 *, summary *, dt *,
        :has(> code), :has(> button:nth-of-type(8)) > *),
        aside.footnote > .label,
        .footnote-backref, [role=doc-backlink]:not(h1 *, h2 *, h3 *, h4 *, h5 *, h6 *), .data-footnote-backref,
        .reversefootnote, span.backrefs, td.linenos, td.gl, td.gutter, .linenodiv, .rouge-gutter, .hljs-ln-numbers,
        .line-numbers-rows, pre :is(.linenos, .lineno, .line-number, .lnt, .ln, .gutter),
        div.fragment :is(.lineno, .ttc),
        div[class*=language-] > span.lang, [role=tabpanel] > :is(.vp-tab-title, .vp-code-tab-title),
        semantics:has(> annotation[encoding='application/x-tex']) > :not(annotation),
        semantics > annotation:not([encoding='application/x-tex']), math[alttext]:not(:has(annotation)) > *,
        .md-source-file, .md-content__button, .md-feedback, .md-tags, .md-header, .md-tabs, .md-footer,
        .footer, #footer, .site-footer, footer:not(article *, main *, section *, blockquote *, li *)
    """,
    entries="dt.sig",  # as Sphinx's autodoc writes it
)
"""The rules for all pages. Those of the page's generator come first."""
UNKNOWN = Generator("unknown")
"""A page that names no generator and has the markup of none."""


class Content(NamedTuple):
    """The content elements of a page, in order; the elements in them that are left out (see :func:`html_tree.ids`),
    and those that begin an entry of an API."""

    roots: tuple[Element, ...]
    skipped: frozenset[int]
    entries: frozenset[int] = frozenset()


def validate(selectors: Iterable[str]) -> None:
    """Raises :class:`ConfigError` for a selector that cannot be read."""
    tree = html_tree.parse("")
    for selector in selectors:
        html_tree.select(tree, selector)


def generator_of(tree: Tree) -> Generator:
    """The generator that made a page. One without a row has the first word by which it names itself, or "unknown"."""
    metas = [
        (element.attributes.get("content") or "").strip().lower()
        for element in html_tree.select(tree, "meta[name=generator i]")
    ]

    def is_named(generator: Generator) -> bool:
        return bool(generator.meta) and any(meta.startswith(generator.meta) for meta in metas)

    is_known = any(map(is_named, GENERATORS))
    for generator in GENERATORS:
        # the markup of a theme alone: not of a page that names another generator here, which may have the same theme
        may_be = is_named(generator) or not generator.meta or (generator.markup and not is_known)
        if may_be and (not generator.markup or html_tree.first(tree, generator.markup) is not None):
            return generator
    names = (name[0] for meta in metas if (name := _NAME.match(meta)))
    return replace(UNKNOWN, name=next(names, UNKNOWN.name))


def content_of(tree: Tree, rules: PageRules = NO_RULES, generator: Generator | None = None) -> Content:
    """The content of a page. Elements with ``data-pagefind-body`` come first, then the user's selectors, then those of
    the generator, then :data:`GENERIC`'s."""
    generator = generator or generator_of(tree)
    own = (*rules.content, "[data-pagefind-body]", *generator.content)
    found = (outermost(html_tree.select(tree, selector)) for selector in own)
    roots = next(filter(None, found), None) or _by_general_rules(tree)
    if not rules.content and not any(map(_has_text, roots)) and html_tree.first(tree, _TITLE) is not None:
        others = (outermost(html_tree.select(tree, selector)) for selector in GENERIC.content)
        roots = next((each for each in others if any(map(_has_text, each))), roots)  # a landing page, all around it
    for element in html_tree.select(tree, generator.blocks) if generator.blocks else ():
        element.insert_after(" ")
    ignored = _ignored(rules.ignore, generator)
    left_out = [element for root in roots for element in html_tree.select(root, ignored)]
    linked = [each for root in roots for each in html_tree.select(root, _LINKED_NAMES)]
    all_of_name = html_tree.ids([link for link in linked if link.prev is None and link.next is None])
    with_content = around(roots) | all_of_name  # never left out
    skipped = html_tree.ids([element for element in left_out if element.mem_id not in with_content])
    entry_selector = ", ".join(filter(None, (generator.entries, GENERIC.entries)))
    begun = [each for root in roots for each in html_tree.select(root, entry_selector)]
    tops = html_tree.ids(roots)
    entries = html_tree.ids([each for each in begun if each.parent is not None and each.parent.mem_id not in tops])
    skipped |= _signs(roots, begun) | _edit_links(roots)
    skipped |= _navigation(roots, skipped) - with_content
    return Content(tuple(roots), skipped, entries)


def whole_content(html: str) -> Content:
    """The content of HTML that is content as a whole, as a generator gives it to its plugins. Raises
    :class:`html_tree.Unreadable` for one that is too deep."""
    return content_of(html_tree.parse(html), PageRules(content=("body",)), GENERIC)


def _by_general_rules(tree: Tree) -> list[Element]:
    """The content of a page whose generator has no rule that fits it."""
    title = html_tree.first(tree, _TITLE)
    for selector in GENERIC.content:
        roots = outermost(html_tree.select(tree, selector))
        if not roots:
            continue
        if selector == ARTICLES:
            if html_tree.first(tree, f"main {_TITLE}, [role=main] {_TITLE}") is None:
                return roots
        elif title is None or not selector.endswith("article"):
            return roots
        elif selector == "body article":  # what has the title and an article
            with_article = around(roots)
            above: Element | None = title
            while above is not None and above.mem_id not in with_article:
                above = above.parent
            return roots if above is None else [above]
    return []


@functools.lru_cache(maxsize=64)
def _ignored(own: tuple[str, ...], generator: Generator) -> str:
    lists = (*own, "[data-pagefind-ignore]:not(.nextra-code)", *sorted(INERT), generator.ignore, GENERIC.ignore)
    return ", ".join(filter(None, lists))


def is_note_reference(link: Element) -> bool:
    """Whether a link leads to a footnote."""
    attributes = link.attributes
    names = html_tree.classes(link)
    return (
        not {"footnote-ref", "footnote-reference"}.isdisjoint(names)
        or attributes.get("role") == "doc-noteref"
        or "data-footnote-ref" in attributes
        or (attributes.get("rel") == "footnote" and "footnote" in names)
        or (link.parent is not None and "footnote-ref" in html_tree.classes(link.parent))
    )


def outermost(elements: Sequence[Element]) -> list[Element]:
    """The elements that are in none of the others."""
    if len(elements) < 2:
        return list(elements)
    chosen: list[Element] = []
    element_ids = html_tree.ids(elements)
    for element in elements:
        above = element.parent
        while above is not None and above.mem_id not in element_ids:
            above = above.parent
        if above is None:
            chosen.append(element)
    return chosen


def around(elements: Iterable[Element]) -> frozenset[int]:
    """The elements and those that contain them (see :func:`html_tree.ids`)."""
    found: set[int] = set()
    for element in elements:
        above: Element | None = element
        while above is not None and above.mem_id not in found:
            found.add(above.mem_id)
            above = above.parent
    return frozenset(found)


def _signs(roots: Sequence[Element], entries: Sequence[Element]) -> frozenset[int]:
    """The links of headings and entries to themselves and to their source that are no part of their text."""
    found = []
    for title in (*(each for root in roots for each in html_tree.select(root, _TITLES)), *entries):
        for link in html_tree.select(title, "a:not(pre *, code *)"):
            text = link.text()
            is_own = (link.attributes.get("href") or "").startswith("#")
            if _SOURCE_SIGN.fullmatch(text) or (is_own and _ANCHOR_SIGN.fullmatch(text)):
                found.append(link)
    return html_tree.ids(found)


def _edit_links(roots: Sequence[Element]) -> frozenset[int]:
    """The links to edit a file in a repository that are all the text of a paragraph."""
    links = [link for root in roots for link in html_tree.select(root, _IN_REPOSITORY)]
    with_text: dict[int, int] = {}  # a paragraph -> its nodes with text, counted once: it may have thousands of links
    alone = []
    for link in links:
        around_it = link.parent
        if around_it is None or around_it.tag not in ("p", "div"):
            continue
        target = link.attributes.get("href") or ""
        if _EDITED_FILE.search(target) and ("/edit/" in target or _EDIT.match(link.text())):
            if around_it.mem_id not in with_text:
                with_text[around_it.mem_id] = sum(map(_has_text, around_it.iter(include_text=True)))
            if with_text[around_it.mem_id] == _has_text(link):
                alone.append(link)
    return html_tree.ids(alone)


_EDIT_LINKS = (
    *("a[rel~=edit]", "link[rel=edit]", "a.edit-page-link", "a.edit-link-button", "a[href*='/edit/']"),
    *(".contribution a", "a:is([title^='edit this page' i], [title^='suggest an edit' i])"),
)


def edit_url(tree: Tree) -> str | None:
    """Where a page says that it is edited: by the element of the link, else by its text and its address."""
    for selector in _EDIT_LINKS if html_tree.first(tree, ", ".join(_EDIT_LINKS)) is not None else ():
        element = html_tree.first(tree, selector)
        target = ((element.attributes.get("href") if element is not None else None) or "").strip()
        if target and not target.startswith("#"):
            return target
    links = html_tree.select(tree, _IN_REPOSITORY)
    return next((link.attributes.get("href") for link in links if _EDIT.match(link.text())), None)


def _navigation(roots: Sequence[Element], skipped: frozenset[int]) -> frozenset[int]:
    """The elements that a class or an id calls navigation or that stand before the title, whose text is half links or
    more. Not what is around all of the page, such as ``<div class="sidebar-left">``."""
    named = html_tree.ids([element for root in roots for element in html_tree.select(root, _NAVIGATION)])
    named |= html_tree.ids([element for root in roots for element in _before_title(root)])
    if not named:
        return named
    found: set[int] = set()
    begun: dict[int, tuple[int, int, int]] = {}
    size = in_links = links = articles = 0
    for root in roots:
        for node, begins in html_tree.walk(root, skipped):
            if node.is_text_node:
                length = len((node.text_content or "").strip())
                size += length
                in_links += length if links else 0
            elif node.tag == "a":
                links += 1 if begins else -1
            elif begins:
                articles += node.tag in ("main", "article")
                if node.mem_id in named:
                    begun[node.mem_id] = (size, in_links, articles)
            elif node.mem_id in named:
                size_before, in_links_before, articles_before = begun[node.mem_id]
                if 2 * (in_links - in_links_before) >= size - size_before > 0 and articles == articles_before:
                    found.add(node.mem_id)
    return frozenset(found)


def _before_title(root: Element) -> list[Element]:
    """What stands before the title of a page in its content and has links, at each depth; nothing if another heading is
    the first, or if it is nearly all of the page. A single link is that to the package, in pages of Javadoc."""
    found: list[Element] = []
    node = html_tree.first(root, "h1:not(aside *), h2, h3, h4, h5, h6")
    if node is None or node.tag != "h1":
        return found
    while node is not None and node.mem_id != root.mem_id:
        before = node.prev
        while before is not None:
            if before.is_element_node and before.tag != "p" and len(html_tree.select(before, "a[href]")) > 1:
                found.append(before)
            before = before.prev
        node = node.parent
    return found if 4 * sum(len(each.text()) for each in found) <= 3 * len(root.text()) else []


def _has_text(node: Element) -> bool:
    text = node.text_content if node.is_text_node else node.text() if node.is_element_node else ""
    return bool((text or "").strip())


# --- words and headings ----------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+")
CODE = ("code", "tt", "samp")
SCRIPTS = ("sub", "sup")
EDGES = APART | {"caption", "summary", "hgroup", "body", "legend", "button", "label"}
"""Elements that separate words."""
LEVELS = {f"h{level}": level for level in range(1, 7)}
HEADINGS = ", ".join(LEVELS)


def words(text: str) -> list[str]:
    """The words of a text, folded."""
    return _WORD.findall(text.casefold())


def text_of(root: Element, skipped: Container[int] = frozenset()) -> str:
    """The text under an element in one line, with the texts of images, and a space where an element separates words."""
    pieces: list[str] = []
    for node, begins in html_tree.walk(root, skipped):
        if node.is_text_node:
            pieces.append(node.text_content or "")
        elif node.is_element_node:
            tag = node.tag
            if (
                tag in EDGES
                or (tag == "a" and is_note_reference(node))
                or (begins and tag in SCRIPTS and is_separate_script(node, "".join(pieces[-3:])))
            ):
                pieces.append(" ")
            elif begins and tag == "math":
                pieces.append(
                    node.attributes.get("alttext") or "" if html_tree.first(node, "annotation") is None else ""
                )
            if begins and tag == "img":
                pieces.append(f" {node.attributes.get('alt') or ''} ")
    return " ".join("".join(pieces).split())


def is_separate_script(script: Element, before: str) -> bool:
    """Whether a ``<sup>`` or ``<sub>`` is a footnote or a label and no part of the word ``before`` it."""
    link = html_tree.first(script, "a")
    if link is not None and is_note_reference(link):  # written as "[^1]", which is part of no word
        return False
    is_behind_code = script.prev is not None and script.prev.tag in CODE
    return is_separate_mark(f"{before}`" if is_behind_code else before, script.text().strip())


def words_of(content: Content) -> list[str]:
    """All words of a page's content."""
    return [word for root in content.roots for word in words(text_of(root, content.skipped))]


def headings_of(content: Content) -> tuple[Heading, ...]:
    """The headings of a page in order, also those that have no id. Of a signature the text is its name."""
    skipped = content.skipped
    return tuple(
        Heading(LEVELS[node.tag or ""], anchor_of(node), signature_name(node, skipped) or text_of(node, skipped))
        for root in content.roots
        for node, begins in html_tree.walk(root, skipped)
        if begins and node.is_element_node and node.tag in LEVELS
    )


def anchor_of(heading: Element) -> str:
    """The id by which a heading is reached: its own, else one in it, that of an empty element before it, or of the
    section that it begins."""
    own = heading.attributes.get("id")
    if own:
        return own
    named = html_tree.first(heading, "[id], a[name]")
    if named is not None:
        return id_of(named)
    before = node_before(heading)
    if before is not None and before.is_element_node and before.tag in ("a", "span", "div"):
        name = id_of(before)
        if name and not before.text().strip():
            return name
    inner, above = heading, heading.parent
    for _ in range(4):  # a heading may be in a <div> or <header> of its section, in three of DocBook; in all the first
        if above is None or not _is_first(inner):
            return ""
        name = above.attributes.get("id") or ""
        if name and (
            above.tag in ("section", "div", "article", "a") or "-" in (above.tag or "")
        ):  # "-": of the site's own
            return name
        inner, above = above, above.parent
    return ""


def id_of(element: Element) -> str:
    return element.attributes.get("id") or element.attributes.get("name") or ""


def node_before(element: Element) -> Element | None:
    """The node before an element, blank text left out."""
    before = element.prev
    while before is not None and before.is_text_node and not (before.text_content or "").strip():
        before = before.prev
    return before


_MAX_LINKS_BEFORE = 20
"""Links in front of a heading that begins a section."""


def _is_first(element: Element) -> bool:
    """Whether an element begins the one that it is in: before it are only links, such as that to the source in the
    pages of rustdoc."""
    before = node_before(element)
    for _ in range(_MAX_LINKS_BEFORE):
        if before is None or not before.is_element_node or before.tag not in ("a", "span"):
            break
        own_text = "" if before.tag == "a" else "".join(before.text().split())
        if own_text and html_tree.first(before, "a[href]") is None:
            return False
        before = node_before(before)
    return before is None


_END_OF_NAME = ("(", "=", ": ", "[", " ->", "\u2192")
_MKDOCSTRINGS = ".doc-object-name, code:not(.doc-symbol)"


def signature_name(node: Element, skipped: Container[int] = frozenset()) -> str:
    """The name in a signature of Sphinx (``dt.sig``) or in a heading of mkdocstrings, with the module in front if the
    page shows it there; empty for another element."""
    names = html_tree.classes(node)
    if "sig" in names:
        return _of_sphinx(node)
    if "doc-heading" not in names:
        return ""
    named = html_tree.first(node, _MKDOCSTRINGS)
    text = "" if named is None else text_of(named, skipped)
    for end in _END_OF_NAME:
        text = text.partition(end)[0]
    return text.strip()


def _of_sphinx(node: Element) -> str:
    """Of several names of one entry, as ``-v, --verbose``, all."""
    entry_names, module = [], ""
    for part in html_tree.select(node, ".sig-name, .sig-prename"):
        name = " ".join(part.text().split())
        if "sig-prename" in html_tree.classes(part):
            module = name
        else:
            entry_names.append(module + name)
            module = ""
    return ", ".join(entry_names)
