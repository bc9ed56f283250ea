"""The keys of an identity provider, by which tokens are checked."""

from __future__ import annotations

import time

import pytest

from anvil.server import oauth
from tests.support import identity_provider

RESOURCE = "https://docs.example/mcp"


def test_a_key_that_the_provider_withdrew_is_refused_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.monotonic
    with identity_provider.running() as provider:
        keys = oauth.IdentityProvider(provider.issuer)
        token = provider.token(RESOURCE)
        assert keys.claims(token, (RESOURCE,))["sub"] == "agent"
        provider.rotate("second", "EC")
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 590)
        assert keys.claims(token, (RESOURCE,))["sub"] == "agent"
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 601)
        with pytest.raises(oauth.InvalidToken, match="a key that the identity provider does not have"):
            keys.claims(token, (RESOURCE,))


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([], ""),
        ([b"Bearer abc"], "abc"),
        ([b"bearer  abc "], "abc"),
        ([b"Basic abc"], ""),
        ([b"Bearer abc", b"Bearer abc"], ""),  # a proxy may check another one than the server does
    ],
)
def test_a_request_has_one_token(headers: list[bytes], token: str) -> None:
    scope = {"type": "http", "headers": [(b"host", b"a"), *((b"Authorization", value) for value in headers)]}
    assert oauth.bearer_token(scope) == token
