"""A Python package in an index with the simple API (PEP 503, 691, 658), and installed in an environment.

The metadata of a wheel is requested alone where the index has it. Nothing is imported or run.
"""

from __future__ import annotations

import email.parser
import os
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anvil.dependencies import package_archive
from anvil.dependencies.package_names import is_name, is_version, normalized
from anvil.dependencies.package_registry import PackageArchive, Registry, Release, get, object_of
from anvil.dependencies.project_urls import ProjectUrls, of_python
from anvil.dependencies.values import Dependency
from anvil.errors import FetchError, NotFound
from anvil.http.client import HttpClient

MAX_METADATA_CHARS = 5_000_000
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_WHEEL = re.compile(r"([^-]+)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-([^-]+)\.whl")


def release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    """A version in the index. Raises :class:`NotFound` when the index does not have it."""
    page = urllib.parse.urljoin(registry.url, f"{name}/")
    text, kind, place = get(http, page, f"package {name}", _ACCEPT)
    files = list(_of_json(text, place) if "json" in kind else _of_html(text, place))
    if not files:  # such as the page of a login
        raise NotFound(
            f"{urllib.parse.urlsplit(place).netloc} lists no file of {name}. Check that it is a package index."
        )
    wheels = []
    has_version = False
    for file, has_metadata in files:
        match = _WHEEL.fullmatch(file.name)
        sdist = file.name.endswith((".tar.gz", ".zip")) and f"-{version}." in file.name
        if match and _same(match[2], version):
            wheels.append((match[5] != "any", file.size or 0, file.name, file, has_metadata))
        has_version = has_version or sdist or bool(wheels)
    if not has_version:
        raise NotFound(f"{urllib.parse.urlsplit(place).netloc} has no version {version} of {name}.")
    if not wheels:
        return Release(ProjectUrls(), None)
    _, _, _, wheel, has_metadata = min(wheels, key=lambda each: each[:3])
    if not has_metadata:
        return Release(None, wheel)
    text, _, _ = get(http, f"{wheel.url}.metadata", f"metadata of {wheel.name}", "*/*")
    return Release(urls_of(text), wheel)


def urls_in_wheel(path: Path, name: str) -> ProjectUrls:
    """The addresses in the ``METADATA`` of a wheel. Raises :class:`ArtifactRejected`."""
    wanted = [member for member in package_archive.members(path, name) if _METADATA.fullmatch(member)]
    texts = package_archive.read(path, name, wanted, MAX_METADATA_CHARS).values()
    return urls_of("".join(text.decode("utf-8", "replace") for text in texts))


def urls_of(metadata: str) -> ProjectUrls:
    """The addresses in a ``METADATA`` file."""
    message = email.parser.HeaderParser().parsestr(metadata[:MAX_METADATA_CHARS])
    labelled = [tuple(map(str.strip, str(line).partition(",")[::2])) for line in message.get_all("Project-URL") or ()]
    labelled += [("home", str(line)) for line in message.get_all("Home-page") or ()]
    labelled += [("download", str(line)) for line in message.get_all("Download-URL") or ()]
    return of_python((label, address) for label, address in labelled)


def _of_json(text: str, place: str) -> Iterator[tuple[PackageArchive, bool]]:
    files = object_of(text, place).get("files")
    for row in files if isinstance(files, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("url"), str) or not isinstance(row.get("filename"), str):
            raise FetchError(f"{urllib.parse.urlsplit(place).netloc} sent a list of files with errors.")
        hashes, size = row.get("hashes"), row.get("size")
        sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
        file = PackageArchive(
            url=urllib.parse.urljoin(place, row["url"]),
            name=row["filename"],
            digest=f"sha256:{sha256}" if isinstance(sha256, str) else None,
            size=size if type(size) is int else None,
        )
        yield file, bool(row.get("core-metadata") or row.get("dist-info-metadata"))


def _of_html(text: str, place: str) -> Iterator[tuple[PackageArchive, bool]]:
    from anvil.sites import html_tree  # few indexes have no JSON

    try:
        page = html_tree.parse(text)
    except html_tree.Unreadable as error:
        raise FetchError(f"{urllib.parse.urlsplit(place).netloc} sent a page that is not read: {error}.") from None
    for link in html_tree.select(page, "a"):
        address, _, fragment = urllib.parse.urljoin(place, link.attributes.get("href") or "").partition("#")
        digest = fragment.replace("=", ":", 1) if fragment.startswith("sha256=") else None
        has_metadata = "data-core-metadata" in link.attributes or "data-dist-info-metadata" in link.attributes
        yield PackageArchive(address, link.text().strip(), digest), has_metadata


def _same(written: str, version: str) -> bool:
    """Whether the version in a file name is this one: ``1.0_rc1`` and ``1.0.0`` for ``1.0`` are not told apart."""
    return re.sub(r"[-_.]+", ".", written).lower() == re.sub(r"[-_.]+", ".", version).lower()


# --- installed -------------------------------------------------------------------------------------------------------


class PythonEnvironment:
    """The packages in a virtual environment, read from their metadata. No code of the environment is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sites = [*folder.glob("lib/python3*/site-packages"), *folder.glob("Lib/site-packages")]

    @classmethod
    def of_project(cls, base: Path) -> PythonEnvironment | None:
        """The environment of a project: ``.venv`` or ``venv`` in its folder, else the one that is activated."""
        activated = os.environ.get("VIRTUAL_ENV")
        folders = [base / ".venv", base / "venv", *([Path(activated)] if activated else [])]
        folder = next((each for each in folders if (each / "pyvenv.cfg").is_file()), None)
        return cls(folder) if folder else None

    def packages(self) -> list[Dependency]:
        """All packages, sorted."""
        found = {each for each in map(self._dependency, self._distributions()) if each is not None}
        return sorted(found)

    def find(self, name: str, version: str) -> tuple[ProjectUrls, dict[str, Path]] | None:
        """The addresses and files of a package at this version. The files: path in the environment -> absolute."""
        for distribution in self._distributions(name):
            dependency = self._dependency(distribution)
            if dependency is not None and (dependency.name, dependency.version) == (name, version):
                text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
                files = {
                    path.as_posix(): Path(str(distribution.locate_file(path)))
                    for path in distribution.files or ()
                    if not path.is_absolute() and ".." not in path.parts  # scripts, or a forged list
                }
                return urls_of(text), files
        return None

    def _distributions(self, name: str | None = None) -> Iterator[Any]:
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        context = DistributionFinder.Context(name=name, path=[str(site) for site in self._sites])
        yield from MetadataPathFinder.find_distributions(context)

    def _dependency(self, distribution: Any) -> Dependency | None:
        metadata = distribution.metadata
        name: Any = metadata["Name"] if metadata is not None else None
        version: Any = metadata["Version"] if metadata is not None else None
        if not is_name("pypi", name) or not is_version(version):
            return None  # a damaged installation, which pip does not list either
        return Dependency("pypi", normalized("pypi", name), version, False, self.folder.name)
