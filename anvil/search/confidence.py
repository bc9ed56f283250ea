"""Confidence: how likely it is that a result answers the question.

A score compares the results of one search with each other, so the best of them has a high score even if none answers.
Confidence uses evidence that needs no other result: how near a section is in meaning, and its score by words as a share
of the score of a perfect match. A logistic function, fitted by ``scripts/fit_confidence.py``, turns it into a
probability.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from anvil.text.query import bounded

DIGITS = 2
"""Confidence is rounded: more digits would claim a precision that no fit has."""
UNLIKELY = 0.1
"""Below this, a result is called unlikely to answer. ``scripts/fit_confidence.py`` prints how many questions with an
answer, and how many without one, stay below this line; docs/performance.md has the table."""
NOT_COVERED = 0.03
"""Below this, nothing is taken to answer, and a default reply has no texts. One of 329 questions with an answer stays
below this line, and two in three of 720 questions that other documentation answers."""
MAX_NAME_WORDS = 3
"""A question with no more words may be a name, which vectors do not know. A text that has all of them is taken to
answer, however low its confidence is."""
MAX_COUNTED_WORDS = 20
"""Words of a question that make its match stronger evidence: as many as the longest question of the fit had."""
FILE = "confidence.json"
"""Next to this module. ``scripts/fit_confidence.py`` writes it, with its origin."""


class MatchEvidence(NamedTuple):
    """The evidence for one question and one section. No value depends on other results.

    - ``words``: BM25 of the section, as a share of the score of a perfect match of all words of the question, 0..1.
    - ``unknown``: the share of the question's words that occur nowhere in the index, 0..1.
    - ``length``: the number of different words in the question.
    - ``cosine``: of the section's best window; None without vectors.
    - ``page``: the cosine of the mean of its page; None without vectors.
    """

    words: float
    unknown: float
    length: int
    cosine: float | None = None
    page: float | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of a logistic function: one for each of :func:`features`, and the intercept."""

    intercept: float
    words: float
    short: float
    unknown: float
    cosine: float = 0.0
    page: float = 0.0


@dataclass(frozen=True, slots=True)
class Fits:
    """The fits for one index.

    ``vectors``: for results with vectors of its embedding model; None if that model was not fitted. ``words``: for all
    other results.
    """

    words: Fit
    vectors: Fit | None

    def confidence(self, evidence: MatchEvidence) -> float:
        """The probability that the section answers, 0..1, rounded."""
        return round(logistic(self.log_odds(evidence)), DIGITS)

    def log_odds(self, evidence: MatchEvidence) -> float:
        """The log-odds of that probability."""
        fit = self.vectors if self.vectors is not None and evidence.cosine is not None else self.words
        return log_odds(fit, evidence)


@cache
def fits_for(model_digest: str) -> Fits:
    """The fits for an index with vectors of this model. Those of a model that was not fitted use words alone."""
    table = json.loads(importlib.resources.files("anvil.search").joinpath(FILE).read_text(encoding="utf-8"))
    vectors = next((model["fit"] for model in table["models"] if model["digest"] == model_digest), None)
    return Fits(words=Fit(**table["words"]["fit"]), vectors=None if vectors is None else Fit(**vectors))


def features(evidence: MatchEvidence) -> tuple[float, float, float, float, float]:
    """The numbers that a fit weighs, in the order of :class:`Fit`.

    The share of the words counts more by the root of their number: two words of two are met by chance more often than
    ten of ten. It counts once more for short questions: a query of one or two words is for the section that has them.
    """
    words, unknown, length, cosine, page = evidence
    match = words * math.sqrt(min(length, MAX_COUNTED_WORDS))
    return match, words / max(length, 1), unknown, cosine or 0.0, page or 0.0


def log_odds(fit: Fit, evidence: MatchEvidence) -> float:
    """The log-odds of the probability that the section answers. More matching words and higher cosines raise it."""
    coefficients = (fit.words, fit.short, fit.unknown, fit.cosine, fit.page)
    total: float = fit.intercept + sum(map(operator.mul, coefficients, features(evidence)))
    return total


def logistic(log_odds: float) -> float:
    """The probability of log-odds."""
    return 1 / (1 + math.exp(-max(min(log_odds, 500.0), -500.0)))


def has_name(query: str, texts: Iterable[str]) -> bool:
    """Whether the question has so few words that it may be a name, and one of the texts has each of them as it is
    written, but for capitals: ``block-spacing`` is not "block" and "spacing"."""
    names = [word.strip("`'\"?!.,:;()") for word in bounded(query).casefold().split()]
    if not 0 < len(names) <= MAX_NAME_WORDS or not all(names):
        return False
    whole = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in names]
    return any(all(name.search(text) for name in whole) for text in map(str.casefold, texts))


def is_covered(confidences: Iterable[float], is_named: bool) -> bool:
    """Whether one of some results may answer. ``is_named``: one has the name that the question is."""
    return is_named or max(confidences) >= NOT_COVERED


def note(confidences: Iterable[float], minimum: float = 0.0, *, is_named: bool = False) -> str | None:
    """A sentence for the reader if no result is likely to answer, or if none reaches ``minimum``; else None.

    ``confidences``: of all candidates, also of those that ``minimum`` leaves out. ``is_named``: a result has the name
    that the question is.
    """
    best = max(confidences, default=None)
    if best is None:
        return None
    if best < UNLIKELY and not is_named:
        return f"Probably nothing here answers this: the highest confidence of a result is {best:.2f}."
    if best < minimum:
        return f"No result has the confidence of {minimum:g} that was asked for; the highest is {best:.2f}."
    return None
