"""The collections of an index in Milvus, and their row ids.

A generation is four collections. Their names begin with the name of the exported collection and twelve digits of a hash
of the content. An alias with the exported name points at ``chunks`` of the current generation, so all readers change at
once.

``chunks``: a row for each chunk, with its row id in the file, its text, its position, and its words, from which Milvus
makes the BM25 vector. ``windows``: a row for each vector. ``pages``: a row for each page, with the mean of its vectors.
``parts``: texts of any length in pieces: the manifest, the page list, sections, the vocabulary and the links.

A filter contains numbers only, never a string, so the name of a page cannot become syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

LAYOUT = 4
"""Increase it for a change that older versions cannot read, or without which results would differ from the file's."""
KINDS = ("chunks", "windows", "pages", "parts")
MAX_TEXT_BYTES = 65_535
"""Bytes that a text field of Milvus holds."""
PART_CHARACTERS = 15_000
"""Characters of a piece. In UTF-8 they always fit into a field."""
COLUMN_SEPARATOR = " | "
"""Separates the words of title, breadcrumb, content and derived terms, so that no phrase spans two of them."""

INTEGER_FIELDS = (
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
)
TEXT_FIELDS = ("path", "title", "heading_path", "url", "last_modified", "content", "hidden", "terms")
"""The fields of a chunk, without its id and its words."""

ABOUT, CATALOGUE, PAGE, SECTIONS, WORDS, TEXT, LINKS = range(7)
"""Kinds of parts: the index, the list of pages, a page's record, its sections, some words, a long chunk's text, and the
links in all pages."""
_PIECE_BITS = 16
_NUMBER_BITS = 34
_GENERATION = re.compile(r"(.+)_[0-9a-f]{12}")


def generation(collection: str, digest: str, checksum: str) -> str:
    """The name of an index's generation. The same index has the same name."""
    content_hash = hashlib.sha256(f"{LAYOUT}\0{digest}\0{checksum}".encode()).hexdigest()
    return f"{collection}_{content_hash[:12]}"


def generation_of(name: str, collection: str) -> str | None:
    """The generation of the collection ``name``; None when it is not one of ``collection``."""
    stem, _, kind = name.rpartition("_")
    match = _GENERATION.fullmatch(stem)
    return stem if kind in KINDS and match and match[1] == collection else None


def part(kind: int, number: int, piece: int = 0) -> int:
    """The row id of a piece of a text."""
    return (kind << _NUMBER_BITS | number) << _PIECE_BITS | piece


def pieces(kind: int, number: int, text: str) -> Iterator[tuple[int, str]]:
    """(row id, piece) of a text. The first piece begins with their number."""
    texts = [text[i : i + PART_CHARACTERS] for i in range(0, len(text), PART_CHARACTERS)] or [""]
    for index, piece in enumerate(texts):
        yield part(kind, number, index), piece if index else f"{len(texts)}\n{piece}"


def bucket(token: str, buckets: int) -> int:
    """The bucket of a token in the vocabulary."""
    return int.from_bytes(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()[:8], "big") % buckets


def within(documents: Iterable[int] | None, without: Iterable[int]) -> str:
    """A filter: rows of these documents (None: all), except those of ``without``."""
    terms = []
    if documents is not None:
        terms.append(f"document in {sorted(map(int, documents))}")
    if excluded := sorted(map(int, without)):
        terms.append(f"document not in {excluded}")
    return " and ".join(terms)


def schema(kind: str, dimensions: int) -> CollectionSchema:
    """The fields of a collection. Milvus requires a vector, so a collection without one has two zeros."""
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    collection_schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    collection_schema.add_field("id", DataType.INT64, is_primary=True)
    if kind == "chunks":
        for name in INTEGER_FIELDS:
            collection_schema.add_field(name, DataType.INT64)
        for name in TEXT_FIELDS:
            collection_schema.add_field(name, DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
        collection_schema.add_field(
            "words",
            DataType.VARCHAR,
            max_length=MAX_TEXT_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard", "filter": ["lowercase"]},
        )
        collection_schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
        collection_schema.add_function(
            Function(
                name="bm25", function_type=FunctionType.BM25, input_field_names=["words"], output_field_names=["bm25"]
            )
        )
    elif kind in ("windows", "pages"):
        collection_schema.add_field("document", DataType.INT64)
        collection_schema.add_field("vector", DataType.FLOAT_VECTOR, dim=max(dimensions, 2))
    else:
        collection_schema.add_field("text", DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
        collection_schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    return collection_schema


def indexes(kind: str) -> Any:
    """The indexes of a collection."""
    from pymilvus import MilvusClient

    index_params = MilvusClient.prepare_index_params()
    if kind == "chunks":
        index_params.add_index(
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
