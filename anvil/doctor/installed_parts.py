"""Examinations of the installation: Python, the ``anvil`` program, packages, SQLite, and the embedding model."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from anvil._version import __version__
from anvil.doctor.examination import Examination, ExaminedProject, Finding
from anvil.embedding.local import runtime
from anvil.errors import ModelError, ProviderError
from anvil.formats.characters import script_names
from anvil.settings.schema import EmbeddingSettings
from anvil.system import installation
from anvil.wording import listed

NATIVE = ("apsw", "numpy", "onnxruntime", "pygit2", "tokenizers", "watchfiles")
"""Packages with compiled code. They may be installed and still fail to load, so each is imported."""


def python(project: ExaminedProject) -> Iterator[Finding]:
    home = "in a virtual environment," if sys.prefix != sys.base_prefix else "without a virtual environment,"
    yield Finding("ok", f"Anvil {__version__} on Python {platform.python_version()}, {home} {sys.prefix}.")


def program(project: ExaminedProject) -> Iterator[Finding]:
    """Whether ``anvil`` in a shell, a hook or a client starts this installation."""
    script, on_path = installation.script(), installation.on_path()
    if script is None:
        command = (
            None if installation.checkout() else installation.line(installation.reinstall(installation.DISTRIBUTION))
        )
        yield Finding("note", "This Python has no 'anvil' program, only 'python -m anvil'.", command)
    elif on_path is None:
        text = f"{script} is not on the PATH: hooks and clients that call 'anvil' do not find it."
        yield Finding("note", text, _first_on_path(script.parent))
    elif not os.path.samefile(on_path, script):
        text = f"This is {script}, but 'anvil' on the PATH is {on_path}: hooks and clients start that one."
        yield Finding("note", text, _first_on_path(script.parent))
    else:
        yield Finding("ok", f"'anvil' on the PATH is this one, {on_path}.")


def _first_on_path(folder: Path) -> str:
    if os.name == "nt":
        return f'set "PATH={folder};%PATH%"'
    return f'export PATH={shlex.quote(str(folder))}:"$PATH"'


def packages(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the packages with compiled code load."""
    damaged = False
    for name in NATIVE:
        try:
            runtime() if name == "onnxruntime" else importlib.import_module(name)
        except Exception as error:  # a damaged package can raise anything
            damaged = True
            text = f"{name} cannot be loaded ({_brief(error)})."
            yield Finding("wrong", text, installation.line(installation.reinstall(name)))
    if not damaged:
        yield Finding("ok", f"{listed(NATIVE)} load.")


def sqlite(project: ExaminedProject) -> Iterator[Finding]:
    """The keyword index of SQLite, and the extension that keeps vectors in the file."""
    from anvil.index_file import connection

    part, package = "the keyword index FTS5", "apsw"
    try:
        connection.try_keyword_index()
        part = package = "sqlite-vec"
        text = f"{connection.versions()}, with the keyword index FTS5 and sqlite-vec {connection.try_vectors()}."
        yield Finding("ok", text)
    except Exception as error:  # one of many classes of apsw, or an AnvilError if sqlite-vec is missing
        text = f"{connection.versions()} cannot use {part} ({_brief(error)})."
        yield Finding("wrong", text, installation.line(installation.reinstall(package)))


def _brief(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


SAMPLE_TEXTS = (
    "Press the red button to stop the machine.",
    "How do I switch the engine off?",
    "Tulips are planted in autumn.",
)
SAMPLE_COSINES = (0.577, -0.048)
"""The cosines of the first sample with the others, by the bundled model."""
COSINE_TOLERANCE = 0.05
"""Allowed difference from these, since processors round 8-bit arithmetic differently. A damaged model differs more."""


def embedding_model(project: ExaminedProject) -> Iterator[Finding]:
    from anvil.embedding.provider import create_provider

    settings = project.config.embedding
    if settings.provider == "none":
        yield Finding("ok", "None: the configuration asks for keywords only.")
    elif settings.provider in ("local", "openai"):
        yield _local(settings) if settings.provider == "local" else _openai(settings)
    else:  # a provider that somebody added to PROVIDERS; an unknown name raises
        create_provider(settings.provider, settings).close()
        yield Finding("ok", f"Those of the provider {settings.provider!r}; it was not tried.")


def _local(settings: EmbeddingSettings) -> Finding:
    """Whether the model on this machine loads, and gives the cosines that it should."""
    from anvil.embedding.local import BUNDLED, model_digest, open_directory
    from anvil.embedding.provider import create_provider

    is_bundled = not settings.model
    if not is_bundled and not Path(settings.model).expanduser().is_dir():
        return Finding("note", f"{settings.model} is not a folder here; it is fetched from the model hub at first use.")
    try:
        directory = open_directory(settings.model)
        if is_bundled and model_digest(BUNDLED, directory.settings) != directory.digest:
            raise ModelError(f"The files in {BUNDLED} are not those that were published: their digest differs.")
        provider = create_provider("local", settings)
        try:
            embedded, scripts = provider.embed(SAMPLE_TEXTS), provider.scripts or ()
        finally:
            provider.close()
        for reason in embedded.failed.values():
            raise ModelError(f"The model of {directory.path} cannot run ({reason}).")
        cosines = (embedded.vectors[1:] @ embedded.vectors[0]).tolist()
        if is_bundled and any(abs(a - b) > COSINE_TOLERANCE for a, b in zip(cosines, SAMPLE_COSINES, strict=True)):
            actual = ", ".join(f"{cosine:.3f}" for cosine in cosines)
            expected = ", ".join(map(str, SAMPLE_COSINES))
            raise ModelError(f"The model loads, but its cosines are {actual}. They should be {expected}.")
    except ModelError as error:
        return Finding("wrong", str(error), _restore_command() if is_bundled else None)
    files = "its files are complete, and it" if is_bundled else "it"
    reads = f" It reads {script_names(scripts)} script; questions in others are answered by words alone."
    return Finding("ok", f"{directory.name}: {files} gives vectors of {provider.dimensions} dimensions.{reads}")


def _restore_command() -> str:
    """The command that restores the files of the bundled model."""
    root = installation.checkout()
    if root is not None:
        return installation.line(["git", "-C", str(root), "checkout", "--", "anvil/embedding/model"])
    return installation.line(installation.reinstall(installation.DISTRIBUTION))


def _openai(settings: EmbeddingSettings) -> Finding:
    from anvil.embedding.openai import OpenAIProvider, api_key

    provider = OpenAIProvider(settings)
    if not api_key(settings):
        text = f"{provider.model} by OpenAI's API, which needs a key. None is set."
        return Finding("wrong", text, installation.export("OPENAI_API_KEY", "YOUR-KEY"))
    try:
        provider.client()
    except ProviderError as error:
        return Finding("wrong", str(error), installation.install_extras("openai"))
    finally:
        provider.close()
    return Finding("ok", f"{provider.model} by OpenAI's API. A key is set; it was not tried.")


EXAMINATIONS: dict[str, Examination] = {
    "python": python,
    "program": program,
    "packages": packages,
    "sqlite": sqlite,
    "model": embedding_model,
}
