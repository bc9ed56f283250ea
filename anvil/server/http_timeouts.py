"""Time limits of HTTP connections: for a request's head, for its body, and for a client that does not read.

An idle connection costs a file descriptor. When there are too many idle ones, the oldest of them is closed.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_TIMEOUT_S = 10.0
"""Time for the head of a request, from the start of the connection or the end of the last answer."""
BODY_TIMEOUT_S, MIN_BODY_BYTES_PER_S = 15.0, 16 * 1024
"""Time for the body of a request, and the number of received bytes that extend it by a second."""
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
    return (
        MAX_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else max(min(MAX_CONNECTIONS, soft - RESERVED_DESCRIPTORS), 16)
    )


class WaitingConnections:
    """The idle connections of one server, the oldest first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: dict[WaitingConnection, None] = {}

    def begins(self, connection: WaitingConnection) -> None:
        """A connection becomes idle. Closes the oldest one if there are too many."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None
        if len(self._waiting) > self.limit // 2 or len(connection.connections) > self.limit:
            self._waiting.pop(oldest := next(iter(self._waiting)))
            oldest.give_up()

    def ends(self, connection: WaitingConnection) -> None:
        """A connection is no longer idle."""
        self._waiting.pop(connection, None)

    def protocol(self) -> type[asyncio.Protocol]:
        """The connection class for uvicorn."""
        return type("Connection", (WaitingConnection,), {"waiting": self})


class WaitingConnection(H11Protocol):
    """A connection with time limits, counted by its :class:`WaitingConnections` while it is idle."""

    waiting: WaitingConnections
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _seen: Any = None
    _since = 0.0
    _received = 0

    # --- called by uvicorn and the event loop ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a peer that vanished
        self._wait(HEAD_TIMEOUT_S, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head or body."""
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        """Start or stop the timer of the body, if a head or body is complete."""
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle is not self._seen:  # the head of a new request is complete
            self._seen = cycle
            if cycle.more_body and not cycle.response_complete:
                self._since, self._received = time.monotonic(), 0
                self._wait(BODY_TIMEOUT_S, self._body_is_late)
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that the application did not read."""
        if not self.transport.is_closing():
            self._wait(HEAD_TIMEOUT_S, self.give_up)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client stopped reading: start its timer."""
        if self._reading is None:
            self._reading = self.loop.call_later(UNREAD_ANSWER_TIMEOUT_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads again: stop its timer."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().resume_writing()

    # --- time ----------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float, late: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, late)
        self.waiting.begins(self)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.waiting.ends(self)

    def _body_is_late(self) -> None:
        left = self._since + BODY_TIMEOUT_S + self._received / MIN_BODY_BYTES_PER_S - time.monotonic()
        if left > 0:
            self._timer = self.loop.call_later(left + 0.01, self._body_is_late)
        else:
            self.give_up()

    def give_up(self) -> None:
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
