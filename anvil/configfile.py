"""Where the configuration is read from: ``anvil.toml``, or ``[tool.anvil]`` in ``pyproject.toml``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anvil.config import Config, configure
from anvil.errors import ConfigError

CONFIG_NAME = "anvil.toml"


def load_config(
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Config, Path]:
    """The configuration, and the folder that its relative paths start from.

    Reads ``path``, or the nearest ``anvil.toml`` or ``pyproject.toml`` with ``[tool.anvil]`` from the working
    folder up to the repository's root. Raises :class:`ConfigError`.
    """
    found = Path(path) if path else _nearest_config(Path.cwd())
    table: Mapping[str, Any] = {}
    if found is not None:
        table = _read_toml(found)
        if found.name == "pyproject.toml":
            table = _own_table(table, found) or {}
    environment = os.environ if environment is None else environment
    base = found.resolve().parent if found else Path.cwd()
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    config = configure(table, environment, given, origin=str(found or "the configuration"))
    for key in ("docs", "index"):  # what is said on the command line is meant from where it is said
        if key in given or environment.get(f"ANVIL_{key.upper()}"):
            moved: dict[str, Any] = {key: str(Path.cwd() / getattr(config, key))}
            config = replace(config, **moved)
    if config.library.index and ("library.index" in given or environment.get("ANVIL_LIBRARY_INDEX")):
        library = replace(config.library, index=str(Path.cwd() / config.library.index))
        config = replace(config, library=library)
    return config, base


def _nearest_config(start: Path) -> Path | None:
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
