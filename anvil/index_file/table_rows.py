"""Rows of the tables: their ids, made from paths and headings, and their columns, as they are written and read.

A document's id is a slot: a hash of its library and path. A chunk's id is its document's id followed by a slot for its
breadcrumb. A window's id is its chunk's id followed by its number. So the rows of a page are neighbours, and an edit
changes hardly any other id (small diffs in git).

The keyword index stores the distance of each row to the next one that has the word, in as few bytes as it needs. So
slots are as near each other as they can be: a slot is the first bits of a hash, and more bits only if those are taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from anvil.errors import BuildError
from anvil.formats.characters import line_ends
from anvil.formats.data_formats import canonical
from anvil.text import visible_text
from anvil.text.query import derived_terms
from anvil.values import Chunk, ChunkMetadata, Document, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DOCUMENT_BITS = 18
DOCUMENT_SLOT_BITS = 12
"""Bits of the first slot of a document. 1,000 documents share 4,096 slots, so a new one moves another one in an eighth
of the cases."""
CHUNK_BITS = 15
CHUNK_SLOT_BITS = 7
"""Bits of the first slot of a chunk. A distance below 128 takes one byte."""
WINDOW_BITS = 12
"""Windows of one chunk: 4,096, more than a chunk of the largest ``chunking.max_chunk_size`` has."""
# Together 45 bits. A row id of SQLite may have 63, and a whole number in JavaScript, as on the search page, 53.


def _slots(text: str, fewest: int, most: int) -> Iterator[int]:
    """The slots of a text: its hash in ``fewest`` bits, in one more, and so on to ``most``."""
    # A hash and not a counter: an id then depends on this name alone, and hardly on the order of changes.
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    for bits in range(min(fewest, most), most + 1):
        yield number >> (64 - bits)


def _free_slot(text: str, fewest: int, most: int, taken: Callable[[int], bool], beyond: dict[int, int]) -> int | None:
    """The first slot of a text that is not ``taken``, or the next free one after the last of them; else None.

    ``beyond``: a cache for calls with the same ``taken``, which may only grow. It maps a taken slot to a later one, and
    all between them are taken. Each search shortens these paths, like the "find" of a union-find. So a thousand equal
    texts, which have the same slots, take hardly longer than different ones.
    """
    slot, count = 0, 1 << most
    for slot in _slots(text, fewest, most):
        if not taken(slot):
            return slot
    for _ in range(count):
        following = beyond.get(slot, (slot + 1) % count)
        if not taken(following):
            return following
        beyond[slot] = beyond.get(following, following)
        slot = following
    return None


def document_id(library: str, file_path: str, taken: Callable[[int], bool], beyond: dict[int, int]) -> int:
    """A free id for a document; arguments as of :func:`_free_slot`. Raises :class:`BuildError` if an index is full."""
    slot = _free_slot(f"{library}\0{file_path}", DOCUMENT_SLOT_BITS, DOCUMENT_BITS, taken, beyond)
    if slot is None:
        count = 1 << DOCUMENT_BITS
        raise BuildError(f"An index holds {count:,} documents at most. Make several, one for each part of them.")
    return slot


def most_chunks() -> int:
    return 1 << CHUNK_BITS


class ChunkRows:
    """The row ids of one document's chunks."""

    def __init__(self, document: int) -> None:
        self._first = document << CHUNK_BITS
        self._taken: set[int] = set()
        self._beyond: dict[int, int] = {}

    def take(self, heading_path: str) -> int:
        """The row id of the next chunk. Raises :class:`BuildError` for more than :func:`most_chunks`."""
        slot = _free_slot(heading_path, CHUNK_SLOT_BITS, CHUNK_BITS, self._taken.__contains__, self._beyond)
        if slot is None:
            count = most_chunks()
            raise BuildError(f"A document holds {count:,} chunks at most. Split it, or raise chunking.max_chunk_size.")
        self._taken.add(slot)
        return self._first + slot


def chunk_key(file_path: str, heading_path: str, occurrence: int) -> bytes:
    """The portable id of a chunk, 8 bytes. ``occurrence``: the number of chunks before it with the same breadcrumb."""
    return hashlib.sha256(f"{file_path}\0{heading_path}\0{occurrence}".encode()).digest()[:8]


def chunk_range(document: int) -> tuple[int, int]:
    """First and last possible chunk row of a document."""
    return document << CHUNK_BITS, ((document + 1) << CHUNK_BITS) - 1


def window_row(chunk: int, number: int) -> int:
    return (chunk << WINDOW_BITS) + number


def window_range(first_chunk: int, last_chunk: int) -> tuple[int, int]:
    """First and last possible window row of a run of chunk rows."""
    return first_chunk << WINDOW_BITS, ((last_chunk + 1) << WINDOW_BITS) - 1


def window_key(text: str) -> bytes:
    """Hash of a window's exact text, 10 bytes. Windows with the same key have the same vector."""
    # Why it is not left out to make the file smaller: docs/performance-method.md, "Choices in the size of an index".
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:10]


# --- the columns of rows, as they are written, read and digested; schema.sql defines them -------------------------

DEFAULT_LIBRARY = "default"
"""The library of all documents of an index file; a document library may have several."""
FORMAT_VERSION = 5
"""Increase it for a change that older versions cannot read. Then indexes are built again."""
# No names of columns are needed: the tables are those of schema.sql, which the check compares word for word.
INSERT = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"
    for table, columns in (("documents", 14), ("sections", 9), ("chunks", 15), ("windows", 4))
}
"""Table -> the statement that adds a row."""
SECTION_COLUMNS = 'ordinal, heading_path, heading_level, anchor, start, "end", start_line, end_line'
DIGESTED = {
    "documents": "library, file_path, title, file_type, blob_id, fingerprint, content_hash, size, url, nav_path, "
    "metadata",
    "sections": SECTION_COLUMNS,
    "chunks": "ordinal, chunk_id, heading_path, heading_level, start, start_line, end_line, page, char_count, title, "
    "terms, content, hidden",
    "windows": 'id, start, "end", key',
}
"""Table -> the columns that a digest or checksum covers. Another order would change every digest."""


def document_values(
    id_: int, library: str, document: Document, title: str, metadata: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The row of a document whose digest is not known yet."""
    return (
        id_,
        library,
        document.path,
        title,
        PurePosixPath(document.path).suffix[1:].lower(),
        document.blob_id,
        document.fingerprint,
        hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).digest(),
        document.size,
        document.last_modified,
        document.url,
        document.nav_path,
        canonical(metadata),
        b"",
    )


def section_values(document: int, section: Section) -> tuple[Any, ...]:
    """The row of a section."""
    ordinal, path, level, _, anchor, start, end, first, last = section
    return document, ordinal, path, level, anchor, start, end, first or 0, last or 0


def chunk_values(
    row: int, key: bytes, document: int, title: str, chunk: Chunk, page: int = 0, front: str = "", absent: str = ""
) -> tuple[Any, ...]:
    """The row of a chunk. ``page``: its page in a paged document. ``front``: more text by which it is found.

    ``absent``: the title, if the text of the page lacks it. Its derived terms find the chunk, too."""
    content = chunk.content if chunk.masked is None else chunk.masked
    return (
        row,
        key,
        document,
        chunk.ordinal,
        chunk.heading_path,
        chunk.heading_level,
        chunk.start,
        chunk.start_line or 0,  # of a text that stands in no file
        chunk.end_line or 0,
        page,
        len(chunk.content),
        title,
        f"{front} {derived_terms(f'{absent} {content} {front}')}".strip(),
        content,
        visible_text.taken(chunk.content, content),
    )


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A row of ``documents``."""

    id: int
    library: str
    file_path: str
    title: str
    blob_id: str
    size: int
    last_modified: str
    url: str | None
    nav_path: str | None
    metadata: dict[str, Any]


DOCUMENT_COLUMNS = ", ".join(StoredDocument.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk, with the fields of its document that a search result has. ``row``: its row id."""

    row: int
    document_id: int
    ordinal: int
    title: str
    content: str
    start: int
    metadata: ChunkMetadata


class SearchedText(NamedTuple):
    """The texts of a chunk that are searched, and their length in words. ``terms``: derived words and the path's."""

    title: str
    heading_path: str
    content: str
    terms: str
    length: int


class ChunkText(NamedTuple):
    """The texts of a chunk that are embedded, and its row id."""

    row: int
    title: str
    heading_path: str
    content: str


class SectionPlace(NamedTuple):
    """A section without its number and heading text: see :class:`anvil.values.Section`."""

    heading_path: str
    heading_level: int
    anchor: str
    start: int
    end: int
    start_line: int | None
    end_line: int | None


def section_url(page_url: str | None, anchor: str) -> str | None:
    """The URL of a section: that of the page, with ``#anchor`` if it has one."""
    return f"{page_url}#{anchor}" if page_url and anchor else page_url


def is_parallel(text: str, start_line: int | None, end_line: int | None) -> bool:
    """Whether a text has as many lines as its place in the source file, so that each line is one of the file."""
    if start_line is None or end_line is None:
        return False
    # Text that was included or made by a site has more or fewer. A line end at the end begins no further line.
    return line_ends(text) - text.endswith(("\r", "\n")) == end_line - start_line


class VersionAndLanguage(NamedTuple):
    """Fields of :class:`anvil.values.ChunkMetadata` that a document's metadata may have by these names; else None."""

    version: str | None
    language: str | None


def version_and_language(metadata: Mapping[str, Any]) -> VersionAndLanguage:
    values = (metadata.get(name) for name in VersionAndLanguage._fields)
    return VersionAndLanguage(*(value if isinstance(value, str) else None for value in values))


def is_in_language(own: str, language: str) -> bool:
    """Whether a page in the language ``own`` is a page in ``language``: ``en-GB`` is ``en`` too."""
    # Sites write en_GB as well as en-GB.
    own, language = own.lower().replace("_", "-"), language.lower().replace("_", "-")
    return own == language or own.startswith(f"{language}-")


# The anchor is that of the section in which the chunk begins. The index has sections and chunks in tables of their own,
# because a chunk can have several sections, and a section several chunks.
STORED_CHUNKS = """
    SELECT c.id, c.document_id, c.ordinal, c.title, c.content, c.start, d.file_path, c.heading_path,
           c.heading_level, d.last_modified, c.char_count, c.start_line, c.end_line, d.url,
           (SELECT anchor FROM sections s WHERE s.document_id = c.document_id AND s.start <= c.start
            ORDER BY ordinal DESC LIMIT 1), d.metadata
    FROM chunks c JOIN documents d ON d.id = c.document_id
"""


def stored_section(row: Sequence[Any], title: str) -> Section:
    ordinal, path, level, anchor, start, end, first, last = row
    return Section(ordinal, path, level, title, anchor, start, end, first or None, last or None)


def stored_document(row: Sequence[Any]) -> StoredDocument:
    return StoredDocument(*row[:-1], json.loads(row[-1]))  # type: ignore[call-arg]


def stored_chunk(row: Sequence[Any]) -> StoredChunk:
    id_, document, ordinal, title, content, start, path, heading, level, modified, chars, first, last, *rest = row
    url, anchor, metadata = rest
    lines = first or None, last or None
    place = (
        path,
        heading,
        level,
        modified,
        chars,
        *lines,
        section_url(url, anchor),
        *version_and_language(json.loads(metadata)),
    )
    return StoredChunk(id_, document, ordinal, title, content, start, ChunkMetadata(*place))


# --- vectors ---------------------------------------------------------------------------------------------

VECTOR_COLUMN = "int8[{}]"
"""The type of the column in the table of vectors, with the dimensions."""
VECTOR_VALUE = "vec_int8(?)"
"""The expression for a stored vector as a value of that column."""
VectorRows: TypeAlias = "NDArray[np.int8]"
"""Stored vectors as numbers: (n, dimensions)."""


def quantized(vectors: NDArray[np.float32]) -> list[bytes]:
    """Unit vectors (n, dimensions) as int8 rows. The largest number of each row becomes 127 or -127.

    A cosine does not depend on lengths, so each row can have its own scale. No value is clipped, and the error of a
    cosine stays below .001 at 384 dimensions.
    """
    import numpy as np

    # A vector that could not be made is all 0, so the divisor is never 0. Why 8 bits and not fewer:
    # docs/performance-method.md, "Choices in the size of an index".
    peaks = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-30)
    return [row.tobytes() for row in np.rint(vectors * (127 / peaks)).astype(np.int8)]


def vector_bytes(dimensions: int) -> int:
    """The size of one vector of :func:`quantized`."""
    return dimensions


def vector_rows(stored: bytes, dimensions: int) -> VectorRows:
    """The numbers of vectors of :func:`quantized` that are joined to one blob: (n, dimensions)."""
    import numpy as np

    return np.frombuffer(stored, np.int8).reshape(-1, dimensions)
