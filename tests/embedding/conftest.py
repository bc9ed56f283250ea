"""The bundled model as it is, which runs each time: what it does is the subject here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anvil.embedding.factory import create_provider
from anvil.embedding.provider import EmbeddingProvider
from anvil.settings.schema import EmbeddingSettings


@pytest.fixture(scope="session")
def local() -> Iterator[EmbeddingProvider]:
    """A model of these tests alone: one that they loaded and others went on to use would run for each of their texts."""
    provider = create_provider("local", EmbeddingSettings())
    yield provider
    provider.close()
