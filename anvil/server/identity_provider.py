"""An OAuth identity provider: its metadata and signing keys, and the access tokens that it signed.

Keys come from the provider's ``jwks_uri`` (RFC 8414, OpenID Connect Discovery). Tokens are JSON Web Tokens (RFC 9068).
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from anvil.errors import AnvilError, FetchError
from anvil.http.client import HttpClient, Limits

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. A secret that is shared with a provider, or no signature, is never accepted."""
MAX_TOKEN_CHARS = 16_384
KEYS_TTL_S = 600.0
"""Time after which keys are fetched again."""
RETRY_S = 30.0
"""Least time between two requests to the provider, so that tokens with invented keys cause none."""
CLOCK_LEEWAY_S = 30
"""Allowed difference between the clocks of the two machines."""
_LIMITS = Limits(connect=5, answer=5, pause=5, total=10, small=1_000_000)


class InvalidToken(AnvilError):
    """A token that is not accepted. The message says why, without the token."""


class IdentityProvider:
    """The provider with the identifier ``issuer``. All methods may be called from any thread."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._lock = threading.Lock()
        self._keys: dict[str, Any] = {}
        self._fetched_at = self._tried_at = float("-inf")

    def claims(self, token: str, audiences: tuple[str, ...]) -> Mapping[str, Any]:
        """The claims of a token that this provider signed for one of the ``audiences`` and that has not expired.

        Raises :class:`InvalidToken`, or :class:`FetchError` when the keys cannot be fetched.
        """
        import jwt

        try:
            if len(token) > MAX_TOKEN_CHARS:
                raise InvalidToken("The token is too long.")
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise InvalidToken("The token is not signed with a public key.")
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._key(header.get("kid")),
                algorithms=[header["alg"]],
                audience=audiences,
                issuer=self.issuer,
                leeway=CLOCK_LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
            return claims
        except jwt.ExpiredSignatureError:
            raise InvalidToken("The token has expired.") from None
        except jwt.InvalidAudienceError:
            raise InvalidToken("The token is for another server.") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise InvalidToken("The token is not valid.") from None

    def _key(self, key_id: Any) -> Any:
        with self._lock:
            now = time.monotonic()
            is_missing = key_id not in self._keys and (key_id is not None or len(self._keys) != 1)
            if (is_missing or now - self._fetched_at > KEYS_TTL_S) and now - self._tried_at > RETRY_S:
                self._tried_at = now
                try:
                    self._keys = self._fetched_keys()
                    self._fetched_at = time.monotonic()
                except AnvilError:
                    if not self._keys:
                        self._tried_at = float("-inf")
                        raise
            if key_id is None and len(self._keys) == 1:
                return next(iter(self._keys.values()))
            if key_id not in self._keys:
                raise InvalidToken("The token is signed with a key that the identity provider does not have.")
            return self._keys[key_id]

    def _fetched_keys(self) -> dict[str, Any]:
        import jwt

        with HttpClient(_LIMITS) as client:
            address = self._metadata(client).get("jwks_uri")
            entries = _json(client, address).get("keys") if isinstance(address, str) else None
        keys = {}
        for entry in entries if isinstance(entries, list) else []:
            if (
                isinstance(entry, dict)
                and entry.get("kty") in ("RSA", "EC", "OKP")
                and entry.get("use", "sig") == "sig"
            ):
                try:
                    keys[str(entry.get("kid", ""))] = jwt.PyJWK(entry, entry.get("alg") or _algorithm(entry)).key
                except jwt.PyJWTError:
                    continue  # a key of a kind that this version does not know
        if not keys:
            raise FetchError(f"The identity provider {self.issuer} publishes no signing keys. Check --oauth-issuer.")
        return keys

    def _metadata(self, client: HttpClient) -> Mapping[str, Any]:
        parts = urllib.parse.urlsplit(self.issuer)
        host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for address in (
            f"{host}/.well-known/oauth-authorization-server{path}",
            f"{host}/.well-known/openid-configuration{path}",
            f"{host}{path}/.well-known/openid-configuration",
        ):
            metadata = _json(client, address)
            if metadata.get("issuer") == self.issuer:
                return metadata
        raise FetchError(f"{self.issuer} publishes no metadata with this issuer. Check --oauth-issuer.")


def _algorithm(entry: Mapping[str, Any]) -> str:
    """An algorithm of a key that names none; the key is the same for all of its kind."""
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    kind = entry.get("kty")
    return "RS256" if kind == "RSA" else "EdDSA" if kind == "OKP" else curves.get(str(entry.get("crv")), "ES256")


def _json(client: HttpClient, address: str) -> Mapping[str, Any]:
    """The JSON object at an address; empty if there is none."""
    with client.get(address) as reply:
        try:
            value = json.loads(reply.text()) if reply.status == 200 else {}
        except ValueError:
            value = {}
    return value if isinstance(value, dict) else {}
