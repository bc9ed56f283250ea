"""One scale for the results of several collections.

A result's confidence means the same in each collection, because it needs no other result. It is the common scale. The
words of the question tell in which collection they are at home: a word that nearly all of its uses are in one speaks
for that one. Inside a collection, its own ranking keeps the order.

The three weights were chosen on the questions of ``benchmarks/several_collections.py``; docs/performance.md has what
they reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anvil.search import scoring
from anvil.search.confidence import logistic

HOME_WEIGHT = 13.0
"""Log-odds for a collection that has all uses of all words, against one that has none of them."""
ORDER_WEIGHT = 8.0
"""Log-odds for one unit of the score in its own collection."""
NEARNESS_WEIGHT = 9.0
"""Log-odds for one unit of cosine, in :func:`estimate`."""
UNSEEN_CHUNKS = 30
"""Chunks that are added to the size of each collection, so that one use of a word in a small one says little."""
FIRST_RESULTS = 5
"""Results of a collection, of which the most likely one counts for the collection."""
ODDS_DIGITS, DIGITS = 2, 6
"""Log-odds are rounded: a smaller difference says nothing, and the order of the collections then decides."""


class Vocabulary(NamedTuple):
    """The words of a question in one collection: how many of its ``chunks`` hold each, and the words per chunk."""

    frequencies: Mapping[str, int]
    chunks: int
    average_length: float


def home_shares(weights: Mapping[str, float], vocabularies: Sequence[Vocabulary]) -> list[float]:
    """For each collection: the share of the question's words that is at home there, 0..1; all together are 1.

    ``weights``: of each word in the question. A word is divided by how dense it is in each collection, and counts more
    if it is rare in all of them together. Words that no collection has do not count.
    """
    total = sum(vocabulary.chunks for vocabulary in vocabularies)
    sizes = [(v.chunks + UNSEEN_CHUNKS) * math.sqrt(max(v.average_length, 1.0)) for v in vocabularies]
    shares, whole = [0.0] * len(vocabularies), 0.0
    for word, weight in weights.items():
        counts = [vocabulary.frequencies.get(word, 0) for vocabulary in vocabularies]
        if not any(counts):
            continue
        importance = weight * scoring.idf(sum(counts), total)
        densities = [count / size for count, size in zip(counts, sizes, strict=True)]
        dense = sum(densities)
        shares = [share + importance * density / dense for share, density in zip(shares, densities, strict=True)]
        whole += importance
    return [share / (whole or 1.0) for share in shares]


def estimate(share: float, nearness: float) -> float:
    """How promising a collection is, before it is searched, in log-odds. ``nearness``: the cosine of the chunk that is
    nearest in meaning, and that of its page, added."""
    return HOME_WEIGHT * share + NEARNESS_WEIGHT * nearness


def merged_scores(log_odds: Sequence[float], scores: Sequence[float], behind: float) -> list[float]:
    """The scores of one collection's results on the common scale, 0..1.

    ``log_odds``: of the confidence of each, and ``scores``: in its own collection, both best first. ``behind``: how
    much smaller its share of the words is than the largest one. The best result has the collection's confidence, if all
    words are at home there; each other one is as far below it as its own score is.
    """
    if not scores:
        return []
    best = max(log_odds[:FIRST_RESULTS]) - HOME_WEIGHT * behind
    odds = (round(best - ORDER_WEIGHT * (scores[0] - score), ODDS_DIGITS) for score in scores)
    return [round(logistic(each), DIGITS) for each in odds]
