"""HTML to a tree, and walks over it: the only module that imports the HTML parser.

The parser is Lexbor, which builds the tree that a browser builds, also for broken HTML. Elements are never removed from
a tree, only skipped in walks, because a removed one leaves pointers behind.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from anvil.core import encodings
from anvil.errors import ConfigError

Element = LexborNode
Tree = LexborHTMLParser

MAX_DEPTH = 1_000
"""Elements inside each other. Browsers stop at about 512. The parser's time grows with the depth of each element."""
MAX_OPEN_FORMATS = 50
"""``<b>``, ``<a>`` and the like inside each other. The parser repeats those that are open in each paragraph."""
_MIN_DEEP = 5 * MAX_DEPTH
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)
_DECLARED_BYTES = 4096
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_TAG = re.compile(rb"<(/?)(!--|[A-Za-z][A-Za-z0-9:-]*)")
_RAW = frozenset(b"!-- script style textarea title xmp".split())
"""Elements whose content is text, and comments."""
_NEVER_DEEP = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th tbody thead tfoot "
    b"option optgroup html head body rb rt rp rtc colgroup caption".split()
)
"""Elements without content, and those that the next one of their kind ends."""
_FORMATS = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())


class Unreadable(ValueError):
    """A page that is not parsed; the message is the reason."""


def decoded(data: bytes) -> str:
    """The text of an HTML file: by its byte order mark, else UTF-8 if it is valid, else the encoding that it declares,
    else Windows-1252, as browsers do. Never raises."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(name, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    declared = _DECLARED.search(data, 0, _DECLARED_BYTES)
    codec = encodings.known(declared[1].decode("ascii")) if declared else None
    return data.decode(codec or "cp1252", "replace")


def parse(html: bytes | str) -> Tree:
    """The tree of a page, or of a part of one. Raises :class:`Unreadable` for tags that are too deep."""
    text = html if isinstance(html, str) else decoded(html)
    data = text.encode("utf-8", "replace")
    if data.count(b"<") >= _MIN_DEEP:
        _ensure_shallow(data)
    return LexborHTMLParser(data.decode("utf-8"))


def _ensure_shallow(data: bytes) -> None:
    depth = formats = at = 0
    while match := _TAG.search(data, at):
        at = match.end()
        name = match[2].lower()
        if name in _RAW and not match[1]:
            at = data.find(b"</" + match[2], at) if name != b"!--" else data.find(b"-->", at)
            if at < 0:
                return  # the rest is its text
            continue
        if name in _NEVER_DEEP:
            continue
        step = -1 if match[1] else 1
        depth = max(0, depth + step)
        if name in _FORMATS:
            formats = max(0, formats + step)
        if depth > MAX_DEPTH or formats > MAX_OPEN_FORMATS:
            limit = MAX_DEPTH if depth > MAX_DEPTH else MAX_OPEN_FORMATS
            raise Unreadable(f"its HTML has more than {limit:,} elements inside each other")


def select(root: Tree | Element, selector: str) -> list[Element]:
    """The elements that a CSS selector matches, in document order. Raises :class:`ConfigError` for an invalid one."""
    try:
        return root.css(selector)
    except SelectolaxError:
        raise ConfigError(f"{selector!r} is not a CSS selector that Anvil can read.") from None


def first(root: Tree | Element, selector: str) -> Element | None:
    """The first element that a valid CSS selector matches."""
    return root.css_first(selector, default=None)


def ids(elements: Sequence[Element]) -> frozenset[int]:
    """What identifies elements in their tree."""
    return frozenset(element.mem_id for element in elements)


def walk(root: Element, skipped: Container[int] = frozenset()) -> Iterator[tuple[Element, bool]]:
    """Each node under ``root`` in order: (node, whether it begins). Elements come again at their end.

    ``skipped``: elements that are left out with their content.
    """
    node = root.child
    if node is None:
        return
    end = root.mem_id
    while True:
        if node.mem_id not in skipped:
            yield node, True
            inner = node.child if node.is_element_node else None
            if inner is not None:
                node = inner
                continue
            if node.is_element_node:
                yield node, False
        following = node.next
        while following is None:
            parent = node.parent
            if parent is None or parent.mem_id == end:
                return
            node = parent
            yield node, False
            following = node.next
        node = following


def classes(element: Element) -> list[str]:
    """The class names of an element."""
    return (element.attributes.get("class") or "").split()
