"""Search over an index in Milvus: it names the candidates, and they are scored as those of a file are.

Milvus' BM25 and its index of vectors name more than are wanted. Of these the words, vectors and pages' means are
fetched; then the same candidates are chosen, and the same exact scores computed, as if all were here. What is kept
whole is the list of pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from anvil import globs, lexicon, ranking
from anvil.milvus import layout
from anvil.milvus.reading import Words
from anvil.overlaid import Overlaid
from anvil.searching import DIGITS, Phrases, Searcher, _Scored
from anvil.store import connection, identity
from anvil.store.stemming import Stemmer
from anvil.vectors import VectorTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.embedding import EmbeddingProvider

WIDE = 100
"""Chunks that Milvus names by words, of which the best are candidates."""
PHRASED = 200
"""Chunks that are looked through for a phrase, best first by its words."""
NEAR = 200
"""Windows that Milvus names by a question's vector,"""
PAGES, IN_PAGES = 20, 100
"""and pages by their means, with so many windows in them."""
EXACT = 2
"""Of the chunks that they belong to, so many times the candidates are compared exactly."""
COUNTED = 500
"""Masked pages up to which the numbers of words are those of the text as it is now; beyond, as it was exported."""
REMEMBERED = 4096
"""Pages' means that are kept."""


class RemoteSearcher(Searcher):
    """Search over one generation and what lies over it. ``rows`` and ``documents`` are those of the last question's
    candidates, by page and position."""

    reader: Overlaid  # type: ignore[assignment]

    def __init__(self, reader: Overlaid, provider: EmbeddingProvider) -> None:
        listed = reader.listed()
        self._paths = [path for path, _, _ in listed]
        self._ids = np.array([id_ for _, id_, _ in listed], np.int64)
        self._sizes = np.array([size for _, _, size in listed], np.int64)
        self._rank = {int(id_): rank for rank, id_ in enumerate(self._ids)}
        self._centroids: dict[int, NDArray[np.float32]] = {}
        self._holding: dict[str, _Holders] = {}
        self._sample: VectorTable | None = None
        self._above: tuple[list[int], VectorTable] | None = None
        self._masked: Counter[str] = Counter()
        super().__init__(reader, provider)  # type: ignore[arg-type]
        self._without_masked()

    def _stemmer(self) -> Stemmer:
        return Stemmer(connection.open_scratch(":memory:"))

    def _loaded(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def _has_vectors(self) -> bool:
        return self.reader.counts()["vectors"] > 0

    def warm(self) -> None:
        """Nothing of the vectors is held."""

    def forget_vectors(self) -> None:
        """There are other vectors above."""
        self._above = None

    # --- filters ---------------------------------------------------------------------------------------------

    def _allowed(self, file_filter: str | None, paths: Collection[str] | None) -> NDArray[np.bool_] | None:
        """Which pages are let through, by their place in the list; None: all."""
        if file_filter is None and paths is None:
            return None
        glob = globs.compile("**" if file_filter is None else file_filter)
        within = None if paths is None else frozenset(paths)
        return np.array([glob.matches(path) and (within is None or path in within) for path in self._paths], bool)

    def _size(self, allowed: NDArray[np.bool_] | None) -> int:
        return int(self._sizes.sum() if allowed is None else self._sizes[allowed].sum())

    def _within(self, allowed: NDArray[np.bool_] | None) -> str | None:
        """The filter for what lies below; None when nothing there is let through."""
        masked = self.reader.masked
        if allowed is None:
            return layout.within(None, masked)
        chosen = {id_ for id_ in self._ids[allowed].tolist() if not self.reader.is_above(id_)}
        if not chosen:
            return None
        if 2 * len(chosen) <= len(self.reader.below.paths):
            return layout.within(chosen, ())
        return layout.within(None, self.reader.below.paths.keys() - chosen)

    def _over(self, allowed: NDArray[np.bool_] | None) -> list[int]:
        """The documents above that are let through."""
        if self.reader.above is None:
            return []
        ids = self._ids if allowed is None else self._ids[allowed]
        return [id_ for id_ in ids.tolist() if self.reader.is_above(id_)]

    def _everything(self, allowed: NDArray[np.bool_] | None) -> set[int]:
        return set(self.reader.rows_of((self._ids if allowed is None else self._ids[allowed]).tolist()))

    # --- words -----------------------------------------------------------------------------------------------

    def _ranked(
        self, text: str, vector: NDArray[np.float32] | None, allowed: NDArray[np.bool_] | None, count: int
    ) -> list[_Scored]:
        self.reader.below.frequencies(lexicon.analysed(text, self.stem).terms)  # all at once
        return super()._ranked(text, vector, allowed, count)

    def _frequency(self, word: str) -> int:
        """How many chunks hold a word: as exported, without the masked ones, and above."""
        if word not in self._frequencies:
            counts = self.reader.below.frequencies(self.stem(word))
            below = min((count - self._masked[token] for token, count in counts.items()), default=0)
            above = self.reader.above.frequency(lexicon.literal(word)) if self.reader.above is not None else 0
            self._frequencies[word] = below + above
        return self._frequencies[word]

    def _without_masked(self) -> None:
        """Take what is masked out of the words' numbers, and what lies above into the mean length."""
        reader, masked = self.reader, self.reader.masked
        if reader.above is None or len(masked) > COUNTED:
            return
        words = reader.below.words(reader.below.rows_of(masked))
        self._masked = Counter(token for each in words.values() for token in set(" ".join(each.columns).split()))
        chunks = reader.above.counts()["chunks"]
        total = reader.below.average_length() * reader.below.counts()["chunks"] - sum(w.length for w in words.values())
        self.average = (total + reader.above.average_length() * chunks) / max(self._size(None), 1)

    def _phrases(self, query: lexicon.Query) -> Phrases:
        found: Phrases = {}
        self._holding = {}
        for text, weight in query.phrases.items():
            holders = self._holding[text] = self._holders(text)
            if count := len(holders.seen):
                found[text] = (holders, weight * ranking.idf(count, self._size(None)))
        return found

    def _holders(self, text: str) -> _Holders:
        named = self.reader.below.matching(self._tokens([text]), PHRASED, layout.within(None, self.reader.masked))
        if self.reader.above is not None:
            named += self.reader.above.holding(lexicon.literal(text), PHRASED)
        holders = _Holders(self._words, self.stem(text))
        holders.seen = {row for row, held in holders.held(named).items() if held}
        return holders

    def _tokens(self, wanted: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(token for each in wanted for token in self.stem(each)))

    def _matching(self, wanted: Sequence[str], count: int, allowed: NDArray[np.bool_] | None) -> list[int]:
        within, over = self._within(allowed), self._over(allowed)
        named = [] if within is None else self.reader.below.matching(self._tokens(wanted), WIDE, within)
        if over and self.reader.above is not None:
            named += self.reader.above.matching(lexicon.any_of(wanted), ranking.FIELD_WEIGHTS, WIDE, over)
        scores = self._keyword_scores(named, wanted)
        return sorted(named, key=lambda row: (-scores[row], row))[:count]

    def _keyword_scores(self, rows: Sequence[int], wanted: Sequence[str]) -> dict[int, float]:
        """BM25 as the keyword index of a file computes it, to choose whom it would choose."""
        terms = [(tokens, self._idf(each)) for each in dict.fromkeys(wanted) if (tokens := self.stem(each))]
        found = {}
        for row, (columns, length) in self._words(rows).items():
            norm = ranking.K1 * (1 - ranking.B + ranking.B * length / max(self.average, 1.0))
            counts = [Counter(column.split()) for column in columns]
            score = 0.0
            for tokens, idf in terms:
                frequency = 0.0
                for weight, column, count in zip(ranking.FIELD_WEIGHTS, columns, counts, strict=True):
                    held = count[tokens[0]] if len(tokens) == 1 else column.count(f" {' '.join(tokens)} ")
                    frequency += weight * held
                if frequency:
                    score += idf * frequency * (ranking.K1 + 1) / (frequency + norm)
            found[row] = score
        return found

    def _idf(self, word: str) -> float:
        count = len(self._holding[word].seen) if word in self._holding else self._frequency(word)
        return max(float(np.log((self._size(None) - count + 0.5) / (count + 0.5))), 1e-6)

    def _words(self, rows: Collection[int]) -> dict[int, Words]:
        below = [row for row in rows if not self.reader.is_above(row >> identity.CHUNK_BITS)]
        found = self.reader.below.words(below)
        if self.reader.above is not None and len(below) < len(rows):
            for row, text in self.reader.above.searched_text(set(rows) - set(below)).items():
                said = (text.title, text.heading_path, text.content, text.terms)
                found[row] = Words(tuple(f" {' '.join(self.stem(each))} " for each in said), text.length)
        return found

    def _places_of(self, rows: list[int]) -> set[int]:
        return set(rows)

    # --- vectors -------------------------------------------------------------------------------------------

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
        named = self._keyword_candidates(query, frequencies, weights, phrases, allowed, count)
        if vector is None:
            return self._placed(named), None
        near = self._exact(vector, named | self._named_near(vector, allowed, count), pages=True)
        peak = max(near.values(), default=0.0)
        if allowed is not None:
            peak = max([peak, *self._exact(vector, self._named_near(vector, None, count), pages=True).values()])
        places = self._placed(named | _best(near, count))
        values = np.array([near[row] for row in self.rows.tolist()], np.float64)
        return places, ranking.above_mean(values, self._mean(vector), peak)

    def _semantic(
        self, vector: NDArray[np.float32], allowed: NDArray[np.bool_] | None, top_k: int
    ) -> list[_Scored]:
        best = self._exact(vector, self._named_near(vector, allowed, top_k, pages=False), pages=False)
        self._placed(_best({row: cosine for row, cosine in best.items() if cosine > -1}, top_k))
        ranked = sorted((-best[row], place) for place, row in enumerate(self.rows.tolist()))[:top_k]
        return [(-score, place, [0.0, 0.0, -score]) for score, place in ranked]

    def _placed(self, rows: Collection[int]) -> NDArray[np.intp]:
        """Make these the candidates; their places."""
        chunks = self.reader.chunks(rows)
        ordered = sorted(rows, key=lambda row: (self._rank[chunks[row].document_id], chunks[row].ordinal))
        self.rows = np.array(ordered, np.int64)
        self.documents = self.rows >> identity.CHUNK_BITS
        return np.arange(len(ordered))

    def _named_near(
        self, vector: NDArray[np.float32], allowed: NDArray[np.bool_] | None, count: int, pages: bool = True
    ) -> set[int]:
        """Chunks that are nearest, by themselves or, with ``pages``, with their page: a few more than ``count``."""
        below, within = self.reader.below, self._within(allowed)
        cosines: dict[int, float] = {}
        if within is not None:
            found = below.nearest(vector, NEAR, within)
            if pages:
                chosen = [document for document, _ in below.nearest_pages(vector, PAGES, within)]
                found += below.nearest(vector, IN_PAGES, layout.within(chosen, ())) if chosen else []
            for row, cosine in found:
                cosines[row] = max(cosine, cosines.get(row, -1.0))
        if pages:
            means = self._means({row >> identity.CHUNK_BITS for row in cosines})
            lent = {document: ranking.PAGE_WEIGHT * float(mean @ vector) for document, mean in means.items()}
            cosines = {row: cosine + lent.get(row >> identity.CHUNK_BITS, 0.0) for row, cosine in cosines.items()}
        over = set(self._over(allowed))
        if over:
            rows, table = self._table_above()
            values = (table.near if pages else table.best)(vector)
            pairs = zip(rows, values.tolist(), strict=True)
            cosines |= {row: value for row, value in pairs if row >> identity.CHUNK_BITS in over}
        return set(sorted(cosines, key=lambda row: (-cosines[row], row))[: EXACT * count])

    def _exact(self, vector: NDArray[np.float32], rows: Collection[int], pages: bool) -> dict[int, float]:
        """Row -> its nearness as a table of all vectors gives it, rounded."""
        below = sorted(row for row in rows if not self.reader.is_above(row >> identity.CHUNK_BITS))
        found: dict[int, float] = {}
        if below:
            owners, vectors = self.reader.below.vectors(below)
            documents = np.array(below, np.int64) >> identity.CHUNK_BITS
            means = self._means(set(documents.tolist())) if pages else {}
            table = VectorTable(vectors, np.searchsorted(below, owners), documents, centroids=means)
            values = (table.near if pages else table.best)(vector)
            found = dict(zip(below, values.astype(np.float64).round(DIGITS).tolist(), strict=True))
        if len(below) < len(rows):
            above, table = self._table_above()
            values = (table.near if pages else table.best)(vector).astype(np.float64).round(DIGITS)
            found |= {row: value for row, value in zip(above, values.tolist(), strict=True) if row in rows}
        return found

    def _mean(self, vector: NDArray[np.float32]) -> float:
        """The mean nearness of all chunks as they were exported."""
        about = self.reader.below.about
        above = 0.0
        if about.sample:
            if self._sample is None:
                owners, vectors = self.reader.below.vectors(about.sample)
                rows = np.array(about.sample, np.int64)
                self._sample = VectorTable(vectors, np.searchsorted(rows, owners), rows)
            above = float(self._sample.best(vector).mean(dtype=np.float64) - self._sample.middle(0.0) @ vector)
        return float(np.dot(about.mean, vector)) + about.several * above - about.lacking

    def _means(self, documents: set[int]) -> Mapping[int, NDArray[np.float32]]:
        if len(self._centroids) > REMEMBERED:
            self._centroids.clear()
        self._centroids.update(self.reader.below.centroids(documents - self._centroids.keys()))
        return {document: self._centroids[document] for document in documents if document in self._centroids}

    def _table_above(self) -> tuple[list[int], VectorTable]:
        """The rows of what lies above, and their vectors by these."""
        if self._above is None:
            assert self.reader.above is not None
            rows = sorted(row for row, _ in self.reader.above.places())
            owners, vectors = self.reader.above.matrix()
            documents = np.array(rows, np.int64) >> identity.CHUNK_BITS
            self._above = rows, VectorTable(vectors, np.searchsorted(rows, owners), documents)
        return self._above


class _Holders:
    """The chunks that hold a phrase: those seen, and whichever is asked for."""

    def __init__(self, words: Callable[[Collection[int]], dict[int, Words]], tokens: Sequence[str]) -> None:
        self._words, self._phrase = words, f" {' '.join(tokens)} "
        self.seen: set[int] = set()

    def held(self, rows: Collection[int]) -> dict[int, bool]:
        """Row -> whether it holds the phrase."""
        return {row: any(self._phrase in each for each in said.columns) for row, said in self._words(rows).items()}

    def __contains__(self, row: object) -> bool:
        return row in self.seen or (isinstance(row, int) and self.held([row]).get(row, False))


def _best(scores: Mapping[int, float], count: int) -> set[int]:
    """The best rows, and all that tie with the last of them."""
    if len(scores) <= count:
        return set(scores)
    least = sorted(scores.values(), reverse=True)[count - 1]
    return {row for row, score in scores.items() if score >= least}
