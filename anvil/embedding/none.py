"""The provider without a model: an index for keyword search only.

It keeps the protocol, so that no other code has to ask whether there is a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from anvil.embedding.provider import Embedded, Vector
from anvil.settings.schema import EmbeddingSettings


class NoProvider:
    """Vectors of zero components."""

    name = "none"
    server = ""
    model = "none"
    digest = hashlib.sha256(b"none").hexdigest()
    dimensions = 0
    max_tokens = 0
    scripts = None
    passages = None

    def __init__(self, settings: EmbeddingSettings) -> None:
        """``settings`` are not used."""

    def warm(self) -> None:
        """Nothing."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """No tokens, so there are no windows."""
        return [[] for _ in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """An (n, 0) matrix."""
        import numpy as np

        return Embedded(np.zeros((len(texts), 0), np.float32), {})

    def embed_query(self, text: str) -> Vector:
        """A (0,) vector."""
        import numpy as np

        return np.zeros(0, np.float32)

    def close(self) -> None:
        """Nothing is held."""
