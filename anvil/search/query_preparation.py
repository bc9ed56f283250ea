"""A query before the search: slips of spelling are replaced, then it is embedded.

A slip is one letter that is missing, that is too many, that is swapped with its neighbour, or that is another vowel.
Other letters make another name more often than a slip: ``mysql`` and ``mssql``. For the same reason the first and the
last letter have to be the same (``prisma`` and ``prism``), but for a swap of the last two. A word that the embedding
model knows is no slip.

All that follows sees the rewritten query alone: candidates, scores, excerpts, and the choice among collections. So a
word that stands for others of the index, such as a prefix with a star, would be replaced here, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anvil.embedding.provider import EmbeddingProvider, explain_mismatch
from anvil.errors import AnvilError
from anvil.formats import characters
from anvil.text import query as lexicon

if TYPE_CHECKING:
    from anvil.search.ranking import CandidateIndex

MIN_LETTERS = 5
"""Letters of the shortest word that can have a slip: nearly all shorter ones are a letter away from another word."""
MAX_SLIPS = 3
"""Words of a query that are looked up. A query with more of them is in another language, or on another subject."""
_VOWELS = frozenset("aeiy")
"""Vowels that are typed for each other. With ``o`` and ``u``, ``modal`` would be a slip of ``modul``, a module."""


def rewritten(query: str, indexes: Sequence[CandidateIndex], provider: EmbeddingProvider) -> tuple[str, str | None]:
    """The query with the words that were meant, and a note on them; the query itself and None if it has no slip.

    A slip is a word that no page has, if an index has a word that is a letter away.
    """
    if lexicon.qualified_name(query) is not None:
        return query, None
    terms = {token: word for token, (_, word) in lexicon.parse_query(query, indexes[0].stem).terms.items()}
    indexed = {token for index in indexes for token, count in index.frequencies(terms).items() if count}
    suspects = [(token, word) for token, word in terms.items() if token not in indexed and _may_be_slip(word, provider)]
    notes = []
    for token, word in suspects if len(suspects) <= MAX_SLIPS else ():
        alone = re.compile(rf"(?<![\w.-]){word}(?![\w-]|\.\w)")  # not in a name such as --x-shutdwon or a.shutdwon
        meant = _meant(word, token, indexes) if alone.search(query) else None
        if meant is not None:
            query = alone.sub(meant, query)
            notes.append(f"No page has the word '{word}'; '{meant}' was searched instead.")
    return query, " ".join(notes) or None


def _may_be_slip(word: str, provider: EmbeddingProvider) -> bool:
    if len(word) < MIN_LETTERS or not (word.isascii() and word.isalpha() and word[1:].islower()):
        return False  # such as a name of code
    return len(provider.token_spans([word.lower()])[0]) != 1  # a word that the model knows is one token


def _meant(typed: str, token: str, indexes: Sequence[CandidateIndex]) -> str | None:
    """The word that was meant, in full: of the tokens that are a slip away, the one that most chunks have."""
    counts: Counter[str] = Counter()
    for index in indexes:
        for term, count in index.words_from(token[0]):
            if is_slip(token, term):
                counts[term] += count
    best = min(counts, key=lambda term: (-counts[term], term), default=None)
    if best is None:
        return None
    # The keyword index has stems, and the embedding model needs whole words. So a text with the word is read.
    texts = (text for index in indexes for text in index.texts(index.matching([best], 1, None)).values())
    tokens = indexes[0].stem
    in_full = [word for text in texts for word in lexicon.words(text.content.lower()) if best in tokens(word)]
    return min(in_full, key=lambda word: (not is_slip(typed.lower(), word), abs(len(word) - len(typed))), default=None)


def is_slip(typed: str, word: str) -> bool:
    """Whether ``typed`` is ``word`` with one slip."""
    if abs(len(typed) - len(word)) > 1 or typed[0] != word[0] or typed == word:
        return False
    at = next(place for place, pair in enumerate(zip(typed + " ", word + " ", strict=False)) if pair[0] != pair[1])
    if typed[at : at + 2] == word[at : at + 2][::-1] and typed[at + 2 :] == word[at + 2 :]:
        return len(typed) == len(word)  # only two letters that are swapped may be the last ones
    if typed[-1] != word[-1]:
        return False
    if len(typed) == len(word):
        return typed[at + 1 :] == word[at + 1 :] and typed[at] in _VOWELS and word[at] in _VOWELS
    longer, shorter = (typed, word) if len(typed) > len(word) else (word, typed)
    return longer[at + 1 :] == shorter[at:]


# --- its vector ------------------------------------------------------------------------------------------------------

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
        text = lexicon.bounded(query)
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
        remedy = "" if provider.name == "none" else " Run 'anvil build', for a library 'anvil ingest --reembed'."
        return f"Semantic search is off: the index was built without vectors (embedding provider none).{remedy}"
    try:
        digest = provider.digest
    except AnvilError as error:
        return f"Semantic search is off: {error}"
    if meta["embedding_model_digest"] != digest:
        return f"Semantic search is off: {explain_mismatch(meta, provider)}"
    return None
