"""Ecosystems of packages, npm and PyPI: their names, registries and modules, and the values that these modules return.

To add an ecosystem, write a module with the names of :class:`PackageEcosystem`, an entry in :data:`ECOSYSTEMS`, and the
key of its registry in :mod:`anvil.dependencies.settings`. To add a fact about a package, add a field to
:class:`Dependency`, which the readers of lockfiles fill.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from anvil import registry as places
from anvil.dependencies.project_urls import ProjectUrls

if TYPE_CHECKING:
    from anvil.http.client import HttpClient

Ecosystem = Literal["npm", "pypi"]


class EcosystemEntry(NamedTuple):
    """How an ecosystem writes names and versions, and where its registry and its code are."""

    shown: str
    """One of its packages, in messages."""
    name: re.Pattern[str]
    """The pattern of a package's name."""
    folds_names: bool
    """Whether names that differ only in case or in ``-``, ``_`` and ``.`` are the same."""
    pin: str
    """The sign between name and version, such as ``==``."""
    variables: tuple[str, ...]
    """The environment variables of its tools that name the registry; the first that is set counts."""
    module: str
    """The name of its module, a :class:`PackageEcosystem`."""


ECOSYSTEMS: Mapping[Ecosystem, EcosystemEntry] = {
    "npm": EcosystemEntry(
        "an npm package",
        re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~-][a-z0-9._~-]{0,213}", re.IGNORECASE),
        False,
        "@",
        ("NPM_CONFIG_REGISTRY", "npm_config_registry"),
        "anvil.dependencies.npm_ecosystem",
    ),
    "pypi": EcosystemEntry(
        "a Python package",
        re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?"),
        True,
        "==",
        ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"),
        "anvil.dependencies.python_ecosystem",
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """A package that the project uses. ``version``: None if nothing locks it. ``direct``: whether the project itself
    names it. ``origin``: the name of the file or folder that it comes from."""

    ecosystem: Ecosystem
    name: str
    version: str | None
    direct: bool = False
    origin: str = ""

    @property
    def shown(self) -> str:
        return f"{self.name} {self.version}" if self.version else self.name

    @property
    def listed(self) -> str:
        return f"{self.name} {self.version or '(no version)'}"


DirectPackages = dict[str, set[str]]
"""Name of a package that the project itself names -> its locked versions; none if the lockfile does not say which."""
LockedPackages = tuple[list[Dependency], dict[str, DirectPackages]]
"""(packages, direct packages of each project) of a lockfile, not checked yet.

A package that no registry has, because it is part of the project or at an address such as one of git, has no version.
The projects are those of the workspace, by their paths from the folder of the file, where ``.`` is this folder. There
are none if the lockfile does not tell direct packages from others.
"""


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry of packages. ``url`` ends in a slash and has no credentials. ``is_trusted``: whether it may be on a
    private network. ``authorization``: origin -> value of the Authorization header."""

    url: str
    is_trusted: bool
    authorization: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class PackageArchive:
    """A wheel or an npm tarball. ``digest``: of its bytes, from the registry, such as ``sha256:...``; None if the
    registry has none. ``size`` in bytes. ``has_metadata``: whether a wheel's metadata can be requested alone."""

    url: str
    name: str
    digest: str | None
    size: int | None = None
    has_metadata: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package. ``urls``: None if only the wheel itself has them. ``archive``: None for a Python
    package without a wheel."""

    urls: ProjectUrls | None
    archive: PackageArchive | None


class InstalledPackages(Protocol):
    """The packages that are installed in a project."""

    @property
    def place(self) -> str:
        """The folder of the installation, for messages."""

    def find(self, name: str, version: str) -> tuple[ProjectUrls, Mapping[str, Path]] | None:
        """The addresses of a package, and its files by path in it; None if it is not installed at this version."""

    def unlocked(self, named: Collection[str], locked: Collection[str]) -> list[Dependency]:
        """The installed packages that the project uses without locking them. ``named``: names in the project's own
        files; ``locked``: names in its lockfiles."""


class PackageEcosystem(Protocol):
    """The module of an ecosystem, which is imported when it is needed."""

    @property
    def PROJECT_FILES(self) -> Mapping[str, Callable[[str], Iterable[Dependency]]]:
        """Name of a file in which a project names its dependencies -> reader of its text. All such files of a project
        are read. A reader does not check names, and raises as those of lockfiles do."""

    @property
    def LOCKFILES(self) -> Mapping[str, Callable[[str], LockedPackages]]:
        """Name of a lockfile, or pattern for :mod:`fnmatch` -> reader of its text, which raises ValueError or
        RecursionError. The first row with files in the project counts, with all its files: other lockfiles are exports,
        or left over."""

    def installed(self, base: Path) -> InstalledPackages | None:
        """The packages that are installed in the project in ``base``; None if it has no place for them."""

    def release(self, http: HttpClient, registry: Registry, name: str, version: str) -> Release:
        """A version of a package. Raises :class:`NotFound` if the registry does not have it."""


def project_folders(base: Path) -> list[Path]:
    """The folder of a project, and those above it up to the root of its repository. A member of a workspace has its
    lockfile and its installation in the top folder of the workspace."""
    folders = [base, *base.parents]
    root = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def of(ecosystem: Ecosystem) -> PackageEcosystem:
    """The module of an ecosystem."""
    module: PackageEcosystem = places.load(ECOSYSTEMS[ecosystem].module)
    return module
