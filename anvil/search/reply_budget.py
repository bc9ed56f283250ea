"""How the text of a reply is divided among its results: by evidence.

Where the first result is clearly the best, it has nearly all of the text and each other one a line. Where several are
near, they share it. Further sections of a page that are as near as its other results have text, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anvil.results import Hit, Place
from anvil.search import excerpts, snippets
from anvil.search.excerpts import Sought
from anvil.search.section_match import SectionSpan

BASE_CHARS, CHARS_PER_RESULT = 800, 100
"""Characters of the budget of a search that gives none: in all, and for each result."""
LINE_CHARS = 80
"""Characters that each result has at least, if the budget has twice as many for each."""
STEEPNESS = 10
"""Evidence is the score as a share of the best one, to this power. Of 329 questions that people asked, results with at
least .9 of the best score hold the section that answers in a quarter of the cases, those below .8 in one of fifty."""
NEAR = 0.7
"""Share of the score of a page's result from which on a further section of the page is named with its text."""
DONATED = 2
"""The longest text gives one part of so many, at most, to a definition that would be cut."""
MAX_ALSO = 2
"""Further sections of its page that a result names."""


@dataclass(slots=True)
class _Entry:
    """A text of the reply, its evidence, and the characters that it may have."""

    hit: Hit
    span: SectionSpan
    evidence: float
    size: int = 0
    needed: int = 0
    """Characters of the definition that matches, in a list of them."""
    wanted: int = 0

    @property
    def own(self) -> str:
        return self.hit.content[self.span.start : self.span.end]


def within_budget(
    hits: Sequence[tuple[Hit, SectionSpan]],
    further: Sequence[tuple[Hit, SectionSpan]],
    query: str,
    max_chars: int,
) -> tuple[tuple[Hit, ...], tuple[SectionSpan, ...]]:
    """The hits, with contents of at most ``max_chars`` together, each with the ``further`` sections of its page.

    What is cut is cut to the passage of the named section that matches. Metadata and the number of hits stay.
    """
    best = max((hit.score for hit, _ in hits), default=0.0)
    entries = [_Entry(hit, span, _evidence(hit.score, best)) for hit, span in hits]
    named = {_section(entry.hit) for entry in entries}
    beside: dict[tuple[str, ...], list[_Entry]] = {}
    for hit, span in further:
        of_page = beside.setdefault(_section(hit)[:-1], [])
        if _section(hit) not in named and len(of_page) < MAX_ALSO and not _is_heading_alone(hit, span):
            named.add(_section(hit))
            of_page.append(_Entry(hit, span, _evidence(hit.score, best)))
    sought = excerpts.sought(query)
    every = [*entries, *(entry for of_page in beside.values() for entry in of_page)]
    for entry in every:
        entry.wanted = len(entry.hit.content)
    for entry in entries:  # of a further section a line is enough
        entry.needed, entry.wanted = _wanted(entry, sought, max_chars)
    _divide(every, max_chars)
    return _shortened(entries, beside, sought)


def lines(hits: Sequence[tuple[Hit, SectionSpan]], query: str) -> tuple[tuple[Hit, ...], tuple[SectionSpan, ...]]:
    """The hits with a line of text each: the reply to a question that nothing answers."""
    entries = [_Entry(hit, span, 0.0, LINE_CHARS) for hit, span in hits]
    return _shortened(entries, {}, excerpts.sought(query))


def _shortened(
    entries: Sequence[_Entry], beside: dict[tuple[str, ...], list[_Entry]], sought: Sought
) -> tuple[tuple[Hit, ...], tuple[SectionSpan, ...]]:
    """The hits of some entries with texts of their sizes, the first of a page with the sections ``beside`` it."""
    cut, spans = [], []
    for entry in entries:
        hit, span = _cut(entry, sought)
        also = tuple(_place(each, sought) for each in beside.pop(_section(hit)[:-1], ()))
        cut.append(replace(hit, also=also) if also else hit)
        spans.append(span)
    return tuple(cut), tuple(spans)


def _wanted(entry: _Entry, sought: Sought, budget: int) -> tuple[int, int]:
    """The characters of the definition that matches, and all that an entry can use."""
    definition = excerpts.definition(entry.own, sought, max(budget, 1))
    return definition or (0, len(entry.hit.content))


def _is_heading_alone(hit: Hit, span: SectionSpan) -> bool:
    own = hit.content[span.start : span.end].strip()
    return own.startswith("#") and "\n" not in own


def _evidence(score: float, best: float) -> float:
    return float(max(score / best, 0.01) ** STEEPNESS) if best > 0 else 1.0


def _section(hit: Hit) -> tuple[str, ...]:
    """The page and breadcrumb of a hit."""
    return hit.collection or "", hit.version or "", hit.metadata.file_path, hit.metadata.heading_path


def _divide(entries: Sequence[_Entry], budget: int) -> None:
    """Give each entry its size: a line at least, of the rest a share by its evidence, and no more than it wants."""
    least = max(1, min(LINE_CHARS, budget // (2 * max(len(entries), 1))))
    for entry in entries:
        entry.size = min(entry.wanted, least)
    left = budget - sum(entry.size for entry in entries)
    still = [entry for entry in entries if entry.wanted > entry.size]
    while still and left > 0:
        total = sum(entry.evidence for entry in still)
        content = [entry for entry in still if entry.wanted - entry.size <= left * entry.evidence / total]
        for entry in content or still:
            more = entry.wanted - entry.size if content else int(left * entry.evidence / total)
            entry.size += more
        if not content:
            break
        left = budget - sum(entry.size for entry in entries)
        still = [entry for entry in still if entry.wanted > entry.size]
    for entry in sorted(entries, key=lambda entry: -entry.evidence):
        missing, donor = entry.needed - entry.size, max(entries, key=lambda entry: entry.size - entry.needed)
        if 0 < missing <= (donor.size - donor.needed) // DONATED:
            donor.size -= missing
            entry.size += missing


def _cut(entry: _Entry, sought: Sought) -> tuple[Hit, SectionSpan]:
    """A hit with the text of its entry's size, of the section that it names, and the span of that section in it."""
    hit, span = entry.hit, entry.span
    if len(hit.content) <= entry.size:
        return hit, span
    own = entry.own
    part = excerpts.excerpt(own, sought, entry.size)
    passage = own[part.start : part.end].rstrip()
    if len(passage) == len(own.rstrip()):  # it is whole: only other sections are left out
        return replace(hit, content=own), SectionSpan(0, len(own), span.line, span.parallel)
    at, line = len(part.before), span.line_at(own, part.start)
    lines = None
    if line is not None and span.parallel:
        lines = line, line + snippets.line_ends(passage)
    cut = replace(hit, content=f"{part.before}{passage}{part.after}", truncated=True, lines=lines)
    return cut, SectionSpan(at, at + len(passage), line, span.parallel)


def _place(entry: _Entry, sought: Sought) -> Place:
    """A further section, with its text."""
    hit, _ = _cut(entry, sought)
    place = hit.metadata
    return Place(place.heading_path, hit.anchor, place.start_line, place.end_line, hit.content)
