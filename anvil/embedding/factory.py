"""Embedding providers by name. The provider that the user names is used or fails; it is never replaced by another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anvil.embedding.provider import BUNDLED_MODEL, CachedProvider, EmbeddingProvider, NoProvider
from anvil.errors import AnvilError, ConfigError
from anvil.settings.schema import EmbeddingSettings


def create_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The provider called ``name``. Loads no model and opens no connection.

    Raises ConfigError for a name that is not in ``PROVIDERS``.
    """
    if name not in PROVIDERS:
        names = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"Unknown embedding provider {name!r}. Choose one of: {names}.")
    return PROVIDERS[name](settings)


def create_cached_provider(name: str, settings: EmbeddingSettings) -> EmbeddingProvider:
    """The provider called ``name``, with the user's cache of vectors in front of it where ``settings`` allow that.

    Raises ConfigError for a name that is not in ``PROVIDERS``.
    """
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
    which = "leave embedding.model empty" if model == BUNDLED_MODEL else f"embedding.model to {model!r}"
    both = f"set embedding.provider to {name!r} and {which}"
    if current.name == "none":
        return f"keywords only were asked for (embedding provider none). To use the index's vectors of {model}, {both}."
    models = f"the index was built with {model}, and the current model is {current.model}."
    if current.name != name:
        return f"{models} Rebuild the index, or {both}."
    if model == BUNDLED_MODEL != current.model:
        return f"{models} Rebuild the index, or {which}."
    return f"{models} Rebuild the index, or set embedding.model to that model."


# Each in a function, so that its module, and with it a library, is imported for this provider only.
def _local(settings: EmbeddingSettings) -> EmbeddingProvider:
    from anvil.embedding.local import LocalProvider

    return LocalProvider(settings)


def _openai(settings: EmbeddingSettings) -> EmbeddingProvider:
    from anvil.embedding.openai import OpenAIProvider

    return OpenAIProvider(settings)


PROVIDERS: dict[str, Callable[[EmbeddingSettings], EmbeddingProvider]] = {
    "local": _local,
    "openai": _openai,
    "none": NoProvider,
}
