"""HTTP connections that do not wait for ever: for a request's head, for its body, for a client that does not read.

A connection that keeps the server waiting holds a file descriptor and nothing else. Each wait has an end, and when too
many connections are kept waiting, the one that waits longest makes room for the next.
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
"""Seconds in which the head of a request has to arrive, from the connection's or the last answer's end on."""
BODY_TIMEOUT_S, MIN_BODY_BYTES_PER_S = 15.0, 16 * 1024
"""Seconds in which a body has to arrive, and bytes for which it is given a second more."""
UNREAD_ANSWER_TIMEOUT_S = 30.0
"""Seconds that an answer waits for a client to read on."""
MAX_CONNECTIONS = 1024
"""Connections at once, where the process may have so many files open."""
RESERVED_DESCRIPTORS = 96
"""File descriptors that are not for connections."""


def most_connections() -> int:
    """How many connections there may be at once, by the limit of open files."""
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
    """The connections that keep one server waiting, the longest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[WaitingConnection, None] = {}

    def begins(self, connection: WaitingConnection) -> None:
        """A connection keeps the server waiting, from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None
        if len(self._waiting) > self.most // 2 or len(connection.connections) > self.most:
            self._waiting.pop(oldest := next(iter(self._waiting)))
            oldest.give_up()

    def ends(self, connection: WaitingConnection) -> None:
        """It does so no longer."""
        self._waiting.pop(connection, None)

    def protocol(self) -> type[asyncio.Protocol]:
        """The class that uvicorn makes connections of."""
        return type("Connection", (WaitingConnection,), {"waiting": self})


class WaitingConnection(H11Protocol):
    """A connection of one :class:`WaitingConnections`."""

    waiting: WaitingConnections
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _seen: Any = None
    _since = 0.0
    _received = 0

    # --- what uvicorn and the event loop call ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # of a peer that vanished one hears by this
        self._wait(HEAD_TIMEOUT_S, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a head or body came."""
        self._received += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        """A head or body may be whole now."""
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle is not self._seen:  # the head of another request is whole
            self._seen = cycle
            if cycle.more_body and not cycle.response_complete:
                self._since, self._received = time.monotonic(), 0
                self._wait(BODY_TIMEOUT_S, self._body_is_late)
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._stop()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that nobody wants."""
        if not self.transport.is_closing():
            self._wait(HEAD_TIMEOUT_S, self.give_up)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read."""
        if self._reading is None:
            self._reading = self.loop.call_later(UNREAD_ANSWER_TIMEOUT_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does."""
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
        """Close the connection, with the status that says why where a request has begun."""
        self._stop()
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_started:
            cycle.disconnected = True  # whoever reads the body hears that no more comes
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            answer = h11.Response(status_code=408, headers=headers, reason=b"Request Timeout")
            self.transport.write(self.conn.send(answer) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
            cycle.message_event.set()
        self.transport.close()
