"""The protocols of embedding: a provider turns texts into unit vectors, an executor runs it for a build.

With the provider without a model, the one that asks the user's cache first, providers by name, and the executors of
this process. Importing it costs nothing. A provider loads numpy, onnxruntime or a network library at its first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from anvil.embedding.vectors import Embedded, Vector
from anvil.errors import AnvilError, ConfigError, ModelError, ProviderError
from anvil.settings.schema import BUNDLED_MODEL, EmbeddingSettings

if TYPE_CHECKING:
    from anvil.embedding.passages import PassageScorer
    from anvil.index_file.vector_cache import VectorCache


class EmbeddingProvider(Protocol):
    """A model that turns texts into unit vectors. A subclass needs only what has no default here."""

    @property
    def name(self) -> str:
        """The key in ``PROVIDERS``, such as ``local``."""

    @property
    def model(self) -> str:
        """The model's name, for people: ``all-MiniLM-L6-v2``."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over all that defines a vector. Providers with the same digest are interchangeable."""

    @property
    def server(self) -> str:
        """The address that texts are sent to, if it is set. Empty: the provider's own, or none."""
        return ""

    @property
    def dimensions(self) -> int:
        """Components of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens of text that one vector can cover, without the model's own special tokens and prefixes."""

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts that the model reads, named as by :func:`anvil.formats.characters.script`; None: nobody knows."""
        return None

    @property
    def passages(self) -> PassageScorer | None:
        """Scores how well passages answer a question; None: the model has no such scorer."""
        return None

    def warm(self) -> None:
        """Load what the first text needs, and return when it is loaded. Optional: every method loads it too."""
        return  # without a statement, a subclass would have to have this method

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text, the (start, end) characters of its tokens, in order."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of documents. A text longer than ``max_tokens`` is cut, so make windows first."""

    def embed_query(self, text: str) -> Vector:
        """The (dimensions,) unit vector of a query of any length."""

    def close(self) -> None:
        """Release the model. A second call does nothing."""
        return


class NoProvider(EmbeddingProvider):
    """The provider without a model, for keyword search only: vectors of zero components.

    It keeps the protocol, so that no other code has to ask whether there is a model.
    """

    name = "none"
    model = "none"
    digest = hashlib.sha256(b"none").hexdigest()
    dimensions = 0
    max_tokens = 0

    def __init__(self, settings: EmbeddingSettings) -> None:
        """``settings`` are not used."""

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """No tokens, so there are no windows."""
        return [[] for _ in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        """An (n, 0) matrix."""
        import numpy as np

        return Embedded(np.zeros((len(texts), 0), np.float32), {})

    def embed_query(self, text: str) -> Vector:
        return self.embed([text]).vectors[0]  # type: ignore[no-any-return]


class CachedProvider:
    """An :class:`EmbeddingProvider` that embeds each text once per user: it asks the user's cache first.

    A cached vector is the row that an index stores. It gives the same bytes again when it is written to an index.
    """

    name: str  # this and what follows is the wrapped provider's
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

    # Asked for when they are needed, and not copied: some of them load the model.
    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def warm(self) -> None:
        self.wrapped.warm()

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return self.wrapped.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """(n, dimensions) unit vectors: of the texts that the cache knows from there, of the others by the provider."""
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
        if cached:
            rows = vector_rows(b"".join(stored[keys[row]] for row in cached), self.dimensions).astype(np.float32)
            vectors[cached] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        if missing:
            made = self.wrapped.embed([texts[row] for row in missing])
            vectors[missing] = made.vectors
            failed = {missing[number]: reason for number, reason in made.failed.items()}
        if new := [row for row in missing if row not in failed]:  # a failure must be tried again, not kept
            self._cache.put(dict(zip((keys[row] for row in new), quantized(vectors[new]), strict=True)))
        return Embedded(vectors, failed, frozenset(cached))

    def embed_query(self, text: str) -> Vector:
        """Queries are never kept: they are not documents."""
        return self.wrapped.embed_query(text)

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self.wrapped.close()


def uncached(provider: EmbeddingProvider) -> EmbeddingProvider:
    """``provider`` without a cache around it."""
    return provider.wrapped if isinstance(provider, CachedProvider) else provider


# --- providers by name: the one that the user names is used or fails, and is never replaced by another ---------------


def create_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The provider called ``name``. Loads no model and opens no connection.

    Raises ConfigError for a name that is not in ``PROVIDERS``.
    """
    if name not in PROVIDERS:
        names = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"Unknown embedding provider {name!r}. Choose one of: {names}.")
    return PROVIDERS[name](settings)


def create_cached_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """As :func:`create_provider`, with the user's cache of vectors in front of it where ``settings`` allow that."""
    provider = create_provider(name, settings)
    return provider if name == "none" or not settings.cache else CachedProvider(provider)


def provider_or_none(settings: EmbeddingSettings) -> tuple[EmbeddingProvider, str | None]:
    """The provider that ``settings`` name. If its model is not known, the provider ``none`` and the reason: without the
    model's digest no vector could be compared with those of the index.
    """
    try:
        provider = create_cached_provider(settings.provider, settings)
        _ = provider.digest, provider.dimensions  # reads the model's folder, which is not done before it is needed
    except AnvilError as error:
        return create_provider("none", settings), str(error)
    return provider, None


def explain_mismatch(meta: Mapping[str, str], current: EmbeddingProvider) -> str:
    """Why the ``current`` provider cannot query an index whose vectors another model made, and what to set."""
    name, model = meta["embedding_provider"], meta["embedding_model"]
    # a model in a folder is not set by its name
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
"""Name -> what makes the provider. Its module, and with it a library, is imported for this provider only."""


# --- executors -------------------------------------------------------------------------------------------

EmbeddedBatches = Generator[Embedded, None, None]
"""One :class:`Embedded` for each batch, in the order of the batches. Closing it frees what it uses."""


class Executor(Protocol):
    """Embeds the texts of one build, on this machine or on the workers of a cluster.

    All other work of a build (chunking, reuse of vectors, writing) is done where the build runs: it is a few percent.
    """

    @property
    def batch(self) -> int:
        """Texts that a batch should have, about."""

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. A limited number of batches is read in advance.

        Raises :class:`BuildError` when it cannot go on. It leaves no process running.
        """


class LocalExecutor:
    """Embeds one batch after the other by the provider, in this process."""

    batch = 512
    """Enough to keep all cores busy until the last long text is done, few enough to need little memory."""

    def __init__(
        self,
        provider: EmbeddingProvider,
        batch: int = batch,
        *,
        never_raises: bool = False,
        failure: str | None = None,
    ) -> None:
        """``never_raises``: texts that cannot be embedded stay without vectors, and after a batch in which all texts
        failed the provider is asked no more. ``failure``: why there are no vectors; None while the provider works."""
        self.batch = batch
        self.never_raises = never_raises
        self.failure = failure
        self._provider = provider

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. When the provider fails for all texts after some were embedded (quota
        used up, key revoked), the vectors so far are kept, and the rest fails with that reason without a request."""
        import numpy as np

        any_embedded = False
        for texts in batches:  # they are read to the end after a failure, too: that cuts the windows of the index
            embedded = None
            if self.failure is None:
                try:
                    embedded = self._provider.embed(texts)
                except (ModelError, ProviderError) as error:
                    if not self.never_raises and not (any_embedded and isinstance(error, ProviderError)):
                        raise
                    self.failure = str(error)
            if embedded is None:
                nothing = np.zeros((len(texts), self._provider.dimensions), np.float32)
                embedded = Embedded(nothing, dict.fromkeys(range(len(texts)), self.failure or ""))
            elif self.never_raises and texts and len(embedded.failed) == len(texts):
                self.failure = next(iter(embedded.failed.values()))
            any_embedded = any_embedded or len(embedded.failed) < len(texts)
            yield embedded
