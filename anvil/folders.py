"""A folder into a library: its files several at a time, each on its own, so that one bad file stops no other."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil import filters
from anvil.errors import AnvilError, ConfigError
from anvil.holdings import FileError, FolderReport, Ingested
from anvil.ingesting import file_type
from anvil.models import Progress

if TYPE_CHECKING:
    from anvil.library import Library

logger = logging.getLogger(__name__)
MOST_AT_ONCE = 32


def ingest(
    library: Library,
    folder: str,
    name: str,
    metadata: Mapping[str, Any] | None,
    recursive: bool,
    max_concurrency: int,
    progress: Progress,
) -> FolderReport:
    """Take in the files of ``folder``; see :meth:`Library.ingest_folder`.

    An interrupt leaves every document in that was finished, and nothing of the others.
    """
    if max_concurrency < 1:
        raise ConfigError("max_concurrency must be 1 or more.")
    filters.library_name(name)
    filters.checked_metadata(metadata)
    root = Path(folder).expanduser().absolute()
    if not root.is_dir():
        raise ConfigError(
            f"{root} is not a folder. To take in one file, use ingest_file." if root.exists()
            else f"There is no folder {root}. Paths are those of the machine that Anvil runs on."
        )  # fmt: skip
    files = sorted(documents(root, recursive, library.readable()))
    if files:
        library.settled()  # what is wrong with the library is said once, not of each file
    done: dict[Path, Ingested | str] = {}
    with ThreadPoolExecutor(min(max_concurrency, MOST_AT_ONCE), thread_name_prefix="anvil-ingest") as threads:
        waiting: dict[Future[Ingested | str], Path] = {
            threads.submit(_outcome, library, file, name, metadata): file for file in files
        }
        try:
            while waiting:
                progress("ingesting", len(done), len(files))
                finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                done |= {waiting.pop(each): each.result() for each in finished}
        except BaseException as error:
            threads.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):  # an interrupt; halting is for good, and a server goes on
                library.halt()
            raise
    progress("ingesting", len(files), len(files))
    results = [found for file in files if isinstance(found := done[file], Ingested)]
    errors = [FileError(str(file), found) for file in files if isinstance(found := done[file], str)]
    counts = {status: sum(each.status == status for each in results) for status in ("indexed", "replaced", "skipped")}
    return FolderReport(
        str(root), name, len(files), counts["indexed"], counts["replaced"], counts["skipped"], len(errors),
        tuple(results), tuple(errors),
    )  # fmt: skip


def documents(root: Path, recursive: bool, endings: frozenset[str]) -> Iterator[Path]:
    """The files below a folder with one of the ``endings``; hidden ones, and links that lead out, are left out."""
    inside = root.resolve()
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(each for each in subfolders if not each.startswith(".")) if recursive else []
        for name in names:
            path = Path(folder, name)
            if not name.startswith((".", "~$")) and file_type(name) in endings and _belongs(path, inside):
                yield path


def _belongs(path: Path, inside: Path) -> bool:
    try:
        return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(inside))
    except OSError:  # one may not look at it: it is to be named, with that reason
        return True


def _outcome(library: Library, file: Path, name: str, metadata: Mapping[str, Any] | None) -> Ingested | str:
    """What became of a file, or why nothing did; whatever it was, it is this file's matter alone."""
    try:
        return library.ingest_file(str(file), name, metadata)
    except AnvilError as error:
        return str(error)
    except Exception as error:
        logger.debug("%s could not be taken in", file, exc_info=True)
        what = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
        return f"Anvil failed at it ({what[:200]}). Please report it; ingest_file tries it alone."
