"""Scoring: how well the words and vectors of a candidate match a query, and the sum of both.

The parameters were chosen on 151 queries over six documentation sets. They do not help on each;
docs/performance-method.md has the measurement and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIELD_WEIGHTS = (2.0, 2.0, 1.0, 0.5)
"""Of title, breadcrumb, content, and derived terms with the words of the path."""
K1, B = 1.2, 0.75
DERIVED_SHARE = FIELD_WEIGHTS[3] * (1 + K1) / (FIELD_WEIGHTS[3] + K1)
"""Score of a derived term that a section has once, as a share of that of a word that it has once in its content."""
DENSE_WEIGHT = 0.5
"""Weight of the vectors; the words have 1."""
GOOD_MATCH = 0.4
"""Share of the score of a perfect match from which on words have their whole weight."""
HEADING_WEIGHT = 0.3
"""Weight of the share of the query that is in the breadcrumb or the title."""
LINK_WEIGHT = 0.4
"""Weight of the share of the query that is in the texts of the links to the page."""
POPULAR_WEIGHT = 0.2
"""Weight of the popularity of the page: how many others link to it."""
PAGE_WEIGHT, SEMANTIC_PAGE_WEIGHT = 1.0, 0.5
"""Weight of the mean vector of the page, in hybrid and in semantic mode; the best window of the chunk has 1."""
NEIGHBOUR_WEIGHT, NEIGHBOURS = 0.2, 3
"""Weight of the mean nearness of the next best sections of a page by vectors, and how many of them count: a page on the
subject has several, a page that mentions it has one."""
SIBLING_BOOST, MAX_BOOSTED = 0.4, 4
"""How far the score of a section is raised toward that of the page's best one, and how many sections of a page."""

PASSAGE_WEIGHT, MAX_READ = 0.2, 10
"""Weight of a passage that is read again, where all else together has 1; and how many results are read again. Weights
of .15 to .35 and 8 to 20 passages find as much; see docs/performance-method.md."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A candidate's words: token counts of title, breadcrumb, content and derived terms, at least for the tokens of the
    query; and its number of words."""

    counts: tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]
    length: int


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """The summands of a hit's score. ``words`` and ``heading`` are those of the keyword search, ``vectors`` that of the
    semantic one, ``links`` that of the links to the page, ``passage`` that of the passage when it is read again, and
    ``page`` that of the best section of the page. A semantic search has one summand, a cosine.
    """

    words: float
    heading: float
    vectors: float
    links: float
    passage: float
    page: float


def idf(frequency: int, total: int) -> float:
    """Inverse document frequency of a term in ``frequency`` of ``total`` chunks, never negative (Lucene's form)."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def bm25f(fields: Fields, weights: Mapping[str, float], average: float, phrases: float) -> tuple[float, float]:
    """(score, heading coverage) of one candidate.

    The score is BM25F (Robertson, Zaragoza and Taylor 2004): field-weighted term counts, saturated once.
    ``weights``: token -> idf times its weight in the query. ``phrases``: the sum of the weights of the phrases in the
    candidate, each as one occurrence. Heading coverage: the share of ``weights`` in the breadcrumb or the title.
    """
    norm = K1 * (1 - B + B * fields.length / max(average, 1.0))
    score, covered = phrases * (K1 + 1) / (1 + norm), 0.0
    in_title, in_heading, in_content, in_terms = fields.counts
    of_title, of_heading, of_content, of_terms = FIELD_WEIGHTS
    for token, weight in weights.items():  # without an inner loop: this is the hottest loop of a search
        is_in_heading = token in in_heading or token in in_title
        if is_in_heading or token in in_content or token in in_terms:
            frequency = (
                of_title * in_title.get(token, 0)
                + of_heading * in_heading.get(token, 0)
                + of_content * in_content.get(token, 0)
                + of_terms * in_terms.get(token, 0)
            )
            score += weight * frequency * (K1 + 1) / (frequency + norm)
            if is_in_heading:
                covered += weight
    return score, covered / (sum(weights.values()) or 1.0) if covered else 0.0


def fuse(
    lexical: NDArray[np.float64],
    coverage: NDArray[np.float64],
    dense: NDArray[np.float64] | None,
    links: NDArray[np.float64] | None,
    pages: Sequence[int],
    perfect: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A score in 0..1 for each candidate (n,), and its summands (n, 4): words, heading, vectors and links (None:
    without). ``links`` (n, 2) are the share of the query in the links to its page, and the page's popularity.

    ``lexical`` is divided by that of the best candidate. Where that one has less than ``GOOD_MATCH`` of ``perfect``,
    the score of a perfect match, words tell little about which page answers, so vectors decide more between the pages
    (``pages``: of each candidate), but not between the sections of a page. ``dense`` is in 0..1.
    """
    best = lexical.max(initial=0.0)
    words, heading = lexical / best if best > 0 else lexical, HEADING_WEIGHT * coverage
    vectors, linked, full = np.zeros_like(words), np.zeros_like(words), 1 + HEADING_WEIGHT
    if links is not None:
        linked, full = links @ (LINK_WEIGHT, POPULAR_WEIGHT), full + LINK_WEIGHT + POPULAR_WEIGHT
    if dense is not None:
        vectors = DENSE_WEIGHT * dense + NEIGHBOUR_WEIGHT * _neighbours(dense, pages)
        full += DENSE_WEIGHT + NEIGHBOUR_WEIGHT
        good = GOOD_MATCH * perfect
        words = _less(words, pages, 1 - min(best, good) / good if good > 0 else 0.0)
    summands = np.stack((words, heading, vectors, linked), axis=1) / full
    return (words + heading + vectors + linked) / full, summands


def with_passages(scores: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Scores with those of passages, and the summands of the passages. The first results have the
    ``values`` of :class:`anvil.embedding.passages.PassageScorer`; the lowest becomes 0 and the highest 1, as only
    differences within one question mean something. A result without a value has 0."""
    full, lowest = 1 + PASSAGE_WEIGHT, min(values)
    spread = max(values) - lowest
    summands = [PASSAGE_WEIGHT / full * (value - lowest) / spread if spread > 0 else 0.0 for value in values]
    summands += [0.0] * (len(scores) - len(values))
    return [score / full + summand for score, summand in zip(scores, summands, strict=True)], summands


def _neighbours(dense: NDArray[np.float64], pages: Sequence[int]) -> NDArray[np.float64]:
    """The mean of the next best ``NEIGHBOURS`` values of ``dense`` in the page of each candidate, after its best; one
    that is missing counts as 0."""
    by_page: dict[int, list[float]] = {}
    for page, value in zip(pages, dense.tolist(), strict=True):
        by_page.setdefault(page, []).append(value)
    means = {page: sum(sorted(values)[-NEIGHBOURS - 1 : -1]) / NEIGHBOURS for page, values in by_page.items()}
    return np.array([means[page] for page in pages], np.float64)


def _less(words: NDArray[np.float64], pages: Sequence[int], missing: float) -> NDArray[np.float64]:
    """``words`` without the share ``missing`` of the best section of each page, so that the order in a page stays."""
    if not missing:
        return words
    best_of_page: dict[int, float] = {}
    for page, share in zip(pages, words.tolist(), strict=True):
        best_of_page[page] = max(best_of_page.get(page, 0.0), share)
    best_shares = np.array([best_of_page[page] for page in pages], np.float64)
    return np.maximum(words - missing * best_shares, 0.0)


def normalize(scores: NDArray[np.floating], mean: float, peak: float) -> NDArray[np.float64]:
    """Scale scores so that the mean of all becomes 0 and the best of all 1; 0 below the mean."""
    return np.maximum((scores.astype(np.float64) - mean) / max(peak - mean, 1e-9), 0.0)


def boost_siblings(scores: Sequence[float], pages: Sequence[int]) -> list[float]:
    """Raise the scores of the best sections of each page toward that of its best one.

    A page that matches well often does so in several sections. The order of the pages by their best section does not
    change. ``scores``, ``pages`` and the result have the same order.
    """
    best: dict[int, float] = {}
    section_counts: dict[int, int] = {}
    boosted = list(scores)
    for index in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        page = pages[index]
        best.setdefault(page, scores[index])
        section_counts[page] = section_counts.get(page, 0) + 1
        if section_counts[page] <= MAX_BOOSTED:
            boosted[index] += SIBLING_BOOST * (best[page] - scores[index])
    return boosted
