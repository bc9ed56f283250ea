"""Ranking: exact scores of the candidates of an index.

Candidates are the best chunks by words and the best by vectors. Only these few are scored, in the same way for a file,
a library and Milvus. Each of these has its own :class:`CandidateIndex`. Row ids identify chunks.

The parameters were chosen on 151 queries over six documentation sets. They do not help on each;
docs/performance-method.md has the measurement and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anvil.index_file import table_rows
from anvil.index_file.table_rows import SearchedText
from anvil.search import page_weights
from anvil.search.confidence import MatchEvidence
from anvil.search.page_weights import PageFactors
from anvil.text import query as lexicon
from anvil.text.link_popularity import PageLinks
from anvil.text.query import Stemmer

Counts = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]
"""Token -> number of times in title, breadcrumb, content and derived terms, at least for the tokens of a query."""
FIELD_WEIGHTS = (2.0, 2.0, 1.0, 0.5)
"""Weights of title, breadcrumb, content, and derived terms with the words of the path."""
K1, B = 1.2, 0.75
"""The usual parameters of BM25: how soon more occurrences of a word stop to count, and how much a long chunk loses."""
FEW_CHUNKS = 1000
"""An index with fewer chunks weighs words as if it had so many.

In a small index each word is in a large share of the chunks, so the words of a question that are in no text would weigh
most. Measured with 202 questions to five pages of their documentation: the right result of 17 was called unlikely, and
of 11 with this limit. Of 584 questions that other documentation answers, all results of 571 were called unlikely, and
of 566 with this limit.
"""
DERIVED_SHARE = FIELD_WEIGHTS[3] * (1 + K1) / (FIELD_WEIGHTS[3] + K1)
"""Score of a derived term that a section has once, as a share of the score of a word that is once in its content."""
MISSING_PAIR_SHARE = 0.5
"""Weight of a pair of CJK characters that no text has: every second pair of a question stands across two words."""
DENSE_WEIGHT = 0.5
"""Weight of the vectors; the words have 1."""
GOOD_MATCH = 0.4
"""Share of the score of a perfect match from which on words have their whole weight."""
HEADING_WEIGHT = 0.3
"""Weight of the share of the query that is in the breadcrumb or the title."""
LINK_WEIGHT = 0.4
"""Weight of the share of the query that is in the texts of the links to the page."""
POPULAR_WEIGHT = 0.2
"""Weight of the popularity of the page: how many other pages link to it."""
PAGE_WEIGHT, SEMANTIC_PAGE_WEIGHT = 1.0, 0.5
"""Weight of the mean vector of the page, in hybrid and in semantic mode; the best window of the chunk has 1."""
NEIGHBOUR_WEIGHT, NEIGHBOURS = 0.2, 3
"""Weight of the mean similarity of the next best sections of a page, and how many of them count. A page on the subject
has several similar sections, a page that mentions it has one."""
HIGHEST_INEXACT = 0.9
"""The highest score of other results where some are exact matches: see :func:`_exact_first`."""
SIBLING_BOOST, MAX_BOOSTED = 0.4, 4
"""The share of the difference by which the score of a section is raised toward that of the page's best one, and the
number of sections of a page that are raised."""

PASSAGE_WEIGHT, FULL_SPREAD = 0.25, 0.2
"""Weight of a passage that is read again, where all else together has 1; and the difference between the best and the
worst passage from which on the whole weight counts. Both were chosen as docs/performance-method.md says."""
MAX_READ = 10
"""Results that are read again. Taking at most three of a page found a few more pages, and fewer sections."""


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """The summands of a hit's score. A semantic search has one summand, a cosine.

    ``words`` and ``heading`` come from the keyword search, ``vectors`` from the semantic one, ``links`` from the links
    to the page. ``passage`` comes from the passage when it is read again, ``page`` from the page (its best section, its
    weight) and from exact matches.
    """

    words: float
    heading: float
    vectors: float
    links: float
    passage: float
    page: float


def idf(frequency: int, total: int) -> float:
    """Inverse document frequency of a term in ``frequency`` of ``total`` chunks (Lucene's form, never negative).
    ``total`` is at least ``FEW_CHUNKS``."""
    return math.log(1 + (max(total, FEW_CHUNKS) - frequency + 0.5) / (frequency + 0.5))


def bm25f(
    counts: Counts, length: int, weights: Mapping[str, float], average: float, phrases: float
) -> tuple[float, float]:
    """(score, heading coverage) of one candidate, which has ``length`` words.

    The score is BM25F (Robertson, Zaragoza and Taylor 2004): field-weighted term counts, saturated once.
    ``weights``: token -> idf times its weight in the query. ``phrases``: the sum of the weights of the phrases in the
    candidate, each as one occurrence. Heading coverage: the share of ``weights`` in the breadcrumb or the title.
    """
    norm = K1 * (1 - B + B * length / max(average, 1.0))
    score, covered = phrases * (K1 + 1) / (1 + norm), 0.0
    in_title, in_heading, in_content, in_terms = counts
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
    """A score in 0..1 for each candidate (n,), and its summands (n, 4): words, heading, vectors and links.

    ``lexical`` (n,) is divided by its largest value. If that is below ``GOOD_MATCH`` of ``perfect``, the score of a
    perfect match, words tell little about which page answers. Vectors then decide more between the pages, but not
    between the sections of a page. ``pages``: the page of each candidate. ``dense`` (n,) is in 0..1; None without
    vectors. ``links`` (n, 2): the share of the query in the links to the page, and the page's popularity; None without
    links.
    """
    best = lexical.max(initial=0.0)
    words, heading = lexical / best if best > 0 else lexical, HEADING_WEIGHT * coverage
    vectors, linked, full = np.zeros_like(words), np.zeros_like(words), 1 + HEADING_WEIGHT
    if links is not None:
        linked, full = links @ (LINK_WEIGHT, POPULAR_WEIGHT), full + LINK_WEIGHT + POPULAR_WEIGHT
    if dense is not None:
        vectors = DENSE_WEIGHT * dense + NEIGHBOUR_WEIGHT * _neighbour_means(dense, pages)
        full += DENSE_WEIGHT + NEIGHBOUR_WEIGHT
        good = GOOD_MATCH * perfect
        words = _without_share_of_best(words, pages, 1 - min(best, good) / good if good > 0 else 0.0)
    summands = np.stack((words, heading, vectors, linked), axis=1) / full
    return (words + heading + vectors + linked) / full, summands


def with_passages(scores: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Scores with the summands of passages, and these summands.

    ``scores``: of the results, best first. ``values``: those of :class:`anvil.embedding.passages.PassageScorer` for the
    first results. Only differences within one question mean something: the lowest value becomes 0, and the highest 1,
    or less if all are nearly equal. A result without a value has 0.
    """
    full, lowest = 1 + PASSAGE_WEIGHT, min(values)
    spread = max(max(values) - lowest, FULL_SPREAD)
    summands = [PASSAGE_WEIGHT / full * (value - lowest) / spread for value in values]
    summands += [0.0] * (len(scores) - len(values))
    return [score / full + summand for score, summand in zip(scores, summands, strict=True)], summands


def _neighbour_means(dense: NDArray[np.float64], pages: Sequence[int]) -> NDArray[np.float64]:
    """The mean of the next best ``NEIGHBOURS`` values of ``dense`` in the page of each candidate, without its best one.
    A value that is missing counts as 0."""
    by_page: dict[int, list[float]] = {}
    for page, value in zip(pages, dense.tolist(), strict=True):
        by_page.setdefault(page, []).append(value)
    means = {page: sum(sorted(values)[-NEIGHBOURS - 1 : -1]) / NEIGHBOURS for page, values in by_page.items()}
    return np.array([means[page] for page in pages], np.float64)


def _without_share_of_best(words: NDArray[np.float64], pages: Sequence[int], missing: float) -> NDArray[np.float64]:
    """``words`` less the share ``missing`` of the best section of the same page, so the order within a page stays."""
    _, of_page = np.unique(pages, return_inverse=True)
    best = np.zeros(len(words))
    np.maximum.at(best, of_page, words)
    return np.maximum(words - missing * best[of_page], 0.0)


def normalize(scores: NDArray[np.floating], mean: float, peak: float) -> NDArray[np.float64]:
    """Scale scores so that the mean of all becomes 0 and the best of all 1; 0 below the mean."""
    return np.maximum((scores.astype(np.float64) - mean) / max(peak - mean, 1e-9), 0.0)


def boost_siblings(scores: Sequence[float], pages: Sequence[int]) -> list[float]:
    """Raise the scores of the best sections of each page toward the score of its best one.

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


CANDIDATES = 20
"""Candidates by words, and as many by vectors; more of them changed no result that mattered. With so many by rare words
the other words are not looked up. A search can return as many results."""
MAX_POSTINGS = 10_000
"""Entries of the keyword index that are read for candidates, rarest words first. The other words only score."""
MAX_WHOLE = 400
"""If a filter lets through no more chunks than this, all of them are candidates."""
NO_VECTOR = -0.999
"""No text has a lower cosine; a chunk without vectors has -1."""
SCORE_DIGITS = 6
"""Scores are rounded before they are compared. The last bits of a cosine depend on where in a block of vectors it is
computed, and equal texts must have equal scores."""


class RowSet(Protocol):
    """The chunks that have a phrase. The length may count only those that were looked up."""

    def __contains__(self, row: object, /) -> bool: ...

    def __len__(self) -> int: ...


class NearCandidates(NamedTuple):
    """Candidates in the order of the index, with their similarities to a query.

    ``similarities`` (n,): of each chunk together with its page, rounded. ``pages`` (n,): the cosine of the page alone.
    ``mean`` and ``peak``: the mean and the highest similarity over all chunks of the index.
    """

    rows: list[int]
    similarities: NDArray[np.float64]
    pages: NDArray[np.float64]
    mean: float
    peak: float


class RankedChunk(NamedTuple):
    """A chunk in a ranking: its score, its row, what words, heading, vectors and links add to the score, and the
    evidence that it answers."""

    score: float
    row: int
    summands: list[float]
    evidence: MatchEvidence


class NearChunk(NamedTuple):
    """A chunk, its cosine to a query, rounded, and the cosine of its page."""

    row: int
    cosine: float
    page: float


class CandidateIndex(Protocol):
    """The chunks of one index, as the ranking needs them.

    A ``selection`` is the set of chunks that pass a filter, in a form of the index's own; None means all.
    """

    stem: Stemmer
    average_length: float
    """Words per chunk."""

    @property
    def links(self) -> PageLinks | None:
        """The links between the pages; None if they are not known, or if there are none."""

    @property
    def page_factors(self) -> PageFactors:
        """The factors of the scores of pages; see :mod:`anvil.search.page_weights`."""

    def count(self, selection: Any = None) -> int:
        """How many chunks a selection has."""

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        """Token -> how many chunks have it. ``words``: token -> the word that it came from."""

    def words_from(self, first: str) -> Iterable[tuple[str, int]]:
        """(token, number of chunks with it) of the tokens that begin with ``first``; none if the index cannot list
        them."""

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        """Phrase -> the chunks that have it."""

    def matching(self, words: Sequence[str], count: int, selection: Any) -> list[int]:
        """Rows of the ``count`` selected chunks that match the words and phrases best, by BM25."""

    def rows_in(self, selection: Any) -> Collection[int]:
        """Rows of all selected chunks."""

    def in_order(self, rows: Collection[int]) -> list[int]:
        """The same rows in the order of the index, which decides between equal scores."""

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        """Row -> its searched text."""

    def with_nearest(
        self, vector: NDArray[np.float32], word_rows: Collection[int], count: int, selection: Any
    ) -> NearCandidates:
        """The chunks ``word_rows`` and the ``count`` selected chunks that are nearest to ``vector``, each with its
        page. Those that tie with the last of them are included."""


class QueryWeights(NamedTuple):
    """A query with the weights of its words in an index.

    ``frequencies``: token -> the number of chunks with it. ``tokens``: token -> its weight, for tokens that occur.
    ``text``: the query as it was asked.
    """

    query: lexicon.Query
    frequencies: dict[str, int]
    tokens: dict[str, float]
    text: str = ""

    @property
    def missing(self) -> dict[str, float]:
        """Token -> its weight in the query, for those that occur nowhere."""
        return {
            token: weight * (MISSING_PAIR_SHARE if lexicon.is_cjk(token) else 1.0)
            for token, (weight, _) in self.query.terms.items()
            if token not in self.tokens
        }


def query_weights(index: CandidateIndex, text: str) -> QueryWeights:
    """The query, parsed, with the weight of each of its words in this index."""
    query = lexicon.parse_query(text, index.stem)
    frequencies = index.frequencies({token: word for token, (_, word) in query.terms.items()})
    total = index.count()
    tokens = {
        token: weight * idf(frequencies[token], total)
        for token, (weight, _) in query.terms.items()
        if frequencies[token]
    }
    return QueryWeights(query, frequencies, tokens, text)


def rank(
    index: CandidateIndex,
    query_weights: QueryWeights,
    vector: NDArray[np.float32] | None,
    selections: Sequence[Any],
    count: int,
) -> list[RankedChunk]:
    """The candidates for a query, best first: of each selection at least ``count`` by words and ``count`` by
    ``vector``, if it has so many. All are scored together. Without a vector, chunks without any of the words are no
    results."""
    phrases = _phrase_weights(index, query_weights)
    by_words = (_keyword_candidates(index, query_weights, phrases, selection, count) for selection in selections)
    candidates: Collection[int] = dict.fromkeys(chain.from_iterable(by_words))
    if vector is None:
        rows, dense = index.in_order(candidates), None
    else:
        for selection in selections:
            near = index.with_nearest(vector, candidates, count, selection)
            candidates = near.rows
        rows, dense = near.rows, normalize(near.similarities, near.mean, near.peak)
    if not rows:
        return []
    lexical, coverage = _keyword_scores(index, rows, query_weights.tokens, list(phrases.values()))
    if vector is None:  # without vectors, a chunk without any of the words is no result
        matches = lexical > 0
        rows = [row for row, match in zip(rows, matches.tolist(), strict=True) if match]
        lexical, coverage = lexical[matches], coverage[matches]
        cosines: list[tuple[float, float] | None] = [None] * len(rows)
    else:
        cosines = _cosine_pairs(near.similarities - PAGE_WEIGHT * near.pages, near.pages)
    perfect = _perfect_score(index, query_weights, phrases)
    evidence = _evidence(query_weights, perfect, lexical, cosines)
    pages = [row >> table_rows.CHUNK_BITS for row in rows]
    links = _link_scores(index, pages, query_weights.tokens)
    fused, summands = fuse(lexical, coverage, dense, links, pages, perfect)
    holders, _ = phrases.get(" ".join(lexicon.words(query_weights.text)), ((), 0.0))  # of a query that is one phrase
    texts, title = index.texts(rows), lexicon.bare(query_weights.text)
    exact = [(row in holders, lexicon.bare(texts[row].title) == title != "") for row in rows]
    scores = _exact_first(fused, np.array(exact, bool))
    factors = index.page_factors
    if factors.usual:
        is_about_records = page_weights.asks_for_records(query_weights.text)
        factor_of = factors.about_records if is_about_records else factors.usual
        scores = scores * [factor_of.get(page, 1.0) for page in pages]
    final = scores.tolist() if dense is None else boost_siblings(scores.tolist(), pages)
    results = (
        RankedChunk(round(score, SCORE_DIGITS), row, parts, proof)
        for score, row, parts, proof in zip(final, rows, summands.tolist(), evidence, strict=True)
    )
    return sorted(results, key=lambda result: -result.score)  # stable: of equal scores the first in the index


def by_cosine(
    index: CandidateIndex, query_weights: QueryWeights, chunks: Iterable[NearChunk], count: int
) -> list[RankedChunk]:
    """The ``count`` nearest of ``chunks``, by their cosines and a share of their pages' cosines. Words are evidence
    only."""
    nearest = sorted(chunks, key=lambda near: -near.cosine - SEMANTIC_PAGE_WEIGHT * near.page)[:count]  # stable
    phrases = _phrase_weights(index, query_weights)
    lexical, _ = _keyword_scores(index, [near.row for near in nearest], query_weights.tokens, list(phrases.values()))
    perfect = _perfect_score(index, query_weights, phrases)
    evidence = _evidence(query_weights, perfect, lexical, [(near.cosine, near.page) for near in nearest])
    return [
        RankedChunk(near.cosine, near.row, [0.0, 0.0, near.cosine, 0.0], proof)
        for near, proof in zip(nearest, evidence, strict=True)
    ]


def _phrase_weights(index: CandidateIndex, query_weights: QueryWeights) -> dict[str, tuple[RowSet, float]]:
    """Phrase -> the chunks that have it and its weight, for the phrases that occur."""
    total = index.count()
    return {
        phrase: (holders, query_weights.query.phrases[phrase] * idf(len(holders), total))
        for phrase, holders in index.phrase_holders(query_weights.query.phrases).items()
        if len(holders)
    }


def _perfect_score(
    index: CandidateIndex, query_weights: QueryWeights, phrases: Mapping[str, tuple[RowSet, float]]
) -> float:
    """The BM25F that a section with all words and phrases of the query approaches.

    A word that occurs nowhere counts as the rarest of all. A pair of CJK characters is a derived term, which a section
    has once.
    """
    share = {token: DERIVED_SHARE if lexicon.is_cjk(token) else 1.0 for token in query_weights.query.terms}
    of_known = sum(share[token] * weight for token, weight in query_weights.tokens.items())
    missing = sum(share[token] * weight for token, weight in query_weights.missing.items())
    of_phrases = sum(weight for _, weight in phrases.values())
    return (of_known + of_phrases + missing * idf(0, index.count())) * (K1 + 1)


def _evidence(
    query_weights: QueryWeights,
    perfect: float,
    lexical: NDArray[np.float64],
    cosines: Iterable[tuple[float, float] | None],
) -> list[MatchEvidence]:
    """The evidence for each row. ``lexical`` (n,): BM25F. ``cosines``: of the section and of its page, if it has
    vectors."""
    terms = query_weights.query.terms
    unknown = sum(query_weights.missing.values()) / (sum(weight for weight, _ in terms.values()) or 1.0)
    shares = (lexical / (perfect or 1.0)).tolist()
    return [
        MatchEvidence(share, unknown, len(terms), *(near or (None, None)))
        for share, near in zip(shares, cosines, strict=True)
    ]


def _cosine_pairs(own: NDArray[np.float64], pages: NDArray[np.float64]) -> list[tuple[float, float] | None]:
    """Cosines as pairs of section and page; None for a section without vectors."""
    return [
        (a, b) if a > NO_VECTOR else None for a, b in zip(own.round(SCORE_DIGITS).tolist(), pages.tolist(), strict=True)
    ]


def _keyword_candidates(
    index: CandidateIndex, query_weights: QueryWeights, phrases: Iterable[str], selection: Any, count: int
) -> Collection[int]:
    """Rows of the candidates by words: all chunks if there are few, else the best ones for the rarest words and the
    phrases, and for the phrases alone."""
    if index.count(selection) <= MAX_WHOLE:
        return index.rows_in(selection)
    frequencies = query_weights.frequencies
    tokens = sorted(query_weights.tokens, key=lambda token: (frequencies[token], token))
    words = [query_weights.query.terms[token][1] for token in tokens]
    costs = np.cumsum([frequencies[token] for token in tokens])
    affordable = max(int((costs <= MAX_POSTINGS).sum()), 1)
    rows: list[int] = []
    for size in sorted({min(affordable, len(words)), len(words)}):  # all words, where the rare ones find too few chunks
        terms = [*words[:size], *phrases]
        if terms and len(rows) < CANDIDATES:
            rows = index.matching(terms, count, selection)
    return {*rows, *index.matching(list(phrases), count, selection)} if phrases else rows


def _exact_first(scores: NDArray[np.float64], exact: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Scores (n,) in 0..1, with those of exact matches above all others. ``exact`` (n, 2): whether a chunk has the
    phrase that the query is, and whether the query is the title of its page. The second are above the first."""
    for matches in exact.T:
        if matches.any():
            highest = scores[~matches].max(initial=0.0)
            limit = min(highest, HIGHEST_INEXACT)
            scores = np.where(matches, limit + (1 - limit) * scores, scores * (limit / (highest or 1.0)))
    return scores


def _keyword_scores(
    index: CandidateIndex, rows: Sequence[int], tokens: Mapping[str, float], phrases: Sequence[tuple[RowSet, float]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """BM25F and heading coverage of each row."""
    texts = index.texts(rows)
    headings, counts = index.stem.heading_counts, index.stem.counter(tokens)
    scores = []
    for row in rows:
        text = texts[row]
        of_columns = headings(text.title), headings(text.heading_path), counts(text.content), counts(text.terms)
        phrase_weight = sum(weight for holders, weight in phrases if row in holders)
        scores.append(bm25f(of_columns, text.length, tokens, index.average_length, phrase_weight))
    pairs = np.array(scores, np.float64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _link_scores(
    index: CandidateIndex, pages: Sequence[int], tokens: Mapping[str, float]
) -> NDArray[np.float64] | None:
    """The share of a query that the links to each page cover, and the popularity of the page (n, 2)."""
    links = index.links
    if links is None:
        return None
    heading_counts = index.stem.heading_counts
    scores = {page: (links.coverage(page, tokens, heading_counts), links.popularity(page)) for page in set(pages)}
    return np.array([scores[page] for page in pages], np.float64).reshape(-1, 2)
