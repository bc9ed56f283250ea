"""Embedding that gives way to plain text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from anvil.embedding.provider import Embedded, EmbeddingProvider, LocalExecutor, provider_or_none
from anvil.errors import ProviderError
from anvil.settings.schema import EmbeddingSettings
from tests.build.test_builder import Counting

AWAY = "The service is away."


class Leaving(Counting):
    """Fails from the second call on, with an exception or row by row."""

    def __init__(self, inner: EmbeddingProvider, raises: bool) -> None:
        super().__init__(inner)
        self.raises, self.calls = raises, 0

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.calls += 1
        found = super().embed(texts)
        if self.calls < 2:
            return found
        if self.raises:
            raise ProviderError(AWAY)
        return Embedded(np.zeros_like(found.vectors), dict.fromkeys(range(len(texts)), AWAY))


@pytest.mark.parametrize("raises", [True, False])
def test_after_a_failure_nothing_more_is_tried(raises: bool, local: EmbeddingProvider) -> None:
    inner = Leaving(local, raises)
    executor = LocalExecutor(inner, never_raises=True)
    one, two_and_three, four = executor.embed([["one"], ["two", "three"], ["four"]])
    assert one.failed == {}
    assert two_and_three.failed == {0: AWAY, 1: AWAY}
    assert four.failed == {0: AWAY} and four.vectors.shape == (1, local.dimensions)
    assert executor.failure == AWAY and inner.calls == 2


def test_a_text_that_fails_alone_stops_nothing(local: EmbeddingProvider) -> None:
    executor = LocalExecutor(Counting(local, refuse="odd"), never_raises=True)
    assert [batch.failed for batch in executor.embed([["even", "odd"], ["even"]])] == [{1: "refused"}, {}]
    assert executor.failure is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (EmbeddingSettings(provider="cohere"), "Unknown embedding provider 'cohere'"),
        (EmbeddingSettings(provider="local", model="/no/such/model"), "/no/such/model"),
        (EmbeddingSettings(provider="openai", model="my-model"), "embedding.dimensions"),
    ],
)
def test_one_that_cannot_be_had_gives_way_at_once(settings: EmbeddingSettings, reason: str) -> None:
    provider, failure = provider_or_none(settings)
    assert provider.name == "none" and failure is not None and reason in failure


@pytest.mark.parametrize("name", ["none", "local", "openai"])
def test_one_that_can_be_had_is_taken(name: str) -> None:
    provider, failure = provider_or_none(EmbeddingSettings(provider=name))
    assert (provider.name, failure) == (name, None)
    provider.close()
