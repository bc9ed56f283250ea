"""``anvil.asgi:app``: one index as an ASGI application, configured by the environment, for functions and ASGI servers.

The documents are opened when the server sends ``lifespan.startup``. Functions send none, so the first request opens
them. The variables are in the guide on hosting.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from anvil.errors import AnvilError, ConfigError
from anvil.formats.data_formats import compact, plain
from anvil.server import http_transport, logs
from anvil.server.http_options import HttpOptions, number
from anvil.server.logs import ProgressReporter
from anvil.server.mcp_app import running_app
from anvil.server.tool_calls import ThreadBridge
from anvil.server.toolset import ServeRequest, Toolset, open_toolset

DEFAULT_CACHE_S = 300
BEHIND_PROXY_HOST = "0.0.0.0"
"""The address at which the server listens is not known here, so the rules are those for a public address."""


@dataclass(frozen=True)
class AsgiSettings:
    """The settings of the application, from environment variables."""

    served: ServeRequest
    options: HttpOptions
    cache_s: int = DEFAULT_CACHE_S
    log_level: str = "warn"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> AsgiSettings:
        """The settings in environment variables. Raises :class:`ConfigError` for a value that is not valid, and without
        a token unless all may read."""
        level = environment.get("ANVIL_LOG_LEVEL", "warn")
        if level not in logs.LEVELS:
            raise ConfigError(f"ANVIL_LOG_LEVEL is {level!r}. Use one of {', '.join(logs.LEVELS)}.")
        public = environment.get("ANVIL_PUBLIC", "").casefold() in ("1", "true", "yes", "on")
        # whether all may read is decided below
        options = HttpOptions.from_environment(environment, host=BEHIND_PROXY_HOST, insecure=True)
        if not options.needs_token and not public:
            raise ConfigError(
                "No token is set. Set ANVIL_TOKEN, or ANVIL_PUBLIC=1 if everyone who can reach the server may read "
                "the documents."
            )
        cache_s = environment.get("ANVIL_CACHE_SECONDS", str(DEFAULT_CACHE_S))
        return cls(
            ServeRequest(
                docs=environment.get("ANVIL_DOCS"), index=environment.get("ANVIL_INDEX"), watch=False, transport="http"
            ),
            options,
            number(cache_s, "ANVIL_CACHE_SECONDS", "seconds; 0 switches caching off"),
            level,
        )


def _search_route(toolset: Toolset, bridge: ThreadBridge, settings: AsgiSettings) -> Route:
    """``GET /search?query=...``: the result of ``search_docs``, for the search box of a site. It may be cached."""
    tool = next(tool for tool in toolset.tools if tool.name == "search_docs")
    kept = f"{'private' if settings.options.needs_token else 'public'}, max-age={settings.cache_s}"

    async def search(request: Request) -> Response:
        try:
            result = await bridge.call("search", tool.bind(request.query_params))
        except ConfigError as error:
            return JSONResponse({"error": str(error)}, 400, {"Cache-Control": "no-store"})
        except AnvilError as error:
            return JSONResponse({"error": str(error)}, 503, {"Cache-Control": "no-store", "Retry-After": "1"})
        # Without the time of the query, which differs in each answer.
        timeless = compact(plain(dataclasses.replace(result, query_ms=0.0)))
        tag = f'"{hashlib.sha256(timeless.encode()).hexdigest()[:32]}"'
        may_keep = settings.cache_s and not result.freshness.pending_vectors  # a better answer will soon be there
        headers = {"ETag": tag, "Cache-Control": kept if may_keep else "no-cache"}
        if settings.options.allowed_origins:
            # a cache must not give the answer to a request without an origin to a page of another
            headers["Vary"] = "Origin"
        # A proxy that compresses answers puts W/ before their tag.
        if tag in (known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=headers)
        return Response(compact(plain(result)), media_type="application/json", headers=headers)

    return Route("/search", search, methods=["GET"])


class AnvilApplication:
    """The ASGI application. ``environment``: the variables, which are read when it starts."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._application: ASGIApp | None = None
        self._running: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._stop: asyncio.Event | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        await self._started()
        assert self._application is not None
        await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                problem = ""
                try:
                    await self._started()
                except AnvilError as error:
                    problem = str(error)
                if problem:  # sent behind the handler: a server that raises then shows one traceback, not two
                    await send({"type": "lifespan.startup.failed", "message": problem})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _started(self) -> None:
        """Return when the application accepts requests. After a failure the next call tries again."""
        if self._ready is None or (self._ready.done() and self._ready.exception() is not None):
            self._ready, self._stop = asyncio.get_running_loop().create_future(), asyncio.Event()
            self._running = asyncio.ensure_future(self._run(self._ready, self._stop))
        await asyncio.shield(self._ready)  # a client that disconnects must not cancel the start for all others

    async def stop(self) -> None:
        """Close the index and the files. A later request opens them again."""
        if self._stop is not None and self._running is not None:
            self._stop.set()
            await self._running
            self._ready = self._running = self._application = None

    async def _run(self, ready: asyncio.Future[None], stop: asyncio.Event) -> None:
        """The life of the application in one task, because contexts must be left in the task that entered them."""
        try:
            settings = AsgiSettings.from_environment(self._environment)
            if not logging.getLogger().handlers:  # functions and servers may have set up logging
                logs.configure(settings.log_level, "json")
            reporter = ProgressReporter()
            async with contextlib.AsyncExitStack() as stack:
                running = stack.enter_context(open_toolset("docs", settings.served, reporter))
                running.target.start(reporter)
                app = await stack.enter_async_context(running_app([running], reporter, standing=False))
                routes = http_transport.streamable(app, settings.options, [_search_route(*app.parts[0], settings)])
                await stack.enter_async_context(routes.router.lifespan_context(routes))
                self._application = http_transport.guarded(app, routes, settings.options)
                ready.set_result(None)
                await stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)


app = AnvilApplication()
