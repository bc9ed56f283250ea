"""The standing connections, and the log messages that are sent to those that want to hear them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

RequestContext = ServerRequestContext["Listener", Any]


@dataclass(eq=False)
class Listener:
    """One standing connection: what it subscribed to, and the least level of log messages it wants."""

    session: ServerSession | None = None
    uris: set[str] = field(default_factory=set)
    level: str = "info"


class Connections:
    """Who is connected. ``listeners`` without a session cannot be told anything (yet)."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()

    @asynccontextmanager
    async def connection(self, _: Server[Listener]) -> AsyncIterator[Listener]:
        """The life of a connection (of all connections together, where they are stateless)."""
        listener = Listener()
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    async def initialized(self, ctx: RequestContext, _: types.NotificationParams) -> None:
        """A client is ready; it can be told of changes when its connection stands."""
        if ctx.session.can_send_request:
            ctx.lifespan_context.session = ctx.session

    async def set_level(self, ctx: RequestContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """The least level of log messages that this connection wants."""
        ctx.lifespan_context.level = params.level
        return types.EmptyResult()

    async def log_to_clients(self, message: str) -> None:
        """A log message to the standing connections that want to hear of it."""
        for listener in list(self.listeners):
            if listener.session is not None and LEVELS.index(listener.level) <= LEVELS.index("info"):
                told = types.LoggingMessageNotificationParams(level="info", logger="anvil", data=message)
                await listener.session.send_notification(types.LoggingMessageNotification(params=told))
