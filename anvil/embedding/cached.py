"""An embedding provider that embeds each text once per user: vectors of documents are kept in the user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from anvil.embedding.provider import Embedded, EmbeddingProvider, ProviderWrapper
from anvil.index_file.vector_cache import VectorCache, text_key


class CachedProvider(ProviderWrapper):
    """An :class:`EmbeddingProvider` that asks the cache first. Queries are never kept: they are not documents.

    A cached vector is the int8 row that an index stores. It gives the same bytes again when it is written to an index.
    """

    _cache: VectorCache | None = None

    def embed(self, texts: Sequence[str]) -> Embedded:
        """(n, dimensions) unit vectors: of the texts that the cache knows from there, of the others by the provider."""
        import numpy as np

        from anvil.index_file.writer import quantized

        if self._cache is None:
            origin = f"{self.digest}\n{self.server}".encode()  # hashed, because an address may hold a secret
            self._cache = VectorCache(hashlib.sha256(origin).hexdigest(), self.dimensions)
        keys = [text_key(text) for text in texts]
        known = self._cache.get(keys)
        missing = [row for row, key in enumerate(keys) if key not in known]
        if not known:
            embedded = self.wrapped.embed(texts)
        else:
            vectors = np.zeros((len(texts), self.dimensions), np.float32)
            cached = [row for row, key in enumerate(keys) if key in known]
            rows = np.frombuffer(b"".join(known[keys[row]] for row in cached), np.int8)
            stored = rows.reshape(len(cached), self.dimensions).astype(np.float32)
            vectors[cached] = stored / np.linalg.norm(stored, axis=1, keepdims=True)
            failed: dict[int, str] = {}
            if missing:
                made = self.wrapped.embed([texts[row] for row in missing])
                vectors[missing] = made.vectors
                failed = {missing[number]: reason for number, reason in made.failed.items()}
            embedded = Embedded(vectors, failed, frozenset(cached))
        new = [row for row in missing if row not in embedded.failed]
        if new:
            self._cache.put(dict(zip((keys[row] for row in new), quantized(embedded.vectors[new]), strict=True)))
        return embedded

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self.wrapped.close()


def uncached(provider: EmbeddingProvider) -> EmbeddingProvider:
    """``provider`` without a cache around it."""
    return provider.wrapped if isinstance(provider, CachedProvider) else provider
