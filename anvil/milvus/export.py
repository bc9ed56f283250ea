"""Export of an index file to Milvus, as a new generation of collections to which queries then move.

The former generation answers until then. If the same file is in Milvus already and complete, nothing is written.
"""

from __future__ import annotations

import time
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from anvil.index_file import table_rows, verify
from anvil.index_file.fts_table import tokenizer
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, StoredChunk, StoredDocument
from anvil.milvus import milvus_collections
from anvil.milvus import milvus_reader as reading
from anvil.milvus.milvus_client import WRITE_TIMEOUT_S, Client
from anvil.milvus.milvus_collections import About, ChunkFields, Generation, PageEntry
from anvil.search.candidates import VectorIndex
from anvil.text.link_popularity import links_of
from anvil.text.query import Stemmer, path_words
from anvil.values import Progress, silent

BUCKET_TOKENS = 400
"""Approximate number of tokens in a bucket of the vocabulary."""
SAMPLE_WINDOWS = 64
"""Windows whose vectors stand for questions, to estimate the mean cosine of a question to all chunks."""
GRACE_S = 2.0
"""Seconds for which the former generation stays, for queries that are reading it."""
BATCH_CHUNKS = 200
"""Chunks that are read from the file at once."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The report of an export. ``generation``: its name, with which those of its collections begin."""

    outcome: Literal["exported", "unchanged"]
    target: str
    generation: str
    digest: str
    pages: int
    chunks: int
    vectors: int
    seconds: float


def export(index: Path, client: Client, progress: Progress = silent, grace: float = GRACE_S) -> Exported:
    """Write the index file into Milvus and point the client's collection at it.

    ``grace``: see :data:`GRACE_S`. Raises :class:`ArtifactError` if the file is refused, or the name in Milvus belongs
    to something else, and :class:`FetchError` if Milvus fails. Then the former generation answers as before.
    """
    began = time.monotonic()
    with verify.open_checked(index) as reader:
        verify.refuse_part(reader, index)
        meta, counts = reader.meta(), reader.counts()
        name = milvus_collections.generation_name(client.address.collection, meta["digest"], meta["checksum"])
        is_exported = milvus_collections.current_generation(client) == name
        if is_exported and not milvus_collections.is_whole(client, name):
            # A server refuses to drop a collection to which an alias points.
            client.ask("drop_alias", client.address.collection, timeout=WRITE_TIMEOUT_S)
            is_exported = False
        if not is_exported:
            milvus_collections.remove_others(client, None)  # the rest of an interrupted export
            _Export(reader, Generation(client, name, int(meta["embedding_dimensions"])), progress).run()
            reading.MilvusReader(client, name)  # raises an error if it cannot be read, before queries move to it
            if milvus_collections.point(client, name) is not None:
                time.sleep(grace)
        milvus_collections.remove_others(client, name)
    return Exported(
        "unchanged" if is_exported else "exported",
        client.shown,
        name,
        meta["digest"],
        counts["documents"],
        counts["chunks"],
        counts["vectors"],
        round(time.monotonic() - began, 3),
    )


class _Export:
    def __init__(self, reader: Reader, target: Generation, progress: Progress) -> None:
        self._reader, self._target, self._progress = reader, target, progress
        self._meta, self._counts = reader.meta(), reader.counts()
        self._stem = Stemmer(tokenizer(reader.connection))

    def run(self) -> None:
        windows, table = self._vectors()
        self._pages(windows)
        self._links()
        self._vocabulary(table)
        self._target.finish()

    def _pages(self, windows: dict[int, int]) -> None:
        """Write chunks, records and the list of pages. ``windows``: chunk row -> number of its windows."""
        done, total = 0, self._counts["chunks"]
        for document in self._reader.documents():
            rows = self._reader.chunk_rows(document.id)
            for first in range(0, len(rows), BATCH_CHUNKS):
                batch = rows[first : first + BATCH_CHUNKS]
                texts, chunks = self._reader.searched_text(batch), self._reader.chunks(batch)
                hidden = self._reader.hidden(batch)
                for row in batch:
                    self._chunk(chunks[row], texts[row], hidden[row], windows.get(row, 0))
                done += len(batch)
                self._progress("exporting chunks", done, total)
            self._record(document, rows)
        self._target.put_json(milvus_collections.CATALOGUE, 0, list(PageEntry.of(self._reader)))

    def _chunk(self, chunk: StoredChunk, text: SearchedText, hidden: str, windows: int) -> None:
        # Without the words of the path, which the reader of a file adds at the end: its keyword index lacks them, too.
        derived = text.terms[: len(text.terms) - len(path_words(chunk.metadata.file_path))]
        words = milvus_collections.COLUMN_SEPARATOR.join(
            " ".join(self._stem(column)) for column in (text.title, text.heading_path, text.content, derived)
        )
        fields = ChunkFields.of(chunk, text, hidden, windows)
        if fields.long:
            self._target.put_json(milvus_collections.TEXT, chunk.row, (text.content, hidden, text.terms))
        self._target.put("chunks", {**fields._asdict(), "words": _fitting(words)})

    def _record(self, document: StoredDocument, rows: list[int]) -> None:
        first = table_rows.chunk_range(document.id)[0]
        record = {
            "document": list(astuple(document))[1:],
            "slots": [row - first for row in rows],
            "headings": self._reader.top_headings([document.id]).get(document.id, ()),
        }
        self._target.put_json(milvus_collections.PAGE, document.id, record)
        self._target.put_json(milvus_collections.SECTIONS, document.id, self._reader.sections(document.id))

    def _links(self) -> None:
        """Write the links in all pages, unresolved, because a page of the overlay can change where they lead."""
        pages = self._reader.addresses()
        links = links_of(pages, self._reader.page_texts())
        rows = [[page.id, page.url, links.get(page.id, ())] for page in pages]
        self._target.put_json(milvus_collections.LINKS, 0, rows)

    def _vectors(self) -> tuple[dict[int, int], VectorIndex | None]:
        """Write the vectors of windows, and the mean vectors of pages. Returns chunk row -> number of its windows, and
        the vectors; None if there are none."""
        if not self._counts["vectors"]:
            return {}, None
        ids, vectors = self._reader.window_vectors()
        order = np.argsort(ids)
        ids, vectors = ids[order], vectors[order]
        rows = ids >> table_rows.WINDOW_BITS
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        last = ids[np.r_[starts[1:] - 1, len(ids) - 1]]
        # The low bits of a window's id are its number in the chunk, from 0. So a chunk's last window gives the count.
        windows = dict(
            zip(rows[starts].tolist(), ((last & (1 << table_rows.WINDOW_BITS) - 1) + 1).tolist(), strict=True)
        )
        for number, (id_, vector) in enumerate(zip(ids.tolist(), vectors, strict=True), 1):
            document = id_ >> table_rows.WINDOW_BITS + table_rows.CHUNK_BITS
            self._target.put("windows", {"id": id_, "document": document, "vector": vector.astype(np.float32)})
            if number % BATCH_CHUNKS == 0:
                self._progress("exporting vectors", number, len(ids))
        chunks = np.sort(np.fromiter((row for row, _ in self._reader.chunk_documents()), np.int64))
        table = VectorIndex(vectors, np.searchsorted(chunks, rows), chunks >> table_rows.CHUNK_BITS)
        for document, mean in zip(*table.centroids, strict=True):
            if mean.any():
                self._target.put("pages", {"id": int(document), "document": int(document), "vector": mean})
        return windows, table

    def _vocabulary(self, table: VectorIndex | None) -> None:
        frequencies = list(self._reader.vocabulary())
        buckets: list[dict[str, int]] = [{} for _ in range(max(len(frequencies) // BUCKET_TOKENS, 1))]
        for token, frequency in frequencies:
            buckets[milvus_collections.bucket(token, len(buckets))][token] = frequency
        for number, bucket in enumerate(buckets):
            self._target.put_json(milvus_collections.WORDS, number, bucket)
        mean, above = ([], 0.0) if table is None else _mean(table)
        average = self._reader.average_length()
        about = About(self._meta, self._counts, average, len(buckets), mean, above)
        self._target.put_json(milvus_collections.ABOUT, 0, {"layout": milvus_collections.LAYOUT, **asdict(about)})


def _mean(table: VectorIndex) -> tuple[list[float], float]:
    """The values ``mean`` and ``above`` of :class:`About`, for the mean cosine of a question to all chunks.

    The product with the middle of all vectors uses the mean of a chunk's windows, but a chunk counts by its best
    window. ``above`` is the difference, measured for some windows in place of questions.
    """
    middle, count = table.middle(), len(table.rows)
    sample = table.rows[np.linspace(0, count - 1, min(SAMPLE_WINDOWS, count)).astype(np.int64)].astype(np.float32)
    sample /= np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), 1)  # a vector that could not be made is all 0
    above = [table.similarity_with_page(vector).mean(dtype=np.float64) - middle @ vector for vector in sample]
    return middle.tolist(), float(np.mean(above))


def _fitting(words: str) -> str:
    """The words, cut to the size of a field. They only select candidates, so a few may be missing."""
    if len(words) <= milvus_collections.MAX_TEXT_BYTES // 4:  # a character has at most four bytes in UTF-8
        return words
    cut = words.encode("utf-8", "replace")[: milvus_collections.MAX_TEXT_BYTES].decode("utf-8", "ignore")
    return cut if len(cut) == len(words) else cut.rpartition(" ")[0]  # without the last word, which may be cut
