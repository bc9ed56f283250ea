"""An OAuth identity provider: its metadata and signing keys, and the access tokens that it signed.

Keys come from the provider's ``jwks_uri`` (RFC 8414, OpenID Connect Discovery). Tokens are JSON Web Tokens (RFC 9068).
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anvil.errors import AnvilError, FetchError, Unreachable
from anvil.http.allowed_servers import host_of
from anvil.http.client import HttpClient, Limits

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. A secret that is shared with a provider, or no signature, is never accepted."""
MAX_TOKEN_CHARS = 16_384
KEYS_TTL_S = 600.0
"""Time after which keys are fetched again."""
RETRY_S = 30.0
"""Least time between two requests to the provider, so that tokens with invented keys cause none."""
FAILURE_TTL_S = 1.0
"""Time for which a failure answers all who waited for the keys, so that they do not ask one after the other."""
FETCH_TIMEOUT_S = 10.0
"""Time for the metadata and the keys together."""
CLOCK_LEEWAY_S = 30
"""Allowed difference between the clocks of the two machines."""
MAX_KEYS = 100
_LIMITS = Limits(connect=5, answer=5, pause=5, small=1_000_000)


class InvalidToken(AnvilError):
    """A token that is not accepted. The message says why, without the token."""


class IdentityProvider:
    """The provider with the identifier ``issuer``. All methods may be called from any thread."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._lock = threading.Lock()
        self._keys: dict[str, Any] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._failure: AnvilError | None = None

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
            if "crit" in header:  # extensions that must be understood; older versions of the library pass over them
                raise InvalidToken("The token has an extension that is not known here.")
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
        except AnvilError:
            raise
        except Exception:  # tokens are hostile, and the parsers raise many things, such as RecursionError
            raise InvalidToken("The token is not valid.") from None

    def _key(self, key_id: Any) -> Any:
        key = self._known(key_id)
        is_fresh = time.monotonic() - self._fetched_at <= KEYS_TTL_S
        if key is not None and (is_fresh or not self._lock.acquire(blocking=False)):
            return key  # a provider that hangs, and a token with an invented key, hold up no known one
        if key is None:
            self._lock.acquire()
        try:
            self._refresh(key_id)
        finally:
            self._lock.release()
        key = self._known(key_id)
        if key is None:
            raise InvalidToken("The token is signed with a key that the identity provider does not have.")
        return key

    def _known(self, key_id: Any) -> Any:
        """The key with this id; without an id the only key; else None."""
        keys = self._keys
        return next(iter(keys.values())) if key_id is None and len(keys) == 1 else keys.get(key_id)

    def _refresh(self, key_id: Any) -> None:
        """Fetch the keys, if that may help and is not too soon. Under the lock."""
        now = time.monotonic()
        if self._failure is not None and now - self._tried_at < FAILURE_TTL_S:
            raise self._failure
        is_due = self._known(key_id) is None or now - self._fetched_at > KEYS_TTL_S
        if not is_due or (self._failure is None and now - self._tried_at <= RETRY_S):
            return
        self._failure = None
        try:
            self._keys = self._fetched_keys()
            self._fetched_at = time.monotonic()
        except AnvilError as error:
            if not self._keys:
                self._failure = error
                raise
        finally:
            self._tried_at = time.monotonic()

    def _fetched_keys(self) -> dict[str, Any]:
        import jwt

        deadline = time.monotonic() + FETCH_TIMEOUT_S
        address = self._metadata(deadline).get("jwks_uri")
        entries = _json(address, deadline).get("keys") if isinstance(address, str) else None
        keys = {}
        for entry in entries[:MAX_KEYS] if isinstance(entries, list) else []:
            if (
                isinstance(entry, dict)
                and entry.get("kty") in ("RSA", "EC", "OKP")
                and entry.get("use", "sig") == "sig"
            ):
                try:
                    keys[str(entry.get("kid", ""))] = jwt.PyJWK(entry, entry.get("alg") or _algorithm(entry)).key
                except Exception:  # whatever the parsers raise: a key of a kind that this version does not know
                    continue
        if not keys:
            raise FetchError(f"The identity provider {self.issuer} publishes no signing keys. Check --oauth-issuer.")
        return keys

    def _metadata(self, deadline: float) -> Mapping[str, Any]:
        parts = urllib.parse.urlsplit(self.issuer)
        host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for address in (
            f"{host}/.well-known/oauth-authorization-server{path}",
            f"{host}/.well-known/openid-configuration{path}",
            f"{host}{path}/.well-known/openid-configuration",
        ):
            metadata = _json(address, deadline)
            if metadata.get("issuer") == self.issuer:
                return metadata
        raise FetchError(f"{self.issuer} publishes no metadata with this issuer. Check --oauth-issuer.")


def _algorithm(entry: Mapping[str, Any]) -> str:
    """An algorithm of a key that names none; the key is the same for all of its kind."""
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    kind = entry.get("kty")
    return "RS256" if kind == "RSA" else "EdDSA" if kind == "OKP" else curves.get(str(entry.get("crv")), "ES256")


def _json(address: str, deadline: float) -> Mapping[str, Any]:
    """The JSON object at an address; empty if there is none. Raises :class:`FetchError`, also after the deadline."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise Unreachable(f"{host_of(address)} is too slow. Try again later.")
    with HttpClient(replace(_LIMITS, total=left_s)) as client, client.get(address) as reply:
        try:
            value = json.loads(reply.text()) if reply.status == 200 else {}
        except (ValueError, RecursionError):
            value = {}
    return value if isinstance(value, dict) else {}
