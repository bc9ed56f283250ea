"""Several indexes as one: the candidates, frequencies and texts of all, so that one ranking compares them all.

A word weighs what it weighs in all indexes together, and a score is a share of the best of all. So a result means the
same in a collection of 30 chunks and in one of 30,000.

A row id of the union is the row id in its index, above which are the bits of the index's place in the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anvil.backends.store import row_ids
from anvil.backends.store.rows import SearchedText, SectionPlace, StoredChunk
from anvil.services.search.ranking import Near, Nearness, RowSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anvil.services.search.searcher import SearchableIndex

INDEX_SHIFT = 64
"""The bits of a row id in one index."""
DOCUMENT_SHIFT = INDEX_SHIFT - row_ids.CHUNK_BITS
"""The bits of a document id in one index."""


def place_of(row: int) -> tuple[int, int]:
    """The place of the index of a row of the union, and the row in that index."""
    return row >> INDEX_SHIFT, row & ((1 << INDEX_SHIFT) - 1)


class Part(NamedTuple):
    """One index of the union. ``semantic``: whether the query's vector can be compared with its vectors."""

    searched: SearchableIndex
    semantic: bool


class UnionIndex:
    """Several indexes as a :class:`anvil.services.search.searcher.SearchableIndex`. A selection is a tuple with the
    selection of each index."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        self._sizes = [part.searched.count() for part in parts]
        self.stem = parts[0].searched.stem
        words = sum(part.searched.average_length * size for part, size in zip(parts, self._sizes, strict=True))
        self.average_length = words / max(sum(self._sizes), 1)
        self.reader = UnionReader(parts)

    @property
    def has_vectors(self) -> bool:
        return any(part.semantic and part.searched.has_vectors for part in self._parts)

    def warm(self) -> None:
        """Read what the first query would wait for."""
        for part in self._parts:
            part.searched.warm()

    def forget_vectors(self) -> None:
        """Read the vectors again when they are needed."""
        for part in self._parts:
            part.searched.forget_vectors()

    def select(self, file_filter: str | None, paths: Collection[str] | None) -> tuple[Any, ...] | None:
        if file_filter is None and paths is None:
            return None
        return tuple(part.searched.select(file_filter, paths) for part in self._parts)

    def count(self, selection: tuple[Any, ...] | None = None) -> int:
        if selection is None:
            return sum(self._sizes)
        return sum(part.searched.count(chosen) for part, chosen in zip(self._parts, selection, strict=True))

    def frequencies(self, words: Mapping[str, str]) -> dict[str, int]:
        total: Counter[str] = Counter(dict.fromkeys(words, 0))
        for part in self._parts:
            total.update(part.searched.frequencies(words))
        return dict(total)

    def phrase_holders(self, phrases: Iterable[str]) -> Mapping[str, RowSet]:
        phrases = list(phrases)
        if not phrases:
            return {}
        each = [part.searched.phrase_holders(phrases) for part in self._parts]
        return {phrase: _UnionRows([holders[phrase] for holders in each]) for phrase in phrases}

    def matching(self, words: Sequence[str], count: int, selection: tuple[Any, ...] | None) -> list[int]:
        return [
            number << INDEX_SHIFT | row
            for number, (index, chosen) in self._selected(selection)
            for row in index.matching(words, count, chosen)
        ]

    def rows_in(self, selection: tuple[Any, ...] | None) -> list[int]:
        return [
            number << INDEX_SHIFT | row
            for number, (index, chosen) in self._selected(selection)
            for row in index.rows_in(chosen)
        ]

    def in_order(self, rows: Collection[int]) -> list[int]:
        return [
            number << INDEX_SHIFT | row
            for number, own in _by_index(rows).items()
            for row in self._parts[number].searched.in_order(own)
        ]

    def texts(self, rows: Sequence[int]) -> Mapping[int, SearchedText]:
        found: dict[int, SearchedText] = {}
        for number, own in _by_index(rows).items():
            texts = self._parts[number].searched.texts(own)
            found |= {number << INDEX_SHIFT | row: texts[row] for row in own}
        return found

    def with_nearest(
        self, vector: NDArray[np.float32], named: Collection[int], count: int, selection: tuple[Any, ...] | None
    ) -> Nearness:
        by_words = _by_index(named)
        rows: list[int] = []
        similarities: list[NDArray[np.float64]] = []
        pages: list[NDArray[np.float64]] = []
        total, peak = 0.0, -2.0
        for number, (index, chosen) in self._selected(selection):
            own = by_words.get(number, [])
            if not (self._parts[number].semantic and index.has_vectors):
                rows += [number << INDEX_SHIFT | row for row in index.in_order(own)]
                similarities.append(np.full(len(own), -1.0))
                pages.append(np.zeros(len(own)))
                continue
            near = index.with_nearest(vector, own, count, chosen)
            rows += [number << INDEX_SHIFT | row for row in near.rows]
            similarities.append(near.similarities)
            pages.append(near.pages)
            total += near.mean * self._sizes[number]
            peak = max(peak, near.peak)
        nearness = Nearness(rows, np.concatenate(similarities), np.concatenate(pages), 0.0, peak)
        sizes = [size for part, size in zip(self._parts, self._sizes, strict=True) if part.semantic]
        return _nearest_of(nearness._replace(mean=total / max(sum(sizes), 1)), frozenset(named), count)

    def nearest(self, vector: NDArray[np.float32], count: int, selection: tuple[Any, ...] | None) -> list[Near]:
        return [
            near._replace(row=number << INDEX_SHIFT | near.row)
            for number, (index, chosen) in self._selected(selection)
            if self._parts[number].semantic and index.has_vectors
            for near in index.nearest(vector, count, chosen)
        ]

    def _selected(self, selection: tuple[Any, ...] | None) -> Iterator[tuple[int, tuple[SearchableIndex, Any]]]:
        """(number, (index, its selection)) of the indexes in which anything is selected."""
        for number, part in enumerate(self._parts):
            chosen = None if selection is None else selection[number]
            if self._sizes[number] and (chosen is None or part.searched.count(chosen)):
                yield number, (part.searched, chosen)


class UnionReader:
    """The texts of results, from the index of each."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)

    def meta(self) -> dict[str, str]:
        """The manifest of the first index whose vectors can be searched; of the first, where there is none."""
        part = next((part for part in self._parts if part.semantic), self._parts[0])
        return part.searched.reader.meta()

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        found = {}
        for number, own in _by_index(rows).items():
            for row, chunk in self._parts[number].searched.reader.chunks(own).items():
                union_row = number << INDEX_SHIFT | row
                document = number << DOCUMENT_SHIFT | chunk.document_id
                found[union_row] = replace(chunk, row=union_row, document_id=document)
        return found

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        places: list[tuple[SectionPlace, ...]] = []
        for document, start, end in spans:
            number, own = document >> DOCUMENT_SHIFT, document & ((1 << DOCUMENT_SHIFT) - 1)
            places += self._parts[number].searched.reader.sections_in([(own, start, end)])
        return places

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        number, own = place_of(row)
        return self._parts[number].searched.reader.windows_of(own) if self._parts[number].semantic else []


class _UnionRows:
    """The rows of the union that hold a phrase."""

    def __init__(self, holders: Sequence[RowSet]) -> None:
        self._holders = holders

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, int):
            return False
        number, own = place_of(row)
        return own in self._holders[number]

    def __len__(self) -> int:
        return sum(map(len, self._holders))


def _by_index(rows: Iterable[int]) -> dict[int, list[int]]:
    """Place of an index -> its rows among ``rows``, in their order; by place."""
    found: dict[int, list[int]] = {}
    for row in rows:
        number, own = place_of(row)
        found.setdefault(number, []).append(own)
    return dict(sorted(found.items()))


def _nearest_of(nearness: Nearness, named: frozenset[int], count: int) -> Nearness:
    """The rows in ``named`` and the ``count`` nearest of all, ties included."""
    similarities = nearness.similarities
    lowest = np.sort(similarities)[-count] if len(similarities) > count else -2.0
    kept = np.array([row in named for row in nearness.rows], bool) | ((similarities >= lowest) & (similarities > -1))
    rows = [row for row, keep in zip(nearness.rows, kept.tolist(), strict=True) if keep]
    return Nearness(rows, similarities[kept], nearness.pages[kept], nearness.mean, nearness.peak)
