"""A folder into a library: several files at a time, each one on its own, so that a bad file stops no other."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from anvil.errors import AnvilError, ConfigError, NotFound
from anvil.library.ingestion import path_of, type_of
from anvil.library.values import Deleted, FileError, FolderReport, Ingested, LibraryDocumentList, Pruned, Vanished
from anvil.values import Progress

logger = logging.getLogger(__name__)
MAX_CONCURRENCY = 32
MAX_PATH_CHARACTERS = 200
"""Characters of a path that an error shows."""
PROGRESS_INTERVAL_S = 0.5


def ingest(
    root: Path,
    files: Sequence[Path],
    library: str,
    *,
    store: Callable[[str], Ingested],
    halt: Callable[[], None],
    max_concurrency: int,
    progress: Progress,
) -> FolderReport:
    """Store the ``files`` of the folder ``root``; see :meth:`Library.ingest_folder`.

    ``store`` stores one file. ``halt`` cancels the files that are being read: an interrupt keeps every document that is
    finished, and nothing of the others.
    """
    outcomes: dict[Path, Ingested | str] = {}
    threads_count = min(max_concurrency, MAX_CONCURRENCY)
    with ThreadPoolExecutor(threads_count, thread_name_prefix="anvil-ingest") as threads:
        running: dict[Future[Ingested | str], Path] = {threads.submit(_outcome, store, file): file for file in files}
        try:
            while running:
                progress("ingesting", len(outcomes), len(files))
                finished, _ = wait(running, timeout=PROGRESS_INTERVAL_S, return_when=FIRST_COMPLETED)
                outcomes |= {running.pop(future): future.result() for future in finished}
        except BaseException as error:
            threads.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):  # an interrupt; a halted library takes nothing more, a server goes on
                halt()
            raise
    progress("ingesting", len(files), len(files))
    results = [outcome for file in files if isinstance(outcome := outcomes[file], Ingested)]
    errors = [FileError(str(file), outcome) for file in files if isinstance(outcome := outcomes[file], str)]
    statuses = [result.status for result in results]
    return FolderReport(
        folder=str(root),
        library=library,
        total_files=len(files),
        indexed=statuses.count("indexed"),
        replaced=statuses.count("replaced"),
        skipped=statuses.count("skipped"),
        failed=len(errors),
        results=tuple(results),
        errors=tuple(errors),
    )


def files_in(root: Path, recursive: bool, endings: frozenset[str]) -> Iterator[Path]:
    """The files below ``root`` with one of the ``endings``, without hidden files and links that lead out of it."""
    inside = root.resolve()
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".")) if recursive else []
        for name in names:
            path = Path(folder, name)
            if not name.startswith((".", "~$")) and type_of(name) in endings and _is_inside(path, inside):
                yield path


def existing_folder(given: str) -> Path:
    root = path_of(given, "folder")
    try:
        mode = root.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"There is no folder {root}. Paths are those of the machine that Anvil runs on.") from None
    except OSError as error:
        shown = root if len(str(root)) <= MAX_PATH_CHARACTERS else f"{str(root)[:MAX_PATH_CHARACTERS]}..."
        raise ConfigError(f"The folder {shown} cannot be read: {error.strerror or error}. Name another.") from None
    if not stat.S_ISDIR(mode):
        raise ConfigError(f"{root} is not a folder. To take in one file, use ingest_file.")
    return root


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(folder))
    except OSError:  # no permission: ingest_file reports it with the reason
        return True


def _outcome(store: Callable[[str], Ingested], file: Path) -> Ingested | str:
    """The result for one file, or why it failed. No error of one file reaches the others."""
    try:
        return store(str(file))
    except AnvilError as error:
        return str(error)
    except Exception as error:
        logger.debug("%s could not be taken in", file, exc_info=True)
        reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
        return f"Anvil failed at it ({reason[:200]}). Please report it; ingest_file tries it alone."


PAGE_SIZE = 1000
"""Documents of one list."""


class DocumentStore(Protocol):
    """The part of a library that pruning uses."""

    def list_documents(self, library: str | None, limit: int, offset: int) -> LibraryDocumentList:
        """Documents by library and source."""

    def delete_document(self, doc_id: str) -> Deleted:
        """Delete a document. Raises :class:`NotFound`."""


def prune(store: DocumentStore, library: str | None, *, delete: bool) -> Pruned:
    """Look for the source file of each document, in one library or in all; with ``delete``, delete the documents whose
    file is gone.

    Only absolute paths of this machine count: text sent by a client, uploads and URLs are left alone. A file in a
    folder that cannot be read is not gone.
    """
    checked, offset = 0, 0
    gone: list[Vanished] = []
    unknown: list[FileError] = []
    while documents := store.list_documents(library, PAGE_SIZE, offset).documents:
        offset += len(documents)
        for document in documents:
            if "://" in document.source or not os.path.isabs(document.source):
                continue
            checked += 1
            exists, error = _exists(document.source)
            if error is not None:
                unknown.append(FileError(document.source, error))
            elif not exists:
                gone.append(Vanished(document.doc_id, document.source, document.library, document.chunk_count))
    if delete:
        gone = [document for document in gone if _delete(store, document)]
    return Pruned("deleted" if delete else "found", checked, tuple(gone), tuple(unknown))


def _exists(source: str) -> tuple[bool, str | None]:
    """Whether a file exists, and why that is not known."""
    try:
        Path(source).stat()
        return True, None
    except (FileNotFoundError, NotADirectoryError):
        return False, None
    except (OSError, ValueError) as error:
        return True, f"It cannot be checked: {getattr(error, 'strerror', None) or error}."


def _delete(store: DocumentStore, document: Vanished) -> bool:
    if _exists(document.source)[0]:  # it came back
        return False
    try:
        store.delete_document(document.doc_id)
    except NotFound:  # another process deleted it first
        return False
    return True
