"""Words of Markdown, and those of a page's HTML that its Markdown lacks."""

from __future__ import annotations

import pytest

from anvil.sites import content_words
from anvil.sites.html_page import read_fragment


@pytest.mark.parametrize(
    ("markdown", "html", "wanted"),
    [
        ("# A\n\nText.\n", "<h1>A</h1><p>Text.</p>", False),
        ("# API\n\n::: package\n", "<h1>API</h1><h2><code>package.f(a)</code></h2>", True),
        ("## H~2~O & `f()`\n", "<h2>H<sub>2</sub>O &amp; <code>f()</code></h2>", False),
        ("# A\n\n{{ table }}\n", f"<h1>A</h1><p>{'<b>new</b> words ' * 20}</p>", True),
        ("# A\n\n:smile:\n", "<h1>A</h1><p>Copy to clipboard</p><svg><title>smiling face</title></svg>", False),
        ("# A\n", f"<h1>A</h1><script>{'x ' * 100}</script><p>End.</p>", False),
    ],
)
def test_html_says_what_its_markdown_lacks(markdown: str, html: str, wanted: bool) -> None:
    content = read_fragment(html)
    headings = [heading.text for heading in content.headings]
    assert content_words.is_incomplete(markdown, headings, content.words) is wanted


def test_marks_and_links_do_not_separate_words_and_images_do() -> None:
    line = "[int](a.md)s, un[`happy`](x)ly, [**b**](c)d [![sun](a.png)](b)rise\\[no](x)"
    assert content_words.of_markdown(line) == ["ints", "unhappyly", "bd", "sun", "rise", "no"]
