"""Executors: batches of texts to batches of vectors, on this machine or on the workers of a cluster.

All other work of a build (chunking, reuse of vectors, writing) is done where the build runs: it is a few percent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from anvil.errors import ProviderError

if TYPE_CHECKING:
    from anvil.embedding.provider import Embedded, EmbeddingProvider

EmbeddedBatches = Generator["Embedded", None, None]
"""One :class:`Embedded` for each batch, in the order of the batches. Closing it frees what it uses."""


class Executor(Protocol):
    """Embeds the texts of one build."""

    @property
    def batch(self) -> int:
        """Texts that a batch should have, about."""

    @property
    def notes(self) -> list[str]:
        """Sentences for the build's report, complete after :meth:`embed`."""

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. A limited number of batches is read in advance.

        Raises :class:`BuildError` when it cannot go on. It leaves no process running.
        """


class LocalExecutor:
    """Embeds one batch after the other by the provider, in this process."""

    batch = 512
    """Enough to keep all cores busy, few enough to need little memory."""

    def __init__(self, provider: EmbeddingProvider, batch: int = batch) -> None:
        self.batch = batch
        self.notes: list[str] = []
        self._provider = provider

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. When the provider fails for all texts after some were embedded (quota
        used up, key revoked), the vectors so far are kept, and the rest fails with that reason without a request."""
        from anvil.embedding.provider import no_vectors

        any_embedded, failure = False, ""
        for texts in batches:
            if not failure:
                try:
                    embedded = self._provider.embed(texts)
                except ProviderError as error:
                    if not any_embedded:
                        raise
                    failure = str(error)
                else:
                    any_embedded = any_embedded or len(embedded.failed) < len(texts)
            if failure:
                embedded = no_vectors(texts, self._provider.dimensions, failure)
            yield embedded
