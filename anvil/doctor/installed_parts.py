"""Python, the ``anvil`` program, the packages that it needs, SQLite, and the embedding model."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anvil._version import __version__
from anvil.doctor.examined_project import Examination, ExaminedProject, Finding
from anvil.embedding.local import runtime
from anvil.errors import ModelError, ProviderError
from anvil.formats.characters import script_names
from anvil.settings.schema import EmbeddingSettings
from anvil.system import installation
from anvil.wording import listed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NATIVE = ("apsw", "numpy", "onnxruntime", "pygit2", "tokenizers")
"""Packages with compiled code. They can be installed and still fail to load, so each is imported."""
EXTRAS = ("attest", "lancedb", "library", "milvus", "mkdocs", "openai", "ray", "sphinx")
"""Optional parts that users install."""


def python(project: ExaminedProject) -> Iterator[Finding]:
    bits = 64 if sys.maxsize > 2**32 else 32
    home = "in a virtual environment," if sys.prefix != sys.base_prefix else "without a virtual environment,"
    text = f"Anvil {__version__} on Python {platform.python_version()}, {bits} bit, {home} {sys.prefix}."
    if bits == 32:
        yield Finding("wrong", f"{text} The embedding model needs a 64 bit Python. Install one.")
    else:
        yield Finding("ok", text)


def program(project: ExaminedProject) -> Iterator[Finding]:
    """Whether ``anvil`` in a shell, a hook or a client starts this installation."""
    own, on_path = installation.script(), installation.on_path()
    if own is None:
        command = (
            None if installation.checkout() else installation.line(installation.reinstall(installation.DISTRIBUTION))
        )
        yield Finding("note", "This Python has no 'anvil' program, only 'python -m anvil'.", command)
    elif on_path is None:
        text = f"{own} is not on the PATH: hooks and clients that call 'anvil' do not find it."
        yield Finding("note", text, _first_on_path(own.parent))
    elif not os.path.samefile(on_path, own):
        text = f"This is {own}, but 'anvil' on the PATH is {on_path}: hooks and clients start that one."
        yield Finding("note", text, _first_on_path(own.parent))
    else:
        yield Finding("ok", f"'anvil' on the PATH is this one, {on_path}.")


def _first_on_path(folder: Path) -> str:
    if os.name == "nt":
        return f'set "PATH={folder};%PATH%"'
    return f'export PATH={shlex.quote(str(folder))}:"$PATH"'


def packages(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the required packages are installed, are new enough, and load."""
    required = _required()[""]
    problems: dict[str, str] = {}
    needed = []
    for requirement in required:
        version = _version(requirement.name)
        if version is None:
            problems[requirement.name] = "is missing"
        elif not requirement.specifier.contains(version, prereleases=True):
            problems[requirement.name] = f"is {version}, older than {str(requirement.specifier).removeprefix('>=')}"
        else:
            continue
        needed.append(f"{requirement.name}{requirement.specifier}")
    if problems:
        named = listed([f"{name} {problem}" for name, problem in problems.items()])
        yield Finding("wrong", f"{named}.", installation.line(installation.install(needed)))
    elif required:
        yield Finding("ok", f"All {len(required)} required packages are installed and new enough.")
    else:
        yield Finding("note", f"{installation.DISTRIBUTION} is not installed; its code runs from the checkout.")
    for name in NATIVE:
        if name in problems:
            continue
        try:
            runtime() if name == "onnxruntime" else importlib.import_module(name)
        except Exception as error:  # a damaged package can raise anything
            text = f"{name} cannot be loaded ({_brief(error)})."
            yield Finding("wrong", text, installation.line(installation.reinstall(name)))


def extras(project: ExaminedProject) -> Iterator[Finding]:
    required = _required(*EXTRAS)
    there = [name for name in EXTRAS if required[name] and all(_version(part.name) for part in required[name])]
    missing = [name for name in EXTRAS if name not in there]
    text = f"Installed: {listed(there) or 'none'}."
    more = f" To add {listed(missing, 'or')}: {installation.install_extras('NAME')}" if missing else ""
    yield Finding("ok", f"{text}{more}")


def sqlite(project: ExaminedProject) -> Iterator[Finding]:
    from anvil.index_file import connection

    try:
        connection.keyword_index()
        yield Finding("ok", f"{connection.versions()}, with the keyword index FTS5.")
    except Exception as error:  # apsw has many exception classes
        text = f"This SQLite, {connection.versions()}, has no keyword index, FTS5 ({_brief(error)})."
        yield Finding("wrong", text, installation.line(installation.reinstall("apsw")))


def sqlite_vec(project: ExaminedProject) -> Iterator[Finding]:
    """The extension that keeps vectors in the file."""
    from anvil.index_file import connection

    try:
        yield Finding("ok", f"{connection.vectors()} loads and compares vectors.")
    except Exception as error:  # as above, and an AnvilError if the package is missing
        text = f"sqlite-vec cannot be loaded into SQLite ({_brief(error)})."
        yield Finding("wrong", text, installation.line(installation.reinstall("sqlite-vec")))


def _required(*extras: str) -> dict[str, list[Requirement]]:
    """What this Python needs for Anvil itself (``""``), and for extras besides; nothing when Anvil is not installed."""
    from packaging.requirements import Requirement  # it is one of the packages that may be missing

    try:
        requirements = [Requirement(each) for each in importlib.metadata.requires(installation.DISTRIBUTION) or ()]
    except importlib.metadata.PackageNotFoundError:
        requirements = []

    def holds(requirement: Requirement, extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})

    own = [each for each in requirements if holds(each, "")]
    others = [each for each in requirements if not holds(each, "")]
    return {"": own, **{extra: [each for each in others if holds(each, extra)] for extra in extras}}


def _version(distribution: str) -> str | None:
    """The installed version; None where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _brief(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


SAMPLE_TEXTS = (
    "Press the red button to stop the machine.",
    "How do I switch the engine off?",
    "Tulips are planted in autumn.",
)
SAMPLE_COSINES = (0.577, -0.048)
"""The bundled model's cosines of the first sample with the others."""
COSINE_TOLERANCE = 0.05
"""Processors round 8-bit arithmetic differently; a damaged model is off by far more."""


def embedding_model(project: ExaminedProject) -> Iterator[Finding]:
    settings = project.config.embedding
    if settings.provider == "none":
        yield Finding("ok", "None: the configuration asks for keywords only.")
    else:
        yield {"local": _local, "openai": _openai}.get(settings.provider, _other)(settings)


def _other(settings: EmbeddingSettings) -> Finding:
    """A provider that somebody added to ``PROVIDERS``, or one that does not exist."""
    from anvil.embedding.provider import create_provider

    provider = create_provider(settings.provider, settings)
    provider.close()
    return Finding("ok", f"{provider.model}, by the provider {settings.provider!r}; it was not tried.")


def _local(settings: EmbeddingSettings) -> Finding:
    from anvil.embedding.local import BUNDLED, model_digest, open_directory
    from anvil.embedding.provider import create_provider

    bundled = not settings.model
    if not bundled and not Path(settings.model).expanduser().is_dir():
        return Finding("note", f"{settings.model} is not a folder here; it is fetched from the model hub at first use.")
    try:
        directory = open_directory(settings.model)
        if bundled and model_digest(BUNDLED, directory.settings) != directory.digest:
            raise ModelError(f"The files in {BUNDLED} are not those that were published: their digest differs.")
        provider = create_provider("local", settings)
        try:
            embedded, scripts = provider.embed(SAMPLE_TEXTS), provider.scripts or ()
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
        return Finding("wrong", str(error), _restore() if bundled else None)
    files = "its files are complete, and it" if bundled else "it"
    reads = f" It reads {script_names(scripts)} script; questions in others are answered by words alone."
    return Finding("ok", f"{directory.name}: {files} gives vectors of {provider.dimensions} dimensions.{reads}")


def _restore() -> str:
    """The command that puts the bundled model's files back."""
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
    "extras": extras,
    "sqlite": sqlite,
    "sqlite-vec": sqlite_vec,
    "model": embedding_model,
}
