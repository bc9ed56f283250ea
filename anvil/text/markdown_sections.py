"""Parsing of a Markdown page into sections with breadcrumbs, anchors and spans, blocks, check boxes and its title.

Results are slices of the source or offsets into it. Markdown is not rendered, no text is lost, none raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from anvil.formats.characters import LINE_END, line_starts
from anvil.formats.patterns import lazy_pattern
from anvil.settings.schema import Chunking, ChunkingOptions
from anvil.text import front_matter
from anvil.text.headings import UNTITLED, Anchors, attributes, breadcrumbs, plain
from anvil.values import ROOT, Block, Box, ParsedPage, Section

if TYPE_CHECKING:
    from anvil.text.markdown_blocks import BlockStructure


BOM = "\ufeff"
DEFAULTS = ChunkingOptions()
MAX_HEADINGS = 50_000
"""The limit for the headings of one page, because half a million of them fit into a megabyte, and each is a row of the
index. Further headings are text of the last section."""
_FIRST_HEADING = lazy_pattern(r"(?:[ \t]*[\r\n])* {0,3}(#[ \t][^\[\r\n]*)(?:[\r\n]|\Z)")
"""An h1 above all other text. It has no brackets, so its title does not depend on definitions in the page."""
_HTML_H1 = lazy_pattern(r"<h1[\s>]", re.I)
_HTML_H1_END = lazy_pattern(r"</h1\s*>", re.I)
_H1_SIGN = lazy_pattern(r"(?:\A|[\r\n])[ \t]*(?:#(?!#)|=+[ \t]*(?:[\r\n]|\Z))")
"""A mark of an h1, which some other text has, too."""


def parse(text: str, options: Chunking = DEFAULTS) -> ParsedPage:
    """Parse a Markdown page. ``text``: the decoded source, with or without a byte order mark. ``options``: for anchors.

    Headings are the top-level headings of CommonMark. In quotes, list items, fences, indented code and HTML blocks
    there are none. Between blank lines inside ``<details>`` there are headings, as on GitHub."""
    from anvil.text.markdown_blocks import block_structure  # imported late: mistletoe takes 0.15 s

    text = text.removeprefix(BOM)  # front matter must be at the start
    metadata, begin = front_matter.split(text)
    first_line = 1 + len(LINE_END.findall(text, 0, begin))
    text = text[begin:]
    starts = line_starts(text) if text else []
    structure = block_structure(text)
    lines = _Lines(text, starts, first_line)
    sections = _sections(structure, lines, options)
    return ParsedPage(
        text=text,
        first_line=first_line,
        title=_title(metadata.get("title"), text, sections, structure.labels),
        metadata=metadata,
        sections=sections,
        blocks=_blocks(structure, lines),
        boxes=_boxes(structure, lines, sections),
    )


def leading_title(text: str) -> str | None:
    """The title of a text without front matter, if it begins with its h1; None if only :func:`parse` can tell."""
    heading = _FIRST_HEADING.match(text)
    title = _name(heading[1], False, ()).title if heading else ""
    return title if title and title != UNTITLED else None


def may_have_h1(text: str) -> bool:
    """Whether a page may have an h1, which only :func:`parse` can tell. ``text``: without front matter."""
    return _H1_SIGN.search(text) is not None


class _Lines(NamedTuple):
    """The text of a page, the offset of each line, and the number of the first line in the source file."""

    text: str
    starts: Sequence[int]
    first: int

    def slice(self, line: int, count: int) -> str:
        """``count`` lines from ``line`` on (1-based), with their line ends."""
        after = line - 1 + count
        return self.text[self.starts[line - 1] : self.starts[after] if after < len(self.starts) else None]


def _blocks(structure: BlockStructure, lines: _Lines) -> tuple[Block, ...]:
    size = len(lines.text)
    if not structure.borders:
        return (Block(0, size, False),) if size else ()
    # The first block begins at 0, so that blank lines at the start are in a block, too.
    begins = [0, *(lines.starts[line - 1] for line, _ in structure.borders[1:])]
    atomic = [is_atomic for _, is_atomic in structure.borders]
    return tuple(map(Block, begins, [*begins[1:], size], atomic))


def _sections(structure: BlockStructure, lines: _Lines, options: Chunking) -> tuple[Section, ...]:
    if not lines.text.strip():
        return ()
    text, offsets = lines.text, [*lines.starts, len(lines.text)]
    names: list[_Name] = []
    names_by_source: dict[str, _Name] = {}  # generated pages repeat headings, such as "Parameters"
    headings = structure.headings[:MAX_HEADINGS]
    for line, _, rows, setext in headings:
        source = text[offsets[line - 1] : offsets[line - 1 + rows]]
        name = names_by_source.get(source)
        if name is None:
            name = names_by_source[source] = _name(source, setext, structure.labels)
        names.append(name)
    first_lines = [line for line, _, _, _ in headings]
    levels = [level for _, level, _, _ in headings]
    # Ids that headings set are reserved before the first slug is made, as generators give them to no other heading.
    anchors = Anchors(options.slugs, {name.id for name in names_by_source.values() if name.id})
    ids = [name.id or anchors.claim(name.slug_text) for name in names]
    titles = [name.title or UNTITLED for name in names]
    paths = breadcrumbs(list(zip(levels, titles, strict=True)))
    if not levels or text[: offsets[first_lines[0] - 1]].strip():
        first_lines, levels = [1, *first_lines], [0, *levels]
        titles, ids, paths = [ROOT, *titles], ["", *ids], [ROOT, *paths]
    first_lines[0] = 1  # blank lines above the first heading belong to its section, so that sections cover the text
    starts = [offsets[line - 1] for line in first_lines]
    start_lines = [line + lines.first - 1 for line in first_lines]
    end_lines = [line - 1 for line in start_lines[1:]] + [lines.first - 1 + len(lines.starts)]
    ends = [*starts[1:], len(text)]
    # Columns and map() are faster than a loop: a page of empty headings has 50,000 sections (benchmarks/hostile.py).
    columns = paths, levels, titles, ids, starts, ends, start_lines, end_lines
    return tuple(map(Section, range(len(starts)), *columns))


class _Name(NamedTuple):
    """The title of a heading, the text of which generators make its id, and the id that it sets or ``""``."""

    title: str
    slug_text: str
    id: str


def _name(source: str, setext: bool, labels: Container[str]) -> _Name:
    source = source.strip()
    bare, anchor = attributes(" ".join(source.split("\n")) if setext else source.lstrip("#"))
    title = plain(bare, labels)
    return _Name(title, plain(bare, labels, for_anchor=True) if "<su" in bare.lower() else title, anchor)


def _title(declared: Any, text: str, sections: Sequence[Section], labels: Container[str]) -> str | None:
    """The title in the front matter if it is a text or a number; else the text of the first h1 with text, which may be
    an HTML element above the first heading, as in many READMEs. ``declared``: the value in the front matter."""
    if isinstance(declared, (str, int, float)) and not isinstance(declared, bool) and str(declared).strip():
        return str(declared)
    above = text[: sections[0].end] if sections and not sections[0].heading_level else ""
    titles = (section.title for section in sections if section.heading_level == 1 and section.title != UNTITLED)
    return _html_title(above, labels) or next(titles, None)


def _html_title(text: str, labels: Container[str]) -> str:
    """The text of the first ``<h1>`` or the alternative text of its image; empty if there is none."""
    if not _HTML_H1.search(text):
        return ""
    from anvil.text import visible_text

    tags = (span for span in visible_text.spans(text) if span.kind == "block tag")  # not in code or comments
    opening = next((span for span in tags if _HTML_H1.match(text, span.start)), None)
    closing = opening and _HTML_H1_END.search(text, opening.end)
    if not opening or not closing:
        return ""
    inside = text[opening.end : closing.start()]
    image = visible_text.ALTERNATIVE_TEXT.search(inside)
    text = visible_text.shown(visible_text.masked(visible_text.ALTERNATIVE_TEXT.sub("", inside)))  # without badges
    return plain(text, labels) or (plain(image[2]) if image else "")


def _boxes(structure: BlockStructure, lines: _Lines, sections: Sequence[Section]) -> tuple[Box, ...]:
    boxes: list[Box] = []
    index = 0
    for box in structure.boxes:
        while index + 1 < len(sections) and sections[index + 1].start <= lines.starts[box.line - 1]:
            index += 1
        text = plain(lines.slice(box.line, box.rows).partition("]")[2], structure.labels) if box.mark else ""
        path = sections[index].heading_path
        boxes.append(box._replace(line=box.line - 1 + lines.first, text=text, heading_path=path))
    return tuple(boxes)
