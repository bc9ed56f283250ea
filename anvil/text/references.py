"""Links, images, ids, nested headings, fences and linter comments of a Markdown page, and edits of link targets.

All functions are pure, take linear time, and raise for no text. Code, comments, scripts and styles are not read. Line
numbers are 1-based lines of the text.
"""

from __future__ import annotations

import html
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from anvil.formats.characters import LINE_END, line_starts
from anvil.formats.patterns import lazy_pattern
from anvil.text.headings import ESCAPE, LINK_LABEL, LINK_TARGET, attributes, label, plain
from anvil.text.visible_text import Span, spans

MAX_TAG_CHARS = 2000
"""A longer tag is text."""
MAX_TARGET_CHARS = 4000
"""A longer link target (with its title) is text."""
MAX_BRACKETS = 1000
"""So many brackets of a paragraph may be open at once. Further outer ones are text."""

LinkKind = Literal["link", "image", "definition", "wiki", "html link", "html image"]
_UNSEEN_TAG = lazy_pattern(r"<(?:script|style|svg|template)\b", re.I)
_IN_LINE = lazy_pattern(r"[^\r\n]+")
_TOKEN = lazy_pattern(
    r"\\[^\r\n]|\n[ \t>]*(?=[\r\n])|\r(?!\n)[ \t>]*(?=[\r\n])|!\[|\[|\]"
    r"|\$\$(?:[^$\r\n]|\$(?!\$)|(?:\r\n?|\n)(?![ \t>]*[\r\n])){0,4000}\$\$"
)
"""An escape, the end of a paragraph, a bracket, or a formula, in which ``f[i](x)`` is no link. Each alternative begins
with a literal character, which makes the search fast."""
_WIKI = lazy_pattern(r"(!?)\[\[([^\[\]\r\n|]{1,400})(?:\|[^\[\]\r\n]{0,400})?\]\](?![\(\[:])")
_SHORTCODE_TARGET = lazy_pattern(r"\(\s*(\{\{[<%][^{}\r\n]{1,400}[>%]\}\}[^)\s]{0,400})\s*\)")
"""A shortcode of Hugo as a target, such as ``({{< ref "page" >}}#part)``."""
_DEFINITION = lazy_pattern(r"[ \t>]*\[((?:[^\[\]\\]|\\.)+)\]:\s*(<[^<>\r\n]*>|\S+)", re.DOTALL)
_TAG = lazy_pattern(
    rf"<([A-Za-z][\w.:-]*)((?:[ \t\r\n/][^<>\"'{{}}]{{0,{MAX_TAG_CHARS}}}"
    rf"(?:(?:\"[^\"]{{0,{MAX_TAG_CHARS}}}\"|'[^']{{0,{MAX_TAG_CHARS}}}'|\{{[^{{}}]{{0,{MAX_TAG_CHARS}}}\}})"
    rf"[^<>\"'{{}}]{{0,{MAX_TAG_CHARS}}})*)?)>"
)
_ATTRIBUTE = lazy_pattern(r"""([A-Za-z_:@][\w:.-]*)(?:\s*=\s*("[^"]*"|'[^']*'|\{[^{}]*\}|[^\s"'=<>`{}]+))?""")
_ATTRIBUTE_LIST = lazy_pattern(r"\{:?([^{}\r\n]{0,400})\}")
_ALTERNATIVE_TEXT = lazy_pattern(r"""\{[^{}\r\n]{0,400}?\balt=["']([^"'{}\r\n]+)""")
"""The alternative text behind an image: ``{alt="text"}``, or ``{fig-alt="text"}`` of Quarto."""
_OWN_ID = lazy_pattern(r"(?:^|[\s:])(?:#|id=[\"']?)([\w:.-]+)")
_LABELLED = lazy_pattern(r"^\(([\w:.-]+)\)=[ \t]*$", re.M)
_BLOCK_ID = lazy_pattern(r"^[ \t]+(?:attrs:[ \t]*\{[^{}\r\n]*?)?\bid:[ \t]*[\"']?([\w:.-]+)", re.M)
_HASHES = lazy_pattern(r"(?<![^\s])#{1,6}(?=[ \t])")
_BEFORE_HEADING = lazy_pattern(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_HTML_HEADING = lazy_pattern(r"<h([1-6])\b[^<>]{0,400}>((?:(?!</?h[1-6]\b)[^\0]){0,600}?)</h\1\s*>", re.I)
_NO_PARAGRAPH = lazy_pattern(r"(?:(?:\r\n|\r(?!\n)|\n)[ \t>]*){2}")
_COMMENT = lazy_pattern(r"(?:<!--|\{\{?/\*)\s*anvil-lint-([\w-]+)((?:[\s,]+[\w-]+)*)\s*(?:--[^>]*)?(?:-->|\*/\}\}?)")


class Link(NamedTuple):
    """A link or image: its line, its target with escapes resolved, and its text or alternative text.

    ``text`` is None for an HTML image without ``alt``.
    """

    line: int
    target: str
    kind: LinkKind
    text: str | None


class NestedHeading(NamedTuple):
    """A heading: its line, its level, the text that generators make its id of, and the id that it sets or ``""``."""

    line: int
    level: int
    title: str
    id: str


class Fence(NamedTuple):
    """Fenced code: its line, the text behind the opening marks, and whether it is closed."""

    line: int
    info: str
    closed: bool


class Directive(NamedTuple):
    """A comment for the linter: its line, ``disable``, ``enable`` or ``disable-next-line``, and the rules in it."""

    line: int
    action: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class References:
    """The result of :func:`read` for ``text``.

    - ``hidden``: the start and end offsets, in turn, of code, comments, definitions, scripts and styles.
    - ``starts``: the offset of each line. Like ``hidden`` it is an array, because a linter holds all pages at once.
    - ``undefined``: (line, label) of reference links with a label that the page does not define.
    """

    text: str
    hidden: Sequence[int]
    starts: Sequence[int]
    links: tuple[Link, ...]
    undefined: tuple[tuple[int, str], ...]
    fences: tuple[Fence, ...]
    directives: tuple[Directive, ...]

    @property
    def prose(self) -> str:
        """The text with blanks in place of hidden parts. It is made again at each use."""
        return _blanked(self.text, zip(*[iter(self.hidden)] * 2, strict=True))

    def line(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def line_text(self, line: int) -> str:
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return self.text[self.starts[line - 1] : end].rstrip("\r\n")

    def not_blank(self, line: int) -> int:
        """The first line from ``line`` on that is not blank; ``line`` itself if all are blank."""
        return next((at for at in range(line, len(self.starts) + 1) if self.line_text(at).strip()), line)

    def lines(self, first: int, last: int) -> str:
        """The text of the lines from ``first`` to ``last``, both inclusive."""
        if first > len(self.starts):
            return ""
        return self.text[self.starts[first - 1] : self.starts[last] if last < len(self.starts) else len(self.text)]

    @cached_property
    def headings(self) -> tuple[NestedHeading, ...]:
        """All lines that may be headings, in order: at the top level, and in quotes, lists, admonitions and HTML. The
        ids that they set are not in :attr:`ids`."""
        headings: list[NestedHeading] = []
        prose = self.prose
        for mark in _HASHES.finditer(prose):
            line = self.line(mark.start())
            start = self.starts[line - 1]
            if headings and headings[-1].line == line:  # closing hashes of "## Title ##"
                continue
            if _BEFORE_HEADING.fullmatch(prose, start, mark.start()):
                bare, own = attributes(self.line_text(line)[mark.end() - start :])
                headings.append(NestedHeading(line, len(mark[0]), plain(bare, for_anchor=True), own))
        if "<h" in prose or "<H" in prose:
            for tag in _HTML_HEADING.finditer(prose):
                title = plain(self.text[tag.start(2) : tag.end(2)], for_anchor=True)
                headings.append(NestedHeading(self.line(tag.start()), int(tag[1]), title, ""))
            headings.sort(key=lambda heading: heading.line)
        return tuple(headings)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids that are set by tags, attribute lists, MyST labels and blocks of pymdownx."""
        ids: set[str] = set()
        prose = self.prose
        if "<" in prose:
            for tag in _TAG.finditer(prose):
                # ``name`` counts, because browsers treat <a name="x"> like an id.
                attributes = _attributes(tag[2]) if "id" in tag[2] or "name" in tag[2] else {}
                ids.update(value for key in ("id", "name") if (value := attributes.get(key)))
        if "{" in prose:
            for attribute_list in _ATTRIBUTE_LIST.finditer(prose):
                if "#" in attribute_list[1] or "id=" in attribute_list[1]:
                    ids.update(_OWN_ID.findall(attribute_list[1]))
        if ")=" in prose:
            ids.update(_LABELLED.findall(prose))
        if "///" in prose:
            ids.update(_BLOCK_ID.findall(prose))
        return frozenset(ids)


def read(text: str) -> References:
    """The links, fences and other references of ``text``, which has no front matter."""
    starts = array("I", line_starts(text))
    fences: list[Fence] = []
    directives: list[Directive] = []
    hidden = _hidden(text)
    prose = _blanked(text, ((start, end) for start, end, _ in hidden))
    for span in hidden:
        start, end, kind = span
        if kind in ("fence", "open fence"):
            fences.append(_fence(text, span, bisect_right(starts, start)))
        elif kind == "comment" and (directive := _COMMENT.fullmatch(text, start, end)):
            rules = tuple(re.findall(r"[\w-]+", directive[2]))
            directives.append(Directive(bisect_right(starts, start), directive[1], rules))
    definitions = [span for span in hidden if span.kind == "definition"]
    links, undefined = _links(text, prose, definitions, starts)
    offsets = array("I", (offset for span in hidden for offset in span[:2]))
    return References(text, offsets, starts, tuple(links), tuple(undefined), tuple(fences), tuple(directives))


def _hidden(text: str) -> list[Span]:
    """The spans without links: code, comments, definitions and scripts, but no other tags."""
    return [
        span for span in spans(text) if span.kind not in ("tag", "block tag") or _UNSEEN_TAG.match(text, span.start)
    ]


def _blanked(text: str, hidden: Iterable[tuple[int, int]]) -> str:
    """The text with blanks in place of these spans. Offsets and lines stay the same."""
    pieces: list[str] = []
    at = 0
    for start, end in hidden:
        if start >= at:
            pieces += text[at:start], _IN_LINE.sub(lambda part: " " * len(part[0]), text[start:end])
            at = end
    return "".join([*pieces, text[at:]])


class TargetSpan(NamedTuple):
    """The target of a link or image: its span in the text, and the target with escapes resolved.

    ``in_tag``: it is the value of an attribute. ``around``: the spans before and behind the text of a link in brackets.
    """

    start: int
    end: int
    target: str
    in_tag: bool
    around: tuple[tuple[int, int], ...] = ()


def target_spans(text: str) -> tuple[TargetSpan, ...]:
    """The targets of links, images and definitions, in order. Code, comments and scripts are not read."""
    hidden = _hidden(text)
    prose = _blanked(text, ((start, end) for start, end, _ in hidden))
    targets: list[TargetSpan] = []
    for span in hidden:
        if span.kind == "definition" and (match := _DEFINITION.match(text, span.start, span.end)):
            target = _unescaped(match[2].removeprefix("<").removesuffix(">"))
            targets.append(TargetSpan(*match.span(2), target, False))
    if "[" in prose:
        for link in _brackets(text, prose):
            if link.target and not link.is_shortcode:
                begin = link.offset + (2 if link.kind == "image" else 1)
                around = (link.offset, begin), (begin + len(link.inside), link.link_end)
                targets.append(TargetSpan(link.start, link.end, link.target, False, around))
    for tag in _TAG.finditer(prose) if "<" in prose else ():
        wanted = {"a": "href", "img": "src"}.get(tag[1].lower())
        for attribute in _ATTRIBUTE.finditer(tag[2]) if wanted else ():
            value = attribute[2] or ""
            if attribute[1].lower() == wanted and not value.startswith("{"):  # an expression of MDX is no address
                start, end = (tag.start(2) + at for at in attribute.span(2))
                targets.append(TargetSpan(start, end, html.unescape(value.strip("\"'")), True))
    pairs = pairwise([TargetSpan(0, 0, "", False), *sorted(targets)])
    return tuple(span for before, span in pairs if span.start >= before.end)  # else it is inside another one


def with_targets(text: str, spans: Iterable[TargetSpan], changed: Callable[[str], str | None]) -> str:
    """``text`` with other targets in the spans of :func:`target_spans`. ``changed`` returns the new target.

    If it returns the same target, the text is not changed. If it returns None, only the text of the link stays, and a
    definition or a tag gets an empty target.
    """
    edits: list[tuple[int, int, str]] = []
    for start, end, target, in_tag, around in spans:
        new = changed(target)
        if new is None and around:
            edits += [(first, last, "") for first, last in around]
        elif new != target:
            destination = (new or "").translate(_UNSAFE_IN_DESTINATION) or "<>"
            edits.append((start, end, f'"{html.escape(new or "")}"' if in_tag else destination))
    at = 0
    pieces: list[str] = []
    for start, end, replacement in sorted(edits):
        if start >= at:  # else it is in the title of a link that is removed
            pieces += text[at:start], replacement
            at = end
    return "".join([*pieces, text[at:]])


_UNSAFE_IN_DESTINATION = {ord(character): f"%{ord(character):02X}" for character in ' ()<>"\\\r\n\t'}


def _fence(text: str, span: Span, line: int) -> Fence:
    end = LINE_END.search(text, span.start)
    first = text[span.start : min(end.start() if end else len(text), span.end)]
    return Fence(line, first.lstrip(first[0]).strip(), span.kind == "fence")


def _links(
    text: str, prose: str, definitions: list[Span], starts: Sequence[int]
) -> tuple[list[Link], list[tuple[int, str]]]:
    """The links in the order of their lines, and the labels that are not defined."""
    links: list[Link] = []
    targets: dict[str, str] = {}
    for span in definitions:
        if definition := _DEFINITION.match(text, span.start, span.end):
            target = targets[label(definition[1])] = _unescaped(definition[2].removeprefix("<").removesuffix(">"))
            links.append(Link(bisect_right(starts, span.start), target, "definition", definition[1]))
    used: list[tuple[int, str]] = []
    if "[" in prose:
        for link in _brackets(text, prose):
            if link.target is not None:
                behind = _ALTERNATIVE_TEXT.match(text, link.link_end)
                name = behind[1] if behind else link.inside
                links.append(Link(bisect_right(starts, link.offset), link.target, link.kind, name))
            elif link.label is not None:
                used.append((link.offset, link.label))
                if link.kind == "image" and not link.inside.strip():  # for the linter: no alternative text
                    links.append(Link(bisect_right(starts, link.offset), "", link.kind, link.inside))
    if "[[" in prose:
        for wiki in _WIKI.finditer(prose):
            target = targets.get(label(wiki[2]), wiki[2].strip(" \t\\"))  # Foam also writes definitions for such links
            links.append(Link(bisect_right(starts, wiki.start()), target, "wiki", wiki[2]))
    if "<" in prose:
        links += _html_links(prose, starts)
    links.sort(key=lambda link: link.line)
    undefined = [(bisect_right(starts, start), name) for start, name in used if label(name) not in targets]
    return links, undefined


class _Bracketed(NamedTuple):
    """A link or image in brackets: its offset, the text in the brackets, and its target or its label.

    ``start`` and ``end``: the span of the target in the text. ``is_shortcode``: the target is a shortcode of Hugo.
    """

    offset: int
    kind: LinkKind
    inside: str
    target: str | None = None
    label: str | None = None
    start: int = 0
    end: int = 0
    link_end: int = 0
    is_shortcode: bool = False


def _brackets(text: str, prose: str) -> Iterator[_Bracketed]:
    """The links and images with a target or a label."""
    openers: list[re.Match[str]] = []
    for token in _TOKEN.finditer(prose):
        mark = token[0]
        if mark == "[" or mark == "![":
            openers.append(token)
            if len(openers) > MAX_BRACKETS:  # else a text of only brackets would take quadratic time
                del openers[0]
        elif mark[0] in "\r\n":  # the end of a paragraph ends all links
            openers.clear()
        elif mark == "]" and openers:
            opener, end = openers.pop(), token.end()
            kind: LinkKind = "image" if opener[0] == "![" else "link"
            following = prose[end : end + 1]
            if following == "(":
                inside = text[opener.end() : token.start()]
                if shortcode := _SHORTCODE_TARGET.match(prose, end):
                    yield _Bracketed(opener.start(), kind, inside, shortcode[1], is_shortcode=True)
                    continue
                # A title in the target may have line ends, but no blank line.
                target = LINK_TARGET.match(prose, end, end + MAX_TARGET_CHARS)
                if target and not _NO_PARAGRAPH.search(target[0]):
                    first, last = _destination(target[0])
                    source = target[0][first:last]
                    destination = _unescaped(source[1:-1] if source.startswith("<") else source)
                    span = end + first, end + last
                    yield _Bracketed(opener.start(), kind, inside, destination, None, *span, target.end())
            elif following == "[" and (reference := LINK_LABEL.match(prose, end, end + MAX_TARGET_CHARS)):
                before = prose[opener.start() - 1 : opener.start()] if opener.start() else ""
                inside = text[opener.end() : token.start()]
                name = reference[1].strip() or inside
                # ``values[i][j]`` outside of code is no link, and neither are brackets next to a footnote.
                if not before.isalnum() and before not in ("]", ")", "_") and name and "^" not in (name[0], inside[:1]):
                    yield _Bracketed(opener.start(), kind, inside, None, name)


def _html_links(prose: str, starts: Sequence[int]) -> Iterator[Link]:
    for tag in _TAG.finditer(prose):
        name = tag[1].lower()
        if name == "a" and "href" in tag[2]:
            if target := _attributes(tag[2]).get("href"):
                yield Link(bisect_right(starts, tag.start()), target, "html link", "")
        elif name == "img":
            attributes = _attributes(tag[2])
            # In Vue, ``:alt`` and ``v-bind:alt`` have an expression. Its text is unknown, but there is one.
            alt = next((value for key, value in attributes.items() if key.lstrip(":") in ("alt", "v-bind:alt")), None)
            yield Link(bisect_right(starts, tag.start()), attributes.get("src") or "", "html image", alt)


def _attributes(source: str) -> dict[str, str]:
    """Names of attributes in lower case -> values; empty for an expression in braces, which is unknown."""
    return {
        name.lower(): "" if value.startswith("{") else html.unescape(value.strip("\"'"))
        for name, value in _ATTRIBUTE.findall(source)
    }


def _destination(target: str) -> tuple[int, int]:
    """The span of the destination in a text such as ``(destination "title")``."""
    inside = target[1:-1].lstrip()
    start = len(target) - 1 - len(inside)
    if inside.startswith("<"):
        return start, start + inside.find(">") + 1
    return start, start + (len(inside.split(maxsplit=1)[0]) if inside.strip() else 0)


def _unescaped(target: str) -> str:
    return html.unescape(ESCAPE.sub(r"\1", target)).strip()
