"""Texts to vectors: the protocol every embedding backend keeps, and the one dict that lists them.

Importing this room costs nothing: numpy, onnxruntime and network libraries are loaded by a backend at its
first use. A backend that was asked for is the one that answers or fails; none ever stands in for another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from anvil.config import EmbeddingSettings
from anvil.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    """float32; (dimensions,) for one text, (n, dimensions) for n."""

BUNDLED_MODEL = "all-MiniLM-L6-v2"
"""What the model that comes along is called, for which ``embedding.model`` stays empty."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a list of texts, row for row."""

    vectors: Vector
    """(n, dimensions) float32, rows of unit length; rows that failed are zeros."""
    failed: Mapping[int, str]
    """Row to reason. A failure never loses the other rows."""


def none_of(texts: Sequence[str], dimensions: int, reason: str) -> Embedded:
    """No vector for any text, for the same reason."""
    import numpy as np

    return Embedded(np.zeros((len(texts), dimensions), np.float32), dict.fromkeys(range(len(texts)), reason))


class EmbeddingProvider(Protocol):
    """A model that turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """The backend: ``local``, ``openai`` or ``none``."""

    @property
    def model(self) -> str:
        """The model's name, for people: ``all-MiniLM-L6-v2``."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over all that defines a vector. Two providers with one digest are interchangeable."""

    @property
    def dimensions(self) -> int:
        """Components of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens of text that one vector can cover, the model's own special tokens and prefixes not
        counted."""

    def warm(self) -> None:
        """Load what the first text would wait for; returns when it is there. Calling it is never needed."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text, the (start, end) characters of its tokens, in order."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of documents. A text longer than ``max_tokens`` is cut: make windows first."""

    def embed_query(self, text: str) -> Vector:
        """The (dimensions,) unit vector of a question of any length."""

    def close(self) -> None:
        """Let go of the model. Calling it twice is fine."""


def provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The backend called ``name``. Loads no model and opens no connection.

    Raises ConfigError for a name that is not listed in ``PROVIDERS``.
    """
    if name not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"Unknown embedding provider {name!r}. Set embedding.provider to one of: {known}.")
    return PROVIDERS[name](settings)


def other_vectors(meta: Mapping[str, str], at_hand: EmbeddingProvider) -> str:
    """Why questions cannot be compared with an index's vectors, which another model made, and what to set."""
    name, model = meta["embedding_provider"], meta["embedding_model"]
    which = "leave embedding.model empty" if model == BUNDLED_MODEL else f"embedding.model to {model!r}"
    both = f"set embedding.provider to {name!r} and {which}"
    if at_hand.name == "none":
        return f"keywords only were asked for (embedding provider none). To use the index's vectors of {model}, {both}."
    told = f"the index was built with {model}, at hand is {at_hand.model}."
    if at_hand.name != name:
        return f"{told} Rebuild the index, or {both}."
    if model == BUNDLED_MODEL != at_hand.model:
        return f"{told} Rebuild the index, or {which}."
    return f"{told} Rebuild the index, or set embedding.model to that model."


def _local(settings: EmbeddingSettings) -> EmbeddingProvider:
    from anvil.embedding.local import LocalProvider

    return LocalProvider(settings)


def _openai(settings: EmbeddingSettings) -> EmbeddingProvider:
    from anvil.embedding.openai import OpenAIProvider

    return OpenAIProvider(settings)


def _none(settings: EmbeddingSettings) -> EmbeddingProvider:
    from anvil.embedding.none import NoProvider

    return NoProvider(settings)


PROVIDERS: dict[str, Callable[[EmbeddingSettings], EmbeddingProvider]] = {
    "local": _local,
    "openai": _openai,
    "none": _none,
}
