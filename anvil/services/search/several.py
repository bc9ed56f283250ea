"""One search over several indexes, whose results are compared on the scale of :mod:`anvil.core.search.merging`.

Each index ranks its own results. All are asked how promising they are; only some are searched, so that a question to
20 collections costs little more than one to five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, NamedTuple

from anvil.core.search import confidence, merging
from anvil.core.search import query as lexicon
from anvil.core.search.merging import Vocabulary
from anvil.core.search.scoring import ScoreParts
from anvil.errors import ConfigError
from anvil.models.results import Hit, Mode
from anvil.services.search import result_length
from anvil.services.search.ranking import ENOUGH, SCORE_DIGITS, Ranked
from anvil.services.search.searcher import Candidates, Found, Question, embed_query, ensure_valid, parts_of
from anvil.services.search.section_match import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anvil.services.search.searcher import Searcher

SHORTLIST = 5
"""Indexes that are searched: the most promising ones, and more where they have too few results."""


class Merged(NamedTuple):
    """The results, and for each the place of its index in the list."""

    found: Found
    places: tuple[int, ...]


class _Result(NamedTuple):
    place: int
    score: float
    ranked: Ranked


def search(
    searchers: Sequence[Searcher],
    query: str,
    top_k: int,
    file_filter: str | None,
    max_chars: int | None,
    mode: Mode,
    threshold: float,
    question: Question | None = None,
    min_confidence: float = 0.0,
) -> Merged:
    """The best ``top_k`` chunks of all indexes; see :meth:`anvil.services.search.searcher.Searcher.search`.

    Of equal results, the one of the first index comes first. Indexes with vectors of another model are searched by
    words. Raises :class:`ConfigError` as a search of one index does.
    """
    ensure_valid(query, mode)
    semantic = [searcher for searcher in searchers if searcher.semantic]
    if mode == "semantic" and not semantic:
        raise ConfigError(searchers[0].obstacle or "Semantic search is off.")
    notes: list[str] = []
    if mode == "hybrid" and not semantic and searchers[0].obstacle:
        notes.append(searchers[0].obstacle)
    if mode != "keyword" and semantic and question is None:
        question = embed_query(query, semantic[0].provider)
    top_k = min(max(top_k, 1), ENOUGH)
    totals = [searcher.index.count(searcher.index.select(file_filter, None)) for searcher in searchers]
    candidates: dict[int, Candidates] = {}
    if mode == "semantic":
        asked = [place for place, searcher in enumerate(searchers) if searcher.semantic and totals[place]]
        for place in asked:
            candidates[place] = searchers[place].candidates(query, top_k, file_filter, mode, question)
        results = [_Result(p, ranked.score, ranked) for p, found in candidates.items() for ranked in found.results]
    else:
        shares = _home_shares(searchers, query)
        vector = question.vector if question is not None and mode == "hybrid" else None
        for place in _most_promising(searchers, shares, totals, vector, file_filter):
            if len(candidates) >= SHORTLIST and sum(len(found.results) for found in candidates.values()) >= top_k:
                break
            candidates[place] = searchers[place].candidates(query, top_k, file_filter, mode, question)
        results = _on_one_scale(searchers, candidates, shares)
    notes += dict.fromkeys(found.failure for found in candidates.values() if found.failure)
    results = [result for result in results if threshold <= 0 or result.score >= threshold]
    results.sort(key=lambda result: (-result.score, result.place))

    def likely(result: _Result) -> float:
        return searchers[result.place].fits.confidence(result.ranked.evidence)

    shown = [result for result in results if likely(result) >= min_confidence][:top_k]
    if warning := confidence.note(map(likely, shown or results), min_confidence):
        notes.append(warning)
    hits, spans = result_length.within_budget(_hits(searchers, shown, query, candidates), query, max_chars)
    found = Found(
        hits,
        total_chunks=sum(totals),
        notes=tuple(notes),
        rows=tuple(result.ranked.row for result in shown),
        parts=tuple(_parts(result) for result in shown),
        spans=spans,
        evidence=tuple(result.ranked.evidence for result in shown),
    )
    return Merged(found, tuple(result.place for result in shown))


def _home_shares(searchers: Sequence[Searcher], query: str) -> list[float]:
    """See :func:`anvil.core.search.merging.home_shares`."""
    if len(searchers) == 1:
        return [1.0]
    terms = lexicon.parse_query(query, searchers[0].index.stem).terms  # all indexes have one tokenizer
    words = {token: word for token, (_, word) in terms.items()}
    vocabularies = [
        Vocabulary(searcher.index.frequencies(words), searcher.index.count(), searcher.index.average_length)
        for searcher in searchers
    ]
    return merging.home_shares({token: weight for token, (weight, _) in terms.items()}, vocabularies)


def _most_promising(
    searchers: Sequence[Searcher],
    shares: Sequence[float],
    totals: Sequence[int],
    vector: NDArray[np.float32] | None,
    file_filter: str | None,
) -> list[int]:
    """The places of the indexes in which the filter leaves anything, the most promising first."""
    asked = [place for place, total in enumerate(totals) if total]
    if len(asked) <= SHORTLIST:
        return asked
    nearness: dict[int, float] = {}
    for place in asked:
        index = searchers[place].index
        if vector is not None and searchers[place].semantic and index.has_vectors:
            for near in index.nearest(vector, 1, index.select(file_filter, None))[:1]:
                nearness[place] = near.cosine + near.page
    unknown = sum(nearness.values()) / max(len(nearness), 1)  # of an index that is searched by words only
    return sorted(asked, key=lambda place: -merging.estimate(shares[place], nearness.get(place, unknown)))


def _on_one_scale(
    searchers: Sequence[Searcher], candidates: Mapping[int, Candidates], shares: Sequence[float]
) -> list[_Result]:
    """The candidates of all indexes with comparable scores."""
    largest = max((shares[place] for place in candidates), default=0.0)
    results = []
    for place, found in candidates.items():
        log_odds = [searchers[place].fits.log_odds(ranked.evidence) for ranked in found.results]
        own_scores = [ranked.score for ranked in found.results]
        scores = merging.merged_scores(log_odds, own_scores, largest - shares[place])
        results += [_Result(place, *pair) for pair in zip(scores, found.results, strict=True)]
    return results


def _hits(
    searchers: Sequence[Searcher], results: Sequence[_Result], query: str, candidates: Mapping[int, Candidates]
) -> list[tuple[Hit, Span]]:
    """The results with their texts, in the same order."""
    hits: dict[tuple[int, int], tuple[Hit, Span]] = {}
    for place in dict.fromkeys(result.place for result in results):
        own = [result for result in results if result.place == place]
        texts = searchers[place].hits([result.ranked for result in own], query, candidates[place])
        for result, (hit, span) in zip(own, texts, strict=True):
            hits[place, result.ranked.row] = replace(hit, score=result.score), span
    return [hits[result.place, result.ranked.row] for result in results]


def _parts(result: _Result) -> ScoreParts:
    """The parts of the score in its own collection, as shares of the score on the common scale."""
    own, share = parts_of(result.ranked), result.score / (result.ranked.score or 1.0)
    return ScoreParts(*(round(part * share, SCORE_DIGITS) for part in astuple(own)))
