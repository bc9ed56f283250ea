"""The site generators that Anvil knows: how their pages are recognized, and where their content is.

To add one, add a row to :data:`GENERATORS`. A page of an unknown generator gets :data:`GENERIC` alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generator:
    """What is particular about the pages of a generator or a theme.

    ``meta`` begins the text of ``<meta name="generator">``, in lower case. ``markup`` is a CSS selector of an element
    that only its pages have. ``content``: selectors of the content element; the first that matches is used. ``ignore``:
    a selector list of elements that are no part of the content. ``edit``: selectors of the link to the page's source.
    ``address``: where its configuration has the address of the site.
    """

    name: str
    meta: str = ""
    markup: str = ""
    content: tuple[str, ...] = ()
    ignore: str = ""
    edit: tuple[str, ...] = ()
    address: str = ""


GENERIC = Generator(
    "unknown",
    content=("main article", "main", "[role=main]", "article", "#content", "#main-content", ".content", "body"),
    ignore="""
        nav, [role=navigation], [role=search], [role=banner], [role=contentinfo], [hidden]:not([role=tabpanel]),
        [aria-hidden=true]:not(.starlight-aside__title), [style='display:none'], [style='display: none'], .sr-only,
        .visually-hidden, .skip-link, .headerlink, .header-anchor, .anchor-link, .hash-link, .heading-anchor,
        .anchorjs-link, .heading-link, .breadcrumb, .breadcrumbs, .pagination-nav, .prev-next, .edit-page-link,
        .edit-link, .edit-this-page, .toc, #toc, #TOC, .table-of-contents, .copybtn, .copy-button, body > header,
        body > footer, main > footer, article > footer, form[role=search],
        button:not([role=tab], h1 *, h2 *, h3 *, h4 *, h5 *, h6 *, summary *, dt *, :has(> button:nth-of-type(8)) > *),
        aside.footnote > .label,
        .footnote-backref, [role=doc-backlink]:not(h1 *, h2 *, h3 *, h4 *, h5 *, h6 *), .data-footnote-backref,
        .reversefootnote, span.backrefs, td.linenos, td.gl, .linenodiv, .rouge-gutter, .hljs-ln-numbers,
        .line-numbers-rows, pre :is(.linenos, .lineno, .line-number, .lnt, .ln, .gutter),
        div[class*=language-] > span.lang,
        semantics:has(> annotation[encoding='application/x-tex']) > :not(annotation),
        semantics > annotation:not([encoding='application/x-tex']), math[alttext]:not(:has(annotation)) > *
    """,
    edit=("a[rel~=edit]", "link[rel=edit]", "a.edit-page-link", "a[href*='/edit/']", "a[href*='/-/edit/']"),
)
"""The rules for all pages. Those of the page's generator come first."""

GENERATORS = (
    Generator(
        "zensical",
        meta="zensical",
        content=("article.md-content__inner", ".md-content"),
        ignore=".md-content__button, .md-source-file, .md-feedback, .md-tags, .md-clipboard, .md-nav",
        edit=("a.md-content__button[href*='edit']",),
        address="site_url in zensical.toml or mkdocs.yml",
    ),
    Generator(
        "mkdocs-material",
        meta="mkdocs",
        markup="article.md-content__inner",
        content=("article.md-content__inner",),
        ignore=".md-content__button, .md-source-file, .md-feedback, .md-tags, .md-clipboard, .md-nav",
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
        content=("main .vp-doc", ".vp-doc", "main"),
        ignore="button.copy, .line-numbers-wrapper, a.header-anchor",
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
    Generator(
        "hugo",
        meta="hugo",
        content=(".td-content", "article.markdown", "main .content", "main article", "main"),
        address="baseURL in hugo.toml",
    ),
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
    Generator("eleventy", meta="eleventy", content=("main",)),
    Generator("docsify", markup="script[src*='docsify']", content=("article.markdown-section",)),
)
"""Checked in this order. A row matches by ``meta``, and by ``markup`` where it has one."""
