"""The answers of the protocol as JSON: ``initialize``, the list of tools, results and errors of tools. Without the SDK.

They have the form of the newest revision. Over stdio :mod:`anvil.server.stdio` sends them, over HTTP and SSE the SDK
(:mod:`anvil.server.mcp_app`). Both leave out the members that an older revision does not have.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anvil._version import __version__
from anvil.errors import AnvilError
from anvil.formats.characters import is_unicode
from anvil.formats.data_formats import compact, no_constant, plain
from anvil.server.logs import log
from anvil.server.tool_calls import timed
from anvil.server.toolset import ARRAY_KEY, KINDS, RunningToolset, Tool, Toolset, output_schema

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
"""Error codes of JSON-RPC."""


class ProtocolError(AnvilError):
    """An error of JSON-RPC in place of a result: its code, message and data.

    ``request``: the id of the request, for a message that is not valid and of which the id could be read.
    """

    def __init__(self, code: int, message: str, data: Any = None, request: int | str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.request = code, message, data, request

    def answer(self, request: int | str | None) -> dict[str, Any]:
        """The answer to the request with this id."""
        data = {} if self.data is None else {"data": self.data}
        return {"jsonrpc": "2.0", "id": request, "error": {"code": self.code, "message": self.message, **data}}


def parsed_message(text: bytes) -> dict[str, Any]:
    """The message in a line or a body: a request, a notification or an answer. Raises :class:`ProtocolError`."""
    try:
        message = json.loads(text.decode("utf-8-sig"), parse_constant=no_constant)
        request = message.get("id") if isinstance(message, dict) else None
        request = request if type(request) is int or (type(request) is str and is_unicode(request)) else None
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # such as a text that a client has cut inside an emoji
        problem = "Parse error: a text has half of a surrogate pair, which is no character."
        raise ProtocolError(PARSE_ERROR, problem, request=request) from None
    except (ValueError, RecursionError):
        problem = "Parse error: that is not JSON. Send one JSON-RPC 2.0 message per line or body, without headers."
        raise ProtocolError(PARSE_ERROR, problem) from None
    if not isinstance(message, dict) or not _is_message(message):
        problem = (
            'Invalid request: send one JSON-RPC 2.0 object, with "jsonrpc": "2.0", method, params (an object) '
            "and id (a string or an integer)."
        )
        raise ProtocolError(INVALID_REQUEST, problem, request=request)
    return message


def _is_message(message: dict[str, Any]) -> bool:
    if message.get("jsonrpc") != "2.0":
        return False
    if "method" not in message:
        return "id" in message and isinstance(message.get("result", message.get("error")), dict)
    return (
        isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict | None)
        and ("id" not in message or type(message["id"]) in (int, str))
    )


def unexpected(name: str, error: Exception) -> ProtocolError:
    """The error for an exception of a method or tool that is no :class:`ProtocolError`. It is logged with its
    traceback, unless it is an :class:`AnvilError`, whose message is for clients."""
    if isinstance(error, AnvilError) and str(error):
        return ProtocolError(INTERNAL_ERROR, str(error))
    log.error("%s failed", name, exc_info=error)
    kind = type(error).__name__
    return ProtocolError(INTERNAL_ERROR, f"{name} failed inside the server ({kind}). The server's log has the details.")


def member(params: Mapping[str, Any], name: str, kind: type, *, optional: bool = False) -> Any:
    """A member of a request's parameters; None if it is optional and missing. Raises :class:`ProtocolError` if it is of
    another type."""
    value = params.get(name)
    if not isinstance(value, kind) and not (optional and value is None):
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {name} must be {KINDS[kind]}.")
    return value


# --- the answers ----------------------------------------------------------------------------------------------------

NAME = "anvil"
WEBSITE_URL = "https://anvil-docs.github.io/anvil/"
DESCRIPTION = "Search and read documentation, compared with its files before each answer."
_ICON = base64.b64encode((Path(__file__).parent / "ui" / "anvil.svg").read_bytes()).decode()
ICONS = [{"src": f"data:image/svg+xml;base64,{_ICON}", "mimeType": "image/svg+xml", "sizes": ["any"]}]
"""The icon as data, not as an address, because a client may have no network."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``. To any other revision the server answers with the newest of
these."""
MODERN_VERSION = "2026-07-28"
"""The revision without a handshake: each request names its revision."""
TOOL_LIST_TTL_MS = 3_600_000
"""Time for which a client may cache the tool list. A running server does not change it."""
SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""The extension for skills. Clients see it from revision 2026-07-28 on: ``initialize`` of older ones has no
extensions."""
DISCOVER_TTL_MS = 60_000
"""Time for which a client may keep the answer to ``server/discover``. Its instructions have titles of pages, which may
change."""
MAX_OPEN_REQUESTS = 256
"""Requests of one client without an answer. With so many, no further line is read over stdio, and further requests are
refused over SSE."""
NOT_INITIALIZED = "This connection is not initialized. Send initialize first."
TOO_MANY_STREAMS = "There are as many streams of changes as there can be. Cancel one before you ask for another."
MAX_SHOWN_METHOD_CHARS = 60

Method = Callable[[dict[str, Any]], dict[str, Any]]
"""A function from the parameters of a request to its result. It raises :class:`ProtocolError`."""


class Answers:
    """The answers to requests for some toolsets. Methods may be called from any thread."""

    def __init__(self, running: Sequence[RunningToolset], page_methods: Mapping[str, Method] | None = None) -> None:
        """``page_methods``: those of :class:`anvil.server.page_resources.Resources`, if a toolset has pages."""
        toolsets = [served.toolset for served in running]
        self.title = toolsets[0].title if len(toolsets) == 1 else "Anvil"
        self.instructions = "\n\n".join(toolset.instructions for toolset in toolsets)
        self._running = running
        self._tools = {tool.name: (tool, served) for served in running for tool in served.toolset.tools}
        assert len(self._tools) == sum(len(toolset.tools) for toolset in toolsets), "two tools have the same name"
        self._has_pages = page_methods is not None
        self.methods: Mapping[str, Method] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            **(page_methods or {}),
        }
        """Name -> method, of those that :meth:`answer` knows. They are the same in all revisions of the protocol."""

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises :class:`ProtocolError`."""
        if method not in self.methods:
            raise self.unknown(method)
        if method == "tools/call":  # it logs the name of the tool and its time itself
            return self._call_tool(params)
        with timed(method):
            return self.methods[method](params)

    def unknown(self, method: str) -> ProtocolError:
        shown = method if len(method) <= MAX_SHOWN_METHOD_CHARS else f"{method[:MAX_SHOWN_METHOD_CHARS]}..."
        message = f"Method not found: {shown!r}. This server answers {', '.join(self.methods)}."
        return ProtocolError(METHOD_NOT_FOUND, message, shown)

    def describe(self) -> None:
        """Put the topics of the documents before the instructions. Waits until the documents can be read."""
        instructions = []
        for served in self._running:
            toolset = served.toolset
            if toolset.topics is not None:
                with contextlib.suppress(AnvilError):  # each tool answers with this error
                    toolset = toolset.about(toolset.topics(served.target))
            instructions.append(toolset.instructions)
        self.instructions = "\n\n".join(instructions)

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
        pages = {"completions": {}, "resources": {"listChanged": True, "subscribe": True}} if self._has_pages else {}
        return {**pages, "logging": {}, "tools": {"listChanged": tools_change}}

    def discover(self) -> dict[str, Any]:
        """The answer to ``server/discover`` on a connection that stays open."""
        extensions: dict[str, Any] = {"extensions": {SKILLS_EXTENSION: {}}} if self._has_pages else {}
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": self._capabilities(tools_change=self._has_pages) | extensions,
            "instructions": self.instructions,
            "resultType": "complete",
            "ttlMs": DISCOVER_TTL_MS,
            "cacheScope": "private",
        }

    def _list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        member(params, "cursor", str, optional=True)
        tools = [_tool_entry(tool, served.toolset) for tool, served in self._tools.values()]
        return {"tools": tools, "resultType": "complete", "ttlMs": TOOL_LIST_TTL_MS, "cacheScope": "public"}

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        """Run a tool. Its errors, also for wrong arguments, are results. Only a malformed request is a protocol
        error."""
        name = member(params, "name", str)
        arguments = member(params, "arguments", dict, optional=True)
        if name not in self._tools:
            return error_result(f"There is no tool {name[:60]!r}. Use one of {', '.join(self._tools)}.")
        tool, served = self._tools[name]
        try:
            call = tool.bind(arguments or {})
            with timed(name):
                return tool_result(call(served.target), served.toolset.render)
        except Exception as error:
            reason = error if isinstance(error, AnvilError) else unexpected(name, error)
            return error_result(str(reason), served.toolset)


def _tool_entry(tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """The entry of a tool in the list of tools. It has no schema of results if these are text alone."""
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
    """The annotations of a tool: whether it only reads, may delete, may be repeated, and uses the network."""
    if not tool.writes:
        return {"readOnlyHint": True}
    return {
        "readOnlyHint": False,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }


def tool_result(result: Any, render: Callable[[Any], str] | None = None) -> dict[str, Any]:
    """The result of a call, as structured content and as JSON text. In the text, an array is not wrapped in an object.

    With ``render``, it is the text that this function makes, and nothing else.
    """
    if render is not None:
        return _text_result(render(result))
    value = plain(result, lean=True)
    structured = {ARRAY_KEY: value} if isinstance(value, list) else value
    return {**_text_result(compact(value)), "structuredContent": structured}


def _text_result(message: str, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": is_error, "resultType": "complete"}


def error_result(message: str, toolset: Toolset | None = None) -> dict[str, Any]:
    """An error as the result of a call, so that the model reads it (SEP-1303)."""
    if toolset is None or not toolset.errors_as_values:
        return _text_result(message, is_error=True)
    return {**tool_result({"status": "error", "error": message}, toolset.render), "isError": True}
