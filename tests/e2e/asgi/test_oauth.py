"""The server as an OAuth resource server, behind a real small identity provider on loopback."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.requests import Request

import anvil
from anvil.asgi import AnvilApplication
from anvil.errors import ConfigError, FetchError
from anvil.server import oauth as provider_door
from anvil.server.oauth import OAuthSettings
from tests.conftest import PAGES, write
from tests.support import identity_provider
from tests.support.identity_provider import Provider

BASE = "http://127.0.0.1:8000"
RESOURCE = f"{BASE}/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("oauth")
    with anvil.open(write(place / "docs", PAGES), place / "index.db", "none") as opened:
        opened.index()
    return place / "index.db"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider.running() as running:
        yield running


def variables(index: Path, provider: Provider, **more: str) -> dict[str, str]:
    oauth = {"ANVIL_OAUTH_ISSUER": provider.issuer, "ANVIL_OAUTH_RESOURCE": RESOURCE, "ANVIL_OAUTH_SCOPES": "docs:read"}
    return {"ANVIL_INDEX": str(index), **oauth, **more}


def searched(environment: dict[str, str], *tokens: str | None) -> list[Any]:
    """The responses to a search with each token."""

    async def run() -> list[Any]:
        application = AnvilApplication(environment)
        try:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url=BASE) as client:
                return [
                    await client.get(
                        "/search?query=alert&mode=keyword",
                        headers={"Authorization": f"Bearer {token}"} if token is not None else {},
                    )
                    for token in tokens
                ]
        finally:
            await application.stop()

    return asyncio.run(run())


def test_a_client_finds_its_way_from_the_refusal_to_an_answer(index: Path, provider: Provider) -> None:
    async def run() -> Any:
        application = AnvilApplication(variables(index, provider))
        try:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url=BASE) as client:
                refused = await client.get("/search?query=alert")
                challenge = refused.headers["www-authenticate"]
                assert refused.status_code == 401
                assert f'resource_metadata="{BASE}{METADATA}"' in challenge and 'scope="docs:read"' in challenge
                metadata = (await client.get(METADATA)).json()
                assert metadata == (await client.get("/.well-known/oauth-protected-resource")).json()
                assert metadata["resource"] == RESOURCE and metadata["scopes_supported"] == ["docs:read"]
            (issuer,) = metadata["authorization_servers"]
            async with httpx2.AsyncClient() as client:
                about = (await client.get(f"{issuer}/.well-known/openid-configuration")).json()
                form = {"grant_type": "client_credentials", "resource": metadata["resource"], "scope": "docs:read"}
                granted = await client.post(about["token_endpoint"], data=form, auth=("agent", "agent-secret"))
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url=BASE) as client:
                bearer = {"Authorization": f"Bearer {granted.json()['access_token']}"}
                return await client.get("/search?query=alert&mode=keyword", headers=bearer)
        finally:
            await application.stop()

    found = asyncio.run(run())
    assert found.status_code == 200 and found.json()["results"]
    assert found.headers["cache-control"].startswith("private")


def test_only_tokens_for_this_server_are_accepted(index: Path, provider: Provider) -> None:
    other_key = rsa.generate_private_key(65537, 2048)
    public = provider.public_keys()["keys"][0]["n"]
    now = time.time()
    refused = {
        "for another server": provider.token("https://other.example.org/mcp", "docs:read"),
        "expired": provider.token(RESOURCE, "docs:read", exp=now - 300),
        "without an end": provider.token(RESOURCE, "docs:read", exp=None),
        "not valid yet": provider.token(RESOURCE, "docs:read", nbf=now + 300),
        "of another issuer": provider.token(RESOURCE, "docs:read", iss="https://evil.example.org"),
        "without an audience": provider.token(RESOURCE, "docs:read", aud=None),
        "signed by another key": provider.token(RESOURCE, "docs:read", key=other_key),
        "signed by an unknown key": provider.token(RESOURCE, "docs:read", key=other_key, key_id="unknown"),
        "signed by the public key as a secret": jwt.encode({"iss": provider.issuer, "aud": RESOURCE}, public, "HS256"),
        "not signed": jwt.encode({"iss": provider.issuer, "aud": RESOURCE, "exp": now + 300}, "", "none"),
        "no token at all": "s3cret",
        "nested deeply": f"{_part(b'[' * 6000 + b']' * 6000)}.e30.AA",
        "with an extension that must be understood": _with_header(provider, crit=["exp"], exp=1),
        "with a list as the key's name": _part(b'{"alg": "RS256", "kid": ["a"]}') + ".e30.AA",
        "with a very long key's name": provider.token(RESOURCE, "docs:read", key_id="k" * 9_000),
        "with an endless end": provider.token(RESOURCE, "docs:read", exp=float("inf")),
        "too long": "a" * 20_000,
    }
    for name, response in zip(refused, searched(variables(index, provider), *refused.values()), strict=True):
        assert response.status_code == 401, name
        assert 'error="invalid_token"' in response.headers["www-authenticate"], name
        assert refused[name] not in response.text
    assert provider.requests.count("/keys") == 1  # invented keys cause no requests


def _part(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _with_header(provider: Provider, **header: Any) -> str:
    """A token that is right in all but its header."""
    key_id, key = next(iter(provider.keys.items()))
    claims = {"iss": provider.issuer, "aud": RESOURCE, "exp": time.time() + 300, "scope": "docs:read"}
    return jwt.encode(claims, key, "RS256", headers={"kid": key_id, **header})


@pytest.mark.parametrize("scope", [5, {"docs:read": 1}, None, True])
def test_a_scope_that_is_no_text_grants_nothing(index: Path, provider: Provider, scope: Any) -> None:
    (response,) = searched(variables(index, provider), provider.token(RESOURCE, scope=None, scp=scope))
    assert response.status_code == 403


@pytest.mark.parametrize(
    "keys",
    [
        {"keys": [{"kty": "RSA", "alg": "none", "n": "AQAB", "e": "AQAB"}]},
        {"keys": [{"kty": "RSA", "alg": {}, "n": 5, "e": []}] * 20_000},
        {"keys": [{"kty": "RSA", "n": "f" * 700_001, "e": "AQAB"}]},
        {"keys": [{"kty": "EC", "crv": [], "x": None}, {"kty": "OKP", "crv": "X", "x": "A"}]},
        {"keys": {"kty": "RSA"}},
        {"keys": ["k" * 1_100_000]},
        [[]],
    ],
)
def test_keys_that_are_none_are_a_fault_of_the_provider(
    index: Path, provider: Provider, keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = provider.token(RESOURCE, "docs:read")
    monkeypatch.setattr(provider, "public_keys", lambda: keys)
    began = time.process_time()
    (response,) = searched(variables(index, provider), token)
    assert response.status_code == 503 and time.process_time() - began < 4


def test_a_provider_that_hangs_holds_up_nobody_whose_key_is_known(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if more tokens name invented keys than there are threads."""
    monkeypatch.setattr(provider_door, "MIN_REQUEST_GAP_S", -1.0)
    monkeypatch.setattr(provider_door, "FETCH_TIMEOUT_S", 1.5)
    known, invented = provider.token(RESOURCE, "docs:read"), provider.token(RESOURCE, key_id="invented")
    ended = threading.Event()

    async def main() -> tuple[float, set[int]]:
        guard = provider_door.TokenGuard(provider_door.OAuthSettings((provider.issuer,), RESOURCE))

        def refusal(token: str) -> Any:
            return guard.refusal({"headers": [(b"authorization", b"Bearer " + token.encode())]})

        assert await refusal(known) is None
        monkeypatch.setattr(provider, "answer", lambda *_: (404 if ended.wait(20) else 500, {}))
        waiting = [asyncio.ensure_future(refusal(invented)) for _ in range(50)]
        await asyncio.sleep(0.2)
        began = time.monotonic()
        assert await refusal(known) is None
        waited_s = time.monotonic() - began
        ended.set()
        return waited_s, {refused.status for refused in await asyncio.gather(*waiting)}

    waited_s, statuses = asyncio.run(main())
    assert waited_s < 0.7 and statuses == {401}


def test_all_who_wait_for_a_provider_that_hangs_learn_it_at_once(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_door, "FETCH_TIMEOUT_S", 1.0)
    ended = threading.Event()
    monkeypatch.setattr(provider, "answer", lambda *_: (404 if ended.wait(20) else 500, {}))
    door = provider_door.IdentityProvider(provider.issuer)
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(door.claims, provider.token(RESOURCE), (RESOURCE,)) for _ in range(6)]
        try:
            for each in waiting:
                with pytest.raises(FetchError):
                    each.result(20)
            assert time.monotonic() - began < 4  # one after the other took six times as long
        finally:
            ended.set()


def test_a_token_without_the_scope_is_told_which(index: Path, provider: Provider) -> None:
    lacking, as_list, trailing = searched(
        variables(index, provider),
        provider.token(RESOURCE, "other"),
        provider.token(RESOURCE, scope=None, scp=["docs:read"]),
        provider.token(f"{RESOURCE}/", "docs:read other"),
    )
    assert lacking.status_code == 403
    assert 'error="insufficient_scope"' in lacking.headers["www-authenticate"]
    assert 'scope="docs:read"' in lacking.headers["www-authenticate"]
    assert as_list.status_code == trailing.status_code == 200


def test_tokens_of_several_providers_are_accepted_each_with_its_own_keys(index: Path, provider: Provider) -> None:
    with identity_provider.running() as second:
        second.rotate("another", "EC")
        both = variables(index, provider, ANVIL_OAUTH_ISSUER=f"{provider.issuer} {second.issuer}")
        stolen = second.token(RESOURCE, "docs:read", iss=provider.issuer)
        tokens = provider.token(RESOURCE, "docs:read"), second.token(RESOURCE, "docs:read"), stolen
        assert [response.status_code for response in searched(both, *tokens)] == [200, 200, 401]
    answer = asyncio.run(OAuthSettings((provider.issuer, second.issuer), RESOURCE).metadata(Request({"type": "http"})))
    assert json.loads(bytes(answer.body))["authorization_servers"] == [provider.issuer, second.issuer]


def test_the_bearer_token_works_besides(index: Path, provider: Provider) -> None:
    own, other = searched(
        variables(index, provider, ANVIL_TOKEN="s3cret"), "s3cret", provider.token(RESOURCE, "docs:read")
    )
    assert own.status_code == other.status_code == 200


def test_keys_are_fetched_again_when_they_change(
    index: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_door, "MIN_REQUEST_GAP_S", -1.0)
    door = provider_door.IdentityProvider(provider.issuer)
    assert door.claims(provider.token(RESOURCE), (RESOURCE,))["sub"] == "agent"
    provider.rotate("second", "EC")
    assert door.claims(provider.token(RESOURCE), (RESOURCE,))["sub"] == "agent"
    assert provider.requests.count("/keys") == 2


def test_a_provider_that_cannot_be_reached_is_no_fault_of_the_client(index: Path) -> None:
    with identity_provider.running() as gone:
        token = gone.token(RESOURCE, "docs:read")
    (response,) = searched(variables(index, gone), token)
    assert response.status_code == 503 and "identity provider" in response.json()["error"]


def test_an_issuer_that_is_spelled_otherwise_is_named_in_the_log(
    index: Path, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """The issuers of Auth0 have a final slash."""
    token = provider.token(RESOURCE, "docs:read")
    (response,) = searched(variables(index, provider, ANVIL_OAUTH_ISSUER=f"{provider.issuer}/"), token)
    assert response.status_code == 503 and "the log of this server says why" in response.json()["error"]
    assert f"Check --oauth-issuer. It names {provider.issuer!r}: the two must" in caplog.text


@pytest.mark.parametrize(
    ("issuer", "resource", "scopes", "message"),
    [
        ("https://id.example.org", "", (), "both the issuer and the resource"),
        ("", "", ("docs",), "both the issuer and the resource"),
        ("http://id.example.org", "https://x.org/mcp", (), "not a plain https address"),
        ("https://me:secret@id.example.org", "https://x.org/mcp", (), "issuer 'https://id.example.org' is not a plain"),
        ("https://id.example.org", "https://\u6587.org/mcp", (), "not a plain https address"),
        ("https://id.example.org", "https://x.org/mcp#a", (), "not a plain https address"),
        ("https://me:secret@id.example.org", "https://x.org/mcp", (), "issuer 'https://id.example.org' is not a plain"),
        ("https://id.example.org", "https://\u6587.org/mcp", (), "not a plain https address"),
        ("https://id.example.org", "https://x.org/mcp", ('a"b',), "a character that is not allowed"),
    ],
)
def test_wrong_settings_are_named(issuer: str, resource: str, scopes: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OAuthSettings((issuer,) if issuer else (), resource, scopes)
    assert OAuthSettings().metadata_paths == ()
