"""Where a build's texts are embedded: on this machine, or on the workers of a cluster.

An executor is a way from batches of texts to batches of vectors. Cutting, taking over what is known, and writing stay
where the build runs: embedding is all but a few percent of the work.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from anvil.errors import ConfigError, ProviderError

if TYPE_CHECKING:
    from anvil.config import EmbeddingSettings
    from anvil.embedding import Embedded, EmbeddingProvider

Answers = Generator["Embedded", None, None]
"""One :class:`Embedded` a batch, in the order of the batches. Closing it lets go of everything behind it."""


class Executor(Protocol):
    """Embeds the texts of one build."""

    @property
    def batch(self) -> int:
        """Texts that a batch should have, more or less."""

    @property
    def notes(self) -> list[str]:
        """Sentences for the build's report, complete when :meth:`embed` has ended."""

    def embed(self, batches: Iterable[Sequence[str]]) -> Answers:
        """The vectors of each batch, in order. Some batches are taken ahead of their answers, boundedly many.

        Raises :class:`BuildError` when it cannot go on; nothing that was started is left behind.
        """


class Here:
    """One batch after the other, by the provider itself."""

    batch = 512
    """Enough to keep all cores busy, few enough to keep memory flat."""

    def __init__(self, provider: EmbeddingProvider, batch: int = batch) -> None:
        self.batch = batch
        self.notes: list[str] = []
        self._provider = provider

    def embed(self, batches: Iterable[Sequence[str]]) -> Answers:
        """As the provider does, which may give up for good: its quota is used up, its key revoked. What it made before
        was paid for, and stands; all that follows fails for that reason, and it is not asked again."""
        from anvil.embedding import none_of

        begun, lost = False, ""
        for texts in batches:
            if not lost:
                try:
                    made = self._provider.embed(texts)
                except ProviderError as error:
                    if not begun:
                        raise
                    lost = str(error)
                else:
                    begun = begun or len(made.failed) < len(texts)
            if lost:
                made = none_of(texts, self._provider.dimensions, lost)
            yield made


def executor(address: str, provider: EmbeddingProvider, settings: EmbeddingSettings) -> Executor:
    """The executor at ``address``: ``ray://HOST:PORT``, ``ray://auto`` or ``ray://local``. Nothing is started yet.

    Raises :class:`ConfigError` for an address that makes no sense, a provider whose work cannot be spread, and
    where Ray is not installed.
    """
    if not re.fullmatch(r"ray://(local|auto|([\w.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})", address):
        raise ConfigError(
            f"{address!r} is no executor. Name a cluster as ray://HOST:10001, as ray://auto where RAY_ADDRESS or this "
            "machine says which, or start one on this machine with ray://local."
        )
    if provider.name == "none":
        return Here(provider)  # no vectors: nothing to spread
    if provider.name != "local":
        raise ConfigError(
            f"The provider {provider.name!r} embeds elsewhere already, and its key stays on this machine. "
            "Build without --executor."
        )
    if find_spec("ray") is None:
        raise ConfigError("Ray is not installed. Run: pip install 'anvil-docs[ray]'")
    from anvil.executing.cluster import Cluster

    return Cluster(address, provider, settings)
