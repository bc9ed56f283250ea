"""Packages of npm: the registry, and ``node_modules``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from anvil.dependencies import npm_ecosystem
from anvil.dependencies.ecosystems import Dependency, Registry
from anvil.errors import FetchError, NotFound
from anvil.http.client import HttpClient
from tests.support.dependency_servers import publish_npm, tarball
from tests.support.index_server import Server


def test_a_version_in_the_registry(server: Server, http: HttpClient) -> None:
    package = {"name": "@acme/ui", "version": "1.0.0", "repository": "acme/ui"}
    data = tarball(package)
    publish_npm(server, package, data)
    release = npm_ecosystem.release(http, Registry(f"{server.url}/npm/", True), "@acme/ui", "1.0.0")
    assert release.urls is not None and release.urls.repository == "https://github.com/acme/ui"
    assert release.archive is not None
    assert release.archive.digest == f"sha512:{hashlib.sha512(data).hexdigest()}"
    whole = {"versions": {"1.0.0": {"dist": {"tarball": f"{server.url}/x.tgz", "shasum": "ab"}}}}
    server.json("/npm/whole", whole)  # as registries answer that have no address for a version
    whole_release = npm_ecosystem.release(http, Registry(f"{server.url}/npm/", True), "whole", "1.0.0")
    assert whole_release.archive is not None and whole_release.archive.digest == "sha1:ab"
    with pytest.raises(NotFound, match=r"no version 2\.0\.0 of whole"):
        npm_ecosystem.release(http, Registry(f"{server.url}/npm/", True), "whole", "2.0.0")
    server.json("/npm/bad/1.0.0", {"dist": {"tarball": 1}})
    with pytest.raises(FetchError, match="names no archive"):
        npm_ecosystem.release(http, Registry(f"{server.url}/npm/", True), "bad", "1.0.0")


def test_node_modules(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules/@acme/ui"
    (folder / "docs").mkdir(parents=True)
    (folder / "node_modules/inner/docs").mkdir(parents=True)
    package: dict[str, Any] = {"name": "@acme/ui", "version": "1.0.0", "homepage": "https://ui.dev"}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "docs/a.md").touch()
    (folder / "node_modules/inner/docs/b.md").touch()
    found = npm_ecosystem.installed(tmp_path).find("@acme/ui", "1.0.0")
    assert found is not None and set(found[1]) == {"package.json", "docs/a.md"}
    assert npm_ecosystem.installed(tmp_path).find("@acme/ui", "2.0.0") is None
    (folder / "package.json").write_text("[" * 100_000)
    assert npm_ecosystem.installed(tmp_path).find("@acme/ui", "1.0.0") is None


def test_versions_in_node_modules_count_where_no_lockfile_has_them(tmp_path: Path) -> None:
    for name, version in (("ms", "2.1.3"), ("debug", "4.4.3"), ("once", "not a version")):
        folder = tmp_path / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))
    unlocked = npm_ecosystem.installed(tmp_path).unlocked({"ms", "debug", "once", "missing"}, {"debug"})
    assert unlocked == [Dependency("npm", "ms", "2.1.3", True, "node_modules")]
