"""An embedding provider that gives way: what it cannot embed stays plain text, and the run says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anvil import embedding
from anvil.config import EmbeddingSettings
from anvil.embedding import Embedded, EmbeddingProvider, none_of
from anvil.errors import AnvilError, ModelError, ProviderError

if TYPE_CHECKING:
    from anvil.embedding import Vector


def settled(settings: EmbeddingSettings) -> tuple[EmbeddingProvider, str | None]:
    """The provider that ``settings`` names; else the one without vectors, and why.

    One that cannot even say which model it is could only spoil the vectors that stand.
    """
    try:
        chosen = embedding.provider(settings.provider, settings)
        _ = chosen.digest, chosen.dimensions
    except AnvilError as error:
        return embedding.provider("none", settings), str(error)
    return chosen, None


class Yielding:
    """An :class:`EmbeddingProvider` for one run. Once all of a call failed, nothing more is tried in this run."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider
        self.name, self.model = provider.name, provider.model
        self.digest, self.dimensions = provider.digest, provider.dimensions
        self.max_tokens = provider.max_tokens
        self.failure: str | None = None
        """Why vectors could not be made; None when all is well."""

    def warm(self) -> None:
        """As the provider does."""
        self._provider.warm()

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """As the provider says."""
        return self._provider.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors, or zeros for all texts and the reason."""
        if self.failure is None:
            try:
                found = self._provider.embed(texts)
            except (ModelError, ProviderError) as error:
                self.failure = str(error)
            else:
                if texts and len(found.failed) == len(texts):
                    self.failure = next(iter(found.failed.values()))
                return found
        return none_of(texts, self.dimensions, self.failure or "")

    def embed_query(self, text: str) -> Vector:
        """As the provider does."""
        return self._provider.embed_query(text)

    def close(self) -> None:
        """The provider is somebody else's."""
