"""Row ids, made from paths and headings.

A document's id is a slot: a hash of its library and path. A chunk's id is its document's id followed by a slot for its
breadcrumb. A window's id is its chunk's id followed by its number. So the rows of a page are neighbours (short deltas
in the keyword index), and an edit changes no other id (small diffs in git).
"""

from __future__ import annotations

import hashlib
from collections.abc import Container

from anvil.errors import BuildError

DOCUMENT_BITS = 18
CHUNK_BITS = 15
CHUNK_SLOT_BITS = 10
"""A chunk's slot is one of the first 1024 of its document: near rows make short deltas."""
WINDOW_BITS = 12


def _slot(text: str, bits: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - bits)


def document_id(library: str, file_path: str, taken: Container[int]) -> int:
    """A document's id: its slot, or the next one that is not in ``taken``. After the last comes the first."""
    slot, count = _slot(f"{library}\0{file_path}", DOCUMENT_BITS), 1 << DOCUMENT_BITS
    for step in range(count):
        if (slot + step) % count not in taken:
            return (slot + step) % count
    raise BuildError(f"An index holds {count:,} documents at most. Make several, one for each part of them.")


def most_chunks() -> int:
    """How many chunks a document may have."""
    return 1 << CHUNK_BITS


class ChunkRows:
    """The row ids of one document's chunks. Each chunk gets the first free one from its slot on."""

    def __init__(self, document: int) -> None:
        self._first = document << CHUNK_BITS
        self._beyond: dict[int, int] = {}
        """Used place -> a later place; all places between are used. Each search shortens these paths, so that a
        thousand equal headings, which have the same slot, take hardly longer than different ones."""

    def take(self, heading_path: str) -> int:
        """The row id of the next chunk. Raises :class:`BuildError` for more than :func:`most_chunks`."""
        count, beyond = most_chunks(), self._beyond
        if len(beyond) == count:
            raise BuildError(f"A document holds {count:,} chunks at most. Split it, or raise chunking.max_chunk_size.")
        place = _slot(heading_path, CHUNK_SLOT_BITS) % count
        while place in beyond:
            beyond[place] = beyond.get(beyond[place], beyond[place])
            place = beyond[place]
        beyond[place] = (place + 1) % count
        return self._first + place


def chunk_key(file_path: str, heading_path: str, occurrence: int) -> bytes:
    """The portable id of a chunk, 8 bytes. ``occurrence``: number of chunks before it with the same breadcrumb."""
    return hashlib.sha256(f"{file_path}\0{heading_path}\0{occurrence}".encode()).digest()[:8]


def chunk_range(document: int) -> tuple[int, int]:
    """First and last possible chunk row of a document."""
    return document << CHUNK_BITS, ((document + 1) << CHUNK_BITS) - 1


def window_row(chunk: int, number: int) -> int:
    """Row id of a chunk's window."""
    return (chunk << WINDOW_BITS) + number


def window_range(first_chunk: int, last_chunk: int) -> tuple[int, int]:
    """First and last possible window row of a run of chunk rows."""
    return first_chunk << WINDOW_BITS, ((last_chunk + 1) << WINDOW_BITS) - 1


def window_key(text: str) -> bytes:
    """Hash of a window's exact text, 10 bytes: windows with the same key have the same vector."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:10]
