"""The check of an index file, which may come from anywhere.

Identity, format, table definitions, page structure, types and ranges of values, digest, checksum, keyword index,
vectors and counts are compared with what they must be. A file that fails is refused, with the reason and the next step.
Nothing in the file is ever run.

SQLite stores any type in any column, and the author of a file can also write matching digests. So the values are
checked before they are used: most of them in SQL, which is much faster than a loop in Python.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from anvil._version import __version__
from anvil.errors import AnvilError, ArtifactMissing, ArtifactRejected, ConfigError, FormatTooNew, OlderIndex
from anvil.formats.characters import is_plain_name
from anvil.formats.data_formats import canonical, is_deep, strict_json
from anvil.index_file import connection as connections
from anvil.index_file import fts_table, manifests, table_rows
from anvil.index_file.reader import IndexReader, Reader
from anvil.index_file.writer import checksum, document_digests
from anvil.system import safe_files
from anvil.values import MAX_PATH_CHARS

if TYPE_CHECKING:
    from concurrent.futures import Future

_KEYWORDS_DIFFER = "its keyword index does not match its text"
ELSEWHERE = "Build it again where it was built, or fetch it again."
_VIRTUAL = ("chunks_fts", "vectors")
_LAYOUTS = (connections.SMALL, connections.LARGE)

MAX_REMEMBERED = 500
"""Notes of checked files in the user's cache. Beyond that, the oldest fifth is deleted at once, so that the ages of all
are read rarely."""
CHECK_VERSION = 5
"""Increase it when the check finds more than before. Then files are checked again."""


def open_checked(path: Path, thorough: bool = False) -> Reader:
    """Open an index file that passes its check. A file with the same bytes is checked once on a machine.

    The reader has the checked file open, even if another one is renamed to ``path`` meanwhile. ``thorough``: also make
    the keyword index again from the text, and compare. It takes twice as long, and finds pairs of changes that cancel
    each other out in FTS5's own check.

    Raises :class:`ArtifactMissing`, :class:`ArtifactRejected` or :class:`FormatTooNew`.
    """
    with _damage(path):
        handle = connections.open_artifact(path)
        try:
            # The hash of the open file, not of the path: the file that is remembered must be the one that was read.
            digest, _ = connections.sha256(handle)
            reader = Reader(handle)
            if not is_verified(digest, thorough):
                _check(reader, path)
                if thorough and not fts_table.agrees_when_rebuilt(handle):
                    _refuse(path, _KEYWORDS_DIFFER)
                # A program without respect for immutable files may have written into it during the check.
                if connections.sha256(handle)[0] != digest:
                    raise ArtifactRejected(f"{path} was written over while it was read. Try again.")
                remember_verified(digest, thorough)
        except BaseException:
            handle.close()
            raise
    return reader


def open_foreign(path: Path, thorough: bool = False) -> Reader:
    """:func:`open_checked` for a file that need not be this project's index: no message advises to build it here."""
    try:
        return open_checked(path, thorough)
    except ArtifactMissing as error:
        raise ArtifactMissing(error.problem, "Check the path.") from error
    except ArtifactRejected as error:
        raise ArtifactRejected(error.problem, error.advice and ELSEWHERE) from error


def open_known(path: Path, max_bytes: int) -> Reader | None:
    """Open an index file that passed its check before; None for another or a larger one. It takes 1 ms for a MB.

    Raises :class:`ArtifactMissing` or :class:`ArtifactRejected`.
    """
    if path.is_file() and path.stat().st_size > max_bytes:
        return None
    with _damage(path):
        handle = connections.open_artifact(path)
        if is_verified(connections.sha256(handle)[0]):
            return Reader(handle)
        handle.close()
        return None


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn every exception that is not Anvil's own into :class:`ArtifactRejected`: reading a sound file raises none."""
    try:
        yield
    except AnvilError:
        raise
    except Exception as error:  # a crafted file can make SQLite, json, numpy or the digests fail in any way
        if isinstance(error, apsw.Error) and connections.is_full(error):  # the check copies the file to compare it
            problem = f"{path} could not be checked: the disk for temporary files is full."
            raise ArtifactRejected(problem, connections.FREE_TEMPORARY) from error
        reason = str(error) or type(error).__name__
        raise ArtifactRejected(f"{path} is damaged ({reason}).", connections.rebuild_advice(path)) from error


def refuse_part(reader: IndexReader, path: Path) -> None:
    """Raise :class:`ArtifactRejected` if an index is a shard: the other shards have the other pages."""
    shard = reader.meta().get("shard")
    if shard is not None:
        raise ArtifactRejected(manifests.NOT_WHOLE.format(path, shard))


def check(path: Path, thorough: bool = False) -> None:
    """Check an index file as :func:`open_checked` does, and close it."""
    open_checked(path, thorough).close()


def begin_text_check(path: Path) -> Future[None]:
    """Start a check of the documents and the keyword index of a file that is being written, in a thread.

    The check reads a copy in memory, so the file may grow meanwhile. It takes longer than all other checks together.
    """
    from concurrent.futures import ThreadPoolExecutor  # no file is checked in most starts

    text = connections.open_scratch()
    with _damage(path), contextlib.closing(connections.open_artifact(path)) as handle:
        connections.fill(text, handle)

    def check_text() -> None:
        with _damage(path), contextlib.closing(text):
            _check_text(text, None, path)  # its manifest is not written yet

    executor = ThreadPoolExecutor(1, "anvil-check-text")
    checking = executor.submit(check_text)
    executor.shutdown(wait=False)  # the thread ends by itself after its only task
    return checking


def check_written(path: Path, text_check: Future[None]) -> None:
    """Check all but the text of a file that this process has just written, and wait for :func:`begin_text_check`.

    Its checksum was computed from the rows in it, so it is not compared again.
    """
    with _damage(path), Reader(connections.open_artifact(path)) as reader:
        digest, _ = connections.sha256(reader.connection)
        _check(reader, path, written=True)  # while the thread of begin_text_check goes on
        text_check.result()
        remember_verified(digest)


def _refuse(path: Path, reason: str | None) -> None:
    """Raise :class:`ArtifactRejected` if there is a reason."""
    if reason is not None:
        raise ArtifactRejected(f"{path} is refused: {reason}.", connections.rebuild_advice(path))


def _check(reader: Reader, path: Path, written: bool = False) -> None:
    """Refuse a file that fails.

    The order is part of the check: each step reads only values that the steps before have found to be of the right
    kind. A table is not read before its definition is compared, since a view or a virtual table of that name could do
    anything. No value is computed with before its type is checked.
    """
    handle = reader.connection
    if handle.pragma("application_id") != connections.APPLICATION_ID:
        if connections.is_of_older_anvil(path):
            raise OlderIndex(f"{path} is an index of the older Anvil, which is not read.", "'anvil build' replaces it.")
        raise ArtifactRejected(f"{path} is a SQLite file, but not an Anvil index. {connections.NAME_ANOTHER}")
    version = handle.pragma("user_version")
    if version > table_rows.FORMAT_VERSION:
        raise FormatTooNew(
            f"{path} has format {version}; this Anvil reads up to {table_rows.FORMAT_VERSION}. "
            "Upgrade with 'pip install -U anvil-docs'."
        )
    if version < table_rows.FORMAT_VERSION:
        _refuse(path, f"it has the old format {version}")

    # The definition of the manifest first: the manifest says which definitions the other tables must have.
    definitions = connections.definitions(handle)
    if definitions.get(connections.MANIFEST_TABLE) != connections.expected_definitions(0)[connections.MANIFEST_TABLE]:
        _refuse(path, "its manifest is missing or not defined as it must be")
    _refuse(path, _wrong_manifest(handle))
    meta = reader.meta()
    _refuse(path, manifests.wrong(meta))
    dimensions = int(meta["embedding_dimensions"])
    vector_group = next(
        (group for _, group in _LAYOUTS if f"chunk_size={group})" in str(definitions.get(("table", "vectors")))),
        connections.LARGE.vector_group,
    )
    expected = connections.expected_definitions(dimensions, vector_group)
    for kind, name in sorted(set(definitions) ^ set(expected)):
        _refuse(path, f"the {kind} {name!r} {'does not belong there' if (kind, name) in definitions else 'is missing'}")
    for kind, name in expected:
        if definitions[kind, name] != expected[kind, name]:
            _refuse(path, f"the {kind} {name!r} is not defined as it must be")

    for kind, name in sorted(expected):  # one by one, without the keyword index, for which there is a better check
        if kind == "table" and name not in _VIRTUAL:
            verdict = handle.execute(f"PRAGMA integrity_check('{name}')").get
            if verdict != "ok":
                _refuse(path, f"it is damaged ({verdict})")
    if not written:
        _check_text(handle, meta["chunking"], path)
    _check_rows(reader, meta, dimensions, vector_group, path)
    if not written and checksum(handle) != meta["checksum"]:
        _refuse(path, "its manifest, times, keyword index, windows or vectors do not match their checksum")


def _check_text(handle: apsw.Connection, chunking: str | None, path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    _refuse(path, _wrong_keyword_settings(handle))
    with (
        contextlib.closing(connections.open_scratch()) as copy,
        ThreadPoolExecutor(1, "anvil-check") as executor,  # SQLite works without the interpreter's lock
    ):
        connections.fill(copy, handle)  # FTS5's own check writes, and the file is read-only
        agreement = executor.submit(fts_table.agrees, copy)
        _refuse(path, wrong_pages(handle, chunking))
        actual = dict(document_digests(handle))
        for id_, file_path, digest in handle.execute("SELECT id, file_path, digest FROM documents"):
            if actual[id_] != digest:
                _refuse(path, f"the document {file_path!r} does not match its digest")
        if not agreement.result():
            _refuse(path, _KEYWORDS_DIFFER)


def _check_rows(reader: Reader, meta: dict[str, str], dimensions: int, vector_group: int, path: Path) -> None:
    handle = reader.connection
    if manifests.digest(reader) != meta["digest"]:
        _refuse(path, "it does not match its digest")
    for key, value in manifests.of_rows(reader).items():
        if meta.get(key) != value:
            finding = f"has {value} {key[6:]}" if key.startswith("count_") else f"has {value or 'nothing'} for {key}"
            _refuse(path, f"it {finding}, its manifest says {meta.get(key)!r}")
    _refuse(path, wrong_windows(handle, dimensions, vector_group))


# --- files that passed their check -----------------------------------------------------------------------------


def is_verified(digest: str, thorough: bool = False) -> bool:
    """Whether a file with this SHA-256 passed the check of this version. The thorough check includes the other one."""
    with contextlib.suppress(ConfigError):
        cache = cache_folder()
        if safe_files.is_private(cache):  # another user could vouch for a file
            kinds = {thorough, True}  # the note of a thorough check is good for both
            return any((cache / _cached_name(digest, kind)).is_file() for kind in kinds)
    return False


def remember_verified(digest: str, thorough: bool = False) -> None:
    """Note that a file with this SHA-256 passed its check: an empty file in the user's cache, named after the hash."""
    # Without a cache that can be written, the next opening checks again.
    with contextlib.suppress(OSError, ConfigError):
        cache = cache_folder()
        safe_files.make_folder(cache)
        if not safe_files.is_private(cache):
            return
        (cache / _cached_name(digest, thorough)).touch()
        if len(os.listdir(cache)) > MAX_REMEMBERED:
            by_age = sorted(os.scandir(cache), key=lambda entry: entry.stat().st_mtime_ns)
            for entry in by_age[: -MAX_REMEMBERED * 4 // 5]:
                os.unlink(entry.path)


def _cached_name(digest: str, thorough: bool) -> str:
    # Two checkouts with the same version may have different formats.
    return f"{digest}-{__version__}-{table_rows.FORMAT_VERSION}.{CHECK_VERSION}{'-thorough' if thorough else ''}"


def cache_folder() -> Path:
    """The folder with the names of files that passed their check."""
    return safe_files.user_cache() / "checked"


MAX_DEPTH = 64
"""Nested levels of metadata. Front matter and sites stay below 40."""


def _hex(column: str) -> str:
    return f"(length({column}) <= 64 AND {column} NOT GLOB '*[^0-9a-f]*')"


_LINES = "end_line >= start_line AND (start_line > 0) = (end_line > 0)"


def _typed_rows(handle: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Queries for the rows of pages in which a value is wrong by itself, each with a message."""
    wrong = "is of the wrong type or out of range"
    # A time, parsed and written again, must be the same: as text, times are compared and sorted.
    yield (
        f"""
        SELECT id FROM documents WHERE NOT ({connections.row_rule(handle, "documents")}
        AND id < {1 << table_rows.DOCUMENT_BITS} AND length(file_path) BETWEEN 1 AND {MAX_PATH_CHARS}
        AND {_hex("blob_id")} AND {_hex("substr(fingerprint, 1, instr(fingerprint || '+', '+') - 1)")}
        AND length(content_hash) = 32 AND length(digest) = 32
        AND strftime('%Y-%m-%dT%H:%M:%SZ', last_modified) IS last_modified) LIMIT 1
        """,
        f"a value in the document with id {{}} {wrong}",
    )
    yield (
        f"""
        SELECT document_id FROM sections WHERE NOT ({connections.row_rule(handle, "sections")}
        AND heading_level <= 6 AND "end" > start AND {_LINES}) LIMIT 1
        """,
        f"a value in a section of the document with id {{}} {wrong}",
    )
    yield (
        f"""
        SELECT c.id FROM chunks c LEFT JOIN documents d ON d.id = c.document_id
        WHERE NOT ({connections.row_rule(handle, "chunks", "c.")}
        AND c.document_id IS c.id >> {table_rows.CHUNK_BITS} AND c.title IS d.title AND length(chunk_id) = 8
        AND heading_level <= 6 AND {_LINES} AND char_count > 0 AND char_count = length(content)) LIMIT 1
        """,
        f"a value in the chunk with id {{}} {wrong}, or is not that of its document",
    )


_STRAY_SECTIONS = "SELECT document_id FROM sections WHERE document_id NOT IN (SELECT id FROM documents) LIMIT 1"
# The chunks of a page, joined in order, are its text. Its sections divide that text from the first character to the
# last, so no section is empty, and a page has no more sections than characters.
_TORN_CHUNKS = """
    SELECT document_id FROM (
        SELECT document_id, ordinal, start, row_number() OVER page - 1 AS place,
               sum(char_count) OVER page - char_count AS begin
        FROM chunks WINDOW page AS (PARTITION BY document_id ORDER BY ordinal ROWS UNBOUNDED PRECEDING)
    ) WHERE ordinal <> place OR start <> begin LIMIT 1
"""
# Chunks of one fixed size overlap: each begins after the beginning of the one before, and not after its end.
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
"""Settings that a keyword index may have, and their bounds. Other settings change what it finds."""


def _wrong_manifest(handle: apsw.Connection) -> str | None:
    """The problem with the types of the manifest's keys and values, or None. Call it before the manifest is read."""
    rule = connections.row_rule(handle, "anvil_meta")
    wrong = handle.execute(f"SELECT count(*) FROM anvil_meta WHERE NOT ({rule})").get
    return f"{wrong} keys or values of its manifest are not text" if wrong else None


def wrong_pages(handle: apsw.Connection, chunking: str | None) -> str | None:
    """The first problem with documents, sections and chunks, or None.

    ``chunking``: of the manifest; None if there is no manifest yet, then the order of the chunks is not checked.
    """
    torn_chunks = _TORN_FIXED_CHUNKS if "overlap" in strict_json(chunking or "{}") else _TORN_CHUNKS
    # In this order: the later ones compute with values that the first have checked.
    for query, damage in (
        *_typed_rows(handle),
        (_STRAY_SECTIONS, "it has sections of a document with id {}, which does not exist"),
        *([(torn_chunks, "the chunks of the document with id {} are not its text")] if chunking is not None else []),
        (_TORN_SECTIONS, "the sections of the document with id {} do not follow each other"),
        (_TORN_PAGES, "the sections of the document with id {} are not those of its chunks"),
    ):
        rows = handle.execute(query).fetchall()
        if rows:
            return damage.format(rows[0][0])
    for id_, file_path, metadata in handle.execute("SELECT id, file_path, metadata FROM documents"):
        if not (is_plain_name(file_path) and _is_metadata(metadata)):
            return f"the path or the metadata of the document with id {id_} is not as a build writes it"
    return None


def wrong_windows(handle: apsw.Connection, dimensions: int, vector_group: int) -> str | None:
    """The first problem with windows and vectors, or None. The tables of pages must be checked before."""
    rule = connections.row_rule(handle, "windows", "w.")
    if handle.execute(
        f"SELECT w.id FROM windows w LEFT JOIN chunks c ON c.id = w.id >> {table_rows.WINDOW_BITS} "
        f'WHERE NOT coalesce({rule} AND w."end" BETWEEN w.start AND c.char_count AND length(w.key) = 10, 0)'
    ).fetchall():
        return "its windows are damaged"
    if dimensions and not _vectors_are_sound(handle, dimensions, vector_group):
        return "its vectors are damaged"
    return None


def _wrong_keyword_settings(handle: apsw.Connection) -> str | None:
    for key, value in handle.execute("SELECT k, v FROM chunks_fts_config"):
        least, most = _KEYWORD_SETTINGS.get(key, (1, 0)) if isinstance(key, str) else (1, 0)
        if not isinstance(value, int) or not least <= value <= most:
            return "its keyword index has settings that a build does not make"
    return None


def _vectors_are_sound(handle: apsw.Connection, dimensions: int, size: int) -> bool:
    """Whether sqlite-vec's own tables are as a build writes them.

    Vectors are ordered by window, in groups that are all full except the last. The groups and the list of rows have the
    same row ids.
    """
    rows: Iterable[Any] = handle.execute(
        "SELECT r.rowid, r.id, r.chunk_id, r.chunk_offset, w.id FROM vectors_rowids r LEFT JOIN windows w "
        "ON w.id = r.rowid ORDER BY r.rowid"
    )
    stored = array("q")
    for index, row in enumerate(rows):
        if row != (row[0], None, index // size + 1, index % size, row[0]):
            return False
        stored.append(row[0])
    groups = handle.execute(
        "SELECT c.chunk_id, c.size, c.validity, c.rowids, v.rowid, typeof(v.vectors), length(v.vectors) "
        "FROM vectors_chunks c LEFT JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id ORDER BY c.chunk_id"
    ).fetchall()
    group_bytes = size * table_rows.vector_bytes(dimensions)
    for number, group in enumerate(groups):
        group_rows = stored[number * size : (number + 1) * size]
        validity = ((1 << len(group_rows)) - 1).to_bytes(size // 8, "little")
        row_blob = group_rows.tobytes().ljust(size * 8, b"\0")
        if group != (number + 1, size, validity, row_blob, number + 1, "blob", group_bytes):
            return False
    parts: int = handle.execute("SELECT count(*) FROM vectors_vector_chunks00").get
    return len(groups) == parts == -(-len(stored) // size)


def _is_metadata(text: str) -> bool:
    """Whether this is a JSON object in canonical form."""
    if text == "{}":  # most pages of a folder
        return True
    value = strict_json(text)
    return isinstance(value, dict) and not is_deep(value, MAX_DEPTH) and canonical(value) == text
