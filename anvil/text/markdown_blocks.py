"""The block structure of Markdown, found with mistletoe: the lines of headings, blocks and check boxes.

Inline text is not parsed. mistletoe has its state in global variables, so only one thread parses at a time. Its readers
that differ from CommonMark, or take quadratic time for hostile text, are replaced here. No text raises an error.
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from anvil.formats.characters import LINE_END
from anvil.text.headings import label
from anvil.values import Box

_max_unicode, sys.maxunicode = sys.maxunicode, 0xFFFF
try:
    # On import, mistletoe tests all characters up to sys.maxunicode for punctuation. That takes half a second, and only
    # inline text needs the result. The first plane takes a tenth of the time, and has all punctuation in use.
    from mistletoe import block_token, block_tokenizer
finally:
    sys.maxunicode = _max_unicode

MAX_NESTING = 32
"""So many columns of markers and indents can nest. Further ones do not, so that no text can exhaust the stack."""

_ODD_SPACE = re.compile(r"[^\S \t\r\n]")
_DEEP = re.compile(rf"^(?:[ \t>]|[-*+](?=[ \t])|\d(?=\d{{0,8}}[.)])|[.)](?=[ \t])){{{MAX_NESTING}}}(?=.*\S)", re.M)
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\n])")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_DELIMITER_ROW = re.compile(r"[|:-][-:| \t]*$")
_DELIMITER = re.compile(r":?-+:?$")
_PIPE = re.compile(r"(?<!\\)\|")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?) ?[\w\"]|===[!+]? +[\"']")
_BOX = re.compile(r"\[( |[^\[\]\s\\]{1,2})\][ \t]+(?=\S)")
_FOOTNOTE = re.compile(r" {0,3}\[\^([^\]\s]+)\]:")
_MARKERS = re.compile(r"[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))*")


Heading = tuple[int, int, int, bool]
"""A heading: its first line (1-based), its level, its number of lines without the underline, and whether it has one.

It is a plain tuple, because the garbage collector does not track these, and a page may have half a million headings.
"""


@dataclass(slots=True)
class BlockStructure:
    """The top-level blocks of a page, in order.

    - ``borders``: the first line (1-based) of each block, and whether the block is atomic (see ``Block.atomic``).
    - ``labels``: the labels of link definitions, case-folded, and of footnotes, with a ``^`` before them.
    """

    borders: list[tuple[int, bool]] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)


class _Atx(block_token.Heading):
    """An ATX heading, which ``_tokenized`` reads. mistletoe's pattern takes cubic time for a run of spaces."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ATX.match(line) is not None


class _Fence(block_token.CodeFence):
    """Fenced code. In mistletoe, "```js" would close a fence, which it does not in CommonMark."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _FENCE.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> bool:
        opening = _FENCE.match(next(lines))
        mark = opening[1] if opening else "```"  # the match is never None, because ``start`` matched this line
        closing = re.compile(rf" {{0,3}}{mark}{mark[0]}*[ \t]*$")
        position = lines.get_pos()  # mistletoe's iterator takes 1 µs for a line, and a fence may have a million lines
        rows = lines.lines
        for index in range(position + 1, len(rows)):
            if closing.match(rows[index]):
                lines.set_pos(index)
                return True
        lines.set_pos(len(rows) - 1)
        return True


class _Html(block_token.HtmlBlock):
    """An HTML block. Checking the first character saves trying mistletoe's seven patterns on most lines."""

    @classmethod
    def start(cls, line: str) -> Any:
        return line.lstrip(" ").startswith("<") and super().start(line)  # type: ignore[no-untyped-call]


class _Table(block_token.Table):
    """A table of GFM: with as many cells in the header as in the delimiter row. It ends at a blank line or a block.

    mistletoe takes any line with a pipe for a header, so ``a | b`` over ``---`` would not be a heading.
    """

    @classmethod
    def read(cls, lines: Any, check_only: bool = False) -> bool | None:
        rows, start = lines.lines, lines.get_pos() + 1
        if not _is_table(rows, start):
            return None
        end = start + 2
        while end < len(rows) and rows[end].strip() and not _interrupts(rows, end):
            end += 1
        lines.set_pos(end - 1)
        return True


class _Reference(block_token.Footnote):
    """One link definition. mistletoe's reader copies the rest of the block for each definition."""

    @classmethod
    def read(cls, lines: Any) -> str | None:
        rows, start = lines.lines, lines.get_pos() + 1
        # Most paragraphs that begin with a bracket are no definitions. Then lines need not be joined.
        if not any("]" in row for row in rows[start : start + 3]):
            return None
        end = start + 1
        while end < min(start + 8, len(rows)) and rows[end].strip():
            if _UNDERLINE.match(rows[end]) or _interrupts(rows, end):
                break
            end += 1
        source = "".join(rows[start:end])
        definition = cls.match_reference(source, 0)  # type: ignore[no-untyped-call]
        line_count = source[: definition[0]].count("\n") if definition else 0
        if not line_count:
            return None
        lines.set_pos(start + line_count - 1)
        return label(definition[1][0])


class _Admonition(block_token.BlockToken):
    """``!!! note``, ``??? tip`` or ``=== "Tab"`` of MkDocs, with the indented lines under it, as one block."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ADMONITION.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> bool | None:
        position = lines.get_pos()
        next(lines)
        following = lines.peek()
        if following is None or (following.strip() and not following.startswith(("    ", "\t"))):
            lines.set_pos(position)  # a paragraph, or a heading if an underline follows
            return None
        for line in lines:
            if line.strip() and not line.startswith(("    ", "\t")):
                lines.backstep()
                break
        return True


class _Paragraph(block_token.Paragraph):
    """A paragraph, read as its lines; or an underlined heading, read as its level and the number of lines of its text.

    mistletoe's reader would parse the inline text of the heading.
    """

    @classmethod
    def read(cls, lines: Any) -> list[str] | tuple[int, int]:
        rows, start = lines.lines, lines.get_pos() + 1
        end = start + 1
        while end < len(rows) and (row := rows[end]).strip():
            # This comes first, because "---" also begins a thematic break, which would end the paragraph.
            underline = cls.parse_setext and row.lstrip(" ")[0] in "=-" and _UNDERLINE.match(row)
            if underline:
                lines.set_pos(end)
                return (1 if underline[1][0] == "=" else 2), end - start
            if _interrupts(rows, end):
                break
            end += 1
        lines.set_pos(end - 1)
        return rows[start:end]  # type: ignore[no-any-return]


class _Quote(block_token.Quote):
    """A quote. mistletoe's reader parses the content at each depth to find its end. This one only reads lines."""

    @classmethod
    def read(cls, lines: Any) -> Sequence[Any]:
        rows, start = lines.lines, lines.get_pos() + 1
        start_line = lines.start_line + start
        inside: list[str] = []
        is_open = False  # whether a paragraph is open, which a line without a marker would continue
        end = start
        while end < len(rows) and (row := rows[end]).strip() and (end == start or not _breaks(rows, end, cls)):
            bare = cls.convert_leading_tabs(row.lstrip())  # type: ignore[no-untyped-call]
            if bare[0] == ">":
                line = bare[2:] if bare[1] == " " else bare[1:]  # the marker includes one space
                inside.append(line)
                is_code = _FENCE.match(line) or block_token.BlockCode.start(line)  # type: ignore[no-untyped-call]
                is_open = bool(line.strip()) and not is_code
            elif is_open:
                inside.append(row)
            else:
                break
            end += 1
        lines.set_pos(end - 1)
        if _Boxes.absent:
            return ()
        # A line without a marker that continues the paragraph of the quote is no underline. Headings in quotes do not
        # count in any case.
        block_token.Paragraph.parse_setext = False
        blocks = _inside(inside, start_line)
        block_token.Paragraph.parse_setext = True
        return blocks


_Item = tuple[Sequence[Any], int]
"""A list item: the blocks in it, and its first line."""


class _List(block_token.List):
    """A list. mistletoe would read the first item of another list twice, so the time would double with each level."""

    @staticmethod
    def start(line: str) -> bool:
        return _marker(line) is not None

    @classmethod
    def read(cls, lines: Any) -> list[_Item]:
        items: list[_Item] = []
        rows, at = lines.lines, lines.get_pos() + 1
        marker = _marker(rows[at])
        first = marker[2] if marker else ""
        while marker is not None:
            if marker[2] != first and not cls.same_marker_type(first, marker[2]):  # type: ignore[no-untyped-call]
                break
            inside, end, following = _item(rows, at, marker)
            blocks = () if _Boxes.absent else _inside(inside, lines.start_line + at)
            items.append((blocks, lines.start_line + at))
            at, marker = end, following
        lines.set_pos(at - 1)
        return items


@lru_cache(maxsize=4096)
def _marker(line: str) -> tuple[int, int, str, str] | None:
    """Indent, column of the content, leader and content of a list item's first line; None for other lines."""
    return block_token.ListItem.parse_marker(line)  # type: ignore[no-untyped-call,no-any-return]


def _item(
    rows: Sequence[str], start: int, marker: tuple[int, int, str, str]
) -> tuple[list[str], int, tuple[int, int, str, str] | None]:
    """The lines in the item that begins at ``start`` with ``marker``, the index of the line after it, and the marker of
    that line if it begins the next item."""
    indentation, column, leader, content = marker
    end = start + 1
    inside: list[str] = []
    if content.strip():
        inside.append(content)
    else:  # only a marker: the content begins one column after it, in one of the next two lines
        column = indentation + len(leader) + 1
        while end < len(rows) and not rows[end].strip():
            end += 1
        if end > start + 1:  # an item without content
            return inside, end, _marker(rows[end]) if end < len(rows) else None
    following, blanks = None, 0
    while end < len(rows):
        row = rows[end]
        # The line without so many columns of indent; None if it has fewer and is not blank.
        own = block_token.ListItem.parse_continuation(row, column) if row[0] in " \t\n" else None  # type: ignore[no-untyped-call]
        if own is None:
            following = _marker(row)
            if following is not None:
                if _is_no_item(rows, end, following[2]):
                    following = None
                break
            if _breaks(rows, end, _List) or blanks:
                break
            own = row  # the line continues the open paragraph
        inside.append(own)
        blanks = blanks + 1 if own == "\n" else 0
        end += 1
    if blanks and following is None:  # as in mistletoe, the last blank line belongs to the next block
        end -= 1
        del inside[-blanks:]
    return inside, end, following


def _is_no_item(rows: Sequence[str], index: int, leader: str) -> bool:
    """Whether the line at ``index``, which has a list marker, is another block."""
    line = rows[index]
    # "- - -" is a thematic break. A line with a pipe may be the header of a table.
    if "|" in line or leader[0] in ".)":
        return _breaks(rows, index, _List)
    return line.count(leader) > 2 and block_token.ThematicBreak.pattern.match(line) is not None


class _Boxes:
    """State for reading check boxes. The content of quotes and lists is needed only for these, so it is read only if it
    may have one."""

    MAX_LINES = 200_000
    """The limit for lines that are read in quotes and lists. A line at depth three counts three times."""

    left = 0
    absent = False
    """Whether the page has no check box, so that no quote and no list is read."""


def _inside(rows: list[str], start_line: int) -> Sequence[Any]:
    """The blocks of a quote or list item if it may have a check box; else at most its first paragraph."""
    if _Boxes.left <= 0 or not any("[" in row and _BOX.search(row) for row in rows):
        # The first paragraph is needed, because in a list with check boxes an item without one is a task, too.
        if not rows or not rows[0].strip() or rows[0][0] in _STARTING:
            return ()
        return ((_Paragraph, list(itertools.takewhile(str.strip, rows)), start_line),)
    _Boxes.left -= len(rows)
    return _tokenized(rows, start_line)


def _tokenized(rows: list[str], start_line: int = 1) -> list[tuple[Any, Any, int]]:
    """The blocks as (kind of block, result of its reader, first line), and ATX headings as (None, level, line)."""
    lines = block_tokenizer.FileWrapper(rows, start_line=start_line)  # type: ignore[no-untyped-call]
    blocks: list[tuple[Any, Any, int]] = []
    at, end = 0, len(rows)
    while at < end:
        line = rows[at]
        first = line[0]
        if first == "\n":
            at += 1
            continue
        # Read here for speed: a page may have half a million headings (benchmarks/hostile.py).
        if first in "# " and (heading := _ATX.match(line)):
            blocks.append((None, len(heading[1]), start_line + at))
            at += 1
            continue
        if first in " \t" and block_token.BlockCode.start(line):  # type: ignore[no-untyped-call]
            kinds: tuple[Any, ...] = (block_token.BlockCode,)
        else:
            # The first character of a line excludes most kinds.
            kinds_by_character = _BLOCKS_WITH_TABLE if "|" in line else _BLOCKS
            character = line.lstrip(" ")[0]
            kinds = kinds_by_character.get(character, kinds_by_character["a"])
            if character in "*-" and line.count(character) < 3:
                kinds = kinds[1:]  # no thematic break
        lines.set_pos(at - 1)  # type: ignore[no-untyped-call]
        for kind in kinds:
            if kind.start(line) and (result := kind.read(lines)) is not None:
                blocks.append((kind, result, start_line + at))
                at = lines.get_pos() + 1  # type: ignore[no-untyped-call]
                break
        else:
            at += 1
    return blocks


_STARTING: dict[str, tuple[Any, ...]] = {
    "<": (_Html,),
    "#": (_Atx,),
    ">": (_Quote,),
    "`": (_Fence,),
    "~": (_Fence,),
    "_": (block_token.ThematicBreak,),
    **dict.fromkeys("*-", (block_token.ThematicBreak, _List)),
    **dict.fromkeys("+.)0123456789", (_List,)),
    **dict.fromkeys("!?=", (_Admonition,)),
}
"""The first character of a line after spaces -> the kinds of blocks that it may begin."""
# "a" stands for all characters that begin only paragraphs. Tables are tried only if the line has a pipe, and before
# paragraphs, which accept any line.
_BLOCKS = {"a": (_Paragraph,), "[": (_Reference, _Paragraph)}
_BLOCKS |= {first: (*kinds, _Paragraph) for first, kinds in _STARTING.items()}
_BLOCKS_WITH_TABLE = {"a": (_Table, _Paragraph), "[": (_Table, _Reference, _Paragraph)}
_BLOCKS_WITH_TABLE |= {first: (*kinds, _Table, _Paragraph) for first, kinds in _STARTING.items()}
_ATOMIC = (_Html, _Fence, _Table, block_token.BlockCode)
_lock = threading.Lock()


def _interrupts(rows: Sequence[str], index: int, but: Any = None) -> bool:
    """Whether the line at ``index``, which is not blank, begins a block that may end a paragraph. ``but``: a kind of
    block that does not count."""
    line = rows[index]
    if line.lstrip(" ")[0] in _STARTING and (kind := _interrupting_kind(line)) is not None and kind is not but:
        return True
    return "|" in line and _is_table(rows, index)


@lru_cache(maxsize=4096)
def _interrupting_kind(line: str) -> Any:
    """The kind of the block that this line begins, if it may end a paragraph; else None. Tables are not considered."""
    lines = block_tokenizer.FileWrapper([line])  # type: ignore[no-untyped-call]
    for kind in _STARTING[line.lstrip(" ")[0]]:
        if kind is not _Admonition and kind.check_interrupts_paragraph(lines):
            return kind
    return None


def _breaks(rows: Sequence[str], index: int, kind: Any) -> bool:
    """Whether the line at ``index``, which is not blank and has no marker of it, ends a quote or list item."""
    return _interrupts(rows, index, kind) or _is_not_lazy(rows, index)


def _is_not_lazy(rows: Sequence[str], index: int) -> bool:
    """Whether no paragraph is open that the line at ``index`` could continue without a marker.

    mistletoe does not check this, so text after a list that ends in a fence would be part of the list.
    """
    if index < 1 or rows[index - 1][0].isalpha():
        return False
    markers = _MARKERS.match(rows[index])
    return not (markers and markers[0].strip()) and _ends_paragraph(rows[index - 1])


@lru_cache(maxsize=4096)
def _ends_paragraph(line: str) -> bool:
    """Whether no paragraph is open after ``line``. Its quote and list markers are ignored."""
    content = _MARKERS.sub("", line, count=1)
    if not content.strip() or _ATX.match(content) or _FENCE.match(content):
        return True
    return block_token.ThematicBreak.pattern.match(content) is not None or _Html.start(content) in range(1, 7)


def _is_table(rows: Sequence[str], index: int) -> bool:
    """Whether a table begins at ``index``, with a header over a delimiter row."""
    if index + 1 >= len(rows):
        return False
    header, delimiter = rows[index], rows[index + 1]
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


def block_structure(text: str) -> BlockStructure:
    """The block structure of ``text``, which has no front matter and no byte order mark."""
    rows = _rows(text)
    without_boxes = _BOX.search(text) is None  # as in nearly all pages
    with _lock:
        _Boxes.absent = without_boxes
        try:
            _Boxes.left = _Boxes.MAX_LINES
            blocks = _tokenized(rows)
        except RecursionError:  # the caller is deep in the stack already, so quotes and lists are not read
            block_token.Paragraph.parse_setext = True
            _Boxes.left = 0
            blocks = _tokenized(rows)
        finally:
            block_token.Paragraph.parse_setext = True
            for cached in (_marker, _interrupting_kind, _ends_paragraph):
                cached.cache_clear()  # lines of this page are not needed any more
    structure = BlockStructure()
    borders, headings = structure.borders, structure.headings
    for kind, result, line in blocks:
        if kind is None:
            borders.append((line, False))
            headings.append((line, result, 1, False))
        elif kind is _List:  # a chunk may end between items
            borders += [(first, False) for _, first in result]
        elif kind is _Paragraph:
            borders.append((line, False))
            if isinstance(result, tuple):
                headings.append((line, *result, True))
            elif any("[" in row for row in result):
                notes = map(_FOOTNOTE.match, result)
                structure.labels.update("^" + note[1] for note in notes if note)
        else:
            borders.append((line, kind in _ATOMIC))
            if kind is _Reference:
                structure.labels.add(result)
    if not without_boxes:
        structure.boxes = _boxes(blocks, rows)
    return structure


def _rows(text: str) -> list[str]:
    """The lines in the form for mistletoe: each ends with ``\\n``, and its only spaces are blanks and tabs.

    Form feeds, no-break spaces and others are letters for CommonMark's rules for blocks, but not for ``str.strip``.
    """
    lines = LINE_END.split(_ODD_SPACE.sub("\ufffd", text))
    if not lines[-1]:
        lines.pop()
    # If a line nests too deep, the rest of it is replaced by a letter, so that it is text at this depth.
    if _DEEP.search("\n".join(lines)):
        lines = [deep[0] + "x" if (deep := _DEEP.match(line)) else line for line in lines]
    return [line + "\n" for line in lines]


def _boxes(blocks: Sequence[tuple[Any, Any, int]], rows: Sequence[str]) -> list[Box]:
    """The items, at any depth, of all lists in which some item's first paragraph begins with a check box."""
    boxes: list[Box] = []
    waiting = [block for block in blocks if block[0] in (_List, _Quote)]
    while waiting:
        kind, result, _ = waiting.pop()
        if kind is _Quote:
            waiting.extend(result)
        elif kind is _List:
            group: list[Box] = []
            for children, line in result:
                waiting.extend(children)
                if not children or children[0][0] is not _Paragraph or not isinstance(children[0][1], list):
                    continue
                paragraph = children[0][1]
                box = _BOX.match(paragraph[0])
                while box and line < len(rows) and not _BOX.search(rows[line - 1]):
                    line += 1  # the item begins on a line after its marker
                group.append(Box(line, len(paragraph), box[1] if box else "", group[0].group if group else line))
            if any(item.mark for item in group):
                boxes += group
    return sorted(boxes)
