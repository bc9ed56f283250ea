"""Markdown to sections: headings, breadcrumbs, anchors, spans, blocks and check boxes of a page.

mistletoe's only door. It finds the block structure of a line-for-line copy of the text; everything returned is
a slice of, or an offset into, the source itself, which is never rendered again. ``parse`` never raises and
loses nothing, whatever the text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from mistletoe import block_token, block_tokenizer

from anvil import frontmatter
from anvil.headings import UNTITLED, Anchors, Breadcrumbs, Slugs, attributes, label, plain
from anvil.models import ROOT, Block, ParsedPage, Section, Task

_LINE_END = re.compile(r"\r\n|\r|\n")
_ODD_SPACE = re.compile(r"[^\S \t\r\n]")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\n]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_DELIMITERS = re.compile(r"[|:-][-:| \t]*$")
_DELIMITER = re.compile(r":?-+:?$")
_PIPE = re.compile(r"(?<!\\)\|")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?|///) ?[\w\"]|===[!+]? +[\"']")
_BOX = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_FOOTNOTE = re.compile(r" {0,3}\[\^([^\]\s]+)\]:")

MAX_NESTING = 32
"""Indentation and markers beyond this column do not nest deeper, so that no text can exhaust the stack."""
_DEEP = re.compile(
    rf"^(?:[ \t>]|[-*+](?=[ \t])|\d(?=\d{{0,8}}[.)])|[.)](?=[ \t])){{{MAX_NESTING}}}(?=.*\S)", re.M
)


class _Setext(NamedTuple):
    """A paragraph that turned out to be a heading, over ``lines`` lines without the underline."""

    level: int
    lines: int


class _Heading(block_token.Heading):  # type: ignore[misc]
    """ATX heading; mistletoe's pattern is cubic in a run of spaces."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ATX.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> int:
        found = _ATX.match(next(lines))
        return len(found[1]) if found else 0


class _Fence(block_token.CodeFence):  # type: ignore[misc]
    """Fenced code; mistletoe lets "```js" close a fence, which CommonMark does not."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _FENCE.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> None | bool:
        found = _FENCE.match(next(lines))
        opening = found[1] if found else "```"
        closing = re.compile(rf" {{0,3}}{opening}{opening[0]}*[ \t]*$")
        for line in lines:
            if closing.match(line):
                break
        return True


class _Html(block_token.HtmlBlock):  # type: ignore[misc]
    @classmethod
    def start(cls, line: str) -> Any:
        return line.lstrip(" ").startswith("<") and super().start(line)


class _Table(block_token.Table):  # type: ignore[misc]
    """GFM table: as many header cells as delimiter cells, body up to a blank line or another block."""

    @classmethod
    def read(cls, lines: Any, check_only: bool = False) -> Any:
        position = lines.get_pos()
        following = lines.lines[position + 1 : position + 3]
        if len(following) < 2 or not _is_table(*following):
            return None
        if check_only:
            return True
        next(lines), next(lines)
        while (line := lines.peek()) is not None and line.strip() and not _interrupts(lines):
            next(lines)
        return True


class _Reference(block_token.Footnote):  # type: ignore[misc]
    """One link reference definition; mistletoe's reader copies the rest of the block for each."""

    @classmethod
    def read(cls, lines: Any) -> str | None:
        position = lines.get_pos() + 1
        ahead = []
        for line in lines.lines[position : position + 8]:
            if not line.strip():
                break
            ahead.append(line)
        found = cls.match_reference("".join(ahead), 0) if "]:" in "".join(ahead[:3]) else None
        if not found or len(found[1][0]) > 999:
            return None
        lines.set_pos(position - 1 + max(1, "".join(ahead)[: found[0]].count("\n")))
        return label(found[1][0])


class _Admonition(block_token.BlockToken):  # type: ignore[misc]
    """MkDocs ``!!! note``, ``??? tip`` and ``=== "Tab"`` with the indented lines under it."""

    @classmethod
    def start(cls, line: str) -> bool:
        return _ADMONITION.match(line) is not None

    @classmethod
    def read(cls, lines: Any) -> bool:
        next(lines)
        for line in lines:
            if line.strip() and not line.startswith(("    ", "\t")):
                lines.backstep()
                break
        return True


class _Paragraph(block_token.Paragraph):  # type: ignore[misc]
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


_TOKENS = [
    _Html, block_token.BlockCode, _Heading, block_token.Quote, _Fence, block_token.ThematicBreak,
    block_token.List, _Admonition, _Table, _Reference, _Paragraph,
]  # fmt: skip
_FLAT = [token for token in _TOKENS if token not in (block_token.Quote, block_token.List)]
_BREAKING = [token for token in _TOKENS if hasattr(token, "check_interrupts_paragraph")]
_ATOMIC = (_Html, _Fence, _Table, block_token.BlockCode)
_lock = threading.Lock()


def _interrupts(lines: Any) -> bool:
    """Whether the next line begins a block that may end a paragraph."""
    line = lines.peek()
    if line.lstrip(" ")[0] not in "#>`~<*-_+0123456789" and "|" not in line:
        return False
    return any(token.check_interrupts_paragraph(lines) for token in _BREAKING)


def _is_table(header: str, delimiter: str) -> bool:
    if "|" not in header or not _DELIMITERS.match(delimiter.strip()):
        return False
    cells = _cells(delimiter)
    if not all(_DELIMITER.match(cell) for cell in cells):
        return False
    return len(cells) == len(_cells(header)) and ("|" in delimiter or ":" in delimiter)


def _cells(row: str) -> list[str]:
    row = row.strip().removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip() for cell in _PIPE.split(row)]


def _structure(lines: list[str]) -> list[tuple[Any, Any, int]]:
    """Top-level blocks of ``lines``: token class, what it read, 1-based line."""
    with _lock:  # mistletoe keeps its token types and its parser state in module globals
        before = block_token._token_types
        block_token._token_types = _TOKENS
        block_token.Paragraph.parse_setext = True
        try:
            return list(block_tokenizer.tokenize_block(lines, _TOKENS))
        except RecursionError:  # called from deep inside someone else's stack: containers become paragraphs
            return list(block_tokenizer.tokenize_block(lines, _FLAT))
        finally:
            block_token._token_types = before
            block_token.Paragraph.parse_setext = True


def parse(text: str, slugs: Slugs = "github") -> ParsedPage:
    """Take the Markdown page ``text`` apart.

    ``text`` is the decoded source, perhaps with a byte order mark. ``slugs`` says how anchors are derived from
    headings: as GitHub does, or as Python-Markdown's ``toc`` does for MkDocs. A heading is one that CommonMark
    makes a heading at the top level: not inside a quote, list item, fence, indented code or HTML block.
    """
    text = text.removeprefix("\ufeff")
    metadata, begin = frontmatter.split(text)
    first_line = 1 + len(_LINE_END.findall(text, 0, begin))
    text = text[begin:]
    starts = line_starts(text)
    found = _structure(_copy(text, starts))
    blocks = _blocks(found, starts, len(text))
    sections = _sections(found, text, starts, first_line, slugs)
    return ParsedPage(
        text=text,
        first_line=first_line,
        title=_title(metadata.get("title"), sections),
        metadata=metadata,
        sections=sections,
        blocks=blocks,
        tasks=_tasks(found, text, starts, first_line, sections),
    )


def line_starts(text: str) -> list[int]:
    """Offset of each line of ``text``; only ``\\n``, ``\\r\\n`` and ``\\r`` end a line. Empty for no text."""
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    if starts[-1] == len(text):
        starts.pop()
    return starts


def _copy(text: str, starts: Sequence[int]) -> list[str]:
    """The lines as mistletoe is to see them, one for one: ended by ``\\n``, with no white space but blanks and tabs.

    Form feeds, no-break spaces and their kind are letters to CommonMark's block rules, but not to ``str.strip``.
    """
    text = _ODD_SPACE.sub("\ufffd", text)
    lines = _LINE_END.split(text)[: len(starts)]
    if _DEEP.search(text.replace("\r", "\n")):
        lines = [found[0] + "x" if (found := _DEEP.match(line)) else line for line in lines]
    return [line + "\n" for line in lines]


def _blocks(found: Sequence[tuple[Any, Any, int]], starts: Sequence[int], size: int) -> tuple[Block, ...]:
    borders: dict[int, bool] = {}
    for token, result, line in found:
        if token is block_token.List:
            borders.update((starts[item[4] - 1], False) for item in result)
        else:
            borders[starts[line - 1]] = token in _ATOMIC
    if not borders:
        return (Block(0, size, False),) if size else ()
    begin = [0, *list(borders)[1:]]
    return tuple(
        Block(start, end, atomic)
        for start, end, atomic in zip(begin, [*begin[1:], size], borders.values(), strict=True)
    )


def _sections(
    found: Sequence[tuple[Any, Any, int]], text: str, starts: Sequence[int], first_line: int, slugs: Slugs
) -> tuple[Section, ...]:
    references = _references(found)
    headings: list[tuple[int, int, str, str]] = []  # offset, level, title, the id asked for
    for token, result, line in found:
        if token is _Heading:
            source = _slice(text, starts, line, 1).strip().lstrip("#")
            level = result
        elif isinstance(result, _Setext):
            source = " ".join(part.strip() for part in _slice(text, starts, line, result.lines).splitlines())
            level = result.level
        else:
            continue
        bare, anchor = attributes(source)
        headings.append((starts[line - 1], level, plain(bare, references), anchor))
    if not text.strip():
        return ()
    anchors = Anchors(slugs, {anchor for *_, anchor in headings if anchor})
    paths = Breadcrumbs()
    rows = [
        (at, level, title or UNTITLED, anchor or anchors.claim(title), paths.claim(level, title or UNTITLED))
        for at, level, title, anchor in headings
    ]
    if not rows or text[: rows[0][0]].strip():
        rows.insert(0, (0, 0, ROOT, "", ROOT))
    begin = [0, *(row[0] for row in rows[1:])]
    ends = [*begin[1:], len(text)]
    lines = {offset: number for number, offset in enumerate(starts, first_line)}
    last = first_line + len(starts) - 1
    return tuple(
        Section(
            ordinal,
            path,
            level,
            title,
            anchor,
            start,
            end,
            lines[start],
            lines[end] - 1 if end in lines else last,
        )
        for ordinal, ((_, level, title, anchor, path), start, end) in enumerate(
            zip(rows, begin, ends, strict=True)
        )
    )


def _slice(text: str, starts: Sequence[int], line: int, count: int) -> str:
    """``count`` source lines from the 1-based ``line`` on."""
    after = line - 1 + count
    return text[starts[line - 1] : starts[after] if after < len(starts) else len(text)]


def _references(found: Sequence[tuple[Any, Any, int]]) -> set[str]:
    labels = {result for token, result, _ in found if token is _Reference}
    for token, result, _ in found:
        if token is _Paragraph and isinstance(result, list):
            labels.update("^" + note[1] for line in result if (note := _FOOTNOTE.match(line)))
    return labels


def _title(given: Any, sections: Sequence[Section]) -> str | None:
    if isinstance(given, (str, int, float)) and not isinstance(given, bool) and str(given).strip():
        return str(given)
    h1 = (section.title for section in sections if section.heading_level == 1 and section.title != UNTITLED)
    return next(h1, None)


def _tasks(
    found: Sequence[tuple[Any, Any, int]],
    text: str,
    starts: Sequence[int],
    first_line: int,
    sections: Sequence[Section],
) -> tuple[Task, ...]:
    boxes: dict[int, tuple[int, bool]] = {}
    waiting = [buffer for buffer in found if buffer[0] in (block_token.List, block_token.Quote)]
    while waiting:
        token, result, _ = waiting.pop()
        if token is block_token.Quote:
            waiting.extend(result)
        elif token is block_token.List:
            for children, *_, line in result:
                waiting.extend(children)
                if not children or children[0][0] is not _Paragraph or not isinstance(children[0][1], list):
                    continue
                box = _BOX.match(children[0][1][0])
                if box:
                    boxes[line] = (len(children[0][1]), box[1] != " ")
    tasks = []
    at = 0
    for line, (count, done) in sorted(boxes.items()):
        while at + 1 < len(sections) and sections[at + 1].start <= starts[line - 1]:
            at += 1
        source = _slice(text, starts, line, count)
        box = _BOX.search(source)
        if box:
            tasks.append(
                Task(line - 1 + first_line, plain(source[box.end() :]), done, sections[at].heading_path)
            )
    return tuple(tasks)
