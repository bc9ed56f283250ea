"""Export an index to Milvus: a checked file becomes a new generation of collections, then queries move to it.

The former generation answers until then. When the same file is in Milvus already and complete, nothing is written.
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
"""Tokens in a bucket of the vocabulary, about."""
SAMPLE_WINDOWS = 64
"""Windows whose vectors are taken as questions, to estimate the mean cosine of one to all chunks."""
GRACE_S = 2.0
"""Seconds for which the former generation stays, for queries that read it."""
BATCH_CHUNKS = 200
"""Chunks read from the file at once."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The report of an export. ``generation``: the start of the names of its collections."""

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

    Raises :class:`ArtifactError` for a file that is refused, and for a name in Milvus that belongs to something else;
    :class:`FetchError` when Milvus fails. Then the former generation answers as before.
    """
    began = time.monotonic()
    with verify.open_checked(index) as reader:
        verify.refuse_part(reader, index)
        meta, counts = reader.meta(), reader.counts()
        name = milvus_collections.generation_name(client.address.collection, meta["digest"], meta["checksum"])
        is_exported = milvus_collections.pointed(client) == name
        if is_exported and not milvus_collections.is_whole(client, name):
            # A server drops no collection that an alias points at.
            client.ask("drop_alias", client.address.collection, timeout=WRITE_TIMEOUT_S)
            is_exported = False
        if not is_exported:
            milvus_collections.without_others(client, None)  # the rest of an interrupted export
            _Export(reader, Generation(client, name, int(meta["embedding_dimensions"])), progress).run()
            reading.MilvusReader(client, name)  # raises where it cannot be read, before queries move to it
            if milvus_collections.point(client, name) is not None:
                time.sleep(grace)
        milvus_collections.without_others(client, name)
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
        """Write chunks, records and the list of pages. ``windows``: chunk row -> its number of windows."""
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
        # Without the words of the path, which the reader puts behind the terms: the keyword index of a file has none.
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
        """Write the links in all pages, unresolved: a page of an overlay can change where they lead."""
        pages = self._reader.addresses()
        links = links_of(pages, self._reader.page_texts())
        rows = [[page.id, page.url, links.get(page.id, ())] for page in pages]
        self._target.put_json(milvus_collections.LINKS, 0, rows)

    def _vectors(self) -> tuple[dict[int, int], VectorIndex | None]:
        """Write windows and pages' means. Returns chunk row -> its number of windows."""
        if not self._counts["vectors"]:
            return {}, None
        ids, vectors = self._reader.window_vectors()
        order = np.argsort(ids)
        ids, vectors = ids[order], vectors[order]
        rows = ids >> table_rows.WINDOW_BITS
        starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        last = ids[np.r_[starts[1:] - 1, len(ids) - 1]]
        # The low bits of a window's id are its number in the chunk, from 0: the last one tells how many there are.
        windows = dict(
            zip(rows[starts].tolist(), ((last & (1 << table_rows.WINDOW_BITS) - 1) + 1).tolist(), strict=True)
        )
        for number, (id_, vector) in enumerate(zip(ids.tolist(), vectors, strict=True), 1):
            document = id_ >> table_rows.WINDOW_BITS + table_rows.CHUNK_BITS
            self._target.put("windows", {"id": id_, "document": document, "vector": vector.astype(np.float32)})
            if number % BATCH_CHUNKS == 0:
                self._progress("exporting vectors", number, len(ids))
        chunks = np.sort(np.fromiter((row for row, _ in self._reader.places()), np.int64))
        table = VectorIndex(vectors, np.searchsorted(chunks, rows), chunks >> table_rows.CHUNK_BITS)
        for document, mean in zip(*table.centroids, strict=True):
            if mean.any():
                self._target.put("pages", {"id": int(document), "document": int(document), "vector": mean})
        return windows, table

    def _vocabulary(self, table: VectorIndex | None) -> None:
        """Write the buckets of the vocabulary, and the record about the index."""
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
    """The data for the mean cosine of a question, see :class:`About`. The product with the middle of all vectors has
    the mean of the windows of a chunk instead of its best one: the difference is that of some windows, taken as
    questions."""
    middle, count = table.middle(), len(table.rows)
    sample = table.rows[np.linspace(0, count - 1, min(SAMPLE_WINDOWS, count)).astype(np.int64)].astype(np.float32)
    sample /= np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), 1)  # one that could not be made is all 0
    above = [table.similarity_with_page(vector).mean(dtype=np.float64) - middle @ vector for vector in sample]
    return middle.tolist(), float(np.mean(above))


def _fitting(words: str) -> str:
    """The words, cut to the size of a field. They only select candidates."""
    if len(words) <= milvus_collections.MAX_TEXT_BYTES // 4:  # UTF-8 has four bytes for a character at most
        return words
    cut = words.encode("utf-8", "replace")[: milvus_collections.MAX_TEXT_BYTES].decode("utf-8", "ignore")
    return cut if len(cut) == len(words) else cut.rpartition(" ")[0]  # the last word may be cut, too
