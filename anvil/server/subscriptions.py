"""The open connections: their subscriptions, and the log messages that are sent to them."""

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
    """One connection: the URIs that it subscribed to, and its lowest level of log messages."""

    session: ServerSession | None = None
    uris: set[str] = field(default_factory=set)
    level: str = "info"


class Connections:
    """The open connections. Nothing can be sent to a listener without a session."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()

    @asynccontextmanager
    async def connection(self, _: Server[Listener]) -> AsyncIterator[Listener]:
        """A context for the life of a connection. Stateless connections share one."""
        listener = Listener()
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    async def initialized(self, ctx: RequestContext, _: types.NotificationParams) -> None:
        """A client is ready. From now on it gets notifications, if its connection stays open."""
        if ctx.session.can_send_request:
            ctx.lifespan_context.session = ctx.session

    async def set_level(self, ctx: RequestContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Set the lowest level of log messages for this connection."""
        ctx.lifespan_context.level = params.level
        return types.EmptyResult()

    async def log_to_clients(self, message: str) -> None:
        """Send a log message of level info to the connections that ask for this level."""
        for listener in list(self.listeners):
            if listener.session is not None and LEVELS.index(listener.level) <= LEVELS.index("info"):
                params = types.LoggingMessageNotificationParams(level="info", logger="anvil", data=message)
                await listener.session.send_notification(types.LoggingMessageNotification(params=params))
