"""Access to the HTTP server: allowed host names and origins, the token, and the answer to a refused request.

A web page can make a browser send requests to this machine, and with DNS rebinding it can read the answers. Such
requests have a foreign ``Host`` or ``Origin``, and are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from anvil.server.http_options import HttpOptions, host_name, parsed_address
from anvil.server.logs import event
from anvil.server.oauth import Refusal, TokenGuard, bearer_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_LOGGED_PATH_CHARS = 200


class AccessMiddleware:
    """ASGI middleware that passes on the requests that the options allow, and refuses the others.

    Requests for ``public_paths`` need no token.
    """

    def __init__(self, application: ASGIApp, options: HttpOptions, public_paths: Iterable[str] = ()) -> None:
        self._application, self._options, self._public_paths = application, options, frozenset(public_paths)
        self._guard = TokenGuard(options.oauth) if options.oauth.issuers else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return
        # Host and Origin first: they keep foreign web pages out, whatever token these send. The token last: its check
        # may ask the identity provider.
        refusal = self._host_refusal(scope) or await self._token_refusal(scope)
        if refusal is not None:
            await refuse(scope, send, refusal, self._options)
            return
        await self._application(scope, receive, send)

    def _host_refusal(self, scope: Scope) -> Refusal | None:
        """The refusal of a request with a foreign ``Host`` or ``Origin``; None for another request."""
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        host = host_name(hosts[0]) if len(hosts) == 1 else None
        if host is None or not self._options.knows(host):
            return Refusal(
                403, "The server does not accept this host name. Allow it with --allowed-host or ANVIL_ALLOWED_HOST."
            )
        for origin in origins:
            scheme, _, host_and_port = origin.partition("://")
            name = host_name(host_and_port) if scheme in ("http", "https") else None
            if name is None or not (self._options.knows(name) or self._options.allows_origin(origin)):
                return Refusal(
                    403,
                    "The server does not accept requests from this origin. Allow its host with --allowed-host or "
                    "ANVIL_ALLOWED_HOST.",
                )
        return None

    async def _token_refusal(self, scope: Scope) -> Refusal | None:
        """The refusal of a request without a valid token; None if it needs none."""
        options = self._options
        if scope["path"] in self._public_paths or not options.needs_token:
            return None
        token = bearer_token(scope)
        # The server's own token before an access token: it needs no request to the identity provider.
        if options.token and hmac.compare_digest(token.encode("latin-1"), options.token.encode()):
            return None
        if self._guard is not None:
            return await self._guard.refusal(scope)
        wrong = "That is not the server's token. " if token else ""
        return Refusal(401, f"{wrong}Send the server's token: Authorization: Bearer TOKEN.", "Bearer")


def client_of(scope: Scope, proxies: int = 0) -> str:
    """The address of a request's client. Of an IPv6 address it is the /64 network, all of which one client has.

    ``proxies``: the number of proxies in front of the server. Each adds the address that it sees to
    ``X-Forwarded-For``. Addresses before these may be invented by the client, and are not used.
    """
    peer: str = (scope.get("client") or ("",))[0]
    address = peer
    if proxies:
        added = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
        seen = ",".join(added).split(",")
        if len(seen) >= proxies:
            address = seen[-proxies].strip()
    ip = parsed_address(address) or parsed_address(host_name(address) or "")  # some proxies add the port
    if ip is None:  # the header may have any text, and no text of a client is kept
        return peer
    return str(ip if ip.version == 4 else ip.ipv4_mapped or ipaddress.ip_network((int(ip) >> 64 << 64, 64)))


async def refuse(scope: Scope, send: Send, refusal: Refusal, options: HttpOptions) -> None:
    """Answer with ``{"error": message}``, and log a line. Of the request, only path and client are logged."""
    status, message, challenge, retry_after_s = refusal
    path, client = quote(scope["path"][:MAX_LOGGED_PATH_CHARS]), client_of(scope, options.proxies)
    event(logging.INFO, "refused a request", status=status, path=path, client=client)
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if challenge:
        headers.append((b"www-authenticate", challenge.encode("latin-1")))
    if status in (429, 503):
        headers.append((b"retry-after", str(retry_after_s).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
