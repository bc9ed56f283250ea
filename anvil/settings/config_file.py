"""Reading the configuration: ``anvil.toml``, or ``[tool.anvil]`` in ``pyproject.toml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.settings import index_url
from anvil.settings.layers import configure, configured, values, variable
from anvil.settings.schema import BASE_URL, INDEX_FOLDER, INDEX_NAME, KEY, SITE_INDEX, Config
from anvil.system import safe_files

CONFIG_NAME = "anvil.toml"


def load_config(
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> tuple[Config, Path]:
    """The configuration, and the base folder of its relative paths.

    Reads ``path``, or the nearest ``anvil.toml`` or ``pyproject.toml`` with ``[tool.anvil]``, from ``start`` (the
    working folder) or from the folder ``path`` up to the repository's root. A file that the user did not name is
    trusted less: see :func:`_refuse_untrusted`. Raises :class:`ConfigError`.
    """
    settings = _UserSettings(flags or {}, os.environ if environment is None else environment)
    config, file = _configured(path, start or Path.cwd(), settings)
    base = _home(file) if file else Path.cwd()
    # A path in an option is meant from the folder in which it is typed, one in the file from the file's folder.
    for key, metadata, value in values(config):
        if "path" in metadata and key in settings and not index_url.is_remote(value):
            config = configured(config, {key: str(Path.cwd() / value)})
    return config, base


def load_beneath(
    beneath: tuple[Mapping[str, Any], str] | None,
    start: Path,
    path: str | os.PathLike[str] | None,
    flags: Mapping[str, Any],
) -> Config:
    """The configuration, as of :func:`load_config`, over a table of another file. ``beneath``: the table, and the
    file's name in errors."""
    return _configured(path, start, _UserSettings(flags, os.environ), beneath)[0]


def _home(file: Path) -> Path:
    """The folder of a file. Links to folders are not resolved, because deployments change them."""
    file = file.absolute()
    while file.is_symlink():
        file = file.parent / os.readlink(file)
    plain = Path(os.path.abspath(file.parent))
    return plain if plain.exists() and plain.samefile(file.parent) else file.parent


def _configured(
    path: str | os.PathLike[str] | None,
    start: Path,
    settings: _UserSettings,
    beneath: tuple[Mapping[str, Any], str] | None = None,
) -> tuple[Config, Path | None]:
    """The configuration and its file. ``beneath``: a table that the file overrides, and its name."""
    file, named = _chosen(path, start)
    origin = str(file or "the configuration")
    config = configure(_table(file), settings.environment, settings.flags, origin=origin, beneath=beneath)
    if file and not named:
        _refuse_untrusted(config, file, settings)
    return config, file


def _chosen(path: str | os.PathLike[str] | None, start: Path) -> tuple[Path | None, bool]:
    """The configuration file or None, and whether the user named it."""
    if not path:
        return nearest_config(start), False
    if not Path(path).is_dir():
        return Path(path), True
    file = nearest_config(Path(os.path.abspath(path)))
    if file is None:
        raise ConfigError(f"There is no configuration in {path}, nor above it in its repository. Name another folder.")
    return file, False


@dataclass(frozen=True, slots=True)
class _UserSettings:
    """Settings of the user that are not in a file; ``in`` tells whether a key is set."""

    flags: Mapping[str, Any]
    environment: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return self.flags.get(key) is not None or bool(self.environment.get(variable(key)))


def _refuse_untrusted(config: Config, file: Path, settings: _UserSettings) -> None:
    """Raise :class:`ConfigError` for settings that a file may contain only if the user named it.

    A file in a cloned repository is untrusted. It can turn off no protection, and choose no server that gets the user's
    keys.
    """
    way_out = "or name the file with --config, if you trust its author"
    uses_service = False
    for key, metadata, value in values(config):
        # Also of a capability's own index. By what a service is not, so that a provider which is added is covered.
        uses_service |= key.endswith(".provider") and value is not None and value not in ("local", "none")
        if value and "instead" in metadata and key not in settings:
            raise ConfigError(
                f"{file} sets {key}, which turns off a protection, and that file was not named. Remove the key and "
                f"{metadata['instead']}, {way_out}."
            )
    url = config.embedding.base_url
    # The user's own variable names the same server: then the key goes nowhere else than it does without the file.
    confirmed = url is not None and _bare(url) == _bare(settings.environment.get(BASE_URL, ""))
    if (
        uses_service
        and url
        and "embedding.base_url" not in settings
        and not confirmed
        and not index_url.is_loopback(url)
    ):
        raise ConfigError(
            f"{file} sets embedding.base_url to {index_url.without_secrets(url)}: {KEY} and the text would be sent "
            f"there, and that file was not named. Set {BASE_URL} to the same address, {way_out}."
        )
    indexes = {f"collections.{each.name}.index": each.index for each in config.collections}
    if "index" not in settings:
        indexes["index"] = config.index
    for key, index in indexes.items():
        if not index_url.is_milvus(index or "") or not index_url.milvus_token(settings.environment):
            continue  # without a token, there is nothing to give away
        server = index_url.milvus(index or "")
        if not server.lite and not index_url.is_loopback(server.uri):
            raise ConfigError(
                f"{file} sets {key} to {server.shown}: {index_url.MILVUS_TOKEN} would be sent there, and that file was "
                f"not named. Give the same address with --index, {way_out}."
            )


def _bare(url: str) -> str:
    return url.strip().rstrip("/")


def _table(file: Path | None) -> Mapping[str, Any]:
    """The table of a configuration file; empty without a file."""
    if file is None:
        return {}
    table = _read_toml(file)
    return (_own_table(table, file) or {}) if file.name == "pyproject.toml" else table


def index_file(config: Config, base: Path) -> Path:
    """The index file of a configuration without a remote index. ``base``: as from :func:`load_config`."""
    if config.index:
        return base / config.index
    if config.site.folder:
        return base / config.site.folder / SITE_INDEX
    return base / config.docs / INDEX_FOLDER / INDEX_NAME


def nearest_config(start: Path) -> Path | None:
    """The configuration file of a folder: its own, or the nearest one above it in the repository."""
    for folder in (start, *start.parents):
        own = folder / CONFIG_NAME
        if own.is_file():
            return own
        project = folder / "pyproject.toml"
        if project.is_file() and _own_table(_read_toml(project), project) is not None:
            return project
        if (folder / ".git").exists():  # a file above the repository, as in /tmp or the home, is not its author's
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
    try:
        return data_formats.read_toml(safe_files.text(path))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file at {path}. Write one with 'anvil init'.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be read: {safe_files.reason(error)}. Correct the file, or name another with --config."
        ) from None
