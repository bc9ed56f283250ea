"""Queries against a generation in Milvus: those of :class:`anvil.index_file.reader.IndexReader`, and those
of a search.

The list of pages and the last chunks are in memory. A reader is not thread-safe: threads that share one need a lock
around each call.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anvil.errors import ArtifactMissing, ArtifactRejected, FormatTooNew
from anvil.index_file import table_rows
from anvil.index_file.table_rows import Edition, SearchedText, SectionPlace, StoredChunk, StoredDocument, VectorRows
from anvil.milvus import milvus_collections
from anvil.milvus.milvus_client import READ_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone, Released
from anvil.text import visible_text
from anvil.text.page_links import LinkablePage, PossibleLink
from anvil.values import ChunkMetadata, PageChunk, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
BATCH_ROWS = 500
"""Rows of one request."""
BATCH_PAGES = 100
"""Pages whose chunks are read together."""
MAX_CACHED_CHUNKS = 2048
"""Entries of each cache."""
_FIELDS = [*milvus_collections.INTEGER_FIELDS, *milvus_collections.TEXT_FIELDS]
_WORDS = ["words", "length"]


class PageEntry(NamedTuple):
    """An entry of the list of pages, with the numbers of chunks and characters."""

    id: int
    blob_id: str
    last_modified: str
    chunks: int
    characters: int
    edition: Edition


class Words(NamedTuple):
    """The tokens of a chunk: title, breadcrumb, content and derived terms, each as a text with spaces around every
    token. ``length``: their number."""

    columns: tuple[str, ...]
    length: int


@dataclass(frozen=True, slots=True)
class About:
    """The manifest and the statistics of an exported index. ``rows``: kind -> number of rows, without these.

    The mean similarity of a query to all chunks is its product with ``mean``, plus a correction for chunks with several
    windows, minus the share ``lacking`` vectors. The correction is the mean distance of the best window from the mean
    window, estimated on the chunks of ``sample`` (rows) and weighted by the share ``several``.
    """

    meta: dict[str, str]
    counts: dict[str, int]
    rows: dict[str, int]
    average: float
    buckets: int
    mean: tuple[float, ...]
    several: float
    sample: tuple[int, ...]
    lacking: float


class MilvusReader:
    """Queries against one generation. Those that a file has, too, are described in
    :class:`anvil.index_file.reader.Reader`."""

    def __init__(self, client: Client, generation: str) -> None:
        """Raises :class:`ArtifactRejected` or :class:`FormatTooNew`."""
        self.client, self.generation = client, generation
        self.about = self._about()
        self._chunks: dict[int, dict[str, Any]] = {}
        self._words: dict[int, Words] = {}
        self._frequencies: dict[int, dict[str, int]] = {}
        self._sections: dict[int, list[SectionPlace]] = {}

    def close(self) -> None:
        """Does nothing. The owner of the client closes it."""

    def _ask(self, name: str, kind: str, **more: Any) -> Any:
        """Send a request to a collection. It is loaded first if needed, because a restarted server has none."""
        collection = f"{self.generation}_{kind}"
        try:
            return self.client.ask(name, collection, **more)
        except Released:
            self.client.ask("load_collection", collection, timeout=WRITE_TIMEOUT_S)
            return self.client.ask(name, collection, timeout=READ_TIMEOUT_S, **more)

    # --- rows and texts ------------------------------------------------------------------------------------

    def _rows(self, kind: str, ids: Iterable[int], fields: Sequence[str]) -> dict[int, dict[str, Any]]:
        """Row id -> fields; missing rows are left out."""
        row_list, rows = list(dict.fromkeys(map(int, ids))), {}
        for first in range(0, len(row_list), BATCH_ROWS):
            batch = self._ask("query", kind, ids=row_list[first : first + BATCH_ROWS], output_fields=list(fields))
            rows.update({int(row["id"]): row for row in batch})
        return rows

    def _texts(self, kind: int, numbers: Iterable[int]) -> dict[int, str]:
        """Number -> text; missing texts are left out."""
        # The first piece of a text says how many pieces there are: two requests are enough for any texts.
        firsts = {milvus_collections.part(kind, number): number for number in numbers}
        begun, more = {}, []
        for row, fields in self._rows("parts", firsts, ["text"]).items():
            count, _, text = fields["text"].partition("\n")
            begun[firsts[row]] = [text] + [""] * (int(count) - 1)
            more += [(firsts[row], piece) for piece in range(1, int(count))]
        rest = self._rows("parts", (milvus_collections.part(kind, number, piece) for number, piece in more), ["text"])
        for number, piece in more:
            begun[number][piece] = rest[milvus_collections.part(kind, number, piece)]["text"]
        return {number: "".join(texts) for number, texts in begun.items()}

    def _about(self) -> About:
        shown = self.client.shown
        try:
            about = json.loads(self._texts(milvus_collections.ABOUT, [0])[0])
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
                rows={str(kind): int(about["rows"][kind]) for kind in milvus_collections.KINDS},
                average=float(about["average"]),
                buckets=int(about["buckets"]),
                mean=tuple(map(float, about["mean"])),
                several=float(about["several"]),
                sample=tuple(map(int, about["sample"])),
                lacking=float(about["lacking"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, Gone) as error:
            raise ArtifactRejected(
                f"{shown} is not an index, or an incomplete one. Export it again with 'anvil export'."
            ) from error

    # --- manifest and counts ------------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        return dict(self.about.meta)

    def counts(self) -> dict[str, int]:
        """Rows of each table of the file that was exported."""
        return dict(self.about.counts)

    def excluded_hashes(self) -> frozenset[str] | None:
        hashes = self.about.meta.get("left_out")
        return None if hashes is None else frozenset(json.loads(hashes))

    # --- documents -------------------------------------------------------------------------------------------

    @cached_property
    def pages(self) -> Mapping[str, PageEntry]:
        """Path -> page, by path."""
        rows = json.loads(self._texts(milvus_collections.CATALOGUE, [0])[0])
        return {
            path: PageEntry(id_, blob, modified, chunks, characters, Edition(*edition))
            for path, id_, blob, modified, chunks, characters, *edition in rows
        }

    @cached_property
    def path_of(self) -> Mapping[int, str]:
        """Document id -> its path."""
        return {entry.id: path for path, entry in self.pages.items()}

    def paths(self) -> Iterator[tuple[int, str]]:
        yield from self.path_of.items()

    @cached_property
    def _links(self) -> str:
        """Kept as text, which is smaller: it is read at each change of the overlay only."""
        return self._texts(milvus_collections.LINKS, [0])[0]

    def links(self) -> dict[LinkablePage, tuple[PossibleLink, ...]]:
        """The pages, without digests, and the links in each."""
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
        return {id_: json.loads(text) for id_, text in self._texts(milvus_collections.PAGE, documents).items()}

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
        """As :meth:`anvil.index_file.reader.Reader.chunks_of_pages`, a few requests for a batch of pages."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH_PAGES)):
            rows_by_page = self._rows_by_page(batch)
            chunks = self.entities(row for id_ in batch for row in rows_by_page[id_])
            for id_ in batch:
                yield tuple(_page_chunk(chunks[row]) for row in rows_by_page[id_])

    def sections(self, document_id: int) -> tuple[Section, ...]:
        return tuple(
            Section(*row) for row in json.loads(self._texts(milvus_collections.SECTIONS, [document_id])[document_id])
        )

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        span_list = list(spans)
        documents = {document for document, _, _ in span_list}
        if len(self._sections) + len(documents) > BATCH_ROWS:
            self._sections.clear()
        for id_, text in self._texts(milvus_collections.SECTIONS, documents - self._sections.keys()).items():
            sections = (Section(*row) for row in json.loads(text))
            self._sections[id_] = [
                SectionPlace(*(getattr(section, name) for name in SectionPlace._fields)) for section in sections
            ]
        return [
            tuple(s for s in self._sections[document] if s.start < end and s.end > start)
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
        """Token -> number of chunks with it."""
        buckets = {token: milvus_collections.bucket(token, self.about.buckets) for token in tokens}
        if len(self._frequencies) > MAX_CACHED_CHUNKS:
            self._frequencies.clear()
        unknown = set(buckets.values()) - self._frequencies.keys()
        for number, text in self._texts(milvus_collections.WORDS, unknown).items():
            self._frequencies[number] = json.loads(text)
        return {token: self._frequencies.get(number, {}).get(token, 0) for token, number in buckets.items()}

    def matching(self, tokens: Iterable[str], limit: int, within: str) -> list[int]:
        """Rows of the best chunks for some tokens, by Milvus' BM25."""
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
        _add_to_cache(self._words, {int(hit["id"]): _words(hit["entity"]) for hit in hits})
        return [int(hit["id"]) for hit in hits]

    def nearest(self, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        """(chunk row, cosine) of the windows nearest to ``vector``, by Milvus' approximate index. A chunk can be in the
        result several times."""
        return [(id_ >> table_rows.WINDOW_BITS, cosine) for id_, cosine in self.near("windows", vector, limit, within)]

    def near(self, kind: str, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        """(row, cosine) of the windows, or of the pages by their mean vectors, that are nearest to ``vector``."""
        hits = self._ask(
            "search",
            kind,
            data=[vector],
            anns_field="vector",
            limit=limit,
            filter=within,
            output_fields=["document"],
            # "ef" is the number of candidates that HNSW keeps; it must not be under the limit
            search_params={"metric_type": "COSINE", "params": {"ef": max(2 * limit, 128)}},
        )[0]
        return [(int(hit["id"]), float(hit["distance"])) for hit in hits]

    def vectors(self, rows: Collection[int]) -> tuple[NDArray[np.int64], VectorRows]:
        import numpy as np

        chunks = self.entities(rows)
        windows = [table_rows.window_row(row, number) for row in rows for number in range(chunks[row]["windows"])]
        window_rows = self._rows("windows", windows, ["vector"])
        ids = sorted(window_rows)
        dimensions = int(self.about.meta["embedding_dimensions"])
        vectors = np.array([window_rows[id_]["vector"] for id_ in ids], np.float32).reshape(-1, dimensions)
        return np.array(ids, np.int64) >> table_rows.WINDOW_BITS, np.rint(vectors).astype(np.int8)

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        """As :meth:`anvil.index_file.reader.Reader.windows_of`. Spans are not exported. Windows have about the same
        size, so each gets an equal share of the text."""
        _, vectors = self.vectors([row])
        size, count = len(self.entities([row])[row]["content"]), len(vectors)
        return [
            (size * number // count, size * (number + 1) // count, vector.tobytes())
            for number, vector in enumerate(vectors)
        ]

    def centroids(self, documents: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        """Document id -> mean vector; documents without one are left out."""
        import numpy as np

        page_rows = self._rows("pages", documents, ["vector"])
        return {id_: np.array(row["vector"], np.float32) for id_, row in page_rows.items()}

    def entities(self, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Row id -> fields of the chunk."""
        row_list = list(map(int, rows))
        fields_of = {row: self._chunks[row] for row in row_list if row in self._chunks}
        new = self._rows("chunks", (row for row in row_list if row not in fields_of), _FIELDS)
        long = [row for row, fields in new.items() if fields["long"]]
        for row, text in self._texts(milvus_collections.TEXT, long).items():
            new[row]["content"], new[row]["hidden"], new[row]["terms"] = json.loads(text)
        _add_to_cache(self._chunks, new)
        fields_of |= new
        if len(fields_of) < len(set(row_list)):
            raise ArtifactRejected(f"{self.client.shown} has missing rows. Export it again.")
        return {row: fields_of[row] for row in row_list}

    def words(self, rows: Iterable[int]) -> dict[int, Words]:
        """Row id -> words; missing rows are left out."""
        row_list = list(rows)
        words_of = {row: self._words[row] for row in row_list if row in self._words}
        missing_rows = self._rows("chunks", (row for row in row_list if row not in words_of), _WORDS)
        new = {row: _words(fields) for row, fields in missing_rows.items()}
        _add_to_cache(self._words, new)
        return {**words_of, **new}

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        return {
            row: SearchedText(*(fields[name] for name in SearchedText._fields))
            for row, fields in self.entities(rows).items()
        }

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        chunks = {}
        for row, c in self.entities(rows).items():
            numbers = {name: c[name] for name in ("heading_path", "heading_level", "last_modified", "char_count")}
            unknown_if_empty: dict[str, Any] = {name: c[name] or None for name in ("start_line", "end_line", "url")}
            edition = self.pages[c["path"]].edition._asdict()
            place = ChunkMetadata(c["path"], **numbers, **unknown_if_empty, **edition)
            chunks[row] = StoredChunk(row, c["document"], c["ordinal"], c["title"], c["content"], c["start"], place)
        return chunks


def _words(fields: Mapping[str, Any]) -> Words:
    columns = f"{fields['words']} ".split(milvus_collections.COLUMN_SEPARATOR)
    return Words(tuple(f" {column.strip()} " for column in columns), int(fields["length"]))


def _add_to_cache(cache: dict[int, T], new: Mapping[int, T]) -> None:
    """Add entries to a cache, which is emptied first when it is full."""
    if len(cache) + len(new) > MAX_CACHED_CHUNKS:
        cache.clear()
    cache.update(islice(new.items(), MAX_CACHED_CHUNKS))


def whole(client: Client, generation: str) -> bool:
    """Whether all rows of a generation exist, by Milvus' own count."""
    parts = f"id >= {milvus_collections.part(milvus_collections.ABOUT + 1, 0)}"
    try:
        reader = MilvusReader(client, generation)
        row_counts = {
            kind: milvus_collections.count(partial(reader._ask, "query", kind), parts if kind == "parts" else "")
            for kind in milvus_collections.KINDS
        }
    except (ArtifactRejected, Gone):
        return False
    return row_counts == reader.about.rows


def opened(client: Client) -> MilvusReader:
    """A reader of the current generation. Raises :class:`ArtifactMissing` without one."""
    generation = milvus_collections.pointed(client)
    if generation is None:
        raise ArtifactMissing(f"There is no index {client.shown}. Write it with 'anvil export --to {client.shown}'.")
    return MilvusReader(client, generation)


def _page_chunk(fields: Mapping[str, Any]) -> PageChunk:
    content = visible_text.restored(fields["content"], fields["hidden"])
    return PageChunk(content, *(fields[name] for name in ("heading_path", "heading_level", "char_count", "ordinal")))
