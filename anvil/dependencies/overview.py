"""A project's dependencies and the state of their documentation, from files of this machine alone."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anvil.dependencies import docs_cache, docs_in_package, installed_packages, project_files
from anvil.dependencies.package_files import installed
from anvil.dependencies.project_urls import ProjectUrls
from anvil.dependencies.pypi import PythonEnvironment
from anvil.dependencies.values import Dependency, Ecosystem, LockedDocs
from anvil.wording import counted


@dataclass(frozen=True, slots=True)
class DependencyState:
    """``locked``: its entry in ``anvil.lock``, None without one. ``is_here``: whether that index is on this machine.
    ``documentation``: what is known of it from the installed package; None when it is not installed here."""

    ecosystem: Ecosystem
    name: str
    version: str | None
    direct: bool
    origin: str
    locked: LockedDocs | None
    documentation: str | None
    is_here: bool | None = None


def overview(base: Path) -> list[DependencyState]:
    """All dependencies of the project in ``base``, direct ones first. Raises :class:`ConfigError`."""
    entries = {entry.key: entry for entry in project_files.read_lock(base)}
    environment = PythonEnvironment.of_project(base)
    known = installed_packages.dependencies(base)
    rows = [
        _state(each, entries.pop((each.ecosystem, each.name, each.version or ""), None), base, environment)
        for each in known
    ]
    rows += [  # of versions that the project does not use any more
        DependencyState(entry.ecosystem, entry.name, entry.version, False, "anvil.lock", entry, None, _is_here(entry))
        for entry in entries.values()
    ]
    return sorted(rows, key=lambda row: (not row.direct, row.ecosystem, row.name, row.version or ""))


def _state(
    dependency: Dependency, locked: LockedDocs | None, base: Path, environment: PythonEnvironment | None
) -> DependencyState:
    return DependencyState(
        ecosystem=dependency.ecosystem,
        name=dependency.name,
        version=dependency.version,
        direct=dependency.direct,
        origin=dependency.origin,
        locked=locked,
        documentation=None if locked is not None else _documentation(dependency, base, environment),
        is_here=None if locked is None else _is_here(locked),
    )


def _is_here(entry: LockedDocs) -> bool:
    """Whether the index of an entry is in the cache. Its bytes are not read."""
    return docs_cache.path(docs_cache.cache(), entry).is_file()


def _documentation(dependency: Dependency, base: Path, environment: PythonEnvironment | None) -> str | None:
    if dependency.version is None:
        return None
    found = installed(base, environment, dependency.ecosystem, dependency.name, dependency.version)
    return None if found is None else _described(*found)


def _described(urls: ProjectUrls, files: Mapping[str, Path]) -> str:
    there = docs_in_package.find(files.keys())
    if there.index is not None:
        return f"carries {there.index}"
    if there.pages:
        place = posixpath.commonpath(there.pages)
        return f"carries {counted(len(there.pages), 'page')}{f' in {place}' if place else ''}"
    if there.llms is not None:
        return f"carries {there.llms}"
    return f"repository {urls.repository}" if urls.repository else "names no repository"
