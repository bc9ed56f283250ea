"""Search over one index: by words, by vectors, or both.

The keyword index and the vectors each name their best candidates; over these few, exact scores are computed and
made one. Filters narrow what may be a candidate, so they never cost a result that exists.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from anvil import globs, lexicon, passages, ranking
from anvil.embedding import other_vectors
from anvil.errors import AnvilError, ConfigError
from anvil.models import Hit, Mode, SearchResult
from anvil.ranking import ScoreParts
from anvil.store.reading import Reader
from anvil.store.stemming import Stemmer
from anvil.store.stored import SearchedText
from anvil.vectors import VectorTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.embedding import EmbeddingProvider

CANDIDATES = 20
"""How many chunks each side names; more of them changed no result that mattered."""
ENOUGH = 20
"""Candidates that the words have to name, if so many hold one: the most results that can be asked for."""
POSTINGS = 1000
"""Entries of the keyword index that naming candidates may touch: rarest words first, the others only score."""
FILTERED_POSTINGS = 10_000
"""The same where a filter lets only some of the entries through."""
SMALL = 400
"""A filter that lets through no more chunks than this makes them all candidates."""
REMEMBERED = 1024
"""Chunks whose texts are kept."""
FILTERS = 8
"""Globs whose choice of chunks is kept."""
DIGITS = 6
"""Scores are rounded before they are compared: one text has one score, wherever in a block of vectors it lies."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hits in descending score, how many chunks the filter let through, notes on how they were found, and of each hit
    the row of its chunk and the parts of its score."""

    hits: tuple[Hit, ...]
    total_chunks: int
    notes: tuple[str, ...]
    rows: tuple[int, ...] = ()
    parts: tuple[ScoreParts, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """A search's answer, and the parts of each of its scores."""

    result: SearchResult
    parts: tuple[ScoreParts, ...]


Phrases = dict[str, tuple[Container[int], float]]
"""Phrases that occur: text -> (the rows that hold it, weight)."""
_Scored = tuple[float, int, list[float]]
"""A score, a place, and the score's parts before the page's: words, heading, vectors."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query's unit vector (dimensions,), or why it has none."""

    vector: NDArray[np.float32] | None
    error: AnvilError | None = None


def embedded(query: str, provider: EmbeddingProvider) -> Question:
    """Embed a query. It touches no index, so no lock need be held."""
    try:
        return Question(provider.embed_query(query))
    except AnvilError as error:
        return Question(None, error)


class Searcher:
    """Search over what a reader holds now. Tables in memory are made when first needed and kept."""

    def __init__(self, reader: Reader, provider: EmbeddingProvider) -> None:
        self.reader = reader
        self.provider = provider
        self.stem = self._stemmer()
        self.rows, self.documents = self._loaded()
        """Chunk row and document of each place."""
        self.average = reader.average_length()
        self._frequencies: dict[str, int] = {}
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._texts: dict[int, SearchedText] = {}
        self._table: VectorTable | None = None
        self._why_not = self._obstacle()

    def _stemmer(self) -> Stemmer:
        return Stemmer(self.reader.connection)

    def _loaded(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        flat = np.fromiter(chain.from_iterable(self.reader.places()), np.int64)  # no object a chunk, also in passing
        rows, documents = np.ascontiguousarray(flat.reshape(-1, 2).T)
        self._by_row = np.argsort(rows)
        return rows, documents

    def _obstacle(self) -> str | None:
        """Why there is no semantic search, or None."""
        meta = self.reader.meta()
        if meta["embedding_dimensions"] == "0":
            return "Semantic search is off: the index was built without vectors (embedding provider none)."
        try:
            digest = self.provider.digest
        except AnvilError as error:
            return f"Semantic search is off: {error}"
        if meta["embedding_model_digest"] != digest:
            return f"Semantic search is off: {other_vectors(meta, self.provider)}"
        return None

    @property
    def semantic(self) -> bool:
        """Whether questions can be compared with the vectors here."""
        return self._why_not is None

    def warm(self) -> None:
        """Make what a first question would wait for."""
        len(self.table.rows)

    def forget_vectors(self) -> None:
        """The reader holds other vectors now, of the same chunks."""
        self._table = None

    def search(
        self,
        query: str,
        top_k: int,
        file_filter: str | None,
        max_chars: int,
        mode: Mode,
        threshold: float,
        question: Question | None = None,
        paths: Collection[str] | None = None,
    ) -> Found:
        """The best ``top_k`` (clamped to 1..20) chunks. ``question``: ``query`` embedded already; made here if not.
        ``paths``: only of these documents.

        Raises :class:`ConfigError` for a blank query, an unknown mode, or semantic search where there is none.
        """
        if not query.strip():
            raise ConfigError("query parameter is required")
        if mode not in ("hybrid", "semantic", "keyword"):
            raise ConfigError(f"Unknown mode {mode!r}. Use hybrid, semantic or keyword.")
        if mode == "semantic" and self._why_not:
            raise ConfigError(self._why_not)
        allowed = self._allowed(file_filter, paths)
        total = self._size(allowed)
        notes = [self._why_not] if self._why_not and mode == "hybrid" else []
        vector = None
        if mode != "keyword" and not self._why_not and total:
            question = question or embedded(query, self.provider)
            vector = question.vector
            if question.error is not None:
                if mode == "semantic":
                    raise question.error
                notes.append(f"Semantic search is off: {question.error}")
        top_k = min(max(top_k, 1), ENOUGH)
        if not total:
            scored: list[_Scored] = []
        elif mode == "semantic" and vector is not None:
            scored = self._semantic(vector, allowed, top_k)
        else:
            if vector is not None and not self._has_vectors():
                vector = None  # none is made yet: they would only make all chunks equal
            scored = self._ranked(query, vector, allowed, CANDIDATES)
        scored = [each for each in scored if threshold <= 0 or each[0] >= threshold][:top_k]
        rows = tuple(int(self.rows[place]) for _, place, _ in scored)
        hits = self._hits(rows, [score for score, _, _ in scored], query, max_chars)
        return Found(hits, total, tuple(notes), rows, tuple(_parts(score, summands) for score, _, summands in scored))

    def _has_vectors(self) -> bool:
        return bool(len(self.table.rows))

    # --- candidates and scores -----------------------------------------------------------------------------

    def _allowed(self, file_filter: str | None, paths: Collection[str] | None) -> NDArray[np.bool_] | None:
        """Which places a glob, and a choice of paths, let through; None: all."""
        if file_filter is None and paths is None:
            return None
        if paths is None and file_filter in self._masks:
            return self._masks[file_filter]
        glob = globs.compile("**" if file_filter is None else file_filter)
        within = None if paths is None else frozenset(paths)
        chosen = [
            id_
            for id_, path in self.reader.paths()
            if glob.matches(path) and (within is None or path in within)
        ]
        mask = np.isin(self.documents, np.array(chosen, np.int64))
        if paths is None and file_filter is not None:
            if len(self._masks) >= FILTERS:
                self._masks.clear()
            self._masks[file_filter] = mask
        return mask

    def _size(self, allowed: NDArray[np.bool_] | None) -> int:
        """How many chunks are let through."""
        return len(self.rows) if allowed is None else int(allowed.sum())

    def _semantic(
        self, vector: NDArray[np.float32], allowed: NDArray[np.bool_] | None, top_k: int
    ) -> list[_Scored]:
        best = self.table.best(vector).astype(np.float64).round(DIGITS)
        chosen = _best_places(best, best > -1 if allowed is None else allowed & (best > -1), top_k)
        ranked = sorted((-float(best[place]), place) for place in chosen)[:top_k]
        return [(-score, place, [0.0, 0.0, -score]) for score, place in ranked]

    def _ranked(
        self, text: str, vector: NDArray[np.float32] | None, allowed: NDArray[np.bool_] | None, count: int
    ) -> list[_Scored]:
        """The candidates, best first: at least ``count`` a side, where there are so many."""
        query = lexicon.analysed(text, self.stem)
        frequencies = {token: self._frequency(word) for token, (_, word) in query.terms.items()}
        weights = {
            token: weight * ranking.idf(frequencies[token], self._size(None))
            for token, (weight, _) in query.terms.items()
            if frequencies[token]
        }
        phrases = self._phrases(query)
        places, dense = self._candidates(query, frequencies, weights, phrases, vector, allowed, count)
        if not len(places):
            return []
        lexical, coverage = self._lexical(places, weights, phrases)
        if vector is None:  # without vectors, what holds none of the words is no result
            held = lexical > 0
            places, lexical, coverage = places[held], lexical[held], coverage[held]
        scores, summands = ranking.fused(lexical, coverage, dense)
        found = scores.tolist()
        if dense is not None:
            found = ranking.lifted(found, self.documents[places].tolist())
        rounded = (round(score, DIGITS) for score in found)
        ranked = zip(rounded, places.tolist(), summands.tolist(), strict=True)
        return sorted(ranked, key=lambda each: (-each[0], each[1]))

    def _candidates(
        self,
        query: lexicon.Query,
        frequencies: dict[str, int],
        weights: dict[str, float],
        phrases: Phrases,
        vector: NDArray[np.float32] | None,
        allowed: NDArray[np.bool_] | None,
        count: int,
    ) -> tuple[NDArray[np.intp], NDArray[np.float64] | None]:
        """The places that words and vectors name, ascending, and how near each is, in 0..1; None without a vector."""
        named = self._keyword_candidates(query, frequencies, weights, phrases, allowed, count)
        if vector is None:
            return np.array(sorted(named), np.intp), None
        near = self.table.near(vector).astype(np.float64).round(DIGITS)
        places = np.array(sorted(named | _best_places(near, allowed, count)), np.intp)
        return places, ranking.above_mean(near[places], float(near.mean()), float(near.max()))

    def _keyword_candidates(
        self,
        query: lexicon.Query,
        frequencies: dict[str, int],
        weights: dict[str, float],
        phrases: Phrases,
        allowed: NDArray[np.bool_] | None,
        count: int,
    ) -> set[int]:
        if self._size(allowed) <= SMALL:
            return self._everything(allowed)
        tokens = sorted(weights, key=lambda token: (frequencies[token], token))
        words = [query.terms[token][1] for token in tokens]
        costs = np.cumsum([frequencies[token] for token in tokens])
        few = max(int((costs <= (POSTINGS if allowed is None else FILTERED_POSTINGS)).sum()), 1)
        rows: list[int] = []
        for some in sorted({min(few, len(words)), len(words)}):  # all words, when the rare ones name too few
            wanted = [*words[:some], *phrases]
            if wanted and len(rows) < min(count, ENOUGH):
                rows = self._matching(wanted, count, allowed)
        return self._places_of(rows)

    def _everything(self, allowed: NDArray[np.bool_] | None) -> set[int]:
        return set(np.arange(len(self.rows)) if allowed is None else np.flatnonzero(allowed))

    def _matching(self, wanted: Sequence[str], count: int, allowed: NDArray[np.bool_] | None) -> list[int]:
        """Rows of the allowed chunks that fit some words and phrases best."""
        documents = None if allowed is None else np.unique(self.documents[allowed]).tolist()
        return self.reader.matching(lexicon.any_of(wanted), ranking.FIELD_WEIGHTS, count, documents)

    def _places_of(self, rows: list[int]) -> set[int]:
        found = np.searchsorted(self.rows, np.array(rows, np.int64), sorter=self._by_row)
        return set(self._by_row[found].tolist())

    def _frequency(self, word: str) -> int:
        if word not in self._frequencies:
            self._frequencies[word] = self.reader.frequency(lexicon.literal(word))
        return self._frequencies[word]

    def _phrases(self, query: lexicon.Query) -> Phrases:
        """The phrases that occur: text -> (rows that hold it, weight)."""
        found: Phrases = {}
        for text, weight in query.phrases.items():
            rows = frozenset(self.reader.holding(lexicon.literal(text), 1000))
            if rows:
                found[text] = (rows, weight * ranking.idf(len(rows), self._size(None)))
        return found

    def _lexical(
        self,
        places: NDArray[np.intp],
        weights: dict[str, float],
        phrases: Phrases,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = self.rows[places].tolist()
        unknown = [row for row in rows if row not in self._texts]
        if len(self._texts) + len(unknown) > REMEMBERED:
            self._texts.clear()
            unknown = rows
        self._texts.update(self.reader.searched_text(unknown))
        again, counts = self.stem.counts_again, self.stem.counter(weights)
        scored = []
        for row in rows:
            text = self._texts[row]
            found = (again(text.title), again(text.heading_path), counts(text.content), counts(text.terms))
            held = sum(weight for holders, weight in phrases.values() if row in holders)
            scored.append(ranking.bm25f(ranking.Fields(found, text.length), weights, self.average, held))
        pairs = np.array(scored, np.float64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    @property
    def table(self) -> VectorTable:
        """All vectors, by place."""
        if self._table is None:
            owners, vectors = self.reader.matrix()
            order = np.argsort(self.rows)
            places = order[np.searchsorted(self.rows, owners, sorter=order)]
            self._table = VectorTable(vectors, places, self.documents)
        return self._table

    # --- results -------------------------------------------------------------------------------------------

    def _hits(self, rows: Sequence[int], scores: Sequence[float], query: str, max_chars: int) -> tuple[Hit, ...]:
        chunks = self.reader.chunks(rows)
        found = [
            Hit(chunks[row].content, score, chunks[row].metadata) for row, score in zip(rows, scores, strict=True)
        ]
        return within_budget(found, query, max_chars)


def _parts(score: float, summands: list[float]) -> ScoreParts:
    words, heading, vectors = (round(each, DIGITS) for each in summands)
    return ScoreParts(words, heading, vectors, round(score - sum(summands), DIGITS) + 0.0)  # no -0.0


def _best_places(scores: NDArray[np.float64], allowed: NDArray[np.bool_] | None, count: int) -> set[int]:
    places = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
    if len(places) > count:
        # all that tie with the last one too, so that no order of the file decides
        least = np.partition(scores[places], len(places) - count)[len(places) - count]
        places = places[scores[places] >= least]
    return {int(place) for place in places}


def within_budget(hits: list[Hit], query: str, max_chars: int) -> tuple[Hit, ...]:
    """Cut the lower ranks' contents, last first, to the passage that matched, so that all fit ``max_chars``.

    Whole lines; each keeps at least its fair share of the budget. Metadata and the number of hits stay.
    """
    total = sum(len(hit.content) for hit in hits)
    share = max(max_chars // max(len(hits), 1), 1)
    wanted = passages.roots(query)
    found = list(hits)
    for place in reversed(range(len(found))):
        content = found[place].content
        if total <= max_chars:
            break
        size = max(share, len(content) - (total - max_chars))
        if size < len(content):
            start, end = passages.passage(content, wanted, size)
            found[place] = replace(found[place], content=content[start:end], truncated=True)
            total -= len(content) - (end - start)
    return tuple(found)
