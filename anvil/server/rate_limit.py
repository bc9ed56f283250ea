"""A limit of the requests of each client of the ASGI application, by its address."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from anvil.errors import ConfigError
from anvil.server.security import host_name, parsed_address, refuse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_CLIENTS = 10_000
"""Clients that are remembered; the one that was quiet for longest is forgotten first."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_RATE = re.compile(r"(\d{1,9})\s*/\s*(second|minute|hour)")


class Rate(NamedTuple):
    """So many requests in so many seconds. All of them may come at once; they come back one by one."""

    requests: int
    seconds: int

    @classmethod
    def parsed(cls, text: str) -> Rate:
        """The rate in a text such as ``60/minute``. Raises :class:`ConfigError`."""
        match = _RATE.fullmatch(text.strip())
        if match is None or int(match[1]) == 0:
            raise ConfigError(
                f"ANVIL_RATE_LIMIT is {text!r}. Write a number per second, minute or hour, such as 60/minute."
            )
        return cls(int(match[1]), _SECONDS[match[2]])


def client_of(scope: Scope, proxies: int = 0) -> str:
    """The address of a request's client, or the /64 network of an IPv6 address, all of which one client has.

    ``proxies``: how many are in front of the server. Each adds the address that it sees to ``X-Forwarded-For``; what
    is before those can be the client's invention.
    """
    peer: str = (scope.get("client") or ("",))[0]
    address = peer
    if proxies:
        added = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
        seen = ",".join(added).split(",")
        if len(seen) >= proxies:
            address = seen[-proxies].strip()
    ip = parsed_address(address) or parsed_address(host_name(address) or "")  # some proxies add the port
    if ip is None:  # any text would be kept
        return peer
    return str(ip if ip.version == 4 else ip.ipv4_mapped or f"{int(ip) >> 64:x}/64")


class RateLimitMiddleware:
    """Refuses the requests of a client (:func:`client_of`) that are over a rate: status 429 with ``Retry-After``."""

    def __init__(self, application: ASGIApp, rate: Rate, proxies: int = 0) -> None:
        self._application, self._rate, self._proxies = application, rate, proxies
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client -> (requests that it may still send, as of a monotonic time)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_request = scope["type"] == "http"
        wait_s = self._wait_s(client_of(scope, self._proxies), time.monotonic()) if is_request else 0.0
        if wait_s == 0:
            await self._application(scope, receive, send)
            return
        seconds = math.ceil(wait_s)
        await refuse(send, 429, f"Too many requests. Try again in {seconds} s.", retry_after_s=seconds)

    def _wait_s(self, client: str, now: float) -> float:
        """0 if the client may send a request at ``now``, which is then counted; else the time until it may."""
        per_second = self._rate.requests / self._rate.seconds
        left, since = self._clients.pop(client, (float(self._rate.requests), now))
        left = min(float(self._rate.requests), left + (now - since) * per_second)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / per_second
