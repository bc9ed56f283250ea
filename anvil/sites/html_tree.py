"""The HTML parser: the tree of a page, limits on pages that would take long to parse, and walks over a tree.

This is the only module that imports the parser, Lexbor. It builds the tree that a browser builds, also for broken HTML.
Elements are skipped in walks and never removed from a tree, because pointers to a removed element would crash.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from anvil.errors import ConfigError
from anvil.formats import characters

Element = LexborNode
Tree = LexborHTMLParser

MAX_DEPTH = 1_000
"""Depth of elements inside each other. Browsers stop at about 512. The parser needs more time for each deeper one."""
MAX_OPEN_FORMATS = 50
"""Depth of ``<b>``, ``<a>`` and the like inside each other. The parser repeats the open ones in each paragraph."""
MAX_ATTRIBUTES = 1_000
"""Attributes of a tag. The parser compares each one with all before it."""
MAX_OPTIONS = 10_000
"""Elements ``<option>`` of a page. The parser's time grows with the square of their number."""
_EQUAL_FORMATS = 3
"""Elements with the same name and attributes that a browser keeps open, by the "Noah's Ark clause" of HTML."""
_MAX_STEPS = 20_000_000
"""Open elements that :func:`_depth` compares with end tags, for a whole page. It takes two seconds."""
_MIN_ATTRIBUTE_CHARS = 40_000
_MIN_DEEP_TAGS = 20_000
_MIN_FORMAT_TAGS = 5_000
"""Pages with fewer characters or tags are parsed without these counts, since that takes two seconds at most."""
_NAME_END = rb"(?![a-z0-9:-])"  # this pattern and those below expect HTML in lower case
_SPACE = rb"\t\n\f\r "
_GAP = rb"[%b/]+" % _SPACE
_ATTRIBUTE = rb"""[^%b/>][^%b/>=]*(?:[%b]*=[%b]*(?:"[^"]*"?|'[^']*'?|[^%b>"'][^%b>]*)?)?""" % ((_SPACE,) * 6)
_ATTRIBUTES = rb"(?:%b|%b)*>?" % (_GAP, _ATTRIBUTE)
"""The rest of a tag after its name, as browsers read it. It matches any text, so the pattern never backtracks."""
_RAW_NAME = rb"(?:script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[%b/>])" % _SPACE
_MARKUP = re.compile(
    rb"(?P<comment><!--)(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(?=%b)(?P<raw>[a-z]+)%b.*?(?:</(?P=raw)(?=[%b/>])%b|\Z)"
    rb"|(?:<(?:(?!%b)/?[a-z][^%b/>]*%b|(?:[!?](?!--)|/(?![a-z]))[^>]*>?)[^<]*){1,500}"
    % (_RAW_NAME, _ATTRIBUTES, _SPACE, _ATTRIBUTES, _RAW_NAME, _SPACE, _ATTRIBUTES),
    re.S,
)
"""One of: a comment; an element whose content is text; up to 500 other tags with the text after them."""
_DOUBT = re.compile(rb"<(?:(?:svg|math)%b|!\[cdata\[)" % _NAME_END)
"""The begin of a drawing, a formula or a CDATA section. In these, an element such as ``<style>`` may contain elements,
although its content is text elsewhere."""
_MAX_HIDDEN = 1_000
"""Tags after the first match of :data:`_DOUBT` that may be removed as text."""
_TAG = re.compile(
    rb"<(?:(?P<end>/?)(?P<name>[a-z][^%b/>]*)(?P<rest>%b)|(?:[!?]|/(?![a-z]))[^>]*>?)" % (_SPACE, _ATTRIBUTES)
)
"""A tag as browsers read it, or markup that they read as a comment."""
_EACH_ATTRIBUTE = re.compile(_ATTRIBUTE)
"""An attribute of a tag with its value, which may have blanks and slashes."""
_FORMATS = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_NO_CONTENT = frozenset(
    b"area base basefont bgsound body br col embed frame head hr html img input keygen link meta param source track "
    b"wbr".split()
)
"""Elements that have no content, or that a tree has once however many tags a page has."""
_ENDED_BY: dict[bytes, bytes] = {
    name: kind
    for kind in (b"p", b"li", b"dd dt", b"td th", b"tr", b"tbody thead tfoot", b"option", b"optgroup", b"rb rp rt rtc")
    for name in kind.split()
}
"""Element -> the elements that its start tag ends. These elements do not count for the depth."""
_ONLY_IN_TABLES = frozenset(b"caption colgroup tbody td tfoot th thead tr".split())
_BLOCKS = frozenset(
    b"address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer form "
    b"h1 h2 h3 h4 h5 h6 header hgroup listing main menu nav ol pre search section summary ul".split()
)
_SCOPES = frozenset(b"applet caption marquee object table td template th".split())
"""Barriers: an end tag inside one of these does not end an element outside of it."""
_SPECIAL = _BLOCKS | _SCOPES | _ENDED_BY.keys() - {b"option", b"optgroup", b"rb", b"rp", b"rt", b"rtc"}
"""Barriers for the end tag of an ordinary element, such as ``</span>``."""
_CONTAINERS = _BLOCKS | {b"applet", b"caption", b"marquee", b"object", b"table", b"template"}
_DRAWN = frozenset(
    b"g path circle rect line polyline polygon ellipse use stop image text tspan defs lineargradient radialgradient "
    b"clippath mask marker symbol pattern animate svg".split()
)
"""Elements of drawings. They have no content if their tag ends in ``/>``."""


class Unreadable(ValueError):
    """The error for a page that would take long to parse. The message is the reason."""


def parse(html: bytes | str) -> Tree:
    """The tree of a page or of a part of one. Raises :class:`Unreadable` if it would take long to parse: its elements
    are too deep, or it has too many options or attributes."""
    # "replace": the parser cannot take half of a surrogate pair
    text = characters.decoded(html) if isinstance(html, bytes) else html.encode("utf-8", "replace").decode("utf-8")
    text = text.removeprefix("\ufeff")  # a byte order mark
    tags = text.count("<")
    if tags >= _MIN_FORMAT_TAGS or len(text) >= _MIN_ATTRIBUTE_CHARS:
        _ensure_quick(text.encode("utf-8").lower(), tags)
    return LexborHTMLParser(text)


def _ensure_quick(data: bytes, tags: int) -> None:
    if data.count(b"<option") > MAX_OPTIONS:
        raise Unreadable(f"its HTML has more than {MAX_OPTIONS:,} elements <option>")
    # The quick count may include tags in comments and scripts. If it is too large, it is made again without these.
    if _has_many_attributes(data) and _has_many_attributes(_without_raw(data)):
        raise Unreadable(f"its HTML has a tag with more than {MAX_ATTRIBUTES:,} attributes")
    if tags < _MIN_FORMAT_TAGS:
        return
    tags_only = _without_raw(data)
    if _open_formats(tags_only) > MAX_OPEN_FORMATS:
        raise Unreadable(f"its HTML has more than {MAX_OPEN_FORMATS:,} elements such as <b> inside each other")
    if tags >= _MIN_DEEP_TAGS and _depth(tags_only) > MAX_DEPTH:
        raise Unreadable(f"its HTML has more than {MAX_DEPTH:,} elements inside each other")


def _has_many_attributes(data: bytes) -> bool:
    return any(
        tag.end() - tag.start() > MAX_ATTRIBUTES and len(_EACH_ATTRIBUTE.findall(tag["rest"] or b"")) > MAX_ATTRIBUTES
        for tag in _TAG.finditer(data)
    )


def _open_formats(data: bytes) -> int:
    """The greatest number of elements such as ``<b>`` that are open at once. Only its own end tag ends one. Of equal
    ones, three count (:data:`_EQUAL_FORMATS`). Counting stops above :data:`MAX_OPEN_FORMATS`."""
    deepest = count = 0
    tags_of: dict[bytes, list[bytes]] = {name: [] for name in _FORMATS}
    for is_end, name, rest in _TAG.findall(data):
        if (tags := tags_of.get(name)) is None:
            continue
        if is_end:
            if tags:
                tags.pop()
                count -= 1
        elif tags.count(rest) < _EQUAL_FORMATS:
            tags.append(rest)
            count += 1
            deepest = max(deepest, count)
            if deepest > MAX_OPEN_FORMATS:
                break
    return deepest


def _depth(data: bytes) -> int:
    """The greatest depth of elements, which is never less than that in the parser's tree. Counting stops above
    :data:`MAX_DEPTH`. Raises :class:`Unreadable` after :data:`_MAX_STEPS`."""
    open_names: list[bytes] = []
    depth = deepest = tables = steps = drawings = 0

    def end(kind: Container[bytes], barriers: Container[bytes]) -> None:
        """End the last open element of a kind with all in it, unless a barrier is inside it."""
        nonlocal depth, tables, steps
        for at in range(len(open_names) - 1, -1, -1):
            steps += 1
            if steps > _MAX_STEPS:
                raise Unreadable("its HTML has too many end tags that fit no element")
            if open_names[at] in kind:
                for name in open_names[at:]:
                    depth -= name not in _ENDED_BY
                    tables -= name == b"table"
                del open_names[at:]
                return
            if open_names[at] in barriers:
                return

    for is_end, name, rest in _TAG.findall(data):
        if name not in _DRAWN:
            drawings = 0  # another element may end the drawing
        elif name == b"svg" and not _is_empty(rest):
            drawings = max(0, drawings + (-1 if is_end else 1))
        elif drawings and not is_end and _is_empty(rest):
            continue
        if not name or name in _NO_CONTENT or (name in _ONLY_IN_TABLES and not tables):
            continue
        if is_end:
            barriers = () if name in _SCOPES else _SCOPES if name in _SPECIAL else _SPECIAL
            if open_names and open_names[-1] == name:
                depth -= name not in _ENDED_BY
                tables -= name == b"table"
                open_names.pop()
            else:
                end((name,), barriers)
            continue
        if (kind := _ENDED_BY.get(name)) is not None:
            end(kind.split(), _CONTAINERS)
        elif name in _BLOCKS:
            end((b"p",), _CONTAINERS)
        open_names.append(name)
        depth += kind is None
        tables += name == b"table"
        deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            break
    return deepest


def _is_empty(rest: bytes) -> bool:
    """Whether a tag ends in ``/>`` whose slash is not part of a value. ``rest``: the tag after its name."""
    ends = [attribute.end() for attribute in _EACH_ATTRIBUTE.finditer(rest)] if rest.endswith(b"/>") else [len(rest)]
    return max(ends, default=0) < len(rest) - 1


def _without_raw(data: bytes) -> bytes:
    """HTML without comments, and without elements whose content is text.

    From the first match of :data:`_DOUBT` on, such content may be elements after all. There, only parts with up to
    :data:`_MAX_HIDDEN` tags together are removed.
    """
    doubt = _DOUBT.search(data)
    doubt_start = len(data) if doubt is None else doubt.start()
    hidden = 0

    def replacement(markup: re.Match[bytes]) -> bytes:
        nonlocal doubt_start, hidden
        whole, comment, raw = markup.group(0, "comment", "raw")
        if comment is None and raw is None:
            return whole
        if raw == b"script" and b"<!--" in whole and b"<script" in whole[1:]:
            doubt_start = min(doubt_start, markup.start())  # this script may continue after its first end tag
        if markup.start() < doubt_start:
            return b""
        hidden += max(0, whole.count(b"<") - 2)
        return b"" if hidden <= _MAX_HIDDEN else whole

    return _MARKUP.sub(replacement, data)


def select(root: Tree | Element, selector: str) -> list[Element]:
    """The elements that a CSS selector matches, in document order. Raises :class:`ConfigError` if it is not valid."""
    try:
        return root.css(selector)
    except SelectolaxError:
        raise ConfigError(f"{selector!r} is not a valid CSS selector. Correct site.content or site.ignore.") from None


def first(root: Tree | Element, selector: str) -> Element | None:
    """The first element that a CSS selector matches. The selector must be valid."""
    return root.css_first(selector, default=None)


def ids(elements: Sequence[Element]) -> frozenset[int]:
    """The ids that identify elements in their tree. They are unrelated to the attribute ``id``."""
    return frozenset(element.mem_id for element in elements)


def walk(root: Element, skipped: Container[int] = frozenset()) -> Iterator[tuple[Element, bool]]:
    """(node, whether it begins) for each node under ``root``, in order. An element comes twice: at its begin and at its
    end. ``skipped``: elements to leave out with their content."""
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
    """The names in the attribute ``class``."""
    return (element.attributes.get("class") or "").split()
