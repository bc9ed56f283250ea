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
    """The project that the folder ``out`` belongs to: its metadata is in that folder, above it up to ``base``, or in
    ``base``. Without metadata it has the name of the folder ``base``."""
    top, folder = base.resolve(), out.resolve()
    folders = [folder, *folder.parents]
    inside = folders[: folders.index(top)] if top in folders else []
    described = (project for place in (*inside, top) for project in _described(place))
    return next(described, BundledProject(top.name or "this project"))


def _described(folder: Path) -> Iterator[BundledProject]:
    """What the files of a folder say. One that cannot be read says nothing."""
    for file, key, is_package in _METADATA:
        with suppress(OSError, ValueError, RecursionError):
            text = safe_files.text(folder / file)
            table = data_formats.read_toml(text).get(key) if key else json.loads(text)
            if not isinstance(table, dict):
                continue
            # A package.json may only hold the packages of a repository together, and not be published: its name is one
            # such as "monorepo", and its version of none of them.
            is_workspace = "workspaces" in table or (folder / "pnpm-workspace.yaml").is_file()
            is_private = file == "package.json" and table.get("private") is True and is_workspace
            if not is_private and (name := _line(table.get("name"))) is not None:
                yield BundledProject(name, _line(table.get("version")), name if is_package else None)


def _line(value: Any) -> str | None:
    """A value that fits into a line of ``AGENTS.md``: of 200 bytes at most."""
    is_line = isinstance(value, str) and value.isprintable() and value.strip()
    return value if is_line and len(value.encode()) <= 200 else None
