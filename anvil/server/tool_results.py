"""Tools, and the results of their calls, in the form of the protocol and without the SDK."""

from __future__ import annotations

from typing import Any

from anvil.errors import AnvilError
from anvil.server.arguments import InvalidArguments
from anvil.server.logs import log
from anvil.server.schemas import output_schema, plain, structured, text
from anvil.server.toolset import Tool, Toolset


def described(tool: Tool) -> dict[str, Any]:
    """A tool as clients see it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema(),
        "outputSchema": output_schema(tool.result_type),
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


def answer(result: Any) -> dict[str, Any]:
    """A result as structured content, and the same JSON as text. In the text, an array is not wrapped in an object.

    It is a dict in the form of the protocol. The SDK validates it too; its own model it would first convert, which
    costs more time.
    """
    value = plain(result)
    return {
        "content": [{"type": "text", "text": text(value)}],
        "structuredContent": structured(value),
        "isError": False,
        "resultType": "complete",
    }


def refusal(message: str, toolset: Toolset | None = None) -> dict[str, Any]:
    """An error as a result of the call, which the model reads (SEP-1303)."""
    if toolset is None or not toolset.errors_as_values:
        return {"content": [{"type": "text", "text": message}], "isError": True, "resultType": "complete"}
    return {**answer({"status": "error", "error": message}), "isError": True}


def failure(error: Exception, tool: Tool, toolset: Toolset) -> dict[str, Any]:
    """What a tool raised, as a result of the call: the reason, or where an unexpected error is described."""
    if isinstance(error, (InvalidArguments, AnvilError)):
        return refusal(str(error), toolset)
    log.error("%s failed", tool.name, exc_info=error)
    return refusal(
        f"{tool.name} failed inside the server ({type(error).__name__}). The server's log has the details.", toolset
    )
