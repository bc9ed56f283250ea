"""YAML files of other programs, read as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anvil.errors import ConfigError
from anvil.system import safe_read


def read(file: Path) -> Any:
    """The value of a YAML file, with None for values under other programs' tags, such as ``!ENV``. ConfigError."""
    from anvil.formats import yaml_values

    try:
        return yaml_values.loads(safe_read.text(file), "null")
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be read: {' '.join(str(error).split())[:200]}. Correct it.") from error
