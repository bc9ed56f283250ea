"""The candidates of an SQLite index: its keyword index, and its vectors in memory.

Tables in memory are built at their first use and stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from anvil.formats import patterns
from anvil.index_file.fts_table import Stemmer
from anvil.index_file.reader import Reader
from anvil.index_file.rows import SearchedText
from anvil.search import scoring
from anvil.search.ranking import SCORE_DIGITS, Near, Nearness, RowSet, TextCache, best_places, nearness
from anvil.search.vector_index import VectorIndex
from anvil.text import page_weights
from anvil.text import query as lexicon
from anvil.text.page_links import PageLinks, PossibleLink, links_of
from anvil.text.page_weights import NO_FACTORS, PageFactors, factors

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_WORDS, MAX_WORD_CHARS = 20_000, 100
"""Words whose frequency is cached, and the characters of the longest of them."""
MAX_FILTERS = 8
"""Globs whose selection is cached."""
MAX_PHRASE_ROWS = 1000
"""Chunks that are counted for a phrase."""


LinkCache = dict[tuple[str, bytes], tuple[PossibleLink, ...]]
"""Path and digest of a page -> the links in it."""


class KeywordTables:
    """Words, phrases and texts from the keyword index of an SQLite file, with caches."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frequencies: dict[str, int] = {}
        self.text_cache = TextCache(reader.searched_text)

    @property
    def links(self) -> PageLinks | None:
        """Not known here."""
        return None

    @property
    def page_factors(self) -> PageFactors:
        """Not known here."""
        return NO_FACTORS

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        return {token: self._frequency(word) for token, word in words.items()}

    def _frequency(self, word: str) -> int:
        if len(word) > MAX_WORD_CHARS:
            return self._reader.frequency(lexicon.literal(word))
        if word not in self._frequencies:
            if len(self._frequencies) >= MAX_WORDS:
                self._frequencies.clear()
            self._frequencies[word] = self._reader.frequency(lexicon.literal(word))
        return self._frequencies[word]

    def forget_frequencies(self) -> None:
        self._frequencies.clear()

    def forget_unused(self) -> None:
        """Drop the frequencies of words that no chunk has: a new document may have them."""
        self._frequencies = {word: count for word, count in self._frequencies.items() if count}

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        return {phrase: frozenset(self._reader.holding(lexicon.literal(phrase), MAX_PHRASE_ROWS)) for phrase in phrases}

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        return self.text_cache.get(rows)


class FileIndex(KeywordTables):
    """An index file, or a copy of one in memory. A selection is a mask over :attr:`rows`."""

    def __init__(self, reader: Reader, link_cache: LinkCache | None = None) -> None:
        """``link_cache``: the links of pages as they were before an edit. It gets those of all pages of this index."""
        super().__init__(reader)
        self.reader = reader
        self._link_cache: LinkCache = {} if link_cache is None else link_cache
        self.stem = Stemmer(reader.connection)
        self.average_length = reader.average_length()
        flat = np.fromiter(chain.from_iterable(reader.places()), np.int64)  # without an object for each chunk
        self.rows, self._documents = np.ascontiguousarray(flat.reshape(-1, 2).T)
        self._by_row = np.argsort(self.rows)
        self._selections: dict[str, NDArray[np.bool_]] = {}
        self._vectors: VectorIndex | None = None

    @property
    def vectors(self) -> VectorIndex:
        """All vectors, by the place of their chunk in :attr:`rows`."""
        if self._vectors is None:
            owners, vectors = self.reader.matrix()
            self._vectors = VectorIndex(vectors, self._places(owners), self._documents)
        return self._vectors

    @property
    def has_vectors(self) -> bool:
        return bool(len(self.vectors.rows))

    @cached_property
    def _links(self) -> PageLinks:
        cache, pages = self._link_cache, self.reader.addresses()
        new = [page.id for page in pages if (page.path, page.digest) not in cache]
        texts = map(self.reader.page_text, new) if len(new) < len(pages) else self.reader.page_texts()
        found = links_of(pages, texts)
        links = {page.id: found.get(page.id) or cache.get((page.path, page.digest), ()) for page in pages}
        cache.clear()
        cache.update(((page.path, page.digest), links[page.id]) for page in pages)
        return PageLinks(pages, links)

    @property
    def links(self) -> PageLinks | None:
        return self._links or None

    @property
    def page_factors(self) -> PageFactors:
        return self._page_factors

    @cached_property
    def _page_factors(self) -> PageFactors:
        return factors(self.reader.paths(), page_weights.recalled(self.reader.meta().get("weights")))

    def warm(self) -> None:
        """Read what the first query would wait for."""
        len(self.vectors.rows)
        bool(self.links)

    def forget_vectors(self) -> None:
        """Read the vectors again at their next use: the same chunks have other ones."""
        self._vectors = None

    def select(self, file_filter: str | None, paths: Collection[str] | None) -> NDArray[np.bool_] | None:
        """The chunks whose path is in ``file_filter`` and is one of ``paths``; None where neither is given."""
        if not file_filter and paths is None:
            return None
        pattern = patterns.bounded(file_filter or "")
        if paths is None and pattern in self._selections:
            return self._selections[pattern]
        is_selected = patterns.selects(pattern)
        allowed = None if paths is None else frozenset(paths)
        documents = [
            id_ for id_, path in self.reader.paths() if is_selected(path) and (allowed is None or path in allowed)
        ]
        mask = np.isin(self._documents, np.array(documents, np.int64))
        if paths is None:
            if len(self._selections) >= MAX_FILTERS:
                self._selections.clear()
            self._selections[pattern] = mask
        return mask

    def count(self, selection: NDArray[np.bool_] | None = None) -> int:
        return len(self.rows) if selection is None else int(selection.sum())

    def rows_in(self, selection: NDArray[np.bool_] | None) -> list[int]:
        rows: list[int] = (self.rows if selection is None else self.rows[selection]).tolist()
        return rows

    def in_order(self, rows: Collection[int]) -> list[int]:
        ordered: list[int] = self.rows[np.sort(self._places(np.fromiter(rows, np.int64)))].tolist()
        return ordered

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        return self._by_row[np.searchsorted(self.rows, rows, sorter=self._by_row)]

    def matching(self, words: Sequence[str], count: int, selection: NDArray[np.bool_] | None) -> list[int]:
        documents = None if selection is None else np.unique(self._documents[selection]).tolist()
        return self.reader.matching(lexicon.any_of(words), scoring.FIELD_WEIGHTS, count, documents)

    def with_nearest(
        self, vector: NDArray[np.float32], named: Collection[int], count: int, selection: NDArray[np.bool_] | None
    ) -> Nearness:
        by_words = self._places(np.fromiter(named, np.int64))
        return nearness(self.vectors, self.rows, vector, by_words, count, selection)

    def nearest(self, vector: NDArray[np.float32], count: int, selection: NDArray[np.bool_] | None) -> list[Near]:
        cosines = self.vectors.similarity(vector).astype(np.float64).round(SCORE_DIGITS)
        embedded = cosines > -1
        places = best_places(cosines, embedded if selection is None else selection & embedded, count)
        pages = self.vectors.page_similarity(vector)[places].astype(np.float64).round(SCORE_DIGITS)
        return [
            Near(*near)
            for near in zip(self.rows[places].tolist(), cosines[places].tolist(), pages.tolist(), strict=True)
        ]
