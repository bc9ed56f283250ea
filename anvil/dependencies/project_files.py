"""The files of a project that name its dependencies, and its ``anvil.lock``."""

from __future__ import annotations

from pathlib import Path

from anvil.dependencies import anvil_lock
from anvil.dependencies.values import LockedDocs
from anvil.errors import BuildError, ConfigError
from anvil.settings.schema import LOCK_NAME
from anvil.system import safe_read, safe_write

MAX_BYTES = 100_000_000
"""Bytes of the largest file that is read."""


def names(base: Path) -> list[str]:
    """The names of the files in a project's folder, sorted. Raises :class:`ConfigError`."""
    try:
        return sorted(entry.name for entry in base.iterdir())
    except OSError as error:
        raise ConfigError(f"The folder {base} cannot be listed ({error.strerror}). Name another one.") from None


def read(path: Path) -> str | None:
    """The text of a file; None without one. Raises :class:`ConfigError` for one that cannot be read."""
    try:
        if safe_write.regular_file(path.resolve()) is None:
            return None
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES:,} bytes. It is not read as a lockfile.")
        return safe_read.text(path, MAX_BYTES)
    except BuildError:
        raise ConfigError(f"{path} is not a regular file. Replace it by one.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8. Write it again with its tool.") from None


def read_lock(base: Path) -> list[LockedDocs]:
    """The entries of ``anvil.lock``; none without the file. Raises :class:`ConfigError`."""
    path = base / LOCK_NAME
    text = read(path)
    return [] if text is None else anvil_lock.parse(text, str(path))


def write_lock(base: Path, entries: list[LockedDocs]) -> bool:
    """Write ``anvil.lock``, unless it says this already; whether it was written. Raises :class:`ConfigError`."""
    path = base / LOCK_NAME
    text = anvil_lock.render(entries)
    if read(path) == text:
        return False
    try:
        safe_write.write_file(path, text)
    except (OSError, BuildError) as error:
        raise ConfigError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}.") from None
    return True
