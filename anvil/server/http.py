"""The HTTP transports: streamable HTTP without sessions at ``/mcp``, older clients' SSE at ``/sse``, and ``/health``.

Nothing is remembered between requests of streamable HTTP, so any number of servers can stand behind one balancer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from anvil import __version__
from anvil.errors import AnvilError, ConfigError
from anvil.server.announcing import Announcer
from anvil.server.app import App
from anvil.server.crossing import Crossing
from anvil.server.guard import Access, Guard
from anvil.server.logs import event
from anvil.server.running import running
from anvil.server.stopping import Stopping, stopped_by_signal
from anvil.server.surface import Served, Surface

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest request."""
GRACE = 3
"""Seconds that requests under way have to end when the server stops."""
REMEMBERED = 1.0
"""Seconds for which ``/health`` answers with the same counts: asking it costs next to nothing."""
STATUSES = ("ok", "degraded", "error")
"""From good to bad."""
GUARDED_ALREADY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def serve(
    served: Sequence[Served],
    announcer: Announcer,
    access: Access,
    sse: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal. ``ready`` is told ``http://host:port`` when requests are answered; it must not wait.

    Raises :class:`ConfigError` when the port cannot be had.
    """
    with listening(access) as sock:
        asyncio.run(_serve(served, announcer, access, sock, sse, ready))


@contextlib.contextmanager
def listening(access: Access) -> Iterator[socket.socket]:
    """The socket, bound."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            access.host or None, access.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise ConfigError(f"{access.host} is no address of this machine ({error}). Give another --host.") from None
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
        except OSError as error:
            raise ConfigError(
                f"{access.host} port {access.port} cannot be had ({error.strerror}). Give another --port or --host."
            ) from None
        yield sock


async def _serve(
    served: Sequence[Served],
    announcer: Announcer,
    access: Access,
    sock: socket.socket,
    sse: bool,
    ready: Callable[[str], None] | None,
) -> None:
    async with running(served, announcer) as app, stopped_by_signal() as stopping:
        server = _Server(
            uvicorn.Config(
                application(app, access, stopping, sse), log_config=None, access_log=False, server_header=False,
                timeout_graceful_shutdown=GRACE, lifespan="on",
            )
        )  # fmt: skip

        async def stop() -> None:
            await stopping.asked.wait()
            app.close()
            server.should_exit = True

        waiting = asyncio.ensure_future(stop())
        name = f"[{access.host}]" if ":" in access.host else access.host
        base = f"http://{name}:{sock.getsockname()[1]}"

        def started() -> None:
            event(logging.INFO, f"Serving on {base}/{'sse' if sse else 'mcp'}",
                  token="required" if access.token else "none")  # fmt: skip
            if ready is not None:
                ready(base)

        server.started_up = started
        try:
            await server.serve([sock])
        finally:
            waiting.cancel()


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn would raise them again at its end, and the exit code would tell of a crash."""

    started_up: Callable[[], None]
    """Called when requests are answered."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_up()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(app: App, access: Access, stopping: Stopping, sse: bool = False) -> Guard:
    """The whole ASGI application; standing streams end when ``stopping`` is asked for."""
    own: list[Route] = [Route("/health", _Health(app.parts).answer, methods=["GET"])]
    own += [route for surface, crossing in app.parts for route in surface.routes(crossing)]
    open_paths = ["/health", *(path for surface, _ in app.parts for path in surface.open_paths)]
    if sse:
        streams = _Streams(app, stopping)
        routes = [*own, Route("/sse", streams), Mount("/messages/", streams.transport.handle_post_message)]
        return Guard(Starlette(routes=routes), access, open_paths)
    requests = StreamableHTTPSessionManager(
        app.server, stateless=True, max_request_body_size=LARGEST, security_settings=GUARDED_ALREADY
    )
    # POST alone: without a session nothing could ever be sent on the stream that GET asks for, and the protocol has 405
    # for that. The SDK would hold it open, one of the requests that may be under way, until the server is killed.
    routes = [Route("/mcp", StreamableHTTPASGIApp(requests), methods=["POST"]), *own]
    return Guard(Starlette(routes=routes, lifespan=lambda _: requests.run()), access, open_paths)


class _Streams:
    """The standing streams of older clients, an ASGI application."""

    def __init__(self, app: App, stopping: Stopping) -> None:
        self._app, self._stopping = app, stopping
        self.transport = SseServerTransport("/messages/", GUARDED_ALREADY, LARGEST)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async with self.transport.connect_sse(scope, receive, send) as (read, write):
            await self._stopping.until(self._app.server.run(read, write, self._app.options()))


class _Health:
    """``GET /health``: whether the server answers, and how much it holds."""

    def __init__(self, parts: Sequence[tuple[Surface, Crossing]]) -> None:
        self._parts = parts
        self._known: Mapping[str, Any] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def answer(self, _: Request) -> JSONResponse:
        """200 with counts, or 503 with the reason.

        One surface answers for itself; several each under their name, with the worst status of them all.
        """
        async with self._asking:
            if time.monotonic() >= self._until:
                self._known = await self._look()
                self._until = time.monotonic() + REMEMBERED
        return JSONResponse(self._known, 503 if self._known["status"] == "error" else 200)

    async def _look(self) -> Mapping[str, Any]:
        found = {surface.name: await self._part(surface, crossing) for surface, crossing in self._parts}
        if len(found) == 1:
            return next(iter(found.values()))
        worst = max((each["status"] for each in found.values()), key=STATUSES.index)
        return {"status": worst, "version": __version__, **found}

    async def _part(self, surface: Surface, crossing: Crossing) -> Mapping[str, Any]:
        try:
            return await crossing.ask("health", surface.health)
        except AnvilError as error:
            return {"status": "error", "version": __version__, "error": str(error)}
