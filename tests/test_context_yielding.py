"""A provider that gives way to plain text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from anvil.config import EmbeddingSettings
from anvil.context.yielding import Yielding, settled
from anvil.embedding import Embedded
from anvil.errors import ProviderError
from tests.providers import Counting


class Failing(Counting):
    """Fails from the second call on, with an exception or row by row."""

    def __init__(self, raises: bool) -> None:
        super().__init__()
        self.raises = raises

    def embed(self, texts: Sequence[str]) -> Embedded:
        found = super().embed(texts)
        if self.calls < 2:
            return found
        if self.raises:
            raise ProviderError("The service is away.")
        return Embedded(np.zeros_like(found.vectors), dict.fromkeys(range(len(texts)), "The service is away."))


@pytest.mark.parametrize("raises", [True, False])
def test_after_a_failure_nothing_more_is_tried(raises: bool) -> None:
    inner = Failing(raises)
    provider = Yielding(inner)
    assert provider.embed(["one"]).failed == {} and provider.failure is None
    assert provider.embed(["two", "three"]).failed == {0: "The service is away.", 1: "The service is away."}
    assert provider.failure == "The service is away."
    found = provider.embed(["four"])
    assert found.failed == {0: "The service is away."} and found.vectors.shape == (1, inner.dimensions)
    assert inner.calls == 2


def test_a_text_that_fails_alone_stops_nothing() -> None:
    class Picky(Counting):
        def embed(self, texts: Sequence[str]) -> Embedded:
            return Embedded(super().embed(texts).vectors, {0: "Too odd."} if len(texts) > 1 else {})

    provider = Yielding(Picky())
    assert provider.embed(["one", "two"]).failed == {0: "Too odd."}
    assert provider.failure is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (EmbeddingSettings(provider="cohere"), "Unknown embedding provider 'cohere'"),
        (EmbeddingSettings(provider="local", model="/no/such/model"), "/no/such/model"),
        (EmbeddingSettings(provider="openai", model="my-model"), "embedding.dimensions"),
    ],
)
def test_one_that_cannot_be_had_gives_way_at_once(settings: EmbeddingSettings, reason: str) -> None:
    provider, failure = settled(settings)
    assert provider.name == "none" and failure is not None and reason in failure


def test_one_that_can_be_had_is_taken() -> None:
    for name in ("none", "local", "openai"):
        provider, failure = settled(EmbeddingSettings(provider=name))
        assert (provider.name, failure) == (name, None)
        provider.close()
