"""The site generators that Anvil knows: how their pages are recognized, and what is particular about them.

Most need no row, because the rules for all pages fit theirs. To add one, add a row to :data:`GENERATORS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LIST_OF_NAMES = "it is a list of names"
OF_THEME = "it is a file of the theme"
SOURCE_CODE = "it shows source code"
FOR_PRINTING = "it is all pages again, for printing"


@dataclass(frozen=True, slots=True)
class Generator:
    """What is particular about the pages of a generator or a theme.

    ``meta`` begins the text of ``<meta name="generator">``, in lower case. ``markup`` is a CSS selector of an element
    that only its pages have. ``content``: selectors of the content element; the first that matches is used. ``ignore``:
    a selector list of elements that are no part of the content. ``blocks``: a selector of inline elements that the
    theme shows as blocks. ``entries``: a selector of what begins an entry of an API that has no heading. ``title``: a
    selector of the page's title, where that is no heading of the content. ``address``: where its configuration has the
    address of the site. ``left_out``: patterns of the paths of HTML files that are no pages, each with the reason.
    """

    name: str
    meta: str = ""
    markup: str = ""
    content: tuple[str, ...] = ()
    ignore: str = ""
    blocks: str = ""
    entries: str = ""
    title: str = ""
    address: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


_CONTENT = ".content:not(td, [class*=block] > *)"
"""Not that of a block or a cell in pages of Asciidoctor."""
_NO_SECTION = ":not(.section, [class*=level])"
"""No section below a heading such as "Content", whose id is made of the heading."""
ARTICLES = "article:is(main *, [role=main] *)"
GENERIC = Generator(
    "all",
    content=(
        "section.normal",
        *(ARTICLES, "main", "[role=main]", "article"),
        f":is(div, section, td){_NO_SECTION}:is(#content, #main-content, #page-content, #bodyColumn)",
        *("body article", _CONTENT, "body"),
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
        .anchorjs-link, .heading-link),
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
_HUGO = Generator(
    "hugo",
    meta="hugo",
    content=(".td-content", "article.markdown", f"main {_CONTENT}"),
    ignore=".feedback--title, .feedback--question, .feedback--response, .td-page-meta__lastmod",
    address="baseURL in hugo.toml",
)
GENERATORS = (
    Generator(
        "sphinx",
        meta="docutils",
        markup="script[src*='_static/doctools.js'], link:is([href*='_static/pygments.css'], [href*='_static/sphinx_'])",
        content=("article.bd-article", "div[itemprop=articleBody]", "div.body"),
        ignore=".viewcode-link, .viewcode-back, .toctree-wrapper, .content-icon-container",
        address="html_baseurl in conf.py",
    ),
    Generator(
        "zensical",
        meta="zensical",
        address="site_url in zensical.toml or mkdocs.yml",
    ),
    Generator(
        "mkdocs",
        meta="mkdocs",
        address="site_url in mkdocs.yml or properdocs.yml",
    ),
    Generator(
        "mkdocs",
        markup="""
            div.rst-content div.section[itemprop=articleBody], a[href='https://www.mkdocs.org/'].icon,
            div#mkdocs-search-query, div#mkdocs_search_modal
        """,
        address="site_url in mkdocs.yml or properdocs.yml",
    ),
    Generator(
        "docusaurus",
        meta="docusaurus",
        content=("article .markdown",),
        address="url and baseUrl in docusaurus.config.js",
    ),
    Generator(
        "vitepress",
        meta="vitepress",
        content=(".VPHome", ".vp-doc"),
        ignore=".line-numbers-wrapper",
        blocks=".VPHero .name",
        address="sitemap.hostname in .vitepress/config",
    ),
    Generator(
        "starlight",
        meta="starlight",
        content=(".sl-markdown-content",),
        ignore=".content-panel > .sl-container > p",  # that the page is not translated
        address="site in astro.config.mjs",
    ),
    Generator(
        "mdbook",
        markup="#mdbook-content, #menu-bar .menu-title, nav#mdbook-sidebar",
        ignore=".nav-wrapper, .buttons, .boring",
        left_out=((r"(?:.*/)?print\.html", FOR_PRINTING),),
    ),
    _HUGO,
    replace(_HUGO, meta="", markup=".td-content, .hextra-max-content-width"),  # its start page alone may name Hugo
    Generator("jekyll", meta="jekyll", address="url in _config.yml"),
    Generator("antora", meta="antora", address="site.url in the playbook"),
    Generator("quarto", meta="quarto", ignore=".quarto-title-meta", address="website.site-url in _quarto.yml"),
    Generator(
        "nextra",
        markup="#nextra-skip-nav, .nextra-nav-container, .nextra-navbar",
        content=("main",),
        ignore=".nextra-breadcrumb, .nextra-banner, [href='#nextra-skip-nav'], [role=tabpanel] > h3[style]",
    ),
    Generator(
        "fumadocs",
        markup="#nd-page",
        content=("#nd-page",),
        ignore="article > :is(a[href*='/edit/'], a[href*='/blob/'], .grid, p.text-sm, div:has(+ h1))",
        blocks="button > code",
    ),
    Generator(
        "writerside",
        markup="main.panel._main",
        content=("article.article",),
        ignore=".last-modified, .navigation-links",
    ),
    Generator(
        "rustdoc",
        meta="rustdoc",
        content=("#main-content",),
        ignore="""
            #copy-path, .rustdoc-breadcrumbs, .rightside, a:is(.src, .anchor, .doc-anchor), .hideme, .test-arrow,
            .tooltip
        """,
        title="head > title",
        left_out=((r"(?:.*/)?all\.html", LIST_OF_NAMES), (r"(?:help|settings)\.html", OF_THEME)),
    ),
    Generator(
        "doxygen",
        meta="doxygen",
        content=("div.contents",),
        ignore=".dynheader, .dyncontent, .title > :is(.ingroups, .mlabels)",
        title=".headertitle .title",
        left_out=(
            (
                r"(?:.*/)?(?:(?:functions|globals|namespacemembers)(?:_\w+)?|classes|hierarchy|.+-members)\.html",
                LIST_OF_NAMES,
            ),
        ),
    ),
    Generator(
        "pdoc",
        meta="pdoc",
        ignore=".view-source-button, section > .pdoc-code, [id] > .pdoc-code",
        entries="[id] > .attr",
    ),
    Generator("exdoc", meta="exdoc", ignore=".top-search, .app-vsn, .icon-action"),
    Generator(
        "typedoc",
        markup="header.tsd-page-toolbar",
        content=(".col-content",),
        ignore=".tsd-breadcrumb, .tsd-index-group:not(:has(a:not([href^='#'])))",
    ),
    Generator("dokka", markup="#content[pageids]", ignore=".copy-popup-wrapper"),
    Generator(
        "rdoc",
        markup="link[href*='rdoc.css'], link[href*='aliki.css']",
        ignore=".method-source-code, .method-controls, .method-click-advice",
        entries=".method-detail > .method-header",
    ),
    Generator("yard", markup="a#class_list_link", ignore=".summary_toggle, .inheritanceTree, .source_code"),
    Generator("asciidoctor", meta="asciidoc", content=("#header, #content, #footnotes",), ignore="#header > .details"),
    Generator(
        "scaladoc",
        markup="html[data-pathtoroot]",
        ignore=".breadcrumbs, .documentableBrief, .documentableFilter, #Graph, button",
        entries=".documentableElement > .documentableElement-expander",
    ),
    Generator(
        "myst",
        meta="mystmd",
        ignore=r".myst-footer-links, .myst-keywords > a, [data-name=outputs-container] .p-2\.5",  # "Loading..."
    ),
    Generator(
        "docfx",
        markup="meta[name=generator i][content^=docfx i], meta[property='docfx:navrel'], meta[name='docfx:navrel']",
        ignore=".pull-right.mobile-hide, .contribution, .actionbar, .header-action, .next-article",
    ),
    Generator(
        "mediawiki",
        meta="mediawiki",
        content=("#content",),
        ignore="""
            .mw-editsection, .mw-jump-link, .mw-indicators, .navbox, .t-navbar, .printfooter, .catlinks, #siteSub,
            #siteNotice, #contentSub, #jump-to-nav
        """,
    ),
    Generator(
        "confluence",
        markup="#main-header #title-text",
        content=("#main-content",),
        ignore=".toc-macro",
        title="#title-text",
    ),
    Generator(
        "phpdocumentor",
        markup=".phpdocumentor-content",
        content=(".phpdocumentor-content",),
        ignore=".phpdocumentor-breadcrumbs, .phpdocumentor-element__package, .phpdocumentor-search-results",
        title=".phpdocumentor-content__title",
    ),
    Generator("quartz", markup="#quartz-root", content=(".center",), ignore=".content-meta, ul.tags"),
)
"""Checked in this order. A row matches by ``meta``, and by ``markup`` where it has one."""
