"""Ranking: exact scores of the candidates of an index.

The best chunks by words and the best by vectors are candidates. Only these few are scored, in the same way for a file,
a library and Milvus, which differ in their :class:`CandidateIndex`. Row ids identify chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from anvil.errors import ArtifactRejected
from anvil.index_file import row_ids
from anvil.index_file.fts_table import Stemmer
from anvil.index_file.rows import SearchedText
from anvil.search import scoring
from anvil.search.confidence import MatchEvidence
from anvil.search.vector_index import VectorIndex, with_page
from anvil.text import query as lexicon
from anvil.text.page_links import PageLinks
from anvil.text.page_weights import PageFactors, asks_for_records

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
MAX_TEXTS = 1024
"""Chunks whose texts are kept in memory."""
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
        """The factors of the scores of pages; see :mod:`anvil.text.page_weights`."""

    def count(self, selection: Any = None) -> int:
        """How many chunks a selection has."""

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        """Token -> how many chunks hold it. ``words``: token -> the word it came from."""

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
    def missing(self) -> float:
        """The weight in the query of the words that occur nowhere."""
        return sum(weight for token, (weight, _) in self.query.terms.items() if token not in self.tokens)


def weights(index: CandidateIndex, text: str) -> Weights:
    """The weight of each word of a query in this index."""
    query = lexicon.parse_query(text, index.stem)
    frequencies = index.frequencies({token: word for token, (_, word) in query.terms.items()})
    total = index.count()
    tokens = {
        token: weight * scoring.idf(frequencies[token], total)
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
        rows, dense = nearness.rows, scoring.normalize(nearness.similarities, nearness.mean, nearness.peak)
    if not rows:
        return []
    lexical, coverage = _keyword_scores(index, rows, query_weights.tokens, list(phrases.values()))
    if vector is None:  # without vectors, a chunk without any of the words is no result
        matches = lexical > 0
        rows = [row for row, match in zip(rows, matches.tolist(), strict=True) if match]
        lexical, coverage = lexical[matches], coverage[matches]
        cosines: list[tuple[float, float] | None] = [None] * len(rows)
    else:
        cosines = _cosines(nearness.similarities - scoring.PAGE_WEIGHT * nearness.pages, nearness.pages)
    perfect = _perfect_score(index, query_weights, phrases)
    evidence = _evidence(query_weights, perfect, lexical, cosines)
    pages = [row >> row_ids.CHUNK_BITS for row in rows]
    links = _links(index, pages, query_weights.tokens)
    fused, summands = scoring.fuse(lexical, coverage, dense, links, pages, perfect)
    factors = index.page_factors
    if of_pages := factors.about_records if query_weights.about_records else factors.usual:
        fused = fused * [of_pages.get(page, 1.0) for page in pages]
    scores = fused.tolist()
    if dense is not None:
        scores = scoring.boost_siblings(scores, pages)
    results = (
        Ranked(round(score, SCORE_DIGITS), row, parts, proof)
        for score, row, parts, proof in zip(scores, rows, summands.tolist(), evidence, strict=True)
    )
    return sorted(results, key=lambda result: -result.score)  # stable: of equal scores the first in the index


def by_cosine(index: CandidateIndex, query_weights: Weights, chunks: Iterable[Near], count: int) -> list[Ranked]:
    """The ``count`` nearest of ``chunks`` with a share of their pages, nearest first; their words are evidence only."""
    nearest = sorted(chunks, key=lambda near: -near.cosine - scoring.SEMANTIC_PAGE_WEIGHT * near.page)[:count]  # stable
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
        phrase: (holders, query_weights.query.phrases[phrase] * scoring.idf(len(holders), total))
        for phrase, holders in index.phrase_holders(query_weights.query.phrases).items()
        if len(holders)
    }


def _perfect_score(index: CandidateIndex, query_weights: Weights, phrases: Mapping[str, tuple[RowSet, float]]) -> float:
    """The BM25F that a section with all words and phrases of the query approaches. A word that occurs nowhere counts as
    the rarest of all. A pair of CJK characters is a derived term, of which a section has each once."""
    terms, known = query_weights.query.terms, query_weights.tokens
    share = {token: scoring.DERIVED_SHARE if lexicon.is_cjk(token) else 1.0 for token in terms}
    of_known = sum(share[token] * weight for token, weight in known.items())
    missing = sum(share[token] * weight for token, (weight, _) in terms.items() if token not in known)
    of_phrases = sum(weight for _, weight in phrases.values())
    return (of_known + of_phrases + missing * scoring.idf(0, index.count())) * (scoring.K1 + 1)


def _evidence(
    query_weights: Weights,
    perfect: float,
    lexical: NDArray[np.float64],
    cosines: Iterable[tuple[float, float] | None],
) -> list[MatchEvidence]:
    """The evidence for each row. ``lexical``: its BM25F (n,). ``cosines``: its own and its page's, if it has any."""
    terms = query_weights.query.terms
    unknown = query_weights.missing / (sum(weight for weight, _ in terms.values()) or 1.0)
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
        columns = (headings(text.title), headings(text.heading_path), counts(text.content), counts(text.terms))
        phrase_weight = sum(weight for holders, weight in phrases if row in holders)
        fields = scoring.Fields(columns, text.length)
        scores.append(scoring.bm25f(fields, tokens, index.average_length, phrase_weight))
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


class TextCache:
    """The texts of the last chunks that were scored."""

    def __init__(self, read: Callable[[Sequence[int]], dict[int, SearchedText]]) -> None:
        self._read = read
        self._texts: dict[int, SearchedText] = {}

    def get(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        """Row -> text, of at least these rows. Raises :class:`ArtifactRejected` when one has none."""
        unknown = [row for row in rows if row not in self._texts]
        if len(self._texts) + len(unknown) > MAX_TEXTS:
            self._texts.clear()
            unknown = list(rows)
        self._texts.update(self._read(unknown))
        if any(row not in self._texts for row in unknown):
            raise ArtifactRejected(
                "The index is damaged: its keyword index lacks chunks. Build it again with 'anvil build --force', or "
                "fetch it again."
            )
        return self._texts

    def forget(self, documents: Collection[int]) -> None:
        """Drop the texts of some documents."""
        self._texts = {row: text for row, text in self._texts.items() if row >> row_ids.CHUNK_BITS not in documents}


def nearness(
    vectors: VectorIndex,
    rows: NDArray[np.int64],
    vector: NDArray[np.float32],
    named: NDArray[np.intp],
    count: int,
    allowed: NDArray[np.bool_] | None,
) -> Nearness:
    """:meth:`CandidateIndex.with_nearest` where all ``vectors`` are in memory. ``rows``: that of each place; ``named``:
    places; ``allowed``: a mask over them."""
    pages = vectors.page_similarity(vector)
    similarities = with_page(vectors.similarity(vector), pages).astype(np.float64).round(SCORE_DIGITS)
    places = np.union1d(named, best_places(similarities, allowed, count))
    page_cosines = pages[places].astype(np.float64).round(SCORE_DIGITS)
    return Nearness(
        rows[places].tolist(), similarities[places], page_cosines, float(similarities.mean()), float(similarities.max())
    )


def best_places(values: NDArray[np.float64], allowed: NDArray[np.bool_] | None, count: int) -> NDArray[np.intp]:
    """The places of the ``count`` highest ``values`` among those ``allowed``, ascending, and of all that tie with the
    last of them, so that the order of a file does not decide."""
    places = np.arange(len(values)) if allowed is None else np.flatnonzero(allowed)
    if len(places) > count:
        lowest = np.partition(values[places], len(places) - count)[len(places) - count]
        places = places[values[places] >= lowest]
    return places
