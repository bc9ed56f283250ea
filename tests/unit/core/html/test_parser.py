"""HTML to a tree: broken encodings, broken tags, and tags inside each other without end."""

from __future__ import annotations

import pytest

from anvil.core.html import parser
from anvil.errors import ConfigError


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        (b"caf\xe9", "café"),
        ("café".encode("utf-16"), "café"),
        ('<meta charset="iso-8859-7">π'.encode("iso-8859-7"), '<meta charset="iso-8859-7">π'),
        (b'<meta charset="no-such">caf\xe9', '<meta charset="no-such">café'),
        (b'<meta charset="utf-8">caf\xe9', '<meta charset="utf-8">caf\ufffd'),
        (b"", ""),
    ],
)
def test_bytes_are_decoded_as_browsers_do(data: bytes, text: str) -> None:
    assert parser.decoded(data) == text


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 300_000,
        "<DIV>" * 300_000,
        "<b><i>" * 150_000,
        "<p>".join(f"<b id={n}>" for n in range(9000)),
        "<div><script></script>" * 100_000,
        "<!-->" + "<div>" * 100_000,
        "<svg><title>" + "<div>" * 100_000,
        "<svg><div>" + "<path/>" * 100_000,
        "<path/>" * 100_000,
        "<svg>" + "<g a='/>'>" * 100_000,
    ],
    ids=range(10),
)
def test_a_page_that_is_too_deep_is_refused(html: str) -> None:
    with pytest.raises(parser.Unreadable, match=r"more than .* elements .*inside each other"):
        parser.parse(html)


@pytest.mark.parametrize(
    "html",
    [
        "<p>a" * 300_000,
        "<ul>" + "<li>a" * 100_000,
        "<br>" * 300_000,
        "<script>" + "<div>" * 300_000 + "</script>",
        "<!--" + "<div>" * 300_000,
        "<div></div>" * 100_000,
        "<svg><path d='x'/></svg>" * 20_000,
        "<svg>" + "<g><title>n</title><polygon points='1,2'/><text>x</text></g>" * 10_000 + "</svg>",
    ],
    ids=range(8),
)
def test_a_long_page_is_not_deep(html: str) -> None:
    assert parser.parse(html).body is not None


def test_a_selector_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'p\[\[' is not a CSS selector"):
        parser.select(parser.parse("<p>"), "p[[")


def test_a_walk_leaves_out_what_is_skipped() -> None:
    tree = parser.parse("<main><p>a<b>b</b></p><nav>no<i>no</i></nav>c</main>")
    main = parser.first(tree, "main")
    assert main is not None
    skipped = parser.ids(parser.select(tree, "nav"))
    assert [(node.tag, begins) for node, begins in parser.walk(main, skipped)] == [
        ("p", True),
        ("-text", True),
        ("b", True),
        ("-text", True),
        ("b", False),
        ("p", False),
        ("-text", True),
    ]
