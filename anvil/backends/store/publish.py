"""From a working copy to an artifact: one canonical file, checked, flushed, renamed into place.

Whatever the order in which a working copy was changed, the rows are written table by table in the order of
their ids, and the keyword and vector tables are made anew: the same rows give the same bytes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path

from anvil.backends import safe_write
from anvil.backends.store import connection, overwrite_guard, row_ids, verify
from anvil.backends.store.digest import checksum
from anvil.backends.store.lock import NEW_SUFFIX, exclusive
from anvil.backends.store.writer import Writer
from anvil.errors import AnvilError, BuildError


def keep_out_of_git(folder: Path) -> None:
    """Make the default folder of an index private until 'anvil init' says otherwise: nothing of ours is committed by
    chance. One that exists is left as it is; a link that leads elsewhere is refused with :class:`BuildError`."""
    safe_write.ensure_inside_parent(folder)
    if not folder.exists():
        try:
            folder.mkdir(parents=True)
            safe_write.write_file(folder / ".gitignore", "*\n")
        except OSError as error:
            raise BuildError(f"{folder} cannot be made ({error.strerror}). Choose another --index.") from error


def place(file: Path, path: Path) -> None:
    """Put a copy of the index at ``file`` to ``path``, checked, flushed and renamed, as a build does it.

    Raises :class:`ArtifactError` for what fails its check, :class:`BuildError` when it cannot be written.
    """
    with exclusive(path):
        copy(file, path)


def copy(file: Path, path: Path) -> None:
    """As :func:`place`, for whoever keeps other builds out already."""
    overwrite_guard.ensure_overwritable(path)
    fresh = path.with_name(path.name + NEW_SUFFIX)
    try:
        safe_write.clear(fresh)
        shutil.copyfile(file, fresh)
        verify.check(fresh, thorough=True)
        with fresh.open("rb+") as copied:
            os.fsync(copied.fileno())
    except OSError as error:
        raise BuildError(f"{path} cannot be written ({error.strerror}).") from error
    replace(fresh, path)


def replace(fresh: Path, path: Path) -> None:
    """Rename ``fresh`` to ``path``. Raises :class:`BuildError`."""
    try:
        safe_write.rename(fresh, path)
    except PermissionError as error:
        raise BuildError(
            f"{path} cannot be replaced ({error.strerror}). Close the program that has it open, and try again."
        ) from error
    except OSError as error:
        raise BuildError(f"{path} cannot be written ({error.strerror}).") from error


class Publication:
    """A working copy on its way to ``path``, in two strokes: its text first, which needs no vectors.

    While the text is written a model can load, and the vectors be made after it.
    """

    def __init__(self, writer: Writer, path: Path) -> None:
        self.writer = writer
        self.path = path
        self.fresh = path.with_name(path.name + NEW_SUFFIX)
        self.dimensions = int(writer.reader.meta()["embedding_dimensions"])

    def write_text(self) -> None:
        """Write documents, sections, chunks and keyword index. Documents may get other ids in the working copy.

        Raises :class:`BuildError`, as :meth:`finish` does; then the file at ``path`` is what it was.
        """
        with connection.translated(self.path):
            safe_write.clear(self.fresh)
            size = connection.page_size(self.writer.reader.characters())
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
                connection.make_keyword_index(source, "fresh")
        with self._complaints():
            verify.check_text(self.fresh)

    def finish(self) -> None:
        """Write windows, vectors and the sealed manifest; check the file, flush it, rename it to ``path``."""
        with connection.translated(self.path):
            source = self.writer.connection
            with source:
                self._copy("windows", "id")
                if self.dimensions:
                    self._copy_vectors()
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

    def _copy_vectors(self) -> None:
        """Write the vectors in the order of their windows, in groups, as sqlite-vec itself would.

        Into its own storage, whose definitions are checked with the rest of the schema: it rewrites three blobs for
        each vector, which takes four times as long.
        """
        execute = self.writer.connection.execute
        size = connection.VECTOR_GROUP
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
            execute(
                "INSERT INTO fresh.vectors_vector_chunks00 VALUES (?, ?)",
                (group, b"".join(vector for _, vector in rows).ljust(size * self.dimensions, b"\0")),
            )

    def _put_in_place(self) -> None:
        path = self.path
        overwrite_guard.ensure_overwritable(path)  # again: it took its time
        try:
            with self._complaints():
                verify.check(self.fresh, with_text=False)
            with self.fresh.open("rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise BuildError(f"{path} cannot be written ({error.strerror}).") from error
        replace(self.fresh, path)
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
        wanted = row_ids.document_id(library, path, taken)
        taken.add(wanted)
        if wanted != id_:
            moves.append((id_, wanted))
    aside = 1 << row_ids.DOCUMENT_BITS  # beyond all slots: two documents may want each other's
    with writer.atomic():
        for id_, _ in moves:
            writer.renumber(id_, id_ + aside)
        for id_, wanted in moves:
            writer.renumber(id_ + aside, wanted)
