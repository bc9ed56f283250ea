"""The registries of packages, and packages that are installed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from anvil.dependencies import package_registry
from anvil.dependencies.package_registry import Registry
from anvil.dependencies.settings import DepsOptions
from anvil.errors import ConfigError, FetchError, NotFound
from anvil.http.client import HttpClient
from tests.support.dependency_servers import publish_npm, publish_wheel, tarball, wheel
from tests.support.index_server import Answer, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def http() -> Iterator[HttpClient]:
    with HttpClient(package_registry.LIMITS) as http:
        yield http


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in package_registry.VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def test_the_environment_names_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    assert package_registry.registries(DepsOptions())["pypi"] == Registry("https://pypi.org/simple/", True)
    monkeypatch.setenv("PIP_INDEX_URL", "https://reader:pass%40word@pypi.corp:8443/root/simple")
    ours = package_registry.registries(DepsOptions())["pypi"]
    assert (ours.url, ours.is_trusted) == ("https://pypi.corp:8443/root/simple/", True)
    assert ours.authorization == {"https://pypi.corp:8443": "Basic cmVhZGVyOnBhc3NAd29yZA=="}
    assert "word" not in repr(ours)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://first.corp/simple")
    assert package_registry.registries(DepsOptions())["pypi"].url == "https://first.corp/simple/"
    assert package_registry.registries(DepsOptions(npm_url="https://n.corp/npm"))["npm"] == Registry(
        "https://n.corp/npm/", False
    )
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://n.corp/")
    with pytest.raises(ConfigError, match="NPM_CONFIG_REGISTRY must be an https address"):
        package_registry.registries(DepsOptions())


def test_a_registry_of_a_checkout_must_be_public(server: Server) -> None:
    options = DepsOptions(pypi_url=f"{server.url}/simple/")
    policy = package_registry.policy(options, package_registry.registries(options))
    with pytest.raises(FetchError, match="this machine, which a package may not name"):
        policy.check(f"{server.url}/simple/lib/")


@pytest.mark.parametrize("html", [False, True])
def test_a_version_in_the_index(server: Server, http: HttpClient, html: bool) -> None:
    urls = {"Source": "https://github.com/acme/lib", "Documentation": "https://lib.dev/"}
    data = wheel("lib", "1.0", urls=urls)
    publish_wheel(server, "lib", "1.0", data, html)
    ours = Registry(f"{server.url}/simple/", True)
    release = package_registry.release("pypi", http, ours, "lib", "1.0")
    assert release.urls is not None
    assert (release.urls.repository, release.urls.documentation) == (
        "https://github.com/acme/lib",
        ("https://lib.dev/",),
    )
    assert release.archive is not None and release.archive.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    with pytest.raises(NotFound, match=r"has no version 2\.0 of lib"):
        package_registry.release("pypi", http, ours, "lib", "2.0")
    with pytest.raises(NotFound, match="has no package other"):
        package_registry.release("pypi", http, ours, "other", "1.0")


def test_the_wheel_for_any_system_is_taken(server: Server, http: HttpClient) -> None:
    names = [
        "lib-1.0-cp311-cp311-win_amd64.whl",
        "lib-1.0-py3-none-any.whl",
        "lib-1.0.1-py3-none-any.whl",
        "lib-1.0.tar.gz",
    ]
    files = [{"filename": name, "url": f"{server.url}/{name}", "size": 5} for name in names]
    body = json.dumps({"files": files}).encode()
    server.answers["/lib/"] = Answer(body, headers={"Content-Type": "application/vnd.pypi.simple.v1+json"})
    release = package_registry.release("pypi", http, Registry(f"{server.url}/", True), "lib", "1.0")
    assert release.archive is not None and release.archive.name == "lib-1.0-py3-none-any.whl"


@pytest.mark.parametrize("body", ["[]", "{", '{"files": [1]}', '{"files": [{"url": 1}]}', "[" * 100_000])
def test_an_index_that_sends_nonsense(server: Server, http: HttpClient, body: str) -> None:
    server.answers["/lib/"] = Answer(body.encode(), headers={"Content-Type": "application/json"})
    with pytest.raises(FetchError):
        package_registry.release("pypi", http, Registry(f"{server.url}/", True), "lib", "1.0")


def test_an_index_page_whose_tags_are_too_deep(server: Server, http: HttpClient) -> None:
    server.answers["/lib/"] = Answer(b"<div>" * 30_000, headers={"Content-Type": "text/html"})
    with pytest.raises(FetchError, match="sent a page that is not read: its HTML has more than"):
        package_registry.release("pypi", http, Registry(f"{server.url}/", True), "lib", "1.0")


def test_a_version_in_the_registry(server: Server, http: HttpClient) -> None:
    package = {"name": "@acme/ui", "version": "1.0.0", "repository": "acme/ui"}
    data = tarball(package)
    publish_npm(server, package, data)
    release = package_registry.release("npm", http, Registry(f"{server.url}/npm/", True), "@acme/ui", "1.0.0")
    assert release.urls is not None and release.urls.repository == "https://github.com/acme/ui"
    assert release.archive is not None
    assert release.archive.digest == f"sha512:{hashlib.sha512(data).hexdigest()}"
    whole = {"versions": {"1.0.0": {"dist": {"tarball": f"{server.url}/x.tgz", "shasum": "ab"}}}}
    server.json("/npm/whole", whole)  # as registries answer that have no address for a version
    whole_release = package_registry.release("npm", http, Registry(f"{server.url}/npm/", True), "whole", "1.0.0")
    assert whole_release.archive is not None and whole_release.archive.digest == "sha1:ab"
    with pytest.raises(NotFound, match=r"no version 2\.0\.0 of whole"):
        package_registry.release("npm", http, Registry(f"{server.url}/npm/", True), "whole", "2.0.0")
    server.json("/npm/bad/1.0.0", {"dist": {"tarball": 1}})
    with pytest.raises(FetchError, match="names no archive"):
        package_registry.release("npm", http, Registry(f"{server.url}/npm/", True), "bad", "1.0.0")
