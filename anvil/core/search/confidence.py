"""Confidence: how likely it is that a result answers the question.

A score compares a result with the other results of one search, so the best of nothing scores like an answer. Confidence
is made of evidence that needs no other result: how near in meaning, and how much of what a perfect match of the words
would score. A logistic function, fitted by ``scripts/fit_confidence.py``, turns that into a probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

DIGITS = 2
"""Confidence is rounded: more digits would claim a precision that no fit has."""


class Evidence(NamedTuple):
    """What is known of one question and one section, each on a scale that depends on no other result.

    ``words``: BM25 of the section as a share of what a perfect match of all words of the question would score, 0..1.
    ``unknown``: the share of the question, by the weight of its words, that occurs nowhere in the index, 0..1.
    ``length``: how many different words the question asks for. ``cosine`` of the section's best window, and ``page``,
    of the mean of its page; None without vectors.
    """

    words: float
    unknown: float
    length: int
    cosine: float | None = None
    page: float | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of a logistic function: one for each kind of evidence, and the intercept."""

    intercept: float
    words: float
    unknown: float
    length: float
    cosine: float = 0.0
    page: float = 0.0


@dataclass(frozen=True, slots=True)
class Fits:
    """The fits that apply to one index: ``vectors`` for results with vectors of its embedding model (None: that model
    was not fitted), ``words`` for all others."""

    words: Fit
    vectors: Fit | None

    def confidence(self, evidence: Evidence) -> float:
        """The probability that the section answers, 0..1, rounded."""
        fit = self.vectors if self.vectors is not None and evidence.cosine is not None else self.words
        return round(probability(fit, evidence), DIGITS)


def probability(fit: Fit, evidence: Evidence) -> float:
    """The probability that the section answers, in 0..1; higher for more words held and for higher cosines."""
    words, unknown, length, cosine, page = evidence
    total = fit.intercept + fit.words * words + fit.unknown * unknown + fit.length * math.log1p(length)
    total += fit.cosine * (cosine or 0.0) + fit.page * (page or 0.0)
    return 1 / (1 + math.exp(-max(min(total, 500.0), -500.0)))
