"""The stdio transport: one client, which started this process. Ends when the client closes stdin, or by a signal."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, cast

from anvil.api import Anvil
from anvil.server import greeting
from anvil.server.announcing import Announcer
from anvil.server.docs import INSTRUCTIONS
from anvil.server.logs import event
from anvil.server.stopping import stopped_by_signal
from anvil.server.wire import TOO_LONG, Wire


def serve(anvil: Anvil, announcer: Announcer, wire: Wire) -> None:
    """Serve until the client goes away. ``initialize`` is answered before the SDK is loaded."""
    line = wire.first()
    greeted = greeting.answer(line, INSTRUCTIONS) if line else None
    if greeted:
        wire.write(greeted[1])
        event(logging.DEBUG, "greeted the client")
    asyncio.run(_serve(anvil, announcer, wire, greeted[0] if greeted else None))


async def _serve(anvil: Anvil, announcer: Announcer, wire: Wire, greeted: int | str | None) -> None:
    from mcp.server.stdio import stdio_server

    from anvil.server.running import running

    async with running(anvil, announcer) as app:
        lines, output = cast(Any, _Lines(wire)), cast(Any, _Output(wire, greeted))
        async with stopped_by_signal() as stopping, stdio_server(lines, output) as (read, write):
            await stopping.until(app.server.run(read, write, app.options()))


class _Lines:
    """Lines of protocol as the SDK iterates over them. What is no JSON is answered here, and goes no further."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        while True:
            line = await self._wire.next()
            if line is None or self._wire.broken:
                raise StopAsyncIteration
            if not line.strip():
                continue
            wrong = "Request too large." if line == TOO_LONG else _fault(line)
            if wrong is None:
                return line.decode("utf-8", "replace")
            code = -32700 if wrong.startswith("Parse") else -32600
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": wrong}}
            self._wire.write(json.dumps(error).encode())


def _fault(line: bytes) -> str | None:
    """Why a line is no message of the protocol, or None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return "Parse error: the line is not JSON. Send one JSON-RPC 2.0 message a line."
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 'Invalid request: not a JSON-RPC 2.0 object. Send {"jsonrpc": "2.0", "method": ...}.'
    if not isinstance(message.get("method", ""), str) or not message.keys() & {"method", "result", "error"}:
        return "Invalid request: there is no method. Name one."
    if not isinstance(message.get("params", {}), dict):
        return "Invalid request: params must be an object."
    return None


class _Output:
    """Where the SDK writes; its answer to a client that was greeted already is left out."""

    def __init__(self, wire: Wire, greeted: int | str | None) -> None:
        self._wire, self._greeted = wire, greeted

    async def write(self, text: str) -> None:
        if self._greeted is not None:
            message = json.loads(text)
            if message.get("id") == self._greeted and ("result" in message or "error" in message):
                self._greeted = None
                return
        await asyncio.get_running_loop().run_in_executor(None, self._wire.write, text.encode())

    async def flush(self) -> None:
        return None
