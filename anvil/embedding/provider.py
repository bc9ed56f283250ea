"""The protocol of an embedding provider: texts in, unit vectors out.

Importing it costs nothing. A provider loads numpy, onnxruntime or a network library at its first use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anvil.embedding.passages import PassageScorer

Vector: TypeAlias = "NDArray[np.float32]"
"""float32; (dimensions,) for one text, (n, dimensions) for n texts."""

BUNDLED_MODEL = "all-MiniLM-L6-v2"
"""The name of the model in Anvil's package, which an empty ``embedding.model`` selects."""


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a list of texts, row for row."""

    vectors: Vector
    """(n, dimensions) float32, rows of unit length; rows that failed are zeros."""
    failed: Mapping[int, str]
    """Row to reason. A failure never loses the other rows."""
    cached: frozenset[int] = frozenset()
    """Rows that were not computed now: the user's cache had them."""


def no_vectors(texts: Sequence[str], dimensions: int, reason: str) -> Embedded:
    """The result when all texts failed for the same reason."""
    import numpy as np

    return Embedded(np.zeros((len(texts), dimensions), np.float32), dict.fromkeys(range(len(texts)), reason))


def encodable(text: str) -> str:
    """A text with U+FFFD for lone surrogates, which UTF-8 cannot encode. Its length stays, so spans are right."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


class EmbeddingProvider(Protocol):
    """A model that turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """The key in ``PROVIDERS``: ``local``, ``openai`` or ``none``."""

    @property
    def model(self) -> str:
        """The model's name, for people: ``all-MiniLM-L6-v2``."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over all that defines a vector. Providers with the same digest are interchangeable."""

    @property
    def server(self) -> str:
        """The address that texts are sent to, if it is set. Empty: the provider's own, or none."""

    @property
    def dimensions(self) -> int:
        """Components of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens of text that one vector can cover, without the model's own special tokens and prefixes."""

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts that the model reads, named as in :mod:`anvil.embedding.writing_systems`; None: nobody knows."""

    @property
    def passages(self) -> PassageScorer | None:
        """Scores how well passages answer a question; None: the model has no such scorer."""

    def warm(self) -> None:
        """Load what the first text needs, and return when it is loaded. Optional: every method loads it too."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text, the (start, end) characters of its tokens, in order."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of documents. A text longer than ``max_tokens`` is cut, so make windows first."""

    def embed_query(self, text: str) -> Vector:
        """The (dimensions,) unit vector of a query of any length."""

    def close(self) -> None:
        """Release the model. A second call does nothing."""


class ProviderWrapper:
    """An :class:`EmbeddingProvider` that passes each call to another one. Subclasses override some of them."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.wrapped = provider

    @property
    def name(self) -> str:
        """See :class:`EmbeddingProvider`, as for all below."""
        return self.wrapped.name

    @property
    def model(self) -> str:
        return self.wrapped.model

    @property
    def digest(self) -> str:
        return self.wrapped.digest

    @property
    def server(self) -> str:
        return self.wrapped.server

    @property
    def dimensions(self) -> int:
        return self.wrapped.dimensions

    @property
    def max_tokens(self) -> int:
        return self.wrapped.max_tokens

    @property
    def scripts(self) -> frozenset[str] | None:
        return self.wrapped.scripts

    @property
    def passages(self) -> PassageScorer | None:
        return self.wrapped.passages

    def warm(self) -> None:
        self.wrapped.warm()

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return self.wrapped.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        return self.wrapped.embed(texts)

    def embed_query(self, text: str) -> Vector:
        return self.wrapped.embed_query(text)

    def close(self) -> None:
        self.wrapped.close()
