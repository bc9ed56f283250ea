"""Embedding providers by name, which turn texts into unit vectors; the user's vector cache; executors of a build.

Importing this module is quick. A provider loads numpy, onnxruntime or a network library at its first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from anvil.errors import AnvilError, ConfigError, ModelError, ProviderError
from anvil.settings.schema import BUNDLED_MODEL, EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anvil.embedding.passages import PassageScorer
    from anvil.index_file.vector_cache import VectorCache


Vector: TypeAlias = "NDArray[np.float32]"
"""float32; (dimensions,) for one text, (n, dimensions) for n texts."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a list of texts, one row for each text."""

    vectors: Vector
    """(n, dimensions) float32, rows of unit length. Rows that failed are zeros."""
    failed: Mapping[int, str]
    """Row -> reason of its failure. The other rows are valid."""
    cached: frozenset[int] = frozenset()
    """Rows from the user's cache, which were not computed now."""
    is_down: bool = False
    """Whether texts failed because the provider answered no request with them, not because it refused them."""


class EmbeddingProvider(Protocol):
    """A model that turns texts into unit vectors. A subclass must define all members without a default here."""

    @property
    def name(self) -> str:
        """The key in ``PROVIDERS``, such as ``local``."""

    @property
    def model(self) -> str:
        """The model's name, for people: ``all-MiniLM-L6-v2``."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that defines a vector. Providers with the same digest are interchangeable."""

    @property
    def server(self) -> str:
        """The configured address of a server that gets the texts; empty for the default one or none."""
        return ""

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""

    @property
    def max_tokens(self) -> int:
        """The number of text tokens that one vector can cover, without special tokens and prefixes of the model."""

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts that the model reads, see :func:`anvil.formats.characters.script`; None if unknown."""
        return None

    @property
    def passages(self) -> PassageScorer | None:
        """The model that scores how well passages answer a question; None if there is none."""
        return None

    def warm(self) -> None:
        """Load all that the first text needs. It is optional, because each method loads what it needs."""
        return  # with a statement, type checkers see a default that a subclass need not define

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text, (start, end) of its tokens in characters, in order."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The vectors of documents. The end of a text over ``max_tokens`` is ignored, so make windows first."""

    def embed_query(self, text: str) -> Vector:
        """The unit vector (dimensions,) of a query of any length."""

    def close(self) -> None:
        """Release the model. A second call does nothing."""
        return


class NoProvider(EmbeddingProvider):
    """The provider without a model, for keyword search only. Its vectors have no components.

    It is a provider like others, so that no other code must ask whether there is a model.
    """

    name = "none"
    model = "none"
    digest = hashlib.sha256(b"none").hexdigest()
    dimensions = 0
    max_tokens = 0

    def __init__(self, settings: EmbeddingSettings) -> None:
        """``settings``: not used."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """No tokens for any text, so that there are no windows."""
        return [[] for _ in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """An (n, 0) matrix."""
        import numpy as np

        return Embedded(np.zeros((len(texts), 0), np.float32), {})

    def embed_query(self, text: str) -> Vector:
        return self.embed([text]).vectors[0]  # type: ignore[no-any-return]


class CachedProvider:
    """An :class:`EmbeddingProvider` that looks into the user's cache first, so that each text is embedded only once.

    A cached vector is a row as an index stores it, so an index has the same bytes with and without the cache.
    """

    name: str  # these attributes are those of the wrapped provider
    model: str
    digest: str
    server: str
    dimensions: int
    max_tokens: int
    scripts: frozenset[str] | None
    passages: PassageScorer | None

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.wrapped = provider
        self._cache: VectorCache | None = None

    # Not copied in __init__, because some of these attributes load the model.
    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def warm(self) -> None:
        self.wrapped.warm()

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return self.wrapped.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The unit vectors (n, dimensions): from the cache, and for new texts from the provider."""
        import numpy as np

        from anvil.index_file.table_rows import quantized, vector_rows
        from anvil.index_file.vector_cache import VectorCache, text_key

        if self._cache is None:
            origin = f"{self.digest}\n{self.server}".encode()  # hashed, because an address may hold a secret
            self._cache = VectorCache(hashlib.sha256(origin).hexdigest(), self.dimensions)
        keys = [text_key(text) for text in texts]
        stored = self._cache.get(keys)
        missing = [row for row, key in enumerate(keys) if key not in stored]
        cached = [row for row, key in enumerate(keys) if key in stored]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        failed: dict[int, str] = {}
        is_down = False
        if cached:
            rows = vector_rows(b"".join(stored[keys[row]] for row in cached), self.dimensions).astype(np.float32)
            vectors[cached] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        if missing:
            embedded = self.wrapped.embed([texts[row] for row in missing])
            vectors[missing], is_down = embedded.vectors, embedded.is_down
            failed = {missing[number]: reason for number, reason in embedded.failed.items()}
        if new := [row for row in missing if row not in failed]:  # failures are not cached, but tried again
            self._cache.put(dict(zip((keys[row] for row in new), quantized(vectors[new]), strict=True)))
        return Embedded(vectors, failed, frozenset(cached), is_down)

    def embed_query(self, text: str) -> Vector:
        """The unit vector of a query. Queries are not cached."""
        return self.wrapped.embed_query(text)

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self.wrapped.close()


def uncached(provider: EmbeddingProvider) -> EmbeddingProvider:
    """``provider`` without a cache around it."""
    return provider.wrapped if isinstance(provider, CachedProvider) else provider


# --- providers by name. The configured provider is used or fails; no other one takes its place -----------------------


def create_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The provider called ``name``. Loads no model and opens no connection.

    Raises :class:`ConfigError` if the name is not in ``PROVIDERS``.
    """
    if name not in PROVIDERS:
        names = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"Unknown embedding provider {name!r}. Choose one of: {names}.")
    return PROVIDERS[name](settings)


def create_cached_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The provider called ``name``, behind the user's cache of vectors if ``settings`` allow that."""
    provider = create_provider(name, settings)
    return provider if name == "none" or not settings.cache else CachedProvider(provider)


def provider_or_none(settings: EmbeddingSettings) -> tuple[EmbeddingProvider, str | None]:
    """The provider in ``settings`` and None; or the provider ``none`` and the reason, if the model cannot be
    identified. Without the model's digest, no vector could be compared with those of an index."""
    try:
        provider = create_cached_provider(settings.provider, settings)
        _ = provider.digest, provider.dimensions  # they read the model's folder, which raises an error if that fails
    except AnvilError as error:
        return create_provider("none", settings), str(error)
    return provider, None


def explain_mismatch(meta: Mapping[str, str], current: EmbeddingProvider) -> str:
    """The message why the ``current`` provider cannot compare queries with the vectors of an index, and what to set.
    ``meta``: the manifest of the index."""
    name, model = meta["embedding_provider"], meta["embedding_model"]
    # Only the bundled model is known by its name. Another one may be in any folder.
    which = "leave embedding.model empty" if model == BUNDLED_MODEL else "embedding.model to the model of the index"
    both = f"set embedding.provider to {name!r} and {which}"
    if current.name == "none":
        return f"keywords only were asked for (embedding provider none). To use the index's vectors of {model}, {both}."
    return f"the index was built with {model}, and the current model is {current.model}. Rebuild the index, or {both}."


PROVIDERS: dict[str, Callable[[EmbeddingSettings], EmbeddingProvider]] = {
    "local": lambda settings: import_module("anvil.embedding.local").LocalProvider(settings),
    "openai": lambda settings: import_module("anvil.embedding.openai").OpenAIProvider(settings),
    "none": NoProvider,
}
"""Name -> function that makes the provider. It imports the provider's module, which imports its library."""


# --- executors -------------------------------------------------------------------------------------------

EmbeddedBatches = Generator[Embedded, None, None]
"""One :class:`Embedded` for each batch, in the order of the batches. Closing the generator frees its resources."""


class Executor(Protocol):
    """Embeds the texts of one build, on this machine or on the workers of a cluster.

    The other work of a build takes a few percent of its time: chunking, reuse of vectors, writing; not distributed.
    """

    @property
    def batch(self) -> int:
        """The usual number of texts in a batch."""

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. A limited number of batches is read in advance.

        Raises :class:`BuildError` if embedding cannot continue. Then no process is left running.
        """


class LocalExecutor:
    """Embeds one batch after the other in this process."""

    batch = 512
    """Large enough to keep all cores busy until the last long text is done, small enough to need little memory."""

    def __init__(
        self, provider: EmbeddingProvider, batch: int = batch, *, never_raises: bool = False, failure: str | None = None
    ) -> None:
        """``failure``: the reason if no vectors can be made, as is known before the first batch.

        ``never_raises``: texts that cannot be embedded stay without vectors. After a batch in which all texts failed,
        no further batch is given to the provider."""
        self.batch = batch
        self.never_raises = never_raises
        self.failure = failure
        self._provider = provider

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order.

        The provider may fail for all further texts after some were embedded, such as when a quota is used up or a key
        is revoked. Then the vectors so far are kept, and all further texts fail with that reason, without a request."""
        import numpy as np

        any_embedded = False
        for texts in batches:  # read to the end also after a failure, because reading them cuts the index's windows
            embedded = None
            if self.failure is None:
                try:
                    embedded = self._provider.embed(texts)
                except (ModelError, ProviderError) as error:
                    if not self.never_raises and not (any_embedded and isinstance(error, ProviderError)):
                        raise
                    self.failure = str(error)
            if embedded is None:
                zeros = np.zeros((len(texts), self._provider.dimensions), np.float32)
                embedded = Embedded(zeros, dict.fromkeys(range(len(texts)), self.failure or ""))
            elif self.never_raises and texts and len(embedded.failed) == len(texts):
                self.failure = next(iter(embedded.failed.values()))
            any_embedded = any_embedded or len(embedded.failed) < len(texts)
            yield embedded
