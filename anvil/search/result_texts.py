"""The texts of results: the section that each one names, and how the text of a reply is divided among them.

A chunk may have several short sections. The words of the question decide which of them a result names. If two sections
fit equally, the window that is nearest to the question decides, and without vectors the first section is taken.

Text is divided by evidence. If the first result is clearly the best, it has nearly all of the text and each other one a
line. If several are near, they share it. Further sections of a page are named; those that are near have text, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from anvil.formats.characters import line_ends
from anvil.formats.patterns import lazy_pattern
from anvil.index_file.table_rows import CHUNK_BITS, SearchedText, SectionPlace, StoredChunk, is_parallel, section_url
from anvil.results import Hit, Place
from anvil.search import excerpts, ranking
from anvil.search.excerpts import Excerpt, Sought
from anvil.search.ranking import RankedChunk
from anvil.text import headings, visible_text
from anvil.text import query as lexicon
from anvil.text.query import Stemmer
from anvil.values import SEPARATOR

_BY_LABEL = lazy_pattern(
    r"\[(?<![\w\]\\!]\[)([^\[\]\r\n^][^\[\]\r\n]{0,200})\](?:\[((?!\^)[^\[\]\r\n]{0,100})\](?!\()|(?![(\[:]))"
)
"""``[words][label]``, ``[words][]`` or ``[label]``. Behind a word it may be an index, as in ``rows[0][1]``. A pattern
that begins with a character is searched 50 times as fast as one that begins with what is before it."""
_SAYS_NOTHING = re.compile(r"[\d ]*").fullmatch
LINK_SHARE = 0.5
"""The least share of a list of links, in characters, that are links with their targets."""
_LINK_ITEM = lazy_pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+[*_`]*!?\[|[ \t]")
"""A line of a list of links: an item that begins with a link, or the continuation of the line before it."""
_LINK = lazy_pattern(r"(?i)!?\[[^\[\]]*\]\((?!https?:)[^()\s]*\)")
"""A link to a page of the documentation. A link to another site, or to an issue of a changelog, may be the answer."""
DIGITS = 6
"""Scores of sections are rounded before they are compared."""


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """The span of the section that a hit names, in the hit's content.

    ``line``: of ``start``, in the source file; None if the text is in no file. ``parallel``: each line of the text is a
    line of the file.
    """

    start: int
    end: int
    line: int | None
    parallel: bool

    def line_at(self, section: str, offset: int) -> int | None:
        """The source line of a character of the section; the line of the section if the lines are not parallel."""
        return self.line + line_ends(section, offset) if self.line and self.parallel else self.line


class SectionChooser:
    """Chooses sections for one question, by the weights of its tokens and phrases."""

    def __init__(
        self, tokens: Mapping[str, float], phrases: Mapping[str, float], average_length: float, stem: Stemmer
    ) -> None:
        """``average_length``: the mean number of words in a chunk."""
        self._tokens, self._average_length, self._stem = tokens, average_length, stem
        self._counts = stem.counter(tokens)
        self._phrases = [(f" {' '.join(stem(text))} ", weight) for text, weight in phrases.items()]

    def score(self, heading: str, text: str) -> float:
        """How well a section fits the words; 0 if it has none of them."""
        phrase_weight = 0.0
        if self._phrases:
            padded = f" {' '.join(self._stem(text))} "
            phrase_weight = sum(weight for phrase, weight in self._phrases if phrase in padded)
        lowered = text.lower()
        in_heading, in_text = self._stem.heading_counts(heading), self._counts(text)
        # Outside ASCII a derived term need not be a part of the text, such as a word without its marks.
        missing = (token for token in self._tokens if token not in in_text)
        within = any(not lowered.isascii() or (token[:-1] or token) in lowered for token in missing)
        derived = self._counts(lexicon.derived_terms(text)) if within else {}  # parts of longer words
        counts: ranking.Counts = {}, in_heading, in_text, derived
        length = len(text.split())
        return round(ranking.bm25f(counts, length, self._tokens, self._average_length, phrase_weight)[0], DIGITS)

    def choose(
        self, chunk: StoredChunk, sections: Sequence[SectionPlace], window: Callable[[], tuple[int, int] | None]
    ) -> SectionPlace:
        """The best of the ``sections`` of a chunk. ``window``: gives the span of its content that is nearest in
        meaning."""
        if len(sections) == 1:
            return sections[0]
        scores = [
            self.score(section.heading_path.rpartition(SEPARATOR)[2], _own(chunk, section)) for section in sections
        ]
        best = max(scores)
        best_fitting = [section for section, score in zip(sections, scores, strict=True) if score == best]
        if len(best_fitting) > 1 and (span := window()) is not None:
            start, end = chunk.start + span[0], chunk.start + span[1]
            return max(best_fitting, key=lambda section: min(end, section.end) - max(start, section.start))
        return best_fitting[0]


def _own(chunk: StoredChunk, section: SectionPlace) -> str:
    """The part of a chunk's content that belongs to a section."""
    return chunk.content[max(section.start - chunk.start, 0) : section.end - chunk.start]


def with_targets(text: str, definitions: Callable[[], Mapping[str, str]]) -> str:
    """A text in which links by label have the targets that are defined elsewhere in the page.

    ``definitions``: gives label -> target. Without a definition, ``[words][24]`` and ``[words][]`` become ``words``:
    such a label says nothing.
    """
    links = list(_BY_LABEL.finditer(text))
    targets = definitions() if links else {}
    target_of = [(link, targets.get(headings.label(link[2] or link[1]))) for link in links]
    repaired = [
        (link, target) for link, target in target_of if target or (link[2] is not None and _SAYS_NOTHING(link[2]))
    ]
    if not repaired:  # most texts; to find code in a text takes longer
        return text
    code = [span for span in visible_text.spans(text) if span.kind in visible_text.CODE]
    begins = [span.start for span in code]
    pieces: list[str] = []
    at = 0
    for link, target in repaired:
        before = bisect_right(begins, link.start()) - 1
        if before < 0 or link.start() >= code[before].end:
            address = f"<{target}>" if target and re.search(r"[\s()]", target) else target
            pieces += text[at : link.start()], f"[{link[1]}]({address})" if target else link[1]
            at = link.end()
    return "".join([*pieces, text[at:]])


def hit(
    chunk: StoredChunk,
    score: float,
    confidence: float,
    section: SectionPlace | None,
    page_anchor: str,
    definitions: Callable[[], Mapping[str, str]],
) -> tuple[Hit, SectionSpan]:
    """A result that names ``section``, or the part of it in this chunk, and the span of that.

    ``page_anchor``: the anchor in the chunk's own URL. ``definitions``: of the links by label in the page.
    """

    def shown(text: str) -> str:
        return with_targets(visible_text.without_tag_indents(text), definitions)

    place, size = chunk.metadata, len(chunk.content)
    parallel = is_parallel(chunk.content, place.start_line, place.end_line)
    if section is None:  # a text without any section
        content = shown(chunk.content)
        return Hit(content, score, place, title=chunk.title, confidence=confidence), SectionSpan(
            0, len(content), place.start_line, parallel
        )
    page_url = place.url.removesuffix(f"#{page_anchor}") if place.url and page_anchor else place.url
    start, end = section.start - chunk.start, section.end - chunk.start
    named = replace(
        place,
        heading_path=section.heading_path,
        heading_level=section.heading_level,
        char_count=min(end, size) - max(start, 0),
        start_line=section.start_line if start >= 0 else place.start_line,
        end_line=section.end_line if end <= size else place.end_line,
        url=section_url(page_url, section.anchor),
    )
    is_whole, first = start >= 0 and end <= size, max(start, 0)
    parts = chunk.content[:first], chunk.content[first:end], chunk.content[end:]
    before, own, after = map(shown, parts)
    span = SectionSpan(len(before), len(before) + len(own), named.start_line, parallel)
    content = before + own + after
    return Hit(content, score, named, not is_whole, chunk.title, confidence, anchor=section.anchor), span


BASE_CHARS, CHARS_PER_RESULT = 800, 100
"""Characters of the budget of a search that gives none: in all, and for each result."""
LINE_CHARS = 80
"""Characters that each result has at least, if the budget has twice as many for each."""
STEEPNESS = 10
"""Evidence is the score as a share of the best one, to this power. Measured with 329 questions that people asked:
results with at least .9 of the best score have the section that answers in a quarter of the cases, those below .8 in
one of fifty."""
ENOUGH_EVIDENCE = 0.3
"""Evidence, about .89 of the best score, from which on a further section has text, and a text gets what others leave. A
line for each further section took two thirds of the text from the sections that answer. In 208 questions, replies of
the same length had .31 of the text of those sections, and have .40 without such lines."""
FURTHER_SHARE = 0.7
"""Share of the score of a page's result from which on a further section of the page is named."""
DONATED_PART = 2
"""The longest text gives at most one part in so many to a definition that would be cut."""
MAX_ALSO = 2
"""Further sections of its page that a result names."""


class _Cut(NamedTuple):
    """A hit with a text of some size, the span of the named section in it, and the excerpt of that section."""

    hit: Hit
    span: SectionSpan
    part: Excerpt


@dataclass(slots=True)
class _Entry:
    """A text of the reply, its evidence, and the number of characters that it may have."""

    hit: Hit
    span: SectionSpan
    evidence: float
    size: int = 0
    is_further: bool = False
    """Whether it is a further section. It is named without text if it is not near."""
    needed: int = 0
    """Characters of the definition that matches, in a list of definitions."""
    wanted: int = 0
    """Characters of all the text that it can use."""
    cuts: dict[int, _Cut] = field(default_factory=dict)
    """Size -> cut. To make them is the longest part of a reply's work, and each is looked at up to three times."""

    @property
    def own(self) -> str:
        return self.hit.content[self.span.start : self.span.end]

    def cut(self, sought: Sought) -> _Cut:
        """The hit with a text of its size."""
        if self.size not in self.cuts:
            self.cuts[self.size] = _cut(self, sought)
        return self.cuts[self.size]


def within_budget(
    hits: Sequence[tuple[Hit, SectionSpan]], further: Sequence[tuple[Hit, SectionSpan]], query: str, max_chars: int
) -> list[tuple[Hit, SectionSpan]]:
    """The hits, with contents of at most ``max_chars`` together, each with the ``further`` sections of its page.

    A text that is too long is cut to the passage of the named section that matches. Metadata and the number of hits
    stay.
    """
    best = max((hit.score for hit, _ in hits), default=0.0)
    entries = [_Entry(hit, span, _evidence(hit.score, best)) for hit, span in hits]
    named = {_section(entry.hit) for entry in entries}
    beside: dict[tuple[str, ...], list[_Entry]] = {}
    for hit, span in further:
        of_page = beside.setdefault(_section(hit)[:-1], [])
        entry = _Entry(hit, span, _evidence(hit.score, best), is_further=True)
        if _section(hit) not in named and len(of_page) < MAX_ALSO and not is_heading_alone(entry.own):
            named.add(_section(hit))
            of_page.append(entry)
    sought = excerpts.sought(query)
    all_entries = [*entries, *(entry for of_page in beside.values() for entry in of_page)]
    for entry in all_entries:
        is_shown = not entry.is_further or entry.evidence >= ENOUGH_EVIDENCE
        entry.wanted = len(entry.hit.content) if is_shown else 0
    for entry in entries:  # not for a further section: a passage of it is enough
        if definition := excerpts.definition(entry.own, sought, max(max_chars, 1)):
            entry.needed, entry.wanted = definition
    _divide(all_entries, max_chars)
    left = max_chars - sum(len(entry.cut(sought).hit.content) for entry in all_entries)
    _fill(entries, left, sought)
    return _shortened(entries, beside, sought)


def lines(hits: Sequence[tuple[Hit, SectionSpan]], query: str) -> list[tuple[Hit, SectionSpan]]:
    """The hits with a line of text each: the reply to a question that nothing answers."""
    entries = [_Entry(hit, span, 0.0, LINE_CHARS) for hit, span in hits]
    return _shortened(entries, {}, excerpts.sought(query))


def _shortened(
    entries: Sequence[_Entry], beside: dict[tuple[str, ...], list[_Entry]], sought: Sought
) -> list[tuple[Hit, SectionSpan]]:
    """The hits of some entries with texts of their sizes. The first hit of a page has the sections ``beside`` it."""
    shortened = []
    for entry in entries:
        hit, span, _ = entry.cut(sought)
        also = tuple(_place(each, sought) for each in beside.pop(_section(hit)[:-1], ()))
        shortened.append((replace(hit, also=also) if also else hit, span))
    return shortened


def definitions_first(
    results: Sequence[RankedChunk], query: str, texts: Mapping[int, SearchedText]
) -> Sequence[RankedChunk]:
    """The results of a query that is one name, such as ``READ_HISTORY``, first those that define it: with a heading, a
    row of a table or an item of a list that begins with it. A page whose title has the name stays before them.
    ``texts``: those of all rows."""
    name = lexicon.single_name(query)
    if not name or not results or lexicon.bare(name) in lexicon.bare(texts[results[0].row].title):
        return results
    defines = re.compile(rf"^[ \t]*(?:\||[-*+]|#+)[ \t]*[`*\[\\]*{re.escape(name)}(?![.-]?\w)", re.M | re.I).search
    defined = {result.row for result in results if defines(texts[result.row].content)}
    best = max(result.score for result in results)
    first = [result._replace(score=best) for result in results if result.row in defined]
    return first + [result for result in results if result.row not in defined]


def without_bare_sections(results: Sequence[RankedChunk], texts: Mapping[int, SearchedText]) -> list[RankedChunk]:
    """The results, where a section that says nothing by itself is replaced by another one of its page.

    A heading without text is replaced by the best section below it, a list of links by the best section that is
    nearly as good. If there is none, it stays. ``texts``: those of all rows.
    """
    bare = {result.row for result in results if is_heading_alone(texts[result.row].content)}
    lists = {result.row for result in results if is_link_list(texts[result.row].content)}
    if not bare and not lists:
        return list(results)
    others = [result for result in results if result.row not in bare and result.row not in lists]
    best: dict[int, RankedChunk] = {}
    for result in results:
        row = result.row
        if row in bare or row in lists:
            of_page = (other for other in others if other.row >> CHUNK_BITS == row >> CHUNK_BITS)
            parent, least = f"{texts[row].heading_path}{SEPARATOR}", FURTHER_SHARE * result.score
            replacements = (
                other.row
                for other in of_page
                if (texts[other.row].heading_path.startswith(parent) if row in bare else other.score >= least)
            )
            row = next(replacements, row)
        best.setdefault(row, result._replace(row=row))
    return list(best.values())


def is_heading_alone(section: str) -> bool:
    """Whether a section has no text under its heading."""
    return not headings.under_heading(section).strip()


def is_link_list(section: str) -> bool:
    """Whether a section is a list of links, such as "See also": it has the words of the pages that answer."""
    text = headings.under_heading(section).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    is_list = bool(lines) and all(_LINK_ITEM.match(line) for line in lines)
    return is_list and sum(len(link[0]) for link in _LINK.finditer(text)) >= LINK_SHARE * len(text)


def _evidence(score: float, best: float) -> float:
    return float(max(score / best, 0.01) ** STEEPNESS) if best > 0 else 1.0


def _section(hit: Hit) -> tuple[str, ...]:
    """The page and breadcrumb of a hit."""
    return hit.collection or "", hit.version or "", hit.metadata.file_path, hit.metadata.heading_path


def _divide(entries: Sequence[_Entry], budget: int) -> None:
    """Set the size of each entry: at least a line for a result, and a share of the rest by evidence, at most what it
    wants."""
    results = [entry for entry in entries if not entry.is_further]
    least = max(1, min(LINE_CHARS, budget // (2 * max(len(results), 1))))
    for entry in results:
        entry.size = min(entry.wanted, least)
    left = budget - sum(entry.size for entry in entries)
    short = [entry for entry in entries if entry.wanted > entry.size]
    while short and left > 0:
        total = sum(entry.evidence for entry in short)
        # Entries that want no more than their share get all that they want. The others share what they leave.
        modest = [entry for entry in short if entry.wanted - entry.size <= left * entry.evidence / total]
        for entry in modest or short:
            entry.size += entry.wanted - entry.size if modest else int(left * entry.evidence / total)
        if not modest:
            break
        left = budget - sum(entry.size for entry in entries)
        short = [entry for entry in short if entry.wanted > entry.size]
    for entry in sorted(entries, key=lambda entry: -entry.evidence):
        missing = entry.needed - entry.size
        if missing > 0:
            donor = max(entries, key=lambda entry: entry.size - entry.needed)
            if missing <= (donor.size - donor.needed) // DONATED_PART:
                donor.size -= missing
                entry.size += missing


def _fill(entries: Sequence[_Entry], left: int, sought: Sought) -> None:
    """Give characters that all texts leave, because they end with a paragraph or a line, to some results, the best
    first.

    These are results that are whole with them, that end in the middle of a list or of code, or that end with a line
    that introduces one.
    """
    for entry in sorted(entries, key=lambda entry: -entry.evidence):
        size = len(entry.cut(sought).hit.content)
        # A definition has all that it can use, and a line is enough for a weak result.
        if entry.needed or entry.evidence < ENOUGH_EVIDENCE or len(entry.hit.content) <= size:
            continue
        is_whole = len(entry.own) - size <= left
        if is_whole or (left >= LINE_CHARS and excerpts.goes_on(entry.own, entry.cut(sought).part)):
            old_size, entry.size = entry.size, size + left
            new_chars = len(entry.cut(sought).hit.content)
            if new_chars > size:
                left -= new_chars - size
            else:
                entry.size = old_size


def _cut(entry: _Entry, sought: Sought) -> _Cut:
    hit, span, own = entry.hit, entry.span, entry.own
    if len(hit.content) <= entry.size:
        return _Cut(hit, span, Excerpt("", 0, len(own)))
    if not entry.size:
        nowhere = SectionSpan(0, 0, span.line, span.parallel)
        return _Cut(replace(hit, content="", truncated=True), nowhere, Excerpt("", 0, 0))
    part = excerpts.excerpt(own, sought, entry.size)
    passage = own[part.start : part.end].rstrip()
    if len(passage) == len(own.rstrip()):  # it is whole: only other sections are left out
        return _Cut(replace(hit, content=own), SectionSpan(0, len(own), span.line, span.parallel), part)
    at, line = len(part.before), span.line_at(own, part.start)
    lines = None
    if line is not None and span.parallel:
        lines = line, line + line_ends(passage)
    cut = replace(hit, content=f"{part.before}{passage}{part.after}", truncated=True, lines=lines)
    return _Cut(cut, SectionSpan(at, at + len(passage), line, span.parallel), part)


def _place(entry: _Entry, sought: Sought) -> Place:
    """A further section, with its text."""
    hit = entry.cut(sought).hit
    place = hit.metadata
    return Place(place.heading_path, hit.anchor, place.start_line, place.end_line, hit.content)
