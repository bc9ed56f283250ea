"""Updates of index rows: changed documents are read, cut and embedded; other rows stay.

A build and a server's copy in memory use the same :class:`Indexer`, so the same text gives the same rows in both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.embedding.provider import Embedded, EmbeddingProvider, Executor, LocalExecutor
from anvil.formats.characters import readable
from anvil.index_file import manifests
from anvil.index_file.manifests import OPTIONAL_SETTINGS, SETTINGS, recalled_site
from anvil.index_file.reader import WITHOUT_WINDOWS, Reader
from anvil.index_file.table_rows import ChunkText, most_chunks, quantized, window_key
from anvil.index_file.writer import Writer
from anvil.settings.schema import Chunking, SiteOptions
from anvil.text import chunker, generator_urls
from anvil.text.chunker import OVERLAP_TOKENS, cut_windows
from anvil.text.headings import window_header
from anvil.text.includes import source_line
from anvil.values import Changes, Chunk, ParsedPage, Progress, Scan, Skipped, Window, silent
from anvil.wording import full_heading


@dataclass
class Tally:
    """The counts and failures of an update."""

    embedded: int = 0
    reused: int = 0
    kept: int = 0
    """The number of old vectors that stay because new ones could not be made."""
    refusal: str = ""
    """Why the last of these could not be made."""
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)
    is_down: bool = False
    """Whether some failed because the provider was down."""


class StoredVectors:
    """The vectors of several indexes, found by the hash of their text."""

    def __init__(self, indexes: Sequence[Reader]) -> None:
        self._indexes = indexes

    @cached_property
    def _windows(self) -> list[tuple[Reader, dict[bytes, int]]]:
        """Each index, with hash of a window's text -> window id. Read late, because many updates need no vector."""
        return [(index, index.window_keys()) for index in self._indexes]

    def get(self, key: bytes) -> bytes | None:
        """The stored vector of the text with this :func:`window_key`, from the first index that has one."""
        return next((index.vector(windows[key]) for index, windows in self._windows if key in windows), None)


class Indexer:
    """Updates one working copy of an index from a source.

    - ``caches``: indexes whose vectors may be reused, such as the old index file and downloaded ones.
    - ``executor`` embeds the windows; this process by default.
    - ``progress`` is called after each batch. It may raise an exception, which cancels the update.
    - ``spare``: an index whose vectors are used only for texts that cannot be embedded now.
    """

    def __init__(
        self,
        writer: Writer,
        provider: EmbeddingProvider,
        options: Chunking,
        caches: Sequence[Reader] = (),
        progress: Progress = silent,
        executor: Executor | None = None,
        spare: Reader | None = None,
    ) -> None:
        self._executor = executor or LocalExecutor(provider)
        fitting = [
            index for index in (*caches, spare) if index and index.meta()["embedding_model_digest"] == provider.digest
        ]
        self._caches = StoredVectors([index for index in fitting if index is not spare])
        self._spare = StoredVectors([index for index in fitting if index is spare])
        self.writer = writer
        self.provider = provider
        self.options = options
        self.progress = progress
        self.tally = Tally()
        self.too_large: dict[str, str] = {}
        """Path -> identity of each page that has more chunks than an index can hold."""
        self._site = SiteOptions()

    # --- text -------------------------------------------------------------------------------------------

    def update(self, source: DocumentSource, entries: Mapping[str, str], changes: Changes) -> None:
        """Read the changed and added pages, and remove the removed ones.

        This updates the text, the keyword index, and the times of these pages and of all ``entries``. Vectors are made
        by :meth:`embed`.
        """
        work = sorted((*changes.changed, *changes.added))
        commit = source.commit()  # before the times are read, so that the next comparison notices a commit in between
        meta = self.writer.reader.meta()
        self._site = recalled_site(meta.get("site"))
        times = source.last_modified(sorted({*entries, *work}), self.writer.reader.times(), meta.get("commit"))
        with self.writer.atomic():
            for path in changes.removed:
                self.writer.remove(path)
            for done, path in enumerate(work):
                self.progress("reading", done, len(work))
                self._read(source, path)
            self.writer.touch(times)
            self.writer.set_meta(manifests.of_source(source, commit))

    def _read(self, source: DocumentSource, path: str) -> None:
        document = source.read(path)
        if isinstance(document, Skipped):  # removed or changed since it was listed
            self.writer.remove(path)
            self.tally.skipped.append(document)
            return
        from anvil.text import markdown_sections, section_places, visible_text

        # The order matters: the page gets its anchors, then hidden text is removed, then it is cut. Lines come last,
        # because they are found by the texts of the chunks.
        slugs = generator_urls.SLUGS.get(self._site.rule, self.options.slugs) if self._site.url else self.options.slugs
        page = document.page or markdown_sections.parse(document.text, replace(self.options, slugs=slugs))
        if document.url is None and self._site.url:
            document = replace(
                document, url=generator_urls.address(self._site, path, {**page.metadata, **document.metadata})
            )
        if document.headings is not None:
            page = section_places.with_anchors(page, document.headings)
        if document.cleaned:
            page = visible_text.cleaned(page)
        chunks = chunker.chunks(page, self.options)
        if document.source is not None:
            page, chunks = section_places.with_lines(page, chunks, document.source, path)
        if document.inserted:
            page, chunks = _on_source_lines(page, chunks, document.inserted)
        if len(chunks) > most_chunks():
            self.writer.remove(path)
            self.too_large[path] = document_source.identity(document.blob_id, document.fingerprint)
            reason = f"it makes {len(chunks):,} chunks, and a page may have {most_chunks():,}"
            advice = "split it, raise chunking.max_chunk_size, or name it in source.exclude"
            self.tally.skipped.append(Skipped(path, f"{reason}; {advice}"))
            return
        self.writer.put(document, page, chunks)

    # --- vectors -----------------------------------------------------------------------------------------

    def embed(self) -> None:
        """Make the missing windows and vectors. Vectors of the caches are reused."""
        if not self.provider.dimensions:
            return
        waiting: deque[tuple[int, dict[str, list[int]]]] = deque()
        with self.writer.atomic():
            self.writer.drop_windows_without_vectors()
        total = self.writer.reader.count_without_windows()
        if total:
            self.progress("embedding", 0, total)
        with self.writer.atomic(), closing(self._executor.embed(self._missing(waiting, total))) as answers:
            for embedded in answers:
                done, missing = waiting.popleft()
                self._store(missing, embedded)
                self.progress("embedding", done, total)

    def _missing(self, waiting: deque[tuple[int, dict[str, list[int]]]], total: int) -> Iterator[list[str]]:
        """Batches of texts to embed. Vectors from the caches are stored at once.

        Each batch is also appended to ``waiting``: the number of chunks that are complete after it, and text -> ids of
        the windows with this text.
        """
        for done, batch in self._new_windows():
            reused: list[tuple[int, bytes]] = []
            missing: dict[str, list[int]] = {}
            for window, text in batch:
                vector = self._caches.get(window_key(text))
                if vector is None:
                    missing.setdefault(text, []).append(window)
                else:
                    reused.append((window, vector))
            self.tally.reused += len(reused)
            self.writer.put_vectors(sorted(reused))
            if missing:
                waiting.append((done, missing))
                yield list(missing)
            else:
                self.progress("embedding", done, total)

    def _new_windows(self) -> Iterator[tuple[int, list[tuple[int, str]]]]:
        """Batches of (window id, text) from chunks without windows, each with the number of chunks cut so far."""
        after, done, batch = -1, 0, []
        # A chunk has a few windows, so these chunks have about one batch of texts.
        while rows := self.writer.chunk_texts(WITHOUT_WINDOWS, after, max(self._executor.batch // 4, 1)):
            for chunk, windows in zip(rows, windows_of(rows, self.provider), strict=True):
                ids = self.writer.put_windows(chunk.row, windows)
                batch += [(id_, window.text) for id_, window in zip(ids, windows, strict=True)]
                done += 1
                if len(batch) >= self._executor.batch:
                    yield done, batch
                    batch = []
            after = rows[-1].row
        if batch:
            yield done, batch

    def _store(self, missing: Mapping[str, Sequence[int]], embedded: Embedded) -> None:
        """Store the vectors of a batch. ``missing``: text -> window ids, in the order of the vectors."""
        vectors: list[tuple[int, bytes]] = []
        self.tally.is_down |= embedded.is_down
        for number, (vector, (text, windows)) in enumerate(
            zip(quantized(embedded.vectors), missing.items(), strict=True)
        ):
            if number in embedded.failed and (old := self._spare.get(window_key(text))) is not None:
                vectors += [(window, old) for window in windows]
                self.tally.kept += len(windows)
                self.tally.refusal = embedded.failed[number]
            elif number in embedded.failed:
                self._fail(windows, embedded.failed[number])
            else:
                vectors += [(window, vector) for window in windows]
                if number in embedded.cached:  # the provider found it in the user's cache of vectors
                    self.tally.reused += len(windows)
                else:
                    self.tally.embedded += 1
        self.writer.put_vectors(sorted(vectors))

    def _fail(self, windows: Sequence[int], reason: str) -> None:
        for chunk in self.writer.reader.chunks_of(windows):
            section = f"{chunk.metadata.file_path}: {full_heading(chunk.title, chunk.metadata.heading_path)}"
            self.tally.failed.append(Skipped(section, reason))


def _on_source_lines(
    page: ParsedPage, chunks: Sequence[Chunk], inserted: Sequence[tuple[int, int]]
) -> tuple[ParsedPage, tuple[Chunk, ...]]:
    """The page and its chunks with line numbers of the source file. Included lines have the number of the line that
    includes them. ``inserted``: see :class:`anvil.values.Document`."""

    def of_source(line: int | None) -> int | None:
        return line and source_line(line, inserted)

    sections = (
        section._replace(start_line=of_source(section.start_line), end_line=of_source(section.end_line))
        for section in page.sections
    )
    renumbered = (
        replace(chunk, start_line=of_source(chunk.start_line), end_line=of_source(chunk.end_line)) for chunk in chunks
    )
    return replace(page, sections=tuple(sections)), tuple(renumbered)


def is_unchanged(
    standing: Reader,
    wanted: Mapping[str, str],
    scan: Scan,
    source: DocumentSource | None = None,
    shard: str | None = None,
) -> bool:
    """Whether an index has exactly the documents of ``scan`` and the settings ``wanted``.

    A shard must also be of the commit of ``source``, because all shards of one index must have the same commit.
    """
    meta = standing.meta()
    # Optional keys are compared even if they are not wanted: a site that is no longer configured must be removed.
    if any(meta.get(key) != wanted.get(key) for key in (*wanted, *OPTIONAL_SETTINGS)) or meta["needs_reembed"] != "0":
        return False
    if meta.get("shard") != shard:
        return False
    if shard and source and meta.get("commit") != source.commit():
        return False
    if standing.excluded_hashes() != (source.excluded_hashes if source else None):
        return False
    return not document_source.compare(standing.identities(), scan.entries)


def without_too_large(entries: Mapping[str, str], too_large: Mapping[str, str]) -> Mapping[str, str]:
    """``entries`` without pages that are known to be too large and have not changed, so that they are not read again.
    Both are path -> identity."""
    if not too_large:
        return entries
    return {path: identity for path, identity in entries.items() if too_large.get(path) != identity}


def windows_of(chunks: Sequence[ChunkText], provider: EmbeddingProvider) -> list[tuple[Window, ...]]:
    """The windows of each chunk: the texts that the model embeds."""
    texts = [_model_input(provider, chunk) for chunk in chunks]
    header_spans = provider.token_spans([header for header, _ in texts])
    spans = provider.token_spans([content for _, content in texts])
    return [
        tuple(cut_windows(content, header, own_spans, len(of_header), provider.max_tokens, OVERLAP_TOKENS))
        for (header, content), of_header, own_spans in zip(texts, header_spans, spans, strict=True)
    ]


def _model_input(provider: EmbeddingProvider, chunk: ChunkText) -> tuple[str, str]:
    """The header of a chunk's windows, and its text, both without the scripts that the model does not know.

    Such a script has a token for each letter. These tokens have no meaning for the model, and a Korean page would have
    five times as many windows.
    """
    header, content = window_header(chunk.title, chunk.heading_path), chunk.content
    if header.isascii() and content.isascii():  # first, because ``scripts`` reads the model's whole vocabulary
        return header, content
    return readable(header, provider.scripts), readable(content, provider.scripts)


def adapt(writer: Writer, wanted: Mapping[str, str]) -> list[str]:
    """Remove the rows that other settings than ``wanted`` gave. Returns messages about what changed."""
    meta = writer.reader.meta()
    reasons = []
    with writer.atomic():
        # A change of the chunking or of the site needs all pages again. A new model needs only new vectors.
        if meta["chunking"] != wanted["chunking"]:
            reasons.append("The chunking changed: all pages are cut again.")
            writer.clear()
        elif meta.get("site") != wanted.get("site"):
            reasons.append("The site's address or rule changed: all pages get their URLs again.")
            writer.clear()
        writer.set_meta({key: wanted.get(key) for key in OPTIONAL_SETTINGS})
        if any(meta[key] != wanted[key] for key in SETTINGS if key.startswith("embedding_") or key == "windows"):
            if meta["embedding_model_digest"] != wanted["embedding_model_digest"]:
                reasons.append(f"The embedding changed from {_model(meta)} to {_model(wanted)}: the text is kept.")
            writer.reset_vectors(int(wanted["embedding_dimensions"]))
        writer.set_meta(wanted)
    return reasons


def _model(meta: Mapping[str, str]) -> str:
    if meta["embedding_provider"] == "none":
        return "none"
    return (
        f"{meta['embedding_model']} ({meta['embedding_provider']}, {meta['embedding_dimensions']} dimensions, "
        f"{meta['embedding_model_digest'][:12]})"
    )
