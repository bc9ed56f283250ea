"""Packages of npm: the lockfiles of npm, pnpm, Yarn and Bun, ``package.json``, the registry, and ``node_modules``.

It is a :class:`anvil.dependencies.ecosystems.PackageEcosystem`.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import os
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anvil.dependencies import ecosystems, package_registry
from anvil.dependencies.ecosystems import Dependency, DirectPackages, LockedPackages, PackageArchive, Registry, Release
from anvil.dependencies.package_names import is_version
from anvil.dependencies.project_urls import HOSTS, ProjectUrls, of_npm
from anvil.errors import FetchError, NotFound
from anvil.formats import data_formats
from anvil.formats.data_formats import json_object, value_at
from anvil.http.allowed_servers import host_of
from anvil.http.client import HttpClient
from anvil.system import safe_files

_package = functools.partial(Dependency, "npm")

# NAME@RANGE, or NAME@npm:REAL@RANGE for a package with the name REAL in the registry; more of them may follow
_YARN_HEAD = re.compile(r'"?(@?[^@"\s,]+)@(?:npm:(@?[^@"\s,]+)@?)?([^",]*)')
_BERRY = re.compile(r"(@?[^@]+)@([a-z+]+)[:@]([^\s:]*)")
"""``name@npm:1.2.0``, ``name@workspace:folder`` or ``name@git@host:path``. After ``::`` there may be an address."""
_YARN_VERSION = re.compile(r'  version "([^"\n]*)"\s*')
# "/name/1.2.0_peer", "/name@1.2.0(peer)" and "name@1.2.0(peer)", as pnpm wrote them one after the other
_PNPM_KEY = re.compile(r"/?(@[^/]+/[^/@]+|[^/@]+)[/@]([^/(_]+)(?:[(_].*)?", re.DOTALL)

_ALIAS = re.compile(r"npm:(@?[^@]+)")
_BUN_PACKAGE = re.compile(r"(@?[^@]+)@(.+)", re.DOTALL)


# --- lockfiles ------------------------------------------------------------------------------------------


def _package_lock(text: str) -> LockedPackages:
    table = _mapping(json.loads(text))
    packages: list[Dependency] = []
    rows = table.get("packages")
    if isinstance(rows, dict):  # since npm 7: path in the project -> package, "" for the project
        projects: dict[str, DirectPackages] = {}
        for path, row in rows.items():
            _, folder, package_name = path.rpartition("node_modules/")
            _mapping(row, f"the package {path[:80]!r}")
            if not folder:  # the project, or a member of its workspace
                direct = projects.setdefault(path or ".", {})
                for name, wanted in _named_versions(row):
                    direct.setdefault(_real_name(name, wanted), set()).update(_installed_version(rows, path, name))
            else:
                is_in_registry = not row.get("link") and not str(row.get("resolved")).startswith(("file:", "git"))
                packages.append(
                    _package(str(row.get("name", package_name)), row.get("version") if is_in_registry else None)
                )
        return packages, projects
    pending = [table.get("dependencies") or {}]  # before npm 7: packages inside the packages that need them
    while pending:
        for name, row in _mapping(pending.pop(), "a list of dependencies").items():
            if is_version(_mapping(row, f"the package {name[:80]!r}").get("version")):  # else an address
                packages.append(_package(name, row["version"]))
            pending.append(row.get("dependencies") or {})
    return packages, {}


def _installed_version(rows: Mapping[str, Any], project: str, name: str) -> Iterator[str]:
    """The version of a package that a project gets: the one in its own ``node_modules``, else in that of the top."""
    row = rows.get(f"{project}/node_modules/{name}") or rows.get(f"node_modules/{name}")
    if isinstance(row, dict) and isinstance(row.get("version"), str):
        yield row["version"]


def _named_versions(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """(name, version) of the packages that a project itself names, also of those for development."""
    for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        names = table.get(key)
        yield from names.items() if isinstance(names, dict) else ()


def _real_name(name: str, wanted: object) -> str:
    """The name of a package in the registry. A project can give it another name, as in ``"old": "npm:lib@1"``."""
    alias = _ALIAS.match(wanted) if isinstance(wanted, str) else None
    return alias[1] if alias else name


def _pnpm(text: str) -> LockedPackages:
    # Since pnpm 11, the first YAML document may have the versions of pnpm itself. Then the project's follows, if any.
    own = text.partition("\n---\n")[2] if text.startswith("---\n") else text
    table = _mapping(data_formats.read_yaml(own, strings=True) or {})
    packages: list[Dependency] = []
    for key in _mapping(table.get("packages") or {}, "'packages'"):
        match = _PNPM_KEY.fullmatch(key) if isinstance(key, str) else None
        if match and is_version(match[2]):  # if not, it is an address or a folder
            packages.append(_package(match[1], match[2]))
    projects: dict[str, DirectPackages] = {}
    for path, importer in [*_mapping(table.get("importers") or {}, "'importers'").items(), (".", table)]:
        direct = projects.setdefault(str(path), {})
        if isinstance(importer, dict):
            for name, locked in _named_versions(importer):
                version = locked.get("version") if isinstance(locked, dict) else locked  # a text before pnpm 8
                plain = re.split(r"[(_]", version)[0] if isinstance(version, str) else ""
                if "://" in plain or plain.startswith(("link:", "file:", *HOSTS)):
                    packages.append(_package(name, None))
                elif not is_version(plain) and (match := _PNPM_KEY.fullmatch(str(version))):  # of an alias: "lib@1.2.0"
                    name, plain = match[1], match[2]
                direct.setdefault(name, set()).update([plain] if is_version(plain) else ())
    return packages, projects


def _yarn(text: str) -> LockedPackages:
    packages: list[Dependency] = []
    if "__metadata:" in text:  # yarn 2 and later write YAML, yarn 1 a format of its own
        for row in _mapping(data_formats.read_yaml(text, strings=True)).values():
            resolution = _mapping(row, "one of its entries").get("resolution")
            match = _BERRY.match(resolution) if isinstance(resolution, str) else None
            if match and match[2] != "patch":  # a patched package has an entry of its own, too
                packages.append(_package(match[1], match[3] if match[2] == "npm" else None))
        return packages, {}
    head = None
    for line in text.splitlines():
        if line and not line.startswith((" ", "#", "\t")):
            names, colon, after = line.rpartition(":")
            head = _YARN_HEAD.match(names) if colon and not after.strip() else None
            if head is None:
                raise ValueError(f"the line {line[:80]!r} names no package")
        elif head is not None and (version := _YARN_VERSION.fullmatch(line)):
            is_in_registry = {*":/"}.isdisjoint(head[3])
            packages.append(_package(head[2] or head[1], version[1] if is_in_registry else None))
            head = None
    return packages, {}


def _bun(text: str) -> LockedPackages:
    try:
        table = _mapping(data_formats.read_yaml(text, strings=True))  # it is JSON with commas at the end of lists
    except ValueError as error:
        raise ValueError(str(error).replace("YAML", "JSON")) from error
    packages: dict[str, Dependency] = {}
    for key, row in _mapping(table.get("packages") or {}, "'packages'").items():
        match = _BUN_PACKAGE.fullmatch(str(row[0])) if isinstance(row, list) and row else None
        if match:
            packages[str(key)] = _package(match[1], match[2] if is_version(match[2]) else None)
    projects: dict[str, DirectPackages] = {}
    for path, project in _mapping(table.get("workspaces") or {}, "'workspaces'").items():
        direct = projects.setdefault(str(path) or ".", {})
        for name, _ in _named_versions(_mapping(project, f"the workspace {str(path)[:80]!r}")):
            real = packages.get(f"{project.get('name')}/{name}") or packages.get(name) or _package(name, None)
            direct.setdefault(real.name, set()).update([real.version] if real.version is not None else ())
    return list(packages.values()), projects


def _mapping(value: Any, what: str = "it") -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not a mapping")
    return value


def _read_package_json(text: str) -> Iterator[Dependency]:
    versions = _named_versions(_mapping(json.loads(text)))
    return (_package(_real_name(name, version), None) for name, version in versions)


PROJECT_FILES: Mapping[str, Callable[[str], Iterable[Dependency]]] = {"package.json": _read_package_json}
LOCKFILES: Mapping[str, Callable[[str], LockedPackages]] = {
    "package-lock.json": _package_lock,
    "npm-shrinkwrap.json": _package_lock,
    "pnpm-lock.yaml": _pnpm,
    "yarn.lock": _yarn,
    "bun.lock": _bun,
}


# --- the registry ---------------------------------------------------------------------------------------


def release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    page = f"{registry.url}{urllib.parse.quote(name, safe='@')}"
    what, accept = f"{name} {version}", "application/json"
    try:
        text, _, final_url = package_registry.get(http, f"{page}/{urllib.parse.quote(version, safe='')}", what, accept)
        package = package_registry.object_of(text, final_url)
    except NotFound:  # some registries have no document of one version, only that of the package
        text, _, final_url = package_registry.get(http, page, what, accept)
        package = value_at(package_registry.object_of(text, final_url), "versions", version)
        if not isinstance(package, dict):
            raise NotFound(f"{host_of(final_url)} has no version {version} of {name}.") from None
    tarball = value_at(package, "dist", "tarball")
    if not isinstance(tarball, str):
        raise FetchError(f"{host_of(final_url)} names no archive of {name} {version}.")
    url = urllib.parse.urljoin(final_url, tarball)
    return Release(of_npm(package), PackageArchive(url, url.rpartition("/")[2], _npm_digest(package["dist"])))


def _npm_digest(dist: Mapping[str, Any]) -> str | None:
    """The strongest digest that the registry has, as ``sha512:<hex>``."""
    integrity = dist.get("integrity")
    for part in integrity.split() if isinstance(integrity, str) else ():
        kind, _, encoded = part.partition("-")
        if kind in ("sha512", "sha384", "sha256"):
            try:
                return f"{kind}:{base64.b64decode(encoded, validate=True).hex()}"
            except binascii.Error:
                continue
    return f"sha1:{dist['shasum']}" if isinstance(dist.get("shasum"), str) else None


# --- node_modules ---------------------------------------------------------------------------------------


class NodeModules:
    """The packages in the ``node_modules`` of a project, and of the folders above it."""

    place = "node_modules"

    def __init__(self, base: Path) -> None:
        self._folders = [folder / self.place for folder in ecosystems.project_folders(base)]

    def find(self, name: str, version: str) -> tuple[ProjectUrls, dict[str, Path]] | None:
        folder = self._folder_of(name)
        package = _package_json(folder)
        if package is None or (package.get("name"), package.get("version")) != (name, version):
            return None
        files: dict[str, Path] = {}
        for parent, folders, names in os.walk(folder):
            folders[:] = [subfolder for subfolder in folders if subfolder != "node_modules"]
            for file_name in names:
                path = Path(parent, file_name)
                files[path.relative_to(folder).as_posix()] = path
        return of_npm(package), files

    def unlocked(self, named: Collection[str], locked: Collection[str]) -> list[Dependency]:
        versions = {name: self._version(name) for name in named if name not in locked}
        return [_package(name, version, True, self.place) for name, version in versions.items() if version]

    def _version(self, name: str) -> str | None:
        package = _package_json(self._folder_of(name)) or {}
        version: object = package.get("version")
        return str(version) if package.get("name") == name and is_version(version) else None

    def _folder_of(self, name: str) -> Path:
        folders = [folder.joinpath(*name.split("/")) for folder in self._folders]
        return next((folder for folder in folders if folder.is_dir()), folders[0])


def installed(base: Path) -> NodeModules:
    return NodeModules(base)


def _package_json(folder: Path) -> dict[str, Any] | None:
    try:
        return json_object(safe_files.text(folder / "package.json"))
    except (OSError, ValueError):  # not UTF-8
        return None
