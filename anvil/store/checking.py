"""Whether an index file may be trusted: it may come from anywhere.

Identity, format, table definitions, page structure, digest, vector sizes and counts are compared with what
they must be. What fails is refused with the reason and the way out; nothing in the file is ever run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

import apsw

from anvil.errors import ArtifactRejected, ConfigError, FormatTooNew
from anvil.sharding import Shard
from anvil.store import connection as connections
from anvil.store import trust
from anvil.store.digest import checksum, document_digests, index_digest
from anvil.store.reading import Reader
from anvil.store.writing import SETTINGS

REBUILD = "Build it again with 'anvil build --force', or fetch it again."
_MANIFEST = ("table", "anvil_meta")
REQUIRED = ("anvil_version", "docs_root_path", "digest", "checksum", *SETTINGS)


def open_checked(path: Path, text_too: bool = True) -> Reader:
    """Open an artifact that passes its check: now, or before if these very bytes did on this machine.

    ``text_too`` is False when :func:`check_text` passed on the same file while it was made.
    Raises :class:`ArtifactMissing`, :class:`ArtifactRejected` or :class:`FormatTooNew`.
    """
    handle = connections.open_artifact(path)
    try:
        before = connections.signature(path)
        digest = trust.sha256(path)
        reader = Reader(handle)
        if not trust.is_known(digest):
            _check(reader, path, text_too)
            if connections.signature(path) == before:  # else what was read is not what was checked
                trust.remember(digest)
        elif connections.signature(path) != before:
            _check(reader, path, text_too)
    except (apsw.Error, UnicodeDecodeError) as error:  # any of them: what is sound raises none
        handle.close()
        raise ArtifactRejected(f"{path} is damaged ({error}). {REBUILD}") from error
    except BaseException:
        handle.close()
        raise
    return reader


def refuse_part(reader: Reader, path: Path) -> None:
    """Raise :class:`ArtifactRejected` when an index is a shard: what it lacks is in the others."""
    shard = reader.meta().get("shard")
    if shard is not None:
        raise ArtifactRejected(f"{path} is shard {shard} of an index, not a whole one. Join all with 'anvil merge'.")


def check(path: Path, text_too: bool = True) -> None:
    """Check an artifact whole, or but for its text, and close it."""
    open_checked(path, text_too).close()


def check_text(path: Path) -> None:
    """Check that the documents of an artifact in the making say what their digests say.

    It takes longer than all other checks together; while a model loads there is time for it.
    """
    with Reader(connections.open_artifact(path)) as reader:
        _check_text(reader.connection, _refusal(path))


def _refusal(path: Path) -> Callable[[str], NoReturn]:
    def refuse(reason: str) -> NoReturn:
        raise ArtifactRejected(f"{path} is refused: {reason}. {REBUILD}")

    return refuse


def _check(reader: Reader, path: Path, text_too: bool) -> None:
    refuse = _refusal(path)
    handle = reader.connection
    if handle.pragma("application_id") != connections.APPLICATION_ID:
        raise ArtifactRejected(f"{path} is a SQLite file, but not an Anvil index. {connections.ANOTHER}")
    version = handle.pragma("user_version")
    if version > connections.FORMAT_VERSION:
        raise FormatTooNew(
            f"{path} has format {version}; this Anvil reads up to {connections.FORMAT_VERSION}. "
            "Upgrade with 'pip install -U anvil-docs'."
        )
    if version < connections.FORMAT_VERSION:
        refuse(f"it has the old format {version}")

    found = _definitions(handle)
    if found.get(_MANIFEST) != _expected(0)[_MANIFEST]:  # before it is read: it may be anything
        refuse("its manifest is missing or not defined as it must be")
    meta = _meta(handle)
    missing = [key for key in REQUIRED if key not in meta]
    if missing:
        refuse(f"its manifest lacks {', '.join(missing)}")
    if not meta["embedding_dimensions"].isdigit() or int(meta["embedding_dimensions"]) > 8192:
        refuse("its manifest names impossible dimensions")
    if "shard" in meta:
        try:
            Shard.parse(meta["shard"])
        except ConfigError:
            refuse("its manifest names an impossible shard")
    dimensions = int(meta["embedding_dimensions"])
    expected = _expected(dimensions)
    for kind, name in sorted(set(found) ^ set(expected)):
        refuse(f"the {kind} {name!r} {'does not belong there' if (kind, name) in found else 'is missing'}")
    for kind, name in expected:
        if found[kind, name] != expected[kind, name]:
            refuse(f"the {kind} {name!r} is not defined as it must be")

    verdict = handle.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        refuse(f"it is damaged ({verdict})")
    if text_too:
        _check_text(handle, refuse)
    _check_rows(reader, meta, dimensions, refuse)


def _check_text(handle: apsw.Connection, refuse: Callable[[str], NoReturn]) -> None:
    true = dict(document_digests(handle))
    for id_, path, digest in handle.execute("SELECT id, file_path, digest FROM documents"):
        if true[id_] != digest:
            refuse(f"the document {path!r} does not match its digest")


def _check_rows(reader: Reader, meta: dict[str, str], dimensions: int, refuse: Callable[[str], NoReturn]) -> None:
    handle = reader.connection
    documents = handle.execute("SELECT library, file_path, digest FROM documents")
    if index_digest((f"{key}={meta[key]}" for key in SETTINGS), documents) != meta["digest"]:
        refuse("it does not match its digest")
    for name, count in reader.counts().items():
        if meta.get(f"count_{name}") != str(count):
            refuse(f"it holds {count} {name}, its manifest says {meta.get(f'count_{name}')}")
    if dimensions and not _vectors_are_sound(handle, dimensions):
        refuse("its vectors are damaged")
    if checksum(handle) != meta["checksum"]:
        refuse("its times, windows or vectors do not match their checksum")


def _vectors_are_sound(handle: apsw.Connection, dimensions: int) -> bool:
    """Whether sqlite-vec's own storage has the sizes and places that the reader relies on."""
    group = connections.VECTOR_GROUP
    bad = handle.execute(
        "SELECT (SELECT count(*) FROM vectors_chunks c LEFT JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id "
        "WHERE c.size <> ?1 OR length(c.validity) <> ?1 / 8 OR length(c.rowids) <> ?1 * 8 "
        "OR length(v.vectors) IS NOT ?1 * ?2) + (SELECT count(*) FROM vectors_rowids r WHERE "
        "r.chunk_offset NOT BETWEEN 0 AND ?1 - 1 OR NOT EXISTS (SELECT 1 FROM vectors_chunks c "
        "WHERE c.chunk_id = r.chunk_id) OR NOT EXISTS (SELECT 1 FROM windows w WHERE w.id = r.rowid))",
        (group, dimensions),
    ).get
    return bool(bad == 0)


def _meta(handle: apsw.Connection) -> dict[str, str]:
    rows = handle.execute("SELECT key, value FROM anvil_meta").fetchall()
    return {key: value for key, value in rows if isinstance(key, str) and isinstance(value, str)}


def _definitions(handle: apsw.Connection) -> dict[tuple[str, str], str | None]:
    return {(kind, name): sql for kind, name, sql in handle.execute("SELECT type, name, sql FROM sqlite_schema")}


@lru_cache(maxsize=4)
def _expected(dimensions: int) -> dict[tuple[str, str], str | None]:
    with contextlib.closing(connections.open_scratch(":memory:")) as model:
        connections.lay_out(model, dimensions)
        return _definitions(model)
