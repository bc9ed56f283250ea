"""Name and version of the project that a bundle belongs to, from its package metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from anvil.bundle.agents_md import BundledProject
from anvil.formats import data_formats
from anvil.system import safe_files

_METADATA = (("pyproject.toml", "project", True), ("package.json", "", True), ("Cargo.toml", "package", False))
"""File, its table with name and version, and whether ``anvil deps add`` finds packages of this language."""


def find_project(out: Path, base: Path) -> BundledProject:
    """The project that the folder ``out`` belongs to. Its metadata is in ``out``, in a folder between ``base`` and
    ``out``, or in ``base``. Without metadata it has the name of the folder ``base``."""
    top, folder = base.resolve(), out.resolve()
    folders = [folder, *folder.parents]
    inside = folders[: folders.index(top)] if top in folders else []
    projects = (project for place in (*inside, top) for project in _projects_in(place))
    return next(projects, BundledProject(top.name or "this project"))


def _projects_in(folder: Path) -> Iterator[BundledProject]:
    """The projects in the metadata files of a folder. A file that cannot be read is skipped."""
    for file, key, is_package in _METADATA:
        with suppress(OSError, ValueError, RecursionError):
            text = safe_files.text(folder / file)
            table = data_formats.read_toml(text).get(key) if key else json.loads(text)
            if not isinstance(table, dict):
                continue
            # The package.json of a workspace may not be that of a package: its name is then one such as "monorepo".
            is_workspace = "workspaces" in table or (folder / "pnpm-workspace.yaml").is_file()
            is_private = file == "package.json" and table.get("private") is True and is_workspace
            if not is_private and (name := _line(table.get("name"))) is not None:
                yield BundledProject(name, _line(table.get("version")), name if is_package else None)


def _line(value: Any) -> str | None:
    """``value`` if it is a printable text of at most 200 bytes, which fits into a line of ``AGENTS.md``; else None."""
    is_line = isinstance(value, str) and value.isprintable() and value.strip()
    return value if is_line and len(value.encode()) <= 200 else None
