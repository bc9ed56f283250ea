"""HTML to Markdown: each construct of the generators, and nothing of the text is lost."""

# ruff: noqa: E501 - HTML as generators write it

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from anvil.sites import html_tree, page_content
from anvil.sites.html_page import read_page
from anvil.text.markdown_sections import parse
from tests.support.html_words import lost_and_invented

CASES = {
    "heading with a permalink": ('<h2 id="a">A<a class="headerlink" href="#a">¶</a></h2>', "## A"),
    "heading in a link with the class of a sign": (
        '<h2 id="a"><a class="header-anchor" href="#a"><span>A</span></a></h2>',
        "## A",
    ),
    "name in a link that screen readers skip": ('<code id=f><a href="#f" aria-hidden=true>f(a)</a></code>', "`f(a)`"),
    "heading with a sign": ('<h2 id="a"><a href="#a">#</a> A <em>b</em></h2>', "## A b"),
    "heading that looks like marks": ("<h2>__init__ *x* #</h2>", "## \\_\\_init\\_\\_ \\*x\\* \\#"),
    "inline": ("<p>a <b>b</b> <i>c</i>\n <del>d</del> <code>e`f</code></p>", "a **b** *c* ~~d~~ ``e`f``"),
    "marks inside a word": ("<p>un<b>believ</b>able <b>B</b>c H<sub>2</sub>O</p>", "unbelievable Bc H2O"),
    "link": ('<p><a href="../x/?a b">to <b>x</b></a> <a href="javascript:x()">y</a></p>', "[to **x**](../x/?a%20b) y"),
    "link around blocks": (
        '<p>z</p><a href="/x"> <div><img alt="" src="x.svg"></div><div>A</div><div>b</div></a><p>c</p>',
        "z\n\n[A](/x)\n\nb\n\nc",
    ),
    "code of docutils": ('<pre class="code literal-block"><code>a</code></pre>', "```\na\n```"),
    "terms with headings": ('<dl><dt><h4 id="f">f(a)</h4><p>b</p></dt><dd>c</dd></dl>', "#### f(a)\n\nb\n\nc"),
    "numbered steps with headings": ('<ol><li><h3 id="a">a</h3><p>b</p></li></ol>', "### a\n\nb"),
    "tabs of VuePress": (
        '<div role="tablist"><button role="tab">A</button></div><div role="tabpanel"><div class="vp-tab-title">A</div>a</div>',
        "**A**\n\na",
    ),
    "tree of folders": ("<ul><li><button>a</button><ul><li>b</li></ul></li></ul>", "- a\n  - b"),
    "tabs that are hidden": (
        '<div><div role="tablist"><button role="tab">A</button><button role="tab">B</button></div></div><div>'
        '<div role="tabpanel">a</div><div role="tabpanel" aria-hidden="true">b</div></div>',
        "**A**\n\na\n\n**B**\n\nb",
    ),
    "image": ('<p><img alt="A map" src="x.png">of it</p>', "A map of it"),
    "line break": ("<p>a<br>b</p>", "a\\\nb"),
    "text that looks like Markdown": (
        "<p># a</p><p>1. b</p><p>- c</p><p>&gt; d</p><p>---</p>",
        "\\# a\n\n1\\. b\n\n\\- c\n\n\\> d\n\n\\---",
    ),
    "text that looks like a tag": ("<p>Vec&lt;T&gt; and &lt;div&gt;</p>", "Vec\\<T> and \\<div>"),
    "list": ("<ul><li>a<ul><li>b</li></ul></li><li><p>c</p></li></ul>", "- a\n  - b\n- c"),
    "loose list": ("<ol><li><p>a</p><p>b</p></li><li>c</li></ol>", "1. a\n\n   b\n\n2. c"),
    "list from 3": ('<ol start="3"><li>a</li><li>b</li></ol>', "3. a\n4. b"),
    "tasks": (
        '<ul><li><input type="checkbox" checked> a</li><li><input type="checkbox"> b</li></ul>',
        "- [x] a\n- [ ] b",
    ),
    "quote": ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
    "tag of two elements": ("<p>List&lt;<i><span>S</span></i>&gt; <span>a &lt;</span> b</p>", "List\\<*S*> a < b"),
    "heading with a tag of two elements": ("<h2><span>List</span>&lt;<span>S</span>&gt;</h2>", "## List\\<S>"),
    "admonition of AsciiDoc with a label": (
        '<div class="admonitionblock"><table><tr><td class="icon"><div class="title">Important</div></td><td>Trim.</td>'
        "</tr></table></div>",
        "> [!NOTE] Important\n>\n> Trim.",
    ),
    "definitions": (
        "<dl><dt>a</dt><dd>b</dd><dt>c</dt><dd><p>d</p><p>e</p></dd></dl>",
        "- **a**\n  b\n- **c**\n  d\n\n  e",
    ),
    "details": ("<details><summary>a</summary><p>b</p></details>", "**a**\n\nb"),
    "footnotes of Python-Markdown": (
        '<p>a<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">1</a></sup></p><div class="footnote"><hr><ol>'
        '<li id="fn:1"><p>b <a class="footnote-backref" href="#fnref:1">↩</a></p></li></ol></div>',
        "a[^1]\n\n[^1]: b",
    ),
    "footnotes of markdown-it": (
        '<p>a<sup class="footnote-ref"><a href="#fn1" id="fnref1">[1]</a></sup></p><section class="footnotes">'
        '<ol class="footnotes-list"><li id="fn1" class="footnote-item"><p>b <a href="#fnref1" class="footnote-backref">↩</a>'
        "</p></li></ol></section>",
        "a[^1]\n\n[^1]: b",
    ),
    "footnotes of kramdown": (
        '<p>a<sup id="fnref:x"><a href="#fn:x" class="footnote" rel="footnote">1</a></sup></p>'
        '<div class="footnotes" role="doc-endnotes"><ol><li id="fn:x" role="doc-endnote"><p>b '
        '<a href="#fnref:x" class="reversefootnote" role="doc-backlink">↩</a></p></li></ol></div>',
        "a[^1]\n\n[^1]: b",
    ),
    "marks and parts of words in superscript": (
        "<p><code>a</code><sup>1.2</sup>, words<sup><a href='#n'>3</a></sup>, H<sub>2</sub>O, <em>x</em><sup>2</sup></p>",
        "`a` 1.2, words [3](#n), H2O, x2",
    ),
    "headings that link back to a list of contents": (
        '<section id="a"><h2><a class="toc-backref" href="#id1" role="doc-backlink">A</a><a class="headerlink" href="#a">¶</a>'
        "</h2></section>",
        "## A",
    ),
    "aside of Starlight": (
        '<aside aria-label="Tip" class="starlight-aside starlight-aside--tip"><p class="starlight-aside__title" aria-hidden="true">'
        '<svg></svg>A title</p><div class="starlight-aside__content"><p>b</p></div></aside>',
        "> [!TIP] A title\n>\n> b",
    ),
    "code of Doxygen": (
        '<div class="fragment"><div class="line"><span class="lineno">1</span>if (a) {</div>\n<div class="line">  b();</div>'
        '\n<div class="line"> </div><div class="line">}</div>\n<div class="ttc">b</div></div>',
        "```\nif (a) {\n  b();\n\n}\n```",
    ),
    "members of Doxygen": (
        '<table class="memberdecls"><tr><td><h2>Functions</h2></td></tr><tr class="memitem:1"><td class="memItemLeft">int '
        '</td><td class="memItemRight"><a href="#1">oil</a> ()</td></tr><tr><td class="memTemplItemLeft">T </td>'
        '<td class="memTemplItemRight"><a href="#2">trim</a> (T a)</td></tr></table>'
        '<table class="memname"><tr><td class="memname">T trim</td><td>(</td><td>T </td><td><em>a</em></td></tr>'
        "<tr><td></td><td>)</td></tr></table>",
        "## Functions\n\nint [oil](#1) ()\n\nT [trim](#2) (T a)\n\n`T trim ( T a )`",
    ),
    "admonition of Vocs": ('<aside class="vocs_Callout vocs_Callout_danger"><p>b</p></aside>', "> [!DANGER]\n> b"),
    "admonition of Nextra": ('<div class="nextra-callout x:flex"><p>b</p></div>', "> [!NOTE]\n> b"),
    "admonition of Fumadocs": (
        '<div class="flex" style="--callout-color:var(--color-fd-warn, var(--color-fd-muted))"><svg></svg><p>b</p></div>',
        "> [!WARNING]\n> b",
    ),
    "admonition of Writerside": (
        '<aside class="prompt" data-type="tip" data-title=""><p>b</p></aside>',
        "> [!TIP]\n> b",
    ),
    "code of Writerside": (
        '<div class="code-block" data-lang="kotlin">\n    fun pull() {\n        rope()\n    }\n</div>'
        '<div class="code-block"><pre>b</pre></div>',
        "```kotlin\nfun pull() {\n    rope()\n}\n```\n\n```\nb\n```",
    ),
    "language that is null": ('<pre class="language-null"><code>a</code></pre>', "```\na\n```"),
    "button with code": (
        "<button><code>length</code></button><button>Copy</button><p>Metres.</p>",
        "`length`\n\nMetres.",
    ),
    "admonition of docfx": ('<div class="NOTE"><h5>Note</h5><p>b</p></div>', "> [!NOTE] Note\n>\n> b"),
    "heading above the table of contents of its part": (
        '<h2 id="f">Functions</h2><ul id="markdown-toc"><li><a href="#a">a</a></li></ul><hr><h3 id="a">a</h3>',
        "## Functions\n\n### a",
    ),
    "list of contents of kramdown": (
        '<h2 id="t">Contents</h2><ol id="markdown-toc"><li><a href="#a">A</a></li></ol><h2 id="a">A</h2>',
        "## A",
    ),
    "menu of a page": (
        '<p>a</p><ul role="menu"><li role="none"><a href="https://x.example/">Ask it</a></li></ul>',
        "a",
    ),
    "link to edit a page": (
        '<p>a</p><p> <a href="https://github.com/o/r/edit/main/docs/a.md"><i></i> Improve this page</a></p>'
        '<p>b <a href="https://github.com/o/r/edit/main/docs/a.md">edit it</a></p>'
        '<p><a href="https://x.example/edit/all">The command edit</a></p>',
        "a\n\nb [edit it](https://github.com/o/r/edit/main/docs/a.md)\n\n"
        "[The command edit](https://x.example/edit/all)",
    ),
    "footnotes of docutils": (
        '<p>a <a class="footnote-reference brackets" href="#f" role="doc-noteref"><span>[</span>2<span>]</span></a></p>'
        '<aside class="footnote-list brackets"><aside class="footnote brackets" id="f" role="doc-footnote">'
        '<span class="label"><span>[</span><a role="doc-backlink" href="#i">2</a><span>]</span></span><p>b</p>'
        "</aside></aside>",
        "a [^2]\n\n[^2]: b",
    ),
    "math": (
        '<p><span class="arithmatex">\\(x^2\\)</span></p><div class="math notranslate">\\[a &amp; b\\]</div>'
        '<p><span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi>'
        '<annotation encoding="application/x-tex">\\sum x</annotation></semantics></math></span>'
        '<span class="katex-html" aria-hidden="true">x</span></span></p>',
        "$x^2$\n\n$$a & b$$\n\n$\\sum x$",
    ),
    "API of Sphinx": (
        '<section id="m"><h1>m</h1><dl class="py class"><dt class="sig sig-object py" id="m.C"><em>class</em> m.C'
        '<a class="headerlink" href="#m.C">¶</a></dt><dd><p>a</p><dl class="py method"><dt class="sig" id="m.C.f">f()</dt>'
        "<dd>b</dd></dl></dd></dl></section>",
        "# m\n\n## `class m.C`\n\na\n\n### `f()`\n\nb",
    ),
    "tabs of Material": (
        '<div class="tabbed-set tabbed-alternate"><input type="radio"><div class="tabbed-labels"><label>A</label><label>B'
        '</label></div><div class="tabbed-content"><div class="tabbed-block"><p>a</p></div><div class="tabbed-block">'
        "<p>b</p></div></div></div>",
        "**A**\n\na\n\n**B**\n\nb",
    ),
    "tabs of Asciidoctor": (
        '<div class="openblock tabs"><div class="content"><div class="ulist tablist"><ul><li class="tab"><p>A</p></li>'
        '<li class="tab"><p>B</p></li></ul></div><div class="tabpanel"><p>a</p></div><div class="tabpanel"><p>b</p></div>'
        "</div></div>",
        "**A**\n\na\n\n**B**\n\nb",
    ),
    "tabs of Rspress, whose others are hidden": (
        '<div class="rp-tabs"><div class="rp-tabs__label"><div class="rp-tabs__label__item">A</div><div '
        'class="rp-tabs__label__item">B</div></div><div class="rp-tabs__content"><div class="rp-tabs__content__item">a</div>'
        '<div class="rp-tabs__content__item" aria-hidden="true">b</div></div></div>',
        "**A**\n\na\n\n**B**\n\nb",
    ),
    "headings with an id in quotes": (
        '<blockquote><h2 id="q">Q</h2><p>q</p></blockquote><div class="tip custom-block"><p class="custom-block-title">T_x_'
        '</p><h3 id="t">In</h3><p>t</p></div><div class="admonition note"><h3 id="n">N</h3></div>z',
        "## Q\n\nq\n\n> [!TIP] T_x\\_\n\n### In\n\nt\n\n> [!NOTE]\n\n### N\n\nz",
    ),
    "headings without one in quotes": (
        '<blockquote><h2>Q</h2></blockquote><div class="alert alert-tip"><h4 class="alert-heading" id="t">T</h4>t</div>',
        "> ## Q\n\n> [!TIP] T\n>\n> t",
    ),
    "tabs of sphinx-design": (
        '<div class="sd-tab-set"><input type="radio"><label class="sd-tab-label">A</label><div class="sd-tab-content"><p>a'
        '</p></div><input type="radio"><label class="sd-tab-label">B</label><div class="sd-tab-content"><p>b</p></div></div>',
        "**A**\n\na\n\n**B**\n\nb",
    ),
    "tabs of Docusaurus, one inside another": (
        '<div class="tabs-container"><ul role="tablist"><li role="tab">A</li><li role="tab">B</li></ul><div>'
        '<div role="tabpanel"><p>a</p><div class="tabs-container"><ul role="tablist"><li role="tab">C</li></ul><div>'
        '<div role="tabpanel">c</div></div></div></div><div role="tabpanel" hidden>b</div></div></div>',
        "**A**\n\na\n\n**C**\n\nc\n\n**B**\n\nb",
    ),
    "code group of VitePress": (
        '<div class="vp-code-group"><div class="tabs"><input><label>a.js</label><input><label>b.js</label></div>'
        '<div class="blocks"><div class="language-js active"><button class="copy"></button><span class="lang">js</span>'
        '<pre class="shiki"><code><span class="line">a</span>\n<span class="line">b</span></code></pre></div>'
        '<div class="language-js"><pre><code>c</code></pre></div></div></div>',
        "**a.js**\n\n```js\na\nb\n```\n\n**b.js**\n\n```js\nc\n```",
    ),
}
ADMONITIONS = {
    "TypeDoc": '<div class="tsd-alert tsd-alert-warning"><div class="tsd-alert-title">Mind</div><p>a</p></div>',
    "Python-Markdown": '<div class="admonition warning"><p class="admonition-title">Mind</p><p>a</p></div>',
    "Material": '<details class="warning"><summary>Mind</summary><p>a</p></details>',
    "Docusaurus": '<div class="theme-admonition theme-admonition-warning admonition_xJq3 alert alert--warning">'
    '<div class="admonitionHeading_Gvgb"><span class="admonitionIcon_Rf37"><svg><path/></svg></span>Mind</div>'
    '<div class="admonitionContent_BuS1"><p>a</p></div></div>',
    "VitePress": '<div class="warning custom-block"><p class="custom-block-title">Mind</p><p>a</p></div>',
    "VuePress": '<div class="hint-container warning"><p class="hint-container-title">Mind</p><p>a</p></div>',
    "Starlight": '<aside class="starlight-aside starlight-aside--warning"><p class="starlight-aside__title">'
    '<svg></svg>Mind</p><div class="starlight-aside__content"><p>a</p></div></aside>',
    "GitHub": '<div class="markdown-alert markdown-alert-warning"><p class="markdown-alert-title">Mind</p><p>a</p></div>',
    "Docsy": '<div class="alert alert-warning" role="alert"><h4 class="alert-heading">Mind</h4><p>a</p></div>',
    "mdBook": '<blockquote class="blockquote-tag blockquote-tag-warning"><p class="blockquote-tag-title"><svg></svg>Mind</p>'
    "<p>a</p></blockquote>",
    "MyST": '<aside class="myst-admonition myst-admonition-warning my-5 myst-admonition-default"><div class="'
    'myst-admonition-header m-0"><svg></svg><div>Mind</div></div><div class="myst-admonition-body"><p>a</p></div></aside>',
}
CODE = {
    "Pygments": '<div class="language-py highlight"><pre><span></span><code><span class="k">x</span>\n</code></pre></div>',
    "Pygments with a table of numbers": '<div class="highlight-py"><table class="highlighttable"><tr><td class="linenos">'
    '<div class="linenodiv"><pre><span class="normal">1</span></pre></div></td><td class="code"><div><pre>x\n</pre></div>'
    "</td></tr></table></div>",
    "Pygments with inline numbers": '<div class="highlight-py"><pre><span class="linenos">1</span>x</pre></div>',
    "Rouge": '<div class="language-py highlighter-rouge"><div class="highlight"><pre class="highlight"><code><table class='
    '"rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1\n</pre></td><td class="rouge-code"><pre>x'
    "\n</pre></td></tr></tbody></table></code></pre></div></div>",
    "Chroma": '<div class="highlight"><pre class="chroma"><code class="language-py" data-lang="py"><span class="line">'
    '<span class="ln">1</span><span class="cl">x</span></span></code></pre></div>',
    "Prism": '<div class="language-py theme-code-block"><pre class="prism-code language-py"><code><span class="token-line">'
    "<span>x</span><br></span></code></pre><button>Copy</button></div>",
    "Hexo": '<figure class="highlight py"><table><tr><td class="gutter"><pre><span class="line">1</span><br></pre></td>'
    '<td class="code"><pre><span class="line">x</span><br></pre></td></tr></table></figure>',
    "highlight.js": '<pre><code class="language-py hljs">x</code></pre>',
    "highlight.js without a prefix": '<pre><code class="hljs py">x</code></pre>',
    "Expressive Code": '<div class="expressive-code"><figure class="frame"><pre data-language="py"><code><div class="ec-line">'
    '<div class="gutter"><div class="ln">1</div></div><div class="code">x</div></div></code></pre></figure></div>',
    "Pandoc": '<div class="sourceCode"><pre class="sourceCode py"><code class="sourceCode python">x</code></pre></div>',
}


@pytest.mark.parametrize("name", CASES)
def test_a_construct_becomes_markdown(name: str) -> None:
    html, markdown = CASES[name]
    assert read_page(f"<main>{html}</main>").markdown == f"{markdown}\n"


@pytest.mark.parametrize("name", ADMONITIONS)
def test_an_admonition_is_a_quote_with_its_kind(name: str) -> None:
    assert read_page(f"<main>{ADMONITIONS[name]}</main>").markdown == "> [!WARNING] Mind\n>\n> a\n"


@pytest.mark.parametrize("name", CODE)
def test_code_has_its_language_and_no_line_numbers(name: str) -> None:
    assert read_page(f"<main>{CODE[name]}</main>").markdown == "```py\nx\n```\n"


def test_prompts_are_code() -> None:
    html = '<div class="highlight"><pre><span class="gp">&gt;&gt;&gt; </span>1\n<span class="go">1</span></pre></div>'
    assert ">>> 1\n1" in read_page(html).markdown


def test_a_no_break_space_in_code_stays() -> None:
    page = read_page("<main><h1>x</h1><pre><code>\u2502\xa0\xa0 a\n\xa0\nb \n</code></pre></main>")
    assert page.markdown == "# x\n\n```\n\u2502\xa0\xa0 a\n\nb\n```\n"


def test_labels_that_scripts_make_of_attributes_are_text() -> None:
    html = (
        '<div class="tabs"><div class="tabs__content" data-title="Kotlin"><p>a</p></div></div>'
        '<div class="code-collapse" data-synopsis="More">b</div>'
    )
    assert read_page(f"<main>{html}</main>").markdown == "**Kotlin**\n\na\n\n**More**\n\n```\nb\n```\n"


@pytest.mark.parametrize("name", [*CASES, *ADMONITIONS, *CODE])
def test_words_of_content_and_markdown_agree(name: str) -> None:
    html = CASES[name][0] if name in CASES else ADMONITIONS.get(name) or CODE[name]
    lost, invented = lost_and_invented(f"<main>{html}</main>")
    assert not lost and not invented


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<h2 id="a">A</h2>', "a"),
        ('<h2><a id="a"></a>A</h2>', "a"),
        ('<h2><a name="a">A</a></h2>', "a"),
        ('<section id="a"><h2>A</h2></section>', "a"),
        ('<section id="a"><span id="b"></span><h2>A</h2></section>', "b"),
        ('<a id="a"></a>\n<h2>A</h2>', "a"),
        ('<section id="a"><p>x</p><h2>A</h2></section>', ""),
        ('<section id="a"><a href="s.html">Source</a><a href="#a">§</a><h2>A</h2></section>', "a"),
        ('<section id="a"><span>1.0 · <a href="s.html">Source</a></span><h2>A</h2></section>', "a"),
        ('<section id="a"><span>x</span><h2>A</h2></section>', ""),
        ('<details><summary><section id="a"><h2>A</h2></section></summary>x</details>', "a"),
        ('<ul><li><section id="a"><h2>A</h2></section></li></ul>', "a"),
        ('<ul> <li><!-- --><h2 id="a">A</h2>x</li></ul>', "a"),
        ('<a name="a"><!-- --></a>\n<ul class="blockList"><li class="blockList">\n<h2>A</h2></li></ul>', "a"),
        ('<div id="top"></div><div><h2>A</h2></div>', ""),
        ("<h2>A</h2>", ""),
    ],
)
def test_an_anchor_is_an_id_of_the_page(html: str, anchor: str) -> None:
    assert read_page(f"<main>{html}</main>").headings == ((2, anchor, "A"),)


def test_lists_around_the_members_in_pages_of_javadoc_are_no_lists() -> None:
    """As Java 8 to 15 write them: the outer list begins with another list, that of a class with its description."""
    html = """<ul class="blockList"><li class="blockList"><div>Of a lamp.</div></li></ul><ul class="blockList"><li
    class="blockList"><ul class="blockList"><li class="blockList"><a id="method.detail"><!-- --></a><h3>Methods</h3>
    <a id="light()"><!-- --></a><ul class="blockListLast"><li class="blockList"><h4>light</h4><div>Lights
    it.</div><dl><dt>Since:</dt><dd>1.0</dd></dl></li></ul></li></ul></li></ul>"""
    page = read_page(f"<main>{html}</main>")
    assert page.headings == ((3, "method.detail", "Methods"), (4, "light()", "light"))
    text = "Of a lamp.\n\n### Methods\n\n#### light\n\nLights it.\n\n- **Since:**\n  1.0\n"
    assert page.markdown == text


def test_a_section_named_content_is_not_the_content_of_a_page() -> None:
    """Of a generator that is not known, as TypeDoc: a member of a class may have this name."""
    for named in ('<h3 id="content">content</h3>', '<section class="level2" id="content"><h2>B</h2></section>'):
        assert "all of it" in read_page(f"<body><h1>A</h1><p>all of it</p>{named}<p>b</p>").markdown
    assert read_page('<body><h1>Site</h1><div id="content"><h2>A</h2><p>b</p></div>').markdown == "## A\n\nb\n"


_TEXT = st.text(alphabet=st.sampled_from(list("ab1 _*`#<>&[]()!|~-+=\\\n.:{}$^é")), max_size=12)
_INLINE = st.sampled_from(["b", "i", "em", "code", "a", "span", "del", "sup", "kbd"])
_BLOCKS = st.sampled_from(
    [
        "p",
        "div",
        "ul",
        "ol",
        "blockquote",
        "section",
        "details",
        "table",
        "h2",
        "h3",
        "dl",
        "pre",
        "td",
        "li",
        "dt",
        "dd",
        "summary",
    ]
)
_HTML = st.recursive(
    _TEXT.map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>", _INLINE | _BLOCKS, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>an array[](1) of</p>", "an array[\\](1) of\n"),
        ("<p>f[x]<b>(y)</b></p>", "f[x]**\\(y)**\n"),
        ("<p><span>[x]</span><span>(y)</span></p>", "[x]\\(y)\n"),
        ('<p><a href="x.html">x</a>(y)</p>', "[x](x.html)(y)\n"),
    ],
)
def test_text_that_looks_like_a_link_is_none(html: str, markdown: str) -> None:
    assert read_page(f"<main>{html}</main>").markdown == markdown


@given(_HTML)
@example("<ol>1<li></li><li>1</li></ol>")  # only a list that begins with 1 ends a paragraph
@example('<ul><li>1<ol start="3"><li>1</li></ol></li></ul>')
@example("<ol><li>1</li>1<li>1</li></ol>")
def test_no_word_is_lost_in_any_html(html: str) -> None:
    """Read by another reader of Markdown than ours."""
    page = f"<main>{html}</main>"
    tree = html_tree.parse(page)
    root = html_tree.first(tree, "main")
    if root is None:
        return
    seen = page_content.words_of(page_content.content_of(tree))
    rendered = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    shown = html_tree.parse(rendered.render(read_page(page).markdown))
    assert shown.body is not None
    assert sorted("".join(seen)) == sorted("".join(page_content.words(shown.body.text())))


@given(_HTML)
def test_each_heading_at_the_top_is_a_section(html: str) -> None:
    page = read_page(f"<main>{html}</main>")
    titles = [heading.text for heading in page.headings]
    sections = [section for section in parse(page.markdown).sections if section.heading_level]
    assert len(sections) <= len(titles)


@given(st.text(alphabet=st.sampled_from(list("<>/h12ptdliuprea id=\"'!-&;"))) | st.text())
def test_any_text_is_taken(html: str) -> None:
    page = read_page(html)
    assert all(1 <= heading.level <= 6 for heading in page.headings)


def test_lists_in_lists_are_linear() -> None:
    html = "<ul><li>a" * 400 + "</li></ul>" * 400
    text = read_page(f"<main>{html}</main>").markdown
    assert text.count("a") == 400 and len(text) < 30_000


def test_a_long_paragraph_is_linear() -> None:
    """A copy of what is written so far, for each of these elements, would take a quarter of a minute."""
    began = time.thread_time()
    text = read_page(f"<main><p>{'<b>x</b> <i></i><a href=y>z</a> ' * 4_000}</p></main>").markdown
    assert text.count("**x**") == 4_000 and text.count("[z](y)") == 4_000
    assert time.thread_time() - began < 3


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://github.com/o/r/edit/main/a.md">e</a> ' * 4_000,
        '<a href="https://github.com/o/r/edit/main/a.md"></a> ' * 4_000,
        "<span></span>" * 4_000 + "<a><h2>e</h2></a>" * 4_000,
    ],
    ids=["links to edit a file", "such links without a text", "links before headings"],
)
def test_many_links_are_linear(html: str) -> None:
    """If each were compared with all the text around it, this would take seven seconds."""
    began = time.thread_time()
    read_page(f"<main><div>{html}</div></main>")
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    ("html", "expected", "name"),
    [
        (
            '<dl><dt class="sig" id="a.B"><em>class</em> <span class="sig-prename">a.</span>'
            '<span class="sig-name">B</span>(<em>x</em>, <em>y=None</em>)</dt><dd>Text.</dd></dl>',
            "# A\n\n## `a.B`\n\n`class a.B(x, y=None)`\n\nText.\n",
            "a.B",
        ),
        (
            '<dl><dt class="sig" id="o"><span class="sig-name">-v</span>, <span class="sig-name">--verbose</span>'
            '<span class="sig-prename"> LEVEL</span></dt><dd>Text.</dd></dl>',
            "# A\n\n## `-v, --verbose`\n\n`-v, --verbose LEVEL`\n\nText.\n",
            "-v, --verbose",
        ),
        (
            '<dl><dt class="sig" id="c"><span class="sig-name">C</span></dt><dd>Text.</dd></dl>',
            "# A\n\n## `C`\n\nText.\n",
            "C",
        ),
        (  # a page that is called as its class; an overload without an id
            '<dl><dt class="sig" id="A"><span class="sig-name">A</span></dt><dt class="sig">A(x)</dt><dd>Text.</dd></dl>',
            "# A\n\n## `A`\n\n`A(x)`\n\nText.\n",
            "A",
        ),
        (
            '<h2 class="doc doc-heading" id="a.f"><code class="doc-symbol"></code> <code>f(x, y=(1, 2))</code>'
            ' <span class="doc doc-labels"><small>async</small></span></h2><p>Text.</p>',
            "# A\n\n## `f`\n\n`f(x, y=(1, 2)) async`\n\nText.\n",
            "f",
        ),
        (
            '<h2 class="doc doc-heading" id="a.f"><code>a.f</code></h2><p>Text.</p>',
            "# A\n\n## `a.f`\n\nText.\n",
            "a.f",
        ),
    ],
)
def test_an_entry_of_an_api_has_its_name_as_heading(html: str, expected: str, name: str) -> None:
    page = read_page(f"<main><h1>A</h1>{html}</main>")
    assert page.markdown == expected
    assert [heading.text for heading in page.headings] == ["A", name]
    assert lost_and_invented(f"<main><h1>A</h1>{html}</main>") == (Counter(), Counter())


def test_many_buttons_side_by_side_are_content_and_a_few_are_not() -> None:
    names = "".join(f'<button aria-label="Copy"><svg></svg><span>icon-{n}</span></button>' for n in range(8))
    few = "<div><button>Copy</button><button>Share</button></div>"
    page = read_page(f"<main><h1>Icons</h1><div>{names}</div>{few}</main>")
    assert page.markdown.split() == ["#", "Icons", *(f"icon-{n}" for n in range(8))]
    assert lost_and_invented(f"<main><h1>Icons</h1><div>{names}</div>{few}</main>") == (Counter(), Counter())


def test_lists_and_quotes_nest_to_twelve() -> None:
    for depth, marks in ((11, 11), (12, 12), (13, 12), (40, 12)):
        html = "<blockquote>" * depth + "<p>deep</p>" + "</blockquote>" * depth
        [line] = read_page(f"<main>{html}</main>").markdown.splitlines()
        assert line == "> " * marks + "deep"
