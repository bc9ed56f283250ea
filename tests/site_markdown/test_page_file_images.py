"""The images of a page beside its text, which has their alternative texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.site_markdown.page_file import with_images
from anvil.sites import html_tree
from anvil.sites.html_to_markdown import Converted, to_markdown
from anvil.sites.page_content import GENERIC, PageRules, content_of
from anvil.sites.site_pages import PageFacts, PageImage
from anvil.text import references


def converted(html: str) -> Converted:
    return to_markdown(content_of(html_tree.parse(html), PageRules(content=("body",)), GENERIC))


CASES = {
    "in a sentence": ('<p>A <img alt="map" src="x.png"> here</p>', "A map here\n", "A ![map](x.png) here\n"),
    "at the begin of a word": ('<p>un<img alt="lit" src=x>ed</p>', "un lit ed\n", "un ![lit](x) ed\n"),
    "in a link": ('<p><a href="/a"><img alt="A" src="a b.png"></a></p>', "[A](/a)\n", "[![A](a%20b.png)](/a)\n"),
    "in a heading": ('<h1>The <img alt="*b* lamp" src=x></h1>', "# The \\*b\\* lamp\n", "# The ![\\*b\\* lamp](x)\n"),
    "two": ('<p><img alt="a" src=1><img alt="b" src=2></p>', "a b\n", "![a](1) ![b](2)\n"),
    "in lists": (
        '<ul><li>One<li><p><img alt="1. b" src=2><p>c<li>d</ul>',
        "- One\n- 1\\. b\n\n  c\n\n- d\n",
        "- One\n- ![1\\. b](2)\n\n  c\n\n- d\n",
    ),
    "a text like a block": ('<p><img alt="# x" src=1></p>', "\\# x\n", "![\\# x](1)\n"),
    "a text like a rule": ('<p><img alt="---" src=1></p>', "\\---\n", "![\\---](1)\n"),
    "a bracket": ('<p><img alt="a ] b" src=1></p>', "a ] b\n", "![a \\] b](1)\n"),
    "in a table": (
        '<table><tr><th>x<th>y<tr><td><img alt="a|b" src="c|d"><td>e</table>',
        "| x | y |\n| --- | --- |\n| a\\|b | e |\n",
        "| x | y |\n| --- | --- |\n| ![a\\|b](c%7Cd) | e |\n",
    ),
    "a heading that ends like an attribute": ('<h2><img alt="{#c}" src=1></h2>', "## {#c&#125;\n", "## {#c&#125;\n"),
    "without a text": (
        "<p>One</p><p><img src=1><img src=2></p><p>Two</p>",
        "One\n\nTwo\n",
        "One\n\n![](1) ![](2)\n\nTwo\n",
    ),
    "without a text in a sentence": (
        "<p>One<img src=1> two</p><p>Three",
        "One two\n\nThree\n",
        "One two\n\n![](1)\n\nThree\n",
    ),
    "without a text as the first": ("<img src=1><h1>One</h1>", "# One\n", "![](1)\n\n# One\n"),
    "without a text as the last": ("<p>One</p><img src=1>", "One\n", "One\n\n![](1)\n"),
    "without a text in a list": ("<ul><li>One<li><img src=1></ul>", "- One\n", "- One\n- ![](1)\n"),
    "without a text in an admonition": (
        "<div class='admonition note'><p class=admonition-title>Note<p>One<p><img src=1></div><p>Two",
        "> [!NOTE] Note\n>\n> One\n\nTwo\n",
        "> [!NOTE] Note\n>\n> One\n>\n> ![](1)\n\nTwo\n",
    ),
    "without an address": ('<p>A <img alt="map"> <img alt="b" src="data:x"></p>', "A map b\n", "A map b\n"),
    "hidden": ('<p>A<img alt="map" src=1 hidden></p>', "A\n", "A\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_has_the_alternative_text_and_the_image_takes_its_place(name: str) -> None:
    html, text, kept = CASES[name]
    page = converted(html)
    assert page.markdown == text
    assert with_images(page.markdown, page.images) == kept


def test_an_image_whose_text_is_not_there_is_left_out() -> None:
    images = (PageImage(2, "map", "![map](x)"), PageImage(1, "b", "![b](y)"), PageImage(5, "", "\n![](z)\n"))
    assert with_images("a map", images) == "a ![map](x)\n![](z)\n"
    assert with_images("another text", images[:1]) == "another text"


def test_facts_are_the_same_after_json() -> None:
    facts = PageFacts(title="T", images=(PageImage(2, "map", "![map](x)"),))
    assert PageFacts.of_json([*facts[:-1], [list(image) for image in facts.images]]) == facts
    with pytest.raises((TypeError, ValueError)):
        PageFacts.of_json([*facts[:-1], [["x", "map", "m"]]])


PIECES = st.sampled_from(
    """
    <p> </p> <ul><li> <li> </ul> <h2> </h2> <b> </b> <a/href=x> </a> <table><tr><td> </table> word <blockquote>
    </blockquote> 1. # <pre>code</pre> \ufdd0\ufde0x\ufdd1
    """.split()  # noqa: SIM905
)


@given(
    st.lists(
        st.one_of(PIECES, st.just(" "), st.tuples(st.text("a-#]*1. ", max_size=4), st.sampled_from(["", "x.png"])))
    )
)
def test_the_text_is_that_of_a_page_without_addresses_of_images(pieces: list[str | tuple[str, str]]) -> None:
    def html(has_address: bool) -> str:
        return "".join(
            each if isinstance(each, str) else f'<img alt="{each[0]}" src="{each[1] if has_address else ""}">'
            for each in pieces
        )

    page, plain = converted(html(True)), converted(html(False))
    assert (page.markdown, page.headings) == (plain.markdown, plain.headings)
    kept = with_images(page.markdown, page.images)
    targets = [link.target for link in references.read(kept).links if link.kind == "image"]
    assert targets.count("x.png") <= sum(not isinstance(each, str) and bool(each[1]) for each in pieces)
