"""An end to requests whose headers take too long: no timeout between two bytes stops a server that drips them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any


class Watch:
    """Ends a request whose headers take too long, dripped or not: it shuts the socket that the library waits on."""

    def __init__(self, seconds: float) -> None:
        self.ended = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Told by the library what it does; its streams name their sockets."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
                if self.ended:
                    self._end()

    def _end(self) -> None:
        self.ended = True
        for each in self._sockets:
            with contextlib.suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # of TLS too: no farewell is waited for

    def __enter__(self) -> Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
