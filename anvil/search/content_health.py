"""The health of indexed documents: sizes, duplicates, long sections, and pages without headings or text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anvil.formats.characters import is_unread
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredChunk, VectorRows
from anvil.search.pages import page_text
from anvil.settings.schema import BUNDLED_MODEL
from anvil.values import MIN_DUPLICATE_CHARS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    ChunkVectors = tuple[NDArray[np.int64], VectorRows, Mapping[int, StoredChunk]]

MIN_DUPLICATE_COSINE = 0.95
"""The cosine from which on two chunks are near duplicates. Title and breadcrumb are part of the embedded text."""
MAX_COMPARED_CHUNKS = 10_000
"""Chunks of an index that is searched for near duplicates: the number of pairs grows with the square."""
MAX_PAIRS = 20
"""Near duplicates in a report."""
MAX_EXTREMES = 10
"""Largest pages, and smallest pages, in a report."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A section or chunk. ``line``: 1-based, in the source file; None without one. ``title``: of its page."""

    file_path: str
    heading_path: str
    line: int | None
    chars: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class PageSize:
    """The characters of a page, and the number of its chunks."""

    file_path: str
    title: str
    chars: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two chunks of different pages whose mean vectors have the cosine ``similarity``."""

    first: Spot
    second: Spot
    similarity: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The number of chunks with at most ``up_to`` characters, and more than in the bar before."""

    up_to: int
    chunks: int


@dataclass(frozen=True, slots=True)
class ContentHealth:
    """Sizes of an index, and pages and sections that need work.

    - ``limit``: ``max_chunk_size`` of the index.
    - ``long_sections``: sections with more characters of their own than ``limit``, longest first.
    - ``duplicates``: groups of sections with the same text under their headings, longest first.
    - ``near_duplicates``: None if they were not searched: without vectors, or in more than ``MAX_COMPARED_CHUNKS``
      chunks.
    - ``without_headings``, ``empty_pages``: paths.
    - ``largest_pages``, ``smallest_pages``: at most ``MAX_EXTREMES`` each, without empty pages. No page is in both.
    """

    pages: int
    sections: int
    chunks: int
    windows: int
    characters: int
    pending_vectors: int
    limit: int
    long_sections: tuple[Spot, ...]
    duplicates: tuple[tuple[Spot, ...], ...]
    near_duplicates: tuple[Pair, ...] | None
    without_headings: tuple[str, ...]
    empty_pages: tuple[str, ...]
    chunk_sizes: tuple[Bar, ...]
    largest_pages: tuple[PageSize, ...] = ()
    smallest_pages: tuple[PageSize, ...] = ()


def read_index(reader: Reader) -> ContentHealth:
    """The report without its near duplicates: to find these takes longest, and needs no index."""
    meta, counts = reader.meta(), reader.counts()
    limit = int(json.loads(meta["chunking"])["max_chunk_size"])
    long_sections: list[Spot] = []
    bodies: dict[bytes, list[Spot]] = {}
    without_headings: list[str] = []
    empty: list[str] = []
    pages: list[PageSize] = []
    for document in reader.documents():
        sections = reader.sections(document.id)
        chunks = reader.page_chunks(document.id)
        text = page_text(chunks)
        if not text.strip():
            empty.append(document.file_path)
        else:
            pages.append(PageSize(document.file_path, document.title, len(text), len(chunks)))
            if not any(section.heading_level for section in sections):
                without_headings.append(document.file_path)
        for section in sections:
            own = text[section.start : section.end]
            spot = Spot(document.file_path, section.heading_path, section.start_line, len(own), document.title)
            if len(own) > limit:
                long_sections.append(spot)
            body = _body(own, section.heading_level)
            if len(body) >= MIN_DUPLICATE_CHARS:
                bodies.setdefault(_hash(body), []).append(spot)
    duplicates = [tuple(spots) for spots in bodies.values() if len(spots) > 1]
    pages.sort(key=lambda page: (-page.chars, page.file_path))
    smallest = min(MAX_EXTREMES, len(pages) // 2)
    return ContentHealth(
        pages=counts["documents"],
        sections=counts["sections"],
        chunks=counts["chunks"],
        windows=counts["windows"],
        characters=reader.characters(),
        pending_vectors=reader.lacking_vectors(),
        limit=limit,
        long_sections=tuple(sorted(long_sections, key=_longest_first)),
        duplicates=tuple(sorted(duplicates, key=lambda spots: _longest_first(spots[0]))),
        near_duplicates=None,
        without_headings=tuple(without_headings),
        empty_pages=tuple(empty),
        chunk_sizes=tuple(_bars(reader.chunk_sizes(), limit)),
        largest_pages=tuple(pages[: min(MAX_EXTREMES, len(pages) - smallest)]),
        smallest_pages=tuple(reversed(pages[len(pages) - smallest :])),
    )


def compared_vectors(reader: Reader) -> ChunkVectors | None:
    """The vectors for :func:`near_duplicates`; None without vectors, or with more than ``MAX_COMPARED_CHUNKS`` chunks.

    The bundled model reads Latin script. Its vector of a text in another script is that of the code and the names in
    it, so a Russian and a Japanese list of keys would be alike. Such texts are left out.
    """
    counts = reader.counts()
    if not counts["vectors"] or counts["chunks"] > MAX_COMPARED_CHUNKS:
        return None
    owners, rows = reader.matrix()
    chunks = reader.chunks(set(owners.tolist()))
    if reader.meta().get("embedding_model") == BUNDLED_MODEL:
        chunks = {row: chunk for row, chunk in chunks.items() if not is_unread(chunk.content, ("LATIN",))}
        is_read = [owner in chunks for owner in owners.tolist()]
        owners, rows = owners[is_read], rows[is_read]
    return owners, rows, chunks


def _longest_first(spot: Spot) -> tuple[int, str, int]:
    return -spot.chars, spot.file_path, spot.line or 0


def _body(text: str, level: int) -> str:
    """The text under a heading, with white space collapsed."""
    return " ".join((text.partition("\n")[2] if level else text).split())


def _hash(body: str) -> bytes:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).digest()


def near_duplicates(vectors: ChunkVectors | None, limit: int = MAX_PAIRS) -> tuple[Pair, ...] | None:
    """The ``limit`` nearest pairs of chunks of different pages, without pairs of equal text.

    ``vectors``: from :func:`compared_vectors`; None gives None.
    """
    from anvil.search.candidates import nearest_pairs

    if vectors is None:
        return None
    owners, rows, chunks = vectors
    texts: dict[bytes, int] = {}  # chunks with equal text are duplicates, not near duplicates
    text = {
        row: texts.setdefault(_hash(_body(chunk.content, chunk.metadata.heading_level)), len(texts))
        for row, chunk in chunks.items()
    }
    page = {row: chunk.document_id for row, chunk in chunks.items()}  # sections of one page are often similar
    pairs = []
    for a, b, similarity in nearest_pairs(rows, owners, (text, page), MIN_DUPLICATE_COSINE, limit):
        first, second = sorted((_spot(chunks[a]), _spot(chunks[b])), key=lambda spot: (spot.file_path, spot.line or 0))
        pairs.append(Pair(first, second, round(similarity, 3)))
    return tuple(sorted(pairs, key=lambda pair: (-pair.similarity, pair.first.file_path, pair.first.line or 0)))


def _spot(chunk: StoredChunk) -> Spot:
    place = chunk.metadata
    return Spot(place.file_path, place.heading_path, place.start_line, len(chunk.content), chunk.title)


def _bars(sizes: Sequence[int], limit: int) -> Iterator[Bar]:
    bounds = [limit // 24, limit // 12, limit // 6, limit // 3, limit * 2 // 3, limit]
    if sizes and max(sizes) > limit:
        bounds.append(max(sizes))
    below = -1
    for bound in bounds:
        yield Bar(bound, sum(below < size <= bound for size in sizes))
        below = bound
