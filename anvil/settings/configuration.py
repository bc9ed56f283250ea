"""The configuration, merged from defaults, file, environment variables and options, each over the one before.

The file is ``anvil.toml``, or ``pyproject.toml`` with ``[tool.anvil]``. For an unknown key or a wrong type, the error
names the key, its origin and the most similar key. Keys can be written ``max_chunk_size``, ``max-chunk-size`` or
``maxChunkSize``.
"""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from anvil import registry
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.settings import index_url
from anvil.settings.schema import BASE_URL, INDEX_FOLDER, INDEX_NAME, KEY, SITE_INDEX, Collection, Config, SiteOptions
from anvil.system import safe_files
from anvil.wording import closest_names

T = TypeVar("T")
CONFIG_NAME = "anvil.toml"
MAX_SHOWN_KEY_CHARS = 100
"""Characters of an unknown key that a message repeats."""


def load_config(
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
    beneath: tuple[Mapping[str, Any], str] | None = None,
) -> tuple[Config, Path]:
    """The configuration, and the base folder of its relative paths.

    ``path``: a file, or a folder, in which the file is looked for as in ``start``. Without it, the file is the nearest
    ``anvil.toml`` or ``pyproject.toml`` with ``[tool.anvil]``, from ``start`` (the working folder) up to the
    repository's root. A file that the user did not name is trusted less: see :func:`_refuse_untrusted`. ``beneath``: a
    table that the file overrides, and its name in errors. Raises :class:`ConfigError`.
    """
    settings = _UserSettings(flags or {}, os.environ if environment is None else environment)
    file, is_named = _find_file(path, start or Path.cwd())
    origin = str(file or "the configuration")
    config = configure(_table(file), settings.environment, settings.flags, origin=origin, beneath=beneath)
    if file and not is_named:
        _refuse_untrusted(config, file, settings)
        indexes = {config.index, *(collection.index for collection in config.collections)}
        by_user = config.index if "index" in settings else None
        config = replace(config, found_indexes=frozenset(index for index in indexes if index and index != by_user))
    base = _folder_of(file) if file else Path.cwd()
    # A path in an option is meant from the folder in which it is typed, one in the file from the file's folder.
    for key, metadata, value in values(config):
        if "path" in metadata and key in settings and not index_url.is_remote(value):
            config = configured(config, {key: str(Path.cwd() / value)})
    return config, base


def _folder_of(file: Path) -> Path:
    """The folder of a configuration file. Links to files are followed, to folders not: deployments change them."""
    file = file.absolute()
    while file.is_symlink():
        file = file.parent / os.readlink(file)
    normalized = Path(os.path.abspath(file.parent))
    return normalized if normalized.exists() and normalized.samefile(file.parent) else file.parent


def _find_file(path: str | os.PathLike[str] | None, start: Path) -> tuple[Path | None, bool]:
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
    """Settings of the user that are not in a file. ``key in settings`` is whether one of them sets the key."""

    flags: Mapping[str, Any]
    environment: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return self.flags.get(key) is not None or bool(self.environment.get(variable(key)))


def _refuse_untrusted(config: Config, file: Path, settings: _UserSettings) -> None:
    """Raise :class:`ConfigError` for settings that a file may contain only if the user named it.

    A file in a cloned repository is untrusted. It can turn off no protection, and choose no server for the user's keys.
    """
    way_out = "or name the file with --config, if you trust its author"
    uses_service = False
    for key, metadata, value in values(config):
        # Any key that ends so, since a capability may have an index of its own. All but the providers without a
        # service count, so that a provider which is added later is covered.
        uses_service |= key.endswith(".provider") and value is not None and value not in ("local", "none")
        if value and "instead" in metadata and key not in settings:
            raise ConfigError(
                f"{file} sets {key}, which turns off a protection, and that file was not named. Remove the key and "
                f"{metadata['instead']}, {way_out}."
            )
    url = config.embedding.base_url
    # If the user's own variable names the same server, the key goes nowhere else than without the file.
    is_confirmed = url is not None and _bare(url) == _bare(settings.environment.get(BASE_URL, ""))
    if (
        uses_service
        and url
        and "embedding.base_url" not in settings
        and not is_confirmed
        and not index_url.is_loopback(url)
    ):
        raise ConfigError(
            f"{file} sets embedding.base_url to {index_url.without_secrets(url)}: {KEY} and the text would be sent "
            f"there, and that file was not named. Set {BASE_URL} to the same address, {way_out}."
        )
    indexes = {f"collections.{collection.name}.index": collection.index for collection in config.collections}
    if "index" not in settings:
        indexes["index"] = config.index
    for key, index in indexes.items():
        if not index_url.is_milvus(index or "") or not settings.environment.get(index_url.MILVUS_TOKEN):
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
    return (_anvil_table(table, file) or {}) if file.name == "pyproject.toml" else table


def index_file(config: Config, base: Path) -> Path:
    """The index file of a configuration without a remote index. ``base``: the folder from :func:`load_config`."""
    if config.index:
        return base / config.index
    if config.site.folder:
        return base / config.site.folder / SITE_INDEX
    return base / config.docs / INDEX_FOLDER / INDEX_NAME


def nearest_config(start: Path) -> Path | None:
    """The configuration file for a folder: the one in it, or the nearest one above it in the repository."""
    for folder in (start, *start.parents):
        own = folder / CONFIG_NAME
        if own.is_file():
            return own
        project = folder / "pyproject.toml"
        if project.is_file() and _anvil_table(_read_toml(project), project) is not None:
            return project
        if (folder / ".git").exists():  # a file above the repository, as in /tmp or the home, is not its author's
            break
    return None


def _anvil_table(project: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
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


# --- merging ---------------------------------------------------------------------------------------------


@cache
def keys(kind: Any) -> dict[str, Any]:
    """Key -> its type, for the class of a table.

    The type of a capability's table is its place in the registry, as text. The table is loaded only where a layer sets
    it: each module costs about 1 ms of a start (``python -X importtime``).
    """
    hints = typing.get_type_hints(kind)
    return {
        key: hint
        for field in fields(kind)
        for key, hint in field.metadata.get("keys", {field.name: hints[field.name]}).items()
    }


def values(table: Any, prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """(dotted key, metadata of its field, value) of a configuration. A capability is included if its table is set."""
    for field in fields(table):
        value = getattr(table, field.name)
        for name, inner in value.items() if field.name == "tables" else [(field.name, value)]:
            if is_dataclass(inner):
                yield from values(inner, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", field.metadata, inner


def configure(
    file: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    origin: str = "the configuration",
    beneath: tuple[Mapping[str, Any], str] | None = None,
) -> Config:
    """The layers, merged into a :class:`Config`. Raises :class:`ConfigError`.

    ``beneath``: a table, and its name in errors, that is merged before all others. ``file``: a parsed TOML table; its
    name in errors is ``origin``. ``environment``: ``ANVIL_EMBEDDING_PROVIDER`` sets ``embedding.provider``. Unknown and
    empty variables are ignored, because other programs use the prefix too. ``flags``: dotted key -> value; None means
    that the option is not given.
    """
    # What is nearer to this call goes over the rest: options over this machine, this machine over the project.
    config = merged(Config(), *beneath) if beneath else Config()
    config = merged(config, file or {}, origin)
    environment = environment or {}
    kinds = {key: kind for key, kind in _leaves(Config, environment) if environment.get(variable(key))}
    texts = {key: _from_text(environment[variable(key)], kind, variable(key)) for key, kind in kinds.items()}
    config = configured(configured(config, texts, "the environment"), flags or {})
    for collection in config.collections:
        of_collection(config, collection, origin)
    return config


def of_collection(config: Config, collection: Collection, origin: str = "the configuration") -> Config:
    """The configuration of one collection: that of the project, with the collection's own keys on top.

    ``site`` of the project is for its own folder only. ``origin``: for errors. Raises :class:`ConfigError`.
    """
    is_own_folder = collection.docs is not None and collection.docs == config.docs
    fetch = replace(_capability_table(config, "fetch"), attested_by=collection.attested_by)
    # Without the collections: this is the configuration of one.
    base = replace(
        config,
        docs=collection.docs or config.docs,
        index=collection.index,
        site=config.site if is_own_folder else SiteOptions(),
        tables={**config.tables, "fetch": fetch},
        collections=(),
    )
    tables = {"source": collection.source, "chunking": collection.chunking, "site": collection.site}
    return merged(base, tables, origin, f"collections.{collection.name}.")


def variables() -> list[str]:
    """The environment variables that set a key."""
    return [variable(key) for key, _ in _leaves(Config)]


def variable(key: str) -> str:
    """The environment variable of a dotted key, such as ``ANVIL_SEARCH_THRESHOLD``."""
    return "ANVIL_" + key.replace(".", "_").upper()


def configured(config: Config, flags: Mapping[str, Any], origin: str = "the options given") -> Config:
    """``config`` with the options ``flags``: dotted key -> value; None: not given. Raises :class:`ConfigError`."""
    tables: dict[str, Any] = {}
    for dotted, value in flags.items():
        if value is not None:
            *path, key = dotted.split(".")
            table = tables
            for name in path:
                table = table.setdefault(name, {})
            table[key] = value
    return merged(config, tables, origin)


def merged(current: T, table: Mapping[str, Any], origin: str, prefix: str = "") -> T:
    """The dataclass ``current`` with the values of a TOML table.

    ``origin``: the name of the file in errors. ``prefix``: the start of the keys in errors, such as ``site.``. Raises
    :class:`ConfigError`.
    """
    kind: Any = type(current)
    types_by_key = keys(kind)
    updates: dict[str, Any] = {}  # applied together, because a table is validated as a whole
    for written, value in table.items():
        key = key_of(str(written))
        dotted = f"{prefix}{written}"
        if key not in types_by_key:
            near = closest_names(key, types_by_key)
            advice = f"Did you mean {prefix}{near[0]}?" if near else f"Known keys: {', '.join(types_by_key)}."
            raise ConfigError(f"Unknown key {dotted[:MAX_SHOWN_KEY_CHARS]!r} in {origin}. {advice}")
        hint = types_by_key[key]
        if hint == tuple[Collection, ...]:
            updates[key] = _collections(value, origin)
        elif is_dataclass(hint) or isinstance(hint, str):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{dotted} in {origin} must be a table, not {_type_name(value)}.")
            if isinstance(current, Config) and isinstance(hint, str):  # a capability's table, by its place
                table_of_capability = merged(_capability_table(current, key), value, origin, f"{dotted}.")
                updates["tables"] = {**updates.get("tables", current.tables), key: table_of_capability}
            else:
                updates[key] = merged(getattr(current, key), value, origin, f"{dotted}.")
        else:
            updates[key] = _checked(value, hint, dotted, origin)
    if isinstance(docs := updates.get("docs"), str) and docs.startswith(("~/", f"~{os.sep}")):
        # Also in a file that nobody named: a glob of source.include, from the root on, reaches each home folder, too.
        updates["docs"] = os.path.expanduser(docs)
    try:
        return replace(current, **updates)  # type: ignore[type-var]
    except ConfigError as error:
        raise ConfigError(f"In {origin}: {error}") from None


def _capability_table(config: Config, name: str) -> Any:
    return config.tables.get(name) or registry.load(registry.SETTINGS[name])()


def _collections(tables: Any, origin: str) -> tuple[Collection, ...]:
    """The tables ``[collections.NAME]``. A name may have an array of tables, one for each version."""
    if not isinstance(tables, Mapping):
        raise ConfigError(
            f"collections in {origin} must be a table, not {_type_name(tables)}. Write [collections.NAME]."
        )
    collections = []
    for name, value in tables.items():
        versions = value if isinstance(value, list) else [value]
        if not versions or not all(isinstance(table, Mapping) for table in versions):
            raise ConfigError(
                f"collections.{name} in {origin} must be a table, not {_type_name(value)}. Write "
                f"[collections.{name}] with docs or index under it."
            )
        try:
            collection = Collection(str(name) or " ")  # an empty name, the default, is refused here
        except ConfigError as error:
            raise ConfigError(f"In {origin}: {error}") from None
        collections += [merged(collection, table, origin, f"collections.{name}.") for table in versions]
    return tuple(collections)


def key_of(written: str) -> str:
    """A key as the code spells it: ``max_chunk_size`` for ``max-chunk-size`` or ``maxChunkSize``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", written).replace("-", "_").lower()


def _leaves(kind: Any, environment: Mapping[str, str] | None = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, type) of each key that a variable can set.

    ``environment``: tables of capabilities of which it sets no key are left out, and not loaded.
    """
    for name, hint in keys(kind).items():
        key = prefix + name
        if isinstance(hint, str):
            if environment is not None and not any(name.startswith(f"{variable(key)}_") for name in environment):
                continue
            hint = registry.load(hint)
        if is_dataclass(hint):
            yield from _leaves(hint, environment, f"{key}.")
        elif hint != tuple[Collection, ...] and plain_type(hint) is not Mapping:
            yield key, hint  # tables of any name have no variable


# --- types of values ----------------------------------------------------------------------------------------


def plain_type(kind: Any) -> Any:
    """``str`` for ``str | None`` and for literals, ``tuple`` for ``tuple[str, ...]``; other types as they are."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(argument for argument in typing.get_args(kind) if argument is not type(None))
    if typing.get_origin(kind) is Literal:
        return str
    return typing.get_origin(kind) or kind


_EXPECTED: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Mapping: "a table",
}


def _checked(value: Any, kind: Any, dotted: str, origin: str) -> Any:
    """The value of a key in a file, if it has the type of its field. Raises :class:`ConfigError`."""
    plain = plain_type(kind)
    if plain is tuple:
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f"{dotted} in {origin} must be a list of strings, not {_type_name(value)}.")
    if plain is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool):
        raise ConfigError(f"{dotted} in {origin} must be {_EXPECTED[plain]}, not {_type_name(value)}.")
    if plain is str and "\0" in value:
        raise ConfigError(f"{dotted} in {origin} has a NUL character. Remove it.")
    return value


def _from_text(text: str, kind: Any, variable: str) -> Any:
    """The value of a key from an environment variable; lists are separated by commas. Raises :class:`ConfigError`."""
    plain = plain_type(kind)
    if plain is tuple:
        return [part.strip() for part in re.split(r",(?![^{}]*\})", text) if part.strip()]  # not within *.{md,mdx}
    if plain is bool:
        lowered = text.strip().lower()
        if lowered in ("1", "true", "yes", "on", "0", "false", "no", "off"):
            return lowered in ("1", "true", "yes", "on")
        raise ConfigError(f"{variable} must be {_EXPECTED[bool]}, not {text!r}.")
    try:
        return plain(text)
    except ValueError:
        raise ConfigError(f"{variable} must be {_EXPECTED[plain]}, not {text!r}.") from None


def _type_name(value: Any) -> str:
    """The type of a value, in words, for an error. The value itself could be a secret in the wrong place."""
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, Mapping) else type(value).__name__)
