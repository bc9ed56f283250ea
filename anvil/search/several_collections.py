"""Search over several collections: which of them are searched, and one scale for their results.

The common scale is confidence, which means the same in each collection, because it needs no other result. A collection
also gains by words of the question that are used mostly there. Inside a collection, its own ranking keeps the order.

The three weights were chosen on the questions of ``benchmarks/several_collections.py``; docs/performance.md has what
they reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anvil.errors import ConfigError
from anvil.requests import SearchRequest
from anvil.search import ranking
from anvil.search.confidence import logistic
from anvil.search.query_preparation import QueryVector, embed_query
from anvil.search.searcher import Candidates, RankedHits, Result, Searcher, ranked_hits, with_rewritten_query
from anvil.text import query as lexicon

SHORTLIST = 5
"""Collections that are searched: the most promising ones, and more if they have too few results."""
HOME_WEIGHT = 13.0
"""Log-odds for a collection that has all uses of all words, compared with one that has none of them."""
ORDER_WEIGHT = 8.0
"""Log-odds for one unit of the score in its own collection."""
NEARNESS_WEIGHT = 9.0
"""Log-odds for one unit of cosine, in :func:`estimate`."""
UNSEEN_CHUNKS = 30
"""Chunks that are added to the size of each collection, so that one use of a word in a small one says little."""
FIRST_RESULTS = 5
"""The first results of a collection. The most likely one of them stands for the collection."""
ODDS_DIGITS, DIGITS = 2, 6
"""Log-odds are rounded: a smaller difference says nothing, and the order of the collections then decides."""


def search(searchers: Sequence[Searcher], request: SearchRequest, question: QueryVector | None = None) -> RankedHits:
    """The best chunks of several indexes, with scores on one scale; see :meth:`Searcher.search`.

    All indexes are asked how promising they are, and only some are searched: a question to 20 collections costs little
    more than one to five. Of equal results, the one of the first index comes first. Indexes with vectors of another
    model are searched by words, and not at all in the mode ``semantic``; the caller has the notes on that. Raises
    :class:`ConfigError` for this mode if no index has vectors of the model.
    """
    if request.mode == "semantic" and not any(searcher.semantic for searcher in searchers):
        raise ConfigError(searchers[0].obstacle or "Semantic search is off.")
    request, question, notes = with_rewritten_query(searchers, request, question)
    semantic = [searcher for searcher in searchers if searcher.semantic]
    if request.mode != "keyword" and semantic and question is None:
        question = embed_query(request.query, semantic[0].provider)
    totals = [searcher.index.count(searcher.select(request)) for searcher in searchers]
    candidates: dict[int, Candidates] = {}
    if request.mode == "semantic":
        for number, searcher in enumerate(searchers):
            if searcher.semantic and totals[number]:
                candidates[number] = searcher.candidates(request, question)
        results = [Result(n, ranked.score, ranked) for n, found in candidates.items() for ranked in found.results]
    else:
        shares = _home_shares(searchers, request.query)
        is_read = question is not None and request.mode == "hybrid" and not question.unread
        vector = question.vector if question is not None and is_read else None
        for number in _most_promising(searchers, shares, totals, vector, request):
            if len(candidates) >= SHORTLIST and sum(len(c.results) for c in candidates.values()) >= request.top_k:
                break
            candidates[number] = searchers[number].candidates(request, question)
        results = _on_one_scale(searchers, candidates, shares)
    results.sort(key=lambda result: (-result.score, result.number))
    hits = ranked_hits(searchers, request, candidates, sum(totals), results)
    return replace(hits, notes=(*notes, *hits.notes))


def _most_promising(
    searchers: Sequence[Searcher],
    shares: Sequence[float],
    totals: Sequence[int],
    vector: NDArray[np.float32] | None,
    request: SearchRequest,
) -> list[int]:
    """The numbers of the indexes that have chunks which pass the filter, the most promising first."""
    numbers = [number for number, total in enumerate(totals) if total]
    if len(numbers) <= SHORTLIST:
        return numbers
    nearness: dict[int, float] = {}
    for number in numbers:
        index = searchers[number].index
        if vector is not None and searchers[number].semantic and index.has_vectors:
            for near in index.nearest(vector, 1, searchers[number].select(request))[:1]:
                nearness[number] = near.cosine + near.page
    mean = sum(nearness.values()) / max(len(nearness), 1)  # stands for an index that is searched by words only
    return sorted(numbers, key=lambda number: -estimate(shares[number], nearness.get(number, mean)))


def _on_one_scale(
    searchers: Sequence[Searcher], candidates: Mapping[int, Candidates], shares: Sequence[float]
) -> list[Result]:
    """The candidates of all indexes with comparable scores."""
    largest = max((shares[number] for number in candidates), default=0.0)
    results = []
    for number, found in candidates.items():
        log_odds = [searchers[number].fits.log_odds(ranked.evidence) for ranked in found.results]
        own_scores = [ranked.score for ranked in found.results]
        scores = merged_scores(log_odds, own_scores, largest - shares[number])
        results += [Result(number, *pair) for pair in zip(scores, found.results, strict=True)]
    return results


def _home_shares(searchers: Sequence[Searcher], query: str) -> list[float]:
    """The share of the question's words that is used in each index, as :func:`home_shares`."""
    terms = lexicon.parse_query(query, searchers[0].index.stem).terms  # all indexes have one tokenizer
    words = {token: word for token, (_, word) in terms.items()}
    vocabularies = [
        Vocabulary(searcher.index.frequencies(words), searcher.index.count(), searcher.index.average_length)
        for searcher in searchers
    ]
    return home_shares({token: weight for token, (weight, _) in terms.items()}, vocabularies)


class Vocabulary(NamedTuple):
    """The words of a question in one collection: how many of its ``chunks`` have each, and the words per chunk."""

    frequencies: Mapping[str, int]
    chunks: int
    average_length: float


def home_shares(weights: Mapping[str, float], vocabularies: Sequence[Vocabulary]) -> list[float]:
    """For each collection the share of the question's words that belongs to it, 0..1; all together are 1.

    ``weights``: of each word in the question. A word is divided by its density in each collection. It counts more if it
    is rare in all of them together. Words that no collection has do not count.
    """
    total = sum(vocabulary.chunks for vocabulary in vocabularies)
    sizes = [(v.chunks + UNSEEN_CHUNKS) * math.sqrt(max(v.average_length, 1.0)) for v in vocabularies]
    shares, total_importance = [0.0] * len(vocabularies), 0.0
    for word, weight in weights.items():
        counts = [vocabulary.frequencies.get(word, 0) for vocabulary in vocabularies]
        if not any(counts):
            continue
        importance = weight * ranking.idf(sum(counts), total)
        densities = [count / size for count, size in zip(counts, sizes, strict=True)]
        whole = sum(densities)
        shares = [share + importance * density / whole for share, density in zip(shares, densities, strict=True)]
        total_importance += importance
    return [share / (total_importance or 1.0) for share in shares]


def estimate(share: float, nearness: float) -> float:
    """How promising a collection is before it is searched, in log-odds. ``nearness``: the cosine of the nearest chunk
    plus that of its page."""
    return HOME_WEIGHT * share + NEARNESS_WEIGHT * nearness


def merged_scores(log_odds: Sequence[float], scores: Sequence[float], behind: float) -> list[float]:
    """The scores of one collection's results on the common scale, 0..1.

    ``log_odds``: of the confidence of each result. ``scores``: in its own collection. Both are best first. ``behind``:
    the difference of the collection's share of the words to the largest share. The best result has the confidence of
    the collection, less ``behind``. Each other one is as far below it as its own score is.
    """
    if not scores:
        return []
    best = max(log_odds[:FIRST_RESULTS]) - HOME_WEIGHT * behind
    odds = (round(best - ORDER_WEIGHT * (scores[0] - score), ODDS_DIGITS) for score in scores)
    return [round(logistic(value), DIGITS) for value in odds]
