"""The SDK's server object with the tools, resources and log levels of some toolsets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from anvil._version import __version__
from anvil.errors import AnvilError
from anvil.server.initialize import DESCRIPTION, ICONS, NAME, WEBSITE_URL, InitializeReply
from anvil.server.progress import ProgressReporter
from anvil.server.resources import Connections, Listener, RequestContext, Resources
from anvil.server.threads import ThreadBridge
from anvil.server.tool_results import answer, described, failure, refusal
from anvil.server.toolset import RunningToolset, Tool, Toolset
from anvil.values import Changes

TOOL_LIST_TTL_MS = 3_600_000
"""Time for which a client may cache the tool list. A running server does not change it."""

DISCOVER_TTL_MS = 60_000
"""Time for which a client may keep the server's description: its instructions name pages."""


class App:
    """Toolsets behind the protocol. Any transport, or several at once, can run :attr:`server`."""

    def __init__(self, served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True) -> None:
        """``standing``: connections stay open, so each can have subscriptions and a log level."""
        self._reporter = reporter
        self.parts = [(running.toolset, ThreadBridge(running.target)) for running in served]
        """Each toolset, with the bridge to its object."""
        self._tools: dict[str, tuple[Tool, Toolset, ThreadBridge]] = {}
        for toolset, bridge in self.parts:
            assert not self._tools.keys() & {tool.name for tool in toolset.tools}
            self._tools |= {tool.name: (tool, toolset, bridge) for tool in toolset.tools}
        connections = Connections()
        reporter.log_to_clients = connections.log_to_clients
        reply = InitializeReply.for_toolsets([toolset for toolset, _ in self.parts])
        pages = [Resources(bridge, connections) for toolset, bridge in self.parts if toolset.has_pages]
        self.resources = pages[0] if pages else None
        self.server: Server[Listener] = Server(
            NAME,
            version=__version__,
            title=reply.title,
            instructions=reply.instructions,
            lifespan=connections.connection,
            description=DESCRIPTION,
            website_url=WEBSITE_URL,
            icons=[types.Icon.model_validate(icon) for icon in ICONS],
            cache_hints={
                "server/discover": CacheHint(DISCOVER_TTL_MS, "private"),
                "tools/list": CacheHint(TOOL_LIST_TTL_MS, "public"),
                "resources/templates/list": CacheHint(TOOL_LIST_TTL_MS, "public"),
            },
            on_list_tools=self._list_tools,
            **(pages[0].handlers(standing) if pages else {}),
        )
        # Added by name: the constructor warns about requests that newer revisions dropped, and older clients send them.
        add = self.server.add_request_handler
        if self.resources is not None:
            self.resources.skills.serve(self.server)
        if standing:
            add("logging/setLevel", types.SetLevelRequestParams, connections.set_level)
        add("tools/call", types.CallToolRequestParams, self._call_tool)  # by name, it may return a dict
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, connections.initialized
        )

    async def describe(self) -> None:
        """Let the instructions begin with what the documents are about, as soon as they can be read."""
        described = []
        for toolset, bridge in self.parts:
            if toolset.topics is not None:
                with contextlib.suppress(AnvilError):  # each question says it
                    toolset = toolset.about(await bridge.call("topics", toolset.topics))
            described.append(toolset)
        self.server.instructions = InitializeReply.for_toolsets(described).instructions

    def close(self) -> None:
        """End the streams of changes."""
        if self.resources is not None:
            self.resources.close()

    def options(self) -> InitializationOptions:
        """The options of the SDK for an open connection."""
        return self.server.create_initialization_options(
            NotificationOptions(resources_changed=self.resources is not None)
        )

    async def _list_tools(
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(described(tool)) for tool, _, _ in self._tools.values()]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(self, ctx: RequestContext, params: types.CallToolRequestParams) -> dict[str, Any]:
        """Run a tool. Errors, also for wrong arguments, are results. Only a malformed request is a protocol error."""
        if params.name not in self._tools:
            return refusal(f"There is no tool {params.name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, toolset, bridge = self._tools[params.name]
        unwatch = self._watch(ctx)
        try:
            call = tool.bind(params.arguments or {})
            return answer(await bridge.call(tool.name, call))
        except Exception as error:
            return failure(error, tool, toolset)
        finally:
            unwatch()

    def _watch(self, ctx: RequestContext) -> Any:
        """Send progress to the caller, if the request has a progress token. Returns the function that ends it."""
        token = ctx.meta.get("progress_token") if ctx.meta else None
        if token is None:
            return lambda: None

        async def notify(done: float, total: float, message: str) -> None:
            params = types.ProgressNotificationParams(progress_token=token, progress=done, total=total, message=message)
            await ctx.session.send_notification(types.ProgressNotification(params=params), ctx.request_id)

        return self._reporter.watch(notify)


@asynccontextmanager
async def running_app(
    served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True
) -> AsyncIterator[App]:
    """The app for the toolsets ``served``, in the running event loop. ``standing``: its connections stay open."""
    app = App(served, reporter, standing)
    loop = asyncio.get_running_loop()

    def notify(changes: Changes) -> None:
        if app.resources is not None:
            paths = (*changes.changed, *changes.added, *changes.removed)
            reporter.start(app.resources.changed(paths, bool(changes.added or changes.removed)))

    def changed(changes: Changes) -> None:  # called in the thread that updated the pages
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and with it all connections
            loop.call_soon_threadsafe(notify, changes)

    reporter.attach()
    describing = asyncio.ensure_future(app.describe())
    with contextlib.ExitStack() as listening:
        for running in served:
            if running.toolset.has_pages:
                listening.callback(running.target.on_change(changed))
        try:
            yield app
        finally:
            describing.cancel()
            reporter.detach()
            app.close()
