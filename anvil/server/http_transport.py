"""The HTTP transports and their routes: streamable HTTP at ``/mcp``, SSE for older clients at ``/sse``, ``/health``.

Streamable HTTP has no sessions: the server keeps no state between requests. So a load balancer can use any number of
servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anvil._version import __version__
from anvil.errors import AnvilError, ConfigError
from anvil.server.access import AccessMiddleware, refuse
from anvil.server.http_options import HttpOptions
from anvil.server.logs import ProgressReporter, event
from anvil.server.mcp_app import App, running_app
from anvil.server.protocol import INVALID_REQUEST, ProtocolError, parsed_message
from anvil.server.request_limits import MAX_REQUEST_BYTES, TOO_MANY, ConcurrencyMiddleware, Connection
from anvil.server.signals import handling, is_repeated
from anvil.server.tool_calls import ThreadBridge
from anvil.server.toolset import RunningToolset, Toolset

MAX_SSE_STREAMS = 224
"""Streams of SSE clients at once. Each is an open request for as long as its client stays, so this is less than
``MAX_CONCURRENT_REQUESTS``: the messages of these clients are requests, too."""
LISTEN_BACKLOG = 512
"""Connections that wait in the system's queue until they are accepted. So many may be accepted at once, so this is less
than the limit of connections."""
MAX_HELD_BYTES, SMALL_BODY_BYTES = 128 * 1024 * 1024, 64 * 1024
"""Bytes of the bodies of all requests that are not answered. With more, a body that is not small gets status 503."""
SHUTDOWN_GRACE_S = 3
"""Time that open requests get when the server stops."""
CORS_HEADERS = ("Authorization", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id")
PREFLIGHT_CACHE_S = 86_400
NO_SDK_CHECKS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""The SDK checks no hosts and origins: :class:`anvil.server.access.AccessMiddleware` does, for all routes."""


async def serve(
    served: Sequence[RunningToolset],
    reporter: ProgressReporter,
    options: HttpOptions,
    sse: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal. ``ready`` is called with ``http://host:port`` when clients can connect. It must not block.

    Raises :class:`ConfigError` if the port cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        sock = stack.enter_context(listening(options))
        app = await stack.enter_async_context(running_app(served, reporter, standing=sse))
        server = _Server(
            uvicorn.Config(
                application(app, options, sse),
                log_config=None,  # anvil.server.logs configured it
                access_log=False,
                server_header=False,
                proxy_headers=False,  # uvicorn would trust those that this machine sends; see access.client_of
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
        name = f"[{options.host}]" if ":" in options.host else options.host
        base = f"http://{name}:{sock.getsockname()[1]}"
        token = "required" if options.needs_token else "none"
        event(logging.INFO, f"Serving on {base}/{'sse' if sse else 'mcp'}", token=token)
        if ready is not None:
            ready(base)
        await server.serve([sock])


@contextlib.contextmanager
def listening(options: HttpOptions) -> Iterator[socket.socket]:
    """A context with the socket on which the server listens. Raises :class:`ConfigError` if there can be none."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise ConfigError(f"{options.host} is not an address of this machine ({error}). Give another --host.") from None
    with sock:
        # Lets the server take the port of one that has ended. On Windows it would take that of a running one.
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(LISTEN_BACKLOG)  # clients may connect from now on, and are answered when the server runs
        except OSError as error:
            raise ConfigError(
                f"{options.host} port {options.port} cannot be used ({error.strerror}). Give another --port or --host."
            ) from None
        yield sock


class _Server(uvicorn.Server):
    """uvicorn without its signal handling. That raises the signal again at its end, so the exit code would not be 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(app: App, options: HttpOptions, sse: bool = False) -> ASGIApp:
    """The ASGI application of ``anvil serve``. ``sse``: with SSE in place of streamable HTTP."""
    if not sse:
        return guarded(app, streamable(app, options), options)
    streams = _Streams(app, options)
    # GET alone: a client of both transports tries POST first, and chooses the transport by the status
    messages = Mount("/messages/", MessageCheck(streams.transport.handle_post_message, options))
    return guarded(app, _routed([*_at("/sse", streams, "GET"), messages, *_own_routes(app, options)]), options)


def guarded(app: App, routes: ASGIApp, options: HttpOptions) -> ASGIApp:
    """``routes`` behind the limits and checks of the options: origins, rate, access, requests at once."""
    toolset_paths = (path for toolset, _ in app.parts for path in toolset.public_paths)
    public_paths = ["/health", "/health/", *options.oauth.metadata_paths, *toolset_paths]
    application: ASGIApp = AccessMiddleware(ConcurrencyMiddleware(routes, options), options, public_paths)
    if options.allowed_origins:
        application = CORSMiddleware(
            application,
            allow_origins=options.allowed_origins,
            allow_methods=("GET", "POST"),
            allow_headers=CORS_HEADERS,
            expose_headers=("WWW-Authenticate", "Retry-After", "ETag"),
            max_age=PREFLIGHT_CACHE_S,
        )
    return application


def _own_routes(app: App, options: HttpOptions) -> list[Route]:
    """The routes of both transports: ``/health``, the metadata for OAuth, and those of the toolsets."""
    return [
        *(Route(path, options.oauth.metadata, methods=["GET"]) for path in options.oauth.metadata_paths),
        *_at("/health", Health(app.parts).answer, "GET"),
        *(route for toolset, bridge in app.parts for route in toolset.routes(bridge)),
    ]


def streamable(app: App, options: HttpOptions, more: Sequence[Route] = ()) -> Starlette:
    """Streamable HTTP at ``/mcp``, the routes of the toolsets, and ``more``. The application needs its lifespan."""
    requests = StreamableHTTPSessionManager(
        app.server, stateless=True, max_request_body_size=MAX_REQUEST_BYTES, security_settings=NO_SDK_CHECKS
    )
    # POST alone: GET asks for a stream of messages, and without a session there are none. The protocol has status 405
    # for that. The SDK would hold the stream open, as one of the concurrent requests, until the server is killed.
    endpoint = _at("/mcp", MessageCheck(StreamableHTTPASGIApp(requests), options), "POST")
    return _routed([*endpoint, *_own_routes(app, options), *more], lambda _: requests.run())


def _at(path: str, endpoint: Any, method: str) -> list[Route]:
    """Routes for a path without and with a slash at its end, since people write both in the settings of clients."""
    return [Route(spelling, endpoint, methods=[method]) for spelling in (path, f"{path}/")]


def _routed(routes: Sequence[BaseRoute], lifespan: Any = None) -> Starlette:
    """An application with ``routes``, without Starlette's redirects to and from a final slash.

    Those name the scheme that the server sees. Behind a proxy for TLS that is http, so a client would send its token
    unencrypted.
    """
    application = Starlette(routes=routes, lifespan=lifespan)
    application.router.redirect_slashes = False
    return application


class MessageCheck:
    """An application of the SDK behind a check of the body. If the body has another content type, as curl sends it, or
    is no message, the answer is an error that says what to send."""

    def __init__(self, application: ASGIApp, options: HttpOptions) -> None:
        self._application, self._options = application, options
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not Headers(scope=scope).get("content-type", "").lower().startswith("application/json"):
            error = ProtocolError(INVALID_REQUEST, "The header Content-Type must be application/json.")
            await JSONResponse(error.answer(None), 415)(scope, receive, send)
            return
        body, message = bytearray(), await receive()
        try:
            while message.get("more_body") and len(body) <= MAX_REQUEST_BYTES:  # the SDK refuses a longer one
                body += message["body"]
                self._held_bytes += len(message["body"])
                if len(body) > SMALL_BODY_BYTES and self._held_bytes > MAX_HELD_BYTES:
                    await refuse(scope, receive, send, TOO_MANY, self._options)
                    return
                message = await receive()
            unread = [{**message, "body": bytes(body) + message.get("body", b"")}]
            if message["type"] == "http.request" and not message.get("more_body"):
                parsed_message(unread[0]["body"])

            async def receive_again() -> Message:
                """The body that was read here, for the application; then what the client sends."""
                return unread.pop() if unread else await receive()

            await self._application(scope, receive_again, send)
        except ProtocolError as error:
            await JSONResponse(error.answer(error.request), 400)(scope, receive, send)
        finally:
            self._held_bytes -= len(body)


class _Streams:
    """The SSE streams of older clients, as an ASGI application."""

    def __init__(self, app: App, options: HttpOptions) -> None:
        self._app, self._options = app, options
        self._open = 0
        self.transport = SseServerTransport("/messages/", NO_SDK_CHECKS, MAX_REQUEST_BYTES)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._open >= MAX_SSE_STREAMS:
            await refuse(scope, receive, send, TOO_MANY, self._options)
            return
        self._open += 1
        try:
            async with self.transport.connect_sse(scope, receive, send) as (read, write):
                await self._app.serve(read, write)
        finally:
            self._open -= 1


# --- health -----------------------------------------------------------------------------------------------------------

HEALTH_CACHE_S = 1.0
"""Time for which ``/health`` repeats its answer, so that frequent requests cost little."""
STATUSES = ("ok", "degraded", "error")
"""The statuses of a toolset, from best to worst."""


class Health:
    """The answer at ``/health``, which is kept for :data:`HEALTH_CACHE_S`."""

    def __init__(self, parts: Sequence[tuple[Toolset, ThreadBridge]]) -> None:
        self._parts = parts
        self._answer: Mapping[str, Any] = {}
        self._valid_until = 0.0
        self._lock = asyncio.Lock()

    async def answer(self, _: Request) -> JSONResponse:
        """Status 200 with counts, or 503 with the reason. Of several toolsets, each is under its name, and the worst
        status is on top."""
        async with self._lock:
            if time.monotonic() >= self._valid_until:
                parts = {toolset.name: await self._part(toolset, bridge) for toolset, bridge in self._parts}
                worst = max((part["status"] for part in parts.values()), key=STATUSES.index)
                [self._answer, *others] = parts.values()
                if others:
                    self._answer = {"status": worst, "version": __version__, **parts}
                self._valid_until = time.monotonic() + HEALTH_CACHE_S
        return JSONResponse(self._answer, 503 if self._answer["status"] == "error" else 200)

    async def _part(self, toolset: Toolset, bridge: ThreadBridge) -> Mapping[str, Any]:
        try:
            return await bridge.call("health", toolset.health)
        except AnvilError as error:
            return {"status": "error", "version": __version__, "error": str(error)}
