"""The document library: ingesting, searching, changing and deleting documents of named libraries in one file.

Reading and writing have a connection each, so a search never waits for a document that is being ingested. Converting,
cutting and embedding happen outside of transactions; a finished document is stored in one transaction.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.build.row_updates import Indexer
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ConfigError, DocumentRejected, DocumentTooLarge, NotFound, ProviderError
from anvil.formats.data_formats import timestamp
from anvil.index_file.manifests import settings
from anvil.index_file.table_rows import DEFAULT_LIBRARY
from anvil.library import ingestion, lancedb_import, metadata_filter, values
from anvil.library.document_chunker import DocumentPart
from anvil.library.document_formats import BY_ENDING, FileKind, advice, format_of, looked_for, type_of
from anvil.library.library_file import default_path, reading, reporting_damage, writing
from anvil.library.library_file import open_library as open_file
from anvil.library.settings import LibraryOptions
from anvil.library.stored_documents import LibraryReader, LibraryWriter, not_found
from anvil.library.values import DocumentInfo, FolderReport, Ingested, LibraryDocument, Passages, WholeDocument
from anvil.requests import checked, checks_arguments, still_wanted
from anvil.search import query_preparation
from anvil.search.pages import text_part
from anvil.settings.configuration import configured, load_config
from anvil.settings.schema import Config
from anvil.system import safe_files
from anvil.values import Progress, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.library.conversion_process import Converter
    from anvil.library.library_search import LibrarySearcher

DEFAULT_CONCURRENCY = 4
"""Files of a folder that are ingested at once if the caller gives no number."""
MAX_CONVERTER_PROCESSES = 8
MIN_CONVERTER_PROCESSES = 2
"""Two, so that a bad file does not delay the next one."""
MAX_LISTED_DOCUMENTS = 1000


@checked
def open_library(
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    allow_private_urls: bool = False,
    transport: str = "python",
    progress: Progress = silent,
) -> Library:
    """Open the document library. If there is none, a new one is created.

    ``index``: its file; by default that of the configuration, else one in the user's data folder. ``provider``: a value
    of ``embedding.provider``. ``config``: a file or a :class:`Config`. ``allow_private_urls``: whether
    :meth:`Library.ingest_url` may send requests to this machine and its network. ``transport``: how callers reach the
    library, for :meth:`Library.server_info`. Raises :class:`AnvilError`.
    """
    from anvil.embedding.provider import create_cached_provider

    flags = {
        "embedding.provider": provider,
        "library.index": os.fspath(index) if index is not None else None,
        "library.allow_private_urls": allow_private_urls or None,
    }
    if isinstance(config, Config):
        resolved, base = configured(config, flags), Path.cwd()
    else:
        resolved, base = load_config(config, flags)
    file = resolved.table(LibraryOptions).index
    path = base / file if file else default_path()
    embedding = create_cached_provider(resolved.embedding.provider, resolved.embedding)
    return Library(path, resolved, embedding, transport=transport, progress=progress)


@checks_arguments
class Library(contextlib.AbstractContextManager["Library"]):
    """One library file, usable from any thread; a context manager."""

    def __init__(
        self,
        path: Path,
        config: Config,
        provider: EmbeddingProvider,
        *,
        transport: str = "python",
        progress: Progress = silent,
    ) -> None:
        """The file is opened at its first use. ``transport``: how callers reach the library, for :meth:`server_info`.
        ``progress`` is called by :meth:`ingest_folder` and :meth:`import_lancedb`."""
        self.path, self.config, self.provider = path, config, provider
        self.transport, self.progress = transport, progress
        self._options = config.table(LibraryOptions)
        self._settings = settings(provider, config.chunking)
        self._converter_lock = threading.Lock()
        self._read_lock, self._write_lock = threading.RLock(), threading.RLock()
        self._reader: LibraryReader | None = None
        self._writer: LibraryWriter | None = None
        self._searcher: LibrarySearcher | None = None
        self._converter: Converter | None = None
        self._halted = threading.Event()
        self._closed = False

    # --- collaborators -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _read(self) -> Iterator[LibraryReader]:
        """The reader, for this thread only, in one read transaction."""
        with self._read_lock:
            still_wanted()
            if self._reader is None:
                self._reader = LibraryReader(open_file(self.path, self._manifest()))
            with reporting_damage(self.path), reading(self._reader.connection):
                yield self._reader

    @contextlib.contextmanager
    def _write(self) -> Iterator[LibraryWriter]:
        """The writer, for this thread only."""
        with self._write_lock:
            if self._writer is None:
                self._writer = LibraryWriter(open_file(self.path, self._manifest()))
            with reporting_damage(self.path):
                yield self._writer

    def _manifest(self) -> dict[str, str]:
        if self._closed:
            raise ConfigError("This library is closed. Open another with anvil.open_library().")
        return self._settings

    @property
    def converter(self) -> Converter:
        """Converts files to Markdown. Its processes are started when a file needs one."""
        with self._converter_lock:
            if self._converter is None:
                from anvil.library.conversion_process import Converter

                processes = max(MIN_CONVERTER_PROCESSES, min(os.cpu_count() or 1, MAX_CONVERTER_PROCESSES))
                self._converter = Converter(self._options, processes)
            return self._converter

    # --- ingesting ---------------------------------------------------------------------------------------

    def ingest_file(
        self, path: str, library: str = DEFAULT_LIBRARY, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Ingest a file of this machine. Its source is its absolute path.

        Raises :class:`DocumentRejected` if it cannot be read, and :class:`ConfigError` if an argument is not valid.
        """
        file = ingestion.path_of(path, "path")
        return self.ingest_as(file, str(file), library, metadata)

    def ingest_as(
        self,
        file: Path,
        source: str,
        library: str = DEFAULT_LIBRARY,
        metadata: Mapping[str, Any] | None = None,
        *,
        kind: FileKind | None = None,
        last_modified: str | None = None,
    ) -> Ingested:
        """Ingest a file under another source than its path. ``kind``: by default that of the source's name.
        ``last_modified``: by default the time stamp of the file. Raises as :meth:`ingest_file` does."""
        from anvil.library.conversion_process import unreadable

        kind, options = kind or FileKind.of(source), self._options
        try:
            if not file.is_file():
                file.stat()  # a missing file, or one that may not be looked at, raises the reason
                raise DocumentRejected(
                    f"{file} is a folder. Use ingest_folder, or 'anvil ingest {file}'."
                    if file.is_dir()
                    else f"{file} is neither a file nor a folder. Name one."
                )
            format_of(kind.type, options)  # before the file is read
            status = file.stat()
            self._ensure_size(status.st_size, f"{file} has")
            digest = safe_files.sha256(file)
        except OSError as error:
            raise unreadable(file, error) from None

        def parts() -> Iterator[DocumentPart]:
            yield from self.converter.parts(file, kind)
            is_same = False
            with contextlib.suppress(OSError):
                is_same = safe_files.sha256(file) == digest
            if not is_same:  # the new text must not be stored with the hash of the old one
                raise DocumentRejected(f"{file} changed while it was read. Ingest it again.")

        last_modified = last_modified or timestamp(status.st_mtime_ns // 10**9)
        size = status.st_size
        info = ingestion.describe_document(
            source, library, metadata, kind.type, content_hash=digest, size=size, last_modified=last_modified
        )
        return self._ingest(parts(), info)

    def ingest_content(
        self, content: str, source: str, library: str = DEFAULT_LIBRARY, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Ingest Markdown or plain text that the caller sends. Raises as :meth:`ingest_file` does."""
        if not content.strip():
            raise ConfigError("content is empty. Send the document's text, or delete it with delete_document.")
        data = content.encode("utf-8", "replace")
        self._ensure_size(len(data), "The content has")
        format_ = BY_ENDING.get(type_of(source))
        is_text = format_ is not None and format_.is_text
        info = ingestion.describe_text(data, source, library, metadata, type_of(source) if is_text else "md")
        return self._ingest(ingestion.text_parts(data), info)

    def ingest_url(
        self, url: str, library: str = DEFAULT_LIBRARY, metadata: Mapping[str, Any] | None = None
    ) -> Ingested:
        """Ingest the document at a URL. Raises as :meth:`ingest_file` does, also if the address is not allowed."""
        from anvil.library import web_download

        # before the download: ingest_as checks them only when it has the file
        metadata_filter.library_name(library), metadata_filter.checked_metadata(metadata)
        source = metadata_filter.source_name(url, "url")
        with web_download.downloaded(url, self._options) as download:
            return self.ingest_as(
                download.path,
                source,
                library,
                metadata,
                kind=download.kind,
                last_modified=download.last_modified or timestamp(time.time()),
            )

    def ingest_folder(
        self,
        folder: str,
        library: str = DEFAULT_LIBRARY,
        metadata: Mapping[str, Any] | None = None,
        recursive: bool = True,
        max_concurrency: int = DEFAULT_CONCURRENCY,
        progress: Progress | None = None,
    ) -> FolderReport:
        """Ingest the files of a folder, several at a time. Unchanged files are skipped; the report names bad ones.

        An interrupt keeps every finished document, and this library then takes no more documents. Raises
        :class:`ConfigError` for an invalid argument, such as a path that is no folder, and as :meth:`ensure_writable`.
        """
        if max_concurrency < 1:
            raise ConfigError("max_concurrency must be 1 or more.")
        # once for the folder: ingest_file would report them for each of its files
        metadata_filter.library_name(library), metadata_filter.checked_metadata(metadata)
        root = ingestion.existing_folder(folder)
        files, left_out, unread = ingestion.files_in(root, recursive, looked_for(self._options))
        if files:
            self.ensure_writable()  # one error for the library, and not one for each file
        results, errors = ingestion.ingest_all(
            [(str(file), partial(self.ingest_file, str(file), library, metadata)) for file in files],
            "ingesting",
            halt=self.halt,
            max_concurrency=max_concurrency,
            progress=progress or self.progress,
        )
        report = FolderReport.of(str(root), library, results, [*unread, *errors])
        endings = dict(left_out.most_common())
        return replace(report, left_out=endings or None, notes=advice(endings))

    def import_lancedb(
        self, path: str, table: str = "documents", library: str | None = None, progress: Progress | None = None
    ) -> FolderReport:
        """Import the documents of mcpvectordb from its LanceDB at ``path``, with sources, titles, times and metadata.

        A document whose source is in the library is skipped, even if its text differs, so an interrupted import can be
        repeated. ``library``: one library for all; by default each document keeps its own. All vectors are computed
        by the current model. Raises :class:`SourceError` if the database cannot be read, :class:`ConfigError` if a name
        is not valid, and the errors of :meth:`ensure_writable`.
        """
        if library is not None:
            metadata_filter.library_name(library)
        metadata_filter.source_name(path, "path")
        rows = lancedb_import.read_documents(path, table)
        if rows:
            self.ensure_writable()  # one error for the library, and not one for each document

        def store(row: Mapping[str, str]) -> Ingested:
            data, info, notes = lancedb_import.text_and_info(row, library)
            with self._read() as reader:
                stored = reader.find(info.source, info.library)
            if stored is not None:
                return ingestion.skipped_result(stored, {})
            result = self._ingest(ingestion.text_parts(data), info)
            return replace(result, notes=(*result.notes, *notes))

        actions = [(row["source"], partial(store, row)) for row in rows]
        results, errors = ingestion.ingest_all(
            actions, "importing", halt=self.halt, max_concurrency=1, progress=progress or self.progress
        )
        return FolderReport.of(path, library or "", results, errors)

    def _ensure_size(self, size: int, what: str) -> None:
        limit = self._options.max_file_bytes
        if size > limit:
            raise DocumentTooLarge(f"{what} {size:,} bytes; the limit is {limit:,} (library.max_file_bytes).")

    def _ingest(self, parts: Iterable[DocumentPart], info: DocumentInfo) -> Ingested:
        with self._read() as reader:
            if (result := ingestion.result_if_unchanged(reader, info)) is not None:
                return result
        staging = ingestion.stage_document(
            parts,
            info,
            provider=self.provider,
            chunking=self.config.chunking,
            settings=self.ensure_writable(),
            is_halted=self._halted.is_set,
        )
        # Entering ``staging`` converts and embeds. The writer is taken after that, so that others can write meanwhile.
        with staging as staged, self._write() as writer, writing(writer.connection):
            # another process may have stored the same content meanwhile
            return ingestion.result_if_unchanged(writer.reader, staged.info) or writer.store(staged)

    def ensure_writable(self) -> dict[str, str]:
        """The manifest for new documents. An empty library is changed to the current model.

        Raises :class:`ConfigError` if the library has vectors of another model, and :class:`ArtifactRejected` or
        another :class:`AnvilError` if the file cannot be used.
        """
        model = {key: value for key, value in self._settings.items() if key.startswith("embedding_")}
        with self._write() as writer:
            meta = writer.reader.meta()
            if not model.items() <= meta.items():
                meta = writer.change_model_if_empty(self._settings)
        if model.items() <= meta.items():
            return {key: meta[key] for key in self._settings}
        raise ConfigError(
            f"The vectors of {self.path} were made with {meta['embedding_model']}; the configured model is "
            f"{self.provider.model}. "
            "Set embedding.* to that model, or compute all vectors again with 'anvil ingest --reembed'."
        )

    def reembed(self, progress: Progress = silent) -> int:
        """Compute all vectors again with the current model; the text does not change. Returns the number of passages.

        Other writers wait for it. Until it ends, a search uses the old vectors. Raises :class:`ProviderError` if a
        passage could not be embedded; then no vector is changed.
        """
        with self._write() as writer, writing(writer.connection):
            writer.change_model(self._settings)
            indexer = Indexer(writer.rows, self.provider, self.config.chunking, progress=progress)
            indexer.embed()
            if failed := indexer.tally.failed:  # the transaction is rolled back
                passages = counted(len(failed), "passage", "could")
                raise ProviderError(f"{passages} not be embedded: {failed[0].reason} No vector was changed.")
            writer.mark_all_changed()
            return writer.reader.counts()["chunks"]

    # --- queries -----------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        top_k: int = 5,
        library: str | None = None,
        filter: Mapping[str, Any] | None = None,
        max_chars: int | None = None,
    ) -> Passages:
        """The passages that answer ``query`` best, in descending relevance; see
        :class:`anvil.library.library_search.LibrarySearch`. Raises :class:`ConfigError` as that does."""
        from anvil.library.library_search import LibrarySearch, LibrarySearcher

        search = checked(LibrarySearch)(query, top_k, library, filter, max_chars)
        # Embedded before the connection is taken: other queries need not wait for the model or a service.
        question = query_preparation.embed_query(query, self.provider) if self.provider.dimensions else None
        with self._read() as reader:
            if self._searcher is None:
                self._searcher = LibrarySearcher(reader, self.provider)
            self._searcher.refresh()
            return self._searcher.find(search, question)

    def list_documents(
        self, library: str | None = None, limit: int = 20, offset: int = 0
    ) -> values.LibraryDocumentList:
        """The documents, by library and source. ``limit`` is clamped to 1..1000."""
        limit = min(max(limit, 1), MAX_LISTED_DOCUMENTS)
        offset = min(max(offset, 0), metadata_filter.MAX_INTEGER)
        library = None if library is None else metadata_filter.library_name(library)
        with self._read() as reader:
            documents = reader.list_documents(library, limit, offset)
            return values.LibraryDocumentList(tuple(documents), len(documents), reader.count_documents(library))

    def list_libraries(self) -> values.Libraries:
        """The libraries, by name."""
        with self._read() as reader:
            return values.Libraries(tuple(reader.libraries()))

    def get_document(self, doc_id: str, offset: int = 0, max_chars: int | None = None) -> WholeDocument:
        """A document with at most ``max_chars`` characters of Markdown from ``offset`` on. Raises :class:`NotFound`."""
        with self._read() as reader:
            document = reader.full_document(doc_id)
        content, next_offset = text_part(document.content, offset, max_chars)
        return replace(document, content=content, next_offset=next_offset)

    def doc_id_of(self, reference: str, library: str | None = None) -> str:
        """The doc_id of a document. ``reference``: its doc_id, its source or a path of this machine. Raises
        :class:`NotFound`, or :class:`ConfigError` if several libraries have such a document."""
        library = None if library is None else metadata_filter.library_name(library)
        with self._read() as reader:
            matches = reader.resolve(reference, library) or reader.resolve(os.path.abspath(reference), library)
        if not matches:
            raise not_found(reference)
        if len(matches) > 1:
            where = ", ".join(f"{name} ({doc_id})" for doc_id, name in matches.items())
            raise ConfigError(f"{reference} is in several libraries: {where}. Give the doc_id, or name the library.")
        return next(iter(matches))

    def server_info(self, check_path: str | None = None) -> values.LibraryInfo:
        """The machine, working folder, formats and file of this library. ``check_path``: a path to examine."""
        from anvil.library.server_info import library_info

        return library_info(self.path, self.config, self.provider, self.transport, check_path)

    # --- changes -----------------------------------------------------------------------------------------

    def delete_document(self, doc_id: str) -> values.Deleted:
        """Delete a document. Raises :class:`NotFound`."""
        with self._write() as writer:
            return writer.delete(doc_id)

    def update_document(self, doc_id: str, metadata: Mapping[str, Any]) -> values.Updated:
        """Change keys of a document's metadata; its text is not read again.

        None removes a key. Keys that are not given stay. Raises :class:`NotFound`, or :class:`ConfigError` if the
        metadata cannot be stored.
        """
        changes = metadata_filter.checked_metadata(metadata)
        with self._write() as writer:
            return writer.update(doc_id, changes)

    def prune(self, library: str | None = None, *, delete: bool = False) -> values.Pruned:
        """The documents whose source is a file that no longer exists, see :func:`ingestion.documents_without_file`.
        With ``delete`` they are deleted."""

        def documents() -> Iterator[LibraryDocument]:
            offset = 0
            while listed := self.list_documents(library, MAX_LISTED_DOCUMENTS, offset).documents:
                yield from listed
                offset += len(listed)

        report = ingestion.documents_without_file(documents())  # all of them, before one is deleted
        if not delete:
            return report
        deleted: list[LibraryDocument] = []
        for document in report.documents:
            if ingestion.documents_without_file([document]).documents:  # the file did not come back
                with contextlib.suppress(NotFound):  # another process deleted the document first
                    self.delete_document(document.doc_id)
                    deleted.append(document)
        return replace(report, status="deleted", documents=tuple(deleted))

    # --- life --------------------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open the file and load the model in the background, so that the first query need not wait for them.

        A server calls ``start`` of all its objects with ``progress``; here it is not used.
        """

        def warm() -> None:
            with contextlib.suppress(Exception):  # the first query reports the error
                self.search("warm", 1)

        threading.Thread(target=warm, name="anvil-library-warm", daemon=True).start()

    def halt(self) -> None:
        """Cancel documents that are being ingested: they fail soon, and nothing of them is stored."""
        self._halted.set()
        with self._converter_lock:
            if self._converter is not None:
                self._converter.close()

    def close(self) -> None:
        """Cancel running work, end the converter processes and close the file."""
        self._closed = True
        self.halt()  # first: it ends an ingestion that holds one of the locks below
        with self._read_lock:
            if self._reader is not None:
                self._reader.close()
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
        self._reader = self._writer = self._searcher = None
        self.provider.close()

    def __exit__(self, *_: object) -> None:
        self.close()
