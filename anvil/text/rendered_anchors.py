"""Anchors of the published page, from the headings of its HTML.

The sections of the Markdown and the headings of the HTML have the same order, but neither has all of the other's:
headings inside admonitions or lists are not sections, a line that looks like a heading may be none in the HTML, and
icons, links or macros change the text of a heading. They are matched like two versions of a text. A section without a
heading gets the anchor of the section around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import NamedTuple

from anvil.values import ParsedPage, Section

MIN_SIMILARITY = 0.5
"""Texts that share less than this (difflib's ratio) are not the same heading."""
MAX_COMPARED_PAIRS = 4_000
"""Pairs weighed within one gap; a larger gap is only matched by equal texts."""
MAX_EQUAL_PAIRS = 200_000
"""Pairs of equal headings that difflib weighs, as many as 450 headings of one text make; its time is theirs."""
MAX_SKIPPED_HEADINGS = 50
"""Headings of a page with more of such pairs that may be skipped to reach the next equal one."""
_Key = tuple[int, str]
_ICON = re.compile(r":[a-z0-9_+-]+:")


class Heading(NamedTuple):
    """A heading as a page shows it: its level, its element's id (``""`` without one), and its text."""

    level: int
    id: str
    text: str


def landed(page: ParsedPage, rendered: Iterable[tuple[int, str, str]]) -> ParsedPage:
    """``page`` with the anchors that the headings of its HTML (level, id, text) have, in the order of that HTML."""
    headings = _pairs([s for s in page.sections if s.heading_level], [Heading(*values) for values in rendered])
    sections: list[Section] = []
    around: list[tuple[int, str]] = []
    for section in page.sections:
        while around and around[-1][0] >= section.heading_level:
            around.pop()
        heading = headings.get(section.ordinal)
        anchor = heading.id if heading and heading.id else around[-1][1] if around else ""
        sections.append(section._replace(anchor=anchor))
        if section.heading_level:
            around.append((section.heading_level, anchor))
    return replace(page, sections=tuple(sections))


def _pairs(sections: Sequence[Section], rendered: Sequence[Heading]) -> dict[int, Heading]:
    """Section ordinal -> its heading."""
    left = [(s.heading_level, bare(s.title)) for s in sections]
    right = [(h.level, bare(h.text)) for h in rendered]
    pairs: dict[int, Heading] = {}
    for kind, a, b, c, d in _opcodes(left, right):
        if kind == "equal":
            for i, j in zip(range(a, b), range(c, d), strict=True):
                pairs[sections[i].ordinal] = rendered[j]
        elif kind == "replace" and (b - a) * (d - c) <= MAX_COMPARED_PAIRS:
            for i, j in _best(sections[a:b], rendered[c:d]):
                pairs[sections[a + i].ordinal] = rendered[c + j]
    return pairs


def _opcodes(left: Sequence[_Key], right: Sequence[_Key]) -> Sequence[tuple[str, int, int, int, int]]:
    """difflib's opcodes of the two; of lists with too many equal pairs, each with the next equal one, in order."""
    counts = Counter(right)
    if sum(counts[key] for key in left) <= MAX_EQUAL_PAIRS:
        return SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    places: dict[_Key, deque[int]] = {}
    for index, key in enumerate(right):
        places.setdefault(key, deque()).append(index)
    opcodes = []
    after = 0
    for index, key in enumerate(left):
        ahead = places.get(key, deque())
        while ahead and ahead[0] < after:
            ahead.popleft()
        if ahead and ahead[0] - after <= MAX_SKIPPED_HEADINGS:
            after = ahead.popleft() + 1
            opcodes.append(("equal", index, index + 1, after - 1, after))
    return opcodes


def bare(text: str) -> str:
    """Letters and digits alone: marks, icons and typographic signs differ between a source and its page."""
    return "".join(c for c in unicodedata.normalize("NFKC", _ICON.sub("", text)).casefold() if c.isalnum())


def _best(sections: Sequence[Section], rendered: Sequence[Heading]) -> list[tuple[int, int]]:
    """The pairs, in order on both sides, that are most alike together."""
    rows, columns = len(sections), len(rendered)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    alike = [[_alike(section, heading) for heading in rendered] for section in sections]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = best[i + 1][j + 1] + alike[i][j] if alike[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    pairs, i, j = [], 0, 0
    while i < rows and j < columns:
        if alike[i][j] and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _alike(section: Section, heading: Heading) -> float:
    """The similarity of two headings, 0 to 2: by id, text and level."""
    if section.anchor and section.anchor == heading.id:
        return 2.0
    matcher = SequenceMatcher(None, bare(section.title), bare(heading.text), autojunk=False)
    if (
        matcher.real_quick_ratio() < MIN_SIMILARITY or matcher.quick_ratio() < MIN_SIMILARITY
    ):  # upper bounds, which cost little
        return 0.0
    likeness = matcher.ratio()
    if likeness < MIN_SIMILARITY:
        return 0.0
    return likeness + (0.5 if section.heading_level == heading.level else 0.0)
