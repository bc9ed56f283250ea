"""The stdio transport: one client, which started this process. Ends when the client closes stdin, or by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Sequence
from typing import Any, cast

from anvil.server import greeting
from anvil.server.announcing import Announcer
from anvil.server.logs import event
from anvil.server.stopping import stopped_by_signal
from anvil.server.surface import Served
from anvil.server.wire import LONGEST, TOO_LONG, Wire

PATIENCE = 10.0
"""Seconds that requests under way have when the client closed its side: it may still want to read the answers."""


def serve(served: Sequence[Served], announcer: Announcer, wire: Wire) -> None:
    """Serve until the client goes away. ``initialize`` is answered before the SDK is loaded."""
    introduction = greeting.Introduction.of([each.surface for each in served])
    line = wire.first()
    greeted = greeting.answer(line, introduction) if line else None
    if greeted:
        wire.put(greeted[1])
        event(logging.DEBUG, "greeted the client")
    try:
        if line is not None:
            asyncio.run(_serve(served, announcer, wire, greeted[0] if greeted else None))
    finally:
        wire.close()


async def _serve(served: Sequence[Served], announcer: Announcer, wire: Wire, greeted: int | str | None) -> None:
    from mcp.server.stdio import stdio_server

    from anvil.server.running import running

    async with running(served, announcer) as app:
        ends = _Ends(wire, greeted)
        lines, output = cast(Any, ends), cast(Any, ends)  # the two methods of each that the SDK uses

        async def talk() -> None:
            async with stdio_server(lines, output) as (read, write):
                await app.server.run(read, write, app.options())

        async with stopped_by_signal() as stopping:
            await stopping.until(talk())


class _Ends:
    """Both ends of the pipe as the SDK uses them: iterated over for lines, written to.

    What is no message of the protocol is answered here and goes no further. The SDK's answer to a client that was
    greeted already is left out.
    """

    def __init__(self, wire: Wire, greeted: int | str | None) -> None:
        self._wire, self._greeted = wire, greeted
        self._open: set[int | str] = set()
        self._settled = asyncio.Event()

    def __aiter__(self) -> _Ends:
        return self

    async def __anext__(self) -> str:
        while True:
            line = await self._wire.next()
            if line is None or self._wire.broken:
                await self._settle()
                raise StopAsyncIteration
            if line.strip() and self._sound(line):
                return line.decode("utf-8", "replace")

    def _sound(self, line: bytes) -> bool:
        from mcp.types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            if isinstance(message, JSONRPCNotification) and "id" in json.loads(line):
                raise ValueError("a request whose id is neither a string nor an integer")
        except ValueError:
            self._wire.put(json.dumps(fault(line)).encode())
            return False
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._open.discard((message.params or {}).get("requestId", ""))
        return True

    async def _settle(self) -> None:
        """Wait for the answers that the client may still read."""
        with contextlib.suppress(asyncio.TimeoutError):
            while self._open and not self._wire.broken:
                self._settled.clear()
                await asyncio.wait_for(self._settled.wait(), PATIENCE)

    async def write(self, text: str) -> None:
        """One message of the SDK's, a line."""
        message = json.loads(text)
        if "method" not in message:
            self._open.discard(message.get("id"))
            self._settled.set()
            if self._greeted is not None and message.get("id") == self._greeted:
                self._greeted = None
                return
        await self._wire.write(text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""


def fault(line: bytes) -> dict[str, Any]:
    """The answer to a line that is no message of the protocol; with its id, where it has one."""
    number = None
    if line == TOO_LONG:
        code, told = -32600, f"Request too large: a line may have {LONGEST} bytes."
    else:
        try:
            message = json.loads(line)
            code, told = -32600, "Invalid request: send one JSON-RPC 2.0 object a line, with id, method and params."
            found = message.get("id") if isinstance(message, dict) else None
            number = found if type(found) in (int, str) else None
            json.dumps(message, ensure_ascii=False).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError):
            code, told = -32700, "Parse error: the line is not JSON. Send one JSON-RPC 2.0 message a line."
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": told}}
