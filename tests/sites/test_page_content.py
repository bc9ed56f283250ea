"""Content of HTML: headings with ids that exist, words, and the Markdown that it becomes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.sites.html_to_markdown import to_markdown
from anvil.sites.html_tree import Unreadable
from anvil.sites.page_content import headings_of, whole_content, words_of
from anvil.text.section_places import Heading


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<h1 id="a">A</h1><p>x</p><h2 id="b">B</h2>', [(1, "a", "A"), (2, "b", "B")]),
        ('<h2 id="a"><code>f()</code> &amp; <em>g</em>\n h</h2>', [(2, "a", "f() & g h")]),
        ('<h2 id="a">A<a class="headerlink" href="#a">&para;</a></h2>', [(2, "a", "A")]),
        ('<h2 id="a">A<a class="x anchor-link" href="#a">&para;</a></h2>', [(2, "a", "A")]),
        ('<h2 id="a"><a class="toclink" href="#a">A</a></h2>', [(2, "a", "A")]),
        ("<h2>A</h2>", [(2, "", "A")]),
        ('<h2><a id="inner"></a>A</h2>', [(2, "inner", "A")]),
        ('<H2 ID="a">A</H2>', [(2, "a", "A")]),
        ('<h2 id="a">open <h3 id="b">B</h3>', [(2, "a", "open"), (3, "b", "B")]),
        ('<h2 id="a">never closed', [(2, "a", "never closed")]),
        ('<!-- <h2 id="no">No</h2> --><h2 id="a">A</h2>', [(2, "a", "A")]),
        ('<template><h2 id="no">No</h2></template><h2 id="a">A</h2>', [(2, "a", "A")]),
        ('<script>"<h2 id=no>"</script><textarea><h2 id="no">x</textarea><h2 id="a">A</h2>', [(2, "a", "A")]),
        ('<p title="<h2 id=no>">x</p><h2 id="a">A</h2>', [(2, "a", "A")]),
        ('<pre><code>&lt;h2 id="no"&gt;</code></pre>', []),
        ('<h1 id="a"><img src="logo.svg"></h1>', [(1, "a", "")]),
        ('<dl><dt><h2 id="a">A</h2></dt></dl>', [(2, "a", "A")]),
        ('<details><summary><h3 id="a">A</h3></summary></details>', [(3, "a", "A")]),
        ('<article><h2 id="a">A</h2></article><p>x</p><h2 id="b">B</h2>', [(2, "a", "A"), (2, "b", "B")]),
        ('<details><summary>s</summary><h3 id="a">A</h3></details>', [(3, "a", "A")]),
    ],
)
def test_headings_are_those_that_a_browser_has(html: str, found: list[tuple[int, str, str]]) -> None:
    assert headings_of(whole_content(html)) == tuple(Heading(*each) for each in found)


@given(st.text(alphabet=st.sampled_from(list("<>/h12 id=\"'a!-&;"))) | st.text())
def test_any_text_is_taken(html: str) -> None:
    with contextlib.suppress(Unreadable):
        assert all(1 <= heading.level <= 6 for heading in headings_of(whole_content(html)))


def test_html_becomes_markdown_as_it_is_read() -> None:
    html = """
<h1 id="api">API<a class="headerlink" href="#api">¶</a><a class="anchor-link" href="#api">¶</a></h1>
<p>Takes <code>a_b</code> * <b>two</b>.<script>no()</script><button>copy</button></p>
<div class="language-python highlight"><pre><span></span><code><span class="k">def</span> f(a_b, *c):
    pass
</code></pre></div>
<table class="highlighttable"><tr><td class="linenos"><pre>1</pre></td><td class="code"><div class="highlight">
<pre><code>numbered</code></pre></div></td></tr></table>
<ul><li>x<ul><li>y_z</li></ul></li></ul>
<table><thead><tr><th>name</th></tr></thead><tbody><tr><td><code>walrus</code></td></tr></tbody></table>
<h2 id="mod.f" class="doc"><code>f(a_b)</code></h2><p>1. it <a href="../x/">links</a></p>
"""
    text = to_markdown(whole_content(html)).markdown
    assert text.startswith("# API\n\nTakes `a_b` * **two**.\n\n```python\ndef f(a_b, *c):\n    pass\n```\n")
    assert "```\nnumbered\n```" in text and "\n1\n" not in text
    assert "- x\n  - y_z\n" in text and "| `walrus` |" in text
    assert text.endswith("## `f(a_b)`\n\n1\\. it [links](../x/)\n")


def test_words_are_those_that_readers_see() -> None:
    html = "<table><tr><td>a</td><td>B<i>c</i></td></tr></table><svg/>"
    html += "<p>d<br>e<a class='headerlink'>¶ no</a></p><svg><text>no</text></svg>"
    assert words_of(whole_content(html)) == ["a", "bc", "d", "e"]
