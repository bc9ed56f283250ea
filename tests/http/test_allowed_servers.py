"""Which servers packages may name, and where git may fetch from."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from anvil.dependencies import remote_repository
from anvil.errors import ConfigError, FetchError, Unreachable
from anvil.http.allowed_servers import DependencyPolicy, DocumentPolicy
from anvil.http.client import HttpClient, Limits
from tests.support.index_server import Answer, Server, serving

NAMES = {"public.example": "93.184.216.34", "corp.example": "10.1.2.3", "metadata.example": "169.254.169.254"}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server with a public host and two private ones, and no proxy."""

    def look_up(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        if host not in NAMES:
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (NAMES[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.undo()
    with serving() as server:
        yield server


def test_a_name_is_resolved_once_and_must_be_public() -> None:
    policy = DependencyPolicy()
    assert policy.resolve("public.example", 443, 5) == "93.184.216.34"
    for host in ("corp.example", "metadata.example"):
        with pytest.raises(FetchError, match="is in a private network, which a package may not name"):
            policy.resolve(host, 443, 5)
    with pytest.raises(Unreachable, match=r"There is no host nowhere\.example"):
        policy.resolve("nowhere.example", 443, 5)


def test_all_addresses_of_a_name_must_be_public(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("93.184.216.34", "10.1.2.3")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(FetchError, match="is in a private network"):
        DependencyPolicy().resolve("mixed.example", 443, 5)


def test_a_host_that_the_user_named_may_be_anywhere() -> None:
    assert DependencyPolicy(["corp.example"]).resolve("corp.example", 443, 5) is None
    assert DependencyPolicy(["corp.example:8443"]).resolve("corp.example", 8443, 5) is None
    with pytest.raises(FetchError):
        DependencyPolicy(["corp.example:8443"]).resolve("corp.example", 443, 5)
    assert DependencyPolicy(allow_private=True).resolve("corp.example", 443, 5) is None
    DependencyPolicy(["127.0.0.1:8443"]).check("https://127.0.0.1:8443/")
    with pytest.raises(FetchError):
        DependencyPolicy(["127.0.0.1:8443"]).check("https://127.0.0.1/")


def test_a_proxy_judges_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.corp:3128")
    assert DependencyPolicy().resolve("corp.example", 443, 5) is None


@pytest.mark.parametrize(
    "url", ["http://public.example/", "ftp://public.example/", "https://127.0.0.1/", "https://localhost/"]
)
def test_addresses_that_are_not_asked(url: str) -> None:
    with pytest.raises(FetchError):
        DependencyPolicy().check(url)


def test_the_address_of_a_document_is_shown_without_its_query() -> None:
    with pytest.raises(ConfigError, match=r"^https://site\.example:0/a is not an http or https URL"):
        DocumentPolicy(lambda address: True).check("https://site.example:0/a?token=secret")


def test_redirects_are_judged_too() -> None:
    policy = DependencyPolicy()
    assert (
        policy.redirect("https://public.example/", "https://corp.example/") == "https://corp.example/"
    )  # resolved next
    for target in ("http://public.example/", "https://127.0.0.1/"):
        with pytest.raises(FetchError):
            policy.redirect("https://public.example/", target)


def test_git_connects_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_repository, "_redirect_target", lambda url, policy: url)
    address, protocols, settings = remote_repository.checked("https://public.example/o/r", DependencyPolicy(), False)
    assert (address, protocols) == ("https://public.example/o/r", ("https",))
    assert settings == {"http.curloptResolve": "public.example:443:93.184.216.34"}
    with pytest.raises(FetchError, match="private network"):
        remote_repository.checked("https://corp.example/o/r", DependencyPolicy(), False)
    assert remote_repository.checked("ssh://git@public.example/o/r", DependencyPolicy(), False)[1] == ("ssh",)
    with pytest.raises(FetchError, match="private network"):
        remote_repository.checked("ssh://git@corp.example/o/r", DependencyPolicy(), False)


@pytest.mark.parametrize("url", ["file:///x", "ext::sh -c id", "git://public.example/r", "/etc", "https://[::1/"])
def test_other_schemes_are_not_fetched(url: str) -> None:
    with pytest.raises(FetchError):
        remote_repository.checked(url, DependencyPolicy(), False)


def test_a_repository_that_moved(server: Server) -> None:
    refs = "info/refs?service=git-upload-pack"
    server.answers[f"/old/{refs}"] = Answer(status=301, headers={"Location": f"/new/{refs}"})
    server.answers[f"/new/{refs}"] = Answer(b"001e# service=git-upload-pack\n")
    policy = DependencyPolicy(allow_private=True)
    assert remote_repository.checked(f"{server.url}/old", policy, False)[0] == f"{server.url}/new"
    with HttpClient(Limits(), policy=DependencyPolicy()) as http, pytest.raises(FetchError, match="this machine"):
        http.get(f"{server.url}/new").__enter__()
