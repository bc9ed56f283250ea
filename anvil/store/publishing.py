"""From a working copy to an artifact: one canonical file, checked, flushed, renamed into place.

Whatever the order in which a working copy was changed, the rows are written table by table in the order of
their ids, and the keyword and vector tables are made anew: the same rows give the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw

from anvil.errors import AnvilError, BuildError
from anvil.store import checking, connection, identity
from anvil.store.digest import checksum
from anvil.store.writing import Writer

LOCK = ".lock"
FRESH = ".new"


@contextlib.contextmanager
def exclusive(path: Path, patience: float = 600.0) -> Iterator[None]:
    """Keep other builds of the index at ``path`` out, waiting up to ``patience`` seconds for one that runs.

    The lock is SQLite's own, on an empty file beside the index: it goes with the process that holds it, on
    every system, so a killed build blocks nobody.
    """
    lock = path.with_name(path.name + LOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"{path.parent} cannot be made ({error.strerror}). Choose another --index.") from error
    with connection.translated(path):
        handle = _locked(lock, patience)
    try:
        yield
    finally:
        for leftover in (path.with_name(path.name + FRESH), lock):
            _remove(leftover)
        handle.close()
        _remove(lock)


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):  # Windows: not while somebody has it open
        path.unlink()


def _locked(lock: Path, patience: float) -> apsw.Connection:
    while True:
        handle = apsw.Connection(str(lock))
        opened: os.stat_result | None = None
        try:
            opened = lock.stat()
            handle.set_busy_timeout(int(patience * 1000))
            handle.pragma("journal_mode", "off")  # nothing is written: no file beside the lock
            handle.execute("BEGIN EXCLUSIVE")
            if _stands(lock, opened):
                return handle
            # the build that was waited for took the file away: a lock on it would keep nobody out
        except FileNotFoundError:
            pass
        except (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError):  # as SQLite says of a file that was taken away
            if opened is None or _stands(lock, opened):
                handle.close()
                raise
        except BaseException:
            handle.close()
            raise
        handle.close()


def _stands(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(opened, path.stat())
    except FileNotFoundError:
        return False


def copy(artifact: Path, path: Path) -> None:
    """Put a copy of an artifact that passed its check at ``path``, byte for byte. Raises :class:`BuildError`."""
    fresh = path.with_name(path.name + FRESH)
    try:
        shutil.copyfile(artifact, fresh)
    except OSError as error:
        raise BuildError(f"{path} cannot be written ({error.strerror}).") from error
    put_in_place(fresh, path)


class Publication:
    """A working copy on its way to ``path``, in two strokes: its text first, which needs no vectors.

    While the text is written a model can load, and the vectors be made after it.
    """

    def __init__(self, writer: Writer, path: Path) -> None:
        self.writer = writer
        self.path = path
        self.fresh = path.with_name(path.name + FRESH)
        self.dimensions = int(writer.meta()["embedding_dimensions"])

    def write_text(self) -> None:
        """Write documents, sections, chunks and keyword index. Documents may get other ids in the working copy.

        Raises :class:`BuildError`, as :meth:`finish` does; then the file at ``path`` is what it was.
        """
        with connection.translated(self.path):
            _remove(self.fresh)
            size = connection.page_size(self.writer.characters())
            with contextlib.closing(connection.open_scratch(self.fresh, size)) as empty:
                connection.lay_out(empty, self.dimensions)
            _settle_ids(self.writer)
            source = self.writer.connection
            source.execute("ATTACH ? AS fresh", (str(self.fresh),))
            source.execute("PRAGMA fresh.journal_mode = off")
            source.execute("PRAGMA fresh.synchronous = off")
            with source:
                self._copy("documents", "id")
                self._copy("sections", "document_id, ordinal")
                self._copy("chunks", "id")
                source.execute("INSERT INTO fresh.chunks_fts (chunks_fts) VALUES ('rebuild')")
                source.execute("INSERT INTO fresh.chunks_fts (chunks_fts) VALUES ('optimize')")
        with self._complaints():
            checking.check_text(self.fresh)

    def finish(self) -> None:
        """Write windows, vectors and the sealed manifest; check the file, flush it, rename it to ``path``."""
        with connection.translated(self.path):
            source = self.writer.connection
            with source:
                self._copy("windows", "id")
                if self.dimensions:
                    source.execute(  # CROSS JOIN: in the order of the windows; a sort would lose the int8 mark
                        "INSERT INTO fresh.vectors (id, embedding) SELECT w.id, vec_int8(v.embedding) "
                        "FROM main.windows w CROSS JOIN main.vectors v ON v.id = w.id ORDER BY w.id"
                    )
                self._copy("anvil_meta", "key")
                source.execute("INSERT INTO fresh.anvil_meta VALUES ('checksum', ?)", (checksum(source, "fresh"),))
            source.execute("DETACH fresh")
        self._put_in_place()

    @contextlib.contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except AnvilError as error:
            raise BuildError(f"The new index did not pass its check and was not put in place: {error}") from error

    def _copy(self, table: str, order: str) -> None:
        self.writer.connection.execute(f"INSERT INTO fresh.{table} SELECT * FROM main.{table} ORDER BY {order}")

    def _put_in_place(self) -> None:
        with self._complaints():
            checking.check(self.fresh, text_too=False)
        put_in_place(self.fresh, self.path)


def put_in_place(fresh: Path, path: Path) -> None:
    """Flush a file that passed its check, and rename it to ``path``. Raises :class:`BuildError`."""
    try:
        with fresh.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except PermissionError as error:
        raise BuildError(
            f"{path} cannot be replaced ({error.strerror}). Close the program that holds it open, and build again."
        ) from error
    except OSError as error:
        raise BuildError(f"{path} cannot be written ({error.strerror}).") from error
    if hasattr(os, "O_DIRECTORY"):  # the rename itself reaches the disk
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _settle_ids(writer: Writer) -> None:
    """Give each document the id it would have in an index built from scratch, in the order of the paths.

    Only documents whose slots collide can differ, after one of them came or went.
    """
    taken: set[int] = set()
    moves: list[tuple[int, int]] = []
    rows = list(writer.connection.execute("SELECT id, library, file_path FROM documents ORDER BY 2, 3"))
    for id_, library, path in rows:
        wanted = identity.document_id(library, path, taken)
        taken.add(wanted)
        if wanted != id_:
            moves.append((id_, wanted))
    aside = 1 << identity.DOCUMENT_BITS  # beyond all slots: two documents may want each other's
    with writer.atomic():
        for id_, _ in moves:
            writer.renumber(id_, id_ + aside)
        for id_, wanted in moves:
            writer.renumber(id_ + aside, wanted)
