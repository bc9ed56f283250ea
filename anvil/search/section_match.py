"""Which section of a chunk a result names: the one that fits the question best, by its own words.

A chunk may hold several short sections. The words of the question decide. If two sections fit equally, the window that
is nearest to the question decides, and without vectors the first section is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from anvil.index_file.fts_table import Stemmer
from anvil.index_file.rows import SectionPlace, StoredChunk, is_parallel, section_url
from anvil.results import Hit
from anvil.search import scoring, snippets
from anvil.text import query as lexicon
from anvil.text import visible_text
from anvil.values import SEPARATOR

DIGITS = 6
"""Scores of sections are rounded before they are compared."""


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """Where the text of the section that a hit names is in the hit's content.

    ``line``: of ``start``, in the source file; None where it stands in none. ``parallel``: each line of the text is one
    of the file.
    """

    start: int
    end: int
    line: int | None
    parallel: bool

    def line_at(self, section: str, offset: int) -> int | None:
        """The line of a character of the section: its own where it is known, else that of the section."""
        return self.line + snippets.lines_before(section, offset) if self.line and self.parallel else self.line


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """The weights of a question's tokens and phrases, and the mean number of words in a chunk."""

    tokens: dict[str, float]
    phrases: dict[str, float]
    average_length: float


class SectionChooser:
    """Chooses sections for one question."""

    def __init__(self, weights: QueryWeights, stem: Stemmer) -> None:
        self._weights, self._stem = weights, stem
        self._counts = stem.counter(weights.tokens)
        self._phrases = [(f" {' '.join(stem(text))} ", weight) for text, weight in weights.phrases.items()]

    def score(self, heading: str, text: str) -> float:
        """How well a section fits the words; 0 when it holds none of them."""
        phrase_weight = 0.0
        if self._phrases:
            padded = f" {' '.join(self._stem(text))} "
            phrase_weight = sum(weight for phrase, weight in self._phrases if phrase in padded)
        weights, lowered = self._weights.tokens, text.lower()
        in_heading, in_text = self._stem.heading_counts(heading), self._counts(text)
        within = any(token not in in_text and (token[:-1] or token) in lowered for token in weights)
        derived = self._counts(lexicon.derived_terms(text)) if within else {}  # parts of longer words
        fields = scoring.Fields(({}, in_heading, in_text, derived), len(text.split()))
        return round(scoring.bm25f(fields, weights, self._weights.average_length, phrase_weight)[0], DIGITS)

    def choose(
        self, chunk: StoredChunk, sections: Sequence[SectionPlace], window: Callable[[], tuple[int, int] | None]
    ) -> SectionPlace:
        """The best of the ``sections`` of a chunk. ``window``: the span of its content that is nearest in meaning."""
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
    """The part of a chunk's content that is a section's."""
    return chunk.content[max(section.start - chunk.start, 0) : section.end - chunk.start]


def hit(
    chunk: StoredChunk, score: float, confidence: float, section: SectionPlace | None, page_anchor: str
) -> tuple[Hit, SectionSpan]:
    """A result that names ``section``, or the part of it in this chunk, and the span of that. ``page_anchor``: the
    anchor in the chunk's own URL."""
    place, size = chunk.metadata, len(chunk.content)
    parallel = is_parallel(chunk.content, place.start_line, place.end_line)
    if section is None:  # a text without any section
        content = visible_text.shown(chunk.content)
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
    whole = start >= 0 and end <= size
    before, own = chunk.content[: max(start, 0)], chunk.content[max(start, 0) : end]
    before, own, after = visible_text.shown(before), visible_text.shown(own), visible_text.shown(chunk.content[end:])
    span = SectionSpan(len(before), len(before) + len(own), named.start_line, parallel)
    content = before + own + after
    return Hit(content, score, named, not whole, chunk.title, confidence, anchor=section.anchor), span
