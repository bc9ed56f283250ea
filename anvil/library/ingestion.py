"""From a source to a document that can be stored: converted, cut into chunks and embedded, in a scratch index.

Of a folder, several files are ingested at a time, each one on its own, so that a bad file stops no other.

It works as a stream: one part of the document and one batch of vectors are in memory at a time. Each document has a
scratch index of its own, so that no other writer waits while it is read and embedded; then it is copied into the
library in one short transaction. A scratch index is in memory; when it grows, SQLite moves it to a temporary file, so a
document of any size takes little memory.
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
from anvil.library.document_chunker import DocumentChunker, DocumentPart, sliced
from anvil.library.document_formats import title_of, type_of
from anvil.library.metadata_filter import checked_metadata, different_keys, library_name, source_name
from anvil.library.stored_documents import LibraryReader, StagedDocument
from anvil.library.values import DocumentInfo, FileError, Ingested, LibraryDocument, Pruned
from anvil.settings.schema import ChunkingOptions
from anvil.values import Progress
from anvil.wording import counted

logger = logging.getLogger(__name__)
FATAL = (ArtifactError, BuildError)
"""Errors of the library's file or of the disk, such as a full one: the next document would meet them too."""


BATCH_WINDOWS = 64
"""Windows that are embedded at once. Cancelled work stops after the batch that is running."""


def path_of(text: str, parameter: str) -> Path:
    """The absolute path for a caller's ``parameter``. Raises :class:`ConfigError` for one that no file can have."""
    source_name(text, parameter)
    path = Path(os.path.abspath(os.path.expanduser(text)))
    source_name(str(path), parameter)  # it is longer now, and the working folder may have any name
    return path


def text_parts(data: bytes) -> Iterator[DocumentPart]:
    return (DocumentPart(text) for text in sliced(data.decode("utf-8")))


def described(
    source: str,
    library: str,
    metadata: Mapping[str, Any] | None,
    file_type: str,
    *,
    content_hash: str,
    size: int,
    last_modified: str | None = None,
) -> DocumentInfo:
    """What is known of a document by its file or its text, with a title from its source; ``last_modified``: None for
    now. Raises :class:`ConfigError` for names and metadata that are not valid."""
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


def described_text(
    data: bytes, source: str, library: str, metadata: Mapping[str, Any] | None, file_type: str
) -> DocumentInfo:
    """The same of a text. Raises as :func:`described` does."""
    digest = hashlib.sha256(data).hexdigest()
    return described(source, library, metadata, file_type, content_hash=digest, size=len(data))


def unchanged(reader: LibraryReader, info: DocumentInfo) -> Ingested | None:
    """The result for a document whose content is in the library; None for any other."""
    stored = reader.find(info.source, info.library)
    if stored is None or stored.content_hash != info.content_hash:
        return None
    return skipped(stored, info.metadata)


def skipped(stored: LibraryDocument, given: Mapping[str, Any]) -> Ingested:
    """The result for a document that is stored already. Its metadata stays, so a note names the keys that were
    ``given`` other values."""
    notes: tuple[str, ...] = ()
    if keys := different_keys(stored.metadata, given):
        notes = (
            f"The metadata {', '.join(keys)} was not stored, because the content is the same. Use update_document.",
        )
    return Ingested("skipped", stored.doc_id, stored.source, stored.library, stored.chunk_count, notes)


@contextmanager
def prepared(
    parts: Iterable[DocumentPart],
    info: DocumentInfo,
    *,
    provider: EmbeddingProvider,
    chunking: ChunkingOptions,
    settings: Mapping[str, str],
    is_halted: Callable[[], bool],
) -> Iterator[StagedDocument]:
    """A context with a document that can be stored: cut into chunks and embedded.

    ``info.title`` is used when the document has no title; ``settings``: the library's manifest. Raises
    :class:`DocumentRejected` soon after ``is_halted()`` is true.
    """

    def check(*_: object) -> None:
        if is_halted():
            raise DocumentRejected("It was cancelled, and nothing was stored. Ingest it again.")

    with connections.temporary(), closing(StagedDocument(settings, info)) as staged:
        chunker, notes = DocumentChunker(chunking), dict[str, None]()
        for number, part in enumerate(parts):
            check()
            chunks = chunker.cut(part.text)
            if number == 0:  # a title is in the first part, and each row of a chunk has it
                staged.info = replace(info, title=" ".join((chunker.title or "").split()) or info.title)
            staged.add(chunks, part.page)
            notes |= {part.note: None} if part.note else {}
        # The indexer reports its progress after each batch: that is where cancelled work stops.
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
    """Store documents, each with its action, by name; the results, and why the others failed. ``halt`` cancels those
    that are being read: an interrupt keeps every document that is finished, and nothing of the others. Raises
    :data:`FATAL`."""
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
            if not isinstance(error, Exception):  # an interrupt; a halted library takes nothing more, a server goes on
                halt()
            raise
    progress(stage, len(actions), len(actions))
    ordered = [outcomes[number] for number in range(len(actions))]
    return [each for each in ordered if isinstance(each, Ingested)], [
        each for each in ordered if isinstance(each, FileError)
    ]


def files_in(
    root: Path, recursive: bool, endings: frozenset[str]
) -> tuple[list[Path], Counter[str], tuple[FileError, ...]]:
    """The files below ``root`` with one of the ``endings``, sorted, without hidden ones and links that lead out of it;
    how many files have each other ending, which are not looked at: there may be a hundred thousand; and the folders
    that cannot be read."""
    inside, files, left_out, unread = root.resolve(), list[Path](), Counter[str](), list[OSError]()
    for folder, subfolders, names in os.walk(root, onerror=unread.append):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")] if recursive else []
        for name in names:
            if name.startswith((".", "~$")):  # "~$" begins a lock file of Microsoft Office
                continue
            ending = type_of(name)
            if ending not in endings:
                left_out[ending] += bool(ending)
            elif _is_inside(path := Path(folder, name), inside):
                files.append(path)
    errors = (
        FileError(
            plain_name(str(error.filename)), f"The folder cannot be read ({error.strerror}). Check its permissions."
        )
        for error in unread
    )
    return sorted(files), +left_out, tuple(errors)  # without endings that none has


def existing_folder(path: str) -> Path:
    """The absolute path of a folder. Raises :class:`ConfigError` for a path that is none, or cannot be read."""
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
    """The result for one document, or why it failed. Only errors of :data:`FATAL` reach the others."""
    try:
        return store()
    except FATAL:
        raise
    except AnvilError as error:
        message = str(error)
    except Exception as error:
        logger.debug("%s could not be taken in", name, exc_info=True)
        reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
        message = f"Anvil failed at it ({reason[:200]}). Please report it; ingest_file tries it alone."
    return FileError(plain_name(name), message)


def without_file(documents: Iterable[LibraryDocument]) -> Pruned:
    """Those of the documents whose source file is gone. Only absolute paths of this machine count: text sent by a
    client, uploads and URLs are left alone. A file in a folder that cannot be read is not gone."""
    checked = 0
    gone: list[LibraryDocument] = []
    unknown: list[FileError] = []
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
            unknown.append(FileError(document.source, f"It cannot be checked: {reason}."))
    return Pruned("found", checked, tuple(gone), tuple(unknown))
