"""The answers of the server, as JSON values in the form of the newest revision of the protocol, without the SDK.

Over stdio :mod:`anvil.server.stdio` sends them, over HTTP and SSE the SDK (:mod:`anvil.server.mcp_app`). Both leave out
what an older revision does not have.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from anvil._version import __version__
from anvil.errors import AnvilError
from anvil.formats.data_formats import compact, plain
from anvil.server.logs import Send, timed
from anvil.server.page_resources import SKILLS_EXTENSION, Resources
from anvil.server.protocol_errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ProtocolError,
    member,
    unexpected,
)
from anvil.server.toolset import ARRAY_KEY, InvalidArguments, RunningToolset, Tool, Toolset, output_schema

NAME = "anvil"
WEBSITE_URL = "https://anvil-docs.github.io/anvil/"
DESCRIPTION = "Search and read documentation, compared with its files before each answer."
_ICON = base64.b64encode((Path(__file__).parent / "ui" / "anvil.svg").read_bytes()).decode()
ICONS = [{"src": f"data:image/svg+xml;base64,{_ICON}", "mimeType": "image/svg+xml", "sizes": ["any"]}]
"""The icon, whole, because a server may have no network."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``. Any other revision is answered with the newest of these."""
MODERN_VERSION = "2026-07-28"
"""The revision without a handshake: each request names its revision."""
TOOL_LIST_TTL_MS = 3_600_000
"""Time for which a client may cache the tool list. A running server does not change it."""
DISCOVER_TTL_MS = 60_000
"""Time for which a client may keep the server's description: its instructions name pages."""
NOT_INITIALIZED = "This connection is not initialized. Send initialize first."
TOO_MANY_STREAMS = "There are as many streams of changes as there can be. Cancel one before you ask for another."
MAX_SHOWN_METHOD_CHARS = 60


class Answers:
    """The answers to the requests of any client of some toolsets. They may be asked for from any thread."""

    def __init__(self, running: Sequence[RunningToolset]) -> None:
        toolsets = [served.toolset for served in running]
        self.title = toolsets[0].title if len(toolsets) == 1 else "Anvil"
        self.instructions = "\n\n".join(toolset.instructions for toolset in toolsets)
        self._running = running
        self._tools = {tool.name: (tool, served) for served in running for tool in served.toolset.tools}
        assert len(self._tools) == sum(len(toolset.tools) for toolset in toolsets)  # no two have a tool of one name
        pages = [served.target for served in running if served.toolset.has_pages]
        self.resources = Resources(pages[0]) if pages else None
        self.methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            **(self.resources.methods if self.resources else {}),
        }

        """The methods that :meth:`answer` has in all revisions of the protocol."""

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises :class:`ProtocolError`."""
        if method not in self.methods:
            raise self.unknown(method)
        if method == "tools/call":  # it logs its time itself
            return self._call_tool(params)
        with timed(method):
            return self.methods[method](params)

    def unknown(self, method: str) -> ProtocolError:
        shown = method if len(method) <= MAX_SHOWN_METHOD_CHARS else f"{method[:MAX_SHOWN_METHOD_CHARS]}..."
        message = f"Method not found: {shown!r}. This server answers {', '.join(self.methods)}."
        return ProtocolError(METHOD_NOT_FOUND, message, shown)

    def describe(self) -> None:
        """Let the instructions begin with what the documents are about. It waits until they can be read."""
        described = []
        for served in self._running:
            toolset = served.toolset
            if toolset.topics is not None:
                with contextlib.suppress(AnvilError):  # each question says it
                    toolset = toolset.about(toolset.topics(served.target))
            described.append(toolset.instructions)
        self.instructions = "\n\n".join(described)

    def server_info(self) -> dict[str, Any]:
        return {
            "name": NAME,
            "title": self.title,
            "version": __version__,
            "description": DESCRIPTION,
            "websiteUrl": WEBSITE_URL,
            "icons": ICONS,
        }

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to ``initialize`` on a connection that stays open."""
        version = member(params, "protocolVersion", str)
        client = member(params, "clientInfo", dict)
        member(client, "name", str), member(client, "version", str), member(params, "capabilities", dict)
        return {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities(tools_change=False),
            "serverInfo": self.server_info(),
            "instructions": self.instructions,
        }

    def _capabilities(self, tools_change: bool) -> dict[str, Any]:
        pages = {"completions": {}, "resources": {"listChanged": True, "subscribe": True}} if self.resources else {}
        return {**pages, "logging": {}, "tools": {"listChanged": tools_change}}

    def discover(self) -> dict[str, Any]:
        """The answer to ``server/discover`` on a connection that stays open."""
        has_pages = self.resources is not None
        extensions: dict[str, Any] = {"extensions": {SKILLS_EXTENSION: {}}} if has_pages else {}
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self._capabilities(tools_change=has_pages) | extensions,
            "instructions": self.instructions,
            "resultType": "complete",
            "ttlMs": DISCOVER_TTL_MS,
            "cacheScope": "private",
        }

    def _list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        member(params, "cursor", str, optional=True)
        tools = [described(tool, served.toolset) for tool, served in self._tools.values()]
        return {"tools": tools, "resultType": "complete", "ttlMs": TOOL_LIST_TTL_MS, "cacheScope": "public"}

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run a tool. Errors, also for wrong arguments, are results. Only a malformed request is a protocol error."""
        name = member(params, "name", str)
        arguments = member(params, "arguments", dict, optional=True)
        if name not in self._tools:
            return refusal(f"There is no tool {name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, served = self._tools[name]
        try:
            call = tool.bind(arguments or {})
            with timed(name):
                return called(call(served.target), served.toolset.render)
        except Exception as error:
            return failure(error, tool, served.toolset)


def described(tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """A tool as clients see it; without the schema of a structured result where results are text alone."""
    output = {"outputSchema": output_schema(tool.result_type)} if toolset.render is None else {}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema(),
        **output,
        "annotations": hints(tool),
    }


def hints(tool: Tool) -> dict[str, bool]:
    """The annotations of a tool: whether it only reads, may delete, may be repeated, reaches the network."""
    if not tool.writes:
        return {"readOnlyHint": True}
    return {
        "readOnlyHint": False,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }


def called(result: Any, render: Callable[[Any], str] | None = None) -> dict[str, Any]:
    """A result as structured content, and the same JSON as text. In the text, an array is not wrapped in an object.
    ``render``: its text, which is then all that is sent."""
    if render is not None:
        return _said(render(result))
    value = plain(result, lean=True)
    structured = {ARRAY_KEY: value} if isinstance(value, list) else value
    return {**_said(compact(value)), "structuredContent": structured}


def _said(message: str, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": is_error, "resultType": "complete"}


def refusal(message: str, toolset: Toolset | None = None) -> dict[str, Any]:
    """An error as a result of the call, which the model reads (SEP-1303)."""
    if toolset is None or not toolset.errors_as_values:
        return _said(message, is_error=True)
    return {**called({"status": "error", "error": message}, toolset.render), "isError": True}


def failure(error: Exception, tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """What a tool raised, as a result of the call: the reason, or where an unexpected error is described."""
    is_expected = isinstance(error, (InvalidArguments, AnvilError))
    return refusal(str(error if is_expected else unexpected(tool.name, error)), toolset)


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
MAX_OPEN_REQUESTS = 256
"""Of one client, without an answer. Over a pipe no further line is read then; elsewhere further ones are refused."""
MAX_SUBSCRIPTIONS, MAX_STREAMS = 10_000, 64
"""Pages that one connection may subscribe to, and streams of changes at once."""


class Subscriptions:
    """The pages that a client hears of; ``has_list``: also of added or removed ones. ``meta``: in each notification."""

    def __init__(self, send: Send | None = None, uris: Iterable[str] = (), has_list: bool = True, **meta: Any) -> None:
        self.send, self.uris = send, set(uris)
        self._has_list, self._meta = has_list, meta

    def changed(self, uris: Iterable[str], is_listed: bool) -> None:
        """Tell of changed pages. ``is_listed``: pages were added or removed, so the list changed too."""
        if self.send is not None:
            for uri in uris:
                if uri in self.uris:
                    self.send("notifications/resources/updated", {"uri": uri, **self._meta})
            if is_listed and self._has_list:
                self.send("notifications/resources/list_changed", self._meta)


class Connection(Subscriptions):
    """One open connection, with its lowest level of log messages. ``send`` is None until the client is ready."""

    def __init__(self) -> None:
        super().__init__()
        self._level = "info"

    def answer(self, method: str, params: dict[str, Any], resources: Resources | None) -> dict[str, Any]:
        """The answer to one of :data:`CONNECTION_METHODS`. A page that is subscribed to need not exist yet."""
        if method == "logging/setLevel":
            if params.get("level") not in LEVELS:
                raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: level is one of {', '.join(LEVELS)}.")
            self._level = params["level"]
            return {}
        uri = member(params, "uri", str)
        if method == "resources/unsubscribe":
            self.uris.discard(uri)
            return {}
        assert resources is not None
        resources.path_of(uri)
        if len(self.uris) >= MAX_SUBSCRIPTIONS:
            raise ProtocolError(INVALID_REQUEST, "Too many subscriptions on one connection. Unsubscribe from some.")
        self.uris.add(uri)
        return {}

    def log(self, message: str) -> None:
        """Send a log message of level info, if the client asks for this level."""
        if self.send is not None and LEVELS.index(self._level) <= LEVELS.index("info"):
            self.send("notifications/message", {"level": "info", "logger": "anvil", "data": message})


def connection_methods(resources: Resources | None) -> frozenset[str]:
    """The methods of a connection that stays open, up to revision 2025-11-25 of the protocol."""
    subscriptions = {"resources/subscribe", "resources/unsubscribe"} if resources is not None else set()
    return frozenset({"logging/setLevel", *subscriptions})
