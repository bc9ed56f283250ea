"""Where the configuration is read from: ``anvil.toml``, or ``[tool.anvil]`` in ``pyproject.toml``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from anvil import addresses
from anvil.config import INDEX_FOLDER, INDEX_NAME, Config, ContextOptions, configure, key_of
from anvil.errors import ConfigError

CONFIG_NAME = "anvil.toml"
CONTEXT_NAME = "mcp.config.json"
"""A file of keys for the context surface that many repositories have; other servers read it too."""


def load_config(
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> tuple[Config, Path]:
    """The configuration, and the folder that its relative paths start from.

    Reads ``path``, or the nearest ``anvil.toml`` or ``pyproject.toml`` with ``[tool.anvil]`` from ``start`` (the
    working folder) up to the repository's root. Raises :class:`ConfigError`.
    """
    found = Path(path) if path else nearest_config(start or Path.cwd())
    table = _table(found)
    environment = os.environ if environment is None else environment
    base = _home(found) if found else Path.cwd()
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    config = configure(table, environment, given, origin=str(found or "the configuration"))
    for key in ("docs", "index"):  # what is said on the command line is meant from where it is said
        if (key in given or environment.get(f"ANVIL_{key.upper()}")) and not addresses.is_remote(getattr(config, key)):
            moved: dict[str, Any] = {key: str(Path.cwd() / getattr(config, key))}
            config = replace(config, **moved)
    if config.library.index and ("library.index" in given or environment.get("ANVIL_LIBRARY_INDEX")):
        library = replace(config.library, index=str(Path.cwd() / config.library.index))
        config = replace(config, library=library)
    return config, base


def _home(file: Path) -> Path:
    """The folder that a file lies in. Links of folders stay what they are: they may be set to another revision."""
    file = file.absolute()
    while file.is_symlink():
        file = file.parent / os.readlink(file)
    plain = Path(os.path.abspath(file.parent))
    return plain if plain.exists() and plain.samefile(file.parent) else file.parent


def load_context(
    root: str | os.PathLike[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Config, Path, tuple[str, ...]]:
    """The configuration of a repository's context, the repository's root, and notes on what was not understood.

    The root is ``root``; else the nearest folder, from the working folder up, with ``mcp.config.json`` or a
    configuration of ours, or that is a repository's; else the working folder. Our own configuration (``path``, or what
    is found from the root up) goes before ``mcp.config.json``. Raises :class:`ConfigError`.
    """
    folder = Path(os.path.abspath(root)) if root is not None else _nearest_root(Path.cwd())
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}. Name the repository with --root.")
    found = Path(path) if path else nearest_config(folder)
    beneath, notes = _context_table(folder / CONTEXT_NAME)
    config = configure(
        _table(found), os.environ, flags, origin=str(found or "the configuration"),
        beneath=({"context": beneath}, CONTEXT_NAME),
    )  # fmt: skip
    return config, folder, notes


def _nearest_root(start: Path) -> Path:
    for folder in (start, *start.parents):
        if any((folder / name).exists() for name in (CONTEXT_NAME, CONFIG_NAME, ".git")):
            return folder
    return start


def _context_table(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The keys of an ``mcp.config.json`` that are ours, and a note that names the others."""
    try:
        table = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}, ()
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Correct the file.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path} must hold a JSON object. Correct the file.")
    ours = {each.name for each in fields(ContextOptions)}
    known = {key: value for key, value in table.items() if key_of(key) in ours}
    ignored = sorted(str(key) for key in table.keys() - known.keys() if not str(key).startswith("$"))
    embeddings = known.get("embeddings")
    if isinstance(embeddings, dict):  # of another server's: model, key, address
        ignored += sorted(f"embeddings.{key}" for key in embeddings if key_of(str(key)) != "provider")
        known["embeddings"] = {key: value for key, value in embeddings.items() if key_of(str(key)) == "provider"}
    return known, (f"{CONTEXT_NAME}: not used here: {', '.join(ignored)}.",) if ignored else ()


def _table(found: Path | None) -> Mapping[str, Any]:
    """What a configuration file of ours says; nothing where there is none."""
    if found is None:
        return {}
    table = _read_toml(found)
    return (_own_table(table, found) or {}) if found.name == "pyproject.toml" else table


def index_file(config: Config, base: Path) -> Path:
    """Where the index of a configuration lies that names no address; ``base`` as :func:`load_config` gives it."""
    return base / config.index if config.index else base / config.docs / INDEX_FOLDER / INDEX_NAME


def nearest_config(start: Path) -> Path | None:
    """The configuration file that holds for a folder: its own, or one further up within the repository."""
    for folder in (start, *start.parents):
        own = folder / CONFIG_NAME
        if own.is_file():
            return own
        project = folder / "pyproject.toml"
        if project.is_file() and _own_table(_read_toml(project), project) is not None:
            return project
        if (folder / ".git").exists():
            break
    return None


def _own_table(project: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """``[tool.anvil]`` of a parsed ``pyproject.toml``, or None."""
    tools = project.get("tool")
    table = tools.get("anvil") if isinstance(tools, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise ConfigError(f"tool.anvil in {path} must be a table. Write its keys under [tool.anvil].")
    return table


def _read_toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file at {path}. Write one with 'anvil init'.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Correct the file, or name another with --config.") from None
    return table
