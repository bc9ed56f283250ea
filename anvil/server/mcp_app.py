"""The SDK's server object for HTTP and SSE: its connections, notifications of changes, and wording of errors.

The answers come from :mod:`anvil.server.protocol`, and the instructions for clients from the module of each toolset.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import mcp.types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types.methods import MONOLITH_NOTIFICATIONS
from pydantic_core import ValidationError

from anvil._version import __version__
from anvil.server import protocol
from anvil.server.logs import ProgressReporter, event
from anvil.server.page_resources import MAX_STREAMS, Connection, Resources, connection_methods
from anvil.server.protocol import Answers, ProtocolError, unexpected
from anvil.server.tool_calls import ThreadBridge
from anvil.server.toolset import RunningToolset
from anvil.values import Changes

RequestContext = ServerRequestContext[Connection, Any]

SDK_MESSAGES = {
    "Invalid request parameters": protocol.NOT_INITIALIZED,  # an invalid parameter is a ValidationError
    "Subscription limit reached": protocol.TOO_MANY_STREAMS,
}
"""Messages of the SDK's errors -> those of this server."""
MAX_SHOWN_PLACE_CHARS = 200
MAX_UNREAD_ANSWERS = 16
"""Answers to one client of a standing connection that are being made, or that it has not read. Further calls wait."""


class Unread:
    """The SDK's stream of messages to one client, with a count of those that the client has not read.

    So a client that sends requests and reads no answers cannot fill the memory of the server.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._waiting = self._running = self._open = 0
        self._changed = asyncio.Event()

    async def send(self, message: Any) -> None:
        self._waiting += 1
        try:
            await self._stream.send(message)
        finally:
            self._waiting -= 1
            self._changed.set()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """A context in which a request is answered. It begins when the client has read enough of the answers before.
        Raises :class:`ProtocolError` for more than :data:`MAX_OPEN_REQUESTS`."""
        if self._open >= protocol.MAX_OPEN_REQUESTS:
            raise ProtocolError(
                protocol.INVALID_REQUEST, "Too many requests without an answer. Read the answers first."
            )
        self._open += 1
        try:
            while self._running + self._waiting >= MAX_UNREAD_ANSWERS:
                self._changed.clear()
                await self._changed.wait()
            self._running += 1
            try:
                yield
            finally:
                self._running -= 1
                self._changed.set()
        finally:
            self._open -= 1

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Unread:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)


_CLIENT: ContextVar[Unread | None] = ContextVar("client", default=None)
"""The stream to the client of the connection that begins. :meth:`App._connection`, which the SDK calls, reads it."""


class App:
    """Toolsets behind the protocol. Any transport, or several at once, can run :attr:`server`."""

    def __init__(self, served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True) -> None:
        """``standing``: whether connections stay open, so that each can have subscriptions and a log level."""
        self._reporter = reporter
        self._resources = resources = Resources.of(served)
        self.answers = Answers(served, resources.methods if resources else None)
        self.parts = [(running.toolset, ThreadBridge(running.target)) for running in served]
        """Each toolset, with the bridge to the object that its tools call."""
        self._bridge = ThreadBridge(self.answers)
        self._connections: dict[Connection, Unread | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._standing: set[asyncio.Future[None]] = set()
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=MAX_STREAMS)
        self.server: Server[Connection] = Server(
            protocol.NAME,
            version=__version__,
            title=self.answers.title,
            instructions=self.answers.instructions,
            lifespan=self._connection,
            description=protocol.DESCRIPTION,
            website_url=protocol.WEBSITE_URL,
            icons=[types.Icon.model_validate(icon) for icon in protocol.ICONS],
            cache_hints={"server/discover": CacheHint(protocol.DISCOVER_TTL_MS, "private")},
            on_subscriptions_listen=self._listening if resources else None,
        )
        self.server.middleware.append(self._reworded)
        if resources is not None:
            self.server.extensions[protocol.SKILLS_EXTENSION] = {}
        of_connection = connection_methods(resources) if standing else frozenset()
        # Handlers are added by name, not by the SDK's arguments: so they may return a dict, and there are no warnings
        # about requests of older clients.
        for method in self.answers.methods.keys() | of_connection:
            answer = self._answer_connection if method in of_connection else self._answer
            self.server.add_request_handler(method, types.RequestParams, answer)
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)

    async def describe(self) -> None:
        """Put the topics of the documents before the instructions, as soon as the documents can be read."""
        await self._bridge.call("topics", Answers.describe)
        self.server.instructions = self.answers.instructions

    def close(self) -> None:
        """End the streams of changes, and standing connections."""
        self._listening.close()
        for standing in list(self._standing):
            standing.cancel()

    async def serve(self, read: Any, write: Any) -> None:
        """Answer the client of a standing connection until it leaves or the app is closed. ``read`` and ``write`` are
        streams of the SDK."""
        client = Unread(write)
        _CLIENT.set(client)
        changes = NotificationOptions(resources_changed=self._resources is not None)
        options = self.server.create_initialization_options(changes)
        standing = asyncio.ensure_future(self.server.run(read, client, options))
        self._standing.add(standing)
        try:
            await standing
        except asyncio.CancelledError:
            event(logging.DEBUG, "stopped")
        finally:
            self._standing.discard(standing)

    async def changed(self, changes: Changes) -> None:
        """Tell the clients that listen of changed pages."""
        if self._resources is None:
            return
        uris, is_listed = self._resources.changed_uris(changes), bool(changes.added or changes.removed)
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri))
        if is_listed:
            await self._bus.publish(ResourcesListChanged())
        for connection in list(self._connections):
            connection.changed(uris, is_listed)

    def log_to_clients(self, message: str) -> None:
        for connection in list(self._connections):
            connection.log(message)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` as a task of the event loop. Its exceptions are logged."""

        async def run() -> None:
            try:
                await work
            except Exception as error:
                event(logging.DEBUG, "a client could not be notified", error=type(error).__name__)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)  # a task that only the event loop knows may be collected as garbage
        task.add_done_callback(self._tasks.discard)

    @asynccontextmanager
    async def _connection(self, _: Server[Connection]) -> AsyncIterator[Connection]:
        """A context for the life of a connection. Stateless connections share one."""
        connection = Connection()
        self._connections[connection] = _CLIENT.get()
        try:
            yield connection
        finally:
            del self._connections[connection]

    async def _initialized(self, ctx: RequestContext, _: types.NotificationParams) -> None:
        """Note that a client is ready. From now on it gets notifications, if its connection stays open."""
        if ctx.session.can_send_request:
            ctx.lifespan_context.send = self._sender(ctx.session)

    def _sender(self, session: ServerSession, request: types.RequestId | None = None) -> Callable[[str, Any], None]:
        """A function that sends notifications, to be called in the thread of the event loop. With ``request``, they
        are about this request."""

        def send(method: str, params: dict[str, Any]) -> None:
            notification: Any = MONOLITH_NOTIFICATIONS[method].model_validate({"method": method, "params": params})
            self.start(session.send_notification(notification, request))

        return send

    async def _answer_connection(self, ctx: RequestContext, _: types.RequestParams) -> dict[str, Any]:
        return ctx.lifespan_context.answer(ctx.method, dict(ctx.params or {}), self._resources)

    async def _answer(self, ctx: RequestContext, _: types.RequestParams) -> dict[str, Any]:
        client = self._connections.get(ctx.lifespan_context)
        token = ctx.meta.get("progress_token") if ctx.meta else None
        send = partial(_in_loop, asyncio.get_running_loop(), self._sender(ctx.session, ctx.request_id))
        with self._reporter.sent(token, send):
            async with client.request() if client is not None else contextlib.nullcontext():
                return await self._bridge.run(lambda answers: answers.answer(ctx.method, dict(ctx.params or {})))

    async def _reworded(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """The result of ``call_next``, with errors whose messages say what to do.

        The SDK answers exceptions that are not its own with code 0 and the text of the exception, which may be empty.
        """
        try:
            return await call_next(ctx)
        except ProtocolError as error:
            raise _sdk_error(error) from None
        except MCPError as error:
            if error.code == protocol.METHOD_NOT_FOUND:
                raise _sdk_error(self.answers.unknown(ctx.method)) from None
            message = SDK_MESSAGES.get(error.message)
            if message is None:
                raise
            raise MCPError(error.code, message) from None
        except ValidationError as error:
            raise MCPError(protocol.INVALID_PARAMS, _invalid_params_message(error)) from None
        except Exception as error:
            raise _sdk_error(unexpected(ctx.method, error)) from error


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all connections
        loop.call_soon_threadsafe(function, *arguments)


def _sdk_error(error: ProtocolError) -> MCPError:
    return MCPError(error.code, error.message, error.data)


def _invalid_params_message(error: ValidationError) -> str:
    """The message for the first error in the parameters of a request, without the value."""
    [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
    member_path = ".".join(map(str, first["loc"]))[:MAX_SHOWN_PLACE_CHARS]
    return f"Invalid request parameters: {member_path or 'params'}: {first['msg']}."


@asynccontextmanager
async def running_app(
    served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True
) -> AsyncIterator[App]:
    """A context with the app for the toolsets ``served``, in the running event loop. ``standing``: whether its
    connections stay open."""
    app = App(served, reporter, standing)
    in_loop = partial(_in_loop, asyncio.get_running_loop())
    reporter.log_to_clients = lambda message: in_loop(app.log_to_clients, message)
    describing = asyncio.ensure_future(app.describe())
    with contextlib.ExitStack() as listening:
        for running in served:
            if running.toolset.has_pages:  # the function is called in the thread that updated the pages
                listening.callback(
                    running.target.on_change(lambda changes: in_loop(lambda: app.start(app.changed(changes))))
                )
        try:
            yield app
        finally:
            describing.cancel()
            reporter.log_to_clients = None
            app.close()
