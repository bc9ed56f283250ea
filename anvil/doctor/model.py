"""The embedding provider that is configured: its files, its key, and whether it gives the vectors it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anvil import program
from anvil.config import EmbeddingSettings
from anvil.doctor.installation import extra
from anvil.doctor.place import Place
from anvil.errors import ConfigError, ModelError, ProviderError
from anvil.findings import Finding

SAID = ("Press the red button to stop the machine.", "How do I switch the engine off?", "Tulips are planted in autumn.")
COSINES = (0.577, -0.048)
"""Cosines that the bundled model gives of the first of these sentences with the others."""
TOLERANCE = 0.05
"""Processors round 8-bit arithmetic each in their own way; a model that is not right is off by far more."""


def examine(place: Place) -> Iterator[Finding]:
    """The provider, whichever it is."""
    from anvil import embedding

    settings = place.config.embedding
    if settings.provider not in embedding.PROVIDERS:
        try:
            embedding.provider(settings.provider, settings)
        except ConfigError as error:
            yield Finding("model", "wrong", str(error))
    elif settings.provider == "local":
        yield _local(settings)
    elif settings.provider == "openai":
        yield _openai(settings)
    else:
        yield Finding("model", "ok", "None: the configuration asks for keywords only.")


def _local(settings: EmbeddingSettings) -> Finding:
    from anvil import embedding
    from anvil.embedding.model_directory import BUNDLED, model_digest, open_directory

    bundled = not settings.model
    if not bundled and not Path(settings.model).expanduser().is_dir():
        text = f"{settings.model} is no folder here; it is asked of the model hub at first use."
        return Finding("model", "note", text)
    try:
        directory = open_directory(settings.model)
        if bundled and model_digest(BUNDLED, directory.settings) != directory.digest:
            raise ModelError(f"{BUNDLED} does not hold the files that were published: their digest is another.")
        provider = embedding.provider("local", settings)
        try:
            found = provider.embed(SAID)
        finally:
            provider.close()
        for reason in found.failed.values():
            raise ModelError(f"The model of {directory.path} cannot run ({reason}).")
        cosines = (found.vectors[1:] @ found.vectors[0]).tolist()
        if bundled and any(abs(a - b) > TOLERANCE for a, b in zip(cosines, COSINES, strict=True)):
            told = ", ".join(f"{cosine:.3f}" for cosine in cosines)
            right = ", ".join(map(str, COSINES))
            raise ModelError(f"The model loads, but gives cosines of {told} where {right} are right.")
    except ModelError as error:
        return Finding("model", "wrong", str(error), _restore() if bundled else None)
    whole = "its files are whole, and it" if bundled else "it"
    return Finding("model", "ok", f"{directory.name}: {whole} gives vectors of {provider.dimensions} dimensions.")


def _restore() -> str:
    """The command that puts the bundled model's files back."""
    root = program.checkout()
    if root is not None:
        return program.line(["git", "-C", str(root), "checkout", "--", "anvil/embedding/model"])
    return program.line(program.reinstall(program.DISTRIBUTION))


def _openai(settings: EmbeddingSettings) -> Finding:
    from anvil.embedding.openai import OpenAIProvider, api_key

    try:
        provider = OpenAIProvider(settings)
    except ConfigError as error:
        return Finding("model", "wrong", str(error))
    if not api_key(settings):
        said = f"{provider.model} by OpenAI's API, which wants a key, and none is set."
        return Finding("model", "wrong", said, program.export("OPENAI_API_KEY", "YOUR-KEY"))
    try:
        provider.connect()
    except ProviderError as error:
        return Finding("model", "wrong", str(error), program.line(extra("openai")))
    finally:
        provider.close()
    return Finding("model", "ok", f"{provider.model} by OpenAI's API. A key is set; it was not tried.")
