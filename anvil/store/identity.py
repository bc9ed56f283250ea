"""Row ids from content identity.

A document's id is a slot hashed from its library and path; a chunk's id is its document's id followed by a
slot hashed from its breadcrumb; a window's id is its chunk's id followed by its number. So rows of one page
lie together (short deltas in the keyword index), and an edit moves no other row (small diffs in git).
"""

from __future__ import annotations

import hashlib
from collections.abc import Container

from anvil.errors import BuildError

DOCUMENT_BITS = 18
CHUNK_BITS = 15
CHUNK_SLOT_BITS = 10
"""Chunks start looking for a row among the first 1024 of their document's: near rows make short deltas."""
WINDOW_BITS = 12


def _slot(text: str, bits: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - bits)


def _free(base: int, slot: int, bits: int, taken: Container[int]) -> int:
    """``base + slot``, or the next row not ``taken``, around the end of the slots."""
    for step in range(1 << bits):
        row = base + (slot + step) % (1 << bits)
        if row not in taken:
            return row
    raise BuildError(f"More than {1 << bits:,} rows want one range. Split the documents, or raise max_chunk_size.")



def document_id(library: str, file_path: str, taken: Container[int]) -> int:
    """Id of a document; ``taken`` are the ids of others."""
    return _free(0, _slot(f"{library}\0{file_path}", DOCUMENT_BITS), DOCUMENT_BITS, taken)


def chunk_row(document: int, heading_path: str, taken: Container[int]) -> int:
    """Row id of a chunk; ``taken`` are those of the same document's earlier chunks."""
    return _free(document << CHUNK_BITS, _slot(heading_path, CHUNK_SLOT_BITS), CHUNK_BITS, taken)


def chunk_key(file_path: str, heading_path: str, occurrence: int) -> bytes:
    """The portable id of a chunk, 8 bytes. The breadcrumb holds the part; ``occurrence`` counts equal ones."""
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
    """Reuse key of a window's exact text, 10 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:10]
