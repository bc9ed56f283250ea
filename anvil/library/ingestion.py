"""Ingestion: a source becomes chunks and vectors in a scratch index, which can be stored; several files at a time.

A document is a stream: one part of it and one batch of vectors are in memory at a time. Its scratch index begins in
memory, and SQLite moves it to a temporary file when it grows. Other writers wait only for the short transaction that
copies it into the library.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from anvil.build.row_updates import Indexer
from anvil.embedding.provider import EmbeddingProvider, LocalExecutor
from anvil.errors import AnvilError, ArtifactError, BuildError, ConfigError, DocumentRejected
from anvil.formats.characters import plain_name
from anvil.formats.data_formats import timestamp
from anvil.index_file import connection as connections
from anvil.library.document_chunker import DocumentChunker, DocumentPart, slices
from anvil.library.document_formats import title_of, type_of
from anvil.library.metadata_filter import checked_metadata, different_keys, library_name, source_name
from anvil.library.stored_documents import LibraryReader, StagedDocument
from anvil.library.values import DocumentInfo, FileError, Ingested, LibraryDocument, Pruned
from anvil.settings.schema import ChunkingOptions
from anvil.values import Progress
from anvil.wording import counted

logger = logging.getLogger(__name__)
FATAL = (ArtifactError, BuildError)
"""Errors of the library's file or of the disk, such as a full disk: the next document would meet them too."""
BATCH_WINDOWS = 64
"""Windows that are embedded at once. Cancelled work stops after the batch that is running."""


def path_of(text: str, parameter: str) -> Path:
    """The absolute path that a caller gave as ``parameter``. Raises :class:`ConfigError` if no file can have it."""
    source_name(text, parameter)
    path = Path(os.path.abspath(os.path.expanduser(text)))
    source_name(str(path), parameter)  # again: it is longer now, and the working folder may have any name
    return path


def text_parts(data: bytes) -> Iterator[DocumentPart]:
    return (DocumentPart(text) for text in slices(data.decode("utf-8")))


def describe_document(
    source: str,
    library: str,
    metadata: Mapping[str, Any] | None,
    file_type: str,
    *,
    content_hash: str,
    size: int,
    last_modified: str | None = None,
) -> DocumentInfo:
    """The description of a document before it is converted. Its title is made from its source. ``last_modified``: None
    means now. Raises :class:`ConfigError` if a name or the metadata is not valid."""
    source = source_name(source)
    return DocumentInfo(
        source=source,
        library=library_name(library),
        title=title_of(source) or source,
        file_type=file_type,
        content_hash=content_hash,
        size=size,
        last_modified=last_modified or timestamp(time.time()),
        metadata=checked_metadata(metadata),
    )


def describe_text(
    data: bytes, source: str, library: str, metadata: Mapping[str, Any] | None, file_type: str
) -> DocumentInfo:
    """The description of a document given as text. Raises as :func:`describe_document` does."""
    digest = hashlib.sha256(data).hexdigest()
    return describe_document(source, library, metadata, file_type, content_hash=digest, size=len(data))


def result_if_unchanged(reader: LibraryReader, info: DocumentInfo) -> Ingested | None:
    """The result if the library has the document with this content already; else None."""
    stored = reader.find(info.source, info.library)
    if stored is None or stored.content_hash != info.content_hash:
        return None
    return skipped_result(stored, info.metadata)


def skipped_result(stored: LibraryDocument, new_metadata: Mapping[str, Any]) -> Ingested:
    """The result for a document that is stored already. Its metadata stays, so a note names the keys that have another
    value in ``new_metadata``."""
    notes: tuple[str, ...] = ()
    if keys := different_keys(stored.metadata, new_metadata):
        notes = (
            f"The metadata {', '.join(keys)} was not stored, because the content is the same. Use update_document.",
        )
    return Ingested("skipped", stored.doc_id, stored.source, stored.library, stored.chunk_count, notes)


@contextmanager
def stage_document(
    parts: Iterable[DocumentPart],
    info: DocumentInfo,
    *,
    provider: EmbeddingProvider,
    chunking: ChunkingOptions,
    settings: Mapping[str, str],
    is_halted: Callable[[], bool],
) -> Iterator[StagedDocument]:
    """Cut a document into chunks and embed them. The context has the document, ready to be stored.

    ``info.title`` is the title of a document that has none. ``settings``: the library's manifest. Raises
    :class:`DocumentRejected` soon after ``is_halted()`` becomes true.
    """

    def check(*_: object) -> None:
        if is_halted():
            raise DocumentRejected("It was cancelled, and nothing was stored. Ingest it again.")

    with connections.translate_scratch_errors(), closing(StagedDocument(settings, info)) as staged:
        chunker, notes = DocumentChunker(chunking), dict[str, None]()
        for number, part in enumerate(parts):
            check()
            chunks = chunker.cut(part.text)
            if number == 0:  # the title is in the first part, and each row of a chunk has it
                staged.info = replace(info, title=" ".join((chunker.title or "").split()) or info.title)
            staged.add(chunks, part.page)
            notes |= {part.note: None} if part.note else {}
        # The indexer reports its progress after each batch. There cancelled work stops.
        executor = LocalExecutor(provider, BATCH_WINDOWS)
        indexer = Indexer(staged.rows, provider, chunking, progress=check, executor=executor)
        indexer.embed()
        staged.head = chunker.head or ""
        if failed := indexer.tally.failed:
            passages = counted(len(failed), "passage", "could")
            notes[f"{passages} not be embedded, found by keyword only: {failed[0].reason}"] = None
        staged.notes = tuple(notes)
        yield staged


# --- folders --------------------------------------------------------------------------------------------------------

MAX_CONCURRENCY = 32
PROGRESS_INTERVAL_S = 0.5


def ingest_all(
    actions: Sequence[tuple[str, Callable[[], Ingested]]],
    stage: str,
    *,
    halt: Callable[[], None],
    max_concurrency: int,
    progress: Progress,
) -> tuple[list[Ingested], list[FileError]]:
    """Store documents, several at a time. Returns the results, and the failures, both in the order of ``actions``.

    ``actions``: (name, function that stores the document). ``halt`` is called after an interrupt such as Ctrl-C and
    cancels the documents that are being read; finished ones stay stored. Raises :data:`FATAL`.
    """
    outcomes: dict[int, Ingested | FileError] = {}
    threads_count = min(max_concurrency, MAX_CONCURRENCY)
    with ThreadPoolExecutor(threads_count, thread_name_prefix="anvil-ingest") as threads:
        running = {threads.submit(_outcome, *action): number for number, action in enumerate(actions)}
        try:
            while running:  # with a timeout, so that progress is reported also while one large file is read
                progress(stage, len(outcomes), len(actions))
                finished, _ = wait(running, timeout=PROGRESS_INTERVAL_S, return_when=FIRST_COMPLETED)
                outcomes |= {running.pop(future): future.result() for future in finished}
        except BaseException as error:
            threads.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):  # an interrupt: a halted library takes no more documents
                halt()
            raise
    progress(stage, len(actions), len(actions))
    ordered = [outcomes[number] for number in range(len(actions))]
    results = [outcome for outcome in ordered if isinstance(outcome, Ingested)]
    return results, [outcome for outcome in ordered if isinstance(outcome, FileError)]


def files_in(
    root: Path, recursive: bool, endings: frozenset[str]
) -> tuple[list[Path], Counter[str], tuple[FileError, ...]]:
    """The files below ``root`` that can be ingested, sorted; the number of files of each other ending; and the folders
    that cannot be read.

    ``endings``: those of the files that can be ingested. Hidden files, and links that lead out of ``root``, are left
    out. Files of other endings are only counted, because there may be a hundred thousand.
    """
    resolved_root, files, left_out, failures = root.resolve(), list[Path](), Counter[str](), list[OSError]()
    for folder, subfolders, names in os.walk(root, onerror=failures.append):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")] if recursive else []
        for name in names:
            if name.startswith((".", "~$")):  # "~$" begins a lock file of Microsoft Office
                continue
            ending = type_of(name)
            if ending not in endings:
                left_out[ending] += bool(ending)
            elif _is_inside(path := Path(folder, name), resolved_root):
                files.append(path)
    errors = (
        FileError(
            plain_name(str(error.filename)), f"The folder cannot be read ({error.strerror}). Check its permissions."
        )
        for error in failures
    )
    return sorted(files), +left_out, tuple(errors)  # "+" drops endings with the count 0


def existing_folder(path: str) -> Path:
    """The absolute path of a folder. Raises :class:`ConfigError` if there is no folder, or it cannot be read."""
    root = path_of(path, "folder")
    try:
        os.scandir(root).close()
    except FileNotFoundError:
        raise ConfigError(f"There is no folder {root}. Paths are those of the machine that Anvil runs on.") from None
    except NotADirectoryError:
        raise ConfigError(f"{root} is not a folder. To take in one file, use ingest_file.") from None
    except OSError as error:
        raise ConfigError(f"The folder {root} cannot be read: {error.strerror or error}. Name another.") from None
    return root


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.is_file() and (not path.is_symlink() or path.resolve().is_relative_to(folder))
    except OSError:  # no permission: ingest_file reports it with the reason
        return True


def _outcome(name: str, store: Callable[[], Ingested]) -> Ingested | FileError:
    """The result for one document, or its failure. Only errors of :data:`FATAL` are raised, and end all others."""
    try:
        return store()
    except FATAL:
        raise
    except AnvilError as error:
        message = str(error)
    except Exception as error:
        logger.debug("%s could not be taken in", name, exc_info=True)
        reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
        message = f"Anvil failed with it ({reason[:200]}). Please report it; ingest_file tries it alone."
    return FileError(plain_name(name), message)


def documents_without_file(documents: Iterable[LibraryDocument]) -> Pruned:
    """The documents whose source file does not exist any more.

    Only sources that are absolute paths are checked, and no text sent by a client, upload or URL. A document whose
    folder cannot be read is kept.
    """
    checked = 0
    gone: list[LibraryDocument] = []
    unreadable: list[FileError] = []
    for document in documents:
        if "://" in document.source or not os.path.isabs(document.source):
            continue
        checked += 1
        try:
            Path(document.source).stat()
        except (FileNotFoundError, NotADirectoryError):
            gone.append(document)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            unreadable.append(FileError(document.source, f"It cannot be checked: {reason}."))
    return Pruned("found", checked, tuple(gone), tuple(unreadable))
