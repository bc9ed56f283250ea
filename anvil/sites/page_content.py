"""The content of an HTML page: the elements that hold it, the elements in them to skip, its words and its headings.

The selectors for it come from the user, the page's generator, and the rules for all pages (:data:`GENERIC`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from html import unescape
from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.generators import CONTENT_CLASS, GENERATORS, Generator
from anvil.sites.html_tree import Element, Tree
from anvil.text.section_places import Heading
from anvil.text.visible_text import APART, is_separate_mark

_TITLE = "h1:not(article *, nav *, aside *, body > header *, [role=banner] *)"
"""A title outside of articles. In a page with one, such as a page of JSDoc, articles are only parts of the content."""
_NAME = re.compile(r"[a-z][\w.-]*")
"""The name of a generator, which is followed by its version."""
INERT = frozenset(
    """
    script style noscript iframe svg canvas object embed audio video select textarea datalist dialog xmp
    """.split()  # noqa: SIM905 - easier to read than a list of quoted words
)
"""Elements whose content is not text of the page."""
_TITLES = "h1, h2, h3, h4, h5, h6, dt, caption, figcaption, summary"
"""Elements that may contain links to themselves, to their source, or to an editor."""
_LINKED_NAMES = ":is(h1, h2, h3, h4, h5, h6, dt, code) > a[href^='#']:only-child"
"""Links that may be the whole text of a heading, although they have the class of a sign, as in VuePress 2, or are
hidden from screen readers."""
_ANCHOR_SIGN = re.compile(r"[\W_]*", re.S)
"""The whole text of a heading's link to itself, such as "#" or "¶"; empty for a picture."""
_SOURCE_SIGN = re.compile(r"\s*\[(?:view )?(?:source|src|docs|edit)\]\s*")
"""The whole text of a heading's link to its source."""
_SANDCASTLE_SIGN = re.compile(r'\s*AddLanguageSpecificTextSet\("\w{1,40}\?(?:[^"]{0,100}?\|)??(?:cs|nu)=([^|"]{1,10})')
"""The sign that a script of Sandcastle writes into a name, such as a dot, ``&lt;`` or ``&gt;``: the one of C# ("cs"),
else the one of languages that the script does not name ("nu")."""
_IN_REPOSITORY = "a[href*='/edit/'], a[href*='/blob/'], a[href*='/tree/']"
_EDIT = re.compile(r"\W*(?:edit|improve|suggest)\b", re.I)
_EDITED_FILE = re.compile(r"/(?:edit|blob|tree)/[^/]+/.*\.\w+$")
"""A branch and the path of a file, as in addresses of GitHub and GitLab."""
_NAVIGATION = """
    :is(div, ul, ol, aside, table, td, p, span, header):not([role=tablist], [role=note], .nav-tabs):is(
    [class^=nav i], [class*=' nav' i], [class$=nav i], [id^=nav i], [class^=sidebar i], [class*=' sidebar' i],
    [id^=sidebar i], [class*=breadcrumb i], [class~=menu i], #path, #page-header)
"""
"""Elements that are navigation if at least half of their text is in links."""


class PageRules(NamedTuple):
    """CSS selectors of the user: ``content`` instead of those of the generator, and ``ignore`` for elements to skip."""

    content: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


NO_RULES = PageRules()


_NO_SECTION = ":not(.section, [class*=level])"
"""Excludes the section below a heading such as "Content", which also has the id ``content``."""
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
"""The rules for all pages. The rules of the page's generator are used before them."""
UNKNOWN = Generator("unknown")
"""The generator of a page that names none and has the markup of none."""


class Content(NamedTuple):
    """The content of a page. ``roots``: its elements, in order. ``skipped``: ids (see :func:`html_tree.ids`) of the
    elements in them to leave out. ``entries``: ids of the elements that begin an entry of an API."""

    roots: tuple[Element, ...]
    skipped: frozenset[int]
    entries: frozenset[int] = frozenset()


def validate(selectors: Iterable[str]) -> None:
    """Raise :class:`ConfigError` if a CSS selector is not valid."""
    tree = html_tree.parse("")
    for selector in selectors:
        html_tree.select(tree, selector)


def generator_of(tree: Tree) -> Generator:
    """The generator that made a page. A generator without a row in :data:`GENERATORS` has the name that the page says,
    else "unknown"."""
    metas = [
        (element.attributes.get("content") or "").strip().lower()
        for element in html_tree.select(tree, "meta[name=generator i]")
    ]

    def is_named(generator: Generator) -> bool:
        return bool(generator.meta) and any(meta.startswith(generator.meta) for meta in metas)

    is_known = any(map(is_named, GENERATORS))
    for generator in GENERATORS:
        # Markup alone is no evidence if the page names a generator of the table: two generators may use one theme.
        may_be = is_named(generator) or not generator.meta or (generator.markup and not is_known)
        if may_be and (not generator.markup or html_tree.first(tree, generator.markup) is not None):
            return generator
    names = (name[0] for meta in metas if (name := _NAME.match(meta)))
    return replace(UNKNOWN, name=next(names, UNKNOWN.name))


def content_of(tree: Tree, rules: PageRules = NO_RULES, generator: Generator | None = None) -> Content:
    """The content of a page. The user's selectors are tried first, then elements with ``data-pagefind-body``, then the
    selectors of the generator, then those of :data:`GENERIC`."""
    generator = generator or generator_of(tree)
    selectors = (*rules.content, "[data-pagefind-body]", *generator.content)
    matches = (outermost(html_tree.select(tree, selector)) for selector in selectors)
    roots = next(filter(None, matches), None) or _roots_by_general_rules(tree)
    if not rules.content and not any(map(_has_text, roots)) and html_tree.first(tree, _TITLE) is not None:
        # a landing page, whose text is around an empty content element
        others = (outermost(html_tree.select(tree, selector)) for selector in GENERIC.content)
        roots = next((elements for elements in others if any(map(_has_text, elements))), roots)
    for element in html_tree.select(tree, generator.blocks) if generator.blocks else ():
        element.insert_after(" ")
    for script in html_tree.select(tree, "span[id^=LST]:empty + script"):
        if sign := _SANDCASTLE_SIGN.match(script.text()):
            script.insert_after(unescape(sign[1]))

    def inside(selector: str) -> list[Element]:
        return [element for root in roots for element in html_tree.select(root, selector)]

    whole_names = html_tree.ids([link for link in inside(_LINKED_NAMES) if link.prev is None and link.next is None])
    kept = around(roots) | whole_names  # never skipped
    ignored = inside(_ignore_selector(rules.ignore, generator))
    skipped = html_tree.ids([element for element in ignored if element.mem_id not in kept])
    entries = inside(", ".join(filter(None, (generator.entries, GENERIC.entries))))
    root_ids = html_tree.ids(roots)
    # an entry directly in a root would make the rest of the page a part of it
    entry_ids = html_tree.ids([each for each in entries if each.parent and each.parent.mem_id not in root_ids])
    skipped |= _signs(roots, entries) | _edit_links(roots)
    skipped |= _navigation(roots, skipped) - kept
    return Content(tuple(roots), skipped, entry_ids)


def whole_content(html: str) -> Content:
    """The content of HTML that has nothing but content, as a generator gives it to its plugins. Raises
    :class:`html_tree.Unreadable` if it would take long to parse."""
    return content_of(html_tree.parse(html), PageRules(content=("body",)), GENERIC)


def _roots_by_general_rules(tree: Tree) -> list[Element]:
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
        elif selector == "body article":  # the title is outside: the innermost element with the title and an article
            around_articles = around(roots)
            ancestor: Element | None = title
            while ancestor is not None and ancestor.mem_id not in around_articles:
                ancestor = ancestor.parent
            return roots if ancestor is None else [ancestor]
    return []


@functools.lru_cache(maxsize=64)
def _ignore_selector(of_user: tuple[str, ...], generator: Generator) -> str:
    lists = (*of_user, "[data-pagefind-ignore]:not(.nextra-code)", *sorted(INERT), generator.ignore, GENERIC.ignore)
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
    """The elements that are not inside another one of them."""
    if len(elements) < 2:
        return list(elements)
    chosen: list[Element] = []
    element_ids = html_tree.ids(elements)
    for element in elements:
        ancestor = element.parent
        while ancestor is not None and ancestor.mem_id not in element_ids:
            ancestor = ancestor.parent
        if ancestor is None:
            chosen.append(element)
    return chosen


def around(elements: Iterable[Element]) -> frozenset[int]:
    """The ids (see :func:`html_tree.ids`) of the elements and of all elements around them."""
    element_ids: set[int] = set()
    for element in elements:
        ancestor: Element | None = element
        while ancestor is not None and ancestor.mem_id not in element_ids:
            element_ids.add(ancestor.mem_id)
            ancestor = ancestor.parent
    return frozenset(element_ids)


def _signs(roots: Sequence[Element], entries: Sequence[Element]) -> frozenset[int]:
    """The links of headings and entries to themselves and to their source that are not part of the text."""
    signs = []
    for title in (*(each for root in roots for each in html_tree.select(root, _TITLES)), *entries):
        for link in html_tree.select(title, "a:not(pre *, code *)"):
            text = link.text()
            is_in_page = (link.attributes.get("href") or "").startswith("#")
            if _SOURCE_SIGN.fullmatch(text) or (is_in_page and _ANCHOR_SIGN.fullmatch(text)):
                signs.append(link)
    return html_tree.ids(signs)


def _edit_links(roots: Sequence[Element]) -> frozenset[int]:
    """The links to edit a file in a repository that are the whole text of a paragraph."""
    links = [link for root in roots for link in html_tree.select(root, _IN_REPOSITORY)]
    # Paragraph -> number of its nodes with text. It is counted once, because a paragraph may have thousands of links.
    text_counts: dict[int, int] = {}
    alone = []
    for link in links:
        parent = link.parent
        if parent is None or parent.tag not in ("p", "div"):
            continue
        target = link.attributes.get("href") or ""
        if _EDITED_FILE.search(target) and ("/edit/" in target or _EDIT.match(link.text())):
            if parent.mem_id not in text_counts:
                text_counts[parent.mem_id] = sum(map(_has_text, parent.iter(include_text=True)))
            if text_counts[parent.mem_id] == _has_text(link):
                alone.append(link)
    return html_tree.ids(alone)


_EDIT_LINKS = (
    *("a[rel~=edit]", "link[rel=edit]", "a.edit-page-link", "a.edit-link-button", "a[href*='/edit/']"),
    *(".contribution a", "a:is([title^='edit this page' i], [title^='suggest an edit' i])"),
)


def edit_url(tree: Tree) -> str | None:
    """The address at which a page can be edited, by a marked link, else by a link's text and address; or None."""
    for selector in _EDIT_LINKS if html_tree.first(tree, ", ".join(_EDIT_LINKS)) is not None else ():
        element = html_tree.first(tree, selector)
        target = ((element.attributes.get("href") if element is not None else None) or "").strip()
        if target and not target.startswith("#"):
            return target
    links = html_tree.select(tree, _IN_REPOSITORY)
    return next((link.attributes.get("href") for link in links if _EDIT.match(link.text())), None)


def _navigation(roots: Sequence[Element], skipped: frozenset[int]) -> frozenset[int]:
    """The elements that are navigation: at least half of their text is in links, and a class or an id calls them
    navigation or they stand before the title. Elements around an article are not, such as one with the class
    ``sidebar-left`` around the whole page."""
    candidates = html_tree.ids([element for root in roots for element in html_tree.select(root, _NAVIGATION)])
    candidates |= html_tree.ids([element for root in roots for element in _before_title(root)])
    if not candidates:
        return candidates
    navigation: set[int] = set()
    sizes_before: dict[int, tuple[int, int, int]] = {}
    size = in_links = open_links = articles = 0
    for root in roots:
        for node, begins in html_tree.walk(root, skipped):
            if node.is_text_node:
                length = len((node.text_content or "").strip())
                size += length
                in_links += length if open_links else 0
            elif node.tag == "a":
                open_links += 1 if begins else -1
            elif begins:
                articles += node.tag in ("main", "article")
                if node.mem_id in candidates:
                    sizes_before[node.mem_id] = (size, in_links, articles)
            elif node.mem_id in candidates:
                size_before, in_links_before, articles_before = sizes_before[node.mem_id]
                if 2 * (in_links - in_links_before) >= size - size_before > 0 and articles == articles_before:
                    navigation.add(node.mem_id)
    return frozenset(navigation)


def _before_title(root: Element) -> list[Element]:
    """The elements with several links before the title of a page, at each depth of its content.

    None if another heading comes first, or if these elements are more than three quarters of the text. A single link is
    not enough: in pages of Javadoc it leads to the package.
    """
    elements: list[Element] = []
    node = html_tree.first(root, "h1:not(aside *), h2, h3, h4, h5, h6")
    if node is None or node.tag != "h1":
        return elements
    while node is not None and node.mem_id != root.mem_id:
        before = node.prev
        while before is not None:
            if before.is_element_node and before.tag != "p" and len(html_tree.select(before, "a[href]")) > 1:
                elements.append(before)
            before = before.prev
        node = node.parent
    return elements if 4 * sum(len(element.text()) for element in elements) <= 3 * len(root.text()) else []


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
    """The words of a text, case-folded."""
    return _WORD.findall(text.casefold())


def text_of(root: Element, skipped: Container[int] = frozenset()) -> str:
    """The text of an element in one line, with the alternative text of images; spaces where elements separate words."""
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
                has_source = html_tree.first(node, "annotation") is not None
                pieces.append("" if has_source else node.attributes.get("alttext") or "")
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
    """All headings of a page in order, also those without an id. The text of a signature is its name."""
    skipped = content.skipped
    return tuple(
        Heading(LEVELS[node.tag or ""], anchor_of(node), signature_name(node, skipped) or text_of(node, skipped))
        for root in content.roots
        for node, begins in html_tree.walk(root, skipped)
        if begins and node.is_element_node and node.tag in LEVELS
    )


def anchor_of(heading: Element) -> str:
    """The anchor of a heading, or ``""``: its own id, else the id of an element in it, of an empty element before it,
    or of the section that it begins."""
    own_id = heading.attributes.get("id")
    if own_id:
        return own_id
    with_id = html_tree.first(heading, "[id], a[name]")
    if with_id is not None:
        return id_of(with_id)
    inner, parent = heading, heading.parent
    # Four levels: a heading may be in a <div> or <header> of its section, and in DocBook three elements deep.
    for _ in range(4):
        before = node_before(inner)
        if before is not None and before.is_element_node and before.tag in ("a", "span", "div"):
            anchor = id_of(before) if inner is heading or before.tag == "a" else ""
            if anchor and not before.text().strip():
                return anchor
        if parent is None or not _is_first(inner):
            return ""
        anchor = parent.attributes.get("id") or ""
        is_custom_element = "-" in (parent.tag or "")
        if anchor and (parent.tag in ("section", "div", "article", "a") or is_custom_element):
            return anchor
        inner, parent = parent, parent.parent
    return ""


def id_of(element: Element) -> str:
    """The ``id`` or ``name`` of an element, or ``""``."""
    return element.attributes.get("id") or element.attributes.get("name") or ""


def node_before(element: Element) -> Element | None:
    """The last node before an element that is not blank text."""
    before = element.prev
    while before is not None and before.is_text_node and not (before.text_content or "").strip():
        before = before.prev
    return before


_MAX_LINKS_BEFORE = 20
"""Links that may be between the begin of a section and its heading."""


def _is_first(element: Element) -> bool:
    """Whether an element is the first in its parent. Links before it, such as rustdoc's to the source, do not count."""
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
    """The name in a signature of Sphinx (``dt.sig``) or in a heading of mkdocstrings, with the module if the page shows
    it; ``""`` for another element."""
    names = html_tree.classes(node)
    if "sig" in names:
        return _sphinx_name(node)
    if "doc-heading" not in names:
        return ""
    name = html_tree.first(node, _MKDOCSTRINGS)
    text = "" if name is None else text_of(name, skipped)
    for end in _END_OF_NAME:
        text = text.partition(end)[0]
    return text.strip()


def _sphinx_name(node: Element) -> str:
    """All names of an entry, such as ``-v, --verbose``."""
    entry_names, module = [], ""
    for part in html_tree.select(node, ".sig-name, .sig-prename"):
        name = " ".join(part.text().split())
        if "sig-prename" in html_tree.classes(part):
            module = name
        else:
            entry_names.append(module + name)
            module = ""
    return ", ".join(entry_names)
