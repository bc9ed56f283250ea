"""What pages of generators are read without: navigation, buttons, code that is shown on demand."""

from __future__ import annotations

import pytest

from anvil.sites.html_page import read_page
from anvil.sites.page_content import PageRules


@pytest.mark.parametrize(
    ("generator", "html", "expected"),
    [
        (
            "rdoc",
            """<link href="css/rdoc.css" rel="stylesheet"><main>
            <h1 id="class-Order" class="anchor-link class">Order</h1>
            <div id="method-i-pay" class="method-detail anchor-link "><p>Pays.</p>
            <div class="method-source-code"><pre>def pay</pre></div></div></main>""",
            "# Order\n\nPays.\n",
        ),
        (
            "pdoc",
            """<meta name="generator" content="pdoc 16"><main class="pdoc"><section class="module-info"><h1>api</h1>
            <label class="view-source-button">View Source</label><div class="pdoc-code codehilite"><pre>1</pre></div>
            </section><section id="get"><div class="docstring"><p>Gets.</p><div class="pdoc-code codehilite"><pre>get()
            </pre></div></div><div class="pdoc-code codehilite"><pre>2</pre></div></section></main>""",
            "# api\n\nGets.\n\n```\nget()\n```\n",
        ),
        (
            "exdoc",
            """<meta name="generator" content="ExDoc v0.40.1"><main><h1>Lamp <small class="app-vsn">(v1.0)</small></h1>
            <pre><code class="makeup elixir">1</code></pre><footer>Built using ExDoc</footer></main>""",
            "# Lamp\n\n```elixir\n1\n```\n",
        ),
        (
            "fumadocs",
            """<article id="nd-page"><div class="flex"><span>Guides</span></div><h1>Ropes</h1><p class="text-lg">All of
            them.</p><div class="flex"><button>Copy Markdown</button></div><div class="prose"><p class="text-sm">Text.
            </p><div class="grid"><a href="/a">Card</a></div></div><a href="https://github.com/o/r/blob/main/a.mdx">Edit
            on GitHub</a><p class="text-sm">Last updated on</p><div class="grid gap-4"><a href="/b"><p>Knots</p><p>Next
            Page</p></a></div></article>""",
            "# Ropes\n\nAll of them.\n\nText.\n\n[Card](/a)\n",
        ),
        (
            "myst",
            """<meta name="generator" content="mystmd"><main><article><h1>Ropes</h1><div data-name="outputs-container">
            <div><div class="p-2.5">Loading...</div></div></div><div class="myst-footer-links"><a>Knots</a></div>
            </article></main>""",
            "# Ropes\n",
        ),
        (
            "writerside",
            """<main class="panel _main"><header class="panel__header"><h3>Ropes Help</h3></header><article
            class="article"><h1 id="a.md">Ropes</h1><p>Text.</p><div class="last-modified">20 October 2024</div><div
            class="navigation-links _bottom"><a class="navigation-links__next" href="b.html">Knots</a></div></article>
            </main>""",
            "# Ropes\n\nText.\n",
        ),
        (
            "typedoc",
            """<header class="tsd-page-toolbar">Search</header><div class="col-content"><ul class="tsd-breadcrumb">
            <li>index</li></ul><h1>Class A</h1><div class="tsd-index-group"><h3>Methods</h3><a href="#b">b</a></div><div
            class="tsd-index-group"><a href="b.html">c</a></div><pre><code class="ts">a<br>b</code></pre></div>
            <div class="col-sidebar">Settings</div>""",
            "# Class A\n\n[c](b.html)\n\n```ts\na\nb\n```\n",
        ),
        (
            "dokka",
            """<div id="content" pageids="a"><h1>join</h1><p>Joins.</p><span><div class="copy-popup-wrapper">Content
            copied to clipboard</div></span></div>""",
            "# join\n\nJoins.\n",
        ),
        (
            "hugo",
            """<main><div>Guide</div><div class="td-content"><h1>Beds</h1><p>Text.</p>
            <h2 class="feedback--title">Feedback</h2><p class="feedback--question">Helpful?</p></div></main>""",
            "# Beds\n\nText.\n",
        ),
        (
            "nextra",
            """<meta name="generator" content="Next.js"><div class="nextra-navbar">Bar</div>
            <main data-pagefind-body="true"><h1>MDX</h1>
            <div class="nextra-code" data-pagefind-ignore="all"><pre><code>a</code></pre></div>
            <p data-pagefind-ignore>No.</p></main>""",
            "# MDX\n\n```\na\n```\n",
        ),
        (
            "nextra",
            """<div id="nextra-skip-nav"></div><main><div role="tablist"><button role="tab">npm</button></div><div
            role="tabpanel"><h3 id="npm" style="visibility:hidden;width:0;height:0">npm</h3>Install it.</div></main>""",
            "**npm**\n\nInstall it.\n",
        ),
        (
            "yard",
            """<a id="class_list_link">All</a><div id="content"><h1>Class: A</h1><h2>Methods
            <small><a href="#" class="summary_toggle">collapse</a> <a class="constants_summary_toggle">collapse</a>
            </small></h2><pre class="code ruby">a</pre>
            <table class="source_code"><tr><td><pre class="lines">1</pre></td></tr></table></div>""",
            "# Class: A\n\n## Methods\n\n```ruby\na\n```\n",
        ),
        (
            "honkit",
            """<meta name="generator" content="HonKit 6"><div role="main"><div class="page-inner"><section
            class="normal markdown-section"><p>Text.</p></section><h1>No results matching</h1></div></div>""",
            "Text.\n",
        ),
        (
            "asciidoctor",
            """<meta name="generator" content="Asciidoctor 2.0.18"><div id="header"><h1>Lamps</h1><div
            class="details">By us</div><div id="toc">Wicks</div></div><div id="content"><div class="listingblock"><div
            class="content"><pre>trim</pre></div></div></div><div id="footnotes"><div>A note.</div></div>
            <div id="footer">1</div>""",
            "# Lamps\n\n```\ntrim\n```\n\nA note.\n",
        ),
        (
            "sphinx",
            """<link href="_static/pygments.css"><article><div class="nbinput"><div class="prompt"><pre>[1]:
            </pre></div><div class="input_area"><pre>trim()</pre></div></div></article>""",
            "```\ntrim()\n```\n",
        ),
        (
            "sphinx",
            """<link href="_static/sphinx_immaterial_theme.min.css"><article class="md-content__inner" role="main">
            <a class="md-content__button">Edit</a><h1>Lamps</h1><div class="toctree-wrapper">Wicks</div></article>""",
            "# Lamps\n",
        ),
        (
            "mkdocs",
            """<meta name="generator" content="mkdocs-1.6"><article class="md-content__inner"><div class="jp-Cell"><div
            class="jp-InputPrompt">In [1]:</div><div class="clipboard-copy-txt">trim()</div><pre>trim()</pre></div>""",
            "```\ntrim()\n```\n",
        ),
        (
            "myst",
            """<meta name="generator" content="mystmd"><main><article><h1>Lamps</h1><div class="myst-keywords"><span>Key
            </span><a href="#k">¶</a></div><div class="myst-footer-links">Next</div></article></main>""",
            "# Lamps\n\nKey\n",
        ),
        (
            "hugo",
            """<main><article><h1>Lamps</h1><div class="td-content"><p>Text.</p></div></article></main>""",
            "Text.\n",
        ),
        (
            "unknown",
            """<main><article><h1>Lamps</h1><div class="listingblock"><div class="content"><pre>trim</pre></div></div>
            <table><tr><td class="content">Cell.</td></tr></table></article></main>""",
            "# Lamps\n\n```\ntrim\n```\n\nCell.\n",
        ),
        (
            "docfx",
            """<meta name="generator" content="docfx 2.59"><div role="main"><a href="#toc">Show Table of Contents</a>
            <article><h1>Class Lamp</h1><span class="small pull-right mobile-hide"><a href="x">Improve this Doc</a>
            </span><p>Text.</p></article></div>""",
            "# Class Lamp\n\nText.\n",
        ),
        (
            "mediawiki",
            """<meta name="generator" content="MediaWiki 1.43"><div id="content"><h1 id="firstHeading">Lamp</h1>
            <div id="siteSub">From Wiki</div><h2><span id="Wick">Wick</span><span class="mw-editsection">[edit]
            </span></h2><p>Text.</p><div class="printfooter">Retrieved</div></div><div>Main page</div>""",
            "# Lamp\n\n## Wick\n\nText.\n",
        ),
        (
            "mkdocs",
            """<meta name="generator" content="mkdocs-1.6.1, mkdocs-gitbook-1.0.7"><div><section class="normal
            markdown-section"><h1>Lamp</h1></section><h1>No results matching ""</h1></div>""",
            "# Lamp\n",
        ),
        (
            "confluence",
            """<div id="main"><div id="main-header"><h1><span id="title-text">Site : Lamp</span></h1></div><div
            id="content"><div class="page-metadata">Created by Sam</div><div id="main-content"><h2>Wick</h2>
            <div class="confluence-information-macro confluence-information-macro-warning"><p class="title">Fire</p><div
            class="confluence-information-macro-body"><p>Trim it.</p></div></div><pre class="syntaxhighlighter-pre"
            data-syntaxhighlighter-params="brush: bash; gutter: false">trim</pre></div></div></div>""",
            "## Wick\n\n> [!WARNING] Fire\n>\n> Trim it.\n\n```bash\ntrim\n```\n",
        ),
        (
            "phpdocumentor",
            """<main><aside>Namespaces</aside><div class="phpdocumentor-content"><ul class="phpdocumentor-breadcrumbs">
            <li>Light</ul><article><h2 class="phpdocumentor-content__title">Lamp <div
            class="phpdocumentor-element__package">in Application</div></h2><p>Text.</p></article></div></main>""",
            "## Lamp\n\nText.\n",
        ),
        (
            "docfx",
            """<meta property="docfx:navrel" content="toc.html"><div role="main"><a href="#s">Show / Hide Table of
            Contents</a><article><h1>Lamps</h1></article></div>""",
            "# Lamps\n",
        ),
        (
            "quartz",
            """<div id="quartz-root"><div class="sidebar"><h2>Explorer</h2></div><div class="center"><h1>Lamps</h1><p
            class="content-meta">1 min read</p><ul class="tags"><li>oil</ul><article><p>Text.</p></article></div>""",
            "# Lamps\n\nText.\n",
        ),
        (
            "unknown",
            """<div id="banner">Lamps</div><div id="breadcrumbs">Last Published</div><div id="leftColumn"></div><div
            id="bodyColumn"><div id="contentBox"><h2>Wicks</h2></div></div>""",
            "## Wicks\n",
        ),
        (
            "odoc",
            """<meta name="generator" content="odoc 2.1.1"><body><nav>Up</nav><header class="odoc-preamble"><h1>Module
            <code>Ftime</code></h1><p>Seconds.</p></header><div class="odoc-content"><p>More.</p></div>""",
            "# Module `Ftime`\n\nSeconds.\n\nMore.\n",
        ),
        (
            "docbook",
            """<meta name="generator" content="DocBook XSL"><meta name="generator" content="GTK-Doc V1.33"><body>
            <table class="navigation"><tr><td>Home</td></tr></table><h2>Signals</h2><p>Text.</p>
            <div class="footer">Generated by GTK-Doc</div>""",
            "## Signals\n\nText.\n",
        ),
        (
            "texinfo",
            """<meta name="Generator" content="makeinfo"><div class="header">Next: Wicks</div><h2>Lamps</h2><p>Text.</p>
            <div class="nav-panel">Up</div>""",
            "## Lamps\n\nText.\n",
        ),
        (
            "nodejs",
            """<div id="content"><div id="column2">Index</div><header><h1>Node.js v18 documentation</h1></header>
            <div id="apicontent"><h2>Buffer<span><a class="mark" href="#buffer" id="buffer">#</a></span></h2></div>""",
            "## Buffer\n",
        ),
        (
            "scaladoc-2",
            """<body><div id="search">Back</div><div id="content-container"><div id="subpackage-spacer"><h1>Packages
            </h1></div><div id="content"><div id="definition"><p id="owner">hall</p><h1>Lamp<span
            class="permalink">i</span> </h1><h3><span class="morelinks">Companion</span></h3></div><h4
            id="signature"><span class="modifier_kind"> class</span> <span class="symbol"><span
            class="name">Lamp</span> extends <a id="hall.A">A</a></span></h4> <p>Burns.</p><div
            class="toggle">Linear Supertypes</div><div id="template"><div id="mbrsel">Ordering</div> <h3>Value
            Members</h3><ol><li name="hall.Lamp#trim"><a id="trim:Unit"></a> <span class="permalink">i</span> <span
            class="modifier_kind">def</span> <span class="symbol"><span class="name">trim</span>: <a id="Unit">
            Unit</a></span><p class="shortcomment">Trims.</p><div class="fullcomment"><p>Trims.</p><dl class=
            "attributes"><dt>Definition Classes</dt><dd>Lamp</dd></dl></div><li name="scala.AnyRef#=="><a
            id="==">=</a></ol></div> <div id="inheritedMembers"><h3>Inherited from AnyRef</h3></div></div>""",
            "# Lamp\n\n`class Lamp extends A`\n\nBurns.\n\n### Value Members\n\n#### `trim`\n\n`def trim: Unit`\n\n"
            "Trims.\n",
        ),
        (
            "ford",
            """<body><div id="sidebar"><h3><a href="#all">All Procedures</a></h3></div><h1>trim</h1><a
            data-toggle="modal" href="#help">Help</a><div role="dialog" id="help">Graph Key</div><section
            class="visible-xs"><a href="a"> a</a></section><footer>by <a
            href="https://github.com/x/ford">FORD</a></footer>""",
            "# trim\n",
        ),
    ],
)
def test_a_page_without_what_surrounds_its_text(generator: str, html: str, expected: str) -> None:
    page = read_page(f"<!doctype html>{html}")
    assert (page.facts.generator, page.markdown) == (generator, expected)


def test_names_of_sandcastle_have_the_signs_that_its_scripts_write() -> None:
    html = """<title>Lamp.Trim(T) Method</title><div id="TopicContent"><h1>Lamp<span id="LST1_0"></span><script>
        AddLanguageSpecificTextSet("LST1_0?cs=.|vb=.|cpp=::|nu=.|fs=.");</script>Trim<span id="LST1_1"></span><script>
        AddLanguageSpecificTextSet("LST1_1?cs=&lt;|vb=(Of |cpp=&lt;|nu=(");</script>T</h1><p>See Wick<span
        id="LST1_2"></span><script>AddLanguageSpecificTextSet("LST1_2?cpp=::|nu=.");</script>Cut<span
        id="LST1_3"></span><script>
        AddLanguageSpecificTextSet("LST1_3?cpp=array&lt;");</script></p></div>"""
    assert read_page(html).markdown == "# Lamp.Trim\\<T\n\nSee Wick.Cut\n"


@pytest.mark.parametrize(
    "html",
    [
        """<meta name="generator" content="pdoc 16"><main><h1>A</h1><section id="lamp"><div class="attr function">def
        <span class="name">lamp</span>(on)</div><p>Text.</p><h6>Note</h6></section><section id="rope"><div class="attr">
        <span class="name">rope</span></div></section></main>""",
        """<link href="rdoc.css" rel="stylesheet"><main><h1>A</h1><div id="lamp" class="method-detail"><div
        class="method-header">def <span class="method-name">lamp</span>(on)</div><p>Text.</p><h6>Note</h6></div><div
        class="method-detail" id="rope"><div class="method-heading">rope</div></div></main>""",
        """<meta name="generator" content="pdoc3 0.11"><article id="content"><h1>A</h1><dl><dt id="lamp"><code
        class="name flex"><span>def <span class="ident">lamp</span></span>(on)</code></dt><dd><details class="source">
        <summary>Expand source code</summary><pre>code</pre></details>Text.<h6>Note</h6></dd><dt id="rope"><code
        class="name"><span class="ident">rope</span></code></dt></dl></article>""",
        """<meta name="generator" content="pydoctor 25"><h1>A</h1><div><a name="m.lamp"> </a> <a name="lamp"> </a> <div
        class="functionHeader">def <span class="py-defname">lamp</span>(on)<a class="headerLink">¶</a></div>
        Text.<h6>Note</h6></div><div><a name="rope"></a><div class="functionHeader">rope</div></div>""",
        """<script src="dochack.js"></script><div id="content"><h1>A</h1><dl class="item"><div id="lamp"><dt><pre>def
        <a href="#lamp"><span class="Identifier">lamp</span></a>(on)</pre></dt><dd>Text. <a class="link-seesrc">Source
        </a><h6>Note</h6></dd></div><div id="rope"><dt><pre>rope</pre></dt></div></dl></div>""",
        """<div id="documenter"><article class="content"><h1>A</h1><article class="docstring"><header>def <a id="lamp"
        class="docstring-binding">lamp</a>(on)</header><p>Text.</p><h6>Note</h6></article><details class="docstring"
        ><summary id="rope"><a class="docstring-binding">rope</a></summary></details></article></div>""",
        """<div id="content"><div id="module-header"></div><h1>A</h1><div class="top"><p class="src">def <a id="lamp"
        class="def">lamp</a>(on)<a href="src.html" class="link">Source</a><a href="#lamp" class="selflink">#</a></p>
        <p>Text.</p><h6>Note</h6></div><div class="top"><p class="src"><a id="rope" class="def">rope</a></p></div>""",
        """<meta name="generator" content="texi2any"><h1>A</h1><dl><dt id="lamp"><span class="category-def">def</span>
        <strong class="def-name">lamp</strong>(on)</dt><dd>Text.<h6>Note</h6></dd><dt id="rope"><b>rope</b>
        </dt></dl>""".replace('id="', 'id="index-'),
        """<link href="../css/jazzy.css"><article class="main-content"><h1>A</h1><ul><li class="item"><div><code>def <a
        name="lamp"></a><a class="token" href="#lamp">lamp</a>(on)</code></div><section>Text.<h6>Note</h6></section>
        <a class="slightly-smaller" href="b">See more</a><div class="declaration"><h4>Declaration</h4></div><li class=
        "item"><div><code><a name="rope"></a><a class="token" href="#rope">rope</a></code></div></ul></article>""",
        """<link href="../ldoc_fixed.css"><div id="content"><h1>A</h1><dl class="function"><dt><a name="lamp"></a>def
        <strong>lamp</strong>(on)</dt><dd>Text.<h6>Note</h6></dd><dt id="rope"><strong>rope</strong></dl></div>""",
        """<html data-pathToRoot="../"><div id="content"><h1>A</h1><div class="documentableElement" id="lamp"><div
        class="documentableElement-expander"><button></button>def <a class="documentableName">lamp</a>(on)</div><div
        class="documentableBrief">Text.</div><div class="cover">Text.<h6>Note</h6></div></div><div id="rope"
        class="documentableElement"><div class="documentableElement-expander">rope</div></div></div>""",
    ],
)
def test_entries_of_an_api_are_sections(html: str) -> None:
    page = read_page(html)
    assert page.markdown == "# A\n\n## `lamp`\n\n`def lamp(on)`\n\nText.\n\n###### Note\n\n## `rope`\n"
    assert [heading.id.removeprefix("index-") for heading in page.headings][1:] == ["lamp", "", "rope"]


def test_the_name_of_an_entry_of_odoc_is_that_of_its_id() -> None:
    html = """<meta name="generator" content="odoc 3"><header class="odoc-preamble"><h1>A</h1></header><div
    class="odoc-content"><div class="odoc-spec"><div class="spec value anchored" id="val-light_all"><a
    href="#val-light_all" class="anchor"></a><code>val light_all : unit</code></div>Text.</div></div>"""
    page = read_page(html)
    assert page.markdown == "# A\n\n## `light_all`\n\n`val light_all : unit`\n\nText.\n"
    assert page.headings[1] == (2, "val-light_all", "light_all")


def test_a_heading_in_an_entry_of_an_api_is_below_it() -> None:
    """As in pages of Scaladoc, where it is of level 2 wherever the entry is."""
    html = """<html data-pathToRoot="../"><div id="content"><h1>A</h1><section><h3>Members</h3><div id="lamp"
    class="documentableElement"><div class="documentableElement-expander">lamp</div><h2>Note</h2><h6>Oil</h6></div>
    <h3>More</h3></section></div>"""
    levels = [(heading.level, heading.text) for heading in read_page(html).headings]
    assert levels == [(1, "A"), (3, "Members"), (4, "lamp"), (5, "Note"), (6, "Oil"), (3, "More")]


def test_an_operator_in_code_of_a_heading_is_its_name() -> None:
    html = """<main><dl><dt><pre>proc <a href="#at">`@`</a>(self)</pre> <a href="#at">¶</a></dt></dl></main>"""
    assert read_page(html).markdown == "- **``proc `@`(self)``**\n"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>Lamps - Site 1.6</title><body><h1>Site</h1><h1>Lamps</h1>", "Lamps"),
        ("<title>Lamps | Site</title><body><h1>Trim</h1><h1>Light</h1>", "Trim"),
        ('<header id="title-block-header"><h1 class="title">Lamps</h1></header><h1 id="wicks">Wicks</h1>', "Lamps"),
        (
            '<meta name="generator" content="rustdoc"><title>Lamp in house::hall - Rust</title><h1>Struct Lamp</h1>',
            "Lamp in house::hall",
        ),
        ("<title>Manual - Chapter 1: Lamps</title><body><h3>1: Lamps</h3>", "Chapter 1: Lamps"),
        ("<title>Home</title><body><h1>Home</h1>", "Home"),
        ("<title>Lamps - Manual</title><body><h3>About</h3>", "Lamps"),
        (
            '<title>Manual - Lamps</title><b id="banner">The Manual</b><div id="bodyColumn"><h2>About</h2></div>',
            "Lamps",
        ),
        ('<title>API | Acme API</title><b id="banner">Acme API</b><main><p>Lamps</p></main>', "API"),
        (
            '<h1>Lamp<span class="permalink"><a href="../Lamp.html" title="Permalink"><i>\ue157</i></a></span></h1>',
            "Lamp",
        ),
        (
            '<div id="content"><div id="module-header"><p class="caption">Data.Lamp</p></div><h1>Documentation</h1>',
            "Data.Lamp",
        ),
        ("<title>Lamps :: Manual</title><body><h3>About</h3>", "Lamps"),
        ('<title>Site : Lamp</title><div id="main-header"><i id="title-text">Site : Lamp</i></div>', "Site : Lamp"),
        (
            """<title>Documentation</title><div class="phpdocumentor-content"><h2 class="phpdocumentor-content__title"
            >Lamp<div class="phpdocumentor-element__package"> in Application</div></h2></div>""",
            "Lamp",
        ),
        (
            """<meta name="generator" content="Doxygen 1.9.4"><title>Harbour: Member List</title><div
            class="headertitle"><div class="title">Lamp&lt; T &gt; Member List<span class="mlabels">abstract</span>
            <div class="ingroups">Light</div>""",
            "Lamp< T > Member List",
        ),
    ],
)
def test_the_title_of_a_page_with_several_headings_at_its_top(html: str, title: str) -> None:
    assert read_page(html).facts.title == title


def test_the_id_of_an_own_element_around_a_heading_is_its_anchor() -> None:
    """As Retype 3 writes it."""
    html = '<main><doc-anchor-target id="lamps"><h2>Lamps</h2></doc-anchor-target></main>'
    assert [heading.id for heading in read_page(html).headings] == ["lamps"]


@pytest.mark.parametrize(
    "html",
    [
        '<div class="sect1" id="lamps"><div class="titlepage"><div><div><h2>Lamps</h2></div></div></div></div>',
        '<a href="#lamps" id="lamps"><h2>Lamps</h2></a>',
    ],
)
def test_the_id_of_a_section_is_the_anchor_of_its_heading(html: str) -> None:
    """As DocBook and Haddock write it."""
    assert [heading.id for heading in read_page(f"<main>{html}</main>").headings] == ["lamps"]


@pytest.mark.parametrize(
    ("text", "is_shell"), [("", True), ("Loading…", True), ("Please wait...", True), ("Lamps", False)]
)
def test_a_page_that_scripts_make_may_say_that_it_is_loading(text: str, is_shell: bool) -> None:
    html = f'<body><div id="app">{text}</div><script src="app.js"></script>'
    assert read_page(html).facts.shell == is_shell


ARTICLES = "<h1>Lamp</h1><section><header><p>About.</p></header><article><h2>Wick</h2><p>Text.</p></article></section>"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f'<div id="main">{ARTICLES}</div><nav>Home</nav>', "# Lamp\n\nAbout.\n\n## Wick\n\nText.\n"),
        (f'<div id="content">{ARTICLES}</div>', "# Lamp\n\nAbout.\n\n## Wick\n\nText.\n"),
        (f"<main>{ARTICLES}</main>", "# Lamp\n\nAbout.\n\n## Wick\n\nText.\n"),
        ("<header><h1>Site</h1></header><div id=content><p>Menu</p><article><h1>Lamp</h1></article></div>", "# Lamp\n"),
        ("<main><h2>Site</h2><article><h2>Lamp</h2></article></main>", "## Lamp\n"),
    ],
)
def test_an_article_is_the_content_if_the_title_is_not_outside(html: str, expected: str) -> None:
    """As JSDoc and Erlang write it."""
    assert read_page(f"<body>{html}").markdown == expected


def test_a_selector_of_articles_by_the_user_is_followed() -> None:
    assert read_page(f"<main>{ARTICLES}", PageRules(("article",))).markdown == "## Wick\n\nText.\n"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<div id="sidebar"><h1>Site</h1><a href="a">All lamps</a></div><p>Text.</p>', "Text.\n"),
        ('<div id="sidebar"><h3><a href="#a">All</a></h3><a href="a">Lamps</a></div><p>Text.</p>', "Text.\n"),
        ('<div class="topNav"><a href="a">Overview</a></div><h2>Lamp</h2>', "## Lamp\n"),
        ('<ul class="site navbar"><li><a href="a">Lamps</a> <li>News</ul><p>Text.</p>', "Text.\n"),
        ('<div class="navigation"><a href="a">Lamps</a> burn oil.</div>', "[Lamps](a) burn oil.\n"),
        ('<div class="with-sidebar"><div class="sidebar"><a href="a">Lamps</a></div><p>Text.</p></div>', "Text.\n"),
        ('<div class="section" id="navigation"><h2>Navigation</h2><p>Text.</p></div>', "## Navigation\n\nText.\n"),
        ('<p>Text.</p><div class="page-nav">← <a href="a">Lamps</a></div>', "Text.\n"),
        ('<p>Text.</p><div><a href="a" rel="prev">上一篇</a></div>', "Text.\n"),
        ('<p>Text.</p><div class="footer">Made by us</div>', "Text.\n"),
        ("<div><p>Text.</p><footer>Made by us</footer></div>", "Text.\n"),
        (
            '<div><a href="a">Oil</a> <a href="b">Wicks</a></div><h1>Lamps</h1><p>Text of lamps.</p>',
            "# Lamps\n\nText of lamps.\n",
        ),
        ('<p>In <a href="a">Light</a></p><h1>Lamps</h1>', "In [Light](a)\n\n# Lamps\n"),
        (
            '<h2>News</h2><p><a href="a">Oil</a> <a href="b">Wicks</a></p><h1>Us</h1>',
            "## News\n\n[Oil](a) [Wicks](b)\n\n# Us\n",
        ),
        (
            '<p><a href="a">All lamps</a> <a href="b">All wicks</a></p><h1>Us</h1>',
            "[All lamps](a) [All wicks](b)\n\n# Us\n",
        ),
    ],
)
def test_navigation_by_name_is_left_out_of_a_page_of_an_unknown_generator(html: str, expected: str) -> None:
    assert read_page(f"<body>{html}").markdown == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<p><a href="https://github.com/o/r/edit/main/a.md">Improve this page</a></p>', ""),
        ('<div><a href="https://github.com/o/r/tree/main/a.md">Edit on GitHub</a></div>', ""),
        (
            '<p><a href="https://github.com/o/r/blob/main/a.py">The source</a></p>',
            "[The source](https://github.com/o/r/blob/main/a.py)\n",
        ),
    ],
)
def test_a_link_to_edit_the_page_is_no_text(html: str, expected: str) -> None:
    assert read_page(f"<main>{html}</main>").markdown == expected
