"""The vector of a query: embedding it, and why an index or a script cannot be searched by meaning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anvil.embedding.provider import EmbeddingProvider, explain_mismatch
from anvil.errors import AnvilError
from anvil.formats import characters
from anvil.text.query import bounded

UNREAD_SCRIPT = (
    "The embedding model reads {} script only: {}. A question in English finds more in English documentation."
)
"""A note, with the scripts that the model reads and the consequence in this mode."""
UNREAD_CONSEQUENCE = {
    "hybrid": "words alone decided",
    "semantic": "its vectors say little, use the mode hybrid or keyword",
}


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The unit vector of a query (dimensions,), or the error because of which it has none.

    ``unread``: the model does not know the query's script, so the vector says little.
    """

    vector: NDArray[np.float32] | None
    error: AnvilError | None = None
    unread: bool = False


def embed_query(query: str, provider: EmbeddingProvider) -> QueryVector:
    """Embed a query. This uses no index, so it needs no lock."""
    try:
        text = bounded(query)
        vector = provider.embed_query(text)
        if text.isascii():  # which scripts a model reads takes a look at its whole vocabulary
            return QueryVector(vector)
        return QueryVector(vector, unread=characters.is_unread(text, provider.scripts))
    except AnvilError as error:
        return QueryVector(None, error)


def comparable_vector(
    question: QueryVector, provider: EmbeddingProvider, mode: str
) -> tuple[NDArray[np.float32] | None, str | None]:
    """The vector that a search in this mode compares, and a note if it is missing or says little. Raises the error of a
    question that has no vector, in semantic mode."""
    if question.error is not None:
        if mode == "semantic":
            raise question.error
        return None, f"Semantic search is off: {question.error}"
    if question.unread:
        scripts = characters.script_names(provider.scripts or ())
        return None if mode == "hybrid" else question.vector, UNREAD_SCRIPT.format(scripts, UNREAD_CONSEQUENCE[mode])
    return question.vector, None


def semantic_obstacle(meta: dict[str, str], provider: EmbeddingProvider) -> str | None:
    """Why an index with this manifest cannot be searched by meaning; None if it can."""
    if meta["embedding_dimensions"] == "0":
        return "Semantic search is off: the index was built without vectors (embedding provider none)."
    try:
        digest = provider.digest
    except AnvilError as error:
        return f"Semantic search is off: {error}"
    if meta["embedding_model_digest"] != digest:
        return f"Semantic search is off: {explain_mismatch(meta, provider)}"
    return None
