"""An embedding provider that never fails: texts that it cannot embed stay without vectors, and it says why."""

from __future__ import annotations

from collections.abc import Sequence

from anvil.embedding.factory import create_cached_provider, create_provider
from anvil.embedding.provider import Embedded, EmbeddingProvider, ProviderWrapper, no_vectors
from anvil.errors import AnvilError, ModelError, ProviderError
from anvil.settings.schema import EmbeddingSettings


def provider_or_none(settings: EmbeddingSettings) -> tuple[EmbeddingProvider, str | None]:
    """The provider that ``settings`` name. If its model is not known, the provider ``none`` and the reason: without the
    model's digest no vector could be compared with those of the index.
    """
    try:
        provider = create_cached_provider(settings.provider, settings)
        _ = provider.digest, provider.dimensions
    except AnvilError as error:
        return create_provider("none", settings), str(error)
    return provider, None


class FallbackProvider(ProviderWrapper):
    """An :class:`EmbeddingProvider` for one run. After a call in which all texts failed, it makes no other request."""

    failure: str | None = None
    """Why there are no vectors; None while the provider works."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors, or zeros for all texts and the reason."""
        if self.failure is None:
            try:
                embedded = self.wrapped.embed(texts)
            except (ModelError, ProviderError) as error:
                self.failure = str(error)
            else:
                if texts and len(embedded.failed) == len(texts):
                    self.failure = next(iter(embedded.failed.values()))
                return embedded
        return no_vectors(texts, self.dimensions, self.failure or "")

    def close(self) -> None:
        """Nothing: the owner of the wrapped provider closes it."""
