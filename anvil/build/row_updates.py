"""Updating the rows of an index: changed documents are read, cut and embedded; other rows stay.

A build and a server's copy in memory use the same :class:`Indexer`, so they give the same rows for the same text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.embedding.provider import EmbeddingProvider, Executor, LocalExecutor
from anvil.embedding.vectors import Embedded
from anvil.formats.characters import readable
from anvil.index_file import manifests
from anvil.index_file.manifests import OPTIONAL_SETTINGS, SETTINGS, recalled_site
from anvil.index_file.reader import Reader
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
    """Old vectors that stay because new ones could not be made."""
    refusal: str = ""
    """The reason for the last of them."""
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)


class StoredVectors:
    """The vectors of some indexes, by the text that they were made of."""

    def __init__(self, indexes: Sequence[Reader]) -> None:
        self._indexes = indexes

    @cached_property
    def _windows(self) -> list[tuple[Reader, dict[bytes, int]]]:
        """Each index, and hash of a window's text -> window. Read at the first use: many updates need none."""
        return [(index, index.window_keys()) for index in self._indexes]

    def get(self, key: bytes) -> bytes | None:
        """The stored vector of the text with this :func:`window_key`, of the first index that has one."""
        return next((index.vector(windows[key]) for index, windows in self._windows if key in windows), None)


class Indexer:
    """Updates one working copy from a source.

    ``caches``: indexes whose vectors may be reused, such as the old index file and downloaded ones. ``executor``:
    embeds the windows; by default this process does. ``progress`` is called after each batch, and may raise to cancel
    the update. ``spare``: an index whose vectors are used only for texts that cannot be embedded now.
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
            each for each in (*caches, spare) if each and each.meta()["embedding_model_digest"] == provider.digest
        ]
        self._caches = StoredVectors([each for each in fitting if each is not spare])
        self._spare = StoredVectors([each for each in fitting if each is spare])
        self.writer = writer
        self.provider = provider
        self.options = options
        self.progress = progress
        self.tally = Tally()
        self.unfit: dict[str, str] = {}
        """Path -> identity of pages that were read and are too large for the index; see :func:`without`."""
        self._site = SiteOptions()

    # --- text -------------------------------------------------------------------------------------------

    def update(self, source: DocumentSource, entries: Mapping[str, str], changes: Changes) -> None:
        """Read the changed and added pages, and remove the others. It updates the text and the keyword index, and the
        times of these pages and of ``entries``."""
        work = sorted((*changes.changed, *changes.added))
        commit = source.commit()  # before the times: the next comparison then notices a commit in between
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
        if isinstance(document, Skipped):  # gone or changed since it was listed
            self.writer.remove(path)
            self.tally.skipped.append(document)
            return
        from anvil.text import markdown_sections, section_places, visible_text

        # In this order: anchors need all sections, then text is taken out, then it is cut, and lines come last, for
        # only chunks say which text is to be found in the source.
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
            self.unfit[path] = document_source.identity(document.blob_id, document.fingerprint)
            reason = f"it makes {len(chunks):,} chunks, and a page may have {most_chunks():,}"
            way_out = "split it, raise chunking.max_chunk_size, or name it in source.exclude"
            self.tally.skipped.append(Skipped(path, f"{reason}; {way_out}"))
            return
        self.writer.put(document, page, chunks)

    # --- vectors -----------------------------------------------------------------------------------------

    def embed(self) -> None:
        """Make the missing windows and vectors. If a cache has the vector of a text, it is reused."""
        if not self.provider.dimensions:
            return
        waiting: deque[tuple[int, dict[str, list[int]]]] = deque()
        with self.writer.atomic():
            self.writer.drop_bare_windows()
        total = self.writer.reader.count_without_windows()
        if total:
            self.progress("embedding", 0, total)
        with self.writer.atomic(), closing(self._executor.embed(self._missing(waiting, total))) as answers:
            for embedded in answers:
                done, missing = waiting.popleft()
                self._store(missing, embedded)
                self.progress("embedding", done, total)

    def _missing(self, waiting: deque[tuple[int, dict[str, list[int]]]], total: int) -> Iterator[list[str]]:
        """Batches of texts to embed. Each batch is appended to ``waiting``, with the number of chunks that it completes
        and text -> windows. Vectors of caches are stored at once."""
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
        """Batches of (window id, text) of chunks without windows, with the number of chunks that are cut so far."""
        after, done, batch = -1, 0, []
        # A chunk has a few windows, so a quarter of a batch in chunks is about a batch of texts.
        while rows := self.writer.chunks_without_windows(after, max(self._executor.batch // 4, 1)):
            for chunk, windows in zip(rows, cut(rows, self.provider), strict=True):
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
        """Store the vectors of texts for the windows that have them. Both are in the order of the texts."""
        vectors: list[tuple[int, bytes]] = []
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
                if number in embedded.cached:  # by the user's cache, which is not asked as an index is
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
    """The page and its chunks with line numbers of the source file. An included line has the number of the line that
    includes it."""

    def of_source(line: int | None) -> int | None:
        return line and source_line(line, inserted)

    sections = (
        each._replace(start_line=of_source(each.start_line), end_line=of_source(each.end_line))
        for each in page.sections
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
    """Whether an index has all documents of ``scan`` and the settings ``wanted``.

    A shard must also be of the commit of ``source``, because all shards of one index must have the same commit.
    """
    meta = standing.meta()
    # Optional keys also where they are not wanted: a site that is no longer configured must go from the index.
    if any(meta.get(key) != wanted.get(key) for key in (*wanted, *OPTIONAL_SETTINGS)) or meta["needs_reembed"] != "0":
        return False
    if meta.get("shard") != shard:
        return False
    if shard and source and meta.get("commit") != source.commit():
        return False
    if standing.excluded_hashes() != (source.excluded_hashes if source else None):
        return False
    return not document_source.compare(standing.identities(), scan.entries)


def without(unfit: Mapping[str, str], entries: Mapping[str, str]) -> Mapping[str, str]:
    """The entries of a source without unchanged pages that are known to be too large: reading them again is no use."""
    return {path: identity for path, identity in entries.items() if unfit.get(path) != identity} if unfit else entries


def cut(chunks: Sequence[ChunkText], provider: EmbeddingProvider) -> list[tuple[Window, ...]]:
    """The windows of each chunk: the texts that the model embeds."""
    texts = [_embedded(provider, chunk) for chunk in chunks]
    header_spans = provider.token_spans([header for header, _ in texts])
    spans = provider.token_spans([content for _, content in texts])
    return [
        tuple(cut_windows(content, header, own_spans, len(of_header), provider.max_tokens, OVERLAP_TOKENS))
        for (header, content), of_header, own_spans in zip(texts, header_spans, spans, strict=True)
    ]


def _embedded(provider: EmbeddingProvider, chunk: ChunkText) -> tuple[str, str]:
    """The header of a chunk's windows, and its text as the model reads it. The tokens of a script that the model does
    not know are single letters: they say nothing, and a Korean page would have five times as many windows."""
    header, content = window_header(chunk.title, chunk.heading_path), chunk.content
    if header.isascii() and content.isascii():  # which scripts a model reads takes a look at its whole vocabulary
        return header, content
    return readable(header, provider.scripts), readable(content, provider.scripts)


def adapt(writer: Writer, wanted: Mapping[str, str]) -> list[str]:
    """Remove rows that were made with other settings. Returns messages that name the changes."""
    meta = writer.reader.meta()
    reasons = []
    with writer.atomic():
        # All pages must be read again for either. Only a new model keeps the text: vectors are made from it.
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
