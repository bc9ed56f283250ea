"""Checks of the values in an index file: types and ranges.

SQLite stores any type in any column, and the author of a file can also write matching digests. So the values are
checked when a file is opened, before they are used: most of them in SQL, which is much faster than a loop in Python.
Each function returns None, or what is wrong.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from anvil.documents.document_source import Shard
from anvil.errors import ConfigError
from anvil.formats.data_formats import canonical
from anvil.formats.patterns import OBJECT_ID, SHA256, lazy_pattern
from anvil.index_file import connection as connections
from anvil.index_file import table_rows
from anvil.settings.schema import ChunkingOptions, FixedChunks, SearchOptions
from anvil.text import page_weights
from anvil.values import MAX_PATH_CHARS

if TYPE_CHECKING:
    import apsw

MAX_DIMENSIONS = 8192
MAX_DEPTH = 64
"""Nested levels of metadata. Front matter and sites stay below 40."""
_MAX_INTEGER = 1 << 53
"""JSON readers round larger numbers, and no count is as large."""
_NUMBER = lazy_pattern(r"0|[1-9][0-9]{0,14}")
_INCLUDED = lazy_pattern(r"\+[0-9]{1,9}(\{.*\})")
_PATH_HASH = lazy_pattern(r"[0-9a-f]{20}")


def _text(column: str) -> str:
    # quote(), which makes the digests, ends at a NUL: the text after one would be in no digest
    return f"(typeof({column}) = 'text' AND instr({column}, char(0)) = 0)"


def _optional(column: str) -> str:
    return f"({column} IS NULL OR {_text(column)})"


def _blob(column: str, size: int) -> str:
    return f"(typeof({column}) = 'blob' AND length({column}) = {size})"


def _whole(column: str, least: int | str = 0, most: int | str = _MAX_INTEGER) -> str:
    return f"(typeof({column}) = 'integer' AND {column} BETWEEN {least} AND {most})"


def _hex(column: str) -> str:
    return f"({_text(column)} AND length({column}) <= 64 AND {column} NOT GLOB '*[^0-9a-f]*')"


def _rules(*conditions: str) -> str:
    return " AND ".join(conditions)


_SETTINGS = f"SELECT count(*) FROM anvil_meta WHERE NOT ({_rules(_text('key'), _text('value'))})"
_DOCUMENTS = "SELECT id FROM documents WHERE NOT ({}) LIMIT 1".format(
    _rules(
        _whole("id", 0, (1 << table_rows.DOCUMENT_BITS) - 1),
        *map(_text, ("library", "file_path", "title", "file_type", "metadata")),
        *map(_optional, ("url", "nav_path")),
        f"length(file_path) BETWEEN 1 AND {MAX_PATH_CHARS}",
        _hex("blob_id"),
        _text("fingerprint"),
        _hex("substr(fingerprint, 1, instr(fingerprint || '+', '+') - 1)"),
        _blob("content_hash", 32),
        _whole("size"),
        _blob("digest", 32),
        _text("last_modified"),
        "strftime('%Y-%m-%dT%H:%M:%SZ', last_modified) IS last_modified",
    )
)
_INCLUDED_FILES = """
    SELECT id, substr(fingerprint, instr(fingerprint, '+')) FROM documents WHERE instr(fingerprint, '+') > 0
"""
_LINES = (_whole("start_line"), _whole("end_line", "start_line"), "(start_line > 0) = (end_line > 0)")
_SECTIONS = "SELECT document_id FROM sections WHERE NOT ({}) LIMIT 1".format(
    _rules(
        _whole("document_id"),
        _whole("ordinal"),
        _text("heading_path"),
        _whole("heading_level", 0, 6),
        _text("anchor"),
        _whole("start"),
        _whole('"end"', "start + 1"),
        *_LINES,
    )
)
_CHUNKS = "SELECT c.id FROM chunks c LEFT JOIN documents d ON d.id = c.document_id WHERE NOT ({}) LIMIT 1".format(
    _rules(
        "c.document_id IS c.id >> :bits",
        "c.title IS d.title",
        _blob("chunk_id", 8),
        _whole("ordinal"),
        *map(_text, ("heading_path", "terms", "content")),
        _whole("heading_level", 0, 6),
        _whole("start"),
        *_LINES,
        _whole("page"),
        _whole("char_count", 1),
        "char_count = length(content)",
    )
)
_WINDOWS = "SELECT w.id FROM windows w LEFT JOIN chunks c ON c.id = w.id >> {} WHERE NOT coalesce({}, 0)".format(
    table_rows.WINDOW_BITS, _rules(_whole("w.start"), _whole('w."end"', "w.start", "c.char_count"), _blob("key", 10))
)
_STRAY_SECTIONS = "SELECT document_id FROM sections WHERE document_id NOT IN (SELECT id FROM documents) LIMIT 1"
# The chunks of a page, joined in order, are its text; its sections divide that text from its first character to its
# last. So a section has no empty span, and a page no more sections than characters.
_TORN_CHUNKS = """
    SELECT document_id FROM (
        SELECT document_id, ordinal, start, row_number() OVER page - 1 AS place,
               sum(char_count) OVER page - char_count AS begin
        FROM chunks WINDOW page AS (PARTITION BY document_id ORDER BY ordinal ROWS UNBOUNDED PRECEDING)
    ) WHERE ordinal <> place OR start <> begin LIMIT 1
"""
# Chunks of one fixed size share their ends: each begins after the one before began, and not after it ended.
_TORN_FIXED_CHUNKS = """
    SELECT document_id FROM (
        SELECT document_id, ordinal, start, row_number() OVER page - 1 AS place,
               lag(start, 1, -1) OVER page AS previous, lag(start + char_count, 1, 0) OVER page AS previous_end
        FROM chunks WINDOW page AS (PARTITION BY document_id ORDER BY ordinal)
    ) WHERE ordinal <> place OR start <= previous OR start > previous_end LIMIT 1
"""
_TORN_SECTIONS = """
    SELECT document_id FROM (
        SELECT document_id, ordinal, start, row_number() OVER page - 1 AS place, lag("end", 1, 0) OVER page AS begin
        FROM sections WINDOW page AS (PARTITION BY document_id ORDER BY ordinal)
    ) WHERE ordinal <> place OR start <> begin LIMIT 1
"""
_TORN_PAGES = """
    SELECT id FROM documents
    JOIN (SELECT document_id AS chunked, max(start + char_count) AS characters FROM chunks GROUP BY 1) ON chunked = id
    LEFT JOIN (SELECT document_id AS divided, max("end") AS last FROM sections GROUP BY 1) ON divided = id
    WHERE characters IS NOT last LIMIT 1
"""
_KEYWORD_SETTINGS = {"version": (4, 4), "hashsize": (1, 1 << 40)}
"""What may be set in the keyword index, and within which bounds: other settings change what it finds."""
_PAGES = (
    (_DOCUMENTS, "a value in the document with id {} is of the wrong type or out of range"),
    (_SECTIONS, "a value in a section of the document with id {} is of the wrong type or out of range"),
    (_CHUNKS, "a value in the chunk with id {} is of the wrong type or out of range, or is not that of its document"),
    (_STRAY_SECTIONS, "it holds sections of a document with id {}, which does not exist"),
    (_TORN_CHUNKS, "the chunks of the document with id {} are not its text"),
    (_TORN_SECTIONS, "the sections of the document with id {} do not follow each other"),
    (_TORN_PAGES, "the sections of the document with id {} are not those of its chunks"),
)


def manifest(handle: apsw.Connection) -> str | None:
    """What is wrong with the types of the manifest's keys and values. Call it before the manifest is read."""
    wrong = handle.execute(_SETTINGS).get
    return f"{wrong} keys or values of its manifest are not text" if wrong else None


def settings(meta: Mapping[str, str]) -> str | None:
    """What is wrong with the values of a manifest that has all keys it must have."""
    wrong = [key for key in ("digest", "checksum") if not SHA256.fullmatch(meta[key])]
    wrong += [key for key in ("embedding_dimensions", "needs_reembed") if not _NUMBER.fullmatch(meta[key])]
    if meta["format_version"] != str(connections.FORMAT_VERSION):
        wrong.append("format_version")
    if "commit" in meta and not OBJECT_ID.fullmatch(meta["commit"]):
        wrong.append("commit")
    if "left_out" in meta and not _are_path_hashes(meta["left_out"]):
        wrong.append("left_out")
    if not _is_chunking(meta["chunking"]):
        wrong.append("chunking")
    if "weights" in meta and not _are_weights(meta["weights"]):
        wrong.append("weights")
    if wrong:
        return f"its manifest has impossible values for {', '.join(wrong)}"
    if int(meta["embedding_dimensions"]) > MAX_DIMENSIONS:
        return "its manifest names impossible dimensions"
    if "shard" in meta:
        try:
            Shard.parse(meta["shard"])
        except ConfigError:
            return "its manifest names an impossible shard"
    return None


def pages(handle: apsw.Connection, chunking: str | None) -> str | None:
    """What is wrong with documents, sections and chunks.

    ``chunking``: what the manifest says of the chunks; None where there is no manifest yet, then the order of the
    chunks is not checked.
    """
    for query, damage in _PAGES:
        if query == _TORN_CHUNKS:
            if chunking is None:
                continue
            query = _TORN_FIXED_CHUNKS if "overlap" in _json(chunking) else query
        rows = handle.execute(query.replace(":bits", str(table_rows.CHUNK_BITS))).fetchall()
        if rows:
            return damage.format(rows[0][0])
    for id_, included in handle.execute(_INCLUDED_FILES):
        if not _are_included_files(included):
            return f"the included files of the document with id {id_} are not as a build writes them"
    for id_, metadata in handle.execute("SELECT id, metadata FROM documents"):
        if not _is_metadata(metadata):
            return f"the metadata of the document with id {id_} is no JSON object as a build writes it"
    return None


def windows(handle: apsw.Connection, dimensions: int, vector_group: int) -> str | None:
    """What is wrong with windows and vectors. The tables of pages are checked before."""
    if handle.execute(_WINDOWS).fetchall():
        return "its windows are damaged"
    if dimensions and not _vectors_are_sound(handle, dimensions, vector_group):
        return "its vectors are damaged"
    return None


def keyword_settings(handle: apsw.Connection) -> str | None:
    """What is wrong with the settings of the keyword index."""
    for key, value in handle.execute("SELECT k, v FROM chunks_fts_config"):
        least, most = _KEYWORD_SETTINGS.get(key, (1, 0)) if isinstance(key, str) else (1, 0)
        if not isinstance(value, int) or not least <= value <= most:
            return "its keyword index has settings that a build does not make"
    return None


def _vectors_are_sound(handle: apsw.Connection, dimensions: int, size: int) -> bool:
    """Whether sqlite-vec's own tables are as a build writes them: by window, in groups that are all full except the
    last, with the same row ids in the groups and in the list of rows."""
    rows: Iterable[Any] = handle.execute(
        "SELECT r.rowid, r.id, r.chunk_id, r.chunk_offset, w.id FROM vectors_rowids r LEFT JOIN windows w "
        "ON w.id = r.rowid ORDER BY r.rowid"
    )
    stored = array("q")
    for place, row in enumerate(rows):
        if row != (row[0], None, place // size + 1, place % size, row[0]):
            return False
        stored.append(row[0])
    groups = handle.execute(
        "SELECT c.chunk_id, c.size, c.validity, c.rowids, v.rowid, typeof(v.vectors), length(v.vectors) "
        "FROM vectors_chunks c LEFT JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id ORDER BY c.chunk_id"
    ).fetchall()
    for number, group in enumerate(groups):
        group_rows = stored[number * size : (number + 1) * size]
        validity = ((1 << len(group_rows)) - 1).to_bytes(size // 8, "little")
        row_blob = group_rows.tobytes().ljust(size * 8, b"\0")
        if group != (number + 1, size, validity, row_blob, number + 1, "blob", size * dimensions):
            return False
    parts: int = handle.execute("SELECT count(*) FROM vectors_vector_chunks00").get
    return len(groups) == parts == -(-len(stored) // size)


def _is_metadata(text: str) -> bool:
    """Whether this is a JSON object in canonical form."""
    if text == "{}":
        return True
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return False
    value = _json(text)
    return isinstance(value, dict) and canonical(value) == text


def _are_included_files(text: str) -> bool:
    """Whether this is the part of a fingerprint that lists included files: path -> blob id, empty for a missing
    file."""
    match = _INCLUDED.fullmatch(text)
    blobs = _json(match[1]) if match else None
    return isinstance(blobs, dict) and all(
        isinstance(blob, str) and (not blob or OBJECT_ID.fullmatch(blob)) for blob in blobs.values()
    )


def _depth(text: str) -> int:
    """Nested levels of brackets in JSON, without those in strings."""
    deepest = depth = 0
    for bracket in re.sub(r"[^\[\]{}]+", "", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _json(text: str) -> Any:
    """The value; None for text that is not JSON, and for numbers such as NaN."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)  # json.loads makes one for each call


def _are_path_hashes(text: str) -> bool:
    names = _json(text)
    return isinstance(names, list) and all(isinstance(name, str) and _PATH_HASH.fullmatch(name) for name in names)


def _are_weights(text: str) -> bool:
    try:
        weights = SearchOptions(weights=page_weights.recalled(text)).weights
    except (ConfigError, ValueError, TypeError, RecursionError):
        return False
    return page_weights.recorded(weights) == text


def _is_chunking(text: str) -> bool:
    options = _json(text)
    if not isinstance(options, dict) or type(options.pop("version", None)) is not int:
        return False
    types = {"merge_short_sections": bool, "slugs": str}
    if any(type(value) is not types.get(key, int) for key, value in options.items()):
        return False
    try:
        FixedChunks(**options) if "overlap" in options else ChunkingOptions(**options)
    except (ConfigError, TypeError):
        return False
    return "max_chunk_size" in options or {"size", "overlap"} <= options.keys()
