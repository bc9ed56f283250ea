"""The HTTP transports: streamable HTTP without sessions at ``/mcp``, or SSE for older clients at ``/sse``; ``/health``.

The server keeps no state between requests of streamable HTTP. So a load balancer can use any number of servers. There
are time limits for a request, and for a client that does not read its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import h11
import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from anvil._version import __version__
from anvil.errors import AnvilError, ConfigError
from anvil.server.logs import ProgressReporter, event
from anvil.server.mcp_app import App, running_app
from anvil.server.oauth import METADATA_CACHE
from anvil.server.protocol import ProtocolError, parsed_message
from anvil.server.security import TOO_MANY, Access, AccessMiddleware, refuse
from anvil.server.signals import handling, is_repeated
from anvil.server.threads import ThreadBridge
from anvil.server.toolset import RunningToolset, Toolset

MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Bytes of a request's body."""
MAX_SSE_STREAMS = 224
"""Streams of SSE clients. Each is a request that is under way; the messages for it are others."""
LISTEN_BACKLOG = 128
"""Connections that wait in the system's queue until they are accepted."""
SHUTDOWN_GRACE_S = 3
"""Time for open requests when the server stops."""
NO_SDK_CHECKS = TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def serve(
    served: Sequence[RunningToolset],
    reporter: ProgressReporter,
    access: Access,
    sse: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal. ``ready`` is called with ``http://host:port`` when clients can connect; it must not block.

    Raises :class:`ConfigError` when the port cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        sock = stack.enter_context(listening(access))
        app = await stack.enter_async_context(running_app(served, reporter, standing=sse))
        server = _Server(
            uvicorn.Config(
                application(app, access, sse),
                log_config=None,  # anvil.server.logs configured it
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
                lifespan="on",  # the SDK's manager of requests runs in it
                ws="none",
                http=Connection,
                backlog=LISTEN_BACKLOG,
            )
        )
        loop = asyncio.get_running_loop()

        def stop() -> None:
            app.close()
            server.should_exit = True

        def on_signal(number: int, _: FrameType | None) -> None:
            if not is_repeated(number):
                loop.call_soon_threadsafe(stop)

        stack.enter_context(handling(on_signal))
        name = f"[{access.host}]" if ":" in access.host else access.host
        base = f"http://{name}:{sock.getsockname()[1]}"
        sock.listen(LISTEN_BACKLOG)  # who connects from now on is answered as soon as the server runs
        token = "required" if access.token or access.oauth else "none"
        event(logging.INFO, f"Serving on {base}/{'sse' if sse else 'mcp'}", token=token)
        if ready is not None:
            ready(base)
        await server.serve([sock])


@contextlib.contextmanager
def listening(access: Access) -> Iterator[socket.socket]:
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            access.host or None, access.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise ConfigError(f"{access.host} is not an address of this machine ({error}). Give another --host.") from None
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
        except OSError as error:
            raise ConfigError(
                f"{access.host} port {access.port} cannot be used ({error.strerror}). Give another --port or --host."
            ) from None
        yield sock


class _Server(uvicorn.Server):
    """uvicorn without its signal handling, which raises the signal again at its end: the exit code would not be 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(app: App, access: Access, sse: bool = False) -> AccessMiddleware:
    if sse:
        streams = _Streams(app)
        # GET alone: clients of both transports try POST first, and go by its status
        own = (
            Route("/sse", streams, methods=["GET"]),
            Mount("/messages/", _Checked(streams.transport.handle_post_message)),
        )
        served = Starlette(routes=[*_own_routes(app, access), *own])
    else:
        served = streamable(app, access)
    return AccessMiddleware(served, access, public_paths(app, access))


def public_paths(app: App, access: Access) -> list[str]:
    """The paths that need no token."""
    metadata = access.oauth.metadata_paths if access.oauth else ()
    return ["/health", *metadata, *(path for toolset, _ in app.parts for path in toolset.public_paths)]


def _own_routes(app: App, access: Access) -> list[Route]:
    """``/health``, the metadata for OAuth, and the routes of the toolsets."""

    async def metadata(_: Request) -> JSONResponse:
        assert access.oauth is not None
        headers = {"Cache-Control": METADATA_CACHE, "Access-Control-Allow-Origin": "*"}
        return JSONResponse(access.oauth.metadata(), headers=headers)

    return [
        *(Route(path, metadata, methods=["GET"]) for path in (access.oauth.metadata_paths if access.oauth else ())),
        Route("/health", Health(app.parts).answer, methods=["GET"]),
        *(route for toolset, bridge in app.parts for route in toolset.routes(bridge)),
    ]


def streamable(app: App, access: Access, more: Sequence[Route] = ()) -> Starlette:
    """Streamable HTTP at ``/mcp``, the routes of the toolsets, and ``more``. It needs its lifespan."""
    requests = StreamableHTTPSessionManager(
        app.server, stateless=True, max_request_body_size=MAX_REQUEST_BYTES, security_settings=NO_SDK_CHECKS
    )
    # POST alone: without a session nothing could ever be sent on the stream that GET asks for, and the protocol has 405
    # for that. The SDK would hold it open, one of the requests that may be under way, until the server is killed.
    endpoint = _Checked(StreamableHTTPASGIApp(requests))
    routes = [Route("/mcp", endpoint, methods=["POST"]), *_own_routes(app, access), *more]
    return Starlette(routes=routes, lifespan=lambda _: requests.run())


class _Checked:
    """An application of the SDK. A body that is no message gets the error of stdio, and not the SDK's."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, message = bytearray(), await receive()
        while message.get("more_body") and len(body) <= MAX_REQUEST_BYTES:
            body += message["body"]
            message = await receive()
        is_complete = message["type"] == "http.request" and not message.get("more_body")
        body += message.get("body", b"")
        if is_complete:
            try:
                parsed_message(bytes(body), "body")
            except ProtocolError as error:
                await JSONResponse(error.answer(error.request), 400)(scope, receive, send)
                return
        again: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": not is_complete}]
        if message["type"] != "http.request":  # the client went away
            again.append(message)

        async def received() -> Message:
            return again.pop(0) if again else await receive()

        await self._application(scope, received, send)


class _Streams:
    """The SSE streams of older clients, as an ASGI application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open = 0
        self.transport = SseServerTransport("/messages/", NO_SDK_CHECKS, MAX_REQUEST_BYTES)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._open >= MAX_SSE_STREAMS:
            await refuse(send, *TOO_MANY)
            return
        self._open += 1
        try:
            async with self.transport.connect_sse(scope, receive, send) as (read, write):
                await self._app.serve(read, write)
        finally:
            self._open -= 1


# --- health -----------------------------------------------------------------------------------------------------------

HEALTH_CACHE_S = 1.0
"""Time for which ``/health`` repeats an answer, so that frequent requests cost little."""
STATUSES = ("ok", "degraded", "error")
"""From best to worst."""


class Health:
    def __init__(self, parts: Sequence[tuple[Toolset, ThreadBridge]]) -> None:
        self._parts = parts
        self._known: Mapping[str, Any] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def answer(self, _: Request) -> JSONResponse:
        """200 with counts, or 503 with the reason. Several toolsets are each under their name, with the worst status on
        top."""
        async with self._asking:
            if time.monotonic() >= self._until:
                parts = {toolset.name: await self._part(toolset, bridge) for toolset, bridge in self._parts}
                worst = max((part["status"] for part in parts.values()), key=STATUSES.index)
                [self._known, *others] = parts.values()
                if others:
                    self._known = {"status": worst, "version": __version__, **parts}
                self._until = time.monotonic() + HEALTH_CACHE_S
        return JSONResponse(self._known, 503 if self._known["status"] == "error" else 200)

    async def _part(self, toolset: Toolset, bridge: ThreadBridge) -> Mapping[str, Any]:
        try:
            return await bridge.call("health", toolset.health)
        except AnvilError as error:
            return {"status": "error", "version": __version__, "error": str(error)}


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
