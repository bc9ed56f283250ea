"""The settings that clients of one process share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme

from anvil.errors import FetchError, Unreachable
from anvil.http import client
from anvil.http.allowed_servers import DependencyPolicy
from tests.support.index_server import Answer, serving


def test_the_trusted_certificates_are_read_once_for_all_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, read = httpx2.create_ssl_context, []

    def counted(**options: Any) -> Any:
        read.append(options)
        return create(**options)

    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    for name in ("one.pem", "other.pem"):
        trustme.CA().cert_pem.write_to_path(str(tmp_path / name))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        for _ in range(2):
            with client.HttpClient(client.Limits()):
                pass
    assert read == [{"trust_env": True}] * 2


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_certificates_that_cannot_be_read_are_named_by_their_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(
        FetchError, match=r"SSL_CERT_FILE.* cannot be read from .*ca\.pem \(.+\)\. Correct the variable"
    ):
        client.HttpClient(client.Limits())


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("socks5://reader:secret@127.0.0.1:9", "is a SOCKS proxy. Run 'pip install socksio' to use it."),
        ("ftp://reader:secret@127.0.0.1:9", "is not the address of a proxy. Correct it."),
    ],
)
def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str, problem: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # as if it were not installed
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(FetchError) as caught:
        client.HttpClient(client.Limits())
    assert str(caught.value).endswith(problem) and "secret" not in str(caught.value)


@pytest.mark.parametrize("variable", ["https_proxy", "all_proxy"])
def test_a_host_that_a_proxy_does_not_reach_is_named_with_the_proxy(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://reader:secret@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.2")
    with client.HttpClient(client.Limits()) as http:
        with pytest.raises(Unreachable) as caught, http.get("https://docs.example.org/"):
            pass
        message = str(caught.value)
        assert message.startswith("docs.example.org cannot be reached through the proxy 127.0.0.1:9 (")
        assert message.endswith(" Check HTTPS_PROXY, NO_PROXY and the network.") and "secret" not in message
        with pytest.raises(Unreachable) as caught, http.get("https://127.0.0.2:9/"):
            pass
        assert "proxy" not in str(caught.value)


def test_five_redirects_are_followed() -> None:
    with serving() as server, client.HttpClient(client.Limits(), policy=DependencyPolicy(allow_private=True)) as http:
        for number in range(6):
            server.answers[f"/{number}"] = Answer(status=302, headers={"Location": f"/{number + 1}"})
        server.answers["/6"] = Answer(b"text")
        with http.get(f"{server.url}/1") as reply:
            assert reply.text() == "text"
        with pytest.raises(FetchError, match="redirect"), http.get(f"{server.url}/0"):
            pass


def test_a_body_has_as_many_bytes_as_are_allowed() -> None:
    with serving() as server, client.HttpClient(client.Limits(), policy=DependencyPolicy(allow_private=True)) as http:
        server.answers["/"] = Answer(b"12345")
        with http.get(f"{server.url}/") as reply:
            assert reply.body(5) == b"12345"
        with http.get(f"{server.url}/") as reply, pytest.raises(FetchError):
            reply.body(4)


def test_the_message_of_an_error_with_an_address_is_not_shown() -> None:
    assert client.reason(OSError("[Errno 111] Connection refused.")) == "Connection refused"
    assert client.reason(ValueError("https://reader:secret@a.example is not valid")) == "ValueError"
