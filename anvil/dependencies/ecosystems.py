"""Ecosystems of packages: how each names its packages and its registry, and what its module gives: the readers of its
lockfiles, its registry, and its packages that are installed.

One more ecosystem is a module with the names of :class:`PackageEcosystem`, its entry in :data:`ECOSYSTEMS`, and the key
of its registry in :mod:`anvil.dependencies.settings`. One more fact about a package is a field of :class:`Dependency`,
which the readers of lockfiles fill.
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
    """How an ecosystem names packages and its registry, and the place of the rest of it."""

    shown: str
    """One of its packages, in messages."""
    name: re.Pattern[str]
    """The names of its packages."""
    folds_names: bool
    """Whether neither case nor the signs ``-_.`` tell names apart."""
    pin: str
    """What its tools write between a name and a version."""
    variables: tuple[str, ...]
    """The environment variables of its tools that name the registry; the first that is set counts."""
    module: str
    """See :class:`PackageEcosystem`."""


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
    """A package that the project uses. ``version``: None when nothing locks it. ``direct``: whether the project names
    it itself. ``origin``: the file that says so."""

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
        """As a list shows it."""
        return f"{self.name} {self.version or '(no version)'}"


DirectPackages = dict[str, set[str]]
"""Name of a package that the project itself names -> the versions that it gets; empty if the lockfile does not say."""
LockedPackages = tuple[list[Dependency], dict[str, DirectPackages]]
"""The packages of a lockfile, not checked yet, and the direct ones of each project of its workspace, by its path from
the file's folder; ``.`` is that folder. A package without a version is in the project itself, or at an address, such as
one of git, so no registry has it. No project: the file does not tell."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry of packages. ``url`` ends in a slash and has no credentials. ``authorization``: for its origin."""

    url: str
    is_trusted: bool
    authorization: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class PackageArchive:
    """A wheel or an npm tarball. ``digest``: what the registry says of its bytes, such as ``sha256:...``; None when it
    says nothing. ``has_metadata``: whether a wheel's metadata can be requested alone."""

    url: str
    name: str
    digest: str | None
    size: int | None = None
    has_metadata: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package. ``urls``: None where only the wheel names them. ``archive``: None for a Python package
    without a wheel."""

    urls: ProjectUrls | None
    archive: PackageArchive | None


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
    """The module of an ecosystem: one that is imported only where it is needed."""

    @property
    def PROJECT_FILES(self) -> Mapping[str, Callable[[str], Iterable[Dependency]]]:
        """Name of a file in which a project names its dependencies -> the reader of its text, not checked yet, which
        raises as those of lockfiles do. All that a project has are read."""

    @property
    def LOCKFILES(self) -> Mapping[str, Callable[[str], LockedPackages]]:
        """Name of a lockfile, or a pattern as of :mod:`fnmatch` -> the reader of its text, which raises ValueError and
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
