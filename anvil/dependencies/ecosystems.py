"""What an ecosystem of packages gives: its lockfiles, its registry, and its packages that are installed.

One more ecosystem is a module with the names of :class:`PackageEcosystem`, its entry in ``ECOSYSTEMS`` of
:mod:`anvil.dependencies.values`, and the key of its registry in :mod:`anvil.dependencies.settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from anvil import registry as places
from anvil.dependencies.values import ECOSYSTEMS, Dependency, Ecosystem, NamedPackages

if TYPE_CHECKING:
    from anvil.dependencies.package_registry import Registry, Release
    from anvil.dependencies.project_urls import ProjectUrls
    from anvil.http.client import HttpClient


class InstalledPackages(Protocol):
    """The packages that are installed in a project."""

    @property
    def place(self) -> str:
        """Where they are, for people."""

    def find(self, name: str, version: str) -> tuple[ProjectUrls, Mapping[str, Path]] | None:
        """The addresses and files of a package; None where it is not installed at this version."""

    def unlocked(self, named: Collection[str], locked: Collection[str]) -> list[Dependency]:
        """The packages whose version only the installation tells. ``named``: by the project; ``locked``: by a
        lockfile."""


class PackageEcosystem(Protocol):
    """The module of an ecosystem."""

    @property
    def PROJECT_FILES(self) -> Mapping[str, Callable[[str], Iterable[str]]]:
        """Name of a file in which a project names its dependencies -> the reader of these names, not checked yet, which
        raises as those of lockfiles do. All that a project has are read."""

    @property
    def LOCKFILES(self) -> Mapping[str, Callable[[str], NamedPackages]]:
        """Name of a lockfile, or a pattern as of :mod:`fnmatch` -> its reader, which raises ValueError and
        RecursionError. The first that a project has is read, of a pattern all: others are exports, or left over."""

    def installed(self, base: Path) -> InstalledPackages | None:
        """What is installed in the project in ``base``; None where there is no place for it."""

    def release(self, http: HttpClient, registry: Registry, name: str, version: str) -> Release:
        """A version of a package. Raises :class:`NotFound` when the registry does not have it."""


def project_folders(base: Path) -> list[Path]:
    """The folder of a project, and those above it up to the root of its repository: a workspace has one lockfile and
    one installation for its members, at its top."""
    folders = [base, *base.parents]
    root = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def of(ecosystem: Ecosystem) -> PackageEcosystem:
    module: PackageEcosystem = places.load(ECOSYSTEMS[ecosystem].module)
    return module
