"""Packages of Python: the lockfiles of uv, Poetry, PDM and pip, ``pyproject.toml``, package indexes such as PyPI, and
virtual environments.

It is a :class:`anvil.dependencies.ecosystems.PackageEcosystem`.
"""

from __future__ import annotations

import email.parser
import functools
import os
import posixpath
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, canonicalize_version, parse_wheel_filename

from anvil.dependencies import ecosystems, package_registry
from anvil.dependencies.ecosystems import Dependency, DirectPackages, LockedPackages, PackageArchive, Registry, Release
from anvil.dependencies.package_names import is_name, is_version, normalized
from anvil.dependencies.project_urls import ProjectUrls, of_python
from anvil.errors import FetchError, NotFound
from anvil.formats import data_formats
from anvil.formats.data_formats import value_at
from anvil.http.allowed_servers import host_of
from anvil.http.client import HttpClient

_package = functools.partial(Dependency, "pypi")

# _REQUIREMENT: NAME[EXTRAS] and the rest of the line. _PIN: a rest such as "== VERSION", with a marker, a comment or
# hashes behind it. A version with an asterisk does not pin one.
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]\n]*\])?\s*(.*)")
_PIN = re.compile(r"===?\s*([^\s,;*]+)\s*(?:[;#\\].*|--hash.*)?")


# --- lockfiles ------------------------------------------------------------------------------------------


def _uv(text: str) -> LockedPackages:
    packages: list[Dependency] = []
    projects: dict[str, DirectPackages] = {}
    for row in _rows(data_formats.read_toml(text), "package"):
        source = row.get("source")
        kinds = set(source) if isinstance(source, dict) else set()
        if isinstance(source, dict) and kinds & {"editable", "virtual", "directory"}:  # the project, or a member
            packages.append(_package(_name(row), None))
            direct = projects.setdefault(posixpath.normpath(str(next(iter(source.values())))), {})
            groups = _values(row.get("optional-dependencies")) + _values(row.get("dev-dependencies"))
            for names in [row.get("dependencies"), *groups]:
                for entry in names if isinstance(names, list) else ():
                    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                        version = entry.get("version")  # written if the lockfile has several versions
                        direct.setdefault(entry["name"], set()).update([version] if isinstance(version, str) else ())
        else:
            packages.append(_locked_package(row))
    return packages, projects


def _tables(key: str, text: str) -> LockedPackages:
    """A lockfile with a list of tables ``key``, which does not mark direct packages."""
    return [_locked_package(row) for row in _rows(data_formats.read_toml(text), key)], {}


_pylock = functools.partial(_tables, "packages")
"""The reader of ``pylock.toml`` (PEP 751)."""


def _locked_package(row: Mapping[str, Any]) -> Dependency:
    source = row.get("source")
    kinds = {*row, *source, str(source.get("type"))} if isinstance(source, dict) else {*row}
    return _package(_name(row), None if kinds & {"directory", "file", "path", "git", "vcs"} else row.get("version"))


def _requirements(text: str) -> LockedPackages:
    """A file with lines such as ``name==1.2``, with extras, markers and hashes."""
    packages: list[Dependency] = []
    direct: DirectPackages = {}
    is_export = re.search(r"\s# via\b", text)  # by pip-compile or uv: most of its packages are not direct
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        match = _REQUIREMENT.fullmatch(line.partition(" #")[0])
        pin = _PIN.fullmatch(match[2].strip()) if match else None
        pin = pin if pin and is_version(pin[1]) else None  # it may be a name in a template, or not valid
        if match and (pin or match[2][:1] in ("", *"<>=!~;")):  # other lines are addresses
            packages += [_package(match[1], pin[1])] if pin else []
            direct |= {} if is_export else {match[1]: set()}
    return packages, {".": direct}


def _read_pyproject(text: str) -> Iterator[Dependency]:
    """The packages that a project names, also in extras and in groups such as that for development."""
    project = data_formats.read_toml(text)
    extras = _values(value_at(project, "project", "optional-dependencies"))
    lists = [value_at(project, "project", "dependencies"), *extras, *_values(project.get("dependency-groups"))]
    for requirement in (line for listed in lists if isinstance(listed, list) for line in listed):
        match = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
        if match:
            yield _package(match[1], None)
    poetry = value_at(project, "tool", "poetry")
    for group in [poetry, *_values(value_at(poetry, "group"))]:
        for names in (value_at(group, "dependencies"), value_at(group, "dev-dependencies")):
            yield from (_package(name, None) for name in (names if isinstance(names, dict) else ()) if name != "python")


PROJECT_FILES: Mapping[str, Callable[[str], Iterable[Dependency]]] = {
    "pyproject.toml": _read_pyproject,
    # also without pins, so it is no lockfile then
    "requirements.txt": lambda text: (_package(name, None) for name in _requirements(text)[1]["."]),
}


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


LOCKFILES: Mapping[str, Callable[[str], LockedPackages]] = {
    "uv.lock": _uv,
    "poetry.lock": functools.partial(_tables, "package"),
    "pdm.lock": functools.partial(_tables, "package"),
    "pylock.toml": _pylock,
    "pylock.*.toml": _pylock,
    "requirements*.txt": _requirements,
}


# --- the index of packages ------------------------------------------------------------------------------

MAX_METADATA_CHARS = 5_000_000
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    """A version of a package in an index with the simple API (PEP 503 and 691). The metadata of a wheel is requested
    alone if the index offers that (PEP 658). Raises :class:`NotFound` if the index does not have the version."""
    page = urllib.parse.urljoin(registry.url, f"{name}/")
    text, kind, final_url = package_registry.get(http, page, f"package {name}", _ACCEPT)
    files = list(_files_in_json(text, final_url) if "json" in kind else _files_in_html(text, final_url))
    if not files:  # it may be a page to log in
        raise NotFound(f"{host_of(final_url)} lists no file of {name}. Check that it is a package index.")
    wheels, wanted = [], canonicalize_version(version)
    has_version = False
    for file in files:
        if file.name.endswith(".whl"):
            try:
                _, wheel_version, _, tags = parse_wheel_filename(file.name)
            except InvalidWheelFilename:
                continue
            if canonicalize_version(wheel_version) == wanted:  # a wheel for all platforms is best, then the smallest
                is_for_all = any(tag.platform == "any" for tag in tags)
                wheels.append((not is_for_all, file.size or 0, file.name, file))
        elif file.name.endswith((".tar.gz", ".zip")) and f"-{version}." in file.name:
            has_version = True
    if not wheels and not has_version:
        raise NotFound(f"{host_of(final_url)} has no version {version} of {name}.")
    if not wheels:
        return Release(ProjectUrls(), None)
    *_, wheel = min(wheels, key=lambda row: row[:3])
    if not wheel.has_metadata:
        return Release(None, wheel)
    text, _, _ = package_registry.get(http, f"{wheel.url}.metadata", f"metadata of {wheel.name}", "*/*")
    return Release(urls_of(text), wheel)


def urls_of(metadata: str) -> ProjectUrls:
    """The addresses of a project, from the text of its core metadata."""
    message = email.parser.HeaderParser().parsestr(metadata[:MAX_METADATA_CHARS])
    labelled = [tuple(map(str.strip, str(line).partition(",")[::2])) for line in message.get_all("Project-URL") or ()]
    labelled += [("home", str(line)) for line in message.get_all("Home-page") or ()]
    labelled += [("download", str(line)) for line in message.get_all("Download-URL") or ()]
    return of_python((label, address) for label, address in labelled)


def _files_in_json(text: str, page_url: str) -> Iterator[PackageArchive]:
    files = package_registry.object_of(text, page_url).get("files")
    for row in files if isinstance(files, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("url"), str) or not isinstance(row.get("filename"), str):
            raise FetchError(f"{host_of(page_url)} sent a list of files with errors.")
        sha256, size = value_at(row, "hashes", "sha256"), row.get("size")
        yield PackageArchive(
            url=urllib.parse.urljoin(page_url, row["url"]),
            name=row["filename"],
            digest=f"sha256:{sha256}" if isinstance(sha256, str) else None,
            size=size if type(size) is int else None,
            has_metadata=bool(row.get("core-metadata") or row.get("dist-info-metadata")),
        )


def _files_in_html(text: str, page_url: str) -> Iterator[PackageArchive]:
    from anvil.sites import html_tree  # late: nearly all indexes have JSON

    try:
        page = html_tree.parse(text)
    except html_tree.Unreadable as error:
        raise FetchError(f"{host_of(page_url)} sent a page that is not read: {error}.") from None
    for link in html_tree.select(page, "a"):
        address, _, fragment = urllib.parse.urljoin(page_url, link.attributes.get("href") or "").partition("#")
        digest = fragment.replace("=", ":", 1) if fragment.startswith("sha256=") else None
        has_metadata = "data-core-metadata" in link.attributes or "data-dist-info-metadata" in link.attributes
        yield PackageArchive(address, link.text().strip(), digest, has_metadata=has_metadata)


# --- a virtual environment ------------------------------------------------------------------------------


class PythonEnvironment:
    """The packages in a virtual environment, read from their metadata. No code of the environment is run."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._sites = [*folder.glob("lib/py*3*/site-packages"), *folder.glob("Lib/site-packages")]

    def unlocked(self, named: Collection[str], locked: Collection[str]) -> list[Dependency]:
        """Packages that the project names and no lockfile has; without a lockfile all that are installed."""
        packages = {package for package in map(self._dependency, self._distributions()) if package is not None}
        return [
            package
            for package in sorted(packages)
            if package.name not in locked and (package.name in named or not locked)
        ]

    def find(self, name: str, version: str) -> tuple[ProjectUrls, dict[str, Path]] | None:
        """The addresses of a package at this version, and its files: path in the environment -> absolute path."""
        for distribution in self._distributions(name):
            dependency = self._dependency(distribution)
            if dependency is not None and (dependency.name, dependency.version) == (name, version):
                text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
                files = {
                    path.as_posix(): Path(str(distribution.locate_file(path)))
                    for path in distribution.files or ()
                    if not path.is_absolute() and ".." not in path.parts  # those are scripts, or the list is forged
                }
                return urls_of(text), files
        return None

    def _distributions(self, name: str | None = None) -> Iterator[Any]:
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        context = DistributionFinder.Context(name=name, path=[str(site) for site in self._sites])
        yield from MetadataPathFinder.find_distributions(context)

    def _dependency(self, distribution: Any) -> Dependency | None:
        metadata = distribution.metadata
        name: Any = metadata.get("Name") if metadata is not None else None
        version: Any = metadata.get("Version") if metadata is not None else None
        if not is_name("pypi", name) or not is_version(version):
            return None  # the installation is damaged, and pip does not list the package either
        return _package(normalized("pypi", name), version, False, self._folder.name)


def installed(base: Path) -> PythonEnvironment | None:
    """The environment of a project: ``.venv`` or ``venv`` in its folder or above it, else the one that is activated."""
    activated = os.environ.get("VIRTUAL_ENV")
    folders = [folder / name for folder in ecosystems.project_folders(base) for name in (".venv", "venv")]
    folders += [Path(activated)] if activated else []
    folder = next((folder for folder in folders if (folder / "pyvenv.cfg").is_file()), None)
    return PythonEnvironment(folder) if folder else None
