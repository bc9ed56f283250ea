"""The SDK's server object over one index: tools, prompts (there are none), resources, logging."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
from anvil.server.crossing import Crossing
from anvil.server.docs import INSTRUCTIONS, TOOLS, Tool
from anvil.server.greeting import NAME, TITLE
from anvil.server.logs import log
from anvil.server.resources import Context, Listener, Resources
from anvil.server.schemas import output_schema, plain

READ_ONLY = types.ToolAnnotations(read_only_hint=True)
HOUR = 3_600_000
"""Milliseconds for which a client may keep the tool list, which no running server changes."""


class App:
    """One index behind the protocol; :attr:`server` is run by any transport, by several at once."""

    def __init__(self, crossing: Crossing, announcer: Announcer, tools: Iterable[Tool] = TOOLS) -> None:
        self._crossing = crossing
        self._announcer = announcer
        self._tools = {tool.name: tool for tool in tools}
        self.resources = Resources(crossing)
        announcer.tell_log = self.resources.tell_log
        pages = self.resources
        self.server: Server[Listener] = Server(
            NAME,
            version=__version__,
            title=TITLE,
            instructions=INSTRUCTIONS,
            lifespan=pages.connection,
            cache_hints={"tools/list": CacheHint(HOUR, "public")},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_list_resources=pages.list,
            on_list_resource_templates=pages.templates,
            on_read_resource=pages.read,
            on_subscribe_resource=pages.subscribe,
            on_unsubscribe_resource=pages.unsubscribe,
            on_subscriptions_listen=pages.listen,
            on_completion=pages.complete,
        )
        # by name, since the constructor warns of what newer revisions of the protocol dropped: older clients use it
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, pages.set_level)
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, pages.initialized)

    def options(self) -> InitializationOptions:
        """What ``initialize`` is answered with on a standing connection."""
        return self.server.create_initialization_options(NotificationOptions(resources_changed=True))

    def tool_list(self) -> list[types.Tool]:
        """The tools as clients see them."""
        return [
            types.Tool(
                name=tool.name, title=tool.title, description=tool.description, input_schema=tool.input_schema(),
                output_schema=output_schema(tool.result), annotations=READ_ONLY,
            )
            for tool in self._tools.values()
        ]  # fmt: skip

    async def _list_tools(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tool_list())

    async def _list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run a tool. What it refuses is a tool error that a model can read; a call that does not fit the tool's
        schema is an error of the protocol."""
        tool = self._tools.get(params.name)
        if tool is None:
            return refusal(f"There is no tool {params.name[:60]!r}. Use one of {', '.join(self._tools)}.")
        unwatch = self._watch(ctx)
        try:
            call = tool.prepared(params.arguments or {})
            return answer(await self._crossing.ask(tool.name, call))
        except WrongArguments as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except AnvilError as error:
            return refusal(str(error))
        except Exception as error:
            log.exception("%s failed", tool.name)
            return refusal(f"{tool.name} failed inside the server ({type(error).__name__}). Its log says where.")
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


def answer(result: Any) -> types.CallToolResult:
    """A result as structured content, and the same JSON as text."""
    value = plain(result)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=value)


def refusal(message: str) -> types.CallToolResult:
    """An error that the caller can act on."""
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
