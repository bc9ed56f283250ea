"""The SDK's server object over some surfaces: tools, prompts (there are none), resources, logging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp.types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from anvil import __version__
from anvil.errors import AnvilError
from anvil.server.announcing import Announcer
from anvil.server.arguments import WrongArguments
from anvil.server.connections import Connections, Context, Listener
from anvil.server.crossing import Crossing
from anvil.server.greeting import NAME, Introduction
from anvil.server.logs import log
from anvil.server.resources import Resources
from anvil.server.schemas import output_schema, plain, structured, text
from anvil.server.surface import Served, Surface, Tool

HOUR = 3_600_000
"""Milliseconds for which a client may keep the tool list, which no running server changes."""


class App:
    """Surfaces behind the protocol; :attr:`server` is run by any transport, by several at once."""

    def __init__(self, served: Sequence[Served], announcer: Announcer) -> None:
        self._announcer = announcer
        self.parts = [(each.surface, Crossing(each.subject)) for each in served]
        """Each surface, and the way to its object."""
        self._tools: dict[str, tuple[Tool, Surface, Crossing]] = {}
        for surface, crossing in self.parts:
            assert not self._tools.keys() & {tool.name for tool in surface.tools}
            self._tools |= {tool.name: (tool, surface, crossing) for tool in surface.tools}
        connections = Connections()
        announcer.tell_log = connections.tell_log
        introduction = Introduction.of([surface for surface, _ in self.parts])
        pages = [Resources(crossing, connections) for surface, crossing in self.parts if surface.pages]
        self.resources = pages[0] if pages else None
        self.server: Server[Listener] = Server(
            NAME,
            version=__version__,
            title=introduction.title,
            instructions=introduction.instructions,
            lifespan=connections.connection,
            cache_hints={"tools/list": CacheHint(HOUR, "public")},
            on_list_tools=self._list_tools,
            on_list_prompts=self._list_prompts,
            **(pages[0].handlers() if pages else {}),
        )
        # by name, since the constructor warns of what newer revisions of the protocol dropped: older clients use it
        add = self.server.add_request_handler
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
                name=tool.name, title=tool.title, description=tool.description, input_schema=tool.input_schema(),
                output_schema=output_schema(tool.result), annotations=hints(tool),
            )
            for tool, _, _ in self._tools.values()
        ]  # fmt: skip

    async def _list_tools(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tool_list())

    async def _list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | dict[str, Any]:
        """Run a tool. What it refuses is a tool error that a model can read; a call that does not fit the tool's
        schema is an error of the protocol."""
        if params.name not in self._tools:
            return refusal(f"There is no tool {params.name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, surface, crossing = self._tools[params.name]
        unwatch = self._watch(ctx)
        try:
            call = tool.prepared(params.arguments or {})
            return answer(await crossing.ask(tool.name, call))
        except WrongArguments as error:
            if surface.error_values:
                return refusal(str(error), surface)
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except AnvilError as error:
            return refusal(str(error), surface)
        except Exception as error:
            log.exception("%s failed", tool.name)
            told = f"{tool.name} failed inside the server ({type(error).__name__}). Its log says where."
            return refusal(told, surface)
        finally:
            unwatch()

    def _watch(self, ctx: Context) -> Any:
        """Tell the caller how far long work is, when the call asks for it."""
        token = ctx.meta.get("progress_token") if ctx.meta else None
        if token is None:
            return lambda: None

        async def tell(done: float, total: float, message: str) -> None:
            told = types.ProgressNotificationParams(progress_token=token, progress=done, total=total, message=message)
            await ctx.session.send_notification(types.ProgressNotification(params=told), ctx.request_id)

        return self._announcer.watch(tell)


def hints(tool: Tool) -> types.ToolAnnotations:
    """What a client may tell its user about a tool."""
    if not tool.writes:
        return types.ToolAnnotations(read_only_hint=True)
    return types.ToolAnnotations(
        read_only_hint=False, destructive_hint=tool.destructive, idempotent_hint=tool.idempotent,
        open_world_hint=tool.open_world,
    )  # fmt: skip


def answer(result: Any) -> dict[str, Any]:
    """A result as structured content, and the same JSON as text; an array stands in the text as it is.

    Spelled as on the wire: the SDK checks that too, but its own model it would take apart first, value by value.
    """
    value = plain(result)
    return {
        "content": [{"type": "text", "text": text(value)}], "structuredContent": structured(value),
        "isError": False, "resultType": "complete",
    }  # fmt: skip


def refusal(message: str, surface: Surface | None = None) -> types.CallToolResult:
    """An error that the caller can act on."""
    if surface is None or not surface.error_values:
        return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
    value = {"status": "error", "error": message}
    return types.CallToolResult(
        content=[types.TextContent(text=text(value))], structured_content=value, is_error=True
    )
