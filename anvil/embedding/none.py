"""No embedding at all: an index for keyword search only, behind the same protocol as every other backend.

It needs no model and no key, and promises that nothing else has to ask whether there is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anvil.config import EmbeddingSettings
from anvil.embedding import Embedded

if TYPE_CHECKING:
    from anvil.embedding import Vector


class NoProvider:
    """Vectors of zero components."""

    name = "none"
    model = "none"
    digest = hashlib.sha256(b"none").hexdigest()
    dimensions = 0
    max_tokens = 0

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Any settings do."""

    def warm(self) -> None:
        """Nothing."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """No tokens, hence no windows."""
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
