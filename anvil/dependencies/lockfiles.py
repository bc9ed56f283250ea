"""The packages of a project: names and versions in the lockfiles of Python and JavaScript, what is installed here, and
the state of their documentation. Only files of this machine are read.

Lockfiles come with a checkout and are not trusted: size, nesting, types, names and versions are checked, and what is
wrong is one error. Packages without a version of a registry (a folder, a workspace, a git address) are left out.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from anvil.dependencies import anvil_lock, docs_cache, package_files
from anvil.dependencies.package_files import PythonEnvironment, installed
from anvil.dependencies.package_names import is_name, is_version, normalized
from anvil.dependencies.project_urls import ProjectUrls
from anvil.dependencies.values import Dependency, Ecosystem, LockedDocs
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.wording import counted

MAX_CHARACTERS = 50_000_000
"""Characters of the longest lockfile that is read."""
MAX_PACKAGES = 100_000
MAX_NESTING = 200
"""Levels of ``dependencies`` in an old ``package-lock.json``."""
# NAME[EXTRAS] and the rest of the line; then "== VERSION", with a marker, a comment or hashes behind it. A version with
# an asterisk pins none.
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]\n]*\])?\s*(.*)")
_PIN = re.compile(r"===?\s*([^\s,;*]+)\s*(?:[;#\\].*|--hash.*)?")
_YARN_HEAD = re.compile(r'"?(@?[^@"\s,]+)@[^\n]*:\s*')
_YARN_VERSION = re.compile(r'  version "([^"\n]*)"\s*')
# "/name/1.2.0_peer", "/name@1.2.0(peer)" and "name@1.2.0(peer)", as pnpm wrote them one after the other
_PNPM_KEY = re.compile(r"/?(@[^/]+/[^/@]+|[^/@]+)[/@]([^/(_]+)(?:[(_].*)?", re.DOTALL)
_SHOWN_KINDS = {"pypi": "a Python package", "npm": "an npm package"}


NamedPackages = tuple[list[tuple[str, object]], set[str]]
"""(name, version) of each package, and the names that are direct. They are not checked yet."""


def parse(name: str, text: str, place: str) -> list[Dependency]:
    """The packages of a lockfile, each version once, sorted. ``name``: the file's name, which tells the format.

    Packages that the file itself marks as the project's own wishes are ``direct``. ``place``: its name in errors.
    Raises :class:`ConfigError`.
    """
    ecosystem, read = _format(name)
    with _refusing(text, place, "Write it again with its tool."):
        packages, direct = read(text)
        return _checked(ecosystem, packages, direct, name)


def is_lockfile(name: str) -> bool:
    """Whether files of this name are read."""
    return name in _FORMATS or bool(re.fullmatch(r"requirements[\w.-]*\.txt|pylock(?:\.[^.]+)?\.toml", name))


def direct_names(name: str, text: str, place: str) -> tuple[Ecosystem, list[str]]:
    """The dependencies that ``pyproject.toml`` or ``package.json`` names, normalized. Raises :class:`ConfigError`."""
    with _refusing(text, place, "Correct the file."):
        if name == "package.json":
            names: Iterable[str] = _named_by_package_json(_json(text))
            return "npm", sorted({each for each in names if is_name("npm", each)})
        names = _named_by_pyproject(data_formats.read_toml(text))
        return "pypi", sorted({normalized("pypi", each) for each in names if is_name("pypi", each)})


@contextmanager
def _refusing(text: str, place: str, advice: str) -> Iterator[None]:
    """One error for a text that is too long, and for all that is wrong in it."""
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS:,} characters")
        yield
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise ConfigError(f"{place} cannot be read: {reason[:200]}. {advice}") from None


def _format(name: str) -> tuple[Ecosystem, Callable[[str], NamedPackages]]:
    if name in _FORMATS:
        return _FORMATS[name]
    return ("pypi", _pylock) if name.endswith(".toml") else ("pypi", _requirements)


def _checked(
    ecosystem: Ecosystem, packages: list[tuple[str, object]], direct: set[str], origin: str
) -> list[Dependency]:
    if len(packages) > MAX_PACKAGES:
        raise ValueError(f"it has more than {MAX_PACKAGES:,} packages")
    wanted = {normalized(ecosystem, name) for name in direct}
    dependencies = set()
    for name, version in packages:
        if not is_name(ecosystem, name):
            raise ValueError(f"{str(name)[:80]!r} is not the name of {_SHOWN_KINDS[ecosystem]}")
        if version is None:
            continue
        if not is_version(version):
            raise ValueError(f"{str(version)[:80]!r} is not the version of {_SHOWN_KINDS[ecosystem]}")
        plain = normalized(ecosystem, name)
        dependencies.add(Dependency(ecosystem, plain, str(version), plain in wanted, origin))
    return sorted(dependencies)


# --- Python ----------------------------------------------------------------------------------------------------------


def _uv(text: str) -> NamedPackages:
    packages: list[tuple[str, object]] = []
    direct: set[str] = set()
    for row in _rows(data_formats.read_toml(text), "package"):
        source = row.get("source")
        kinds = set(source) if isinstance(source, dict) else set()
        if kinds & {"editable", "virtual", "directory"}:  # the project itself, or a member of its workspace
            lists = [
                row.get("dependencies"),
                *_values(row.get("optional-dependencies")),
                *_values(row.get("dev-dependencies")),
            ]
            for names in lists:
                direct |= {
                    each["name"] for each in names or () if isinstance(each, dict) and isinstance(each.get("name"), str)
                }
        elif not kinds or kinds & {"registry", "url"}:
            packages.append((_name(row), row.get("version")))
    return packages, direct


def _package_tables(text: str) -> NamedPackages:
    """``poetry.lock`` and ``pdm.lock``."""
    packages: list[tuple[str, object]] = []
    for row in _rows(data_formats.read_toml(text), "package"):
        source = row.get("source")
        is_elsewhere = isinstance(source, dict) and source.get("type") in ("git", "directory", "file")
        if not is_elsewhere and not row.keys() & {"git", "path"}:
            packages.append((_name(row), row.get("version")))
    return packages, set()


def _pylock(text: str) -> NamedPackages:
    """PEP 751."""
    rows = _rows(data_formats.read_toml(text), "packages")
    return [(_name(row), row.get("version")) for row in rows if not row.keys() & {"vcs", "directory"}], set()


def _requirements(text: str) -> NamedPackages:
    """Lines ``name==1.2``, with extras, markers and hashes. Other lines name no version."""
    packages: list[tuple[str, object]] = []
    direct: set[str] = set()
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        match = _REQUIREMENT.fullmatch(line.partition(" #")[0])
        pin = _PIN.fullmatch(match[2].strip()) if match else None
        if match and pin:
            packages.append((match[1], pin[1]))
            direct.add(match[1])
    if re.search(r"^\s+# via", text, re.MULTILINE):  # written by pip-compile or uv: most are not the project's own
        direct = set()
    return packages, direct


def _named_by_pyproject(project: Mapping[str, Any]) -> Iterator[str]:
    table = project.get("project")
    groups = project.get("dependency-groups")
    tool = project.get("tool")
    lists: list[Any] = []
    if isinstance(table, dict):
        lists += [table.get("dependencies"), *_values(table.get("optional-dependencies"))]
    lists += _values(groups)
    for requirement in (each for listed in lists if isinstance(listed, list) for each in listed):
        match = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
        if match:
            yield match[1]
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    if isinstance(poetry, dict):
        tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
        tables += [each.get("dependencies") for each in _values(poetry.get("group")) if isinstance(each, dict)]
        for names in tables:
            yield from (name for name in (names if isinstance(names, dict) else ()) if name != "python")


# --- JavaScript ------------------------------------------------------------------------------------------------------


def _package_lock(text: str) -> NamedPackages:
    table = _json(text)
    packages: list[tuple[str, object]] = []
    rows = table.get("packages")
    if isinstance(rows, dict):  # since npm 7: path in the project -> package, "" for the project
        for path, row in rows.items():
            inside = path.rpartition("node_modules/")
            if not isinstance(row, dict):
                raise ValueError(f"the package {path[:80]!r} is not an object")
            if inside[1] and not row.get("link") and _is_registered(row):
                packages.append((str(row.get("name", inside[2])), row.get("version")))
        root = rows.get("")
        return packages, set(_named_by_package_json(root)) if isinstance(root, dict) else set()
    pending = [(table.get("dependencies"), 0)]  # before npm 7: packages inside the packages that need them
    while pending:
        rows, depth = pending.pop()
        if rows is None:
            continue
        if not isinstance(rows, dict) or depth > MAX_NESTING:
            raise ValueError("its dependencies are not objects, or nested too deeply")
        for name, row in rows.items():
            if not isinstance(row, dict):
                raise ValueError(f"the package {name[:80]!r} is not an object")
            if is_version(row.get("version")):  # else an address
                packages.append((name, row["version"]))
            pending.append((row.get("dependencies"), depth + 1))
    return packages, set()


def _is_registered(row: Mapping[str, Any]) -> bool:
    resolved = row.get("resolved")
    return not isinstance(resolved, str) or not resolved.startswith(("git", "file:"))


def _named_by_package_json(table: Mapping[str, Any]) -> Iterator[str]:
    for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        names = table.get(key)
        yield from names if isinstance(names, dict) else ()


def _pnpm(text: str) -> NamedPackages:
    table = _yaml(text)
    packages: list[tuple[str, object]] = []
    for key in _mapping(table, "packages"):
        match = _PNPM_KEY.fullmatch(key) if isinstance(key, str) else None
        if match and is_version(match[2]):  # else an address or a folder
            packages.append((match[1], match[2]))
    importers = [*_mapping(table, "importers").values(), table]
    return packages, {name for each in importers if isinstance(each, dict) for name in _named_by_package_json(each)}


def _yarn(text: str) -> NamedPackages:
    if "__metadata:" in text:  # yarn 2 and later write YAML, yarn 1 a format of its own
        return _berry(text), set()
    packages: list[tuple[str, object]] = []
    name = None
    for line in text.splitlines():
        if line and not line.startswith((" ", "#", "\t")):
            head = _YARN_HEAD.fullmatch(line)
            if head is None:
                raise ValueError(f"the line {line[:80]!r} names no package")
            aliased = re.match(r'"?@?[^@"\s,]+@npm:(@?[^@"\s,]+)@', line)  # "lodash-old@npm:lodash@^3"
            name = aliased[1] if aliased else head[1]
        elif name is not None and (version := _YARN_VERSION.fullmatch(line)):
            packages.append((name, version[1]))
            name = None
    return packages, set()


def _berry(text: str) -> list[tuple[str, object]]:
    packages: list[tuple[str, object]] = []
    for row in _yaml(text).values():
        if not isinstance(row, dict):
            raise ValueError("one of its entries is not a mapping")
        resolution = row.get("resolution")
        match = re.fullmatch(r"(@?[^@]+)@npm:([^\s:]+)", resolution) if isinstance(resolution, str) else None
        if match:
            packages.append((match[1], match[2]))
    return packages


# --- formats ---------------------------------------------------------------------------------------------------------


def _json(text: str) -> dict[str, Any]:
    table = json.loads(text)
    if not isinstance(table, dict):
        raise ValueError("it is not an object")
    return table


def _yaml(text: str) -> dict[Any, Any]:
    table = data_formats.read_yaml(text, strings=True)
    if not isinstance(table, dict):
        raise ValueError("it is not a mapping")
    return table


def _mapping(table: Mapping[Any, Any], key: str) -> dict[Any, Any]:
    value = table.get(key) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is not a mapping")
    return value


def _rows(table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = table.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{key!r} is not a list of tables")
    return rows


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("name")
    if not isinstance(name, str):
        raise ValueError("a package has no name")
    return name


def _values(table: Any) -> list[Any]:
    return list(table.values()) if isinstance(table, dict) else []


_FORMATS: Mapping[str, tuple[Ecosystem, Callable[[str], NamedPackages]]] = {
    "uv.lock": ("pypi", _uv),
    "poetry.lock": ("pypi", _package_tables),
    "pdm.lock": ("pypi", _package_tables),
    "pylock.toml": ("pypi", _pylock),
    "package-lock.json": ("npm", _package_lock),
    "npm-shrinkwrap.json": ("npm", _package_lock),
    "pnpm-lock.yaml": ("npm", _pnpm),
    "yarn.lock": ("npm", _yarn),
}
"""File name -> format. Of several lockfiles of one ecosystem the first in this order is read: others are exports of it,
or left over."""


# --- a project -------------------------------------------------------------------------------------------------------


def dependencies(base: Path) -> list[Dependency]:
    """All packages that the project in ``base`` uses, sorted; direct ones are marked. Raises :class:`ConfigError`."""
    direct: dict[Ecosystem, set[str]] = {"npm": set(), "pypi": set()}
    for name in ("pyproject.toml", "package.json"):
        text = anvil_lock.project_text(base / name)
        if text is not None:
            ecosystem, named = direct_names(name, text, str(base / name))
            direct[ecosystem] |= set(named)
    locked: list[Dependency] = []
    for name in _chosen(base):
        text = anvil_lock.project_text(base / name)
        if text is not None:
            locked += parse(name, text, str(base / name))
    locked += _installed(base, direct["pypi"], {each.name for each in locked if each.ecosystem == "pypi"})
    known = {(each.ecosystem, each.name) for each in locked}
    bare = [_unlocked(base, ecosystem, name) for ecosystem, names in direct.items() for name in names]
    locked += [each for each in bare if (each.ecosystem, each.name) not in known]
    marked = {replace(each, direct=each.direct or each.name in direct[each.ecosystem]) for each in locked}
    return sorted(marked, key=lambda each: (each.ecosystem, each.name, each.version or "", each.origin))


def _chosen(base: Path) -> list[str]:
    """The lockfiles to read: one for each ecosystem, or all ``requirements*.txt``. Raises :class:`ConfigError`."""
    try:
        names = {entry.name for entry in base.iterdir() if is_lockfile(entry.name)}
    except OSError as error:
        raise ConfigError(f"The folder {base} cannot be listed ({error.strerror}). Name another one.") from None
    chosen: dict[Ecosystem, list[str]] = {}
    for name in [*filter(names.__contains__, _FORMATS), *sorted(names - _FORMATS.keys())]:
        group = chosen.setdefault(_format(name)[0], [])
        if not group or (group[0] not in _FORMATS and name not in _FORMATS):
            group.append(name)
    return [name for group in chosen.values() for name in group]


def _unlocked(base: Path, ecosystem: Ecosystem, name: str) -> Dependency:
    """A package that the project names and no lockfile has. Python's are known from the environment already."""
    version = package_files.installed_npm_version(base, name) if ecosystem == "npm" else None
    origin = "node_modules" if version else "package.json" if ecosystem == "npm" else "pyproject.toml"
    return Dependency(ecosystem, name, version, True, origin)


def _installed(base: Path, direct: set[str], locked: set[str]) -> list[Dependency]:
    """Packages of the environment: those that the project names and no lockfile has; without a lockfile all."""
    environment = PythonEnvironment.of_project(base)
    packages = [] if environment is None else environment.packages()
    return [each for each in packages if each.name not in locked and (each.name in direct or not locked)]


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
    package = installed(base, environment, dependency.ecosystem, dependency.name, dependency.version)
    return None if package is None else _described(*package)


def _described(urls: ProjectUrls, files: Mapping[str, Path]) -> str:
    there = package_files.carried_docs(files.keys())
    if there.index is not None:
        return f"carries {there.index}"
    if there.pages:
        common_folder = posixpath.commonpath(there.pages)
        return f"carries {counted(len(there.pages), 'page')}{f' in {common_folder}' if common_folder else ''}"
    if there.llms is not None:
        return f"carries {there.llms}"
    return f"repository {urls.repository}" if urls.repository else "names no repository"
