"""An npm package in a registry, and installed in ``node_modules``. Nothing of it is run."""

from __future__ import annotations

import base64
import binascii
import os
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anvil.dependencies.package_names import is_version
from anvil.dependencies.package_registry import PackageArchive, Registry, Release, get, object_of
from anvil.dependencies.project_urls import ProjectUrls, of_npm
from anvil.errors import FetchError, NotFound
from anvil.formats.json_values import json_object
from anvil.http.client import HttpClient
from anvil.system import safe_files

MAX_PACKAGE_JSON_BYTES = 2_000_000
MAX_FILES = 100_000


def release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    """A version in the registry. Raises :class:`NotFound` when the registry does not have it."""
    page = f"{registry.url}{urllib.parse.quote(name, safe='@')}"
    what, accept = f"{name} {version}", "application/json"
    try:
        text, _, place = get(http, f"{page}/{urllib.parse.quote(version, safe='')}", what, accept)
        package = object_of(text, place)
    except NotFound:  # some registries have the whole document only
        text, _, place = get(http, page, what, accept)
        versions = object_of(text, place).get("versions")
        found = versions.get(version) if isinstance(versions, dict) else None
        if not isinstance(found, dict):
            raise NotFound(f"{urllib.parse.urlsplit(place).netloc} has no version {version} of {name}.") from None
        package = found
    dist = package.get("dist")
    tarball = dist.get("tarball") if isinstance(dist, dict) else None
    if not isinstance(dist, dict) or not isinstance(tarball, str):
        raise FetchError(f"{urllib.parse.urlsplit(place).netloc} names no archive of {name} {version}.")
    url = urllib.parse.urljoin(place, tarball)
    return Release(of_npm(package), PackageArchive(url, url.rpartition("/")[2], _digest(dist)))


def _digest(dist: Mapping[str, Any]) -> str | None:
    """The strongest digest that the registry has, as ``sha512:<hex>``."""
    integrity = dist.get("integrity")
    for part in integrity.split() if isinstance(integrity, str) else ():
        kind, _, encoded = part.partition("-")
        if kind in ("sha512", "sha384", "sha256"):
            try:
                return f"{kind}:{base64.b64decode(encoded, validate=True).hex()}"
            except binascii.Error:
                continue
    return f"sha1:{dist['shasum']}" if isinstance(dist.get("shasum"), str) else None


def installed(base: Path, name: str, version: str) -> tuple[ProjectUrls, dict[str, Path]] | None:
    """The addresses and files of the package in the project's ``node_modules``; None when it has another version."""
    folder = _folder(base, name)
    package = _package_json(folder)
    if package is None or (package.get("name"), package.get("version")) != (name, version):
        return None
    files: dict[str, Path] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each != "node_modules"]
        for each in names:
            path = Path(place, each)
            files[path.relative_to(folder).as_posix()] = path
        if len(files) > MAX_FILES:
            break
    return of_npm(package), files


def installed_version(base: Path, name: str) -> str | None:
    """The version of the package in the project's ``node_modules``; None where it is not there."""
    package = _package_json(_folder(base, name)) or {}
    version: object = package.get("version")
    is_there = package.get("name") == name and is_version(version)
    return str(version) if is_there else None


def _folder(base: Path, name: str) -> Path:
    return base.joinpath("node_modules", *name.split("/"))


def _package_json(folder: Path) -> dict[str, Any] | None:
    try:
        return json_object(safe_files.text(folder / "package.json", MAX_PACKAGE_JSON_BYTES))
    except (OSError, ValueError):  # not UTF-8
        return None
