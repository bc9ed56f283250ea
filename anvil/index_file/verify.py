"""The check of an index file, which may come from anywhere.

Identity, format, table definitions, page structure, types and ranges of values, digest, checksum, keyword index,
vectors and counts are compared with what they must be. A file that fails is refused with the reason and the way out.
Nothing in the file is ever run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import apsw

from anvil._version import __version__
from anvil.errors import AnvilError, ArtifactMissing, ArtifactRejected, ConfigError, FormatTooNew, OlderIndex
from anvil.index_file import connection as connections
from anvil.index_file import fts_table, verify_values
from anvil.index_file.reader import Reader
from anvil.index_file.writer import SETTINGS, checksum, document_digests, index_digest
from anvil.system import user_folders

if TYPE_CHECKING:
    from concurrent.futures import Future

REBUILD = "Build it again with 'anvil build --force', or fetch it again."
ELSEWHERE = "Build it again where it was built, or fetch it again."
REBUILD_SITE = "Build its site again with 'mkdocs build', or fetch it again."
_MANIFEST = ("table", "anvil_meta")
_VIRTUAL = ("chunks_fts", "vectors")
_LAYOUTS = (connections.SMALL, connections.LARGE)
REQUIRED = ("anvil_version", "docs_root_path", "digest", "checksum", "needs_reembed", "last_index_timestamp", *SETTINGS)

MAX_REMEMBERED = 500
"""Files that passed their check of which the user's cache has a note; the oldest are removed first."""
CHECK_VERSION = 3
"""Increased when the check finds more than before, so that files are checked again."""
_OLDER_COLUMNS = {"chunks": {"chunk_id", "heading_path", "content_hash", "ordinal"}, "anvil_meta": {"key", "value"}}
"""Tables of the older Anvil, a program for Node.js with the same default place -> some of their columns."""
_OLDER_LOG = "-wal"


def open_checked(path: Path, thorough: bool = False) -> Reader:
    """Open an index file that passes its check. A file of the same bytes is checked once on a machine.

    The reader has the checked file open, even if another one is renamed to ``path`` meanwhile.
    ``thorough``: also make the keyword index again from the text, and compare. It takes twice as long, and finds pairs
    of changes that cancel each other out in FTS5's own check.
    Raises :class:`ArtifactMissing`, :class:`ArtifactRejected` or :class:`FormatTooNew`.
    """
    with _damage(path):
        handle = connections.open_artifact(path)
        try:
            digest, _ = connections.sha256(handle)
            reader = Reader(handle)
            if not is_verified(digest, thorough):
                _check(reader, path)
                if thorough and not _keywords_rebuilt_agree(handle):
                    _refusal(path)(_KEYWORDS_DIFFER)
                if connections.sha256(handle)[0] != digest:
                    raise ArtifactRejected(f"{path} was written over while it was read. Try again.")
                remember_verified(digest, thorough)
        except BaseException:
            handle.close()
            raise
    return reader


def open_foreign(path: Path, thorough: bool = False) -> Reader:
    """:func:`open_checked` for a file that need not be the index of this project: no message advises a build here."""
    try:
        return open_checked(path, thorough)
    except ArtifactMissing as error:
        raise ArtifactMissing(error.problem, "Check the path.") from error
    except ArtifactRejected as error:
        raise ArtifactRejected(error.problem, error.advice and ELSEWHERE) from error


def open_known(path: Path, max_bytes: int) -> Reader | None:
    """Open an index file that passed its check before; None for another or a larger one. Takes a millisecond a MB.

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
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ArtifactRejected(f"{path} is damaged ({reason}).", rebuild_advice(path)) from error


@contextlib.contextmanager
def answering(place: object) -> Iterator[None]:
    """A context for queries to an index that was checked: what SQLite raises now is damage done to the file since.

    Raises :class:`ArtifactRejected` for it.
    """
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        advice = rebuild_advice(Path(str(place)))
        raise ArtifactRejected(f"{place} was damaged since it was opened ({error}).", advice) from error


def rebuild_advice(path: Path) -> str:
    """A sentence: how an index that cannot be used is made again."""
    return REBUILD_SITE if is_marked_as_site(path) else REBUILD


def is_marked_as_site(path: Path) -> bool:
    """Whether a file says that it was built with a site, as far as it can be read. The file may be damaged."""
    try:
        with contextlib.closing(connections.open_artifact(path)) as handle:
            table = handle.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'anvil_meta'").get
            if table != _expected(0)[_MANIFEST]:
                return False
            return bool(handle.execute("SELECT count(*) FROM anvil_meta WHERE key = 'left_out'").get)
    except (AnvilError, apsw.Error, UnicodeDecodeError):
        return False


def refuse_part(reader: Reader, path: Path) -> None:
    """Raise :class:`ArtifactRejected` when an index is a shard: the other shards have the rest."""
    shard = reader.meta().get("shard")
    if shard is not None:
        raise ArtifactRejected(f"{path} is shard {shard} of an index, not a whole one. Join all with 'anvil merge'.")


def check(path: Path, thorough: bool = False) -> None:
    """Check an index file as :func:`open_checked` does, and close it."""
    open_checked(path, thorough).close()


def begin_text_check(path: Path) -> Future[None]:
    """Check the documents and the keyword index of an index file that is being written, in a thread.

    The check reads a copy in memory, so the file may grow meanwhile. It takes longer than all other checks together.
    """
    from concurrent.futures import ThreadPoolExecutor  # no file is checked in most starts

    text = connections.open_scratch()
    with _damage(path), contextlib.closing(connections.open_artifact(path)) as handle:
        connections.fill(text, handle)

    def check_text() -> None:
        with _damage(path), contextlib.closing(text):
            _check_text(text, None, _refusal(path))  # its manifest is not written yet

    with_thread = ThreadPoolExecutor(1, "anvil-check-text")
    checking = with_thread.submit(check_text)
    with_thread.shutdown(wait=False)
    return checking


def check_written(path: Path, text_check: Future[None]) -> None:
    """Check what :func:`begin_text_check` leaves out of a file that this process has just written, and wait for that.

    Its checksum was computed from the rows in it, so it is not compared again.
    """
    with _damage(path), Reader(connections.open_artifact(path)) as reader:
        digest, _ = connections.sha256(reader.connection)
        _check(reader, path, written=True)
        text_check.result()
        remember_verified(digest)


def _refusal(path: Path) -> Callable[[str], NoReturn]:
    def refuse(reason: str) -> NoReturn:
        raise ArtifactRejected(f"{path} is refused: {reason}.", rebuild_advice(path))

    return refuse


def _check(reader: Reader, path: Path, written: bool = False) -> None:
    """Refuse a file that fails. The order is part of the check: each step reads only what the steps before have found
    to be of the right kind. A table is not read before its definition is compared, since a view or a virtual table of
    that name could do anything; no value is computed with before its type is checked."""
    refuse = _refusal(path)
    handle = reader.connection
    if handle.pragma("application_id") != connections.APPLICATION_ID:
        if is_of_older_anvil(path):
            raise OlderIndex(f"{path} is an index of the older Anvil, which is not read.", "'anvil build' replaces it.")
        raise ArtifactRejected(f"{path} is a SQLite file, but not an Anvil index. {connections.NAME_ANOTHER}")
    version = handle.pragma("user_version")
    if version > connections.FORMAT_VERSION:
        raise FormatTooNew(
            f"{path} has format {version}; this Anvil reads up to {connections.FORMAT_VERSION}. "
            "Upgrade with 'pip install -U anvil-docs'."
        )
    if version < connections.FORMAT_VERSION:
        refuse(f"it has the old format {version}")

    definitions = _definitions(handle)
    if definitions.get(_MANIFEST) != _expected(0)[_MANIFEST]:
        refuse("its manifest is missing or not defined as it must be")
    _expect(verify_values.manifest(handle), refuse)
    meta = reader.meta()
    missing = [key for key in REQUIRED if key not in meta]
    if missing:
        refuse(f"its manifest lacks {', '.join(missing)}")
    _expect(verify_values.settings(meta), refuse)
    dimensions = int(meta["embedding_dimensions"])
    vector_group = next(
        (each for _, each in _LAYOUTS if f"chunk_size={each})" in str(definitions.get(("table", "vectors")))),
        connections.LARGE.vector_group,
    )
    expected = _expected(dimensions, vector_group)
    for kind, name in sorted(set(definitions) ^ set(expected)):
        refuse(f"the {kind} {name!r} {'does not belong there' if (kind, name) in definitions else 'is missing'}")
    for kind, name in expected:
        if definitions[kind, name] != expected[kind, name]:
            refuse(f"the {kind} {name!r} is not defined as it must be")

    for kind, name in sorted(expected):  # not all at once: that includes the keyword index, which is checked better
        if kind == "table" and name not in _VIRTUAL and not name.startswith("sqlite_"):
            verdict = handle.execute(f"PRAGMA integrity_check('{name}')").get
            if verdict != "ok":
                refuse(f"it is damaged ({verdict})")
    if not written:
        _check_text(handle, meta["chunking"], refuse)
    _check_rows(reader, meta, dimensions, vector_group, refuse)
    if not written and checksum(handle) != meta["checksum"]:
        refuse("its manifest, times, keyword index, windows or vectors do not match their checksum")


def _expect(wrong: str | None, refuse: Callable[[str], NoReturn]) -> None:
    if wrong is not None:
        refuse(wrong)


def _check_text(handle: apsw.Connection, chunking: str | None, refuse: Callable[[str], NoReturn]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    _expect(verify_values.keyword_settings(handle), refuse)
    with (
        contextlib.closing(connections.open_scratch()) as copy,
        ThreadPoolExecutor(1, "anvil-check") as executor,  # SQLite works without the interpreter's lock
    ):
        connections.fill(copy, handle)
        agreement = executor.submit(_keywords_agree, copy)
        _expect(verify_values.pages(handle, chunking), refuse)
        actual = dict(document_digests(handle))
        for id_, path, digest in handle.execute("SELECT id, file_path, digest FROM documents"):
            if actual[id_] != digest:
                refuse(f"the document {path!r} does not match its digest")
        if not agreement.result():
            refuse(_KEYWORDS_DIFFER)


_KEYWORDS_DIFFER = "its keyword index does not match its text"


def _keywords_agree(copy: apsw.Connection) -> bool:
    """Whether FTS5's own check finds the keyword index to be that of the text. It wants a file that can be written.

    FTS5 reads every entry and every text again and compares an exclusive or of hashes, so two entries that are wrong
    alike can cancel each other out. The manifest's checksum finds such damage, and :func:`_keywords_rebuilt_agree`
    finds it when the checksum was written again too.
    """
    rows, chunks = copy.execute("SELECT (SELECT count(*) FROM chunks_fts_docsize), (SELECT count(*) FROM chunks)").get
    try:
        copy.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return bool(rows == chunks)


_STORED = (
    ("data", "SELECT id, block FROM chunks_fts_data ORDER BY id"),
    ("docsize", "SELECT id, sz FROM chunks_fts_docsize ORDER BY id"),
    ("idx", "SELECT * FROM chunks_fts_idx ORDER BY 1, 2"),
    ("config", "SELECT * FROM chunks_fts_config ORDER BY 1"),
)


def _keywords_rebuilt_agree(handle: apsw.Connection) -> bool:
    """Whether the keyword index of a checked file holds what one that is made again from its chunks holds.

    Another version of SQLite may store it in other blocks. Then each word, its place and its chunk are compared.
    """
    with contextlib.closing(connections.open_scratch()) as copy:
        connections.fill(copy, handle)
        definition = copy.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_fts'").get
        with copy:
            copy.execute("DROP TABLE chunks_fts")
            copy.execute(definition)
        fts_table.rebuild(copy)
        if all(_alike(handle.execute(stored), fts_table.rows(copy, table)) for table, stored in _STORED):
            return True
        with (
            contextlib.closing(Reader(handle).instances()) as stored,
            contextlib.closing(Reader(copy).instances()) as rebuilt,
        ):
            return _alike(stored, rebuilt)


def _alike(one: Iterable[Any], other: Iterable[Any]) -> bool:
    return all(a == b for a, b in itertools.zip_longest(one, other))


def _check_rows(
    reader: Reader, meta: dict[str, str], dimensions: int, vector_group: int, refuse: Callable[[str], NoReturn]
) -> None:
    handle = reader.connection
    documents = handle.execute("SELECT library, file_path, digest FROM documents")
    if index_digest((f"{key}={meta[key]}" for key in SETTINGS), documents) != meta["digest"]:
        refuse("it does not match its digest")
    counts = reader.counts()
    lacking = counts["windows"] - counts["vectors"] if dimensions else 0
    newest = handle.execute("SELECT coalesce(max(last_modified), '') FROM documents").get
    actual = {
        **{f"count_{name}": str(count) for name, count in counts.items()},
        "needs_reembed": str(lacking),
        "last_index_timestamp": newest,
    }
    for key, value in actual.items():
        if meta.get(key) != value:
            what = f"holds {value} {key[6:]}" if key.startswith("count_") else f"has {value or 'nothing'} for {key}"
            refuse(f"it {what}, its manifest says {meta.get(key)}")
    _expect(verify_values.windows(handle, dimensions, vector_group), refuse)


def _definitions(handle: apsw.Connection) -> dict[tuple[str, str], str | None]:
    return {(kind, name): sql for kind, name, sql in handle.execute("SELECT type, name, sql FROM sqlite_schema")}


@lru_cache(maxsize=4)
def _expected(dimensions: int, vector_group: int = connections.LARGE.vector_group) -> dict[tuple[str, str], str | None]:
    with contextlib.closing(connections.open_scratch(":memory:")) as model:
        connections.lay_out(model, dimensions, vector_group)
        return _definitions(model)


# --- files that passed their check -----------------------------------------------------------------------------


def is_verified(digest: str, thorough: bool = False) -> bool:
    """Whether a file with this SHA-256 passed the check of this version. The thorough check includes the other one."""
    with contextlib.suppress(ConfigError):
        cache = cache_folder()
        if user_folders.is_private(cache):  # another user could vouch for a file
            return any((cache / _cached_name(digest, kind)).is_file() for kind in {thorough, True})
    return False


def remember_verified(digest: str, thorough: bool = False) -> None:
    """Note that a file with this SHA-256 passed its check: an empty file in the user's cache, named after the hash."""
    # Without a cache that can be written, the next opening checks again.
    with contextlib.suppress(OSError, ConfigError):
        cache = cache_folder()
        user_folders.make(cache)
        if not user_folders.is_private(cache):
            return
        (cache / _cached_name(digest, thorough)).touch()
        names = sorted(os.scandir(cache), key=lambda entry: entry.stat().st_mtime_ns)
        for entry in names[:-MAX_REMEMBERED]:
            os.unlink(entry.path)


def _cached_name(digest: str, thorough: bool) -> str:
    # Of two checkouts with the same version, one can read another format.
    return f"{digest}-{__version__}-{connections.FORMAT_VERSION}.{CHECK_VERSION}{'-thorough' if thorough else ''}"


def cache_folder() -> Path:
    """The folder with the names of files that passed their check, so that each is checked once on a machine."""
    return user_folders.cache() / "checked"


# --- the older Anvil --------------------------------------------------------------------------------------------


def is_of_older_anvil(path: Path) -> bool:
    """Whether the older Anvil wrote the file at ``path``. It is made from documents, like every index, so a build may
    replace it. Its tables may still be in the write-ahead log beside it."""
    if not path.is_file():  # SQLite would wait for a pipe
        return False
    uri = connections.uri(path.resolve())
    if _beside(path, _OLDER_LOG).exists():
        uri = uri.removesuffix(connections.IMMUTABLE)
    try:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(apsw.Connection(uri, flags=flags)) as handle:
            return not handle.pragma("application_id") and all(
                columns <= {name for (name,) in handle.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                for table, columns in _OLDER_COLUMNS.items()
            )
    except (apsw.Error, UnicodeDecodeError):
        return False


def clear_older_logs(path: Path) -> None:
    """Delete the logs of such an index before another file is renamed to ``path``: SQLite would read them as logs of
    the new file. Raises :class:`OSError`."""
    logs = [log for log in (_beside(path, _OLDER_LOG), _beside(path, "-shm")) if log.exists()]
    if logs and is_of_older_anvil(path):
        for log in logs:
            log.unlink(missing_ok=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
