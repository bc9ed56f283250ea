"""Python, the ``anvil`` program, and the packages that it needs."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from anvil._version import __version__
from anvil.backends import installation as programs
from anvil.backends.embedding.local import runtime
from anvil.models.findings import Finding
from anvil.services.doctor.place import Place

NATIVE = ("apsw", "numpy", "onnxruntime", "pygit2", "tokenizers")
"""Packages of compiled code, which can be there and yet not load: each is tried."""
EXTRAS = {
    "lancedb": "to import a library of mcpvectordb",
    "library": "to take PDF and Office files into a library",
    "milvus": "to serve from Milvus",
    "mkdocs": "for the MkDocs plugin",
    "openai": "for vectors by OpenAI's API",
    "ray": "to build on a Ray cluster",
}
"""Optional parts -> what each is for."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([\d.]+))?[^;]*(?:;\s*(.*))?")
_EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")


def python(place: Place) -> Iterator[Finding]:
    """The Python interpreter, and its environment."""
    bits = 64 if sys.maxsize > 2**32 else 32
    home = "in a virtual environment," if sys.prefix != sys.base_prefix else "without a virtual environment,"
    text = f"Anvil {__version__} on Python {platform.python_version()}, {bits} bit, {home} {sys.prefix}."
    if bits == 32:
        yield Finding("python", "wrong", f"{text} The embedding model needs a 64 bit Python. Install one.")
    else:
        yield Finding("python", "ok", text)


def program(place: Place) -> Iterator[Finding]:
    """Whether a shell, a hook or a client that says ``anvil`` starts this installation."""
    own, found = programs.script(), programs.on_path()
    if own is None:
        command = None if programs.checkout() else programs.line(programs.reinstall(programs.DISTRIBUTION))
        text = "This Python has no 'anvil' program, only 'python -m anvil'."
        yield Finding("program", "note", text, command)
    elif found is None:
        text = f"{own} is not on the PATH: hooks and clients that say 'anvil' do not find it."
        yield Finding("program", "note", text, _first_on_path(own.parent))
    elif not os.path.samefile(found, own):
        text = f"{own} runs now, but 'anvil' on the PATH is another one, {found}: hooks and clients start that."
        yield Finding("program", "note", text, _first_on_path(own.parent))
    else:
        yield Finding("program", "ok", f"'anvil' on the PATH is this one, {found}.")


def _first_on_path(folder: Path) -> str:
    if os.name == "nt":
        return f'set "PATH={folder};%PATH%"'
    return f'export PATH={shlex.quote(str(folder))}:"$PATH"'


def packages(place: Place) -> Iterator[Finding]:
    """Whether what Anvil requires is there, new enough, and loads."""
    required = _required(None)
    needed, problems = [], []
    for name, least in required.items():
        version = _version(name)
        if version is None:
            problems.append(f"{name} is missing")
        elif _numbers(version) < _numbers(least):
            problems.append(f"{name} is {version}, older than {least}")
        else:
            continue
        needed.append(f"{name}>={least}")
    if needed:
        yield Finding("packages", "wrong", f"{_listed(problems)}.", programs.line(programs.install(needed)))
    elif required:
        yield Finding("packages", "ok", f"All {len(required)} that are needed are there, and new enough.")
    else:
        yield Finding("packages", "note", f"{programs.DISTRIBUTION} is not installed; its code runs from the checkout.")
    for name in NATIVE:
        if any(requirement.startswith(f"{name}>=") for requirement in needed):
            continue
        try:
            runtime() if name == "onnxruntime" else importlib.import_module(name)
        except Exception as error:  # a damaged package can raise anything
            text = f"{name} cannot be loaded ({_brief(error)})."
            yield Finding("packages", "wrong", text, programs.line(programs.reinstall(name)))


def extras(place: Place) -> Iterator[Finding]:
    """The optional parts."""
    there = [name for name in EXTRAS if (needed := _required(name)) and all(map(_version, needed))]
    missing = [name for name in EXTRAS if name not in there]
    text = f"{_listed(there)} {'is' if len(there) == 1 else 'are'} installed." if there else "None is installed."
    if not missing:
        yield Finding("extras", "ok", text)
        return
    for name in missing:
        text += f" {name} is not; it is {EXTRAS[name]}."
    command = programs.line(extra(*missing))
    yield Finding("extras", "ok", text, command)


def extra(*names: str) -> list[str]:
    """The command that brings optional parts."""
    return programs.install([f"{programs.DISTRIBUTION}[{','.join(names)}]"])


def sqlite(place: Place) -> Iterator[Finding]:
    """SQLite with its keyword index."""
    from anvil.backends.store import self_test

    try:
        self_test.keyword_index()
    except Exception as error:  # apsw has an exception a kind of failure
        text = f"This SQLite, {self_test.versions()}, has no keyword index, FTS5 ({_brief(error)})."
        yield Finding("sqlite", "wrong", text, programs.line(programs.reinstall("apsw")))
    else:
        yield Finding("sqlite", "ok", f"{self_test.versions()}, with the keyword index FTS5.")


def sqlite_vec(place: Place) -> Iterator[Finding]:
    """The extension that keeps vectors in the file."""
    from anvil.backends.store import self_test

    try:
        version = self_test.vectors()
    except Exception as error:  # as above, and ours where the package is missing
        text = f"sqlite-vec cannot be loaded into SQLite ({_brief(error)})."
        yield Finding("sqlite-vec", "wrong", text, programs.line(programs.reinstall("sqlite-vec")))
    else:
        yield Finding("sqlite-vec", "ok", f"{version} loads and compares vectors.")


def _required(extra: str | None) -> dict[str, str]:
    """Distribution -> least version, of Anvil itself or of one of its extras; empty when Anvil is not installed."""
    try:
        lines = importlib.metadata.requires(programs.DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        parts = _REQUIREMENT.fullmatch(line)
        name, least, marker = parts.groups() if parts else (line, None, None)
        asked = _EXTRA.search(marker or "")
        only_old = "python_version <" in (marker or "") and sys.version_info >= (3, 11)
        if (asked[1] if asked else None) == extra and not only_old:
            found[name] = least or "0"
    return found


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, zeros at the end left out: 2.0 is 2."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _brief(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
