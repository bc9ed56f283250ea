"""The SDK's server object over some toolsets: tools, resources, logging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp.types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from anvil._version import __version__
from anvil.errors import AnvilError
from anvil.interfaces.mcp_server.arguments import InvalidArguments
from anvil.interfaces.mcp_server.initialize import NAME, InitializeReply
from anvil.interfaces.mcp_server.logs import log
from anvil.interfaces.mcp_server.progress import ProgressReporter
from anvil.interfaces.mcp_server.resources import Resources
from anvil.interfaces.mcp_server.schemas import output_schema, plain, structured, text
from anvil.interfaces.mcp_server.subscriptions import Connections, Listener, RequestContext
from anvil.interfaces.mcp_server.threads import ThreadBridge
from anvil.interfaces.mcp_server.tools.toolset import RunningToolset, Tool, Toolset

TOOL_LIST_TTL_MS = 3_600_000
"""Milliseconds for which a client may keep the tool list, which no running server changes."""


class App:
    """Toolsets behind the protocol; :attr:`server` is run by any transport, by several at once."""

    def __init__(self, served: Sequence[RunningToolset], reporter: ProgressReporter, standing: bool = True) -> None:
        """``standing``: connections last, so that a subscription and a level of logging can be kept."""
        self._reporter = reporter
        self.parts = [(each.toolset, ThreadBridge(each.target)) for each in served]
        """Each toolset, and the way to its object."""
        self._tools: dict[str, tuple[Tool, Toolset, ThreadBridge]] = {}
        for toolset, bridge in self.parts:
            assert not self._tools.keys() & {tool.name for tool in toolset.tools}
            self._tools |= {tool.name: (tool, toolset, bridge) for tool in toolset.tools}
        connections = Connections()
        reporter.log_to_clients = connections.log_to_clients
        introduction = InitializeReply.for_toolsets([toolset for toolset, _ in self.parts])
        pages = [Resources(bridge, connections) for toolset, bridge in self.parts if toolset.has_pages]
        self.resources = pages[0] if pages else None
        self.server: Server[Listener] = Server(
            NAME,
            version=__version__,
            title=introduction.title,
            instructions=introduction.instructions,
            lifespan=connections.connection,
            cache_hints={"tools/list": CacheHint(TOOL_LIST_TTL_MS, "public")},
            on_list_tools=self._list_tools,
            **(pages[0].handlers(standing) if pages else {}),
        )
        # by name, since the constructor warns of what newer revisions of the protocol dropped: older clients use it
        add = self.server.add_request_handler
        if standing:
            add("logging/setLevel", types.SetLevelRequestParams, connections.set_level)
        add("tools/call", types.CallToolRequestParams, self._call_tool)  # so too, since it may then answer with a dict
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, connections.initialized
        )

    def close(self) -> None:
        """End the streams of changes."""
        if self.resources is not None:
            self.resources.close()

    def options(self) -> InitializationOptions:
        """What ``initialize`` is answered with on a standing connection."""
        return self.server.create_initialization_options(
            NotificationOptions(resources_changed=self.resources is not None)
        )

    def tool_list(self) -> list[types.Tool]:
        """The tools as clients see them."""
        return [
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.input_schema(),
                output_schema=output_schema(tool.result),
                annotations=hints(tool),
            )
            for tool, _, _ in self._tools.values()
        ]

    async def _list_tools(
        self, _: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tool_list())

    async def _call_tool(
        self, ctx: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | dict[str, Any]:
        """Run a tool. Every refusal, wrong arguments included (SEP-1303), is a result that the model can read and
        correct; only a malformed request is an error of the protocol."""
        if params.name not in self._tools:
            return refusal(f"There is no tool {params.name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, toolset, bridge = self._tools[params.name]
        unwatch = self._watch(ctx)
        try:
            call = tool.bind(params.arguments or {})
            return answer(await bridge.call(tool.name, call))
        except (InvalidArguments, AnvilError) as error:
            return refusal(str(error), toolset)
        except Exception as error:
            log.exception("%s failed", tool.name)
            told = f"{tool.name} failed inside the server ({type(error).__name__}). Its log says where."
            return refusal(told, toolset)
        finally:
            unwatch()

    def _watch(self, ctx: RequestContext) -> Any:
        """Tell the caller how far long work is, when the call asks for it."""
        token = ctx.meta.get("progress_token") if ctx.meta else None
        if token is None:
            return lambda: None

        async def tell(done: float, total: float, message: str) -> None:
            told = types.ProgressNotificationParams(progress_token=token, progress=done, total=total, message=message)
            await ctx.session.send_notification(types.ProgressNotification(params=told), ctx.request_id)

        return self._reporter.watch(tell)


def hints(tool: Tool) -> types.ToolAnnotations:
    """What a client may tell its user about a tool."""
    if not tool.writes:
        return types.ToolAnnotations(read_only_hint=True)
    return types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=tool.open_world,
    )


def answer(result: Any) -> dict[str, Any]:
    """A result as structured content, and the same JSON as text; an array stands in the text as it is.

    Spelled as on the wire: the SDK checks that too, but its own model it would take apart first, value by value.
    """
    value = plain(result)
    return {
        "content": [{"type": "text", "text": text(value)}],
        "structuredContent": structured(value),
        "isError": False,
        "resultType": "complete",
    }


def refusal(message: str, toolset: Toolset | None = None) -> types.CallToolResult:
    """An error that the caller can act on."""
    if toolset is None or not toolset.errors_as_values:
        return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
    value = {"status": "error", "error": message}
    return types.CallToolResult(content=[types.TextContent(text=text(value))], structured_content=value, is_error=True)
