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
