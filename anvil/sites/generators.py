"""The site generators that Anvil knows, and the content of a page by their rules.

A generator says how its pages are recognized, where their content is, and what in it is left out: navigation, links to
edit, buttons, twins. To add one, add a row to :data:`GENERATORS`. A page of an unknown generator gets :data:`GENERIC`
alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.html_tree import Element, Tree


@dataclass(frozen=True, slots=True)
class Generator:
    """What is particular about the pages of a generator or a theme.

    ``meta`` begins the text of ``<meta name="generator">``, in lower case; of several, one does. ``markup`` is a
    CSS selector of an element that only its pages have. ``content``: selectors of the content element; the first
    that matches is used. ``ignore``: a selector list of elements that are no part of the content. ``landing``: a
    selector of what has the text of a page whose content is empty. ``blocks``: a selector of inline elements that
    the theme shows as blocks. ``entries``: a selector of what begins an entry of an API that has no heading.
    ``title``: a selector of the page's title, where that is no heading of the content.
    ``edit``: selectors of the link to the page's source. ``address``: where its configuration has the address of
    the site.
    """

    name: str
    meta: str | tuple[str, ...] = ""
    markup: str = ""
    content: tuple[str, ...] = ()
    ignore: str = ""
    landing: str = ""
    blocks: str = ""
    entries: str = ""
    title: str = ""
    edit: tuple[str, ...] = ()
    address: str = ""


_CONTENT = ".content:not(td, [class*=block] > *)"
"""Not that of a block or a cell in pages of Asciidoctor."""
GENERIC = Generator(
    "unknown",
    content=(
        *("main article", "main", "[role=main]", "article"),
        # no heading or entry with the name "content", and no section below one
        ":is(div, section, td):not(.section, [class*=level]):is(#content, #main-content)",
        *(_CONTENT, "body"),
    ),
    ignore="""
        nav, [role=navigation], [role=search], [role=banner], [role=contentinfo], [hidden]:not([role=tabpanel]),
        [aria-hidden=true]:not([role=tabpanel], .starlight-aside__title, .rp-tabs__content__item),
        [style='display:none']:not([role=tabpanel]), [style='display: none']:not([role=tabpanel]), .sr-only,
        .visually-hidden, .skip-link, .breadcrumb, .breadcrumbs, .pagination-nav, .prev-next, .edit-page-link,
        :is(a, button, span, i, svg):is(.headerlink, .header-anchor, .anchor-link, .hash-link, .heading-anchor,
        .anchorjs-link, .heading-link),
        .edit-link, .edit-this-page, .toc, #toc, #TOC, #markdown-toc, :is(h2, h3, h4):has(+ #markdown-toc),
        .table-of-contents, [role=menu], .copybtn, .copy-button, .clipboard-copy-txt, .jp-InputPrompt, .jp-OutputPrompt,
        :is(.nbinput, .nboutput) > .prompt, body > header:not(#title-block-header),
        body > footer, main > footer, article > footer, form[role=search],
        button:not([role=tab], li > :has(+ ul), h1 *, h2 *, h3 *, h4 *, h5 *, h6 *, summary *, dt *,
        :has(> button:nth-of-type(8)) > *),
        aside.footnote > .label,
        .footnote-backref, [role=doc-backlink]:not(h1 *, h2 *, h3 *, h4 *, h5 *, h6 *), .data-footnote-backref,
        .reversefootnote, span.backrefs, td.linenos, td.gl, .linenodiv, .rouge-gutter, .hljs-ln-numbers,
        .line-numbers-rows, pre :is(.linenos, .lineno, .line-number, .lnt, .ln, .gutter),
        div.fragment :is(.lineno, .ttc),
        div[class*=language-] > span.lang,
        semantics:has(> annotation[encoding='application/x-tex']) > :not(annotation),
        semantics > annotation:not([encoding='application/x-tex']), math[alttext]:not(:has(annotation)) > *
    """,
    edit=("a[rel~=edit]", "link[rel=edit]", "a.edit-page-link", "a[href*='/edit/']", "a[href*='/-/edit/']"),
)
"""The rules for all pages. Those of the page's generator come first."""

_IGNORED_OF_MATERIAL = """
    .md-content__button, .md-source-file, .md-feedback, .md-tags, .md-clipboard, .md-nav, .md-header, .md-tabs,
    .md-footer
"""
_HUGO = Generator(
    "hugo",
    meta="hugo",
    content=(".td-content", "article.markdown", f"main {_CONTENT}", "main article", "main"),
    ignore=".feedback--title, .feedback--question, .feedback--response, .td-page-meta__lastmod, main [role=menu]",
    address="baseURL in hugo.toml",
)
GENERATORS = (
    Generator(
        "zensical",
        meta="zensical",
        content=("article.md-content__inner", ".md-content"),
        ignore=_IGNORED_OF_MATERIAL,
        landing=".md-container",
        edit=("a.md-content__button[href*='edit']",),
        address="site_url in zensical.toml or mkdocs.yml",
    ),
    Generator(
        "mkdocs-material",
        meta="mkdocs",
        markup="article.md-content__inner",
        content=("article.md-content__inner",),
        ignore=_IGNORED_OF_MATERIAL,
        landing=".md-container",
        edit=("a.md-content__button[rel=edit]", "a.md-content__button[href*='edit']"),
        address="site_url in mkdocs.yml or properdocs.yml",
    ),
    Generator(
        "mkdocs-readthedocs",
        markup="div.rst-content div.section[itemprop=articleBody], a[href='https://www.mkdocs.org/'].icon",
        content=("div.section[itemprop=articleBody]", "div[role=main]"),
        ignore=".rst-footer-buttons, .wy-breadcrumbs-aside",
        edit=("li.wy-breadcrumbs-aside a",),
        address="site_url in mkdocs.yml or properdocs.yml",
    ),
    Generator(
        "mkdocs",
        meta="mkdocs",
        markup="div#mkdocs-search-query, div#mkdocs_search_modal",
        content=("div.col-md-9[role=main]", "[role=main]"),
        edit=("a[href*='/edit/']",),
        address="site_url in mkdocs.yml or properdocs.yml",
    ),
    Generator(
        "sphinx",
        meta="docutils",
        markup="script[src*='_static/doctools.js'], link[href*='_static/pygments.css']",
        content=(
            "article[role=main]",
            "article.bd-article",
            "div[itemprop=articleBody]",
            "div.body[role=main]",
            "[role=main]",
            "div.body",
            "article",
        ),
        ignore="""
            a.viewcode-link, a.internal > span.viewcode-link, div.viewcode-block > a.viewcode-back,
            .rst-footer-buttons, .toctree-wrapper, div.highlight button, .prev-next-area, .related-pages,
            .content-icon-container, .back-to-top, .bd-header-article
        """,
        edit=(
            "a[title='Edit this page']",
            "a.muted-link[href*='edit']",
            "li.wy-breadcrumbs-aside a",
            ".tocsection.editthispage a",
        ),
        address="html_baseurl in conf.py",
    ),
    Generator(
        "docusaurus",
        meta="docusaurus",
        content=("article .markdown", "article.markdown", "article", "main"),
        ignore=".theme-doc-toc-mobile, .theme-doc-breadcrumbs, .theme-doc-version-badge, .theme-doc-footer",
        edit=("a.theme-edit-this-page",),
        address="url and baseUrl in docusaurus.config.js",
    ),
    Generator(
        "vitepress",
        meta="vitepress",
        content=(".VPHome", "main .vp-doc", ".vp-doc", "main"),
        ignore="button.copy, .line-numbers-wrapper, a.header-anchor",
        blocks=".VPHero .name",
        edit=("a.edit-link-button",),
        address="sitemap.hostname in .vitepress/config",
    ),
    Generator(
        "starlight",
        meta="starlight",
        content=(".sl-markdown-content", "main"),
        ignore="a.sl-anchor-link, .expressive-code .copy, .pagination-links, main footer.sl-flex, "
        ".content-panel > .sl-container > p",  # that the page is not translated
        edit=(".meta a[href*='/edit/']", "a[href*='/edit/']"),
        address="site in astro.config.mjs",
    ),
    Generator(
        "mdbook",
        markup="#mdbook-content, #menu-bar .menu-title, nav#mdbook-sidebar",
        content=("main",),
        ignore=".nav-wrapper, .buttons, .boring",
        edit=("a#git-edit-button", "a[title='Suggest an edit']"),
    ),
    _HUGO,
    replace(_HUGO, meta="", markup=".td-content, .hextra-max-content-width"),  # its start page alone may name Hugo
    Generator(
        "jekyll",
        meta="jekyll",
        content=("#main-content main", "#main-content", "article", "main"),
        address="url in _config.yml",
    ),
    Generator(
        "antora",
        meta="antora",
        content=("article.doc",),
        edit=("div.edit-this-page a",),
        address="site.url in the playbook",
    ),
    Generator(
        "quarto",
        meta="quarto",
        content=("main#quarto-document-content", "main"),
        ignore=".quarto-title-meta",
        address="website.site-url in _quarto.yml",
    ),
    Generator(
        "nextra",
        markup="#nextra-skip-nav, .nextra-nav-container, .nextra-navbar",
        content=("main",),
        ignore=".nextra-breadcrumb, .nextra-banner, .nextra-mobile-nav, [href='#nextra-skip-nav'], footer",
        edit=(".nextra-toc a[href*='/blob/']", "a[href*='/edit/']"),
    ),
    Generator("eleventy", meta="eleventy", content=("main",)),
    Generator(
        "rustdoc",
        meta="rustdoc",
        content=("#main-content", "main"),
        ignore="#copy-path, .rustdoc-breadcrumbs, .rightside, a.src, a.anchor, a.doc-anchor, .hideme, .test-arrow, "
        ".tooltip",
    ),
    Generator("doxygen", meta="doxygen", content=("div.contents",), ignore=".dynheader, .dyncontent, #SRIndex"),
    Generator("odoc", meta="odoc", content=(".odoc-preamble, .odoc-content",)),
    Generator(
        "pdoc",
        meta="pdoc",
        content=("main",),
        ignore=".view-source-button, section > .pdoc-code, [id] > .pdoc-code",
        entries="[id] > .attr",
    ),
    Generator(
        "documenter",
        markup="#documenter",
        content=("article.content",),
        entries=".docstring > header, .docstring > summary",
    ),
    Generator("exdoc", meta="exdoc", content=("main",), ignore="main footer, .top-search, .app-vsn, .icon-action"),
    Generator(
        "typedoc",
        markup="header.tsd-page-toolbar",
        content=(".col-content",),
        ignore=".tsd-breadcrumb",
    ),
    Generator("dokka", markup="#content[pageids]", content=("#content",), ignore=".copy-popup-wrapper"),
    Generator(
        "rdoc",
        markup="link[href*='rdoc.css'], link[href*='aliki.css']",
        content=("main",),
        ignore=".method-source-code, .method-controls, .method-click-advice",
        entries=".method-detail > .method-header",
    ),
    Generator(
        "yard",
        markup="a#class_list_link",
        content=("#content",),
        ignore=".summary_toggle, .inheritanceTree, .source_code, #toc",
    ),
    Generator(
        "docbook",
        meta=("docbook", "gtk-doc"),
        ignore=".navigation, .navheader, .navfooter, .footer, td.listing_lines",
    ),
    Generator("gitbook", meta=("honkit", "gitbook", "bookdown"), content=(".page-inner section.normal",)),
    Generator(
        "retype", meta="retype", content=("#docs-content", "main"), ignore="doc-anchor-trigger, doc-page-actions"
    ),
    Generator(
        "asciidoctor",
        meta="asciidoc",
        content=("#header, #content, #footnotes",),
        ignore="#header > .details",
    ),
    Generator(
        "texinfo",
        meta=("makeinfo", "texi2any", "gnu texinfo"),
        ignore="div.header, .nav-panel, .contents, .contents-heading",
        entries="dt[id^=index-]",
    ),
    Generator(
        "haddock",
        markup="#module-header",
        content=("#content",),
        ignore="#table-of-contents, #synopsis, a.link, a.selflink",
        entries=".top > .src",
        title="#module-header > .caption",
    ),
    Generator(
        "nim",
        markup="script[src$='dochack.js']",
        content=("#content",),
        ignore=".link-seesrc",
        entries="dl.item dt",
        title="h1.title",
    ),
    Generator(
        "crystal",
        meta="crystal",
        content=(".main-content",),
        ignore=".method-permalink",
        entries=".entry-detail > .signature, dt.entry-const",
    ),
    Generator(
        "w3c",
        meta=("bikeshed", "respec"),
        content=("body",),
        ignore=".head dl, .head details, .copyright, [data-fill-with=copyright], #toc",
    ),
    Generator("myst", meta="mystmd", content=("main article",), ignore=".myst-footer-links, .myst-keywords > a"),
    Generator("mandoc", markup="table.head .head-ltitle", title=".head-ltitle"),
    Generator("docsify", markup="script[src*='docsify']", content=("article.markdown-section",)),
)
"""Checked in this order. A row matches by ``meta``, and by ``markup`` where it has one."""


# --- the content of a page ------------------------------------------------------------------------------------------

INERT = frozenset(
    """
    script style noscript iframe svg canvas object embed audio video select textarea datalist dialog xmp
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Elements whose content is not text of the page."""
_LINKS_TO_ITSELF = ", ".join(
    f"{tag} a[href^='#']:not(pre *, code *)"
    for tag in ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "caption", "figcaption", "summary")
)
_ANCHOR_SIGN = re.compile(r"[\W_]*", re.S)
_IN_REPOSITORY = "a[href*='/edit/']"
_EDITED_FILE = re.compile(r"/edit/[^/]+/.*\.\w+$")
"""A file behind a branch, as GitHub and GitLab have it in their addresses."""


class PageRules(NamedTuple):
    """A user's CSS selectors: of the content element, where the generator's is wrong, and of what is left out."""

    content: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


NO_RULES = PageRules()


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
    """The generator that made a page; :data:`GENERIC` for an unknown one."""
    metas = [
        (element.attributes.get("content") or "").strip().lower()
        for element in html_tree.select(tree, "meta[name=generator i]")
    ]
    is_known = any(generator.meta and meta.startswith(generator.meta) for generator in GENERATORS for meta in metas)
    for generator in GENERATORS:
        named = bool(generator.meta) and any(meta.startswith(generator.meta) for meta in metas)
        if named or not generator.meta:
            if not generator.markup or html_tree.first(tree, generator.markup) is not None:
                return generator
        # the markup of a theme alone: not of a page that names another generator here, which may have the same theme
        elif generator.markup and not is_known and html_tree.first(tree, generator.markup) is not None:
            return generator
    return GENERIC


def content_of(tree: Tree, rules: PageRules = NO_RULES, generator: Generator | None = None) -> Content:
    """The content of a page. Elements with ``data-pagefind-body`` come first, then the user's selectors, then those of
    the generator, then :data:`GENERIC`'s."""
    generator = generator or generator_of(tree)
    selectors = (*rules.content, "[data-pagefind-body]", *generator.content, *GENERIC.content)
    roots: Sequence[Element] = ()
    for selector in selectors:
        roots = _outermost(html_tree.select(tree, selector))
        if roots:
            break
    if generator.landing and not any(map(_has_text, roots)):
        roots = _outermost(html_tree.select(tree, generator.landing)) or roots
    for element in html_tree.select(tree, generator.blocks) if generator.blocks else ():
        element.insert_after(" ")
    ignored = _ignored(rules.ignore, generator)
    left_out = [element for root in roots for element in html_tree.select(root, ignored)]
    with_content = around(roots)  # never left out
    skipped = html_tree.ids([element for element in left_out if element.mem_id not in with_content])
    begun = [each for root in roots for each in html_tree.select(root, generator.entries)] if generator.entries else []
    tops = html_tree.ids(roots)
    entries = html_tree.ids([each for each in begun if each.parent is not None and each.parent.mem_id not in tops])
    return Content(tuple(roots), skipped | _anchor_links(roots) | _edit_links(roots), entries)


@functools.lru_cache(maxsize=64)
def _ignored(own: tuple[str, ...], generator: Generator) -> str:
    lists = (*own, "[data-pagefind-ignore]:not(.nextra-code)", *sorted(INERT), generator.ignore, GENERIC.ignore)
    return ", ".join(filter(None, lists))


def is_note_reference(link: Element) -> bool:
    """Whether a link leads to a footnote."""
    attributes = link.attributes
    names = (attributes.get("class") or "").split()
    return (
        "footnote-ref" in names
        or "footnote-reference" in names
        or attributes.get("role") == "doc-noteref"
        or "data-footnote-ref" in attributes
        or (attributes.get("rel") == "footnote" and "footnote" in names)
        or (link.parent is not None and "footnote-ref" in html_tree.classes(link.parent))
    )


def _outermost(elements: Sequence[Element]) -> list[Element]:
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


def _anchor_links(roots: Sequence[Element]) -> frozenset[int]:
    """The links of headings to themselves that are only a sign, such as "#", "¶" or a picture."""
    links = (link for root in roots for link in html_tree.select(root, _LINKS_TO_ITSELF))
    return html_tree.ids([link for link in links if _ANCHOR_SIGN.fullmatch(link.text())])


def _edit_links(roots: Sequence[Element]) -> frozenset[int]:
    """The links to edit a file in a repository that are all the text of a paragraph."""
    links = [link for root in roots for link in html_tree.select(root, _IN_REPOSITORY)]
    with_text: dict[int, int] = {}  # a paragraph -> its nodes with text, counted once: it may have thousands of links
    alone = []
    for link in links:
        around_it = link.parent
        if around_it is None or around_it.tag not in ("p", "div"):
            continue
        if _EDITED_FILE.search(link.attributes.get("href") or ""):
            if around_it.mem_id not in with_text:
                with_text[around_it.mem_id] = sum(map(_has_text, around_it.iter(include_text=True)))
            if with_text[around_it.mem_id] == _has_text(link):
                alone.append(link)
    return html_tree.ids(alone)


def _has_text(node: Element) -> bool:
    text = node.text_content if node.is_text_node else node.text() if node.is_element_node else ""
    return bool((text or "").strip())
