"""One new document in a scratch index of its own, so that no other writer waits while it is read and embedded.

The finished document is copied into the library in one short transaction. A scratch index is in memory; when it grows,
SQLite moves it to a temporary file, so a document of any size takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anvil.errors import DocumentTooLarge
from anvil.index_file import connection as connections
from anvil.index_file import row_ids
from anvil.index_file.writer import INSERT_CHUNK, Writer, chunk_values
from anvil.values import Chunk

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_PASSAGES = 1 << row_ids.CHUNK_BITS
"""Passages of one document."""


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What is known of a document before it is read. ``metadata`` is plain JSON; times are ISO 8601 in UTC.
    ``created_at``: when another program stored it first; None for a document that is new."""

    source: str
    library: str
    title: str
    file_type: str
    content_hash: str
    size: int
    last_modified: str
    metadata: Mapping[str, Any]
    created_at: str | None = None


class StagedDocument:
    """The chunks, windows and vectors of one document; a context manager."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """``settings``: the library's manifest."""
        self.settings = settings
        self.rows = Writer(connections.open_scratch())
        """The scratch index."""
        connections.lay_out(self.rows.connection, int(settings["embedding_dimensions"]))
        self.rows.set_meta(settings)
        self._chunk_count = 0

    def add(self, chunks: Iterable[Chunk], source: str, title: str, page: int) -> None:
        """Add chunks, numbered in the order of the calls. Raises :class:`DocumentTooLarge`."""
        chunk_rows = []
        for chunk in chunks:
            key = row_ids.chunk_key(source, chunk.heading_path, self._chunk_count)
            chunk_rows.append(chunk_values(self._chunk_count, key, 0, title, chunk, page))
            self._chunk_count += 1
            if self._chunk_count > MAX_PASSAGES:
                raise DocumentTooLarge(
                    f"It has more than {MAX_PASSAGES:,} passages. Split it, or raise chunking.max_chunk_size."
                )
        with self.rows.atomic():
            self.rows.connection.executemany(INSERT_CHUNK, chunk_rows)

    def add_placeholder(self, source: str) -> None:
        """A row for the document itself, from which failures take its name."""
        self.rows.connection.execute(
            "INSERT INTO documents VALUES (0, '', ?, '', '', '', '', x'', 0, '', NULL, NULL, '{}', x'')", (source,)
        )

    def close(self) -> None:
        """Drop the scratch index."""
        self.rows.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
