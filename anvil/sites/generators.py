"""Site generators: how their pages are recognized, and selectors for what the rules for all pages do not fit.

Most generators need no row, because :data:`anvil.sites.page_content.GENERIC` fits their pages. To support another one,
add a row to :data:`GENERATORS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LIST_OF_NAMES = "it is a list of names"
OF_THEME = "it is a file of the theme"
SOURCE_CODE = "it shows source code"
FOR_PRINTING = "it is all pages again, for printing"


@dataclass(frozen=True, slots=True)
class Generator:
    """The rules for pages of one generator or theme.

    - ``meta``: the begin of the text of ``<meta name="generator">``, in lower case. One of several is enough.
    - ``markup``: a CSS selector that matches an element of each of its pages, and of no others.
    - ``content``: CSS selectors of the content element; the first that matches is used.
    - ``ignore``: a list of selectors of elements that are not part of the content.
    - ``blocks``: a selector of inline elements that the theme shows as blocks.
    - ``entries``: a selector of the elements that begin an entry of an API without a heading.
    - ``title``: a selector of the page's title, where it is not a heading of the content.
    - ``address``: the key of its configuration that has the address of the site.
    - ``left_out``: (pattern of a path, reason) for HTML files that are not pages.
    """

    name: str
    meta: str | tuple[str, ...] = ""
    markup: str = ""
    content: tuple[str, ...] = ()
    ignore: str = ""
    blocks: str = ""
    entries: str = ""
    title: str = ""
    address: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


CONTENT_CLASS = ".content:not(td, [class*=block] > *)"
"""Asciidoctor has the class ``content`` on parts of blocks and on cells, which are not the content of a page."""
_HUGO = Generator(
    "hugo",
    meta="hugo",
    content=(".td-content", "article.markdown", f"main {CONTENT_CLASS}"),
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
    Generator("zensical", meta="zensical", address="site_url in zensical.toml or mkdocs.yml"),
    Generator("mkdocs", meta="mkdocs", address="site_url in mkdocs.yml or properdocs.yml"),
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
        ignore=".content-panel > .sl-container > p",  # a notice that the page is not translated
        address="site in astro.config.mjs",
    ),
    Generator(
        "mdbook",
        markup="#mdbook-content, #menu-bar .menu-title, nav#mdbook-sidebar",
        ignore=".nav-wrapper, .buttons, .boring",
        left_out=((r"(?:.*/)?print\.html", FOR_PRINTING),),
    ),
    _HUGO,
    # Some sites name Hugo on their start page only.
    replace(_HUGO, meta="", markup=".td-content, .hextra-max-content-width"),
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
        ignore=".view-source-button, section > .pdoc-code, [id] > .pdoc-code, details.source",
        entries="[id] > .attr, dt[id]:has(> code.name)",  # of pdoc, of pdoc3
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
        entries=".method-detail > [class^=method-head]",
    ),
    Generator("yard", markup="a#class_list_link", ignore="[class$=summary_toggle], .inheritanceTree, .source_code"),
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
    Generator("odoc", meta="odoc", content=(".odoc-preamble, .odoc-content",), entries=".odoc-spec > .spec[id]"),
    Generator("nimdoc", markup="[src$='dochack.js']", ignore=".link-seesrc", entries="dl.item dt", title="h1.title"),
    Generator("pydoctor", meta="pydoctor", ignore=".headerLink, .sourceLink", entries="a[name] + .functionHeader"),
    Generator(
        "documenter",
        markup="#documenter",
        content=("article.content",),
        entries=".docstring > header, .docstring > summary",
    ),
    Generator(
        "jazzy",
        markup="link[href$='css/jazzy.css']",
        ignore=".declaration > h4, .aside-title, .slightly-smaller",
        entries="li.item > div:has(> code > .token)",
        left_out=((r"(?:.*/)?docsets/.*", "it is a copy for programs that show documentation"),),
    ),
    Generator("docbook", meta=("docbook", "gtk-doc"), ignore=".navigation, .navheader, .navfooter, td.listing_lines"),
    Generator(
        "texinfo",
        meta=("makeinfo", "texi2any", "gnu texinfo"),
        ignore="div.header, .nav-panel, .contents, .contents-heading",
        entries="dt[id^=index-]",
    ),
    Generator(
        "haddock",
        markup="#module-header",
        ignore="a.link, a.selflink",
        entries=".top > .src",
        title="#module-header > .caption",
    ),
    Generator("nodejs", markup="#apicontent", content=("#apicontent",)),
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
    Generator("ford", markup="footer a[href$='/ford' i]", ignore="#sidebar, section.visible-xs"),
    Generator("ldoc", markup="link[href*=ldoc][href$='.css']", entries="dl.function > dt"),
    Generator("quartz", markup="#quartz-root", content=(".center",), ignore=".content-meta, ul.tags"),
)
"""The rows are tried in this order. A row with both ``meta`` and ``markup`` needs both to match. If a page names no
generator of the table, ``markup`` alone is enough."""
