"""Reads one generation in Milvus: what :class:`anvil.backends.store.reader_protocol.IndexReader` names, and what
a search asks.

Held in memory are the pages (path, id, blob id and sizes of each) and the last few chunks that were asked for; no
text, no vector and no row of the others. It is not thread-safe: whoever shares one holds a lock around each call.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anvil.backends.milvus import schema, writer
from anvil.backends.milvus.client import READ_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone, Released
from anvil.backends.store import row_ids
from anvil.backends.store.rows import SearchedText, SectionPlace, StoredChunk, StoredDocument
from anvil.core.markdown import visible_text
from anvil.errors import ArtifactMissing, ArtifactRejected, FormatTooNew
from anvil.models.documents import ChunkMetadata, PageChunk, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
BATCH_ROWS = 500
"""Rows asked for at once."""
MAX_CACHED_CHUNKS = 2048
"""Chunks, and of each kind of vector as many, that are kept."""
_FIELDS = [
    "document",
    "ordinal",
    "heading_level",
    "start",
    "start_line",
    "end_line",
    "char_count",
    "length",
    "windows",
    "long",
    "path",
    "title",
    "heading_path",
    "url",
    "last_modified",
    "content",
    "hidden",
    "terms",
]
_WORDS = ["words", "length"]


class PageEntry(NamedTuple):
    """A page in the list of pages. ``chunks`` and ``characters`` are its sizes."""

    id: int
    blob_id: str
    last_modified: str
    chunks: int
    characters: int


class Words(NamedTuple):
    """The tokens of a chunk's title, breadcrumb, content and derived terms, each column between blanks, and how many
    they are."""

    columns: tuple[str, ...]
    length: int


@dataclass(frozen=True, slots=True)
class About:
    """What an index in Milvus says of itself. ``rows``: of each kind of collection, those that say this not among them.

    The mean nearness of a question to all chunks is its product with ``mean``, and, for the ``several`` (a share) that
    have more windows than one, how far the best of them is above their mean, as in the ``sample`` (chunk rows), less
    the share ``lacking`` vectors."""

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
    """Questions to one generation."""

    def __init__(self, client: Client, generation: str) -> None:
        """Raises :class:`ArtifactRejected` or :class:`FormatTooNew` when it is not one that can be read."""
        self.client, self.generation = client, generation
        self.about = self._about()
        self._chunks: dict[int, dict[str, Any]] = {}
        self._words: dict[int, Words] = {}
        self._frequencies: dict[int, dict[str, int]] = {}
        self._sections: dict[int, list[SectionPlace]] = {}

    def close(self) -> None:
        """Nothing is held; the client is its owner's."""

    def _ask(self, name: str, kind: str, **more: Any) -> Any:
        """Ask a collection, having it loaded first where it is not: a server that was started anew has none."""
        collection = f"{self.generation}_{kind}"
        try:
            return self.client.ask(name, collection, **more)
        except Released:
            self.client.ask("load_collection", collection, timeout=WRITE_TIMEOUT_S)
            return self.client.ask(name, collection, timeout=READ_TIMEOUT_S, **more)

    # --- rows and texts ------------------------------------------------------------------------------------

    def _rows(self, kind: str, ids: Iterable[int], fields: Sequence[str]) -> dict[int, dict[str, Any]]:
        """Row -> its fields, of those that are there."""
        wanted, found = list(dict.fromkeys(map(int, ids))), {}
        for first in range(0, len(wanted), BATCH_ROWS):
            some = self._ask("query", kind, ids=wanted[first : first + BATCH_ROWS], output_fields=list(fields))
            found.update({int(row["id"]): row for row in some})
        return found

    def _texts(self, kind: int, numbers: Iterable[int]) -> dict[int, str]:
        """Number -> its text, of those that are there."""
        firsts = {schema.part(kind, number): number for number in numbers}
        begun, more = {}, []
        for row, fields in self._rows("parts", firsts, ["text"]).items():
            count, _, text = fields["text"].partition("\n")
            begun[firsts[row]] = [text] + [""] * (int(count) - 1)
            more += [(firsts[row], piece) for piece in range(1, int(count))]
        rest = self._rows("parts", (schema.part(kind, *each) for each in more), ["text"])
        for number, piece in more:
            begun[number][piece] = rest[schema.part(kind, number, piece)]["text"]
        return {number: "".join(texts) for number, texts in begun.items()}

    def _about(self) -> About:
        shown = self.client.shown
        try:
            said = json.loads(self._texts(schema.ABOUT, [0])[0])
            if said["layout"] > schema.LAYOUT:
                raise FormatTooNew(
                    f"{shown} was exported by a newer Anvil (layout {said['layout']}). Upgrade with "
                    "'pip install -U anvil-docs'."
                )
            if said["layout"] != schema.LAYOUT:
                raise ArtifactRejected(f"{shown} has the old layout {said['layout']}. Export it again.")
            return About(
                meta={str(key): str(value) for key, value in said["meta"].items()},
                counts={str(key): int(value) for key, value in said["counts"].items()},
                rows={str(kind): int(said["rows"][kind]) for kind in schema.KINDS},
                average=float(said["average"]),
                buckets=int(said["buckets"]),
                mean=tuple(map(float, said["mean"])),
                several=float(said["several"]),
                sample=tuple(map(int, said["sample"])),
                lacking=float(said["lacking"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, Gone) as error:
            raise ArtifactRejected(
                f"{shown} is not an index, or not a whole one. Export it again with 'anvil export'."
            ) from error

    # --- what it is ------------------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """The manifest's keys and values."""
        return dict(self.about.meta)

    def counts(self) -> dict[str, int]:
        """Rows of each table of the file that was exported."""
        return dict(self.about.counts)

    def excluded_hashes(self) -> frozenset[str] | None:
        """Files that the site of this index leaves out, their paths hashed; None when it was made with no site."""
        written = self.about.meta.get("left_out")
        return None if written is None else frozenset(json.loads(written))

    def whole(self) -> bool:
        """Whether all rows are there that were written. Milvus counts them."""
        said = f"id >= {schema.part(schema.ABOUT + 1, 0)}"
        try:
            found = {
                kind: self._ask(
                    "query",
                    kind,
                    filter=said if kind == "parts" else "",
                    output_fields=["count(*)"],
                    consistency_level="Strong",
                )[0]["count(*)"]
                for kind in schema.KINDS
            }
        except Gone:
            return False
        return found == self.about.rows

    # --- documents -------------------------------------------------------------------------------------------

    @cached_property
    def pages(self) -> Mapping[str, PageEntry]:
        """All pages by their paths, in this order."""
        rows = json.loads(self._texts(schema.CATALOGUE, [0])[0])
        return {path: PageEntry(*entry) for path, *entry in rows}

    @cached_property
    def paths(self) -> Mapping[int, str]:
        """Document id -> its path."""
        return {entry.id: path for path, entry in self.pages.items()}

    def blob_ids(self) -> dict[str, str]:
        """POSIX path -> git blob id, of the documents that have a source file."""
        return {path: entry.blob_id for path, entry in self.pages.items() if entry.blob_id}

    def identities(self) -> dict[str, str]:
        """POSIX path -> blob id, of all documents."""
        return {path: entry.blob_id for path, entry in self.pages.items()}

    def times(self) -> dict[str, tuple[str, str]]:
        """POSIX path -> (blob id, last modified)."""
        return {path: (entry.blob_id, entry.last_modified) for path, entry in self.pages.items()}

    def _records(self, documents: Iterable[int]) -> dict[int, dict[str, Any]]:
        return {id_: json.loads(text) for id_, text in self._texts(schema.PAGE, documents).items()}

    def documents(self, prefix: str = "") -> Iterator[StoredDocument]:
        """Documents sorted by path; ``prefix`` is a folder without trailing slash."""
        folder = f"{prefix}/"
        chosen = [e.id for path, e in self.pages.items() if not prefix or path == prefix or path.startswith(folder)]
        for first in range(0, len(chosen), BATCH_ROWS):
            some = self._records(chosen[first : first + BATCH_ROWS])
            yield from (StoredDocument(id_, *some[id_]["document"]) for id_ in chosen[first : first + BATCH_ROWS])

    def document(self, file_path: str) -> StoredDocument | None:
        """The document at a path."""
        entry = self.pages.get(file_path)
        return StoredDocument(entry.id, *self._records([entry.id])[entry.id]["document"]) if entry else None

    def page_chunks(self, document_id: int) -> tuple[PageChunk, ...]:
        """A document's chunks in its own order."""
        rows = self.rows_of([document_id])
        chunks = self.entities(rows)
        return tuple(
            PageChunk(
                content=visible_text.restored(c["content"], c["hidden"]),
                heading_path=c["heading_path"],
                heading_level=c["heading_level"],
                char_count=c["char_count"],
                ordinal=c["ordinal"],
            )
            for c in (chunks[row] for row in rows)
        )

    def sections(self, document_id: int) -> tuple[Section, ...]:
        """A document's sections in its own order."""
        return tuple(Section(*each) for each in json.loads(self._texts(schema.SECTIONS, [document_id])[document_id]))

    def sections_in(self, spans: Iterable[tuple[int, int, int]]) -> list[tuple[SectionPlace, ...]]:
        """For each (document id, start, end): as :meth:`anvil.backends.store.reader.Reader.sections_in`."""
        wanted = list(spans)
        documents = {document for document, _, _ in wanted}
        if len(self._sections) + len(documents) > BATCH_ROWS:
            self._sections.clear()
        for id_, text in self._texts(schema.SECTIONS, documents - self._sections.keys()).items():
            places = (Section(*each) for each in json.loads(text))
            self._sections[id_] = [
                SectionPlace(
                    heading_path=s.heading_path,
                    heading_level=s.heading_level,
                    anchor=s.anchor,
                    start=s.start,
                    end=s.end,
                    start_line=s.start_line,
                    end_line=s.end_line,
                )
                for s in places
            ]
        return [
            tuple(s for s in self._sections[document] if s.start < end and s.end > start)
            for document, start, end in wanted
        ]

    def page_sizes(self) -> dict[int, tuple[int, int]]:
        """Document id -> (number of chunks, characters)."""
        return {entry.id: (entry.chunks, entry.characters) for entry in self.pages.values()}

    def top_headings(self, documents: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Document id -> its h1 and h2 texts in order."""
        return {id_: tuple(each["headings"]) for id_, each in self._records(documents).items()}

    # --- search ----------------------------------------------------------------------------------------------

    def rows_of(self, documents: Iterable[int]) -> list[int]:
        """The chunk rows of some documents, each in its own order."""
        records = self._records(documents)
        return [row_ids.chunk_range(id_)[0] + slot for id_, each in records.items() for slot in each["slots"]]

    def average_length(self) -> float:
        """Words a chunk."""
        return self.about.average

    def frequencies(self, tokens: Iterable[str]) -> dict[str, int]:
        """Token -> how many chunks hold it."""
        places = {token: schema.bucket(token, self.about.buckets) for token in tokens}
        if len(self._frequencies) > MAX_CACHED_CHUNKS:
            self._frequencies.clear()
        unknown = set(places.values()) - self._frequencies.keys()
        for number, text in self._texts(schema.WORDS, unknown).items():
            self._frequencies[number] = json.loads(text)
        return {token: self._frequencies.get(number, {}).get(token, 0) for token, number in places.items()}

    def matching(self, tokens: Iterable[str], limit: int, within: str) -> list[int]:
        """Rows of the chunks that Milvus' BM25 finds to fit some tokens best."""
        found = self._ask(
            "search",
            "chunks",
            data=[" ".join(tokens)],
            anns_field="bm25",
            limit=limit,
            filter=within,
            output_fields=_WORDS,
            search_params={"metric_type": "BM25"},
        )[0]
        _keep(self._words, {int(hit["id"]): _words(hit["entity"]) for hit in found})
        return [int(hit["id"]) for hit in found]

    def nearest(self, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        """(chunk row, cosine) of the windows nearest to ``vector`` as Milvus' index finds them; a chunk may come
        more than once."""
        return [(id_ >> row_ids.WINDOW_BITS, cosine) for id_, cosine in self._near("windows", vector, limit, within)]

    def nearest_pages(self, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        """(document, cosine) of the pages whose mean is nearest to ``vector``."""
        return self._near("pages", vector, limit, within)

    def _near(self, kind: str, vector: NDArray[np.float32], limit: int, within: str) -> list[tuple[int, float]]:
        found = self._ask(
            "search",
            kind,
            data=[vector],
            anns_field="vector",
            limit=limit,
            filter=within,
            output_fields=["document"],
            search_params={"metric_type": "COSINE", "params": {"ef": max(2 * limit, 128)}},
        )[0]
        return [(int(hit["id"]), float(hit["distance"])) for hit in found]

    def vectors(self, rows: Collection[int]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The windows' vectors of some chunks, as :meth:`anvil.backends.store.reader.Reader.matrix` gives them."""
        import numpy as np

        chunks = self.entities(rows)
        wanted = [row_ids.window_row(row, number) for row in rows for number in range(chunks[row]["windows"])]
        found = self._rows("windows", wanted, ["vector"])
        ids = sorted(found)
        dimensions = int(self.about.meta["embedding_dimensions"])
        vectors = np.array([found[id_]["vector"] for id_ in ids], np.float32).reshape(-1, dimensions)
        return np.array(ids, np.int64) >> row_ids.WINDOW_BITS, np.rint(vectors).astype(np.int8)

    def windows_of(self, row: int) -> list[tuple[int, int, bytes]]:
        """As :meth:`anvil.backends.store.reader.Reader.windows_of`. Spans are not exported: windows are of about one
        size, so each is given its share of the text."""
        _, vectors = self.vectors([row])
        size, count = len(self.entities([row])[row]["content"]), len(vectors)
        return [
            (size * number // count, size * (number + 1) // count, vector.tobytes())
            for number, vector in enumerate(vectors)
        ]

    def centroids(self, documents: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        """Document id -> the mean vector of its page, of those that have one."""
        import numpy as np

        found = self._rows("pages", documents, ["vector"])
        return {id_: np.array(row["vector"], np.float32) for id_, row in found.items()}

    def entities(self, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Row -> the fields of a chunk."""
        wanted = list(map(int, rows))
        found = {row: self._chunks[row] for row in wanted if row in self._chunks}
        new = self._rows("chunks", (row for row in wanted if row not in found), _FIELDS)
        long = [row for row, fields in new.items() if fields["long"]]
        for row, text in self._texts(schema.TEXT, long).items():
            new[row]["content"], new[row]["hidden"], new[row]["terms"] = json.loads(text)
        _keep(self._chunks, new)
        found |= new
        if len(found) < len(set(wanted)):
            raise ArtifactRejected(f"{self.client.shown} lacks some of its rows. Export it again.")
        return {row: found[row] for row in wanted}

    def words(self, rows: Iterable[int]) -> dict[int, Words]:
        """Row -> its words, of those that are there."""
        wanted = list(rows)
        found = {row: self._words[row] for row in wanted if row in self._words}
        lacking = self._rows("chunks", (row for row in wanted if row not in found), _WORDS)
        new = {row: _words(fields) for row, fields in lacking.items()}
        _keep(self._words, new)
        return {**found, **new}

    def searched_text(self, rows: Iterable[int]) -> dict[int, SearchedText]:
        """Row -> what of it is searched; the length is the keyword index's own count."""
        return {
            row: SearchedText(
                title=c["title"],
                heading_path=c["heading_path"],
                content=c["content"],
                terms=c["terms"],
                length=c["length"],
            )
            for row, c in self.entities(rows).items()
        }

    def chunks(self, rows: Iterable[int]) -> dict[int, StoredChunk]:
        """Row id -> chunk."""
        found = {}
        for row, c in self.entities(rows).items():
            place = ChunkMetadata(
                file_path=c["path"],
                heading_path=c["heading_path"],
                heading_level=c["heading_level"],
                last_modified=c["last_modified"],
                char_count=c["char_count"],
                start_line=c["start_line"],
                end_line=c["end_line"],
                url=c["url"] or None,
            )
            found[row] = StoredChunk(
                row=row,
                document_id=c["document"],
                ordinal=c["ordinal"],
                title=c["title"],
                content=c["content"],
                start=c["start"],
                metadata=place,
            )
        return found


def _words(fields: Mapping[str, Any]) -> Words:
    columns = f"{fields['words']} ".split(schema.COLUMN_SEPARATOR)
    return Words(tuple(f" {column.strip()} " for column in columns), int(fields["length"]))


def _keep(cache: dict[int, T], new: Mapping[int, T]) -> None:
    """Keep what was fetched; when it is much, forget the rest."""
    if len(cache) + len(new) > MAX_CACHED_CHUNKS:
        cache.clear()
    cache.update(islice(new.items(), MAX_CACHED_CHUNKS))


def whole(client: Client, generation: str) -> bool:
    """Whether all of a generation is there, so that it can be asked."""
    try:
        return MilvusReader(client, generation).whole()
    except ArtifactRejected:
        return False


def opened(client: Client) -> MilvusReader:
    """What the alias points at now. Raises :class:`ArtifactMissing` when there is nothing."""
    generation = writer.pointed(client)
    if generation is None:
        raise ArtifactMissing(f"There is no index {client.shown}. Write it with 'anvil export --to {client.shown}'.")
    return MilvusReader(client, generation)
