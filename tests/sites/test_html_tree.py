"""HTML to a tree: broken encodings, broken tags, and tags inside each other without end."""

from __future__ import annotations

import random
import time

import pytest

from anvil.errors import ConfigError
from anvil.sites import html_tree


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 20_000,
        "<DIV>" * 20_000,
        "<b><i>" * 10_000,
        "<p>".join(f"<b id={n}>" for n in range(9000)),
        "<div><script></script>" * 20_000,
        "<!-->" + "<div>" * 20_000,
        "<svg><title>" + "<div>" * 20_000,
        "<svg><div>" + "<path/>" * 20_000,
        "<path/>" * 20_000,
        "<svg>" + "<g a='/>'>" * 20_000,
        "<svg>" + "<path a=/>" * 20_000,
        "<p a='<svg>'>" + "<path/>" * 20_000,
        "<svg>" + "<g a=b'/>" * 20_000,
    ],
    ids=range(13),
)
def test_a_page_that_is_too_deep_is_refused(html: str) -> None:
    with pytest.raises(html_tree.Unreadable, match=r"more than .* elements .*inside each other"):
        html_tree.parse(html)


@pytest.mark.parametrize(
    "start",
    [
        '<p title="<!--">',
        "<p title='<script>'>",
        "<p title=<!-->",
        "<p <!-- >",
        '<p a=b"c d="<!--">',
        '<p ="x" y="<!--">',
        '<p a= "b"c="<!--">',
        '</p title="<title>">',
        '<title a="</title>"></title b="<!--">',
        "<?x <!-- ?>",
        "<!doctype <!-- >",
        "</ <!-- >",
        "<script_>",
        "<script></script_<!--</script>",
        "<script><!--<script></script><!--</script></script>",
        "<iframe><!--</iframe>",
        "<noframes><title></noframes>",
        "<svg><![CDATA[><!--]]>",
        "<svg><title><p a='</title>' b='<!--'>",
    ],
)
def test_nothing_hides_the_depth_of_what_follows(start: str) -> None:
    tree = html_tree.parse(f"{start}{'<div>' * 2_000}<i>")
    assert html_tree.first(tree, "div > " * 1_500 + "i") is not None  # they are elements
    with pytest.raises(html_tree.Unreadable, match="more than 1,000 elements inside each other"):
        html_tree.parse(start + "<div>" * 21_000)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<div></x>" * 21_000, "1,000 elements"),
        ("<span></x>" * 21_000, "1,000 elements"),
        ("<div t='</div>'>" * 21_000, "1,000 elements"),
        ("<div><! </div>" * 21_000, "1,000 elements"),
        ("<span><div></span></div>" * 21_000, "1,000 elements"),
        ("<span><p></span></p>" * 21_000, "1,000 elements"),
        ("<div><table></div></table>" * 21_000, "1,000 elements"),
        ("<table></x>" * 21_000, "1,000 elements"),
        ("<svg><p></p><g/>" * 21_000, "1,000 elements"),
        ("<y><p>" + "<span>" * 990 + "</y>" * 21_000, "end tags that fit no element"),
        ("".join(f"<b a{n}></i>" for n in range(5_000)) + "<p>" * 5_000, "50 elements such as <b>"),
        ("<select>" + "<option>x" * 46_000, "10,000 elements <option>"),
        ("<a " + " ".join(f"a{n}" for n in range(50_000)) + ">", "tag with more than 1,000 attributes"),
    ],
    ids=range(13),
)
def test_a_page_that_would_keep_the_parser_busy_is_refused_at_once(html: str, reason: str) -> None:
    began = time.process_time()
    with pytest.raises(html_tree.Unreadable, match=reason):
        html_tree.parse(html)
    assert time.process_time() - began < 3


def test_any_mixture_of_marks_is_as_deep_as_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    # Small pages are not looked at; here they are, for there are hundreds.
    monkeypatch.setattr(html_tree, "_MIN_DEEP_TAGS", 1_500)
    monkeypatch.setattr(html_tree, "_MIN_FORMAT_TAGS", 1_500)
    marks = [*"<>='\"/ a", "<!--", "-->", "--!>", "<!", "<?x ", "</", "<p ", '<p a="', "<p a='", "<p a=b", "</p b='"]
    marks += ["<![CDATA[", "]]>", "<svg>", "</svg>", "<select>", "</select>", "<table>", "<template>", "<noscript>"]
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noframes"):
        marks += [f"<{name}>", f"</{name}>", f"<{name} a='", f"</{name} "]
    chosen = random.Random(7)
    deep = 0
    for _ in range(150):
        start = "".join(chosen.choice(marks) for _ in range(chosen.randint(1, 9)))
        element: html_tree.Element | None = html_tree.first(html_tree.parse(f"{start}{'<div>' * 1_200}<i>"), "i")
        depth = 0
        while element is not None:
            depth, element = depth + 1, element.parent
        if depth > 1_100:
            deep += 1
            with pytest.raises(html_tree.Unreadable):
                html_tree.parse(start + "<div>" * 3_000)
    assert deep > 25


@pytest.mark.parametrize(
    "html",
    [
        '<p title="<!--">a</p>' * 21_000,
        "<p>it's 1 < 2</p>" * 21_000,
        '<p title="<!--">' + "<script>" + "<div>" * 40_000 + "</script>",
        "<select></select>" + "<!-- <b> --><script>'<div>'</script>" * 10_000,
        "<p>a" * 40_000,
        "<ul>" + "<li>a" * 40_000,
        "<br>" * 40_000,
        "<script>" + "<div>" * 40_000 + "</script>",
        "<!--" + "<div>" * 40_000,
        "<div></div>" * 40_000,
        "<script>" + "if (a<b) c = ' d e'; " * 21_000 + "</script>",
        "<table><tr><td>a<td>b" * 900 + "<p>a" * 20_000,
        "<svg><path d='x'/></svg>" * 20_000,
        '<img src="data:image/png;base64,' + "iVBO/Rw0KGgo+" * 8_000 + '">',
        "<meta name=description content='" + "a word of it " * 5_000 + "'>",
        "<svg a=b>" + "<path a = 'x' b=\"/\"c d / /><stop/>" * 20_000,
        "<svg>" + "<g><title>n</title><polygon points='1,2'/><text>x</text></g>" * 10_000 + "</svg>",
    ],
    ids=range(17),
)
def test_a_long_page_is_not_deep(html: str) -> None:
    assert html_tree.parse(html).body is not None


def test_a_selector_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'p\[\[' is not a CSS selector"):
        html_tree.select(html_tree.parse("<p>"), "p[[")


def test_a_walk_leaves_out_what_is_skipped() -> None:
    tree = html_tree.parse("<main><p>a<b>b</b></p><nav>no<i>no</i></nav>c</main>")
    main = html_tree.first(tree, "main")
    assert main is not None
    skipped = html_tree.ids(html_tree.select(tree, "nav"))
    assert [(node.tag, begins) for node, begins in html_tree.walk(main, skipped)] == [
        ("p", True),
        ("-text", True),
        ("b", True),
        ("-text", True),
        ("b", False),
        ("p", False),
        ("-text", True),
    ]
