"""Bringing an index in line with its documents: what changed is read, cut and embedded; what stands is kept.

The same :class:`Indexer` serves a build and a server's working copy, so both say the same of the same text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from anvil import chunking, freshness
from anvil.chunking import Chunking
from anvil.executing import Here
from anvil.models import Changes, Progress, Skipped, Window, silent
from anvil.store.connection import FORMAT_VERSION
from anvil.store.digest import canonical
from anvil.store.identity import most_chunks, window_key
from anvil.store.writing import SETTINGS, Writer, quantized

if TYPE_CHECKING:
    from anvil.embedding import Embedded, EmbeddingProvider
    from anvil.executing import Executor
    from anvil.sources import DocumentSource

OVERLAP = 32
"""Tokens that neighbouring windows share."""


def settings(provider: EmbeddingProvider, options: Chunking) -> dict[str, str]:
    """The manifest's keys that decide what the rows look like."""
    found = {
        "format_version": str(FORMAT_VERSION),
        "chunking": canonical({**asdict(options), "version": chunking.CHUNKER_VERSION}),
        "embedding_provider": provider.name,
        "embedding_model": provider.model,
        "embedding_model_digest": provider.digest,
        "embedding_dimensions": str(provider.dimensions),
        "windows": canonical({"overlap": OVERLAP}),  # their size is in the model's digest
    }
    assert set(SETTINGS) == set(found)
    return found


class Cache(Protocol):
    """Whatever has vectors that may be taken over: another index, a former version of a document."""

    def meta(self) -> dict[str, str]:
        """The manifest; ``embedding_model_digest`` says whose vectors these are."""

    def window_keys(self) -> dict[bytes, int]:
        """Reuse key -> number, of the windows that have a vector."""

    def vector(self, window: int) -> bytes:
        """The int8 vector of a window, by its number."""


@dataclass
class Tally:
    """What an update did, added up."""

    embedded: int = 0
    reused: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Skipped] = field(default_factory=list)


class Indexer:
    """Keeps one working copy in line with a source.

    ``caches`` are indexes whose vectors may be taken over: the artifact that stands, downloaded ones. ``executor``:
    where windows are embedded, here when there is none. After each of its batches a word goes to ``progress``, which
    may raise to call it off.
    """

    def __init__(
        self,
        writer: Writer,
        provider: EmbeddingProvider,
        options: Chunking,
        caches: Sequence[Cache] = (),
        progress: Progress = silent,
        executor: Executor | None = None,
    ) -> None:
        self._executor = executor or Here(provider)
        self.writer = writer
        self.provider = provider
        self.options = options
        self.progress = progress
        self.tally = Tally()
        self.unfit: dict[str, str] = {}
        """Path -> identity of pages that were read and cannot be held; see :func:`without`."""
        self._caches = [each for each in caches if each.meta()["embedding_model_digest"] == provider.digest]
        self._keys: list[dict[bytes, int]] | None = None

    # --- text -------------------------------------------------------------------------------------------

    def update(self, source: DocumentSource, entries: Mapping[str, str], changes: Changes) -> None:
        """Read what changed, take out what is gone; text and keyword index are right afterwards."""
        work = sorted((*changes.changed, *changes.added))
        commit = source.commit()  # before the times: one that comes in between is seen by the next comparison
        times = source.last_modified(sorted(entries), self.writer.times(), self.writer.meta().get("commit"))
        with self.writer.atomic():
            for path in changes.removed:
                self.writer.remove(path)
            for done, path in enumerate(work):
                self.progress("reading", done, len(work))
                self._read(source, path)
            self.writer.touch(times)
            left_out = None if source.left_out is None else canonical(sorted(source.left_out))
            self.writer.set_meta(
                {"commit": commit, "docs_root_path": source.root_path, "left_out": left_out}
            )

    def _read(self, source: DocumentSource, path: str) -> None:
        document = source.read(path)
        if isinstance(document, Skipped):  # gone or changed since it was listed
            self.writer.remove(path)
            self.tally.skipped.append(document)
            return
        from anvil import anchors, markdown  # not needed by a build that has nothing to read

        page = document.page or markdown.parse(document.text, slugs=self.options.slugs)
        if document.headings is not None:
            page = anchors.landed(page, document.headings)
        chunks = chunking.chunks(page, self.options)
        if len(chunks) > most_chunks():
            self.writer.remove(path)
            self.unfit[path] = freshness.identity(document.blob_id, document.fingerprint)
            reason = f"it makes {len(chunks):,} chunks, and a page may have {most_chunks():,}"
            self.tally.skipped.append(Skipped(path, f"{reason}; split it, raise max_chunk_size, or exclude it"))
            return
        self.writer.put(document, page, chunks)

    # --- vectors -----------------------------------------------------------------------------------------

    def embed(self) -> None:
        """Make the windows and vectors that are missing; a vector whose text was embedded before is taken over."""
        if not self.provider.dimensions:
            return
        total = self.writer.count_without_windows()
        if total:
            self.progress("embedding", 0, total)
        waiting: deque[tuple[int, dict[str, list[int]]]] = deque()
        with self.writer.atomic(), closing(self._executor.embed(self._missing(waiting, total))) as answers:
            for made in answers:
                done, missing = waiting.popleft()
                self._keep(missing, made)
                self.progress("embedding", done, total)

    def _missing(self, waiting: deque[tuple[int, dict[str, list[int]]]], total: int) -> Iterator[list[str]]:
        """Batches of texts to embed. Each is remembered in ``waiting``: chunks done with it, and text -> windows.
        What a cache knows is put in place at once."""
        for done, batch in chain(self._retries(), self._new_windows()):
            known: list[tuple[int, bytes]] = []
            missing: dict[str, list[int]] = {}
            for window, text in batch:
                vector = self._cached(window_key(text))
                if vector is None:
                    missing.setdefault(text, []).append(window)
                else:
                    known.append((window, vector))
            self.tally.reused += len(known)
            self.writer.put_vectors(sorted(known))
            if missing:
                waiting.append((done, missing))
                yield list(missing)
            else:
                self.progress("embedding", done, total)

    def _retries(self) -> Iterator[tuple[int, list[tuple[int, str]]]]:
        """Batches of windows that stand without a vector: an earlier run could not embed them."""
        spans = self.writer.windows_without_vectors()
        for first in range(0, len(spans), self._executor.batch):
            part = spans[first : first + self._executor.batch]
            chunks = self.writer.chunks({chunk for _, chunk, _, _ in part})
            batch = []
            for window, row, start, end in part:
                chunk = chunks[row]
                header = chunking.header(chunk.title, chunk.metadata.heading_path)
                batch.append((window, chunking.window_text(header, chunk.content[start:end])))
            yield 0, batch

    def _new_windows(self) -> Iterator[tuple[int, list[tuple[int, str]]]]:
        """Batches of (window id, text) of chunks that had no windows, with the number of chunks behind them."""
        after, done, batch = -1, 0, []
        while rows := self.writer.chunks_without_windows(after, max(self._executor.batch // 4, 1)):
            for (row, *_), made in zip(rows, cut(rows, self.provider), strict=True):
                ids = self.writer.put_windows(row, made)
                batch += [(id_, window.text) for id_, window in zip(ids, made, strict=True)]
                done += 1
                if len(batch) >= self._executor.batch:
                    yield done, batch
                    batch = []
            after = rows[-1][0]
        if batch:
            yield done, batch

    def _keep(self, missing: Mapping[str, Sequence[int]], made: Embedded) -> None:
        """Put the vectors of texts, in order, to the windows that have them."""
        vectors: list[tuple[int, bytes]] = []
        for number, (vector, windows) in enumerate(zip(quantized(made.vectors), missing.values(), strict=True)):
            if number in made.failed:
                self._fail(windows, made.failed[number])
            else:
                vectors += [(window, vector) for window in windows]
                self.tally.embedded += 1
        self.writer.put_vectors(sorted(vectors))

    def _cached(self, key: bytes) -> bytes | None:
        if self._keys is None:  # most builds that change nothing else never come here
            self._keys = [cache.window_keys() for cache in self._caches]
        for cache, keys in zip(self._caches, self._keys, strict=True):
            if key in keys:
                return cache.vector(keys[key])
        return None

    def _fail(self, windows: Sequence[int], reason: str) -> None:
        for chunk in self.writer.chunks_of(windows):
            place = f"{chunk.metadata.file_path}: {chunk.metadata.heading_path}"
            self.tally.failed.append(Skipped(place, reason))


def without(unfit: Mapping[str, str], entries: Mapping[str, str]) -> Mapping[str, str]:
    """What a source lists, but for pages known not to fit as they stand: there is no use in reading them again."""
    return {path: each for path, each in entries.items() if unfit.get(path) != each} if unfit else entries


def cut(rows: Sequence[tuple[int, str, str, str]], provider: EmbeddingProvider) -> list[tuple[Window, ...]]:
    """The windows of each (row, title, breadcrumb, content): what the model is given to read."""
    headers = [chunking.header(title, heading_path) for _, title, heading_path, _ in rows]
    header_spans = provider.token_spans(headers)
    spans = provider.token_spans([content for *_, content in rows])
    return [
        tuple(chunking.windows(content, header, own, len(its), provider.max_tokens, OVERLAP))
        for (*_, content), header, its, own in zip(rows, headers, header_spans, spans, strict=True)
    ]


def adapt(writer: Writer, wanted: Mapping[str, str]) -> list[str]:
    """Throw away what was made under other settings; sentences that say what and why."""
    meta = writer.meta()
    reasons = []
    with writer.atomic():
        if meta["chunking"] != wanted["chunking"]:
            reasons.append("The chunking changed: all pages are cut anew.")
            writer.clear()
        if any(meta[key] != wanted[key] for key in SETTINGS if key.startswith("embedding_") or key == "windows"):
            if meta["embedding_model_digest"] != wanted["embedding_model_digest"]:
                reasons.append(
                    f"The embedding changed from {_model(meta)} to {_model(wanted)}: the text is kept, "
                    "all vectors are made anew."
                )
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
