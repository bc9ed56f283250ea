"""The registry of npm and the index of Python packages: their addresses, and what they say about one version.

A host that the user's environment names is trusted to be anywhere. A host from a configuration file, which comes with a
checkout, must be public, like those that packages name.
"""

from __future__ import annotations

import base64
import binascii
import email.parser
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anvil.dependencies.project_urls import ProjectUrls, of_npm, of_python
from anvil.dependencies.settings import DepsOptions
from anvil.dependencies.values import Ecosystem
from anvil.errors import ConfigError, FetchError, NotFound, Unreachable
from anvil.formats.data_formats import json_object
from anvil.http.allowed_servers import DependencyPolicy, host_of
from anvil.http.client import HttpClient, Limits, origin
from anvil.settings import index_url
from anvil.settings.layers import variable

VARIABLES: Mapping[Ecosystem, tuple[str, ...]] = {
    "pypi": (variable("deps.pypi_url"), "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"),
    "npm": (variable("deps.npm_url"), "NPM_CONFIG_REGISTRY", "npm_config_registry"),
}
"""The environment variables that name a registry; the first that is set counts."""
LIMITS = Limits(answer=20, whole=120, small=64_000_000)
"""For metadata. The list of the files of a package with thousands of releases has 30 MB."""


@dataclass(frozen=True, slots=True)
class Registry:
    """``url`` ends in a slash and has no credentials. ``authorization``: for its origin."""

    url: str
    is_trusted: bool
    authorization: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class PackageArchive:
    """A wheel or an npm tarball. ``digest``: what the registry says of its bytes, such as ``sha256:...``; None when it
    says nothing."""

    url: str
    name: str
    digest: str | None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a package. ``urls``: None where only the wheel names them. ``archive``: None for a Python package
    without a wheel."""

    urls: ProjectUrls | None
    archive: PackageArchive | None


def release(ecosystem: Ecosystem, http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    """A version of a package. Raises :class:`NotFound` when the registry does not have it."""
    return (_npm_release if ecosystem == "npm" else _pypi_release)(http, registry, name, version)


def registries(options: DepsOptions) -> dict[Ecosystem, Registry]:
    """The registry of each ecosystem. Raises :class:`ConfigError` for an address that cannot be used."""
    defaults = DepsOptions()
    return {
        "npm": _registry("npm", options.npm_url, options.npm_url == defaults.npm_url),
        "pypi": _registry("pypi", options.pypi_url, options.pypi_url == defaults.pypi_url),
    }


def _registry(ecosystem: Ecosystem, configured: str, is_default: bool) -> Registry:
    name = next((name for name in VARIABLES[ecosystem] if os.environ.get(name)), None)
    url = (os.environ[name] if name else configured).strip()
    if not index_url.is_allowed(url):
        raise ConfigError(f"{name or f'deps.{ecosystem}_url'} must be an https address, such as https://HOST/PATH/.")
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    bare = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/") + "/", "", ""))
    authorization = {}
    if parts.username:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        authorization = {origin(bare): f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"}
    return Registry(bare, name is not None or is_default, authorization)


def policy(options: DepsOptions, registries: Mapping[Ecosystem, Registry]) -> DependencyPolicy:
    """The policy for all requests of ``anvil deps``."""
    trusted = [host_of(registry.url) for registry in registries.values() if registry.is_trusted]
    return DependencyPolicy(trusted, options.allow_private_urls)


def get(http: HttpClient, url: str, what: str, accept: str) -> tuple[str, str, str]:
    """(text, content type, address after redirects) at ``url``. ``what``: its name in errors.

    Raises :class:`NotFound` when the registry has none.
    """
    with http.get(url, {"Accept": accept}) as reply:
        if reply.status in (404, 410):
            raise NotFound(f"{reply.host} has no {what}.")
        if reply.status in (401, 403):
            raise FetchError(f"{reply.host} does not show {what} (status {reply.status}). Check the credentials.")
        if reply.status == 429:
            seconds = reply.headers.get("retry-after", "")
            when = f"in {seconds} s" if re.fullmatch(r"\d{1,5}", seconds) else "later"
            raise Unreachable(f"{reply.host} limits the number of requests. Try again {when}.")
        if reply.status != 200:
            raise FetchError(f"{reply.host} answered with status {reply.status} when asked for {what}.")
        return reply.text(), reply.headers.get("content-type", ""), reply.url


def object_of(text: str, place: str) -> dict[str, Any]:
    """An object from a registry. Raises :class:`FetchError` for anything else."""
    value = json_object(text)
    if value is None:
        raise FetchError(f"{host_of(place)} sent something else than a JSON object.")
    return value


def _npm_release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    page = f"{registry.url}{urllib.parse.quote(name, safe='@')}"
    what, accept = f"{name} {version}", "application/json"
    try:
        text, _, final_url = get(http, f"{page}/{urllib.parse.quote(version, safe='')}", what, accept)
        package = object_of(text, final_url)
    except NotFound:  # some registries have the whole document only
        text, _, final_url = get(http, page, what, accept)
        versions = object_of(text, final_url).get("versions")
        entry = versions.get(version) if isinstance(versions, dict) else None
        if not isinstance(entry, dict):
            raise NotFound(f"{urllib.parse.urlsplit(final_url).netloc} has no version {version} of {name}.") from None
        package = entry
    dist = package.get("dist")
    tarball = dist.get("tarball") if isinstance(dist, dict) else None
    if not isinstance(dist, dict) or not isinstance(tarball, str):
        raise FetchError(f"{urllib.parse.urlsplit(final_url).netloc} names no archive of {name} {version}.")
    url = urllib.parse.urljoin(final_url, tarball)
    return Release(of_npm(package), PackageArchive(url, url.rpartition("/")[2], _npm_digest(dist)))


def _npm_digest(dist: Mapping[str, Any]) -> str | None:
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


MAX_METADATA_CHARS = 5_000_000
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
# NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl; "any" is the platform of a wheel for all
_WHEEL = re.compile(r"([^-]+)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-([^-]+)\.whl")


def _pypi_release(http: HttpClient, registry: Registry, name: str, version: str) -> Release:
    """From an index with the simple API (PEP 503, 691, 658). The metadata of a wheel is requested alone if it can."""
    page = urllib.parse.urljoin(registry.url, f"{name}/")
    text, kind, final_url = get(http, page, f"package {name}", _ACCEPT)
    files = list(_of_json(text, final_url) if "json" in kind else _of_html(text, final_url))
    if not files:  # such as the page of a login
        raise NotFound(
            f"{urllib.parse.urlsplit(final_url).netloc} lists no file of {name}. Check that it is a package index."
        )
    wheels = []
    has_version = False
    for file, has_metadata in files:
        match = _WHEEL.fullmatch(file.name)
        sdist = file.name.endswith((".tar.gz", ".zip")) and f"-{version}." in file.name
        if match and _same(match[2], version):  # one for all platforms comes first, then the smallest
            wheels.append((match[5] != "any", file.size or 0, file.name, file, has_metadata))
        has_version = has_version or sdist or bool(wheels)
    if not has_version:
        raise NotFound(f"{urllib.parse.urlsplit(final_url).netloc} has no version {version} of {name}.")
    if not wheels:
        return Release(ProjectUrls(), None)
    _, _, _, wheel, has_metadata = min(wheels, key=lambda each: each[:3])
    if not has_metadata:
        return Release(None, wheel)
    text, _, _ = get(http, f"{wheel.url}.metadata", f"metadata of {wheel.name}", "*/*")
    return Release(urls_of(text), wheel)


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
    """Whether the version in a file name is this one. File names have ``_`` for ``-``, so the signs between numbers are
    not told apart."""
    return re.sub(r"[-_.]+", ".", written).lower() == re.sub(r"[-_.]+", ".", version).lower()
