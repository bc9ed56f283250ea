"""Reading a generation in Milvus: pages, chunks, words, vectors, links; and together with an overlay of changed pages.

The queries are those of :class:`anvil.index_file.reader.IndexReader`. The list of pages and the last chunks are in
memory. A reader is not thread-safe: threads that share one need a lock around each call.

The overlay is a small index in memory with pages that changed or are new. A page that changed or was removed is masked:
its rows on the server are not used.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from anvil.errors import ArtifactMissing, ArtifactRejected, FormatTooNew
from anvil.index_file import connection, table_rows
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, SectionPlace, StoredChunk, StoredDocument, VectorRows
from anvil.index_file.writer import Writer
from anvil.milvus import milvus_collections
from anvil.milvus.milvus_client import READ_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone, Released
from anvil.milvus.milvus_collections import About, ChunkFields, PageEntry, nearest_params
from anvil.search.candidates import RowCache
from anvil.text import visible_text
from anvil.text.link_popularity import LinkablePage, PageLinks, PossibleLink, links_of
from anvil.values import PageChunk, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_ROWS = 500
"""Rows of one request."""
BATCH_PAGES = 100
"""Pages whose chunks are read together."""
_WORDS = ["words", "length"]


class Words(NamedTuple):
    """The tokens of a chunk. ``columns``: title, breadcrumb, content and derived terms, each as one text with spaces
    around every token. ``length``: the number of tokens."""

    columns: tuple[str, ...]
    length: int


class MilvusReader:
    """Queries against one generation. :class:`anvil.index_file.reader.Reader` describes those that a file has, too."""

    def __init__(self, client: Client, generation: str) -> None:
        """Read the manifest. Raises :class:`ArtifactRejected` or :class:`FormatTooNew` if it cannot be used."""
        self.client, self.generation = client, generation
        self.about = self._about()
        self._chunks, self.words = RowCache(self._read_chunks), RowCache(self._read_words)
        self._frequencies: RowCache[dict[str, int]] = RowCache(partial(self._values, milvus_collections.WORDS))
        self._sections = RowCache(self._read_sections)
        self.centroids = RowCache(self._read_centroids)
        """Document id -> mean vector; documents without one are left out."""

    def close(self) -> None:
        """Does nothing. The owner of the client closes it."""

    def _ask(self, name: str, kind: str, **more: Any) -> Any:
        """Send a request to a kind's collection, which is loaded first if it is not, as after a server's restart."""
        collection = f"{self.generation}_{kind}"
        try:
            return self.client.ask(name, collection, **more)
        except Released:
            self.client.ask("load_collection", collection, timeout=WRITE_TIMEOUT_S)
            return self.client.ask(name, collection, timeout=READ_TIMEOUT_S, **more)

    # --- rows and texts ------------------------------------------------------------------------------------

    def _rows(self, kind: str, ids: Iterable[int], fields: Sequence[str]) -> dict[int, dict[str, Any]]:
        """Row id -> fields; rows that do not exist are left out."""
        row_list, rows = list(dict.fromkeys(map(int, ids))), {}
        for first in range(0, len(row_list), BATCH_ROWS):
            batch = self._ask("query", kind, ids=row_list[first : first + BATCH_ROWS], output_fields=list(fields))
            rows.update({int(row["id"]): row for row in batch})
        return rows

    def _texts(self, kind: int, numbers: Iterable[int]) -> dict[int, str]:
        """Number -> text of the texts of a kind; numbers without a text are left out."""
        # The first piece of a text says how many pieces it has. So two rounds of requests are enough.
        firsts = {milvus_collections.part(kind, number): number for number in numbers}
        pieces: dict[int, list[str]] = {}
        missing: dict[int, tuple[int, int]] = {}
        for row, fields in self._rows("parts", firsts, ["text"]).items():
            number = firsts[row]
            count, _, text = fields["text"].partition("\n")
            pieces[number] = [text] + [""] * (int(count) - 1)
            missing |= {milvus_collections.part(kind, number, i): (number, i) for i in range(1, int(count))}
        others = self._rows("parts", missing, ["text"])
        for row, (number, i) in missing.items():
            pieces[number][i] = others[row]["text"]
        return {number: "".join(texts) for number, texts in pieces.items()}

    def _values(self, kind: int, numbers: Iterable[int]) -> dict[int, Any]:
        return {number: json.loads(text) for number, text in self._texts(kind, numbers).items()}

    def _about(self) -> About:
        shown = self.client.shown
        try:
            about = self._values(milvus_collections.ABOUT, [0])[0]
            if about["layout"] > milvus_collections.LAYOUT:
                raise FormatTooNew(
                    f"{shown} was exported by a newer Anvil (layout {about['layout']}). Upgrade with "
                    "'pip install -U anvil-docs'."
                )
            if about["layout"] != milvus_collections.LAYOUT:
                raise ArtifactRejected(f"{shown} has the old layout {about['layout']}. Export it again.")
            return About(
                meta={str(key): str(value) for key, value in about["meta"].items()},
                counts={str(key): int(value) for key, value in about["counts"].items()},
                average=float(about["average"]),
                buckets=int(about["buckets"]),
                mean=list(map(float, about["mean"])),
                above=float(about["above"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, Gone) as error:
            raise ArtifactRejected(
                f"{shown} is not an index, or an incomplete one. Export it again with 'anvil export'."
            ) from error

    # --- manifest and counts ------------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        return dict(self.about.meta)

    def counts(self) -> dict[str, int]:
        """Table -> number of rows in the file that was exported."""
        return dict(self.about.counts)

    def excluded_hashes(self) -> frozenset[str] | None:
        hashes = self.about.meta.get("left_out")
        return None if hashes is None else frozenset(json.loads(hashes))

    # --- documents -------------------------------------------------------------------------------------------

    @cached_property
    def pages(self) -> Mapping[str, PageEntry]:
        """Path -> entry of the page, in the order of paths."""
        rows = self._values(milvus_collections.CATALOGUE, [0])[0]
        return {entry.path: entry for entry in (PageEntry(*row) for row in rows)}

    @cached_property
    def path_of(self) -> Mapping[int, str]:
        return {entry.id: path for path, entry in self.pages.items()}

    def paths(self) -> Iterator[tuple[int, str]]:
        yield from self.path_of.items()

    @cached_property
    def _links(self) -> str:
        """The links as text, which takes less memory. They are parsed only when the overlay changes."""
        return self._texts(milvus_collections.LINKS, [0])[0]

    def links(self) -> dict[LinkablePage, tuple[PossibleLink, ...]]:
        """Page -> links in it. The pages have no digests."""
        return {
            LinkablePage(id_, self.path_of[id_], url, b""): tuple(
                PossibleLink(text, tuple(targets)) for text, targets in links
            )
            for id_, url, links in json.loads(self._links)
        }

    def blob_ids(self) -> dict[str, str]:
        return {path: entry.blob_id for path, entry in self.pages.items() if entry.blob_id}

    def identities(self) -> dict[str, str]:
        return {path: entry.blob_id for path, entry in self.pages.items()}

    def times(self) -> dict[str, tuple[str, str]]:
        return {path: (entry.blob_id, entry.last_modified) for path, entry in self.pages.items()}

    def _records(self, documents: Iterable[int]) -> dict[int, dict[str, Any]]:
        return self._values(milvus_collections.PAGE, documents)

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        folder = f"{prefix}/"
        chosen = [e.id for path, e in self.pages.items() if not prefix or path == prefix or path.startswith(folder)]
        for first in range(0, len(chosen), BATCH_ROWS):
            records = self._records(chosen[first : first + BATCH_ROWS])
            yield from (StoredDocument(id_, *records[id_]["document"]) for id_ in chosen[first : first + BATCH_ROWS])

    def document(self, file_path: str) -> StoredDocument | None:
        entry = self.pages.get(file_path)
        return StoredDocument(entry.id, *self._records([entry.id])[entry.id]["document"]) if entry else None

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        return next(self.chunks_of_pages([document_id]))

    def chunks_of_pages(self, documents: Iterable[int]) -> Iterator[tuple[PageChunk, ...]]:
        """As :meth:`anvil.index_file.reader.Reader.chunks_of_pages`, with a few requests for a batch of pages."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH_PAGES)):
            rows_by_page = self._rows_by_page(batch)
            chunks = self._chunks.get(row for id_ in batch for row in rows_by_page[id_])
            for id_ in batch:
                yield tuple(_page_chunk(chunks[row]) for row in rows_by_page[id_])

    def sections(self, document_id: int) -> tuple[Section, ...]:
        return self._sections.get([document_id])[document_id]

    def _read_sections(self, documents: list[int]) -> dict[int, tuple[Section, ...]]:
        values = self._values(milvus_collections.SECTIONS, documents)
        return {id_: tuple(Section(*row) for row in rows) for id_, rows in values.items()}

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        span_list = list(spans)
        sections = self._sections.get(document for document, _, _ in span_list)
        return [
            tuple(
                SectionPlace(*(getattr(section, name) for name in SectionPlace._fields))
                for section in sections[document]
                if section.start < end and section.end > start
            )
            for document, start, end in span_list
        ]

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        return {entry.id: (entry.chunks, entry.characters) for entry in self.pages.values()}

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        return {id_: tuple(record["headings"]) for id_, record in self._records(documents).items()}

    # --- search ----------------------------------------------------------------------------------------------

    def rows_of(self, documents: Iterable[int]) -> list[int]:
        """The chunk rows of documents, in order within each."""
        return [row for rows in self._rows_by_page(documents).values() for row in rows]

    def _rows_by_page(self, documents: Iterable[int]) -> dict[int, list[int]]:
        records = self._records(documents)
        return {id_: [table_rows.chunk_range(id_)[0] + slot for slot in r["slots"]] for id_, r in records.items()}

    def average_length(self) -> float:
        return self.about.average

    def frequencies(self, tokens: Iterable[str]) -> dict[str, int]:
        buckets = {token: milvus_collections.bucket(token, self.about.buckets) for token in tokens}
        frequencies = self._frequencies.get(buckets.values())
        return {token: frequencies.get(number, {}).get(token, 0) for token, number in buckets.items()}

    def matching(self, tokens: Iterable[str], limit: int, within: str) -> list[int]:
        """Rows of the best chunks for some tokens, by Milvus' BM25. ``within``: a filter."""
        hits = self._ask(
            "search",
            "chunks",
            data=[" ".join(tokens)],
            anns_field="bm25",
            limit=limit,
            filter=within,
            output_fields=_WORDS,
            search_params={"metric_type": "BM25"},
        )[0]
        self.words.add({int(hit["id"]): _words(hit["entity"]) for hit in hits})
        return [int(hit["id"]) for hit in hits]

    def near(self, kind: str, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        """(row, cosine) of the rows nearest to ``vector``, by Milvus' approximate index. ``kind``: ``windows``, or
        ``pages`` by their mean vectors. ``within``: a filter."""
        hits = self._ask(
            "search",
            kind,
            data=[vector],
            anns_field="vector",
            limit=limit,
            filter=within,
            output_fields=["document"],
            search_params=nearest_params(limit),
        )[0]
        return [(int(hit["id"]), float(hit["distance"])) for hit in hits]

    def vectors(self, rows: Collection[int]) -> tuple[NDArray[np.int64], VectorRows]:
        import numpy as np

        chunks = self._chunks.get(rows)
        windows = [table_rows.window_row(row, number) for row in rows for number in range(chunks[row].windows)]
        window_rows = self._rows("windows", windows, ["vector"])
        ids = sorted(window_rows)
        dimensions = int(self.about.meta["embedding_dimensions"])
        vectors = np.array([window_rows[id_]["vector"] for id_ in ids], np.float32).reshape(-1, dimensions)
        return np.array(ids, np.int64) >> table_rows.WINDOW_BITS, np.rint(vectors).astype(np.int8)

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        """As :meth:`anvil.index_file.reader.Reader.windows_of`, with approximate spans: they are not exported. Windows
        have about the same size, so each gets an equal share of the text."""
        _, vectors = self.vectors([row])
        size, count = len(self._chunks.get([row])[row].content), len(vectors)
        return [
            (size * number // count, size * (number + 1) // count, vector.tobytes())
            for number, vector in enumerate(vectors)
        ]

    def _read_centroids(self, documents: list[int]) -> dict[int, NDArray[np.float32]]:
        import numpy as np

        page_rows = self._rows("pages", documents, ["vector"])
        return {id_: np.array(row["vector"], np.float32) for id_, row in page_rows.items()}

    def _read_chunks(self, rows: list[int]) -> dict[int, ChunkFields]:
        names = ChunkFields._fields
        stored = self._rows("chunks", rows, names)
        if len(stored) < len(rows):
            raise ArtifactRejected(f"{self.client.shown} has missing rows. Export it again.")
        chunks = {row: ChunkFields(*(fields[name] for name in names)) for row, fields in stored.items()}
        long = [row for row, fields in chunks.items() if fields.long]
        for row, (content, hidden, terms) in self._values(milvus_collections.TEXT, long).items():
            chunks[row] = chunks[row]._replace(content=content, hidden=hidden, terms=terms)
        return chunks

    def _read_words(self, rows: list[int]) -> dict[int, Words]:
        return {row: _words(fields) for row, fields in self._rows("chunks", rows, _WORDS).items()}

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        return {
            row: SearchedText(*(getattr(fields, name) for name in SearchedText._fields))
            for row, fields in self._chunks.get(rows).items()
        }

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        return {row: fields.stored(self.pages[fields.path]) for row, fields in self._chunks.get(rows).items()}


def _words(fields: Mapping[str, Any]) -> Words:
    columns = f"{fields['words']} ".split(milvus_collections.COLUMN_SEPARATOR)
    return Words(tuple(f" {column.strip()} " for column in columns), int(fields["length"]))


def open_current(client: Client) -> MilvusReader:
    """A reader of the current generation. Raises :class:`ArtifactMissing` if there is none."""
    generation = milvus_collections.current_generation(client)
    if generation is None:
        raise ArtifactMissing(f"There is no index {client.shown}. Write it with 'anvil export --to {client.shown}'.")
    return MilvusReader(client, generation)


def _page_chunk(fields: ChunkFields) -> PageChunk:
    content = visible_text.restored(fields.content, fields.hidden)
    return PageChunk(content, fields.heading_path, fields.heading_level, fields.char_count, fields.ordinal)


# --- the overlay of changed pages ----------------------------------------------------------------------------------


class _OverlayReader(Reader):
    """The reader of an overlay. It knows the times of exported pages, too, so the source need not look them up."""

    def __init__(self, overlay: Writer, below: MilvusReader) -> None:
        super().__init__(overlay.connection)
        self._below = below

    def times(self) -> dict[str, tuple[str, str]]:
        return {**self._below.times(), **super().times()}


class Overlay(Writer):
    """The pages that changed since the export; none at first. An exported page keeps its id, and a new page gets an
    unused one."""

    def __init__(self, below: MilvusReader) -> None:
        super().__init__(connection.open_scratch(":memory:"))
        self.reader = _OverlayReader(self, below)
        self._below = below
        meta = below.meta()
        connection.create_tables(self.connection, int(meta["embedding_dimensions"]))
        self.set_meta({key: meta[key] for key in (*SETTINGS, "commit") if key in meta})
        self.seal()

    def new_id(self, library: str, path: str, besides: Container[int] = ()) -> int:
        exported = self._below.pages.get(path)
        return exported.id if exported else super().new_id(library, path, self._below.path_of)


class LayeredReader:
    """An :class:`anvil.index_file.reader.IndexReader` over the export (``below``) and the overlay (``above``).
    ``masked``: ids of exported documents that are not used."""

    def __init__(self, below: MilvusReader, above: Reader, masked: frozenset[int]) -> None:
        self.below, self.above, self.masked = below, above, masked

    @cached_property
    def listed(self) -> list[tuple[str, int, int]]:
        """(path, document id, number of chunks) of all pages, by path."""
        rows = [(path, e.id, e.chunks) for path, e in self.below.pages.items() if e.id not in self.masked]
        sizes = self.above.page_sizes()
        return sorted(rows + [(d.file_path, d.id, sizes.get(d.id, (0, 0))[0]) for d in self.above.documents()])

    def is_above(self, document: int) -> bool:
        """Whether a document belongs to the overlay and not to the export."""
        return document in self.masked or document not in self.below.path_of

    def _split(self, ids: Iterable[int], shift: int = 0) -> tuple[list[int], list[int]]:
        """The ids in the export, and in the overlay. ``shift``: bits behind the document in an id; 0 for documents."""
        below: list[int] = []
        above: list[int] = []
        for id_ in map(int, ids):
            (above if self.is_above(id_ >> shift) else below).append(id_)
        return below, above

    # --- the whole index -------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        return self.below.meta()

    def counts(self) -> dict[str, int]:
        """Numbers of documents and chunks in both; the other numbers are those of the export."""
        chunks = sum(chunks for _, _, chunks in self.listed)
        return {**self.below.counts(), "documents": len(self.listed), "chunks": chunks}

    def excluded_hashes(self) -> frozenset[str] | None:
        return self.below.excluded_hashes()

    def average_length(self) -> float:
        """Mean number of words in a chunk of the export, which a few changed pages do not alter much."""
        return self.below.average_length()

    def links(self) -> PageLinks:
        """The links between the pages of both, as those of one file."""
        exported = {page: links for page, links in self.below.links().items() if page.id not in self.masked}
        new = self.above.addresses()
        links = {page.id: links for page, links in exported.items()} | links_of(new, self.above.page_texts())
        return PageLinks(sorted([*exported, *new], key=attrgetter("path")), links)

    # --- documents -------------------------------------------------------------------------------------------

    def blob_ids(self) -> dict[str, str]:
        blobs = {path: e.blob_id for path, e in self.below.pages.items() if e.blob_id and e.id not in self.masked}
        return dict(sorted({**blobs, **self.above.blob_ids()}.items()))

    def identities(self) -> dict[str, str]:
        identities = {path: e.blob_id for path, e in self.below.pages.items() if e.id not in self.masked}
        return dict(sorted({**identities, **self.above.identities()}.items()))

    def paths(self) -> Iterator[tuple[int, str]]:
        yield from ((id_, path) for id_, path in self.below.path_of.items() if id_ not in self.masked)
        yield from self.above.paths()

    def about_deprecation(self) -> Iterator[tuple[int, Any, str, str]]:
        pages = self.below.pages.values()
        yield from ((page.id, True, "", "") for page in pages if page.deprecated and page.id not in self.masked)
        yield from self.above.about_deprecation()

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        exported = (document for document in self.below.documents(prefix) if document.id not in self.masked)
        yield from heapq.merge(self.above.documents(prefix), exported, key=attrgetter("file_path"))

    def document(self, file_path: str) -> StoredDocument | None:
        document = self.above.document(file_path)
        if document is None and (page := self.below.pages.get(file_path)) and page.id not in self.masked:
            document = self.below.document(file_path)
        return document

    def _of(self, document: int) -> MilvusReader | Reader:
        return self.above if self.is_above(document) else self.below

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        return self._of(document_id).page_chunks(document_id)

    def chunks_of_pages(self, documents: Iterable[int]) -> Iterator[tuple[PageChunk, ...]]:
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH_PAGES)):
            below, above = self._split(batch)
            chunks = dict(zip(below, self.below.chunks_of_pages(below), strict=True))
            chunks |= zip(above, self.above.chunks_of_pages(above), strict=True)
            yield from (chunks[id_] for id_ in batch)

    def sections(self, document_id: int) -> tuple[Section, ...]:
        return self._of(document_id).sections(document_id)

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        requested = list(spans)
        below = [span for span in requested if not self.is_above(span[0])]
        places = dict(zip(below, self.below.sections_in(below), strict=True))
        above = [span for span in requested if self.is_above(span[0])]
        places |= zip(above, self.above.sections_in(above), strict=True)
        return [places[span] for span in requested]

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        return {**self.below.page_sizes(), **self.above.page_sizes()}

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        below, above = self._split(documents)
        return {**self.below.top_headings(below), **self.above.top_headings(above)}

    # --- search ----------------------------------------------------------------------------------------------

    def rows_of(self, documents: Iterable[int]) -> list[int]:
        below, above = self._split(documents)
        return self.below.rows_of(below) + [row for document in above for row in self.above.chunk_rows(document)]

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        below, above = self._split(rows, table_rows.CHUNK_BITS)
        return {**self.below.searched_text(below), **self.above.searched_text(above)}

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        return self._of(row >> table_rows.CHUNK_BITS).windows_of(row)

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        below, above = self._split(rows, table_rows.CHUNK_BITS)
        return {**self.below.chunks(below), **self.above.chunks(above)}
