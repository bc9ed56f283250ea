"""The block structure of Markdown, and mistletoe's only door: which lines are headings, blocks, check boxes.

Line numbers only, no inline text. mistletoe keeps its parser state in module globals, so one lock is held;
readers of its that stray from CommonMark, or turn quadratic on hostile text, are replaced. Nothing is raised.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from anvil.cutting import LINE_END
from anvil.headings import label

_everything, sys.maxunicode = sys.maxunicode, 0xFFFF
try:
    # mistletoe looks at every character up to sys.maxunicode to learn which are punctuation: half a second for what
    # inline text alone needs. The first plane takes a tenth of that, and lacks no sign that is in use.
    from mistletoe import block_token, block_tokenizer
finally:
    sys.maxunicode = _everything

MAX_NESTING = 32
"""Markers and indentation beyond this column do not nest deeper, so that no text can exhaust the stack."""

_ODD_SPACE = re.compile(r"[^\S \t\r\n]")
_DEEP = re.compile(
    rf"^(?:[ \t>]|[-*+](?=[ \t])|\d(?=\d{{0,8}}[.)])|[.)](?=[ \t])){{{MAX_NESTING}}}(?=.*\S)", re.M
)
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\n])")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_DELIMITER_ROW = re.compile(r"[|:-][-:| \t]*$")
_DELIMITER = re.compile(r":?-+:?$")
_PIPE = re.compile(r"(?<!\\)\|")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?) ?[\w\"]|===[!+]? +[\"']")
_BOX = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_FOOTNOTE = re.compile(r" {0,3}\[\^([^\]\s]+)\]:")
_MARKERS = re.compile(r"[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))*")


class Heading(NamedTuple):
    """A heading on ``rows`` lines from the 1-based ``line`` on, a setext underline not counted."""

    line: int
    level: int
    rows: int
    setext: bool


class Box(NamedTuple):
    """A check box whose paragraph has ``rows`` lines from the 1-based ``line`` on."""

    line: int
    rows: int
    done: bool


@dataclass(slots=True)
class Outline:
    """What a page is made of at its top level, in order; ``borders`` are 1-based lines with ``Block.atomic``.

    ``labels`` are those of link references, case-folded, and of footnotes, with a ``^`` before.
    """

    borders: list[tuple[int, bool]] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)


class _Setext(NamedTuple):
    """What ``_Paragraph`` reads when it turns out to be a heading."""

    level: int
    rows: int


class _Atx(block_token.Heading):
    """ATX heading; mistletoe's pattern is cubic in a run of spaces."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ATX.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> int:
        return len(next(lines).split(maxsplit=1)[0])


class _Fence(block_token.CodeFence):
    """Fenced code; mistletoe lets "```js" close a fence, which CommonMark does not."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _FENCE.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> bool:
        found = _FENCE.match(next(lines))
        mark = found[1] if found else "```"
        closing = re.compile(rf" {{0,3}}{mark}{mark[0]}*[ \t]*$")
        position = lines.get_pos()  # its iterator costs a microsecond a line, and a fence may have a million
        rows = lines.lines
        for index in range(position + 1, len(rows)):
            if closing.match(rows[index]):
                lines.set_pos(index)
                return True
        lines.set_pos(len(rows) - 1)
        return True


class _Html(block_token.HtmlBlock):
    """HTML block; a glance at the first character spares most lines seven patterns."""

    @classmethod
    def start(cls, line: str) -> Any:
        return line.lstrip(" ").startswith("<") and super().start(line)  # type: ignore[no-untyped-call]


class _Table(block_token.Table):
    """GFM table: as many header cells as delimiter cells, body up to a blank line or another block.

    mistletoe takes any line with a pipe for a header, so that ``a | b`` over ``---`` is no heading to it.
    """

    @classmethod
    def read(cls, lines: Any, check_only: bool = False) -> Any:
        position = lines.get_pos()
        rows = lines.lines[position + 1 : position + 3]
        if len(rows) < 2 or not _is_table(*rows):
            return None
        if not check_only:
            next(lines), next(lines)
            while (line := lines.peek()) is not None and line.strip() and not _interrupts(lines):
                next(lines)
        return True


class _Reference(block_token.Footnote):
    """One link reference definition; mistletoe's reader copies the rest of the block for each."""

    @classmethod
    def read(cls, lines: Any) -> str | None:
        position = lines.get_pos()
        if "]" not in "".join(lines.lines[position + 1 : position + 4]):
            return None
        taken = [next(lines)]
        while len(taken) < 8 and (line := lines.peek()) is not None and line.strip():
            if _UNDERLINE.match(line) or _interrupts(lines):
                break
            taken.append(next(lines))
        source = "".join(taken)
        found = cls.match_reference(source, 0)  # type: ignore[no-untyped-call]
        used = source[: found[0]].count("\n") if found else 0
        lines.set_pos(position + used)
        return label(found[1][0]) if found and used else None


class _Admonition(block_token.BlockToken):
    """MkDocs ``!!! note``, ``??? tip`` and ``=== "Tab"`` with the indented lines under it, kept together."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ADMONITION.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> bool | None:
        position = lines.get_pos()
        next(lines)
        following = lines.peek()
        if following is None or (following.strip() and not following.startswith(("    ", "\t"))):
            lines.set_pos(position)  # a paragraph, which may yet be underlined
            return None
        for line in lines:
            if line.strip() and not line.startswith(("    ", "\t")):
                lines.backstep()
                break
        return True


class _Paragraph(block_token.Paragraph):
    """A paragraph or setext heading; mistletoe's reader parses the heading's inline text at once."""

    @classmethod
    def read(cls, lines: Any) -> list[str] | _Setext:
        taken = [next(lines)]
        while (line := lines.peek()) is not None and line.strip():
            underline = cls.parse_setext and _UNDERLINE.match(line)
            if underline:
                next(lines)
                return _Setext(1 if underline[1][0] == "=" else 2, len(taken))
            if _interrupts(lines):
                break
            taken.append(next(lines))
        return taken


class _NotLazy(block_token.BlockToken):
    """No block: ends a quote or list item before a line that no open paragraph waits for.

    mistletoe appends any such line lazily: text behind a list that ends in a fence was part of the list.
    """

    @classmethod
    def start(cls, line: str) -> bool:
        return False

    @classmethod
    def check_interrupts_paragraph(cls, lines: Any) -> bool:
        line, position = lines.peek(), lines.get_pos()
        marked = _MARKERS.match(line)
        if position < 0 or (marked and marked[0].strip()):
            return False
        before = _MARKERS.sub("", lines.lines[position], count=1)
        if not before.strip() or _ATX.match(before) or _FENCE.match(before):
            return True
        if block_token.ThematicBreak.pattern.match(before):
            return True
        return _Html.start(before) in range(1, 7)


_TOKENS: list[Any] = [
    _Html,
    block_token.BlockCode,
    _Atx,
    block_token.Quote,
    _Fence,
    block_token.ThematicBreak,
    block_token.List,
    _Admonition,
    _Table,
    _Reference,
    _Paragraph,
    _NotLazy,
]
_FLAT = [token for token in _TOKENS if token not in (block_token.Quote, block_token.List)]
_BREAKING = [token for token in _TOKENS[:-1] if hasattr(token, "check_interrupts_paragraph")]
_ATOMIC = (_Html, _Fence, _Table, block_token.BlockCode)
_lock = threading.Lock()


def _interrupts(lines: Any) -> bool:
    """Whether the next line, which is not blank, begins a block that may end a paragraph."""
    line = lines.peek()
    if line.lstrip(" ")[0] not in "#>`~<*-_+0123456789" and "|" not in line:
        return False
    return any(token.check_interrupts_paragraph(lines) for token in _BREAKING)


def _is_table(header: str, delimiter: str) -> bool:
    if "|" not in header or not _DELIMITER_ROW.match(delimiter.strip()):
        return False
    cells = _cells(delimiter)
    if not all(_DELIMITER.match(cell) for cell in cells) or not ("|" in delimiter or ":" in delimiter):
        return False
    return len(cells) == len(_cells(header))


def _cells(row: str) -> list[str]:
    row = row.strip().removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip() for cell in _PIPE.split(row)]


def outline(text: str) -> Outline:
    """Find the block structure of ``text``, which has no front matter and no byte order mark."""
    found: Sequence[tuple[Any, Any, int]]
    lines = _copy(text)
    with _lock:
        before = block_token._token_types
        block_token._token_types = _TOKENS
        block_token.Paragraph.parse_setext = True
        try:
            found = block_tokenizer.tokenize_block(lines, _TOKENS)  # type: ignore[no-untyped-call]
        except RecursionError:  # called from deep in another's stack: quotes and lists become paragraphs
            block_token.Paragraph.parse_setext = True
            found = block_tokenizer.tokenize_block(lines, _FLAT)  # type: ignore[no-untyped-call]
        finally:
            block_token._token_types = before
            block_token.Paragraph.parse_setext = True
    result = Outline()
    for token, read, line in found:
        if token is block_token.List:
            result.borders.extend((item[4], False) for item in read)
        else:
            result.borders.append((line, token in _ATOMIC))
        if token is _Atx:
            result.headings.append(Heading(line, read, 1, setext=False))
        elif isinstance(read, _Setext):
            result.headings.append(Heading(line, read.level, read.rows, setext=True))
        elif token is _Reference:
            result.labels.add(read)
        elif token is _Paragraph:
            result.labels.update("^" + note[1] for row in read if (note := _FOOTNOTE.match(row)))
    result.boxes = _boxes(found, lines)
    return result


def _copy(text: str) -> list[str]:
    """The lines as mistletoe is to see them, one for one: ended by ``\\n``, spaced by blanks and tabs.

    Form feeds, no-break spaces and their kind are letters to CommonMark's block rules, not to ``str.strip``.
    """
    lines = LINE_END.split(_ODD_SPACE.sub("\ufffd", text))
    if not lines[-1]:
        lines.pop()
    if _DEEP.search("\n".join(lines)):
        lines = [found[0] + "x" if (found := _DEEP.match(line)) else line for line in lines]
    return [line + "\n" for line in lines]


def _boxes(found: Sequence[tuple[Any, Any, int]], lines: Sequence[str]) -> list[Box]:
    """Check boxes: list items, at any depth, whose first block is a paragraph that begins with one."""
    boxes: list[Box] = []
    waiting = [block for block in found if block[0] in (block_token.List, block_token.Quote)]
    while waiting:
        token, read, _ = waiting.pop()
        if token is block_token.Quote:
            waiting.extend(read)
        elif token is block_token.List:
            for children, *_, line in read:
                waiting.extend(children)
                if not children or children[0][0] is not _Paragraph or not isinstance(children[0][1], list):
                    continue
                box = _BOX.match(children[0][1][0])
                while box and line < len(lines) and not _BOX.search(lines[line - 1]):
                    line += 1  # mistletoe counts from the marker when an item begins on the line after it
                if box:
                    boxes.append(Box(line, len(children[0][1]), box[1] != " "))
    return sorted(boxes)
