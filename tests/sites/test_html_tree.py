"""HTML to a tree: broken encodings, broken tags, and tags inside each other without end."""

from __future__ import annotations

import random
import time

import pytest

from anvil.errors import ConfigError
from anvil.sites import html_tree


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a tenth of the tags are looked at, too, for a tenth of the steps: it takes a tenth of the time."""
    monkeypatch.setattr(html_tree, "_MIN_DEEP_TAGS", 2_000)
    monkeypatch.setattr(html_tree, "_MIN_FORMAT_TAGS", 500)
    monkeypatch.setattr(html_tree, "_MAX_STEPS", 2_000_000)


def test_a_page_of_20000_tags_is_looked_at_and_a_smaller_one_is_parsed() -> None:
    with pytest.raises(html_tree.Unreadable, match="1,000 elements inside each other"):
        html_tree.parse("<div>" * 20_000)
    assert html_tree.parse("<div>" * 3_000).body is not None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 2_000,
        "<DIV>" * 2_000,
        "<b><i>" * 1_000,
        "<p>".join(f"<b id={n}>" for n in range(9000)),
        "<div><script></script>" * 2_000,
        "<!-->" + "<div>" * 2_000,
        "<svg><title>" + "<div>" * 2_000,
        "<svg><div>" + "<path/>" * 2_000,
        "<path/>" * 2_000,
        "<svg>" + "<g a='/>'>" * 2_000,
        "<svg>" + "<path a=/>" * 2_000,
        "<p a='<svg>'>" + "<path/>" * 2_000,
        "<svg>" + "<g a=b'/>" * 2_000,
    ],
    ids=range(13),
)
def test_a_page_that_is_too_deep_is_refused(html: str) -> None:
    with pytest.raises(html_tree.Unreadable, match=r"more than .* elements .*inside each other"):
        html_tree.parse(html)


@pytest.mark.usefixtures("small")
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
    tree = html_tree.parse(f"{start}{'<div>' * 1_500}<i>")
    assert html_tree.first(tree, "div > " * 1_000 + "i") is not None  # they are elements
    with pytest.raises(html_tree.Unreadable, match="more than 1,000 elements inside each other"):
        html_tree.parse(start + "<div>" * 2_100)


def test_elements_of_a_drawing_outside_of_one_are_inside_each_other() -> None:
    assert html_tree.first(html_tree.parse("</svg>" + "<g/>" * 900), "g > " * 500 + "g") is not None
    with pytest.raises(html_tree.Unreadable, match="more than 1,000 elements inside each other"):
        html_tree.parse("</svg>" + "<g/>" * 20_000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<div></x>" * 2_100, "1,000 elements"),
        ("<span></x>" * 2_100, "1,000 elements"),
        ("<div t='</div>'>" * 2_100, "1,000 elements"),
        ("<div><! </div>" * 2_100, "1,000 elements"),
        ("<span><div></span></div>" * 2_100, "1,000 elements"),
        ("<span><p></span></p>" * 2_100, "1,000 elements"),
        ("<div><table></div></table>" * 2_100, "1,000 elements"),
        ("<table></x>" * 2_100, "1,000 elements"),
        ("<svg><p></p><g/>" * 2_100, "1,000 elements"),
        ("<y><p>" + "<span>" * 990 + "</y>" * 2_100, "end tags that fit no element"),
        ("".join(f"<b a{n}></i>" for n in range(5_000)) + "<p>" * 5_000, "50 elements such as <b>"),
        ("<select>" + "<option>x" * 10_001, "10,000 elements <option>"),
        ("<a " + " ".join(f"a{n}" for n in range(8_000)) + ">", "tag with more than 1,000 attributes"),
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


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "html",
    [
        '<p title="<!--">a</p>' * 2_100,
        "<p>it's 1 < 2</p>" * 2_100,
        '<p title="<!--">' + "<script>" + "<div>" * 4_000 + "</script>",
        "<select></select>" + "<!-- <b> --><script>'<div>'</script>" * 1_000,
        "<p>a" * 4_000,
        "<ul>" + "<li>a" * 4_000,
        "<br>" * 4_000,
        "<script>" + "<div>" * 4_000 + "</script>",
        "<!--" + "<div>" * 4_000,
        "<div></div>" * 4_000,
        "<script>" + "if (a<b) c = ' d e'; " * 2_100 + "</script>",
        "<table><tr><td>a<td>b" * 900 + "<p>a" * 2_000,
        "<svg><path d='x'/></svg>" * 2_000,
        '<img src="data:image/png;base64,' + "iVBO/Rw0KGgo+" * 8_000 + '">',
        "<meta name=description content='" + "a word of it " * 5_000 + "'>",
        "<svg a=b>" + "<path a = 'x' b=\"/\"c d / /><stop/>" * 2_000,
        "<svg>" + "<g><title>n</title><polygon points='1,2'/><text>x</text></g>" * 1_000 + "</svg>",
    ],
    ids=range(17),
)
def test_a_long_page_is_not_deep(html: str) -> None:
    assert html_tree.parse(html).body is not None


def test_a_selector_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'p\[\[' is not a valid CSS selector. Correct site.content"):
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


@pytest.mark.usefixtures("small")
def test_fifty_elements_such_as_b_may_be_open_at_once() -> None:
    def html(count: int) -> str:
        return "".join(f"<b id={number}>" for number in range(count)) + "</b>" * count + "<p>x</p>" * 500

    assert html_tree.parse(html(50)).body is not None
    with pytest.raises(html_tree.Unreadable, match="more than 50 elements such as <b> inside each other"):
        html_tree.parse(html(51))
