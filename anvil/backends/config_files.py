"""Where the configuration is read from: ``anvil.toml``, or ``[tool.anvil]`` in ``pyproject.toml``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from anvil.core import index_url
from anvil.core.config.layers import configure, key_of, variable
from anvil.core.config.schema import BASE_URL, INDEX_FOLDER, INDEX_NAME, KEY, MILVUS_TOKEN, Config, ContextOptions
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
    working folder), or from the folder that ``path`` is, up to the repository's root. A file that was merely found is
    believed less than one that was named: see :func:`_refuse_unsaid`. Raises :class:`ConfigError`.
    """
    found, named = _chosen(path, start or Path.cwd())
    said = _Said(flags or {}, os.environ if environment is None else environment)
    base = _home(found) if found else Path.cwd()
    config = configure(_table(found), said.environment, said.flags, origin=str(found or "the configuration"))
    if found and not named:
        _refuse_unsaid(config, found, said)
    for key in ("docs", "index"):  # what is said on the command line is meant from where it is said
        if key in said and not index_url.is_remote(getattr(config, key)):
            moved: dict[str, Any] = {key: str(Path.cwd() / getattr(config, key))}
            config = replace(config, **moved)
    if config.library.index and "library.index" in said:
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
    if root is not None and not str(root).strip():
        raise ConfigError("The repository's folder is empty. Name it with --root; '.' is the working folder.")
    folder = Path(os.path.abspath(root)) if root is not None else _nearest_root(Path.cwd())
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}. Name the repository with --root.")
    found, named = _chosen(path, folder)
    beneath, notes = _context_table(folder / CONTEXT_NAME)
    config = configure(
        _table(found),
        os.environ,
        flags,
        origin=str(found or "the configuration"),
        beneath=({"context": beneath}, CONTEXT_NAME),
    )
    if found and not named:
        _refuse_unsaid(config, found, _Said(flags or {}, os.environ))
    return config, folder, notes


def _chosen(path: str | os.PathLike[str] | None, start: Path) -> tuple[Path | None, bool]:
    """The configuration file, if there is one, and whether it was named rather than found from a folder on."""
    if not path:
        return nearest_config(start), False
    if not Path(path).is_dir():
        return Path(path), True
    found = nearest_config(Path(os.path.abspath(path)))
    if found is None:
        raise ConfigError(f"There is no configuration in {path}, nor above it in its repository. Name another folder.")
    return found, False


@dataclass(frozen=True, slots=True)
class _Said:
    """What the user says outside any file."""

    flags: Mapping[str, Any]
    environment: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return self.flags.get(key) is not None or bool(self.environment.get(variable(key)))


_LIFTS = {
    "library.allow_private_urls": "start Anvil with --allow-private-urls",
    "library.transcribe_audio": "set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true",
}
"""Keys that lift a guard, and how the user does."""


def _refuse_unsaid(config: Config, found: Path, said: _Said) -> None:
    """Raise :class:`ConfigError` for what only the user may say, when the file ``found`` is what says it.

    A file that lies in a folder is its author's, who may be a stranger: it lifts no guard, and does not name who is
    sent the user's keys.
    """
    way_out = "or name the file with --config, if you trust whoever wrote it"
    for key, instead in _LIFTS.items():
        if getattr(config.library, key.partition(".")[2]) and key not in said:
            raise ConfigError(
                f"{found} sets {key}, which lifts a guard, and nobody named that file. Take the key out and {instead}, "
                f"{way_out}."
            )
    url = config.embedding.base_url
    asked = "openai" in (config.embedding.provider, config.context.embeddings.provider)
    confirmed = url is not None and _bare(url) == _bare(said.environment.get(BASE_URL, ""))
    if asked and url and "embedding.base_url" not in said and not confirmed and not index_url.is_loopback(url):
        raise ConfigError(
            f"{found} sets embedding.base_url to {index_url.without_secrets(url)}: {KEY} and the text would be sent "
            f"there, and nobody named that file. Set {BASE_URL} to the same address, {way_out}."
        )
    if index_url.is_milvus(config.index or "") and "index" not in said and said.environment.get(MILVUS_TOKEN):
        server = index_url.milvus(config.index or "")
        if not server.lite and not index_url.is_loopback(server.uri):
            raise ConfigError(
                f"{found} sets index to {server.shown}: {MILVUS_TOKEN} would be sent there, and nobody named that "
                f"file. Say the same with --index, {way_out}."
            )


def _bare(url: str) -> str:
    return url.strip().rstrip("/")


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
