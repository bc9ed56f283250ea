"""The document library: many named libraries in one file, filled and searched by programs, people and agents.

Reading and writing have a connection each, so that a search never waits for a document that is being taken in;
converting, cutting and embedding happen outside any transaction, and a finished document goes in with one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anvil import filters, searching
from anvil.config import Config
from anvil.configfile import load_config
from anvil.configuring import configured
from anvil.errors import ConfigError, DocumentRejected, DocumentTooLarge, NotFound
from anvil.holdings import Deleted, FolderReport, Holdings, Ingested, Libraries, LibraryInfo, Passages, WholeDocument
from anvil.indexing import settings
from anvil.ingesting import Fingerprint, Preparation, file_name, file_type, fingerprint, title_of, unchanged
from anvil.models import Progress, silent
from anvil.pieces import Piece, sliced
from anvil.store.library_file import default_path, reading, translated, writing
from anvil.store.library_file import open_library as open_file
from anvil.store.library_reading import LibraryReader
from anvil.store.library_writing import LibraryWriter, document_name, now
from anvil.store.staging import Particulars

if TYPE_CHECKING:
    from anvil.converting import Converter
    from anvil.embedding import EmbeddingProvider
    from anvil.librarysearch import LibrarySearcher

DEFAULT = "default"
AT_ONCE = 4
"""Files of a folder that are taken in at once, when nobody says more or less."""
MOST_CONVERSIONS = 8
"""Processes that convert; two at least, so that one bad file does not hold up the next."""
LONGEST_LIST = 1000


def open_library(
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    allow_private_urls: bool = False,
    transport: str = "python",
    progress: Progress = silent,
) -> Library:
    """Open the document library, which is made when there is none.

    ``index``: its file (default: the configuration's, else one in the user's data folder); ``provider``: ``local``,
    ``openai`` or ``none``; ``config``: a file or a :class:`Config`. ``allow_private_urls``: whether
    :meth:`Library.ingest_url` may ask this machine and its network; ``transport``: how callers reach it, for
    :meth:`Library.server_info`. Raises :class:`AnvilError`.
    """
    from anvil import embedding

    flags = {
        "embedding.provider": provider,
        "library.index": os.fspath(index) if index is not None else None,
        "library.allow_private_urls": allow_private_urls or None,
    }
    if isinstance(config, Config):
        settled, base = configured(config, flags), Path.cwd()
    else:
        settled, base = load_config(config, flags)
    path = base / settled.library.index if settled.library.index else default_path()
    made = embedding.provider(settled.embedding.provider, settled.embedding)
    return Library(path, settled, made, transport=transport, progress=progress)


class Library:
    """One library file, usable from any thread; a context manager."""

    def __init__(
        self, path: Path, config: Config, provider: EmbeddingProvider, *, transport: str = "python",
        progress: Progress = silent,
    ) -> None:  # fmt: skip
        """``transport``: how it is reached, for :meth:`server_info`. ``progress`` is told of folders that are taken in.
        The file is opened when first needed."""
        self.progress = progress
        self.path, self.config, self.provider, self.transport = path, config, provider, transport
        self._wanted = settings(provider, config.chunking)
        self._opening = threading.Lock()
        self._reading, self._writing = threading.RLock(), threading.RLock()
        self._reader: LibraryReader | None = None
        self._writer: LibraryWriter | None = None
        self._searcher: LibrarySearcher | None = None
        self._converter: Converter | None = None
        self._halted = threading.Event()
        self._closed = False

    # --- collaborators -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _read(self) -> Iterator[LibraryReader]:
        """The reader, to oneself, all of whose answers are of one moment."""
        with self._reading, translated(self.path):
            if self._reader is None:
                self._reader = LibraryReader(open_file(self.path, self._manifest()))
            with reading(self._reader.connection):
                yield self._reader

    @contextlib.contextmanager
    def _write(self) -> Iterator[LibraryWriter]:
        """The writer, to oneself."""
        with self._writing, translated(self.path):
            if self._writer is None:
                self._writer = LibraryWriter(open_file(self.path, self._manifest()))
            yield self._writer

    def _manifest(self) -> dict[str, str]:
        if self._closed:
            raise ConfigError("This library is closed. Open another with anvil.open_library().")
        return self._wanted

    @property
    def converter(self) -> Converter:
        """What turns files into Markdown; its processes are started when first needed."""
        with self._opening:
            if self._converter is None:
                from anvil.converting import Converter

                self._converter = Converter(self.config.library, max(2, min(os.cpu_count() or 1, MOST_CONVERSIONS)))
            return self._converter

    # --- taking in ---------------------------------------------------------------------------------------

    def ingest_file(
        self, path: str, library: str = DEFAULT, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Take in a file of this machine; its source is its absolute path.

        Raises :class:`DocumentRejected`, or :class:`ConfigError` for arguments that make no sense.
        """
        file = Path(path).expanduser().absolute()
        return self.ingest_as(file, filters.source_name(str(file)), library, metadata)

    def ingest_as(
        self,
        file: Path,
        source: str,
        library: str = DEFAULT,
        metadata: Mapping[str, Any] | None = None,
        *,
        type_: str | None = None,
        last_modified: str | None = None,
    ) -> Ingested:
        """Take in a file under another name than its path's; ``type_`` and ``last_modified`` when it knows better."""
        from anvil.converting import unreadable
        from anvil.converting.formats import format_of

        library, kept = filters.library_name(library), filters.checked_metadata(metadata)
        kind, options = type_ or file_type(source), self.config.library
        try:
            if not file.is_file():
                file.stat()
                raise DocumentRejected(
                    f"{file} is a folder. Use ingest_folder, or 'anvil ingest {file}'." if file.is_dir()
                    else f"{file} is neither a file nor a folder. Name one."
                )  # fmt: skip
            format_of(kind, options)  # before anything is read
            size = file.stat().st_size
            if size > options.max_file_bytes:
                raise DocumentTooLarge(
                    f"{file} has {size:,} bytes; the limit is {options.max_file_bytes:,} (library.max_file_bytes)."
                )
            seen = fingerprint(file)
        except OSError as error:
            raise unreadable(file, error) from None

        def pieces() -> Iterator[Piece]:
            yield from self.converter.pieces(file, kind, file_name(source))
            unchanged(file, seen)

        return self._ingest(pieces(), seen, source, library, kind, last_modified or seen.last_modified, kept)

    def ingest_content(
        self, content: str, source: str, library: str = DEFAULT, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Take in Markdown or plain text that the caller has. Raises as :meth:`ingest_file` does."""
        from anvil.converting.formats import TEXT

        library, kept = filters.library_name(library), filters.checked_metadata(metadata)
        source = filters.source_name(source)
        data = content.encode("utf-8", "replace")
        if len(data) > self.config.library.max_file_bytes:
            raise DocumentTooLarge(
                f"The content has {len(data):,} bytes; the limit is {self.config.library.max_file_bytes:,} "
                "(library.max_file_bytes)."
            )
        ending = file_type(source)
        kind = ending if ending in TEXT.endings else "md"
        seen = Fingerprint(hashlib.sha256(data).hexdigest(), len(data), 0)
        pieces = (Piece(each) for each in sliced(data.decode("utf-8")))
        return self._ingest(pieces, seen, source, library, kind, now(), kept)

    def ingest_url(
        self, url: str, library: str = DEFAULT, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Take in what a URL leads to. Raises as :meth:`ingest_file` does, also for addresses that are not asked."""
        from anvil import webdocuments

        filters.library_name(library), filters.checked_metadata(metadata)
        source = filters.source_name(url)
        with webdocuments.downloaded(url, self.config.library) as found:
            return self.ingest_as(
                found.path, source, library, metadata, type_=found.type, last_modified=found.last_modified or now()
            )

    def ingest_folder(
        self,
        folder: str,
        library: str = DEFAULT,
        metadata: Mapping[str, Any] | None = None,
        recursive: bool = True,
        max_concurrency: int = AT_ONCE,
        progress: Progress | None = None,
    ) -> FolderReport:
        """Take in the files of a folder, several at a time; what is there already is skipped, a bad file is named.

        An interrupt leaves every finished document in, and closes this library for more.
        Raises :class:`ConfigError` for arguments that make no sense, such as a folder that is none, and what
        :meth:`settled` raises for a library that nothing can be taken into.
        """
        from anvil import folders

        told = progress or self.progress
        return folders.ingest(self, folder, library, metadata, recursive, max_concurrency, told)

    def _ingest(
        self, pieces: Iterable[Piece], seen: Fingerprint, source: str, library: str, kind: str, modified: str,
        metadata: Mapping[str, Any],
    ) -> Ingested:  # fmt: skip
        doc_id = document_name(source, library)
        with self._read() as reader:
            stands = reader.standing(source, library)
            if stands is not None and stands[2] == seen.content_hash:
                return Ingested("skipped", doc_id, source, library, stands[3])
            former = reader.former(stands[0]) if stands else None
        title = title_of(source) or source
        particulars = Particulars(source, library, title, kind, seen.content_hash, seen.size, modified, metadata)
        preparation = Preparation(self.provider, self.config.chunking, self.settled())
        ready = preparation.prepare(pieces, particulars, former, self._halted.is_set)
        with ready.stage as stage, self._write() as writer:
            kept = writer.keep(stage, ready.particulars, ready.head)
        if kept is None:
            with self._read() as reader:
                stands = reader.standing(source, library)
            return Ingested("skipped", doc_id, source, library, stands[3] if stands else 0)
        notes = ready.notes if kept.chunk_count else (*ready.notes, "It is empty: there is nothing to find in it.")
        return Ingested(kept.status, kept.doc_id, source, library, kept.chunk_count, notes)

    def settled(self) -> dict[str, str]:
        """The manifest for new documents; an empty library takes the model at hand.

        Raises :class:`ConfigError` when there are vectors of another model, :class:`ArtifactRejected` or another
        :class:`AnvilError` when the file cannot be used.
        """
        own = {key: value for key, value in self._wanted.items() if key.startswith("embedding_")}
        with self._write() as writer:
            meta = writer.meta()
            if not own.items() <= meta.items():
                meta = writer.adopt_when_empty(self._wanted)
        if own.items() <= meta.items():
            return {key: meta[key] for key in self._wanted}
        raise ConfigError(
            f"The vectors of {self.path} were made with {meta['embedding_model']}, at hand is {self.provider.model}. "
            "Set embedding.* to that model, or make all vectors anew with 'anvil ingest --reembed'."
        )

    def reembed(self, progress: Progress = silent) -> int:
        """Make all vectors anew with the model at hand; the text stays. How many passages there are.

        Other writers wait meanwhile; a search finds by the vectors there were until all are there.
        """
        from anvil.indexing import Indexer

        with self._write() as writer, writing(writer.connection):
            writer.adopt(self._wanted)
            Indexer(writer, self.provider, self.config.chunking, progress=progress).embed()
            writer.touch_all()
            return writer.counts()["chunks"]

    def readable(self) -> frozenset[str]:
        """The endings of files that a folder is searched for."""
        from anvil.converting import formats

        return formats.looked_for(self.config.library)

    # --- questions ---------------------------------------------------------------------------------------

    def search(
        self, query: str, top_k: int = 5, library: str | None = None, filter: Mapping[str, Any] | None = None
    ) -> Passages:
        """The passages that answer ``query`` best, of one library or all (None), in descending relevance.

        ``top_k`` is clamped to 1..100. ``filter``: field = value, all of which must hold; they narrow before anything
        is ranked. Raises :class:`ConfigError` for a blank query or an unknown field.
        """
        wanted = filters.document_filter(filter, library)
        if not query.strip():
            raise ConfigError("query parameter is required")
        question = searching.embedded(query, self.provider) if self.provider.dimensions else None
        with self._read() as reader:
            if self._searcher is None:
                from anvil.librarysearch import LibrarySearcher

                self._searcher = LibrarySearcher(reader, self.provider)
            self._searcher.refresh()
            return self._searcher.find(query, top_k, wanted, question)

    def list_documents(self, library: str | None = None, limit: int = 20, offset: int = 0) -> Holdings:
        """Documents by library and source; ``limit`` is clamped to 1..1000."""
        limit, offset = min(max(limit, 1), LONGEST_LIST), max(offset, 0)
        with self._read() as reader:
            found = reader.holdings(library, limit, offset)
            return Holdings(tuple(found), len(found), reader.how_many(library))

    def list_libraries(self) -> Libraries:
        """The libraries, by name."""
        with self._read() as reader:
            return Libraries(tuple(reader.libraries()))

    def get_document(self, doc_id: str) -> WholeDocument:
        """A document with its whole Markdown. Raises :class:`NotFound`."""
        with self._read() as reader:
            found = reader.whole(doc_id)
        if found is None:
            raise _not_there(doc_id)
        return found

    def delete_document(self, doc_id: str) -> Deleted:
        """Take a document out. Raises :class:`NotFound`."""
        with self._write() as writer:
            count = writer.delete(doc_id)
        if count is None:
            raise _not_there(doc_id)
        return Deleted("deleted", doc_id, count)

    def server_info(self, check_path: str | None = None) -> LibraryInfo:
        """Where this runs and what it can read; ``check_path``: a path that somebody misses."""
        from anvil import surroundings

        return surroundings.library_info(self, check_path)

    # --- life --------------------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open the file and load the model, behind; the first question would else wait for both."""

        def warm() -> None:
            with contextlib.suppress(Exception):  # whoever asks will be told
                self.search("warm", 1)

        threading.Thread(target=warm, name="anvil-library-warm", daemon=True).start()

    def halt(self) -> None:
        """Call off what is being taken in: it fails, soon, and nothing of it is kept."""
        self._halted.set()
        with self._opening:
            if self._converter is not None:
                self._converter.close()

    def close(self) -> None:
        """Call off what is under way, end the processes, close the file."""
        self._closed = True
        self.halt()
        for lock, each in ((self._reading, self._reader), (self._writing, self._writer)):
            with lock:
                if each is not None:
                    each.close()
        self._reader = self._writer = self._searcher = None
        self.provider.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _not_there(doc_id: str) -> NotFound:
    return NotFound(f"No document has the id {doc_id[:60]!r}. list_documents and search name the ids there are.")
