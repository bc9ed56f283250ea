"""``anvil.config.json``, which older versions of Anvil read: only 'anvil init' uses it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anvil.interfaces.cli import output

OLDER_CONFIG = "anvil.config.json"
OLDER_KEYS = {
    "chunking.maxChunkSize": "max_chunk_size",
    "chunking.minChunkSize": "min_chunk_size",
    "chunking.mergeShort": "merge_short_sections",
    "embedding.provider": "provider",
}
"""Key there -> key in ``anvil.toml``."""


class OlderConfig(NamedTuple):
    """The documentation folder, the values by the keys of ``anvil.toml``, and the keys that ``anvil.toml`` lacks."""

    docs: str | None
    values: Mapping[str, str | int | bool]
    unused_keys: Sequence[str]


def warn_of_older_config(words: Sequence[str]) -> None:
    """Warn that the file in the working folder is not read, unless there is a current configuration too."""
    if not os.path.isfile(OLDER_CONFIG) or not words or words[0] in ("init", "--help", "-h", "--version", "-v"):
        return
    from pathlib import Path

    from anvil.backends.config_files import nearest_config

    if nearest_config(Path.cwd()) is None:
        output.warn(
            f"{OLDER_CONFIG} is from an older Anvil and is not read. Run 'anvil init' to convert it to anvil.toml."
        )


def read_older_config() -> OlderConfig | None:
    """The file in the working folder; None without one. Raises :class:`ConfigError` for values that are not valid."""
    import json
    from pathlib import Path

    from anvil.core.config.layers import configure
    from anvil.errors import ConfigError

    file = Path(OLDER_CONFIG)
    if not file.is_file():
        return None
    try:
        table = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{OLDER_CONFIG} cannot be read: {error}. Correct it, or remove it.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{OLDER_CONFIG} must hold a JSON object. Correct it, or remove it.")
    given: dict[str, Any] = {}
    for key, value in table.items():
        given |= {f"{key}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}
    values = {key: given[older_key] for older_key, key in OLDER_KEYS.items() if older_key in given}
    chunking = {key: value for key, value in values.items() if key != "provider"}
    embedding = {"provider": values["provider"]} if "provider" in values else {}
    docs = {"docs": given["docs"]} if "docs" in given else {}
    configure({**docs, "chunking": chunking, "embedding": embedding}, origin=OLDER_CONFIG)  # raises for wrong values
    unused_keys = sorted(key for key in given if key not in OLDER_KEYS and key != "docs")
    return OlderConfig(docs=docs.get("docs"), values=values, unused_keys=unused_keys)
