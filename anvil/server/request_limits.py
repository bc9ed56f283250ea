"""The limits of requests to the HTTP server: how many at once, how many of each client, how large and how slow."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import OrderedDict

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from anvil.server.access import client_of, refuse
from anvil.server.http_options import HttpOptions, Rate
from anvil.server.oauth import Refusal

MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Bytes of a request's body."""
MAX_CONCURRENT_REQUESTS = 256
"""Open requests at once, streams included. Others get status 503. A request counts from the end of its body on;
:class:`Connection` limits the time for a body."""
TOO_MANY = Refusal(503, "Too many requests at once. Try again in a moment.")
MAX_CLIENTS = 10_000
"""Clients that are remembered; the one that was quiet for longest is forgotten first."""


class ConcurrencyMiddleware:
    """ASGI middleware that refuses requests while :data:`MAX_CONCURRENT_REQUESTS` are open."""

    def __init__(self, application: ASGIApp, options: HttpOptions) -> None:
        self._application, self._options = application, options
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if self._running >= MAX_CONCURRENT_REQUESTS:
            await refuse(scope, send, TOO_MANY, self._options)
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
            await refuse(scope, send, TOO_MANY, self._options)
        finally:
            self._running -= counted


class _TooMany(Exception):
    """A request's body was complete while too many requests were open."""


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


class RateLimitMiddleware:
    """Refuses the requests of a client (:func:`client_of`) that are over a rate: status 429 with ``Retry-After``."""

    def __init__(self, application: ASGIApp, options: HttpOptions, rate: Rate) -> None:
        self._application, self._options, self._rate = application, options, rate
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client -> (requests that it may still send, as of a monotonic time)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_request = scope["type"] == "http"
        wait_s = self._wait_s(client_of(scope, self._options.proxies), time.monotonic()) if is_request else 0.0
        if wait_s == 0:
            await self._application(scope, receive, send)
            return
        seconds = math.ceil(wait_s)
        refusal = Refusal(429, f"Too many requests. Try again in {seconds} s.", retry_after_s=seconds)
        await refuse(scope, send, refusal, self._options)

    def _wait_s(self, client: str, now: float) -> float:
        """0 if the client may send a request at ``now``, which is then counted; else the time until it may."""
        per_second = self._rate.requests / self._rate.seconds
        left, since = self._clients.pop(client, (float(self._rate.requests), now))
        left = min(float(self._rate.requests), left + (now - since) * per_second)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / per_second


# --- time limits of connections --------------------------------------------------------------------------------------

REQUEST_TIMEOUT_S, MIN_BYTES_PER_S = 15.0, 16 * 1024
"""Time for a request, from the start of the connection or the end of the last answer, and the number of received bytes
that extend it by a second."""
UNREAD_ANSWER_TIMEOUT_S = 30.0
"""Time after which a client that does not read its answer is disconnected."""
MAX_CONNECTIONS = 1024
"""Connections at once, if the process may open so many files."""
RESERVED_DESCRIPTORS = 96
"""File descriptors that are kept for files, databases and the listening socket."""


def connection_limit() -> int:
    """The number of connections at once: :data:`MAX_CONNECTIONS`, or fewer by the limit of open files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit for sockets
        return MAX_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(min(MAX_CONNECTIONS, soft - RESERVED_DESCRIPTORS), 16)


class Connection(H11Protocol):
    """A connection with time limits, which uvicorn has for none but idle ones. With too many of them the one that waits
    longest for its request is closed. uvicorn and the event loop call the methods without an underscore."""

    _late: asyncio.TimerHandle | None = None
    """The timer of a request that is not complete."""
    _unread: asyncio.TimerHandle | None = None
    """The timer of a client that does not read."""
    _since = 0.0
    _received = 0
    """When the wait for the request began, and the bytes that came since."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a peer that vanished
        self._expect_request()
        if len(self.connections) > connection_limit():
            waiting = [each for each in self.connections if isinstance(each, Connection) and each._late is not None]
            min(waiting, key=lambda each: each._since)._close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop()

    def on_response_complete(self) -> None:
        if not self.transport.is_closing():
            self._expect_request()  # or the rest of a body that the application did not read
        super().on_response_complete()

    def pause_writing(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_ANSWER_TIMEOUT_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _expect_request(self) -> None:
        self._stop()
        self._since, self._received = time.monotonic(), 0
        self._late = self.loop.call_later(REQUEST_TIMEOUT_S, self._check_time)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _check_time(self) -> None:
        left_s = self._since + REQUEST_TIMEOUT_S + self._received / MIN_BYTES_PER_S - time.monotonic()
        if left_s > 0:  # with a little more, because a timer can be early by a clock's tick
            self._late = self.loop.call_later(left_s + 0.01, self._check_time)
        else:
            self._close()

    def _close(self) -> None:
        """Close the connection. A request that was begun is answered with status 408."""
        self._stop()
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_started:
            cycle.disconnected = True  # ends a read of the body
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            answer = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            self.transport.write(self.conn.send(answer) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
            cycle.message_event.set()
        self.transport.close()
