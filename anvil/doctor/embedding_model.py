"""The configured embedding provider: its files, its key, and whether its vectors are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding
from anvil.embedding import writing_systems
from anvil.errors import ConfigError, ModelError, ProviderError
from anvil.settings.schema import EmbeddingSettings
from anvil.system import installation

SAMPLE_TEXTS = (
    "Press the red button to stop the machine.",
    "How do I switch the engine off?",
    "Tulips are planted in autumn.",
)
SAMPLE_COSINES = (0.577, -0.048)
"""The bundled model's cosines of the first sample with the others."""
COSINE_TOLERANCE = 0.05
"""Processors round 8-bit arithmetic differently; a damaged model is off by far more."""


def examine(place: Place) -> Iterator[Finding]:
    """The configured provider."""
    from anvil.embedding.factory import PROVIDERS, create_provider

    settings = place.config.embedding
    if settings.provider not in PROVIDERS:
        try:
            create_provider(settings.provider, settings)
        except ConfigError as error:
            yield Finding("model", "wrong", str(error))
    elif settings.provider == "local":
        yield _local(settings)
    elif settings.provider == "openai":
        yield _openai(settings)
    else:
        yield Finding("model", "ok", "None: the configuration asks for keywords only.")


def _local(settings: EmbeddingSettings) -> Finding:
    from anvil.embedding.factory import create_provider
    from anvil.embedding.model_files import BUNDLED, model_digest, open_directory

    bundled = not settings.model
    if not bundled and not Path(settings.model).expanduser().is_dir():
        text = f"{settings.model} is not a folder here; it is fetched from the model hub at first use."
        return Finding("model", "note", text)
    try:
        directory = open_directory(settings.model)
        if bundled and model_digest(BUNDLED, directory.settings) != directory.digest:
            raise ModelError(f"The files in {BUNDLED} are not those that were published: their digest differs.")
        provider = create_provider("local", settings)
        try:
            embedded, known = provider.embed(SAMPLE_TEXTS), provider.scripts or ()
        finally:
            provider.close()
        for reason in embedded.failed.values():
            raise ModelError(f"The model of {directory.path} cannot run ({reason}).")
        cosines = (embedded.vectors[1:] @ embedded.vectors[0]).tolist()
        if bundled and any(abs(a - b) > COSINE_TOLERANCE for a, b in zip(cosines, SAMPLE_COSINES, strict=True)):
            given = ", ".join(f"{cosine:.3f}" for cosine in cosines)
            expected = ", ".join(map(str, SAMPLE_COSINES))
            raise ModelError(f"The model loads, but its cosines are {given}. They should be {expected}.")
    except ModelError as error:
        return Finding("model", "wrong", str(error), _restore() if bundled else None)
    files = "its files are complete, and it" if bundled else "it"
    reads = f" It reads {writing_systems.names(known)} script; questions in others are answered by words alone."
    return Finding(
        "model", "ok", f"{directory.name}: {files} gives vectors of {provider.dimensions} dimensions.{reads}"
    )


def _restore() -> str:
    """The command that puts the bundled model's files back."""
    root = installation.checkout()
    if root is not None:
        return installation.line(["git", "-C", str(root), "checkout", "--", "anvil/embedding/model"])
    return installation.line(installation.reinstall(installation.DISTRIBUTION))


def _openai(settings: EmbeddingSettings) -> Finding:
    from anvil.embedding.openai import OpenAIProvider, api_key

    try:
        provider = OpenAIProvider(settings)
    except ConfigError as error:
        return Finding("model", "wrong", str(error))
    if not api_key(settings):
        text = f"{provider.model} by OpenAI's API, which needs a key. None is set."
        return Finding("model", "wrong", text, installation.export("OPENAI_API_KEY", "YOUR-KEY"))
    try:
        provider.connect()
    except ProviderError as error:
        return Finding("model", "wrong", str(error), installation.install_extras("openai"))
    finally:
        provider.close()
    return Finding("model", "ok", f"{provider.model} by OpenAI's API. A key is set; it was not tried.")
