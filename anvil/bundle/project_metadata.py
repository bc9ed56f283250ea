"""Name and version of the project that a bundle belongs to, from its package metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from anvil.bundle.pointer import BundledProject
from anvil.formats import data_formats
from anvil.system import safe_files


def find_project(out: Path, base: Path) -> BundledProject:
    """The project that the folder ``out`` belongs to: its metadata is in that folder, above it up to ``base``, or in
    ``base``. Without metadata it has the name of the folder ``base``."""
    top, folder = base.resolve(), out.resolve()
    folders = [folder, *folder.parents]
    inside = folders[: folders.index(top)] if top in folders else []
    for place in (*inside, top):
        for found in _described(place):
            return found
    return BundledProject(top.name or "this project")


def _described(folder: Path) -> Iterator[BundledProject]:
    """What the files of a folder say. One that cannot be read says nothing."""
    with suppress(OSError, ValueError, RecursionError):
        table = data_formats.read_toml(safe_files.text(folder / "pyproject.toml")).get("project")
        if project := _project(table, is_package=True):
            yield project
    with suppress(OSError, ValueError, RecursionError):
        if project := _project(json.loads(safe_files.text(folder / "package.json")), is_package=True):
            yield project
    with suppress(OSError, ValueError, RecursionError):
        table = data_formats.read_toml(safe_files.text(folder / "Cargo.toml")).get("package")
        if project := _project(table, is_package=False):
            yield project


def _project(table: Any, is_package: bool) -> BundledProject | None:
    name, version = (_line(table.get(key)) for key in ("name", "version")) if isinstance(table, dict) else (None, None)
    return None if name is None else BundledProject(name, version, name if is_package else None)


def _line(value: Any) -> str | None:
    """A value that fits into a line of ``AGENTS.md``."""
    return value if isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= 200 else None
