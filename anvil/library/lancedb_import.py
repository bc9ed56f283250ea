"""Import from mcpvectordb: the documents in its LanceDB database, put together from their overlapping chunks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anvil.errors import ConfigError, DocumentRejected, SourceError
from anvil.formats.data_formats import json_object, time_span
from anvil.library.ingestion import describe_text
from anvil.library.values import DocumentInfo
from anvil.system import installation


def text_and_info(row: Mapping[str, str], library: str | None) -> tuple[bytes, DocumentInfo, tuple[str, ...]]:
    """The text of a document of :func:`read_documents`, its description, and notes. ``library`` replaces its own.
    Raises :class:`DocumentRejected` if it has no text, and :class:`ConfigError` for an invalid name or metadata."""
    data, metadata = row["text"].encode("utf-8", "replace"), json_object(row["metadata"] or "{}")
    info = describe_text(data, row["source"], library or row["library"], metadata, row.get("file_type", ""))
    if not row["text"].strip():
        raise DocumentRejected("It has no text.")
    created_at = _time(row["created_at"])
    last_modified = _time(row.get("last_modified", "")) or created_at or info.last_modified
    notes = () if metadata is not None else ("Its metadata is no JSON object and was left out.",)
    title = row["title"] or info.title
    return data, replace(info, title=title, last_modified=last_modified, created_at=created_at), notes


def _time(text: str) -> str | None:
    try:
        return time_span(text)[0]
    except ValueError:
        return None


COLUMNS = ("library", "source", "doc_id", "chunk_index", "title", "content", "created_at", "metadata")
OPTIONAL_COLUMNS = ("file_type", "last_modified")
"""Columns that mcpvectordb's first versions did not have."""
MAX_OVERLAP_CHARACTERS = 4000
"""Text that two neighbouring chunks can share."""
MIN_OVERLAP_CHARACTERS = 16
"""Shorter equal text is not an overlap."""


def database(path: str, table: str) -> tuple[Path, str]:
    """The folder of the database, and the name of the table in it. ``path`` names the database, a folder with a
    database ``lancedb``, or a table. Raises :class:`SourceError` if it has no such table."""
    folder = Path(path).expanduser()
    if folder.suffix == ".lance" and folder.is_dir():
        return folder.parent, folder.stem
    for candidate in (folder, folder / "lancedb"):
        if (candidate / f"{table}.lance").is_dir():
            return candidate, table
    tables = sorted(entry.stem for entry in folder.glob("*.lance"))
    advice = f"It has {', '.join(tables)}: name one with --table." if tables else "Name the folder of LANCEDB_URI."
    raise SourceError(f"{path} has no LanceDB table {table!r}. {advice}")


def read_documents(path: str, table: str) -> list[dict[str, str]]:
    """The documents of a database, sorted by library and source. Of two with the same source, the newer one is taken.

    Each has the values of :data:`COLUMNS`, and as ``text`` its chunks put together. Very short chunks are missing:
    mcpvectordb did not store them. Raises :class:`SourceError` if the database cannot be read, and :class:`ConfigError`
    if the package lancedb is not installed.
    """
    folder, name = database(path, table)
    try:
        import lancedb
    except ImportError:
        raise ConfigError(
            f"Reading a LanceDB needs the package lancedb. Install it with: {installation.install_extras('lancedb')}"
        ) from None
    try:
        opened = lancedb.connect(str(folder)).open_table(name)
        columns = set(opened.schema.names)
        missing = [name for name in COLUMNS if name not in columns]
        if missing:
            raise SourceError(
                f"The table {name!r} of {folder} has no column {', '.join(missing)}: mcpvectordb did not create it. "
                "Name another with --table."
            )
        selected = [*COLUMNS, *(name for name in OPTIONAL_COLUMNS if name in columns)]
        rows = opened.search().select(selected).limit(opened.count_rows() or 1).to_arrow()
        newest: dict[tuple[str, str], dict[str, str]] = {}
        for document in _documents(rows):
            key = document["library"], document["source"]
            if key not in newest or newest[key]["created_at"] <= document["created_at"]:
                newest[key] = document
    except SourceError:
        raise
    except Exception as error:  # lancedb raises many kinds, some from Rust
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise SourceError(
            f"The table {name!r} of {folder} cannot be read: {reason}. Restore it, or name another."
        ) from error
    return [newest[key] for key in sorted(newest)]


def _documents(rows: Any) -> Iterator[dict[str, str]]:
    order = [(name, "ascending") for name in ("library", "source", "doc_id", "chunk_index")]
    records = itertools.chain.from_iterable(batch.to_pylist() for batch in rows.sort_by(order).to_batches())
    for _, group in itertools.groupby(records, key=lambda row: (row["library"], row["source"], row["doc_id"])):
        chunks = list(group)
        first = {key: "" if value is None else value for key, value in chunks[0].items()}
        yield {**first, "text": join_chunks([row["content"] or "" for row in chunks])}


def join_chunks(chunks: list[str]) -> str:
    """The text of chunks that may overlap, without the repetitions."""
    text = chunks[0] if chunks else ""
    for chunk in chunks[1:]:
        shared = _overlap(text[-MAX_OVERLAP_CHARACTERS:], chunk)
        text += chunk[shared:] if shared else f"\n\n{chunk}"
    return text


def _overlap(before: str, chunk: str) -> int:
    """Number of characters at the start of ``chunk`` that are also the end of ``before``. They begin with a word."""
    head = chunk[:MIN_OVERLAP_CHARACTERS]
    at = before.find(head) if len(head) == MIN_OVERLAP_CHARACTERS else -1
    while at >= 0:
        size = len(before) - at
        if (at == 0 or before[at - 1].isspace()) and chunk.startswith(before[at:]):
            return size
        at = before.find(head, at + 1)
    return 0
