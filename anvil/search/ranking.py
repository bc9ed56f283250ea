"""Ranking: exact scores of the candidates of an index.

The best chunks by words and the best by vectors are candidates. Only these few are scored, in the same way for a file,
a library and Milvus, which differ in their :class:`CandidateIndex`. Row ids identify chunks.

The parameters were chosen on 151 queries over six documentation sets. They do not help on each;
docs/performance-method.md has the measurement and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anvil.index_file import table_rows
from anvil.index_file.table_rows import SearchedText
from anvil.search.confidence import MatchEvidence
from anvil.search.page_weights import PageFactors, asks_for_records
from anvil.text import query as lexicon
from anvil.text.link_popularity import PageLinks
from anvil.text.query import Stemmer

Counts = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]
"""Token -> number of times in a title, breadcrumb, content and derived terms, at least for the tokens of a query."""
FIELD_WEIGHTS = (2.0, 2.0, 1.0, 0.5)
"""Of title, breadcrumb, content, and derived terms with the words of the path."""
K1, B = 1.2, 0.75
FEW_CHUNKS = 1000
"""With fewer chunks, words are weighed as in an index of so many. Else those that a question has beyond the text weigh
most: of 202 questions to five pages of their documentation, the right result of 17 was called unlikely, and of 11 with
this; of 584 that other documentation answers, all results of 571 and of 566."""
DERIVED_SHARE = FIELD_WEIGHTS[3] * (1 + K1) / (FIELD_WEIGHTS[3] + K1)
"""Score of a derived term that a section has once, as a share of that of a word that it has once in its content."""
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
"""Weight of the popularity of the page: how many others link to it."""
PAGE_WEIGHT, SEMANTIC_PAGE_WEIGHT = 1.0, 0.5
"""Weight of the mean vector of the page, in hybrid and in semantic mode; the best window of the chunk has 1."""
NEIGHBOUR_WEIGHT, NEIGHBOURS = 0.2, 3
"""Weight of the mean nearness of the next best sections of a page by vectors, and how many of them count: a page on the
subject has several, a page that mentions it has one."""
SIBLING_BOOST, MAX_BOOSTED = 0.4, 4
"""How far the score of a section is raised toward that of the page's best one, and how many sections of a page."""

PASSAGE_WEIGHT, FULL_SPREAD = 0.25, 0.2
"""Weight of a passage that is read again, where all else together has 1; and how far the best and the worst passage lie
apart for the whole of it. Both were chosen as docs/performance-method.md says."""
MAX_READ = 10
"""How many results are read again. At most three of a page found a little more pages, and fewer sections."""


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
    """Inverse document frequency of a term in ``frequency`` of ``total`` chunks, never negative (Lucene's form). Of few
    chunks each word is in a large share, so ``total`` is at least ``FEW_CHUNKS``."""
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
    ``values`` of :class:`anvil.embedding.passages.PassageScorer`; the lowest becomes 0, as only differences within one
    question mean something, and the highest 1, or less if all are nearly equal. A result without a value has 0."""
    full, lowest = 1 + PASSAGE_WEIGHT, min(values)
    spread = max(max(values) - lowest, FULL_SPREAD)
    summands = [PASSAGE_WEIGHT / full * (value - lowest) / spread for value in values]
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


CANDIDATES = 20
"""Candidates by words, and by vectors; more of them changed no result that mattered."""
ENOUGH = 20
"""Candidates by words, if so many chunks have one: the most results a search can return."""
MAX_POSTINGS = 1000
"""Entries of the keyword index that are read for candidates: rarest words first, the others only score."""
MAX_FILTERED_POSTINGS = 10_000
"""The same where a filter lets only some of the entries through."""
MAX_WHOLE = 400
"""A filter that lets through no more chunks than this makes all of them candidates."""
NO_VECTOR = -0.999
"""No text has a lower cosine; a chunk without vectors has -1."""
SCORE_DIGITS = 6
"""Scores are rounded before they are compared: one text has one score, wherever in a block of vectors it is."""


class RowSet(Protocol):
    """The chunks that hold a phrase. The length may count only those that were looked up."""

    def __contains__(self, row: object, /) -> bool: ...

    def __len__(self) -> int: ...


class Nearness(NamedTuple):
    """Candidates in the order of the index; how near each is to a query with its page (n,), rounded, and the page's
    cosine alone (n,); and the mean and the highest of the former over all chunks."""

    rows: list[int]
    similarities: NDArray[np.float64]
    pages: NDArray[np.float64]
    mean: float
    peak: float


class Ranked(NamedTuple):
    """A result: its score, the row of its chunk, what words, heading, vectors and links add to the score, and the
    evidence that it answers."""

    score: float
    row: int
    summands: list[float]
    evidence: MatchEvidence


class Near(NamedTuple):
    """A chunk, its cosine to a query, rounded, and its page's."""

    row: int
    cosine: float
    page: float


class CandidateIndex(Protocol):
    """The chunks of one index, as the ranking needs them. A ``selection`` is the chunks that pass a filter, in a form
    of the index's own; None means all."""

    stem: Stemmer
    average_length: float
    """Words per chunk."""

    @property
    def links(self) -> PageLinks | None:
        """The links between its pages; None where they are not known, or there are none."""

    @property
    def page_factors(self) -> PageFactors:
        """The factors of the scores of pages; see :mod:`anvil.search.page_weights`."""

    def count(self, selection: Any = None) -> int:
        """How many chunks a selection has."""

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        """Token -> how many chunks hold it. ``words``: token -> the word it came from."""

    def words_from(self, first: str) -> Iterable[tuple[str, int]]:
        """(token, number of chunks with it) of the tokens that begin with ``first``; none where they are not known."""

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        """Phrase -> the chunks that hold it."""

    def matching(self, words: Sequence[str], count: int, selection: Any) -> list[int]:
        """Rows of the ``count`` selected chunks that fit words and phrases best by BM25."""

    def rows_in(self, selection: Any) -> Collection[int]:
        """Rows of all selected chunks."""

    def in_order(self, rows: Collection[int]) -> list[int]:
        """The same rows in the order of the index, which decides between equal scores."""

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        """Row -> its searched text."""

    def with_nearest(self, vector: NDArray[np.float32], named: Collection[int], count: int, selection: Any) -> Nearness:
        """The rows ``named`` and the ``count`` selected ones nearest to ``vector`` with their page (ties included)."""


class Weights(NamedTuple):
    """A parsed query; token -> the number of chunks with it; token -> its weight, for tokens that occur; and whether
    the query is about versions or changes."""

    query: lexicon.Query
    frequencies: dict[str, int]
    tokens: dict[str, float]
    about_records: bool = False

    @property
    def missing(self) -> dict[str, float]:
        """Token -> its weight in the query, for those that occur nowhere."""
        return {
            token: weight * (MISSING_PAIR_SHARE if lexicon.is_cjk(token) else 1.0)
            for token, (weight, _) in self.query.terms.items()
            if token not in self.tokens
        }


def weights(index: CandidateIndex, text: str) -> Weights:
    """The weight of each word of a query in this index."""
    query = lexicon.parse_query(text, index.stem)
    frequencies = index.frequencies({token: word for token, (_, word) in query.terms.items()})
    total = index.count()
    tokens = {
        token: weight * idf(frequencies[token], total)
        for token, (weight, _) in query.terms.items()
        if frequencies[token]
    }
    return Weights(query, frequencies, tokens, asks_for_records(text))


def rank(
    index: CandidateIndex, query_weights: Weights, vector: NDArray[np.float32] | None, selection: Any, count: int
) -> list[Ranked]:
    """The candidates for a query, best first: at least ``count`` by words and by ``vector``, where so many exist."""
    phrases = _phrases(index, query_weights)
    named = _keyword_candidates(index, query_weights, phrases, selection, count)
    dense = None
    if vector is None:
        rows = index.in_order(named)
    else:
        nearness = index.with_nearest(vector, named, count, selection)
        rows, dense = nearness.rows, normalize(nearness.similarities, nearness.mean, nearness.peak)
    if not rows:
        return []
    lexical, coverage = _keyword_scores(index, rows, query_weights.tokens, list(phrases.values()))
    if vector is None:  # without vectors, a chunk without any of the words is no result
        matches = lexical > 0
        rows = [row for row, match in zip(rows, matches.tolist(), strict=True) if match]
        lexical, coverage = lexical[matches], coverage[matches]
        cosines: list[tuple[float, float] | None] = [None] * len(rows)
    else:
        cosines = _cosines(nearness.similarities - PAGE_WEIGHT * nearness.pages, nearness.pages)
    perfect = _perfect_score(index, query_weights, phrases)
    evidence = _evidence(query_weights, perfect, lexical, cosines)
    pages = [row >> table_rows.CHUNK_BITS for row in rows]
    links = _links(index, pages, query_weights.tokens)
    fused, summands = fuse(lexical, coverage, dense, links, pages, perfect)
    factors = index.page_factors
    if of_pages := factors.about_records if query_weights.about_records else factors.usual:
        fused = fused * [of_pages.get(page, 1.0) for page in pages]
    scores = fused.tolist()
    if dense is not None:
        scores = boost_siblings(scores, pages)
    results = (
        Ranked(round(score, SCORE_DIGITS), row, parts, proof)
        for score, row, parts, proof in zip(scores, rows, summands.tolist(), evidence, strict=True)
    )
    return sorted(results, key=lambda result: -result.score)  # stable: of equal scores the first in the index


def by_cosine(index: CandidateIndex, query_weights: Weights, chunks: Iterable[Near], count: int) -> list[Ranked]:
    """The ``count`` nearest of ``chunks`` with a share of their pages, nearest first; their words are evidence only."""
    nearest = sorted(chunks, key=lambda near: -near.cosine - SEMANTIC_PAGE_WEIGHT * near.page)[:count]  # stable
    phrases = _phrases(index, query_weights)
    lexical, _ = _keyword_scores(index, [near.row for near in nearest], query_weights.tokens, list(phrases.values()))
    perfect = _perfect_score(index, query_weights, phrases)
    evidence = _evidence(query_weights, perfect, lexical, [(near.cosine, near.page) for near in nearest])
    return [
        Ranked(near.cosine, near.row, [0.0, 0.0, near.cosine, 0.0], proof)
        for near, proof in zip(nearest, evidence, strict=True)
    ]


def _phrases(index: CandidateIndex, query_weights: Weights) -> dict[str, tuple[RowSet, float]]:
    """Phrase -> the chunks that hold it and its weight, of those that occur."""
    total = index.count()
    return {
        phrase: (holders, query_weights.query.phrases[phrase] * idf(len(holders), total))
        for phrase, holders in index.phrase_holders(query_weights.query.phrases).items()
        if len(holders)
    }


def _perfect_score(index: CandidateIndex, query_weights: Weights, phrases: Mapping[str, tuple[RowSet, float]]) -> float:
    """The BM25F that a section with all words and phrases of the query approaches. A word that occurs nowhere counts as
    the rarest of all. A pair of CJK characters is a derived term, of which a section has each once."""
    share = {token: DERIVED_SHARE if lexicon.is_cjk(token) else 1.0 for token in query_weights.query.terms}
    of_known = sum(share[token] * weight for token, weight in query_weights.tokens.items())
    missing = sum(share[token] * weight for token, weight in query_weights.missing.items())
    of_phrases = sum(weight for _, weight in phrases.values())
    return (of_known + of_phrases + missing * idf(0, index.count())) * (K1 + 1)


def _evidence(
    query_weights: Weights,
    perfect: float,
    lexical: NDArray[np.float64],
    cosines: Iterable[tuple[float, float] | None],
) -> list[MatchEvidence]:
    """The evidence for each row. ``lexical``: its BM25F (n,). ``cosines``: its own and its page's, if it has any."""
    terms = query_weights.query.terms
    unknown = sum(query_weights.missing.values()) / (sum(weight for weight, _ in terms.values()) or 1.0)
    shares = (lexical / (perfect or 1.0)).tolist()
    return [
        MatchEvidence(share, unknown, len(terms), *(near or (None, None)))
        for share, near in zip(shares, cosines, strict=True)
    ]


def _cosines(own: NDArray[np.float64], pages: NDArray[np.float64]) -> list[tuple[float, float] | None]:
    """Cosines as pairs of a section's own and its page's; None for a section without vectors."""
    return [
        (a, b) if a > NO_VECTOR else None for a, b in zip(own.round(SCORE_DIGITS).tolist(), pages.tolist(), strict=True)
    ]


def _keyword_candidates(
    index: CandidateIndex, query_weights: Weights, phrases: Iterable[str], selection: Any, count: int
) -> Collection[int]:
    if index.count(selection) <= MAX_WHOLE:
        return index.rows_in(selection)
    frequencies = query_weights.frequencies
    tokens = sorted(query_weights.tokens, key=lambda token: (frequencies[token], token))
    words = [query_weights.query.terms[token][1] for token in tokens]
    costs = np.cumsum([frequencies[token] for token in tokens])
    limit = MAX_POSTINGS if selection is None else MAX_FILTERED_POSTINGS
    affordable = max(int((costs <= limit).sum()), 1)
    rows: list[int] = []
    for size in sorted({min(affordable, len(words)), len(words)}):  # all words, when the rare ones name too few
        terms = [*words[:size], *phrases]
        if terms and len(rows) < min(count, ENOUGH):
            rows = index.matching(terms, count, selection)
    return rows


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


def _links(index: CandidateIndex, pages: Sequence[int], tokens: Mapping[str, float]) -> NDArray[np.float64] | None:
    """How much of a query the links to each page cover, and its popularity (n, 2)."""
    links = index.links
    if links is None:
        return None
    heading_counts = index.stem.heading_counts
    known = {page: (links.coverage(page, tokens, heading_counts), links.popularity(page)) for page in set(pages)}
    return np.array([known[page] for page in pages], np.float64).reshape(-1, 2)
