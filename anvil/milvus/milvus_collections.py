"""The collections of an index in Milvus: names, fields, indexes and row ids, writing a generation, and the alias.

A generation is four collections. Their names begin with the name of the exported collection and twelve digits of a hash
of the content. An alias with the exported name points at ``chunks`` of the current generation. It is changed when a new
generation is complete, so all readers move at once. No reader uses an incomplete one, and the next export removes it.

``chunks``: a row for each chunk, with its row id in the file, its text, its position, and its words, from which Milvus
makes the BM25 vector. ``windows``: a row for each vector. ``pages``: a row for each page, with the mean of its vectors.
``parts``: texts of any length in pieces: the manifest, the page list, sections, the vocabulary and the links.

A filter contains numbers only, never a string, so the name of a page cannot become syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from anvil.errors import ArtifactRejected, FetchError
from anvil.formats.data_formats import compact
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import SearchedText, StoredChunk, version_and_language
from anvil.milvus.milvus_client import INDEX_TIMEOUT_S, WRITE_TIMEOUT_S, Client, Gone
from anvil.search.page_weights import is_deprecated
from anvil.values import ChunkMetadata

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

LAYOUT = 6
"""The version of this layout. Increase it for a change that older versions cannot read, and for one that makes results
equal to those of the file again."""
KINDS = ("chunks", "windows", "pages", "parts")
MAX_TEXT_BYTES = 65_535
"""Bytes that fit into a text field of Milvus."""
PART_CHARACTERS = 15_000
"""Characters of a piece. In UTF-8 they fit into a field."""
COLUMN_SEPARATOR = " | "
"""Separates the words of title, breadcrumb, content and derived terms, so that no phrase spans two of them."""
ABOUT, CATALOGUE, PAGE, SECTIONS, WORDS, TEXT, LINKS = range(7)
"""Kinds of texts in ``parts``: manifest and statistics of the index, the list of pages, a page's record, its sections,
a bucket of the vocabulary, the text of a long chunk, and the links in all pages."""
_PIECE_BITS = 16
_NUMBER_BITS = 34
_GENERATION = re.compile(r"(.+)_[0-9a-f]{12}")
MAX_INSERT_ROWS = 500
"""Rows of one insert."""
MAX_INSERT_CHARACTERS = 8_000_000
"""Characters of the texts of one insert. A character has up to four bytes, and a server's default limit is 64 MB."""


# --- the records of an index ---------------------------------------------------------------------------------------


class ChunkFields(NamedTuple):
    """A row of ``chunks`` without its words. ``windows``: their number. ``long``: 1 if content, hidden and terms are in
    ``parts``, and empty here; else 0."""

    id: int
    document: int
    ordinal: int
    heading_level: int
    start: int
    start_line: int
    end_line: int
    char_count: int
    length: int
    windows: int
    long: int
    path: str
    title: str
    heading_path: str
    url: str
    last_modified: str
    content: str
    hidden: str
    terms: str

    @classmethod
    def of(cls, chunk: StoredChunk, text: SearchedText, hidden: str, windows: int) -> ChunkFields:
        """The fields of a chunk of a file. ``windows``: the number of its windows."""
        place, texts = chunk.metadata, (text.content, hidden, text.terms)
        long = any(len(column.encode("utf-8", "replace")) > MAX_TEXT_BYTES for column in texts)
        return cls(
            *(chunk.row, chunk.document_id, chunk.ordinal, place.heading_level, chunk.start),
            *(place.start_line or 0, place.end_line or 0, place.char_count, text.length, windows, int(long)),
            *(place.file_path, text.title, text.heading_path, place.url or "", place.last_modified),
            *(("", "", "") if long else texts),
        )

    def stored(self, page: PageEntry) -> StoredChunk:
        """The chunk as a file has it. ``page``: the chunk's page."""
        place = ChunkMetadata(
            *(self.path, self.heading_path, self.heading_level, self.last_modified, self.char_count),
            *(self.start_line or None, self.end_line or None, self.url or None, page.version, page.language),
        )
        return StoredChunk(self.id, self.document, self.ordinal, self.title, self.content, self.start, place)


class PageEntry(NamedTuple):
    """An entry of the list of pages. ``chunks`` and ``characters``: the numbers of them."""

    path: str
    id: int
    blob_id: str
    last_modified: str
    chunks: int
    characters: int
    version: str | None
    language: str | None
    deprecated: bool

    @classmethod
    def of(cls, reader: Reader) -> Iterator[PageEntry]:
        """The entries of the pages in a file, by path."""
        sizes, blobs = reader.page_sizes(), reader.blob_ids()
        deprecated = {id_ for id_, *signs in reader.about_deprecation() if is_deprecated(*signs)}
        for page in reader.documents():
            place = page.file_path, page.id, blobs.get(page.file_path, ""), page.last_modified
            yield cls(*place, *sizes.get(page.id, (0, 0)), *version_and_language(page.metadata), page.id in deprecated)


@dataclass(frozen=True, slots=True)
class About:
    """The manifest and the statistics of an exported index.

    ``average``: the mean number of words in a chunk. ``buckets``: the number of buckets of the vocabulary. The mean
    cosine of a question to all chunks is approximately its product with ``mean``, plus ``above``.
    """

    meta: dict[str, str]
    counts: dict[str, int]
    average: float
    buckets: int
    mean: list[float]
    above: float


# --- names, ids and filters ------------------------------------------------------------------------------------------


def generation_name(collection: str, digest: str, checksum: str) -> str:
    """The name of the generation of an index. It depends on the collection and the content alone."""
    content_hash = hashlib.sha256(f"{LAYOUT}\0{digest}\0{checksum}".encode()).hexdigest()
    return f"{collection}_{content_hash[:12]}"


def generation_of(name: str, collection: str) -> str | None:
    """The generation to which the collection ``name`` belongs; None if it is not a generation of ``collection``."""
    stem, _, kind = name.rpartition("_")
    match = _GENERATION.fullmatch(stem)
    return stem if kind in KINDS and match and match[1] == collection else None


def part(kind: int, number: int, piece: int = 0) -> int:
    return (kind << _NUMBER_BITS | number) << _PIECE_BITS | piece


def pieces(kind: int, number: int, text: str) -> Iterator[tuple[int, str]]:
    """(row id, piece) of a text. The first piece begins with the number of pieces."""
    texts = [text[i : i + PART_CHARACTERS] for i in range(0, len(text), PART_CHARACTERS)] or [""]
    for index, piece in enumerate(texts):
        yield part(kind, number, index), piece if index else f"{len(texts)}\n{piece}"


def bucket(token: str, buckets: int) -> int:
    return int.from_bytes(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()[:8], "big") % buckets


def within(documents: Iterable[int] | None, without: Iterable[int]) -> str:
    """The filter for rows of ``documents`` (None means all), except the documents ``without``."""
    terms = []
    if documents is not None:
        terms.append(f"document in {sorted(map(int, documents))}")
    if excluded := sorted(map(int, without)):
        terms.append(f"document not in {excluded}")
    return " and ".join(terms)


def collection_schema(kind: str, dimensions: int) -> CollectionSchema:
    """The fields of a collection. Milvus requires a vector, so rows without one have two zeros."""
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    text = {"datatype": DataType.VARCHAR, "max_length": MAX_TEXT_BYTES}
    types = get_type_hints(ChunkFields) if kind == "chunks" else {"id": int}
    for name, type_ in types.items():
        column = text if type_ is str else {"datatype": DataType.INT64, "is_primary": name == "id"}
        schema.add_field(name, **column)
    if kind == "chunks":
        analyzer = {"tokenizer": "standard", "filter": ["lowercase"]}
        schema.add_field("words", **text, enable_analyzer=True, analyzer_params=analyzer)
        schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, ["words"], ["bm25"]))
    elif kind in ("windows", "pages"):
        schema.add_field("document", DataType.INT64)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=max(dimensions, 2))
    else:
        schema.add_field("text", **text)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    return schema


def _indexes(kind: str) -> Any:
    from pymilvus import MilvusClient

    index_params = MilvusClient.prepare_index_params()
    if kind == "chunks":
        index_params.add_index(  # the numbers are those of ranking.K1 and ranking.B
            "bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params={"bm25_k1": 1.2, "bm25_b": 0.75}
        )
    elif kind == "parts":
        index_params.add_index("vector", index_type="FLAT", metric_type="L2")
    else:
        index_params.add_index(
            "vector", index_type="HNSW", metric_type="COSINE", params={"M": 32, "efConstruction": 200}
        )
    if kind != "parts":
        index_params.add_index("document", index_type="INVERTED")
    return index_params


def nearest_params(limit: int) -> dict[str, Any]:
    """The parameters of a search for the ``limit`` nearest vectors in that index."""
    # "ef" is the number of candidates that HNSW keeps; it must not be under the limit
    return {"metric_type": "COSINE", "params": {"ef": max(2 * limit, 128)}}


def current_generation(client: Client) -> str | None:
    """The generation to which the alias points; None if there is no alias.

    Raises :class:`ArtifactRejected` if the name is that of a collection or an alias that Anvil did not create.
    """
    alias = client.address.collection
    try:
        target = client.ask("describe_alias", alias)["collection_name"]
    except Gone:
        if client.ask("has_collection", alias):
            raise ArtifactRejected(
                f"{client.shown} is a collection that Anvil did not create. Choose another name."
            ) from None
        return None
    generation = generation_of(target, alias)
    if generation is None or not target.endswith("_chunks"):
        raise ArtifactRejected(f"{client.shown} is an alias that Anvil did not create. Choose another name.")
    return generation


def existing(client: Client) -> set[str]:
    """All generations on the server, also incomplete ones."""
    names = (generation_of(name, client.address.collection) for name in client.ask("list_collections"))
    return {name for name in names if name}


def is_whole(client: Client, generation: str) -> bool:
    """Whether the server has all collections of a generation."""
    return {f"{generation}_{kind}" for kind in KINDS} <= set(client.ask("list_collections"))


def drop(client: Client, generation: str) -> None:
    """Remove a generation, beginning with its ``chunks``. The server refuses that if an alias points there, so a
    generation to which another export has just moved the alias stays complete."""
    collections = set(client.ask("list_collections"))
    for kind in KINDS:
        if f"{generation}_{kind}" in collections:
            client.ask("drop_collection", f"{generation}_{kind}", timeout=WRITE_TIMEOUT_S)


class Generation:
    """Writes the collections of a new generation. They are created at once."""

    def __init__(self, client: Client, name: str, dimensions: int) -> None:
        self.client, self.name = client, name
        self._rows: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in KINDS}
        self._characters = dict.fromkeys(KINDS, 0)
        self.written = dict.fromkeys(KINDS, 0)
        for kind in KINDS:
            schema = collection_schema(kind, dimensions)
            client.ask("create_collection", f"{name}_{kind}", schema=schema, timeout=WRITE_TIMEOUT_S)

    def put(self, kind: str, row: Mapping[str, Any]) -> None:
        """Add a row to the collection of a kind. It is written when :meth:`finish` returns, or earlier."""
        self._characters[kind] += sum(len(value) for value in row.values() if isinstance(value, str))
        self._rows[kind].append(row)
        if len(self._rows[kind]) >= MAX_INSERT_ROWS or self._characters[kind] >= MAX_INSERT_CHARACTERS:
            self._send(kind)

    def put_json(self, kind: int, number: int, value: Any) -> None:
        """Add a value as text in ``parts``. ``number``: its number among those of the kind."""
        for row, piece in pieces(kind, number, compact(value)):
            self.put("parts", {"id": row, "text": piece, "vector": [0.0, 0.0]})

    def _send(self, kind: str) -> None:
        rows = self._rows[kind]
        if rows:
            self.client.ask("insert", f"{self.name}_{kind}", rows, timeout=WRITE_TIMEOUT_S)
            self.written[kind] += len(rows)
            self._rows[kind], self._characters[kind] = [], 0

    def finish(self) -> None:
        """Write the rest, build the indexes, and count the rows. Raises :class:`FetchError` if rows are missing."""
        for kind in KINDS:
            self._send(kind)
            name = f"{self.name}_{kind}"
            self.client.ask("flush", name, timeout=WRITE_TIMEOUT_S)
            self.client.ask("create_index", name, _indexes(kind), timeout=INDEX_TIMEOUT_S)
            self.client.ask("load_collection", name, timeout=INDEX_TIMEOUT_S)
            fields = {"output_fields": ["count(*)"], "consistency_level": "Strong"}  # which counts the newest rows, too
            counted = self.client.ask("query", name, filter="", timeout=WRITE_TIMEOUT_S, **fields)
            row_count = int(counted[0]["count(*)"])
            if row_count != self.written[kind]:
                raise FetchError(
                    f"Milvus has {row_count:,} rows of {name}, but {self.written[kind]:,} were written. Export again."
                )


def point(client: Client, generation: str) -> str | None:
    """Point the alias at a generation, so that readers use it. Returns the former one; None if there was none."""
    before = current_generation(client)
    step = "create_alias" if before is None else "alter_alias"
    client.ask(step, f"{generation}_chunks", client.address.collection, timeout=WRITE_TIMEOUT_S)
    return before


def remove_others(client: Client, current: str | None) -> None:
    """Remove all generations but ``current`` and that of the alias, which another export may have moved."""
    for generation in sorted(existing(client) - {current}):
        if generation != current_generation(client):
            drop(client, generation)
