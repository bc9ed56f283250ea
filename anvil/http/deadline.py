"""A time limit on network waits: a read timeout does not stop a server that sends one byte at a time."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any


class SocketDeadline:
    """Shuts down the sockets of a request at the deadline, which ends the wait in the HTTP library."""

    def __init__(self) -> None:
        self.expired = False
        self._sockets: list[socket.socket] = []
        self._timer: threading.Timer | None = None

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Called by the HTTP library at each step. A new connection has its socket in ``info``."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            sock = info["return_value"].get_extra_info("socket")
            if sock is not None:
                self._sockets.append(sock)
                if self.expired:
                    self._expire()

    def start(self, seconds: float) -> None:
        """Set the deadline, in seconds from now."""
        self.cancel()
        self._timer = threading.Timer(max(seconds, 0), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # also of TLS, without its closing message
