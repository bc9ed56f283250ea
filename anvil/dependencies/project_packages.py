"""A project's dependencies and the state of their documentation, from files of this machine alone."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from anvil.dependencies import anvil_lock, docs_cache, lockfiles, package_files
from anvil.dependencies.package_files import PythonEnvironment, installed
from anvil.dependencies.project_urls import ProjectUrls
from anvil.dependencies.values import Dependency, Ecosystem, LockedDocs
from anvil.errors import ConfigError
from anvil.wording import counted

_ORDER = (
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
)
"""Of several lockfiles of one ecosystem the first is read: others are exports of it, or left over."""
_PROJECT_FILES = ("pyproject.toml", "package.json")


def dependencies(base: Path) -> list[Dependency]:
    """All packages that the project in ``base`` uses, sorted; direct ones are marked. Raises :class:`ConfigError`."""
    direct: dict[Ecosystem, set[str]] = {"npm": set(), "pypi": set()}
    for name in _PROJECT_FILES:
        text = anvil_lock.project_text(base / name)
        if text is not None:
            ecosystem, named = lockfiles.direct_names(name, text, str(base / name))
            direct[ecosystem] |= set(named)
    locked: list[Dependency] = []
    for name in _chosen(filter(lockfiles.is_lockfile, _names(base))):
        text = anvil_lock.project_text(base / name)
        if text is not None:
            locked += (replace(each, origin=name) for each in lockfiles.parse(name, text, str(base / name)))
    has_python_lock = any(each.ecosystem == "pypi" for each in locked)
    locked += _installed(
        base, direct["pypi"], {each.name for each in locked if each.ecosystem == "pypi"}, has_python_lock
    )
    known = {(each.ecosystem, each.name) for each in locked}
    bare = [_unlocked(base, ecosystem, name) for ecosystem, names in direct.items() for name in names]
    locked += [each for each in bare if (each.ecosystem, each.name) not in known]
    marked = {replace(each, direct=each.direct or each.name in direct[each.ecosystem]) for each in locked}
    return sorted(marked, key=lambda each: (each.ecosystem, each.name, each.version or "", each.origin))


def _names(base: Path) -> list[str]:
    """The names of the files in a project's folder, sorted. Raises :class:`ConfigError`."""
    try:
        return sorted(entry.name for entry in base.iterdir())
    except OSError as error:
        raise ConfigError(f"The folder {base} cannot be listed ({error.strerror}). Name another one.") from None


def _chosen(names: Iterable[str]) -> list[str]:
    """The lockfiles to read: one for each ecosystem, or all ``requirements*.txt``."""
    there = sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    chosen: dict[Ecosystem, list[str]] = {}
    for name in there:
        ecosystem = lockfiles.ecosystem_of(name)
        group = chosen.setdefault(ecosystem, [])
        if not group or (group[0] not in _ORDER and name not in _ORDER):
            group.append(name)
    return [name for group in chosen.values() for name in group]


def _unlocked(base: Path, ecosystem: Ecosystem, name: str) -> Dependency:
    """A package that the project names and no lockfile has. Python's are known from the environment already."""
    version = package_files.installed_npm_version(base, name) if ecosystem == "npm" else None
    origin = "node_modules" if version else "package.json" if ecosystem == "npm" else "pyproject.toml"
    return Dependency(ecosystem, name, version, True, origin)


def _installed(base: Path, direct: set[str], locked: set[str], has_lock: bool) -> list[Dependency]:
    """Packages of the environment: those that the project names and no lockfile has; without a lockfile all."""
    environment = PythonEnvironment.of_project(base)
    if environment is None:
        return []
    return [
        each
        for each in environment.packages()
        if each.name not in locked and (each.name in direct or (not has_lock and not locked))
    ]


@dataclass(frozen=True, slots=True)
class DependencyState(Dependency):
    """A package and its documentation. ``locked``: its entry in ``anvil.lock``, None without one. ``documentation``:
    what is known of it from the installed package; None when it is not installed here. ``is_here``: whether the index
    of ``locked`` is on this machine."""

    locked: LockedDocs | None = None
    documentation: str | None = None
    is_here: bool | None = None


def overview(base: Path) -> list[DependencyState]:
    """All dependencies of the project in ``base``, direct ones first. Raises :class:`ConfigError`."""
    entries = {entry.key: entry for entry in anvil_lock.read_lock(base)}
    environment = PythonEnvironment.of_project(base)
    known = dependencies(base)
    rows = [
        _state(each, entries.pop((each.ecosystem, each.name, each.version or ""), None), base, environment)
        for each in known
    ]
    rows += [  # of versions that the project does not use any more
        _state(Dependency(entry.ecosystem, entry.name, entry.version, origin="anvil.lock"), entry, base, None)
        for entry in entries.values()
    ]
    return sorted(rows, key=lambda row: (not row.direct, row.ecosystem, row.name, row.version or ""))


def _state(
    dependency: Dependency, locked: LockedDocs | None, base: Path, environment: PythonEnvironment | None
) -> DependencyState:
    if locked is None:
        return DependencyState(**asdict(dependency), documentation=_documentation(dependency, base, environment))
    is_here = docs_cache.path(docs_cache.cache(), locked).is_file()  # its bytes are not read
    return DependencyState(**asdict(dependency), locked=locked, is_here=is_here)


def _documentation(dependency: Dependency, base: Path, environment: PythonEnvironment | None) -> str | None:
    if dependency.version is None:
        return None
    found = installed(base, environment, dependency.ecosystem, dependency.name, dependency.version)
    return None if found is None else _described(*found)


def _described(urls: ProjectUrls, files: Mapping[str, Path]) -> str:
    there = package_files.carried_docs(files.keys())
    if there.index is not None:
        return f"carries {there.index}"
    if there.pages:
        place = posixpath.commonpath(there.pages)
        return f"carries {counted(len(there.pages), 'page')}{f' in {place}' if place else ''}"
    if there.llms is not None:
        return f"carries {there.llms}"
    return f"repository {urls.repository}" if urls.repository else "names no repository"
