"""Row ids, made from paths and headings.

A document's id is a slot: a hash of its library and path. A chunk's id is its document's id followed by a slot for its
breadcrumb. A window's id is its chunk's id followed by its number. So the rows of a page are neighbours, and an edit
changes hardly any other id (small diffs in git).

The keyword index stores the distance of each row to the next one that has the word, in as few bytes as it needs. So
slots are as near each other as they can be: the first bits of a hash, and more of them only where those are taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator

from anvil.errors import BuildError

DOCUMENT_BITS = 18
DOCUMENT_SLOT_BITS = 12
"""Bits of the first slot of a document: 1,000 documents share 4,096 slots, so one that is added moves another one in
an eighth of the cases."""
CHUNK_BITS = 15
CHUNK_SLOT_BITS = 7
"""Bits of the first slot of a chunk. A distance below 128 takes one byte."""
WINDOW_BITS = 12


def _slots(text: str, fewest: int, most: int) -> Iterator[int]:
    """The slots of a text: its hash in ``fewest`` bits, in one more, and so on to ``most``."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    for bits in range(min(fewest, most), most + 1):
        yield number >> (64 - bits)


def document_id(library: str, file_path: str, taken: Container[int]) -> int:
    """A document's id: its first slot that is not in ``taken``, or the next id after the last of them."""
    slot, count = 0, 1 << DOCUMENT_BITS
    for slot in _slots(f"{library}\0{file_path}", DOCUMENT_SLOT_BITS, DOCUMENT_BITS):
        if slot not in taken:
            return slot
    for step in range(count):
        if (slot + step) % count not in taken:
            return (slot + step) % count
    raise BuildError(f"An index holds {count:,} documents at most. Make several, one for each part of them.")


def most_chunks() -> int:
    """How many chunks a document may have."""
    return 1 << CHUNK_BITS


class ChunkRows:
    """The row ids of one document's chunks. Each chunk gets its first slot that is free, or the next free place after
    the last of them."""

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
        place = 0
        for place in _slots(heading_path, CHUNK_SLOT_BITS, CHUNK_BITS):
            if place not in beyond:
                break
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
