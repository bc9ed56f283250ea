"""Access to the HTTP server: rate of a client, allowed host names and origins, the token, and refusals.

A web page can make a browser send requests to this machine, and with DNS rebinding it can read the answers. Such
requests have a foreign ``Host`` or ``Origin``, and are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Iterable
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from anvil.server.http_options import HttpOptions, Rate, host_name, parsed_address
from anvil.server.logs import event
from anvil.server.oauth import Refusal, TokenGuard, bearer_token

MAX_LOGGED_PATH_CHARS = 200
MAX_CLIENTS = 10_000
"""Clients whose requests are counted. With more, the one that was quiet for longest is forgotten."""


class AccessMiddleware:
    """ASGI middleware that passes on the requests that the options allow, and refuses the others.

    Requests for ``public_paths`` need no token.
    """

    def __init__(self, application: ASGIApp, options: HttpOptions, public_paths: Iterable[str] = ()) -> None:
        self._application, self._options, self._public_paths = application, options, frozenset(public_paths)
        self._guard = TokenGuard(options.oauth) if options.oauth.issuers else None
        self._limit = RateLimit(options.rate) if options.rate is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._application(scope, receive, send)
            return
        # Host and Origin before the token: they keep foreign web pages out, whatever token these send. The token last:
        # its check may ask the identity provider.
        refusal = self._rate_refusal(scope) or self._host_refusal(scope) or await self._token_refusal(scope)
        if refusal is not None:
            await refuse(scope, receive, send, refusal, self._options)
            return
        await self._application(scope, receive, send)

    def _rate_refusal(self, scope: Scope) -> Refusal | None:
        """The refusal of a request over the rate of its client; None for another request."""
        if self._limit is None:
            return None
        seconds = math.ceil(self._limit.wait_s(client_of(scope, self._options.proxies), time.monotonic()))
        message = f"Too many requests. Try again in {seconds} s."
        return Refusal(429, message, retry_after_s=seconds) if seconds else None

    def _host_refusal(self, scope: Scope) -> Refusal | None:
        """The refusal of a request with a foreign ``Host`` or ``Origin``; None for another request."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
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


class RateLimit:
    """The requests that each client (:func:`client_of`) may still send."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client -> the requests that it may still send, and the monotonic time at which this number held."""

    def wait_s(self, client: str, now: float) -> float:
        """The time until the client may send a request. If it is 0, the request at ``now`` is counted."""
        per_second = self._rate.requests / self._rate.seconds
        left, since = self._clients.pop(client, (float(self._rate.requests), now))
        left = min(float(self._rate.requests), left + (now - since) * per_second)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / per_second


def client_of(scope: Scope, proxies: int = 0) -> str:
    """The address of a request's client. Of an IPv6 address it is the /64 network, all of which one client has.

    ``proxies``: the number of proxies in front of the server. Each adds the address that it sees to
    ``X-Forwarded-For``. Addresses before these may be invented by the client, and are not used.
    """
    peer: str = (scope.get("client") or ("",))[0]
    address = peer
    if proxies:
        seen = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        if len(seen) >= proxies:
            address = seen[-proxies].strip()
    ip = parsed_address(address) or parsed_address(host_name(address) or "")  # some proxies add the port
    if ip is None:  # the header may have any text, and no text of a client is kept
        return peer
    return str(ip if ip.version == 4 else ip.ipv4_mapped or ipaddress.ip_network((int(ip) >> 64 << 64, 64)))


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal, options: HttpOptions) -> None:
    """Answer with ``{"error": message}``, and log a line. Of the request, only path and client are logged."""
    status, message, challenge, retry_after_s = refusal
    path, client = quote(scope["path"][:MAX_LOGGED_PATH_CHARS]), client_of(scope, options.proxies)
    event(logging.INFO, "refused a request", status=status, path=path, client=client)
    headers = {"www-authenticate": challenge} if challenge else {}
    if status in (429, 503):
        headers["retry-after"] = str(retry_after_s)
    await JSONResponse({"error": message}, status, headers)(scope, receive, send)
