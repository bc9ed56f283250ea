"""The site generators that Anvil knows: how their pages are recognized, and what is particular about them.

To add one, add a row to :data:`GENERATORS`. A page of an unknown generator gets the rules for all pages and a few more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anvil.sites import html_tree
from anvil.sites.html_tree import Tree


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
_NO_SECTION = ":not(.section, [class*=level])"
"""No section below a heading such as "Content", whose id is made of the heading."""
GENERIC = Generator(
    "all",
    content=(
        *("main article", "main", "[role=main]", "article"),
        f":is(div, section, td){_NO_SECTION}:is(#content, #main-content, #page-content)",
        *("body article", _CONTENT, "body"),
    ),
    ignore="""
        nav, [role=navigation], [role=search], [role=banner], [role=contentinfo], [hidden]:not([role=tabpanel]),
        [aria-hidden=true]:not([role=tabpanel], .starlight-aside__title, .rp-tabs__content__item),
        [style='display:none']:not([role=tabpanel]), .sr-only,
        [style='display: none']:not([role=tabpanel], .codeSnippetContainerCode), [role=dialog],
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
        semantics > annotation:not([encoding='application/x-tex']), math[alttext]:not(:has(annotation)) > *
    """,
    edit=("a[rel~=edit]", "link[rel=edit]", "a.edit-page-link", "a[href*='/edit/']", "a[href*='/-/edit/']"),
)
"""The rules for all pages. Those of the page's generator come first."""
UNKNOWN = Generator(
    "unknown", ignore=".footer, #footer, .site-footer, footer:not(article *, main *, section *, blockquote *, li *)"
)
"""The rules for pages of a generator that is not known."""
_IGNORED_OF_MATERIAL = """
    .md-content__button, .md-source-file, .md-feedback, .md-tags, .md-clipboard, .md-nav, .md-header, .md-tabs,
    .md-footer
"""
_HUGO = Generator(
    "hugo",
    meta="hugo",
    content=(".td-content", "article.markdown", f"main {_CONTENT}", "main article", "main"),
    ignore=".feedback--title, .feedback--question, .feedback--response, .td-page-meta__lastmod, main [role=menu]",
    landing="main",  # of Docsy, whose blocks stand before the content
    address="baseURL in hugo.toml",
)
GENERATORS = (
    Generator(
        "sphinx",
        meta="docutils",
        markup="script[src*='_static/doctools.js'], link:is([href*='_static/pygments.css'], [href*='_static/sphinx_'])",
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
            .content-icon-container, .back-to-top, .bd-header-article, .md-content__button, .md-source-file
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
        "mkdocs-gitbook", meta="mkdocs", markup="section.markdown-section", content=("section.markdown-section",)
    ),
    Generator("mkdocs-ivory", markup="main > #main > #content", content=("#content",)),
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
        ignore=".nextra-breadcrumb, .nextra-banner, .nextra-mobile-nav, [href='#nextra-skip-nav'], footer, "
        "[role=tabpanel] > h3[style]",  # the label again
        edit=(".nextra-toc a[href*='/blob/']", "a[href*='/edit/']"),
    ),
    Generator(
        "fumadocs",
        markup="#nd-page",
        content=("#nd-page",),
        ignore="article > :is(a[href*='/edit/'], a[href*='/blob/'], .grid, p.text-sm, div:has(+ h1))",
        blocks="button > code",
        edit=("article > a[href*='/blob/']",),
    ),
    Generator(
        "writerside",
        markup="main.panel._main",
        content=("article.article",),
        ignore=".last-modified, .navigation-links",
    ),
    Generator("eleventy", meta="eleventy", content=("main",)),
    Generator(
        "rustdoc",
        meta="rustdoc",
        content=("#main-content", "main"),
        ignore="#copy-path, .rustdoc-breadcrumbs, .rightside, a.src, a.anchor, a.doc-anchor, .hideme, .test-arrow, "
        ".tooltip",
        title="head > title",
    ),
    Generator(
        "doxygen",
        meta="doxygen",
        content=("div.contents",),
        ignore=".dynheader, .dyncontent, #SRIndex, .title > :is(.ingroups, .mlabels)",
        title=".headertitle .title",
    ),
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
        ignore=".tsd-breadcrumb, .tsd-index-group:not(:has(a:not([href^='#'])))",
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
        "jazzy",
        markup="link[href$='css/jazzy.css']",
        content=("article.main-content",),
        ignore=".declaration > h4, .aside-title, .slightly-smaller, .section-footer, #footer",
        entries="li.item > div:has(> code > .token)",
    ),
    Generator(
        "yard",
        markup="a#class_list_link",
        content=("#content",),
        ignore=".summary_toggle, .inheritanceTree, .source_code, #toc",
    ),
    Generator(
        "docbook", meta=("docbook", "gtk-doc"), ignore=".navigation, .navheader, .navfooter, .footer, td.listing_lines"
    ),
    Generator(
        "gitbook",
        meta=("honkit", "gitbook", "bookdown"),
        content=(".page-inner section.normal",),
        ignore=".chapter-nav",
    ),
    Generator(
        "retype", meta="retype", content=("#docs-content", "main"), ignore="doc-anchor-trigger, doc-page-actions"
    ),
    Generator("asciidoctor", meta="asciidoc", content=("#header, #content, #footnotes",), ignore="#header > .details"),
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
        "scaladoc",
        markup="html[data-pathtoroot]",
        content=("#content",),
        ignore=".breadcrumbs, .documentableBrief, .documentableFilter, #Graph, button, .footer",
        entries=".documentableElement > .documentableElement-expander",
    ),
    Generator(
        "scaladoc-2",
        markup="#definition ~ #signature",
        content=("#content-container", "body"),
        ignore="""
            #subpackage-spacer, #mbrsel, #inheritedMembers, #groupedMembers, .toggle,
            #definition :is(#owner, .big-circle, .morelinks),
            .permalink, .modifier_kind, .shortcomment:has(+ .fullcomment), li[name^='scala.Any'],
            .attributes > :is(dt:lexbor-contains("Definition Classes"), dt:lexbor-contains("Definition Classes") + dd)
        """,
        entries="#signature, #template li > :is(.symbol, .signature)",
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
    Generator(
        "myst",
        meta="mystmd",
        content=("main article",),
        ignore=r".myst-footer-links, .myst-keywords > a, [data-name=outputs-container] .p-2\.5",  # "Loading..."
    ),
    Generator("mandoc", markup="table.head .head-ltitle", title=".head-ltitle"),
    Generator(
        "docfx",
        markup="meta[name=generator i][content^=docfx i], meta[property='docfx:navrel'], meta[name='docfx:navrel']",
        content=("article",),
        ignore=".pull-right.mobile-hide, .contribution, .actionbar, .header-action, .next-article",
        edit=(".contribution a", ".contribution-link"),
    ),
    Generator(
        "mediawiki",
        meta="mediawiki",
        content=("#content",),
        ignore="""
            .mw-editsection, .mw-jump-link, .mw-indicators, .vector-page-toolbar, .navbox, .t-navbar, .printfooter,
            .catlinks, #siteSub, #siteNotice, #contentSub, #jump-to-nav
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
    Generator(
        "sandcastle",
        markup="#TopicContent",
        content=("#TopicContent",),
        ignore=".codeSnippetToolBar, .logoColumn, a.button, [href='#PageHeader']",
    ),
    Generator("maven", markup="#bodyColumn", content=("#contentBox", "#bodyColumn")),
    Generator(
        "ford",
        markup="footer a[href$='/ford' i]",
        content=("body",),
        ignore="#sidebar, section.visible-xs, footer",
    ),
    Generator(
        "quartz",
        markup="#quartz-root",
        content=(".center",),
        ignore=".content-meta, ul.tags, .breadcrumb-container, footer",
    ),
    Generator("yuidoc", markup="body.yui3-skin-sam", content=("#docs-main",), ignore="a[href='#index']"),
    Generator(
        "esdoc",
        markup="footer > a[href*='esdoc.org']",
        content=(".content",),
        ignore=".right-info, .header-notice [data-ice=source]",
    ),
    Generator("nodejs", markup="#apicontent", content=("#apicontent",)),
    Generator(
        "scribble",
        markup="link[href$='scribble.css']",
        content=(".main",),
        ignore=".navsettop, .navsetbottom, .versionbox, .versionNoNav",
    ),
    Generator("gi-docgen", markup="nav.devhelp-hidden", content=("#main",), ignore=".srclink", title="head > title"),
    Generator("gapdoc", meta="gapdoc", ignore="[class^=chlink], #mathjaxlink"),
    Generator("ldoc", markup="link[href*=ldoc][href$='.css']", content=("#content",), entries="dl.function > dt"),
    Generator("docsify", markup="script[src*='docsify']", content=("article.markdown-section",)),
)
"""Checked in this order. A row matches by ``meta``, and by ``markup`` where it has one."""


def generator_of(tree: Tree) -> Generator:
    """The generator that made a page. An unknown one has the name "unknown"."""
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
    return UNKNOWN
