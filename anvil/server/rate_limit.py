"""A limit of the requests of each client of the ASGI application, by its address."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from anvil.errors import ConfigError
from anvil.server.security import refuse

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


class RateLimitMiddleware:
    """Refuses the requests of a client, by its address, that are over a rate: status 429 with ``Retry-After``."""

    def __init__(self, application: ASGIApp, rate: Rate) -> None:
        self._application, self._rate = application, rate
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address -> (requests that it may still send, as of a monotonic time)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait_s = self._wait_s((scope.get("client") or ("",))[0], time.monotonic()) if scope["type"] == "http" else 0.0
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
