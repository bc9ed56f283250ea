"""The metadata and the files of a package: installed here at its version, else from its registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anvil.dependencies import archive, npm, pypi, registry
from anvil.dependencies.attempts import AttemptLog
from anvil.dependencies.project_urls import ProjectUrls, github_slug
from anvil.dependencies.pypi import PythonEnvironment
from anvil.dependencies.registry import PackageArchive
from anvil.dependencies.settings import DepsOptions
from anvil.dependencies.values import Ecosystem, LockedDocs
from anvil.errors import AnvilError, FetchError, NotFound
from anvil.http.client import HttpClient, Limits
from anvil.system import safe_read
from anvil.values import Progress

MAX_INSTALLED_BYTES = 200_000_000
"""Bytes of an index that an installed package carries."""

ReadFiles = Callable[[Sequence[str]], dict[str, bytes]]
"""The content of files by their paths in a package."""


@dataclass(frozen=True, slots=True)
class Package:
    """What is known of a package. ``page``: its address in the registry. ``files``: path in the package -> file, where
    it is installed. ``archive``: in the registry; None also where that has none."""

    urls: ProjectUrls
    page: str
    files: Mapping[str, Path] | None = None
    archive: PackageArchive | None = None

    @property
    def github(self) -> str | None:
        """The repository on GitHub, ``OWNER/REPO``."""
        return github_slug(self.urls.repository) if self.urls.repository is not None else None


def installed(
    base: Path, environment: PythonEnvironment | None, ecosystem: Ecosystem, name: str, version: str
) -> tuple[ProjectUrls, Mapping[str, Path]] | None:
    """The addresses and files of a package of a project; None where it is not installed at this version."""
    if ecosystem == "npm":
        return npm.installed(base, name, version)
    found = environment.find(name, version) if environment is not None else None
    return None if found is None else (found.urls, found.files)


class Packages:
    """The packages of the project in ``base``."""

    def __init__(self, options: DepsOptions, base: Path, log: AttemptLog, progress: Progress) -> None:
        self._options = options
        self._base = base
        self._log = log
        self._progress = progress
        self._registries = registry.registries(options)
        self.policy = registry.policy(options, self._registries)
        self._environment = PythonEnvironment.of_project(base)

    def find(self, docs: LockedDocs, folder: Path) -> Package | None:
        """The package at the version of ``docs``; None where there is none, which the log explains. ``folder``: for
        what is downloaded, as for :meth:`files`."""
        ours = self._registries[docs.ecosystem]
        page = f"{ours.url}{docs.name}"
        local = installed(self._base, self._environment, docs.ecosystem, docs.name, docs.version)
        if local is not None:
            place = "node_modules" if self._environment is None or docs.ecosystem == "npm" else self._environment.folder
            self._log.tried("metadata", str(place), "installed at this version", True)
            return Package(local[0], page, local[1])
        release = npm.release if docs.ecosystem == "npm" else pypi.release
        try:
            with self._log.host(page), HttpClient(registry.limits(), ours.authorization, self.policy) as http:
                found = release(http, ours, docs.name, docs.version)
        except (FetchError, NotFound) as error:
            self._log.failed("metadata", page, error)
            return None
        urls = found.urls
        if urls is None and found.archive is not None:  # an index without separate metadata files (PEP 658)
            try:
                urls = pypi.urls_in_wheel(self._downloaded(found.archive, folder), found.archive.name)
            except AnvilError as error:
                self._log.failed("metadata", page, error)
                return None
        self._log.tried("metadata", page, "in the registry", True)
        return Package(urls or ProjectUrls(), page, None, found.archive)

    def files(self, package: Package, folder: Path) -> tuple[ReadFiles, list[str]]:
        """A function that reads files of the package, and the paths of all. ``folder``: for what is downloaded, which
        is kept there."""
        if package.files is not None:
            files = package.files
            return lambda paths: _read_installed(files, paths), sorted(files)
        if package.archive is None:
            raise NotFound("the registry has no wheel of it")
        packed, name = self._downloaded(package.archive, folder), package.archive.name
        paths = sorted(archive.members(packed, name))
        return lambda wanted: archive.read(packed, name, wanted, MAX_INSTALLED_BYTES), paths

    def _downloaded(self, file: PackageArchive, folder: Path) -> Path:
        """The file of an archive, once for each folder."""
        packed, max_bytes = folder / "package", self._options.max_package_bytes
        if packed.exists():
            return packed
        if (file.size or 0) > max_bytes:
            raise NotFound(f"{file.name} has {file.size:,} bytes (deps.max_package_bytes)")
        authorization = {
            place: value for ours in self._registries.values() for place, value in ours.authorization.items()
        }
        with HttpClient(Limits(), authorization, self.policy) as http:
            archive.download(http, file, packed, max_bytes, self._progress)
        return packed


def _read_installed(files: Mapping[str, Path], wanted: Sequence[str]) -> dict[str, bytes]:
    """Files of an installed package. A link is not followed: it can lead anywhere."""
    data = {}
    for name in wanted:
        path = files[name]
        if path.is_symlink() or not path.is_file():
            raise NotFound(f"{name} is not a regular file")
        try:
            data[name] = safe_read.data(path, MAX_INSTALLED_BYTES)
        except OSError as error:
            raise NotFound(f"{name} cannot be read: {error.strerror}") from None
    return data
