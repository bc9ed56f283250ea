"""The server as an OAuth resource server: the check of access tokens, the keys of identity providers, and the metadata.

The specification is https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization, with RFC 9728
(metadata of a protected resource), RFC 8707 (audience) and RFC 6750 (challenges). A provider's keys come from its
``jwks_uri`` (RFC 8414, OpenID Connect Discovery). Tokens are JSON Web Tokens (RFC 9068).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from anvil.errors import AnvilError, ConfigError, FetchError, Unreachable
from anvil.formats.data_formats import json_object
from anvil.server import logs
from anvil.settings import index_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

METADATA_PATH = "/.well-known/oauth-protected-resource"
METADATA_HEADERS = {"Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"}


class Refusal(NamedTuple):
    """The refusal of a request: status, message, and the challenge in the header ``WWW-Authenticate``.

    ``retry_after_s``: the time after which the client may try again, for status 429 or 503.
    """

    status: int
    message: str
    challenge: str = ""
    retry_after_s: int = 1


@dataclass(frozen=True)
class OAuthSettings:
    """The identity providers, the address of this server for its clients, and the scopes that a token must have.

    If all are empty, no access token is accepted. Raises :class:`ConfigError` if only some are set, and for an address
    that is neither https nor of this machine.
    """

    issuers: tuple[str, ...] = ()
    resource: str = ""
    scopes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.issuers and not self.resource and not self.scopes:
            return
        if not self.issuers or not self.resource:
            raise ConfigError("OAuth needs both the issuer and the resource: --oauth-issuer and --oauth-resource.")
        for name, url in (*(("issuer", issuer) for issuer in self.issuers), ("resource", self.resource)):
            # Each client gets all of these in headers.
            if not index_url.is_allowed(url) or not url.isascii() or not url.isprintable() or set(url) & set(' "#?@\\'):
                raise ConfigError(
                    f"The OAuth {name} {index_url.without_secrets(url)!r} is not a plain https address, in ASCII and "
                    f"without user, query and fragment. Check --oauth-{name}."
                )
        if any(not scope.isascii() or not scope.isprintable() or set(scope) & set(' "\\') for scope in self.scopes):
            raise ConfigError("An OAuth scope has a character that is not allowed. Check --oauth-scope.")

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """The paths of the metadata: with the path of the resource (RFC 9728), and without. Empty without OAuth."""
        if not self.resource:
            return ()
        path = urlsplit(self.resource).path.rstrip("/")
        return (f"{METADATA_PATH}{path}", METADATA_PATH) if path else (METADATA_PATH,)

    async def metadata(self, _: Request) -> Response:
        """The answer at each of :attr:`metadata_paths`."""
        from starlette.responses import JSONResponse

        metadata = {
            "resource": self.resource,
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": "Anvil",
            **({"scopes_supported": list(self.scopes)} if self.scopes else {}),
        }
        return JSONResponse(metadata, headers=METADATA_HEADERS)

    def challenge(self, error: str = "") -> str:
        """The value of ``WWW-Authenticate``: the address of the metadata, and the scopes that a token needs."""
        parts = urlsplit(self.resource)
        parameters = [
            *([f'error="{error}"'] if error else []),
            f'resource_metadata="{parts.scheme}://{parts.netloc}{self.metadata_paths[0]}"',
            *([f'scope="{" ".join(self.scopes)}"'] if self.scopes else []),
        ]
        return f"Bearer {', '.join(parameters)}"


class TokenGuard:
    """The check of the access token of each request."""

    def __init__(self, settings: OAuthSettings) -> None:
        self.settings = settings
        # A token may spell the issuer with or without a final slash. The provider's metadata decides which is right.
        self._providers = {issuer.rstrip("/"): IdentityProvider(issuer) for issuer in settings.issuers}
        resource = settings.resource.rstrip("/")
        self._audiences = (resource, f"{resource}/")

    async def refusal(self, scope: Scope) -> Refusal | None:
        """The refusal of a request; None if its token is accepted."""
        import asyncio  # here, because servers over stdio import this module for its settings and do not need it

        settings, token = self.settings, bearer_token(scope)
        if not token:
            return Refusal(401, "Send an access token: Authorization: Bearer TOKEN.", settings.challenge())
        try:
            try:
                claims = self._claims(token, may_fetch=False)  # not in a thread: all may wait for a slow provider
            except FetchError:
                claims = await asyncio.to_thread(self._claims, token)
        except InvalidToken as error:
            return Refusal(401, f"{error} Get another one.", settings.challenge("invalid_token"))
        except AnvilError:
            message = "The keys of the identity provider cannot be fetched; the log of this server says why."
            return Refusal(503, f"{message} Try again later.", settings.challenge())
        missing = [scope for scope in settings.scopes if scope not in _scopes(claims)]
        if missing:
            message = f"The token lacks the scope {' '.join(missing)}."
            return Refusal(403, message, settings.challenge("insufficient_scope"))
        return None

    def _claims(self, token: str, may_fetch: bool = True) -> Mapping[str, Any]:
        """The claims of a token, verified by the provider that it names."""
        import jwt

        try:
            issuer = jwt.decode(token, options={"verify_signature": False})["iss"]
            provider = self._providers.get(issuer.rstrip("/"))
        except Exception:  # tokens are hostile, see IdentityProvider.claims()
            raise InvalidToken("The token is not valid.") from None
        if provider is None:
            raise InvalidToken("The token is of another identity provider.")
        return provider.claims(token, self._audiences, may_fetch)


def bearer_token(scope: Scope) -> str:
    """The token in the header ``Authorization`` of a request (RFC 6750); empty without one."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"authorization"]
    kind, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """The scopes of a token, in ``scope`` (RFC 9068) or in ``scp``, as some providers name it. Each may be a text or a
    list."""
    scopes: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        values = value.split() if isinstance(value, str) else value
        if isinstance(values, list):
            scopes.update(map(str, values))
    return scopes


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key. Those with a shared secret are left out, and so is ``none``, no signature."""
KEYS_TTL_S = 600.0
"""Time after which keys are fetched again."""
MIN_REQUEST_GAP_S = 30.0
"""Least time between two requests to the provider. So tokens with invented key ids cause no further requests."""
FAILURE_TTL_S = 1.0
"""Time for which a failure to fetch the keys is the answer to all threads that wait for them. Otherwise each would try
again, one after the other."""
FETCH_TIMEOUT_S = 10.0
"""Time for the metadata and the keys together."""
CLOCK_LEEWAY_S = 30
"""Allowed difference between the clocks of the two machines."""


class InvalidToken(AnvilError):
    """A token is not accepted. The message says why, and does not contain the token."""


class IdentityProvider:
    """The keys of the provider with the identifier ``issuer``. Methods may be called from any thread."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._lock = threading.Lock()
        self._keys: dict[str, Any] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._failure: AnvilError | None = None

    def claims(self, token: str, audiences: tuple[str, ...], may_fetch: bool = True) -> Mapping[str, Any]:
        """The claims of a token that this provider signed for one of the ``audiences`` and that has not expired.

        Raises :class:`InvalidToken` for another token, and :class:`FetchError` if the keys must be fetched and cannot,
        or ``may_fetch`` is false.
        """
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise InvalidToken("The token is not signed with a public key.")
            # These extensions must be understood (RFC 7515). Older versions of the library ignore them.
            if "crit" in header:
                raise InvalidToken("The token has an extension that is not known here.")
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._key(header.get("kid"), may_fetch),
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
        except Exception:  # tokens are hostile, and the parsers raise many types, such as RecursionError
            raise InvalidToken("The token is not valid.") from None

    def _key(self, key_id: Any, may_fetch: bool) -> Any:
        """The key with an id. Keys are fetched if it is not there or too old. Raises :class:`InvalidToken`."""
        key = self._cached_key(key_id)
        is_fresh = time.monotonic() - self._fetched_at <= KEYS_TTL_S
        # If the key is there but old, one thread fetches the keys again, and the others use the old one meanwhile. So
        # they do not wait for a provider that hangs, or for a token with an invented key id.
        if key is not None and (is_fresh or self._lock.locked()):
            return key
        if not may_fetch:
            raise FetchError("The keys of the identity provider must be fetched.")
        with self._lock:
            self._refresh(key_id)
        key = self._cached_key(key_id)
        if key is None:
            raise InvalidToken("The token is signed with a key that the identity provider does not have.")
        return key

    def _cached_key(self, key_id: Any) -> Any:
        """The key with this id. Without an id it is the only key. None if there is no such key."""
        keys = self._keys
        return next(iter(keys.values())) if key_id is None and len(keys) == 1 else keys.get(key_id)

    def _refresh(self, key_id: Any) -> None:
        """Fetch the keys, if that may help and is not too soon. The caller holds the lock."""
        now = time.monotonic()
        if self._failure is not None and now - self._tried_at < FAILURE_TTL_S:
            raise self._failure
        is_due = self._cached_key(key_id) is None or now - self._fetched_at > KEYS_TTL_S
        if not is_due or (self._failure is None and now - self._tried_at <= MIN_REQUEST_GAP_S):
            return
        self._failure = None
        try:
            self._keys = self._fetch_keys()
            self._fetched_at = time.monotonic()
        except AnvilError as error:
            # For the operator: a setting may be wrong. Clients get a message without the reason.
            logs.event(logging.WARNING, f"The keys of the identity provider were not fetched: {error}")
            if not self._keys:
                self._failure = error
                raise
        finally:
            self._tried_at = time.monotonic()

    def _fetch_keys(self) -> dict[str, Any]:
        """Key id -> key, of the keys for signatures. Raises :class:`FetchError`."""
        import jwt

        deadline = time.monotonic() + FETCH_TIMEOUT_S
        address = self._metadata(deadline).get("jwks_uri")
        entries = _json(address, deadline).get("keys") if isinstance(address, str) else None
        keys = {}
        for entry in entries if isinstance(entries, list) else []:
            is_key = isinstance(entry, dict) and entry.get("kty") in ("RSA", "EC", "OKP")
            if is_key and entry.get("use", "sig") == "sig":
                try:
                    keys[str(entry.get("kid", ""))] = jwt.PyJWK(entry).key
                except Exception:  # the parsers raise many types for a kind of key that they do not know
                    continue
        if not keys:
            raise FetchError(f"The identity provider {self.issuer} publishes no signing keys. Check --oauth-issuer.")
        return keys

    def _metadata(self, deadline: float) -> Mapping[str, Any]:
        """The metadata of the provider, from the first address that has it. Raises :class:`FetchError`."""
        parts = urlsplit(self.issuer)
        host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        other_issuer = ""
        for address in (  # in the order of the MCP specification: RFC 8414, then both spellings of OpenID Connect
            f"{host}/.well-known/oauth-authorization-server{path}",
            f"{host}/.well-known/openid-configuration{path}",
            f"{host}{path}/.well-known/openid-configuration",
        ):
            metadata = _json(address, deadline)
            issuer = metadata.get("issuer")
            if issuer == self.issuer:
                return metadata
            if isinstance(issuer, str):
                other_issuer = f" It names {issuer[:200]!r}: the two must be spelled the same."
        raise FetchError(f"{self.issuer} publishes no metadata with this issuer. Check --oauth-issuer.{other_issuer}")


def _json(address: str, deadline: float) -> Mapping[str, Any]:
    """The JSON object at an address; empty if there is none. Raises :class:`FetchError`, also after the deadline."""
    from anvil.http.allowed_servers import host_of  # here, because servers over stdio import this module
    from anvil.http.client import HttpClient, Limits

    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise Unreachable(f"{host_of(address)} is too slow. Try again later.")
    limits = Limits(connect=5, answer=5, pause=5, small=1_000_000, total=left_s)
    with HttpClient(limits) as client, client.get(address) as reply:
        return (json_object(reply.text()) if reply.status == 200 else None) or {}
