"""The collections that an index is made of in Milvus, and the numbers of their rows.

A generation is four collections whose names begin alike: the collection that was asked for, and twelve digits of what
the generation says. An alias, the collection's name, points at its ``chunks``: moving it moves all readers at once.

``chunks``: a row a chunk, by the row id it has in the file; its text, where it stands, and its words, of which Milvus
makes the BM25 vector. ``windows``: a row a vector. ``pages``: a row a page, its vector the mean of its windows'.
``parts``: texts of any length in pieces, by what they are of: what the index is, its pages, sections and vocabulary.

A filter never holds a string: rows are asked for by numbers, so that no name of a page is ever syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

LAYOUT = 2
"""Counted up when an older Anvil could not read what is written."""
KINDS = ("chunks", "windows", "pages", "parts")
MAX_TEXT_BYTES = 65_535
"""Bytes that a text field of Milvus holds."""
PART_CHARACTERS = 15_000
"""Characters of a piece: in UTF-8 they fit into a field, whatever they are."""
COLUMN_SEPARATOR = " | "
"""Between the words of a chunk's title, breadcrumb, content and derived terms: no word, so that no phrase spans two."""

ABOUT, CATALOGUE, PAGE, SECTIONS, WORDS, TEXT = range(6)
"""What a part is of: the index; the list of pages; a page's record; its sections; some words; a long chunk's text."""
_PIECES = 16
_NUMBER = 34
_GENERATION = re.compile(r"(.+)_[0-9a-f]{12}")


def generation(collection: str, digest: str, checksum: str) -> str:
    """The name of the generation that an artifact makes: the same bytes, the same name."""
    said = hashlib.sha256(f"{LAYOUT}\0{digest}\0{checksum}".encode()).hexdigest()
    return f"{collection}_{said[:12]}"


def generation_of(name: str, collection: str) -> str | None:
    """The generation that a collection called ``name`` belongs to, if it is one of ``collection``'s."""
    stem, _, kind = name.rpartition("_")
    found = _GENERATION.fullmatch(stem)
    return stem if kind in KINDS and found and found[1] == collection else None


def part(kind: int, number: int, piece: int = 0) -> int:
    """The row of a piece of a text."""
    return (kind << _NUMBER | number) << _PIECES | piece


def pieces(kind: int, number: int, text: str) -> Iterator[tuple[int, str]]:
    """A text as rows (row, piece); the first begins with how many there are."""
    cut = [text[i : i + PART_CHARACTERS] for i in range(0, len(text), PART_CHARACTERS)] or [""]
    for each, piece in enumerate(cut):
        yield part(kind, number, each), piece if each else f"{len(cut)}\n{piece}"


def bucket(token: str, buckets: int) -> int:
    """Which of the vocabulary's buckets a token is in."""
    return int.from_bytes(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()[:8], "big") % buckets


def within(documents: Iterable[int] | None, without: Iterable[int]) -> str:
    """A filter: rows of these documents (None: all) but of those ``without``."""
    terms = []
    if documents is not None:
        terms.append(f"document in {sorted(map(int, documents))}")
    if besides := sorted(map(int, without)):
        terms.append(f"document not in {besides}")
    return " and ".join(terms)


def schema(kind: str, dimensions: int) -> CollectionSchema:
    """The fields of a collection. One without vectors of its own has one of two zeros: Milvus wants one."""
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    made = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    made.add_field("id", DataType.INT64, is_primary=True)
    if kind == "chunks":
        for name in (
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
        ):
            made.add_field(name, DataType.INT64)
        for name in ("path", "title", "heading_path", "url", "last_modified", "content", "hidden", "terms"):
            made.add_field(name, DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
        made.add_field(
            "words",
            DataType.VARCHAR,
            max_length=MAX_TEXT_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard", "filter": ["lowercase"]},
        )
        made.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
        made.add_function(
            Function(
                name="bm25", function_type=FunctionType.BM25, input_field_names=["words"], output_field_names=["bm25"]
            )
        )
    elif kind in ("windows", "pages"):
        made.add_field("document", DataType.INT64)
        made.add_field("vector", DataType.FLOAT_VECTOR, dim=max(dimensions, 2))
    else:
        made.add_field("text", DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
        made.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    return made


def indexes(kind: str) -> Any:
    """What Milvus is to index of a collection."""
    from pymilvus import MilvusClient

    made = MilvusClient.prepare_index_params()
    if kind == "chunks":
        made.add_index(
            "bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params={"bm25_k1": 1.2, "bm25_b": 0.75}
        )
    elif kind == "parts":
        made.add_index("vector", index_type="FLAT", metric_type="L2")
    else:
        made.add_index("vector", index_type="HNSW", metric_type="COSINE", params={"M": 32, "efConstruction": 200})
    if kind != "parts":
        made.add_index("document", index_type="INVERTED")
    return made
