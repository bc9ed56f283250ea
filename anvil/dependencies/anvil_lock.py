"""``anvil.lock``: reading, checking and writing the TOML file that pins the documentation of dependencies.

The file comes with a checkout, so it is not trusted and each value is checked.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from anvil.dependencies.ecosystems import ECOSYSTEMS
from anvil.dependencies.package_names import is_name, is_version
from anvil.dependencies.values import DOCS_SOURCES, LockedDocs
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.formats.characters import marked_encoding
from anvil.formats.patterns import OBJECT_ID, SHA256
from anvil.settings.index_url import is_builder
from anvil.settings.schema import LOCK_NAME
from anvil.system import safe_files

LOCK_VERSION = 1
MAX_CHARACTERS = 2_000_000
"""Characters of the longest ``anvil.lock`` that is read."""
_HEAD = "# The documentation of this project's dependencies. Written by 'anvil deps'; commit it."
_URL = re.compile(r"(?:https?|ssh|file|github):[^\x00-\x20\x7f]{1,1000}")
_TAG = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]{1,200}")
_CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
_PATH = re.compile(r"(?!/)[^\x00-\x1f\x7f]{1,500}")
_CHECKS: Mapping[str, Callable[[str], object]] = {
    "name": bool,  # compared with the names of its ecosystem, see below
    "ecosystem": lambda text: text in ECOSYSTEMS,
    "version": is_version,
    "source": lambda text: text in DOCS_SOURCES,
    "url": _URL.fullmatch,
    "tag": _TAG.fullmatch,
    "commit": OBJECT_ID.fullmatch,
    "folder": lambda text: _PATH.fullmatch(text) and ".." not in text.split("/"),
    "digest": SHA256.fullmatch,
    "sha256": SHA256.fullmatch,
    "anvil_version": is_version,
    "attested_by": is_builder,
}
"""Key, in the order of the file -> check of its value."""
NAMED = ("repository", "tag", "folder")
"""Values of ``named``: fields of :class:`DocsHints`."""
_OPTIONAL = [each.name for each in fields(LockedDocs) if each.default is None]


def render(entries: Iterable[LockedDocs]) -> str:
    """The text of the file, sorted by ecosystem, name and version."""
    parts = [f"{_HEAD}\nversion = {LOCK_VERSION}\n"]
    for entry in sorted(entries, key=lambda entry: entry.key):
        values = ((key, getattr(entry, key)) for key in _CHECKS)
        lines = [f"{key} = {data_formats.toml_string(value)}" for key, value in values if value is not None]
        if entry.named:
            lines.append(f"named = [{', '.join(map(data_formats.toml_string, entry.named))}]")
        parts.append("\n".join(["[[docs]]", *lines]) + "\n")
    return "\n".join(parts)


def parse(text: str, place: str) -> list[LockedDocs]:
    """The entries of a file. ``place``: its name in errors. Raises :class:`ConfigError`."""
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS:,} characters")
        if _CONFLICT.search(text):
            raise ConfigError(
                f"{place} has merge conflicts. Keep one of the sides, and run 'anvil deps update', which takes the "
                "versions of your lockfile."
            )
        table = data_formats.read_toml(text)
        version = table.get("version")
        if type(version) is not int or version < 1:
            raise ValueError("it has no version")
        if version > LOCK_VERSION:
            raise ConfigError(f"{place} was written by a newer Anvil. Update Anvil to read it.")
        rows = table.get("docs", [])
        if not isinstance(rows, list):
            raise ValueError("'docs' is not a list of tables")
        entries = [_entry(row, number) for number, row in enumerate(rows, 1)]
        if len({entry.key for entry in entries}) < len(entries):
            raise ValueError("it has a package twice at the same version")
    except ValueError as error:  # TOMLDecodeError is a ValueError
        raise ConfigError(
            f"{place} cannot be used: {error}. Restore it from git, or remove it and run 'anvil deps add'."
        ) from None
    return entries


def _entry(row: Any, number: int) -> LockedDocs:
    if not isinstance(row, dict):
        raise ValueError(f"entry {number} is not a table")
    values: dict[str, Any] = {key: row.get(key) for key in _CHECKS}
    for key, is_valid in _CHECKS.items():
        value = values[key]
        if not (isinstance(value, str) and is_valid(value)) and not (value is None and key in _OPTIONAL):
            raise ValueError(f"{key!r} of entry {number} is missing or wrong")
    if not is_name(values["ecosystem"], values["name"]):
        raise ValueError(f"'name' of entry {number} is missing or wrong")
    if values["source"] == "repository" and None in (values["tag"], values["commit"], values["folder"]):
        raise ValueError(f"entry {number} has no tag, no commit or no folder, which a repository needs")
    if values["source"] == "repository" and values["anvil_version"] is None:
        raise ValueError(f"entry {number} has no anvil_version, which a repository needs: its index is built here")
    if values["source"] in ("site", "release") and values["anvil_version"] is not None:
        raise ValueError(f"entry {number} has an anvil_version, but an index of a {values['source']} is not built here")
    named = row.get("named", [])
    if not isinstance(named, list) or any(each not in NAMED for each in named):
        raise ValueError(f"'named' of entry {number} is wrong")
    return LockedDocs(**values, named=tuple(named))


# --- files ------------------------------------------------------------------------------------------------------

MAX_BYTES = 50_000_000
"""Bytes of the largest file that is read."""


def project_text(path: Path, max_bytes: int | None = None) -> str | None:
    """The text of a file; None if there is none. It is UTF-8, or UTF-16 as PowerShell writes the output of ``pip
    freeze``. Raises :class:`ConfigError` if the file cannot be read."""
    try:
        data = safe_files.data(path, MAX_BYTES if max_bytes is None else max_bytes)
        text = data.decode(marked_encoding(data)).removeprefix("\ufeff")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        other = "Make it smaller." if error.errno == errno.EFBIG else "Replace it by a regular file."
        advice = "Check its permissions." if isinstance(error, PermissionError) else other
        raise ConfigError(f"{path} cannot be read ({error.strerror}). {advice}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8. Write it again with its tool.") from None


def read_lock(base: Path) -> list[LockedDocs]:
    """The entries of ``anvil.lock``; none without the file. Raises :class:`ConfigError`."""
    path = base / LOCK_NAME
    text = project_text(path)
    return [] if text is None else parse(text, str(path))


def write_lock(base: Path, entries: list[LockedDocs]) -> None:
    """Write ``anvil.lock``, unless it has these entries already. Raises :class:`AnvilError`."""
    path, text = base / LOCK_NAME, render(entries)
    if project_text(path) != text:
        safe_files.put_file(path, text)
