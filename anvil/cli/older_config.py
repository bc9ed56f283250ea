"""``anvil.config.json``, which older versions of Anvil read: only 'anvil init' uses it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from anvil.cli import output

DEFAULT_DOCS = "docs"
OLDER_CONFIG = "anvil.config.json"
OLDER_KEYS = {
    "chunking.maxChunkSize": "max_chunk_size",
    "chunking.minChunkSize": "min_chunk_size",
    "chunking.mergeShort": "merge_short_sections",
    "embedding.provider": "provider",
}
"""Key there -> key in ``anvil.toml``."""


class OlderConfig(NamedTuple):
    """The file, its documentation folder, the values by the keys of ``anvil.toml``, and the keys that ``anvil.toml``
    lacks."""

    file: str
    docs: str | None
    values: Mapping[str, str | int | bool]
    unused_keys: Sequence[str]


def warn_of_older_config(words: Sequence[str]) -> None:
    """Warn that the file is not read, unless there is a current configuration too. It is looked for in the folders that
    the command names."""
    if not words or words[0] in ("init", "--help", "-h", "--version", "-v"):
        return
    file = _file([*(word.partition("=")[2] or word for word in words), DEFAULT_DOCS])
    if file is None:
        return
    from pathlib import Path

    from anvil.settings.files import nearest_config

    if nearest_config(Path.cwd()) is None:
        output.warn(f"{file} is from an older Anvil and is not read. Run 'anvil init' to convert it to anvil.toml.")


def _file(folders: Iterable[str]) -> str | None:
    """The file, of the working folder or else of the first of ``folders`` that has it."""
    names = (OLDER_CONFIG, *(os.path.join(folder, OLDER_CONFIG) for folder in folders))
    return next(filter(os.path.isfile, names), None)


def read_older_config(docs: str | None) -> OlderConfig | None:
    """The file of the working folder, or else of the documentation folder; None without one. Raises
    :class:`ConfigError` for values that are not valid."""
    import json
    from pathlib import Path

    from anvil.embedding.factory import create_provider
    from anvil.errors import ConfigError
    from anvil.settings.layers import configure
    from anvil.system import safe_files

    file = _file([docs or DEFAULT_DOCS])
    if file is None:
        return None
    try:
        table = json.loads(safe_files.text(Path(file)))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}. Correct it, or remove it.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{file} must hold a JSON object. Correct it, or remove it.")
    given: dict[str, Any] = {}
    for key, value in table.items():
        given |= {f"{key}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}
    values = {key: given[older_key] for older_key, key in OLDER_KEYS.items() if older_key in given}
    chunking = {key: value for key, value in values.items() if key != "provider"}
    embedding = {"provider": values["provider"]} if "provider" in values else {}
    folder = {"docs": given["docs"]} if "docs" in given and file == OLDER_CONFIG else {}
    config = configure({**folder, "chunking": chunking, "embedding": embedding}, origin=file)
    try:
        create_provider(config.embedding.provider, config.embedding)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    unused_keys = sorted(key for key in given if key not in OLDER_KEYS and key != "docs")
    return OlderConfig(file=file, docs=folder.get("docs"), values=values, unused_keys=unused_keys)
