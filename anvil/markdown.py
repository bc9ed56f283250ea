"""Markdown to sections: headings, breadcrumbs, anchors, spans, break points and check boxes of a page.

Everything returned is a slice of, or an offset into, the source itself, which is never rendered again.
``parse`` never raises and loses nothing, whatever the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anvil import frontmatter
from anvil.config import Slugs
from anvil.cutting import LINE_END
from anvil.headings import UNTITLED, Anchors, Breadcrumbs, attributes, plain
from anvil.models import ROOT, Block, ParsedPage, Section, Task

if TYPE_CHECKING:
    from anvil.blocks import Outline

BOM = "\ufeff"


def parse(text: str, slugs: Slugs = "github") -> ParsedPage:
    """Take the Markdown page ``text`` apart.

    ``text`` is the decoded source, perhaps with a byte order mark. ``slugs`` says how anchors are derived
    from headings: as GitHub does, or as Python-Markdown's ``toc`` does for MkDocs. A heading is one that
    CommonMark makes a heading at the top level: not in a quote, list item, fence, indented code or HTML
    block. Between blank lines inside ``<details>`` it is one, there as on GitHub.
    """
    from anvil.blocks import outline  # mistletoe imports for 0.15 s: not when nothing changed

    text = text.removeprefix(BOM)
    metadata, begin = frontmatter.split(text)
    first_line = 1 + len(LINE_END.findall(text, 0, begin))
    text = text[begin:]
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    if starts[-1] == len(text):
        starts.pop()
    found = outline(text)
    lines = _Lines(text, starts, first_line)
    sections = _sections(found, lines, slugs)
    return ParsedPage(
        text=text,
        first_line=first_line,
        title=_title(metadata.get("title"), sections),
        metadata=metadata,
        sections=sections,
        blocks=_blocks(found, lines),
        tasks=_tasks(found, lines, sections),
    )


class _Lines:
    """The page's text by 1-based line of its own, and their numbers in the source file."""

    def __init__(self, text: str, starts: Sequence[int], first: int) -> None:
        self.text = text
        self.starts = starts
        self.first = first
        self._numbers = {offset: number for number, offset in enumerate(starts, first)}

    def slice(self, line: int, count: int) -> str:
        """``count`` lines from ``line`` on, with their line ends."""
        after = line - 1 + count
        return self.text[self.starts[line - 1] : self.starts[after] if after < len(self.starts) else None]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """First and last source line of a span that begins and ends at line borders."""
        return self._numbers[start], self._numbers.get(end, self.first + len(self.starts)) - 1


def _blocks(found: Outline, lines: _Lines) -> tuple[Block, ...]:
    size = len(lines.text)
    if not found.borders:
        return (Block(0, size, False),) if size else ()
    begins = [0, *(lines.starts[line - 1] for line, _ in found.borders[1:])]
    return tuple(
        Block(begin, end, atomic)
        for begin, end, (_, atomic) in zip(begins, [*begins[1:], size], found.borders, strict=True)
    )


def _sections(found: Outline, lines: _Lines, slugs: Slugs) -> tuple[Section, ...]:
    if not lines.text.strip():
        return ()
    names: list[tuple[str, str]] = []  # plain text, and the id that the heading asks for
    for heading in found.headings:
        source = lines.slice(heading.line, heading.rows).strip()
        bare, anchor = attributes(" ".join(source.split("\n")) if heading.setext else source.lstrip("#"))
        names.append((plain(bare, found.labels), anchor))
    anchors = Anchors(slugs, {anchor for _, anchor in names if anchor})
    paths = Breadcrumbs()
    rows = [
        (lines.starts[heading.line - 1], heading.level, title or UNTITLED, anchor or anchors.claim(title))
        for heading, (title, anchor) in zip(found.headings, names, strict=True)
    ]
    if not rows or lines.text[: rows[0][0]].strip():
        rows.insert(0, (0, 0, ROOT, ""))
    begins = [0, *(row[0] for row in rows[1:])]
    sections: list[Section] = []
    for (_, level, title, anchor), start, end in zip(
        rows, begins, [*begins[1:], len(lines.text)], strict=True
    ):
        first, last = lines.span(start, end)
        path = paths.claim(level, title) if level else ROOT
        sections.append(Section(len(sections), path, level, title, anchor, start, end, first, last))
    return tuple(sections)


def _title(given: Any, sections: Sequence[Section]) -> str | None:
    """Front matter's title when it is text or a number, else the first h1 that has any."""
    if isinstance(given, (str, int, float)) and not isinstance(given, bool) and str(given).strip():
        return str(given)
    h1 = (section.title for section in sections if section.heading_level == 1 and section.title != UNTITLED)
    return next(h1, None)


def _tasks(found: Outline, lines: _Lines, sections: Sequence[Section]) -> tuple[Task, ...]:
    tasks: list[Task] = []
    at = 0
    for line, rows, done in found.boxes:
        while at + 1 < len(sections) and sections[at + 1].start <= lines.starts[line - 1]:
            at += 1
        _, _, text = lines.slice(line, rows).partition("]")
        path = sections[at].heading_path
        tasks.append(Task(line - 1 + lines.first, plain(text, found.labels), done, path))
    return tuple(tasks)
