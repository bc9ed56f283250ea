"""Dependencies of a project, the ecosystems of packages, and what ``anvil.lock`` says of documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

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
    """See :mod:`anvil.dependencies.ecosystems`."""


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
DirectPackages = dict[str, set[str]]
"""Name of a package that the project itself names -> the versions that it gets; empty if the lockfile does not say."""
ELSEWHERE = object()
"""In place of a version: the package is at an address, such as one of git, and in no registry."""
NamedPackages = tuple[list[tuple[str, object]], dict[str, DirectPackages]]
"""What a lockfile names, not checked yet: (name, version) of each package, and the direct ones of each project of its
workspace, by its path from the file's folder; ``.`` is that folder. The version is None for what is in the project
itself. No project: the file does not tell."""
DocsSource = Literal["package", "release", "repository", "site"]
"""Where documentation comes from: the package itself, a release asset, the repository at a tag (built here), or the
documentation site."""
DOCS_SOURCES: tuple[DocsSource, ...] = get_args(DocsSource)

Outcome = Literal["added", "current", "fetched", "updated", "removed", "failed"]


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """A package that the project uses. ``version``: None when nothing locks it. ``direct``: whether the project names
    it itself. ``origin``: the file that says so. ``elsewhere``: it is locked at an address, such as one of git, so no
    registry has it."""

    ecosystem: Ecosystem
    name: str
    version: str | None
    direct: bool = False
    origin: str = ""
    elsewhere: bool = False

    @property
    def shown(self) -> str:
        return f"{self.name} {self.version}" if self.version else self.name


@dataclass(frozen=True, slots=True)
class LockedDocs:
    """The documentation of one package at one version: an entry of ``anvil.lock``.

    ``url``: the repository, the site, the release or the package's archive. ``tag``, ``commit`` and ``folder``: of the
    repository. ``digest`` and ``sha256``: of the index. ``anvil_version``: the version that built the index here; None
    for an index of its publisher. ``attested_by``: the repository that built that index, where it is proven. ``named``:
    what the user said with ``--repository``, ``--tag`` and ``--folder``.
    """

    ecosystem: Ecosystem
    name: str
    version: str
    source: DocsSource
    url: str
    digest: str
    sha256: str
    tag: str | None = None
    commit: str | None = None
    folder: str | None = None
    anvil_version: str | None = None
    attested_by: str | None = None
    named: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies an entry, and its order in the file."""
        return self.ecosystem, self.name, self.version

    @property
    def shown(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class DocsHints:
    """What the user said about where the documentation of a package is; None for what is to be found."""

    repository: str | None = None
    tag: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One place where documentation was searched, and what was there."""

    source: str
    place: str
    outcome: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class DocsReport:
    """What a command did about the documentation of one dependency.

    ``attempts``: the places that were tried, in order. ``notes``: what was not understood or is worth knowing.
    """

    outcome: Outcome
    name: str
    version: str | None
    ecosystem: Ecosystem
    docs: LockedDocs | None = None
    pages: int | None = None
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = field(default=None, metadata={"optional": True})


def report_on(outcome: Outcome, package: Dependency | LockedDocs, **more: Any) -> DocsReport:
    """A report on the documentation of a package. ``more``: further fields of it."""
    return DocsReport(outcome, package.name, package.version, package.ecosystem, **more)
