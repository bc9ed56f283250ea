"""Export an index to Milvus: a checked file becomes a new generation of collections, then queries move to it.

The former generation answers until then. When the same file is in Milvus already and complete, nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anvil.index_file import table_rows, verify
from anvil.index_file.fts_table import tokenizer
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, StoredChunk, StoredDocument, edition
from anvil.milvus import milvus_collections
from anvil.milvus import milvus_reader as reading
from anvil.milvus.milvus_client import WRITE_TIMEOUT_S, Client
from anvil.milvus.milvus_collections import Generation
from anvil.search.vectors_and_keywords import VectorIndex
from anvil.text.page_links import links_of
from anvil.text.query import Stemmer, path_words
from anvil.values import Progress, silent

BUCKET_TOKENS = 400
"""Tokens in a bucket of the vocabulary, about."""
SAMPLE_CHUNKS = 512
"""Chunks with several windows in a reader's sample. It estimates how far the best window is above the mean."""
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
        if is_exported and not reading.whole(client, name):
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
        self._rows: NDArray[np.int64] = np.empty(0, np.int64)

    def run(self) -> None:
        windows, table = self._vectors()
        self._pages(windows)
        self._links()
        self._vocabulary(table)
        self._target.finish()

    def _pages(self, windows: dict[int, int]) -> None:
        """Write chunks, records and the list of pages. ``windows``: chunk row -> its number of windows."""
        catalogue: list[Sequence[object]] = []
        done, total = 0, self._counts["chunks"]
        sizes, blobs = self._reader.page_sizes(), self._reader.blob_ids()
        for document in self._reader.documents():
            rows = self._reader.chunk_rows(document.id)
            for first in range(0, len(rows), BATCH_CHUNKS):
                batch = rows[first : first + BATCH_CHUNKS]
                texts, chunks = self._reader.searched_text(batch), self._reader.chunks(batch)
                hidden = self._reader.hidden(batch)
                for row in batch:
                    self._chunk(document, chunks[row], texts[row], hidden[row], windows.get(row, 0))
                done += len(batch)
                self._progress("exporting chunks", done, total)
            self._record(document, rows)
            blob, size = blobs.get(document.file_path, ""), sizes.get(document.id, (0, 0))
            listed = document.file_path, document.id, blob, document.last_modified, *size, *edition(document.metadata)
            catalogue.append(listed)
        self._target.put_json(milvus_collections.CATALOGUE, 0, catalogue)

    def _chunk(
        self, document: StoredDocument, chunk: StoredChunk, text: SearchedText, hidden: str, windows: int
    ) -> None:
        # Without the words of the path, which the reader puts behind the terms: the keyword index of a file has none.
        derived = text.terms[: len(text.terms) - len(path_words(document.file_path))]
        words = milvus_collections.COLUMN_SEPARATOR.join(
            " ".join(self._stem(column)) for column in (text.title, text.heading_path, text.content, derived)
        )
        texts = text.content, hidden, text.terms
        long = any(len(column.encode("utf-8", "replace")) > milvus_collections.MAX_TEXT_BYTES for column in texts)
        if long:
            self._target.put_json(milvus_collections.TEXT, chunk.row, texts)
        place = chunk.metadata
        self._target.put(
            "chunks",
            {
                "id": chunk.row,
                "document": document.id,
                "ordinal": chunk.ordinal,
                "heading_level": place.heading_level,
                "start": chunk.start,
                "start_line": place.start_line or 0,
                "end_line": place.end_line or 0,
                "char_count": place.char_count,
                "length": text.length,
                "windows": windows,
                "long": int(long),
                "path": document.file_path,
                "title": text.title,
                "heading_path": text.heading_path,
                "url": place.url or "",
                "last_modified": document.last_modified,
                "content": "" if long else text.content,
                "hidden": "" if long else hidden,
                "terms": "" if long else text.terms,
                "words": _fitting(words),
            },
        )

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
        self._rows = np.sort(np.fromiter((row for row, _ in self._reader.places()), np.int64))
        table = VectorIndex(vectors, np.searchsorted(self._rows, rows), self._rows >> table_rows.CHUNK_BITS)
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
        about = reading.About(
            self._meta,
            self._counts,
            self._target.rows(),
            self._reader.average_length(),
            len(buckets),
            *(((), 0.0, (), 0.0) if table is None else self._mean(table)),
        )
        self._target.put_json(milvus_collections.ABOUT, 0, {"layout": milvus_collections.LAYOUT, **asdict(about)})

    def _mean(self, table: VectorIndex) -> tuple[tuple[float, ...], float, tuple[int, ...], float]:
        """The data for the mean cosine of a query to all chunks; see :class:`anvil.milvus.milvus_reader.About`."""
        rows, several = self._rows, table.several()
        sample = several[np.linspace(0, len(several) - 1, min(SAMPLE_CHUNKS, len(several))).astype(np.int64)]
        return (
            tuple(table.middle().tolist()),
            len(several) / len(rows),
            tuple(rows[sample].tolist()),
            1 - table.holding / len(rows),
        )


def _fitting(words: str) -> str:
    """The words, cut to the size of a field. They only select candidates."""
    if len(words) <= milvus_collections.MAX_TEXT_BYTES // 4:  # UTF-8 has four bytes for a character at most
        return words
    cut = words.encode("utf-8", "replace")[: milvus_collections.MAX_TEXT_BYTES].decode("utf-8", "ignore")
    return cut if len(cut) == len(words) else cut.rpartition(" ")[0]  # the last word may be cut, too
