"""Entries of ``anvil.lock``, hints of the user, and reports of ``anvil deps`` with the places that were tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from anvil.dependencies.ecosystems import Dependency, Ecosystem

DocsSource = Literal["package", "release", "repository", "site"]
"""Sources of documentation: the package itself, a release of its repository, the repository at a tag, and the site. An
index of a repository is built here."""
DOCS_SOURCES: tuple[DocsSource, ...] = get_args(DocsSource)

Outcome = Literal["added", "current", "fetched", "updated", "removed", "failed"]


@dataclass(frozen=True, slots=True)
class LockedDocs:
    """The documentation of one package at one version: an entry of ``anvil.lock``.

    ``url``: the repository, the site, the release or the package's archive. ``tag``, ``commit`` and ``folder``: of the
    repository. ``digest`` and ``sha256``: of the index. ``anvil_version``: the version that built the index here; None
    if its publisher built it. ``attested_by``: the repository that built a published index, if that is proven.
    ``named``: which of ``--repository``, ``--tag`` and ``--folder`` the user gave.
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
        """The identity of an entry, which is also its order in the file."""
        return self.ecosystem, self.name, self.version

    @property
    def shown(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class DocsHints:
    """The user's options on where the documentation of a package is. None: Anvil finds it."""

    repository: str | None = None
    tag: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One place where documentation was searched. ``outcome``: a sentence on what is there."""

    source: str
    place: str
    outcome: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class DocsReport:
    """The outcome of a command for the documentation of one dependency.

    ``attempts``: the places that were tried, in order. ``notes``: warnings, such as on pages that were left out.
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
    """A report on the documentation of a package. ``more``: further fields of the report."""
    return DocsReport(outcome, package.name, package.version, package.ecosystem, **more)
