"""Scores: how well a chunk's words and vectors fit a question, and how the two are made one.

Pure arithmetic over candidates that somebody else found. The parameters were chosen on 151 questions
over six documentation sets, and do not help on each; docs/performance.md says how, and how far to trust it.
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
"""Title, breadcrumb, content, derived terms (with the words of the path, which only score)."""
K1, B = 1.2, 0.75
DENSE_WEIGHT = 0.5
"""Weight of the vectors' part against the words' part (1)."""
HEADING_WEIGHT = 0.3
"""Weight of the share of the question that stands in the breadcrumb or the title."""
PAGE_WEIGHT = 1.0
"""Weight of a page's mean vector beside a chunk's best window."""
SIBLING_BOOST, MAX_BOOSTED = 0.4, 4
"""How far, and how many, sections of a page are raised toward its best one."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A candidate's words: token counts of title, breadcrumb, content and derived terms, at least of what is asked
    for; and how many words it has in all."""

    counts: tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]
    length: int


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What the score of a hit is made of; their sum. ``words`` and ``heading`` come from the keyword side, ``vectors``
    from the semantic one, ``page`` is what the best section of the same page lends. Of a semantic search: one cosine.
    """

    words: float
    heading: float
    vectors: float
    page: float


def idf(frequency: int, total: int) -> float:
    """Inverse document frequency of a term in ``frequency`` of ``total`` chunks, never negative (Lucene's form)."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def bm25f(fields: Fields, weights: Mapping[str, float], average: float, phrases: float) -> tuple[float, float]:
    """(score, heading coverage) of one candidate.

    The score is BM25F (Robertson, Zaragoza and Taylor 2004): field-weighted term counts, saturated once.
    ``weights``: token -> idf times its weight in the question. ``phrases``: the summed weights of the phrases it
    holds, each as one occurrence. Heading coverage is the share of ``weights`` that stands in breadcrumb or title.
    """
    norm = K1 * (1 - B + B * fields.length / max(average, 1.0))
    score, covered = phrases * (K1 + 1) / (1 + norm), 0.0
    in_title, in_heading, in_content, in_terms = fields.counts
    of_title, of_heading, of_content, of_terms = FIELD_WEIGHTS
    for token, weight in weights.items():  # spelled out: this is the innermost loop of a search
        frequency = (
            of_title * in_title.get(token, 0)
            + of_heading * in_heading.get(token, 0)
            + of_content * in_content.get(token, 0)
            + of_terms * in_terms.get(token, 0)
        )
        if frequency:
            score += weight * frequency * (K1 + 1) / (frequency + norm)
            if token in in_heading or token in in_title:
                covered += weight
    return score, covered / (sum(weights.values()) or 1.0)


def fuse(
    lexical: NDArray[np.float64],
    coverage: NDArray[np.float64],
    dense: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One score in 0..1 a candidate (n,): a convex sum of its words, its heading and its vectors (None: without); and
    these three summands (n, 3).

    ``lexical`` is taken relative to the best candidate; ``dense`` is in 0..1 already.
    """
    best = lexical.max(initial=0.0)
    words, heading = lexical / best if best > 0 else lexical, HEADING_WEIGHT * coverage
    vectors, full = np.zeros_like(words), 1 + HEADING_WEIGHT
    if dense is not None:
        vectors, full = DENSE_WEIGHT * dense, full + DENSE_WEIGHT
    return (words + heading + vectors) / full, np.stack((words, heading, vectors), axis=1) / full


def normalize(scores: NDArray[np.floating], mean: float, peak: float) -> NDArray[np.float64]:
    """Where scores lie between the mean of all (0) and the best of all (1); 0 below."""
    return np.maximum((scores.astype(np.float64) - mean) / max(peak - mean, 1e-9), 0.0)


def boost_siblings(scores: Sequence[float], pages: Sequence[int]) -> list[float]:
    """Raise the best few sections of each page part of the way to the page's best one.

    A page that answers well answers in more than one place; the order of the pages by their best section
    stays what it was. ``scores`` and ``pages`` are in the same order; so is the result.
    """
    best: dict[int, float] = {}
    seen: dict[int, int] = {}
    found = list(scores)
    for place in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        page = pages[place]
        best.setdefault(page, scores[place])
        seen[page] = seen.get(page, 0) + 1
        if seen[page] <= MAX_BOOSTED:
            found[place] += SIBLING_BOOST * (best[page] - scores[place])
    return found
