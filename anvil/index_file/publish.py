"""Writing a working copy to an index file: in canonical order, checked, flushed, renamed into place.

Rows are written table by table, by id, and the keyword and vector tables are made from them. So the same rows give the
same bytes, in whatever order the working copy was changed.

One process at a time writes an index. The lock is SQLite's own, on an empty file next to the index. The system releases
it when the process ends, also when the process is killed. The file is removed with the lock.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import apsw

from anvil.errors import AnvilError, ArtifactMissing, ArtifactRejected, BuildError, FolderVanished
from anvil.formats.characters import plain_name
from anvil.index_file import connection, fts_table, table_rows, verify
from anvil.index_file.manifests import Manifest, ModelIdentity, manifest_path, render
from anvil.index_file.writer import Writer, checksum
from anvil.settings.schema import INDEX_NAME
from anvil.system import safe_files
from anvil.values import LOCK_TIMEOUT_S, Progress, silent

LOCK_SUFFIX = ".lock"
NEW_SUFFIX = ".new"
"""Ending of the file to which a new index is written. It exists only while the lock is held."""
_POLL_INTERVAL_S = 0.05
WAITING = "waiting for another process that writes"
"""The beginning of the stage of a wait, in reports of progress."""
COPY_LOCK_TIMEOUT_S = 30.0
"""How long :func:`place` waits for another process that writes the same file."""


class Lock:
    """The lock of the index at ``path``, held by this process. ``fresh``: the file to which a new index is written."""

    def __init__(self, path: Path, state: os.stat_result) -> None:
        self.path, self.fresh = path, path.with_name(path.name + NEW_SUFFIX)
        self._file, self._state = _lock_file(path), state

    def ensure_held(self, cause: Exception | None = None) -> None:
        """Raise :class:`FolderVanished` if the folder was emptied or replaced: the files in it now are those of another
        process, and its index was built from other documents."""
        if not _is_current(self._file, self._state):
            problem = f"{self.path.parent} was emptied or replaced while the index was written. Build the index again."
            raise FolderVanished(problem) from cause


def _lock_file(path: Path) -> Path:
    return path.with_name(path.name + LOCK_SUFFIX)


@contextlib.contextmanager
def exclusive(
    path: Path, timeout_s: float = LOCK_TIMEOUT_S, progress: Progress = silent, *, parents: bool = True
) -> Iterator[Lock]:
    """Hold the lock of the index at ``path``. The folder is made if needed, with ``parents`` also those above it.
    ``progress`` gets the seconds of a wait for another process, and may raise to end it.

    Raises :class:`IndexBusy` if another process still holds the lock after ``timeout_s`` seconds, :class:`BuildError`
    if the lock cannot be made, and :class:`FolderVanished` in place of an error that comes of an emptied folder.
    """
    lock = _lock_file(path)
    try:
        path.parent.mkdir(parents=parents, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"{path.parent} cannot be made ({error.strerror}). Choose another place for the index."
        ) from error
    with connection.translate_errors(path):
        handle, state = _acquire(lock, _Wait(path, lock, timeout_s, progress))
    held = Lock(path, state)
    try:
        yield held
    except (ArtifactMissing, BuildError, OSError) as error:
        held.ensure_held(error)
        raise
    finally:
        removed = True
        if _is_current(lock, state):  # otherwise they are the files of another process, in a new folder
            _remove(held.fresh)
            removed = _remove(lock)
        handle.close()
        if not removed:  # Windows removes no open file. Elsewhere this could remove the lock of the next process.
            _remove(lock)


def _acquire(lock: Path, wait: _Wait) -> tuple[apsw.Connection, os.stat_result]:
    """The connection that holds the lock, and the state of its file."""
    while True:
        # A link must not be followed, and SQLite would run the journal of a database that is not empty.
        if (state := safe_files.regular_file(lock)) is not None and state.st_size:
            raise BuildError(f"{lock} is not a lock of Anvil's, for it is not empty. Remove it, and try again.")
        handle = apsw.Connection(str(lock))
        opened: os.stat_result | None = None
        try:
            opened = lock.stat()  # SQLite made the file if there was none
            handle.set_busy_handler(wait)  # in Python: Ctrl-C ends the wait
            handle.pragma("journal_mode", "off")  # nothing is written, so no journal is made
            handle.execute("BEGIN EXCLUSIVE")
            if _is_current(lock, opened):
                return handle, opened
            # The process before removed this file together with its lock, so other processes lock a new file.
        except FileNotFoundError:
            pass
        except (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError):  # SQLite's errors for a file that was removed
            if opened is None or _is_current(lock, opened):
                handle.close()
                _ensure_lockable(lock)
                raise
        except BaseException:
            handle.close()
            raise
        handle.close()


def _ensure_lockable(lock: Path) -> None:
    """Raise :class:`BuildError` for a file system without locks, such as some networks and clusters have, and remove
    the empty file. SQLite reports such a lock as one that another process holds, or as an error of the disk."""
    try:
        import fcntl
        import tempfile

        # not the lock's own file, for closing that releases it
        with tempfile.TemporaryFile(dir=lock.parent) as probe:
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows
        return
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            _remove(lock)
            raise BuildError(
                f"{lock.parent} is on a file system without locks ({error.strerror}), so that two builds could write "
                "at once. Choose a place for the index on a local disk."
            ) from None


class _Wait:
    """The wait for the process that holds a lock, as a busy handler of SQLite: each call sleeps a moment, and is False
    when the time is up."""

    def __init__(self, path: Path, lock: Path, timeout_s: float, progress: Progress) -> None:
        self._lock, self._timeout_s, self._progress = lock, timeout_s, progress
        self._stage = f"{WAITING} {plain_name(str(path))}: second"
        self._began = time.monotonic()

    def __call__(self, calls: int) -> bool:
        if not calls:
            _ensure_lockable(self._lock)
        waited_s = time.monotonic() - self._began
        if waited_s >= self._timeout_s:
            return False
        self._progress(self._stage, int(waited_s), int(self._timeout_s))
        time.sleep(min(_POLL_INTERVAL_S, self._timeout_s - waited_s))
        return True


def _is_current(path: Path, opened: os.stat_result) -> bool:
    """Whether the file at ``path`` is still the one that was opened."""
    try:
        return os.path.samestat(opened, path.stat())
    except OSError:  # it was removed, or a folder on the way is a file now, or may not be entered
        return False


def _remove(path: Path) -> bool:
    """Remove a file; False if that is not possible. A folder at ``path`` was reported before."""
    try:
        path.unlink(missing_ok=True)
    except (PermissionError, IsADirectoryError):
        return False
    return True


FEW_MOVES = 200
"""Up to so many documents with new ids, their entries in the keyword index are replaced one by one. For more of them it
is made again."""


def keep_out_of_git(folder: Path, *, parents: bool = False) -> None:
    """Create the default folder of an index with a ``.gitignore``, so that it is not committed by accident.

    A folder that exists is not changed, unless the older Anvil made it. ``parents``: also make the folders above it.
    Not by default: a documentation folder that was renamed meanwhile would be there again, and empty. Raises
    :class:`BuildError` for a link that leads out of its parent folder.
    """
    safe_files.ensure_inside_parent(folder)
    ignore_file = folder / ".gitignore"
    if not folder.exists() or (not ignore_file.exists() and connection.is_of_older_anvil(folder / INDEX_NAME)):
        try:
            folder.mkdir(parents=parents, exist_ok=True)
            safe_files.write_file(ignore_file, "*\n")
        except OSError as error:
            raise BuildError(
                f"{folder} cannot be made ({error.strerror}). Choose another place for the index."
            ) from error


def is_kept_out_of_git(folder: Path) -> bool:
    """Whether the folder has the ``.gitignore`` that :func:`keep_out_of_git` writes."""
    try:
        return safe_files.text(folder / ".gitignore").split() == ["*"]
    except (OSError, ValueError):
        return False


def place(file: Path, path: Path, sha256: str | None = None, progress: Progress = silent) -> None:
    """Copy the index at ``file`` to ``path`` as a build does: locked, checked, flushed, renamed.

    ``sha256`` (hex): of the file that was examined; another program may have replaced it since. Raises
    :class:`ArtifactError` if the copy fails its check, :class:`BuildError` if it cannot be written, and
    :class:`IndexBusy` if another process writes at ``path`` for more than :data:`COPY_LOCK_TIMEOUT_S`.
    """
    with exclusive(path, COPY_LOCK_TIMEOUT_S, progress) as lock:
        copy(file, lock, sha256)


def copy(file: Path, lock: Lock, sha256: str | None = None) -> None:
    """:func:`place` for a caller that holds the lock."""
    fresh, path = lock.fresh, lock.path
    ensure_overwritable(path)
    lock.ensure_held()
    try:
        safe_files.clear(fresh)
        shutil.copyfile(file, fresh)
        if sha256 is not None and safe_files.sha256(fresh) != sha256:
            raise ArtifactRejected(f"{file} was replaced while it was copied. Try again.")
        verify.check(fresh, thorough=True)
        _flush(fresh)
    except OSError as error:
        raise BuildError(safe_files.unwritable(path, error)) from error
    lock.ensure_held()
    replace(fresh, path)


def replace(fresh: Path, path: Path) -> None:
    """Rename ``fresh`` to ``path``. Raises :class:`BuildError`."""
    try:
        connection.clear_older_logs(path)
        safe_files.rename(fresh, path)
    except PermissionError as error:
        raise BuildError(
            f"{path} cannot be replaced ({error.strerror}). Close the program that has it open, and try again."
        ) from error
    except OSError as error:
        raise BuildError(safe_files.unwritable(path, error)) from error


class Publication:
    """Writing a working copy to the index of a lock in two steps: first the text, then the vectors.

    The text needs no vectors, so it is written while the model loads.
    """

    def __init__(self, writer: Writer, lock: Lock) -> None:
        self.writer = writer
        self.lock, self.path, self.fresh = lock, lock.path, lock.fresh
        self.dimensions = int(writer.reader.meta()["embedding_dimensions"])

    def write_text(self) -> None:
        """Write documents, sections, chunks and keyword index. Documents of the working copy may get other ids.

        Raises :class:`BuildError`, as :meth:`finish` does. Then the file at ``path`` is unchanged.
        """
        self.lock.ensure_held()
        with connection.translate_errors(self.path):
            safe_files.clear(self.fresh)
            page_size, self._vector_group = connection.layout(self.writer.reader.characters())
            with contextlib.closing(connection.open_scratch(self.fresh, page_size)) as empty:
                connection.create_tables(empty, self.dimensions, self._vector_group)
            source = self.writer.connection
            moved = moves(self.writer)
            with self.writer.atomic():
                keeps_keywords = fts_table.is_begun(source) and len(moved) <= FEW_MOVES
                self.writer.renumber(moved, keeps_keywords)
            if keeps_keywords:
                fts_table.merge(source)
            else:
                fts_table.rebuild(source)
            source.execute("ATTACH ? AS fresh", (str(self.fresh),))
            # Nobody reads this file before it is whole: a failed build removes it, and it is flushed once at the end.
            source.execute("PRAGMA fresh.journal_mode = off")
            source.execute("PRAGMA fresh.synchronous = off")
            with source:
                self._copy("documents")
                self._copy("sections")
                self._copy("chunks")
                fts_table.copy(source, "fresh")
            self._text_check = verify.begin_text_check(self.fresh)

    def finish(self) -> None:
        """Write windows, vectors and manifest, check the file, flush it, and rename it to the index's path."""
        with connection.translate_errors(self.path):
            source = self.writer.connection
            with source:
                self._copy("windows")
                if self.dimensions:
                    self._copy_vectors()
                self._copy("anvil_meta")
                # Over the new file: there the keyword index and the vectors are in their canonical form.
                source.execute("INSERT INTO fresh.anvil_meta VALUES ('checksum', ?)", (checksum(source, "fresh"),))
            source.execute("DETACH fresh")
        self._put_in_place()

    def _copy(self, table: str) -> None:
        """Copy a table into an empty one.

        SQLite copies its rows and indexes in their stored order, which leaves no free space in their pages. With ORDER
        BY it would insert row by row.
        """
        self.writer.connection.execute(f"INSERT INTO fresh.{table} SELECT * FROM main.{table}")

    def _copy_vectors(self) -> None:
        """Write the vectors by window, in groups, to sqlite-vec's own tables.

        An insert through the virtual table rewrites three blobs for each vector, and takes four times as long.
        :mod:`verify` checks the definitions of these tables.
        """
        execute = self.writer.connection.execute
        size = self._vector_group
        execute(
            "INSERT INTO fresh.vectors_rowids SELECT rowid, NULL, place / ?1 + 1, place % ?1 FROM "
            "(SELECT rowid, row_number() OVER (ORDER BY rowid) - 1 AS place FROM main.vectors_rowids) ORDER BY rowid",
            (size,),
        )
        vectors = self.writer.reader.vectors()
        for group in itertools.count(1):
            rows = list(itertools.islice(vectors, size))
            if not rows:
                return
            validity = ((1 << len(rows)) - 1).to_bytes(size // 8, "little")
            windows = array("q", [window for window, _ in rows]).tobytes()
            execute(
                "INSERT INTO fresh.vectors_chunks VALUES (?, ?, ?, ?)",
                (group, size, validity, windows.ljust(size * 8, b"\0")),
            )
            blob = b"".join(vector for _, vector in rows)
            group_bytes = size * table_rows.vector_bytes(self.dimensions)
            execute("INSERT INTO fresh.vectors_vector_chunks00 VALUES (?, ?)", (group, blob.ljust(group_bytes, b"\0")))

    def _put_in_place(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # most builds write nothing

        path = self.path
        ensure_overwritable(path)  # again: another program may have written a file since
        try:
            with ThreadPoolExecutor(1, "anvil-flush") as executor:  # the disk works while the file is checked
                flushed = executor.submit(_flush, self.fresh)
                verify.check_written(self.fresh, self._text_check)
                flushed.result()
        except AnvilError as error:
            raise BuildError(f"The new index did not pass its check and was not put in place: {error}") from error
        except OSError as error:
            raise BuildError(safe_files.unwritable(path, error)) from error
        self.lock.ensure_held()
        replace(self.fresh, path)
        if hasattr(os, "O_DIRECTORY"):  # the rename itself reaches the disk
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _flush(file: Path) -> None:
    with file.open("rb+") as written:
        os.fsync(written.fileno())


def moves(writer: Writer) -> list[tuple[int, int]]:
    """(id, id in an index built from scratch) of each document for which the two differ.

    They can differ for documents with the same slot, after one of them was added or removed.
    """
    used_ids: set[int] = set()
    beyond: dict[int, int] = {}
    moved: list[tuple[int, int]] = []
    rows = list(writer.connection.execute("SELECT id, library, file_path FROM documents ORDER BY 2, 3"))
    for id_, library, path in rows:
        new_id = table_rows.document_id(library, path, used_ids.__contains__, beyond)
        used_ids.add(new_id)
        if new_id != id_:
            moved.append((id_, new_id))
    return moved


_ID = slice(68, 72)
"""Bytes of the application id in SQLite's header, big-endian."""


def ensure_overwritable(path: Path) -> None:
    """Raise :class:`BuildError` if the file at ``path`` is not Anvil's and would be lost."""
    try:
        is_lost = is_foreign(path)
    except OSError as error:
        raise BuildError(
            f"{path} cannot be read ({error.strerror}), so it is not replaced. Name another file, or move it away."
        ) from error
    if is_lost:
        raise BuildError(f"{path} is not an Anvil index, and would be lost. Name another file, or move it away.")


def is_foreign(path: Path) -> bool:
    """Whether there is something at ``path`` that is not an index, not an empty file and not a Git LFS pointer. Damaged
    indexes and those of the older Anvil are indexes.

    Raises :class:`OSError` if the file cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            return True
        with path.open("rb") as file:
            header = file.read(100)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not header:
        return False
    if not header.startswith(connection.MAGIC):
        from anvil.git import tracked_file

        return not tracked_file.is_pointer(path)
    if len(header) < _ID.stop or _is_ours(header):  # a file that ends within its header has no data to lose
        return False
    return not connection.is_of_older_anvil(path)


def is_index(path: Path) -> bool:
    """Whether a regular file begins as an index does."""
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    return header.startswith(connection.MAGIC) and _is_ours(header)


def _is_ours(header: bytes) -> bool:
    return int.from_bytes(header[_ID], "big") == connection.APPLICATION_ID


# --- the file beside it ----------------------------------------------------------------------------------


# Clients that download an index compare it with the hash in this manifest. A file cannot have a hash of itself, so
# :mod:`verify` needs no manifest.
def describe(path: Path) -> Manifest:
    """The manifest for the index at ``path``. The index is checked first. Raises :class:`ArtifactError`."""
    with verify.open_checked(path) as reader:
        meta, counts = reader.meta(), reader.counts()
        sha256, size = connection.sha256(reader.connection)
    return Manifest(
        format=int(meta["format_version"]),
        file=path.name,
        sha256=sha256,
        size=size,
        digest=meta["digest"],
        commit=meta.get("commit") or None,
        last_modified=meta["last_index_timestamp"],
        anvil_version=meta["anvil_version"],
        model=ModelIdentity(
            provider=meta["embedding_provider"],
            name=meta["embedding_model"],
            digest=meta["embedding_model_digest"],
            dimensions=int(meta["embedding_dimensions"]),
        ),
        pages=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
    )


def write_manifest(index: Path) -> Path:
    """Write the manifest of an index if it changed; its path."""
    path = manifest_path(index)
    safe_files.update_file(path, render(describe(index)).encode(), replace=True)
    return path
