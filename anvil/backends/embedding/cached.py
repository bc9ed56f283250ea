"""An embedding provider that embeds each text once per user: vectors of documents are kept in the user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from anvil.backends.embedding.provider import Embedded, EmbeddingProvider, Vector
from anvil.backends.store.vector_cache import VectorCache, text_key


class CachedProvider:
    """An :class:`EmbeddingProvider` that asks the cache first. Queries are never kept: they are not documents.

    A cached vector is the int8 row that an index stores. It gives the same bytes again when it is written to an index.
    """

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.uncached = provider
        """The provider without the cache."""
        self._cache: VectorCache | None = None

    @property
    def name(self) -> str:
        """As the wrapped provider."""
        return self.uncached.name

    @property
    def model(self) -> str:
        """As the wrapped provider."""
        return self.uncached.model

    @property
    def digest(self) -> str:
        """As the wrapped provider."""
        return self.uncached.digest

    @property
    def server(self) -> str:
        """As the wrapped provider."""
        return self.uncached.server

    @property
    def dimensions(self) -> int:
        """As the wrapped provider."""
        return self.uncached.dimensions

    @property
    def max_tokens(self) -> int:
        """As the wrapped provider."""
        return self.uncached.max_tokens

    def warm(self) -> None:
        """As the wrapped provider."""
        self.uncached.warm()

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """As the wrapped provider."""
        return self.uncached.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """(n, dimensions) unit vectors: of the texts that the cache knows from there, of the others by the provider."""
        import numpy as np

        from anvil.backends.store.writer import quantized

        if self._cache is None:
            self._cache = VectorCache(self._origin(), self.dimensions)
        keys = [text_key(text) for text in texts]
        known = self._cache.get(keys)
        missing = [row for row, key in enumerate(keys) if key not in known]
        if not known:
            embedded = self.uncached.embed(texts)
        else:
            vectors = np.zeros((len(texts), self.dimensions), np.float32)
            cached = [row for row, key in enumerate(keys) if key in known]
            rows = np.frombuffer(b"".join(known[keys[row]] for row in cached), np.int8)
            stored = rows.reshape(len(cached), self.dimensions).astype(np.float32)
            vectors[cached] = stored / np.linalg.norm(stored, axis=1, keepdims=True)
            failed: dict[int, str] = {}
            if missing:
                made = self.uncached.embed([texts[row] for row in missing])
                vectors[missing] = made.vectors
                failed = {missing[number]: reason for number, reason in made.failed.items()}
            embedded = Embedded(vectors, failed, frozenset(cached))
        new = [row for row in missing if row not in embedded.failed]
        if new:
            self._cache.put(dict(zip((keys[row] for row in new), quantized(embedded.vectors[new]), strict=True)))
        return embedded

    def _origin(self) -> str:
        """What defines the vectors: the model and its server, hashed, because an address may hold a secret."""
        return hashlib.sha256(f"{self.digest}\n{self.server}".encode()).hexdigest()

    def embed_query(self, text: str) -> Vector:
        """As the wrapped provider."""
        return self.uncached.embed_query(text)

    def close(self) -> None:
        """Close the cache and the wrapped provider."""
        if self._cache is not None:
            self._cache.close()
        self.uncached.close()


def uncached(provider: EmbeddingProvider) -> EmbeddingProvider:
    """``provider`` without a cache around it."""
    return provider.uncached if isinstance(provider, CachedProvider) else provider
