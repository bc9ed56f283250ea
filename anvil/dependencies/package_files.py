"""The metadata and the files of a package, installed here or from its registry, and the documentation among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anvil.dependencies import npm, package_archive, package_registry, pypi
from anvil.dependencies.attempts import AttemptLog
from anvil.dependencies.package_registry import PackageArchive
from anvil.dependencies.project_urls import ProjectUrls, github_slug
from anvil.dependencies.pypi import PythonEnvironment
from anvil.dependencies.settings import DepsOptions
from anvil.dependencies.values import Ecosystem, LockedDocs
from anvil.errors import AnvilError, FetchError, NotFound
from anvil.http.client import HttpClient, Limits
from anvil.system import safe_files
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
    return environment.find(name, version) if environment is not None else None


class Packages:
    """The packages of the project in ``base``."""

    def __init__(self, options: DepsOptions, base: Path, log: AttemptLog, progress: Progress) -> None:
        self._options = options
        self._base = base
        self._log = log
        self._progress = progress
        self._registries = package_registry.registries(options)
        self.policy = package_registry.policy(options, self._registries)
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
            with self._log.host(page), HttpClient(package_registry.LIMITS, ours.authorization, self.policy) as http:
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
        paths = sorted(package_archive.members(packed, name))
        return lambda wanted: package_archive.read(packed, name, wanted, MAX_INSTALLED_BYTES), paths

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
            package_archive.download(http, file, packed, max_bytes, self._progress)
        return packed


def _read_installed(files: Mapping[str, Path], wanted: Sequence[str]) -> dict[str, bytes]:
    """Files of an installed package. A link is not followed: it can lead anywhere."""
    data = {}
    for name in wanted:
        path = files[name]
        if path.is_symlink() or not path.is_file():
            raise NotFound(f"{name} is not a regular file")
        try:
            data[name] = safe_files.data(path, MAX_INSTALLED_BYTES)
        except OSError as error:
            raise NotFound(f"{name} cannot be read: {error.strerror}") from None
    return data


# --- documentation that a package carries: an index, or pages from which one is built -----------------------------

MAX_PAGES = 5000
_INDEX = re.compile(r"(?P<above>(?:[^/]+/)*?)(?:anvil/index\.db|[^/]*\.anvil\.db)")
_LLMS = re.compile(r"(?P<above>(?:[^/]+/)*?)llms-full\.txt", re.IGNORECASE)
_PAGE = re.compile(r"(?P<above>(?:[^/]+/)*?)(?:docs?|documentation)/.*\.(?:md|mdx|markdown)", re.IGNORECASE)
_MAX_ABOVE = 3
"""Folders above a folder of pages that no ``AGENTS.md`` is beside."""
_POINTER = re.compile(r"(?P<above>(?:[^/]+/)*)AGENTS\.md", re.IGNORECASE)
_NO_DOCUMENTATION = re.compile(r"(?:^|/)(?:node_modules|tests?|templates?|examples?)/", re.IGNORECASE)
_METADATA = re.compile(r"(?:^|/)[^/]*\.dist-info/", re.IGNORECASE)
"""The folder of a wheel's metadata, which also has licences. Pages in it count only beside an ``AGENTS.md``."""


@dataclass(frozen=True, slots=True)
class Carried:
    """``index``: the path of an index; ``pages``: paths of pages; ``llms``: the path of a ``llms-full.txt``. Of these
    the first that is there is used."""

    index: str | None
    pages: tuple[str, ...]
    llms: str | None


def carried_docs(paths: Collection[str]) -> Carried:
    """What the files of a package carry. Of several indexes the one nearest to the top counts.

    Pages are those in folders ``docs``. Where an ``AGENTS.md`` is beside such a folder, as publishers put it there for
    agents, only the pages of these folders count.
    """
    pointers = {match["above"].lower() for path in paths if (match := _POINTER.fullmatch(path))}

    def above(pattern: re.Pattern[str], path: str) -> str | None:
        """The folders above what is documentation; None where it is none. What is below may have any name."""
        match = pattern.fullmatch(path)
        if match is None or _NO_DOCUMENTATION.search(match["above"]):
            return None
        is_metadata = _METADATA.search(match["above"]) and match["above"].lower() not in pointers
        return None if is_metadata else match["above"]

    def nearest(pattern: re.Pattern[str]) -> str | None:
        fit = (path for path in paths if above(pattern, path) is not None)
        return min(fit, key=lambda path: (path.count("/"), path), default=None)

    folders = {path: folder.lower() for path in paths if (folder := above(_PAGE, path)) is not None}
    is_pointed = any(folder in pointers for folder in folders.values())
    pages = sorted(
        path
        for path, folder in folders.items()
        if (folder in pointers if is_pointed else folder.count("/") <= _MAX_ABOVE)
    )
    return Carried(index=nearest(_INDEX), pages=tuple(pages[:MAX_PAGES]), llms=nearest(_LLMS))


def llms_pages(text: str) -> list[tuple[str, str]]:
    """(name, text) of the pages in a ``llms-full.txt``: it is cut at its first-level headings outside of code."""
    pages: list[tuple[str, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
            fence = ""
        heading = None if fence else re.match(r"# +(\S.*)", line)
        if heading or not pages:
            pages.append((heading[1].strip() if heading else "", []))
        pages[-1][1].append(line)
    named: dict[str, str] = {}
    for title, lines in pages:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "page"
        name = slug
        for number in range(2, len(pages) + 2):
            if f"{name}.md" not in named:
                break
            name = f"{slug}-{number}"
        if "".join(lines).strip():
            named[f"{name}.md"] = "".join(lines)
    return sorted(named.items())
