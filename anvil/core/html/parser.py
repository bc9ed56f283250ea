"""HTML to a tree, and walks over it: the only module that imports the HTML parser.

The parser is Lexbor, which builds the tree that a browser builds, also for broken HTML. Elements are never removed from
a tree, only skipped in walks, because a removed one leaves pointers behind.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from anvil.core import encoding_names
from anvil.errors import ConfigError

Element = LexborNode
Tree = LexborHTMLParser

MAX_DEPTH = 1_000
"""Elements inside each other. Browsers stop at about 512. The parser's time grows with the depth of each element."""
MAX_OPEN_FORMATS = 50
"""``<b>``, ``<a>`` and the like inside each other. The parser repeats those that are open in each paragraph."""
_MIN_DEEP_TAGS = 20_000
_MIN_FORMAT_TAGS = 5_000
"""Pages with fewer tags are parsed however deep they are: it takes two seconds at most."""
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.I)
_DECLARED_BYTES = 4096
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_STEPS = {b"": 1, b"/": -1}
_NAME_END = rb"(?![a-z0-9:-])"  # this and the patterns below are for HTML in lower case
_SPACE = rb"\t\n\f\r "
_GAP = rb"[%b/]+" % _SPACE
_ATTRIBUTES = rb"""(?:%b|[^%b/>][^%b/>=]*(?:[%b]*=[%b]*(?:"[^"]*"?|'[^']*'?|[^%b>"'][^%b>]*)?)?)*>?""" % (
    _GAP,
    *(_SPACE,) * 6,
)
"""The rest of a tag after its name, as browsers read it. It matches whatever comes, so that it is never tried again."""
_RAW_NAME = rb"(?:script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[%b/>])" % _SPACE
_MARKUP = re.compile(
    rb"(?P<comment><!--)(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(?=%b)(?P<raw>[a-z]+)%b.*?(?:</(?P=raw)(?=[%b/>])%b|\Z)"
    rb"|(?:<(?:(?!%b)/?[a-z][^%b/>]*%b|(?:[!?](?!--)|/(?![a-z]))[^>]*>?)[^<]*){1,500}"
    % (_RAW_NAME, _ATTRIBUTES, _SPACE, _ATTRIBUTES, _RAW_NAME, _SPACE, _ATTRIBUTES),
    re.S,
)
"""Comments; elements whose content is text; other tags, in which neither begins."""
_DOUBT = re.compile(rb"<(?:(?:svg|math)%b|!\[cdata\[)" % _NAME_END)
"""The begin of a drawing or a formula, in which elements that are raw elsewhere have elements, or of text in it."""
_MAX_HIDDEN = 1_000
"""Tags after the first doubt that may be taken for text."""
_DEEP = re.compile(
    rb"<(?!/?(?:area|b(?:ase|r|ody)|c(?:ol(?:group)?|aption)|d[dt]|embed|h(?:r|tml|ead)|i(?:mg|nput)|li(?:nk)?|meta|"
    rb"opt(?:ion|group)|p(?:aram)?|r(?:b|p|tc?)|source|t(?:rack|[rdh]|body|head|foot)|wbr)%b)(/?)[a-z]" % _NAME_END
)
"""Tags, without those of elements that have no content, or that the next one of their kind ends. Their names are
grouped by their first letters because all of them are tried at each tag."""
_FORMATS = re.compile(rb"<(/?)(?:a|b(?:ig)?|code|em|font|i|nobr|s(?:mall|trike|trong)?|tt|u)" + _NAME_END)
_DRAWN = re.compile(
    rb"<(?:(?:(/?)(svg|g|path|circle|rect|line|polyline|polygon|ellipse|use|stop|image|text|tspan|defs|lineargradient|"
    rb"radialgradient|clippath|mask|marker|symbol|pattern|animate)(?=[%b/>])|/?[a-z][^%b/>]*)%b|"
    rb"(?:[!?]|/(?![a-z]))[^>]*>?)" % (_SPACE, _SPACE, _ATTRIBUTES.replace(_GAP, b"(%b)" % _GAP))
)
"""Tags in a drawing, and other tags. The last group is the last gap between attributes: a ``/`` that is not in it is
part of a value."""


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
    codec = encoding_names.known(declared[1].decode("ascii")) if declared else None
    return data.decode(codec or "cp1252", "replace")


def parse(html: bytes | str) -> Tree:
    """The tree of a page, or of a part of one. Raises :class:`Unreadable` for tags that are too deep."""
    text = decoded(html) if isinstance(html, bytes) else html.encode("utf-8", "replace").decode("utf-8")
    tags = text.count("<")
    if tags >= _MIN_FORMAT_TAGS:
        _ensure_shallow(text.encode("utf-8"), tags)
    return LexborHTMLParser(text)


def _ensure_shallow(data: bytes, tags: int) -> None:
    bare = _without_raw(data.lower())
    limits = ((_FORMATS, MAX_OPEN_FORMATS, "elements such as <b>"), (_DEEP, MAX_DEPTH, "elements"))
    for tag, limit, kind in limits if tags >= _MIN_DEEP_TAGS else limits[:1]:
        if _depth(bare, tag) > limit and _depth(_without_empty(bare), tag) > limit:
            raise Unreadable(f"its HTML has more than {limit:,} {kind} inside each other")


def _depth(data: bytes, tag: re.Pattern[bytes]) -> int:
    """How deep tags get. End tags without a begin do not count."""
    depths = [0, *accumulate(map(_STEPS.__getitem__, tag.findall(data)))]
    return max(map(operator.sub, depths, accumulate(depths, min))) if min(depths) else max(depths)


def _without_raw(data: bytes) -> bytes:
    """HTML without comments and without elements whose content is text. Where that may have elements in truth, a page
    may have few tags in it; the others are kept."""
    doubt = _DOUBT.search(data)
    start = len(data) if doubt is None else doubt.start()
    hidden = 0

    def kept(markup: re.Match[bytes]) -> bytes:
        nonlocal start, hidden
        whole, comment, raw = markup.group(0, "comment", "raw")
        if comment is None and raw is None:
            return whole
        if raw == b"script" and b"<!--" in whole and b"<script" in whole[1:]:
            start = min(start, markup.start())  # it may go on behind its end tag
        if markup.start() < start:
            return b""
        hidden += max(0, whole.count(b"<") - 2)
        return b"" if hidden <= _MAX_HIDDEN else whole

    return _MARKUP.sub(kept, data)


def _without_empty(data: bytes) -> bytes:
    """HTML without the elements of drawings that have no content, such as ``<path/>``."""
    if b"<svg" not in data:
        return data
    inside = 0

    def kept(tag: re.Match[bytes]) -> bytes:
        nonlocal inside
        is_empty = tag[0].endswith(b"/>") and tag.end(3) == tag.end() - 1
        if tag[2] is None:  # it may end the drawing
            inside = 0
        elif tag[2] == b"svg":
            if not is_empty:
                inside = max(0, inside + (-1 if tag[1] else 1))
        elif inside and is_empty:
            return b""
        return tag[0]

    return _DRAWN.sub(kept, data)


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
