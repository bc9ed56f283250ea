"""Anchors and source lines of sections: the anchors are those of the page's HTML, the lines those of its source file.

Anchors: the sections of the Markdown and the headings of the HTML have the same order, but the one can lack some of the
other. Headings inside admonitions or lists are not sections, a line that looks like a heading may be none in the HTML,
and icons, links or macros change the text of a heading. So they are matched like two versions of a text. A section
without a heading in the HTML gets the anchor of the section around it.

Lines: a page of HTML has other lines than its source. Its headings are found in the source by their text or anchor, in
order. A section without a heading in the source, and a part of a long section, is found by lines of its text. A section
that is not found has no lines, such as documentation that a generator reads from code.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import NamedTuple

from anvil.formats.characters import LINE_END
from anvil.formats.patterns import lazy_pattern
from anvil.text import front_matter
from anvil.text.headings import parents
from anvil.values import PAGE_ENDINGS, Chunk, ParsedPage, Section

MIN_SIMILARITY = 0.5
"""Texts with a lower similarity (difflib's ratio) are not the same heading."""
MAX_COMPARED_PAIRS = 4_000
"""The largest number of pairs between two matches that are compared for similarity."""
_ICON = lazy_pattern(r":[a-z0-9_+-]+:")


class Heading(NamedTuple):
    """A heading of an HTML page: its level, the id of its element or ``""``, and its text."""

    level: int
    id: str
    text: str


def with_anchors(page: ParsedPage, rendered: Iterable[tuple[int, str, str]]) -> ParsedPage:
    """``page`` with the anchors of its HTML. ``rendered``: (level, id, text) of each heading of the HTML, in order."""
    in_source = [section for section in page.sections if section.heading_level]
    headings = _pairs(in_source, [Heading(*values) for values in rendered])
    sections: list[Section] = []
    levels = [section.heading_level for section in page.sections]
    for section, parent in zip(page.sections, parents(levels), strict=True):
        heading = headings.get(section.ordinal)
        parent_anchor = sections[parent].anchor if parent >= 0 else ""
        sections.append(section._replace(anchor=heading.id if heading and heading.id else parent_anchor))
    return replace(page, sections=tuple(sections))


def _pairs(sections: Sequence[Section], rendered: Sequence[Heading]) -> dict[int, Heading]:
    """Ordinal of a section -> its heading. Pairs have the same order on both sides. Equal texts are matched first, then
    similar ones between them."""
    indexes: dict[tuple[int, str], list[int]] = {}
    for index, heading in enumerate(rendered):
        indexes.setdefault((heading.level, bare(heading.text)), []).append(index)
    earlier: Counter[tuple[int, str]] = Counter()
    equal: list[dict[int, float]] = []
    for section in sections:
        key = section.heading_level, bare(section.title)
        equal.append(dict.fromkeys(_near(indexes.get(key, []), earlier[key]), 1.0))
        earlier[key] += 1
    pairs: list[tuple[int, int]] = []
    row = column = 0
    for next_row, next_column in (*_heaviest(equal), (len(sections), len(rendered))):
        between = rendered[column:next_column]
        if (next_row - row) * len(between) <= MAX_COMPARED_PAIRS:
            similar = [
                {at: weight for at, heading in enumerate(between, column) if (weight := _similarity(section, heading))}
                for section in sections[row:next_row]
            ]
            pairs += [(row + at, index) for at, index in _heaviest(similar)]
        pairs.append((next_row, next_column))
        row, column = next_row + 1, next_column + 1
    return {sections[at].ordinal: rendered[index] for at, index in pairs[:-1]}


def _near(candidates: Sequence[int], count: int) -> Sequence[int]:
    """The candidates with equal text that are near the one with the number ``count``, from 0."""
    return candidates[max(0, count - MAX_SHIFT) : count + MAX_SHIFT + 1]


def _heaviest(pairs_of: Iterable[Mapping[int, float]]) -> list[tuple[int, int]]:
    """The pairs with the highest sum of weights that have the same order on both sides. ``pairs_of``: for each item on
    the left, index on the right -> weight."""
    # The heaviest increasing subsequence. best[n] is the heaviest chain that ends at frontier[n]. Both lists ascend,
    # because a chain that ends later and is not heavier is dropped.
    frontier: list[int] = []
    best: list[_Link] = []
    for left, pairs in enumerate(pairs_of):
        # Backwards, so that no pair of this item follows another one of it.
        for right, weight in sorted(pairs.items(), reverse=True):
            at = bisect_left(frontier, right)
            before = best[at - 1] if at else None
            link = _Link(weight + (before.weight if before else 0.0), left, right, before)
            if at < len(frontier) and frontier[at] == right and best[at].weight >= link.weight:
                continue
            stop = at
            while stop < len(best) and best[stop].weight <= link.weight:
                stop += 1
            frontier[at:stop], best[at:stop] = [right], [link]
    chain: list[tuple[int, int]] = []
    last = best[-1] if best else None
    while last is not None:
        chain.append((last.left, last.right))
        last = last.before
    return chain[::-1]


def bare(text: str) -> str:
    """The letters and digits of a text. Marks, icons and signs differ between a source and its page."""
    return "".join(c for c in unicodedata.normalize("NFKC", _ICON.sub("", text)).casefold() if c.isalnum())


def _similarity(section: Section, heading: Heading) -> float:
    """The similarity of two headings by id, text and level, from 0 to 2."""
    if section.anchor and section.anchor == heading.id:
        return 2.0
    matcher = SequenceMatcher(None, bare(section.title), bare(heading.text), autojunk=False)
    # The first two ratios are quick, and upper bounds of the third.
    if any(ratio() < MIN_SIMILARITY for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)):
        return 0.0
    return matcher.ratio() + (0.5 if section.heading_level == heading.level else 0.0)


# --- lines of the source ------------------------------------------------------------------------------

MAX_LINE_CHARACTERS = 2_000
"""Longer lines are no headings."""
MAX_WORDS_CHARACTERS = 2_000
"""The first words of a section are taken from so many characters."""
MIN_LINE_LETTERS = 12
"""Text is found by lines with so many letters and digits. A shorter line may occur anywhere."""
MAX_SHIFT = 50
"""Headings with equal text are numbered. Their numbers in the source and in the page may differ by so much."""
MAX_COMPARED_CHARACTERS = 50_000_000
"""The limit for comparing the lines of a page with text: the sum of lines times characters."""
_WORDS_COMPARED = 40
_LINES_COMPARED = 30
_EXACT, _NAMED = 1.0, 0.75
"""The weight of a pair with the same text, and of a pair with the same name, anchor or title in the front matter."""

_MARKDOWN = (*PAGE_ENDINGS, ".mdoc", ".ipynb")
_ATX = lazy_pattern(r"[\s>]*#{1,6}[ \t]+(\S.*)")
_ASCIIDOC = lazy_pattern(r"[=#]{1,6}[ \t]+(\S.*)")
_ORG = lazy_pattern(r"\*+[ \t]+(\S.*)")
_RULER = lazy_pattern(r"[\s>]*([!-/:-@\[-`{-~])\1{2,}\s*")
_TAG = lazy_pattern(r"<(?:h[1-6]|summary)\b[^>]*>(.*?)(?:</(?:h[1-6]|summary)>|$)", re.I)
_FENCE = lazy_pattern(r"[\s>]*(`{3,}|~{3,})")
_TITLE = lazy_pattern(r"title\s*[:=]\s*(\S.*)")
_DIRECTIVE = lazy_pattern(
    r"\s*(?:\.\.\s+[\w:-]+::|[`:]{3,}\{[\w:-]+\}|:::)\s+(?:(?:async|class|static|abstract)\s+)*([^\s({]+)"
)
_CELL = lazy_pattern(r"\s*\"(.*?)(?:\\n)?\",?\s*")
_ID = lazy_pattern(r"[{\s]#([\w.:-]+)[^{}]*\}\s*$|<a\s[^>]*\b(?:id|name)=[\"']?([\w.:-]+)", re.I)
_NO_TEXT = lazy_pattern(r"\{\{.*?\}\}|\{[^{}]*\}\s*$|<[^>]+>|\]\([^)]*\)|\]\[[^\]]*\]|:[\w:+-]+:(?=`)|\s<[^>`]*>(?=`)")


class _HeadingLine(NamedTuple):
    """A line of the source that looks like a heading: its index, its weight, and the letters by which a section is
    matched with it, which are those of its text and of its id, if the source has one."""

    line: int
    weight: float
    keys: frozenset[str]


class _Link(NamedTuple):
    """A pair at the end of a chain, and the chain before it. ``weight``: the sum for the whole chain."""

    weight: float
    left: int
    right: int
    before: _Link | None


def with_lines(
    page: ParsedPage, chunks: Sequence[Chunk], source: str, path: str
) -> tuple[ParsedPage, tuple[Chunk, ...]]:
    """A page and its chunks with their lines in ``source``, the text of the file ``path``; no lines if it is empty."""
    finder = _Finder(page, source, path)
    spans = finder.spans()
    sections = tuple(
        section._replace(start_line=span and span[0], end_line=span and span[1])
        for section, span in zip(page.sections, spans, strict=True)
    )
    return replace(page, sections=sections), tuple(_chunks(finder, sections, chunks))


def _chunks(finder: _Finder, sections: Sequence[Section], chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """The chunks, each with the lines of its sections, or of its part of a section."""
    first = 0
    for chunk in chunks:
        while first + 1 < len(sections) and sections[first].end <= chunk.start:
            first += 1
        last = first
        while last + 1 < len(sections) and sections[last + 1].start < chunk.end:
            last += 1
        spans = [(section.start_line, section.end_line) for section in sections[first : last + 1]]
        begin = min((start for start, _ in spans if start is not None), default=None)
        end = max((stop for _, stop in spans if stop is not None), default=None)
        if begin and end and (sections[first].start < chunk.start or sections[last].end > chunk.end):
            # If the chunk begins or ends with a section, the section's line is used: it is surer than those of text.
            part_begin, part_end = finder.part(chunk.content, begin, end)
            begin = begin if sections[first].start >= chunk.start else part_begin
            end = end if sections[last].end <= chunk.end else part_end
        yield replace(chunk, start_line=begin, end_line=end)


class _Finder:
    def __init__(self, page: ParsedPage, source: str, path: str) -> None:
        self._page = page
        self._lines = LINE_END.split(source)
        if len(self._lines) > 1 and not self._lines[-1]:
            self._lines.pop()
        self._letters = [bare(line) if len(line) <= MAX_LINE_CHARACTERS else "" for line in self._lines]
        self._begin = len(LINE_END.findall(source[: front_matter.end(source)]))
        self._headings = list(_heading_lines(self._lines, self._begin, path.lower())) if source else []
        self._room = MAX_COMPARED_CHARACTERS

    def spans(self) -> list[tuple[int, int] | None]:
        """The first and last line of each section; None for a section that is not found."""
        if not self._headings and not any(self._letters):
            return [None] * len(self._page.sections)
        starts: list[int | None] = [None] * len(self._page.sections)
        for ordinal, number in self._chain():
            starts[ordinal] = self._headings[number].line
        self._add_by_text(starts)
        spans: list[tuple[int, int] | None] = []
        end = len(self._lines)  # backwards, because a section ends before the next section that has a line
        for section, start in zip(reversed(self._page.sections), reversed(starts), strict=True):
            if start is None:
                spans.append(None)
                continue
            spans.append((start + 1, self._last(section, start, end) + 1))
            end = start
        return spans[::-1]

    def part(self, text: str, begin: int, end: int) -> tuple[int, int]:
        """The first and last line of ``text``, a part of a section with the lines ``begin`` to ``end``."""
        lines = self._lines_of(bare(text), "", begin - 1, end)
        return (lines[0] + 1, lines[-1] + 1) if lines else (begin, end)

    def _last(self, section: Section, start: int, end: int) -> int:
        """The index of the last line of a section that begins at ``start`` and ends before ``end``.

        Blank lines at the end count only if the section has the same lines as the file. Readers of an index rely on
        this: if a section has as many lines as its text, each line of the text is that line of the file. So another
        section must not have this number of lines by chance.
        """
        own = LINE_END.split(self._page.text[section.start : section.end])
        own = own[:-1] if not own[-1] else own
        if [line.rstrip() for line in own] == [line.rstrip() for line in self._lines[start:end]]:
            return end - 1
        limit = end
        while end - 1 > start and not self._lines[end - 1].strip():
            end -= 1
        if end - start == len(own):  # by chance
            end += 1 if end < limit else -1 if end - 1 > start else 0
        return end - 1

    # --- by headings ---------------------------------------------------------------------------------------

    def _chain(self) -> list[tuple[int, int]]:
        """(section, its heading line) as numbers, in the same order on both sides, with the highest sum of weights."""
        by_key: dict[str, list[int]] = {}
        for number, heading in enumerate(self._headings):
            for key in heading.keys:
                by_key.setdefault(key, []).append(number)
        keys = [_keys(section) for section in self._page.sections]
        uses = Counter(names[0] for names in keys if names)
        earlier: Counter[str] = Counter()
        pairs_of: list[dict[int, float]] = []
        for number, names in enumerate(keys):
            pairs: dict[int, float] = {}
            for rank, name in enumerate(names):
                candidates = by_key.get(name, [])
                for candidate in _near(candidates, earlier[name]):
                    weight = self._headings[candidate].weight * (_NAMED if rank else _EXACT)
                    if len(candidates) > 1 or uses[name] > 1:  # the text below decides between equal headings
                        weight += 0.5 * self._shared_words(number, candidate)
                    pairs[candidate] = max(weight, pairs.get(candidate, 0.0))
            earlier.update(names[:1])
            pairs_of.append(pairs)
        return _heaviest(pairs_of)

    def _shared_words(self, number: int, heading: int) -> float:
        """The share of a section's first words that are below a heading line of the source."""
        section = self._page.sections[number]
        end = min(section.end, section.start + MAX_WORDS_CHARACTERS)
        words = self._page.text[section.start : end].partition("\n")[2].split()  # without the heading, which is equal
        letters = [key for word in words[:_WORDS_COMPARED] if (key := bare(word))]
        first = self._headings[heading].line + 1
        last = self._headings[heading + 1].line if heading + 1 < len(self._headings) else len(self._lines)
        below = "\n".join(self._letters[first : min(last, first + _LINES_COMPARED)])
        return sum(word in below for word in letters) / len(letters) if letters else 0.0

    # --- by text -------------------------------------------------------------------------------------------

    def _add_by_text(self, starts: list[int | None]) -> None:
        """Add the start of sections without a heading in the source: they are searched between those with a heading."""
        ends: list[int] = []
        end = len(self._lines)
        for start in reversed(starts):
            ends.append(end)
            end = end if start is None else start
        ends.reverse()
        begin, above = self._begin, ""
        for section, start in zip(self._page.sections, starts, strict=True):
            own = bare(self._page.text[section.start : section.end])
            if start is not None:
                begin, above = start + 1, own
            elif lines := self._lines_of(own, above, begin, ends[section.ordinal]):
                starts[section.ordinal] = lines[0]
                begin, above = lines[-1] + 1, own

    def _lines_of(self, text: str, above: str, begin: int, end: int) -> list[int]:
        """The lines from ``begin`` to ``end`` that are in a text, and not in the text above it."""
        self._room -= (end - begin) * len(text)
        if self._room < 0:
            return []
        return [
            line
            for line in range(begin, end)
            if len(letters := self._letters[line]) >= MIN_LINE_LETTERS and letters in text and letters not in above
        ]


def _keys(section: Section) -> list[str]:
    """The letters of a heading, and of other names that it may have in the source."""
    if not section.heading_level:
        return []
    names = [section.title, section.anchor]
    if " " not in section.title:  # ``package.module.Class`` often has only its last name in the source
        names.append(section.title.rpartition(".")[2])
    return list(dict.fromkeys(letters for name in names if (letters := bare(name))))


def _heading_lines(lines: Sequence[str], begin: int, path: str) -> Iterator[_HeadingLine]:
    """The lines that look like headings, and the directives for parts of an API."""
    markdown, cells = path.endswith(_MARKDOWN), path.endswith(".ipynb")
    pattern = _ATX if markdown else _ASCIIDOC if path.endswith(".adoc") else _ORG if path.endswith(".org") else None
    fence = ""
    for number, line in enumerate(lines):
        if len(line) > MAX_LINE_CHARACTERS:
            continue
        if number < begin:  # in the front matter, where the title of the page can be its first heading
            if title := _TITLE.fullmatch(line):
                yield _HeadingLine(number, _NAMED, _letters(title[1]))
            continue
        if cells and (cell := _CELL.fullmatch(line)):  # in a notebook, a line of Markdown is a JSON string
            line = cell[1]
        if directive := _DIRECTIVE.match(line):
            yield _HeadingLine(number, _NAMED, frozenset((bare(directive[1]),)))
        if markdown and (mark := _FENCE.match(line)):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            continue
        if fence:
            continue
        heading = pattern.fullmatch(line) if pattern else None
        heading = heading or (_TAG.search(line) if "<" in line else None)
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if heading:
            own_id = _ID.search(line)
            id_letters = {bare(own_id[1] or own_id[2])} if own_id else set()
            yield _HeadingLine(number, _EXACT, _letters(heading[1]) | id_letters)
        elif line.strip() and _RULER.fullmatch(following) and not _RULER.fullmatch(line):
            yield _HeadingLine(number, _EXACT, _letters(line))


def _letters(heading: str) -> frozenset[str]:
    """The letters of a heading, once as a page shows it, without tags outside of code, and once with them."""
    without = html.unescape(_NO_TEXT.sub(" ", heading))
    return frozenset((bare(without), bare(html.unescape(heading))))
