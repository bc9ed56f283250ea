"""The bundled model as it is, which runs each time: what it does is the subject here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anvil.embedding.provider import EmbeddingProvider, create_provider
from anvil.settings.schema import EmbeddingSettings


@pytest.fixture(scope="session")
def local() -> Iterator[EmbeddingProvider]:
    """A model of these tests alone: others that went on to use it would run it for each of their texts."""
    provider = create_provider("local", EmbeddingSettings())
    yield provider
    provider.close()
