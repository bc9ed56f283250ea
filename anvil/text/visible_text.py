"""The visible text of a Markdown page, without comments, tags, styles, scripts, drawings, definitions and MDX imports.

It is found in one pass, in linear time, and no text raises an error. Code is not changed. Each hidden character is
replaced by a mask, and line ends are kept, so offsets and line numbers stay those of the source.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal, NamedTuple

from anvil.formats.characters import LINE_END
from anvil.formats.patterns import lazy_pattern
from anvil.values import Block, ParsedPage

# Control characters, because hardly any text has them. If a text has one, :func:`restored` gives it back.
MASK = "\x7f"
"""Replaces a hidden character. For tokenizers it is not part of a word."""
GAP = "\x1f"
"""Replaces a hidden character at which readers see a space or a line break, such as between two cells of a table."""

_MASKS = lazy_pattern(f"[{MASK}{GAP}]+")
_HIDDEN_LINE = lazy_pattern(rf"^[ \t]*[{MASK}{GAP}][ \t{MASK}{GAP}]*(?:\r\n?|\n|\Z)", re.M)
_TAG_INDENT = lazy_pattern(rf"^[ \t]*[{MASK}{GAP}][ \t{MASK}{GAP}]*", re.M)
_NOT_LINE_END = lazy_pattern(r"[^\r\n]")
_SUSPECT = lazy_pattern(r"<[!/A-Za-z]|\]:|\{/\*|\{\{[%<] */|\{% *end|%%|(?m:^import[ \t])")
"""A text without a match has no hidden characters."""
_FENCE = lazy_pattern(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t][ \t>]*)*(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")
_FENCE_END = lazy_pattern(r"[ \t>]*(`{3,}|~{3,})[ \t]*(?=[\r\n]|\Z)")
_MARKER = lazy_pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+|[ \t]*(?:!!!|\?\?\?|===|:[ \t]|\[\^[^\]\s]+\]:)")
_TITLE = r"""(?:"[^"\r\n]*"|'[^'\r\n]*'|\([^()\r\n]*\))"""
_ABBREVIATION = lazy_pattern(r"[ \t>]*\*\[[^\]\r\n]+\]:[^\r\n]*")
_DEFINITION = lazy_pattern(
    r"[ \t>]*\[(?!\^)(?:[^\[\]\\\r\n]|\\.)+\]:[ \t]*(?:(?:\r\n?|\n)[ \t]*)?(?:<[^<>\r\n]*>|[^\s<]\S*)"
    rf"(?:[ \t]+{_TITLE}|[ \t]*(?:\r\n?|\n)[ \t]*{_TITLE})?[ \t]*(?=[\r\n]|\Z)"
)
_IMPORT = lazy_pattern(
    r"""import(?:[ \t]*(?=["'][./@])|[^"'`<>;.{}\r\n]*(?:[ \t]|\{[^"'`<>;.{}]{0,1000}\}[ \t]*)from[ \t]*)"""
    r"""(["'])[^"'\r\n]+\1[ \t]*;?[ \t]*(?=[\r\n]|\Z)"""
)
"""The import of a module between paragraphs of MDX, but not Go's ``import "fmt"`` in a shortcode for code. With
``site`` it is text."""
# Of Hugo and GitBook; the begin is not hidden, because it may have a title.
_SHORTCODE_END = r"(?:\{\{(?:% */[\w /-]*%|< */[\w /-]*>)\}\}|\{% *end[\w-]+ *%\})"
_MARKDOWN_INLINE = rf"\\.|`+|<!--|{_SHORTCODE_END}|(?<!\{{\{{)</?[A-Za-z]|\{{\{{?/\*|[\r\n]"
_OBSIDIAN_END = r"%%(?=[ \t]*(?:[\r\n]|\Z))"
_INLINE = lazy_pattern(rf"{_MARKDOWN_INLINE}|%%(?<!\S%%)[ \t][^%\r\n]*{_OBSIDIAN_END}")
_OBSIDIAN_COMMENT = lazy_pattern(rf"[ \t>]*%%(?![%{{])[^%]*(?:%(?!%)[^%]*){{0,1000}}{_OBSIDIAN_END}")
"""A comment of Obsidian from the start of a line on, but no directive of Mermaid. Comments end with their line, because
a sentence on R or printf may have ``%%`` twice. Vaults in git often lack ``.obsidian``, by which the folder would be
known; in 193 public repositories, only vaults have such a comment outside of code."""
_ITEM = r"""(?:[.#][\w:.-]+|[\w:-]+=(?:"[^"{}\r\n]*"|'[^'{}\r\n]*'|[^\s"'{}]+))"""
_ATTRIBUTES = rf"\{{:?[ \t]*{_ITEM}(?:[ \t]+{_ITEM})*[ \t]*\}}"
_ICON = r":(?:fontawesome|material|octicons|simple)-[a-z0-9-]+:"
_SPACE = r"&(?:nbsp|ensp|emsp|thinsp);"  # other entities are visible characters
_SITE_INLINE = lazy_pattern(rf"{_MARKDOWN_INLINE}|{_ATTRIBUTES}|{_ICON}|{_SPACE}")
_SITE_BLOCK = lazy_pattern(r"[ \t]*/{3,}[ \t]*[\w-]+[ \t]*\|")
_OPTION = lazy_pattern(r"[\w-]+=(?=[\"'])")
_TICKS = lazy_pattern("`+")
_NEXT_BLOCK = r"[ \t>]*(?:[\r\n|]|~{3}|#{1,6}[ \t]|(?:[-*+]|\d{1,9}[.)])[ \t])"
_PARAGRAPH_END = lazy_pattern(rf"\n{_NEXT_BLOCK}|\r(?!\n){_NEXT_BLOCK}")
"""The start of another block, which ends inline code: a blank line, a row of a table, a fence, a heading, a list item.
Each alternative begins with a literal character, which makes the search fast."""
_QUOTE_END = lazy_pattern(r"\n(?![ \t]*>)|\r(?!\n)(?![ \t]*>)")
_MARKERS = frozenset("-*+!?=:[")
"""The first characters of the marks in :data:`_MARKER`, except digits."""
_TAG = lazy_pattern(r"</?([A-Za-z][A-Za-z0-9-]*)(?=[\s/>])[^<>\"']*(?:\"[^\"<]*\"[^<>\"']*|'[^'<]*'[^<>\"']*)*>")
ALTERNATIVE_TEXT = lazy_pattern(r"""\salt=(["'])((?:(?!\1)[^\0])+)\1""", re.I)

_SCRIPT_TAG = lazy_pattern(r"<su[bp][\s>]", re.I)
_WORD_BEFORE = lazy_pattern(r"([^\W_]{1,4})(?:[*_]|</(?:b|em|i|span|strong|su[bp]|var)>)*\Z", re.I)
_SHORT_SCRIPT = lazy_pattern(r"[+\-\u2212]?[^\W_]{1,2}[+\-\u2212]?(?=</su[bp]>|\Z)", re.I)
"""An exponent, an index or the ending of a number: ``2``, ``-1``, ``th``, ``2+``."""

_UNSEEN = {name: lazy_pattern(rf"</{name}[ \t\r\n]*>", re.I) for name in ("script", "style", "svg", "template")}
"""Elements whose content is hidden, too -> their closing tag."""
APART = frozenset(
    """
    address article aside audio blockquote br center dd details dialog div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr iframe img li main nav ol option p picture pre section source summary svg table tbody td
    tfoot th thead tr ul video
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Elements whose tags separate words."""
_ELEMENTS = APART | frozenset(
    """
    a abbr acronym area b base bdi bdo big body button canvas caption cite code col colgroup data datalist del dfn em
    embed font head html i input ins kbd label legend link map mark math meta meter noscript object optgroup output
    param picture progress q rp rt ruby s samp script search select slot small span strike strong style sub sup svg
    template textarea time title track tt u var wbr
    """.split()  # noqa: SIM905
)
_ELEMENTS |= {name.upper() for name in _ELEMENTS}
"""The elements of HTML. Other names in angle brackets, such as ``<path>`` or the component ``<Aside>``, are text."""


Kind = Literal["comment", "tag", "block tag", "definition", "look", "space", "code", "fence", "open fence"]
"""The kind of a span:

- ``block tag``: a tag that separates words.
- ``tag``, ``block tag``: with the content of elements that are never shown.
- ``look``: an attribute list or an icon.
- ``space``: an entity for a space.
- ``code``: inline code, or lines that are code by their indent.
- ``open fence``: a fence without an end mark, which ends with the text or with its quote.
"""
CODE = frozenset({"code", "fence", "open fence"})


class Span(NamedTuple):
    """A part of a text that is code or hidden: its offsets in characters, and its kind."""

    start: int
    end: int
    kind: Kind


def masked(text: str, site: bool = False) -> str:
    """``text`` with :data:`MASK` or :data:`GAP` in place of each hidden character except line ends.

    ``site``: syntax of Python-Markdown's usual extensions is hidden, too: attribute lists, icons, names of options, and
    entities for spaces.
    """
    if not site and not _SUSPECT.search(text):
        return text
    pieces, at = [], 0
    for start, end, kind in spans(text, site):
        if kind in CODE:
            continue
        pieces.append(text[at:start])
        mask = _NOT_LINE_END.sub(MASK, text[start:end])
        # Only one gap for a tag, because each is shown as a space.
        pieces.append(GAP + mask[1:] if kind in ("block tag", "space") and mask.startswith(MASK) else mask)
        at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def shown(text: str) -> str:
    """The visible text of a masked one."""
    return text.replace(MASK, "").replace(GAP, " ") if MASK in text or GAP in text else text


def without_tag_indents(mask: str) -> str:
    """The visible text of a masked one, without indents of lines that begin with a tag, as cells of HTML tables do."""
    return shown(_TAG_INDENT.sub("", mask))


def without_hidden_lines(mask: str) -> str:
    """The visible text of a masked one, without lines that are completely hidden."""
    return shown(_HIDDEN_LINE.sub("", mask))


def taken(text: str, mask: str) -> str:
    """The hidden characters of ``text``. ``mask``: the masked form of the text."""
    return "".join(text[run.start() : run.end()] for run in _MASKS.finditer(mask)) if mask != text else ""


def restored(mask: str, characters: str) -> str:
    """The whole text, made of its masked form and the characters of :func:`taken`."""
    if not characters:
        return mask
    *pieces, last = mask.replace(GAP, MASK).split(MASK)
    # An index file may come from elsewhere and have fewer characters than masks. Then masks stay.
    hidden = characters.ljust(len(pieces), MASK)
    return "".join(chain.from_iterable(zip(pieces, hidden, strict=False))) + last


def is_separate_mark(before: str, inside: str) -> bool:
    """Whether a superscript or subscript is a footnote or a label, and no part of the word before it. ``before``: the
    text before it. ``inside``: its content.

    A short script of a short word is part of it: x<sup>2</sup>, H<sub>2</sub>O, 4<sup>th</sup>. After code, a long word
    or punctuation, it is a mark of its own. A power of ten is separate, too, because 10<sup>6</sup> is not 106."""
    if not before or before[-1].isspace() or inside.startswith("["):  # blanks and brackets separate words anyway
        return False
    word = _WORD_BEFORE.search(before[-40:])  # bounded: a line may have megabytes
    script = _SHORT_SCRIPT.match(inside)
    if not word or not script or len(word[1]) > 3:
        return True
    return word[1][-1].isdecimal() and any(map(str.isdecimal, script[0]))


def begins_separate_mark(text: str, start: int, end: int) -> bool:
    """Whether the tag ``start:end`` in a text begins a superscript or subscript that :func:`is_separate_mark`."""
    is_script = _SCRIPT_TAG.match(text, start, end) is not None
    return is_script and is_separate_mark(text[max(0, start - 40) : start], text[end : end + 12])


def cleaned(page: ParsedPage) -> ParsedPage:
    """The page without hidden text. Its sections, blocks and lines are the same."""
    mask = masked(page.text, site=True)
    if mask == page.text:
        return page
    removed = [mark.start() for mark in re.finditer(MASK, mask)]  # a gap becomes a space, so offsets stay

    def moved(offset: int) -> int:
        return offset - bisect_right(removed, offset - 1)

    return replace(
        page,
        text=shown(mask),
        sections=tuple(part._replace(start=moved(part.start), end=moved(part.end)) for part in page.sections),
        blocks=tuple(Block(moved(part.start), moved(part.end), part.atomic) for part in page.blocks),
    )


def spans(text: str, site: bool = False) -> Iterator[Span]:
    """The code and the hidden parts of a text, in order. They do not overlap, except that with ``site`` a ``look`` in
    the first line of a fence comes before the fence."""
    code = _code_spans(text)
    without_end: set[str] = set()
    is_exact = site or "\r" in text
    """Whether all lines are searched. A lone carriage return can continue a line, so no line can be left out."""
    at, blank, indented, paragraph = 0, True, False, False
    content_columns: list[int] = []  # of open list items and admonitions
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end]
        bare = line.strip()
        if not bare:
            at, blank, paragraph = end, True, False
            continue
        column = _column(line)
        # Code by indent has four columns more than the text of its list item, and does not follow a paragraph directly.
        indented = (
            (blank or indented)
            and column >= 4
            and column >= 4 + max((content for content in content_columns if content <= column), default=0)
        )
        if indented:
            yield Span(at, end, "code")
            at, blank = end, False
            continue
        if blank or not paragraph:  # else a line with less indent continues the item's paragraph
            while content_columns and column < content_columns[-1]:
                content_columns.pop()
        if ("```" in line or "~~~" in line) and (fence := _FENCE.match(text, at)):
            if site:
                yield from (Span(*option.span(), "look") for option in _OPTION.finditer(text, fence.end(), end))
            span = _fence_span(text, end, fence)
            yield span
            at, blank, paragraph = _line_end(text, span.end), False, False
            continue
        if site and (block := _SITE_BLOCK.match(text, at)):
            yield Span(block.start(), block.end(), "look")
            at = block.end()
        definition = None
        if is_exact or "]:" in line:
            definition = _ABBREVIATION.match(text, at) or (None if paragraph else _DEFINITION.match(text, at))
        if not (site or paragraph or definition) and line.startswith("import"):
            definition = _IMPORT.match(text, at)
        comment = _OBSIDIAN_COMMENT.match(text, at) if "%%" in line and not site else None
        if comment and comment[0].count("```") % 2 == 0:  # else it would end in code
            yield Span(at, comment.end(), "comment")
            at, blank = _line_end(text, comment.end()), False
            continue
        if definition:
            yield Span(at, definition.end(), "definition")
            at, blank = _line_end(text, definition.end()), False
            continue
        first = bare[0]
        if (first in _MARKERS or first.isdecimal()) and (marker := _MARKER.match(text, at)):
            while content_columns and column < content_columns[-1]:
                content_columns.pop()
            width = marker.end() - at if first in "-*+0123456789" else column + 4
            content_columns.append(max(column + 1, min(width, column + 4)))
        paragraph = not bare.startswith(("#", "<!--", "[^"))  # a definition may follow these directly
        blank = False
        if is_exact or "`" in line or "<" in line or "{/*" in line or "{%" in line or "%%" in line:
            at = yield from _inline(_SITE_INLINE if site else _INLINE, text, at, code, without_end)
        else:
            at = end


def _column(line: str) -> int:
    """The column of the first character of a line that is no blank. Tab stops are at multiples of four."""
    if line[0] not in " \t":
        return 0
    margin = line[: len(line) - len(line.lstrip(" \t"))]
    return len(margin.expandtabs(4)) if "\t" in margin else len(margin)


def _line_end(text: str, at: int) -> int:
    """The offset at which the next line begins."""
    line_end = LINE_END.search(text, at)  # not str.find(), which would search a whole text without this character
    return line_end.end() if line_end else len(text)


def _fence_span(text: str, at: int, opening: re.Match[str]) -> Span:
    """The span of a fence with the first line ``opening`` and text from ``at`` on.

    The end marks have at most three columns more indent than the first ones. Marks with more indent are text, such as
    in code that shows a list. A fence in a quote ends with the quote.
    """
    begin, marks = opening.start(1), opening[1]
    indent = _indent(opening)
    is_quoted = ">" in text[opening.start() : begin]
    while (candidate := text.find(marks, at)) >= 0:
        # Only up to the candidate: a quote may have many fences, and searching its end for each would take too long.
        if is_quoted and (quote_end := _QUOTE_END.search(text, max(at - 1, begin), candidate)):
            return Span(begin, quote_end.start(), "open fence")
        line = max(text.rfind("\n", at, candidate), text.rfind("\r", at, candidate)) + 1 or at
        closing = _FENCE_END.match(text, line)
        if closing and closing[1].startswith(marks) and _indent(closing) < indent + 4:
            return Span(begin, closing.end(), "fence")
        at = _line_end(text, candidate)
    quote_end = _QUOTE_END.search(text, max(at - 1, begin)) if is_quoted else None
    return Span(begin, quote_end.start() if quote_end else len(text), "open fence")


def _indent(fence: re.Match[str]) -> int:
    """The column of a fence's marks."""
    return len(fence[0][: fence.start(1) - fence.start()].expandtabs(4))


def _inline(
    pieces: re.Pattern[str], text: str, at: int, code: dict[int, int], without_end: set[str]
) -> Generator[Span, None, int]:
    """The spans from ``at`` to the end of a line. The generator returns the offset of the next line."""
    while match := pieces.search(text, at):
        start, at, piece = match.start(), match.end(), match[0]
        if piece in "\r\n":
            return _line_end(text, start)
        if piece[0] == "`":
            if start in code:
                at = code[start]
                yield Span(start, at, "code")
        elif piece[0] == "&":
            yield Span(start, at, "space")
        elif piece.startswith(("{{%", "{{<", "{%", "%%")):
            yield Span(start, at, "comment")
        elif piece[0] == ":" or (piece[0] == "{" and piece[-1] == "}"):
            yield Span(start, at, "look")
        elif piece == "<!--" or piece[0] == "{":
            end = _after(text, at, "-->" if piece == "<!--" else "*/}", without_end)
            if end:
                at = end + (1 if piece.startswith("{{") and text.startswith("}", end) else 0)
                yield Span(start, at, "comment")
        elif piece[0] == "<" and (tag := _TAG.match(text, start)) and tag[1] in _ELEMENTS:
            name, at = tag[1].lower(), tag.end()
            # A search that fails is not repeated for this name: else a thousand open <svg> would take quadratic time.
            if name in _UNSEEN and piece[1] != "/" and not tag[0].endswith("/>") and name not in without_end:
                closing = _UNSEEN[name].search(text, at)
                if closing:
                    at = closing.end()
                else:
                    without_end.add(name)
            kind: Kind = "block tag" if name in APART or begins_separate_mark(text, start, tag.end()) else "tag"
            if name == "img" and (alternative := ALTERNATIVE_TEXT.search(text, start, at)):
                yield Span(start, alternative.start(2), kind)
                start = alternative.end(2)
            yield Span(start, at, kind)
    return len(text)


def _after(text: str, at: int, mark: str, without_end: set[str]) -> int:
    """The end of the next ``mark``; 0 if there is none. A search that fails is not repeated."""
    position = -1 if mark in without_end else text.find(mark, at)
    if position < 0:
        without_end.add(mark)
        return 0
    return position + len(mark)


def _code_spans(text: str) -> dict[int, int]:
    """Start -> end of inline code: up to the next run of as many backticks in its paragraph or table row."""
    spans: dict[int, int] = {}
    runs: list[tuple[int, int]] = []
    if "`" not in text:
        return spans

    def pair() -> None:
        following: dict[int, int] = {}  # length of a run -> end of the next run of this length
        for start, end in reversed(runs):
            if end - start in following:
                spans[start] = following[end - start]
            following[end - start] = end
        runs.clear()

    position = 0
    for match in _TICKS.finditer(text):
        start, end = match.span()
        is_fence = end - start >= 3 and text[position:start].rstrip(" \t>").endswith(("\n", "\r"))
        if is_fence:
            pair()
        else:
            if runs and _PARAGRAPH_END.search(text, position, start):
                pair()
            runs.append((start, end))
        position = end
    pair()
    return spans
