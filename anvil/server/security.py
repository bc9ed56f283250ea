"""Access to the HTTP server: allowed host names and origins, the token, and the number of requests at once.

A web page can make a browser send requests to this machine, and with DNS rebinding it can read the answers. Such
requests have a foreign ``Host`` or ``Origin``, and are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anvil.errors import ConfigError
from anvil.server.oauth import OAuthSettings, Refusal, TokenGuard
from anvil.settings.index_url import LOOPBACK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_AFTER_BRACKET = re.compile(r"(?::\d*)?")
MAX_CONCURRENT_REQUESTS = 256
"""Open requests at once, streams included. Others get status 503. A request counts from the end of its body on;
``http_transport.py`` limits the time for a body."""
TOO_MANY = (503, "Too many requests at once. Try again in a moment.")
ANY_HOST = "*"


@dataclass(frozen=True)
class Access:
    """Where the server listens, and who may connect, by the options of ``anvil serve``. Raises :class:`ConfigError` for
    a public host without a token."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False, metadata={"variable": "ANVIL_TOKEN"})
    """The token; that of the file, if there is one."""
    token_file: str | None = field(default=None, metadata={"variable": "ANVIL_TOKEN_FILE"})
    oauth_issuer: tuple[str, ...] = field(default=(), metadata={"variable": "ANVIL_OAUTH_ISSUER"})
    oauth_resource: str | None = field(default=None, metadata={"variable": "ANVIL_OAUTH_RESOURCE"})
    oauth_scope: tuple[str, ...] = field(default=(), metadata={"variable": "ANVIL_OAUTH_SCOPES"})
    insecure: bool = False
    allowed_host: tuple[str, ...] = field(default=(), metadata={"variable": "ANVIL_ALLOWED_HOST"})
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests besides those of the hosts, in lower case: ``https://example.org``."""
    oauth: OAuthSettings | None = field(init=False)
    """The identity providers whose access tokens are accepted, besides the token."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _read_token(self.token, self.token_file))
        oauth = OAuthSettings.given(self.oauth_issuer, self.oauth_resource, self.oauth_scope)
        object.__setattr__(self, "oauth", oauth)
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable() or " " in self.token):
            raise ConfigError("The token must be printable ASCII without spaces. Choose another, and set ANVIL_TOKEN.")
        for name in self.allowed_host:
            bare = name.strip("[]")
            if name != ANY_HOST and parsed_address(bare) is None and not re.fullmatch(r"[A-Za-z0-9._-]+", bare):
                raise ConfigError(
                    f"No client can have the allowed host {name[:100]!r}. Name a host alone, without scheme and port, "
                    "such as docs.example.org, or '*' for all."
                )
        if not is_loopback(self.host) and not self.token and not self.oauth and not self.insecure:
            raise ConfigError(
                f"{self.host} can be reached from other machines. Set a token with ANVIL_TOKEN or --token-file, "
                "or an identity provider with --oauth-issuer, or add --insecure if everyone who can reach it may read "
                "the documents."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **more: Any) -> Access:
        """The options by their variables, as the command reads them (several words: separated by spaces), and
        ``more``."""
        for each in fields(cls):
            text = environment.get(each.metadata.get("variable", ""))
            if text is not None:
                more[each.name] = tuple(text.split()) if each.default == () else text
        return cls(**more)

    def allows_origin(self, origin: str) -> bool:
        return ANY_HOST in self.allowed_origins or origin.lower() in self.allowed_origins

    def knows(self, host: str) -> bool:
        """Whether clients may use this host name (without port)."""
        name = host.lower().rstrip(".")
        if ANY_HOST in self.allowed_host or name in {
            allowed.lower().strip("[]") for allowed in (*LOOPBACK, *self.allowed_host)
        }:
            return True
        own = parsed_address(self.host)
        if self.host == "" or (own is not None and own.is_unspecified):  # it listens on all addresses of the machine
            return parsed_address(name) is not None  # DNS rebinding needs a name: an address is safe
        return name == self.host.lower()


def _read_token(token: str | None, file: str | None) -> str | None:
    """The token, as given or from its file; None without either. Raises :class:`ConfigError`."""
    if token == "":  # most likely from a shell variable that is not set; the server must not start without a token
        raise ConfigError("The token is empty. Give one with ANVIL_TOKEN or --token-file, or leave --token out.")
    if file is None:
        return token
    if token is not None:
        raise ConfigError("There is a token and a token file. Give one of them: ANVIL_TOKEN or ANVIL_TOKEN_FILE.")
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"The token file {file} cannot be read ({reason}). Write the token into it, and let this user read it."
        ) from None
    if not text:
        raise ConfigError(f"The token file {file} is empty. Write the token into it.")
    return text


def is_loopback(host: str) -> bool:
    address = parsed_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def parsed_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a text is; None for another text."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def host_name(value: str) -> str | None:
    """The host in a ``Host`` header, or in an ``Origin`` without its scheme; None if it is not valid."""
    if "]" in value and not _AFTER_BRACKET.fullmatch(value.rpartition("]")[2]):
        return None  # urlsplit drops what follows
    try:
        parts = urlsplit(f"http://{value}")
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    return None if parts.path or parts.query or parts.username is not None else parts.hostname


class AccessMiddleware:
    """ASGI middleware that passes on the requests that :class:`Access` allows, and refuses the others."""

    def __init__(self, application: ASGIApp, access: Access, public_paths: Iterable[str] = ()) -> None:
        """``public_paths`` need no token."""
        self._application, self._access, self._open = application, access, frozenset(public_paths)
        self._running = 0
        self._guard = TokenGuard(access.oauth) if access.oauth else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return
        # Host and Origin first: they keep foreign web pages out whatever they send. The token last: its check may ask
        # the identity provider, so it must not be reached by more requests than may be open.
        refused = self._refusal(scope) or await self._unauthorized(scope)
        if refused is not None:
            await refuse(send, *refused)
            return
        started = counted = False

        async def received() -> Message:
            nonlocal counted
            message = await receive()
            if not counted and message["type"] == "http.request" and not message.get("more_body"):
                if self._running >= MAX_CONCURRENT_REQUESTS and not started:
                    raise _TooMany
                self._running, counted = self._running + 1, True
            return message

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        if not _has_body(scope):
            self._running, counted = self._running + 1, True
        try:
            await self._application(scope, received, sent)
        except _TooMany:
            await refuse(send, *TOO_MANY)
        finally:
            self._running -= counted

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        host = host_name(hosts[0]) if len(hosts) == 1 else None
        if host is None or not self._access.knows(host):
            return 403, "The server does not accept this host name. Allow it with --allowed-host or ANVIL_ALLOWED_HOST."
        for origin in origins:
            scheme, _, rest = origin.partition("://")
            name = host_name(rest) if scheme in ("http", "https") else None
            if name is None or not (self._access.knows(name) or self._access.allows_origin(origin)):
                return 403, (
                    "The server does not accept requests from this origin. Allow its host with --allowed-host or "
                    "ANVIL_ALLOWED_HOST."
                )
        return TOO_MANY if self._running >= MAX_CONCURRENT_REQUESTS else None

    async def _unauthorized(self, scope: Scope) -> Refusal | None:
        access = self._access
        if scope["path"] in self._open or not (access.token or self._guard):
            return None
        given = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"authorization"]
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        token = token.strip() if kind.lower() == "bearer" else ""
        # The server's own token before an access token: it needs no request to the identity provider.
        if access.token and hmac.compare_digest(token.encode("latin-1"), access.token.encode()):
            return None
        if self._guard is not None:
            return await self._guard.refusal(token)
        wrong = "That is not the server's token. " if token else ""
        return Refusal(401, f"{wrong}Send the server's token: Authorization: Bearer TOKEN.", "Bearer")


class _TooMany(Exception):
    """A request's body was complete while too many requests were open."""


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


async def refuse(send: Send, status: int, message: str, challenge: str = "", retry_after_s: int = 1) -> None:
    """Send ``{"error": message}`` with a status, and a challenge in ``WWW-Authenticate``. ``retry_after_s``: when the
    client may try again, for the status 429 or 503."""
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if challenge:
        headers.append((b"www-authenticate", challenge.encode("latin-1")))
    if status in (429, 503):
        headers.append((b"retry-after", str(retry_after_s).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
