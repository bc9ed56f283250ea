"""Values of a bundle: its files and what was done with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

POINTER = "AGENTS.md"
PAGES = "docs"
INDEX = "docs.anvil.db"
MANIFEST = "docs/anvil-bundle.json"


class BundledProject(NamedTuple):
    """The project of a documentation. ``install``: the name by which ``anvil deps add`` finds its package; None where
    it is no package of a language that Anvil knows."""

    name: str
    version: str | None = None
    install: str | None = None


class BundledFile(NamedTuple):
    """A file of a bundle in its manifest. ``path``: POSIX, from the bundle's folder; ``size`` in bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is to be written. ``files``: path from the bundle's folder -> content; ``pages``: how many of them are
    pages. ``notes``: sentences on what is not as in the documentation."""

    project: BundledProject
    files: Mapping[str, bytes]
    pages: int
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))


@dataclass(frozen=True, slots=True)
class Written:
    """What was done in the folder: paths from it. ``kept``: path -> the reason why it was not written or removed."""

    written: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle. ``size``: bytes of all files; ``too_large``: what could be left out, where it is over the limit and
    nothing was written."""

    out: str
    name: str
    version: str | None
    pages: int
    size: int
    index_size: int
    written: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    kept: Mapping[str, str]
    notes: tuple[str, ...]
    too_large: tuple[str, ...] = ()
