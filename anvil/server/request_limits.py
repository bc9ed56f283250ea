"""Limits of requests to the HTTP server: concurrent requests, size, timeouts, connections."""

from __future__ import annotations

import asyncio
import socket
import time

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from anvil.server.access import refuse
from anvil.server.http_options import HttpOptions
from anvil.server.oauth import Refusal

MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Bytes of a request's body."""
MAX_CONCURRENT_REQUESTS = 256
"""Open requests at once, streams included. Further ones get status 503. A request counts when its body is complete.
:class:`Connection` limits the time for the body."""
TOO_MANY = Refusal(503, "Too many requests at once. Try again in a moment.")


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
            await refuse(scope, receive, send, TOO_MANY, self._options)
            return
        started = counted = refused = False

        async def received() -> Message:
            nonlocal counted, refused
            message = await receive()
            if not counted and message["type"] == "http.request" and not message.get("more_body"):
                if self._running >= MAX_CONCURRENT_REQUESTS and not started:
                    refused = True
                    await refuse(scope, receive, send, TOO_MANY, self._options)
                    return {"type": "http.disconnect"}  # ends the application, whose answer is dropped
                self._running, counted = self._running + 1, True
            return message

        async def sent(message: Message) -> None:
            nonlocal started, counted
            started = True
            if not refused:
                await send(message)
            if counted and message["type"] == "http.response.body" and not message.get("more_body"):
                self._running, counted = self._running - 1, False  # the client may send its next request

        headers = dict(scope["headers"])
        if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:  # it has no body
            self._running, counted = self._running + 1, True
        try:
            await self._application(scope, received, sent)
        except Exception:  # of an application that expects the rest of the body
            if not refused:
                raise
        finally:
            self._running -= counted


# --- time limits of connections --------------------------------------------------------------------------------------

REQUEST_TIMEOUT_S, MIN_BYTES_PER_S = 15.0, 16 * 1024
"""Time for a request, from the start of the connection or the end of the last answer; and the number of received bytes
that give it one second more."""
UNREAD_ANSWER_TIMEOUT_S = 30.0
"""Time after which a client that does not read its answer is disconnected."""
MAX_CONNECTIONS = 1024
"""Connections at once. They are fewer if the process may not open so many files."""
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
    """A connection with time limits. uvicorn itself limits the time of idle connections only.

    If there are too many connections, the one that waits longest for its request is closed. uvicorn and the event loop
    call the methods without an underscore.
    """

    _request_timer: asyncio.TimerHandle | None = None
    """Runs while a request is not complete."""
    _unread_timer: asyncio.TimerHandle | None = None
    """Runs while the client does not read its answer."""
    _waits_since = 0.0
    """The monotonic time at which the wait for the request began."""
    _received = 0
    """The bytes that were received since then."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a peer that vanished
        self._expect_request()
        if len(self.connections) > connection_limit():
            connections = (other for other in self.connections if isinstance(other, Connection))
            waiting = [other for other in connections if other._request_timer is not None]
            min(waiting, key=lambda other: other._waits_since)._close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop_timer()

    def on_response_complete(self) -> None:
        if not self.transport.is_closing():
            self._expect_request()  # the next one, or the rest of a body that the application did not read
        super().on_response_complete()

    def pause_writing(self) -> None:
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(UNREAD_ANSWER_TIMEOUT_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def _expect_request(self) -> None:
        self._stop_timer()
        self._waits_since, self._received = time.monotonic(), 0
        self._request_timer = self.loop.call_later(REQUEST_TIMEOUT_S, self._check_time)

    def _stop_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _check_time(self) -> None:
        left_s = self._waits_since + REQUEST_TIMEOUT_S + self._received / MIN_BYTES_PER_S - time.monotonic()
        if left_s > 0:  # 10 ms more, because a timer can be early by a tick of the clock
            self._request_timer = self.loop.call_later(left_s + 0.01, self._check_time)
        else:
            self._close()

    def _close(self) -> None:
        """Close the connection. If a request was begun, the answer is status 408."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_started:
            cycle.disconnected = True  # the application stops reading the body
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            answer = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            self.transport.write(self.conn.send(answer) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
            cycle.message_event.set()
        self.transport.close()
