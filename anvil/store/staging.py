"""One document in the making, in a scratch index of its own: nobody waits while it is read, cut and embedded.

When it is whole it is copied into the library in one short transaction. A scratch index lies in memory and, when it
grows, in a temporary file of SQLite's own, so that a document of any size takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anvil.errors import DocumentTooLarge
from anvil.models import Chunk
from anvil.store import connection as connections
from anvil.store import identity
from anvil.store.writing import INSERT_CHUNK, Writer, chunk_values

MOST = 1 << identity.CHUNK_BITS
"""Passages of one document."""


@dataclass(frozen=True, slots=True)
class Particulars:
    """What is known of a document before it is read. ``metadata`` is plain JSON; times are ISO 8601 in UTC."""

    source: str
    library: str
    title: str
    file_type: str
    content_hash: str
    size: int
    last_modified: str
    metadata: Mapping[str, Any]


class Stage(Writer):
    """The chunks, windows and vectors of one document."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """``settings``: the library's manifest."""
        super().__init__(connections.open_scratch())
        connections.lay_out(self.connection, int(settings["embedding_dimensions"]))
        self.set_meta(settings)
        self._added = 0

    def add(self, chunks: Iterable[Chunk], source: str, title: str, page: int) -> None:
        """Add chunks, which are numbered as they come. Raises :class:`DocumentTooLarge`."""
        rows = []
        for chunk in chunks:
            key = identity.chunk_key(source, chunk.heading_path, self._added)
            rows.append(chunk_values(self._added, key, 0, title, chunk, page))
            self._added += 1
            if self._added > MOST:
                raise DocumentTooLarge(
                    f"It has more than {MOST:,} passages. Split it, or raise chunking.max_chunk_size."
                )
        with self.atomic():
            self.connection.executemany(INSERT_CHUNK, rows)

    def placeholder(self, source: str) -> None:
        """A row for the document itself, by which failures can name it."""
        self.connection.execute(
            "INSERT INTO documents VALUES (0, '', ?, '', '', '', '', x'', 0, '', NULL, NULL, '{}', x'')", (source,)
        )

