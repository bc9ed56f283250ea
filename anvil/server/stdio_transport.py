"""The stdio transport: one client, which started this process. The server ends when the client closes stdin, or by a
signal."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from anvil.formats.lazy_pattern import lazy_pattern
from anvil.server.early_answers import EarlyAnswers
from anvil.server.initialize import InitializeReply
from anvil.server.logs import event
from anvil.server.progress import ProgressReporter
from anvil.server.signals import SHUTDOWN_TIMEOUT_S, ShutdownDeadline
from anvil.server.stdio_pipe import END_OF_INPUT, MAX_LINE_BYTES, OVERLONG_LINE, StdioPipe
from anvil.server.toolset import RunningToolset

if TYPE_CHECKING:
    import asyncio

_ANSWER = lazy_pattern(r'\{"jsonrpc":"2\.0",("id":(?:-?\d+|"(?:[^"\\]|\\.)*")),"(?:result|error)":')
"""The start of an answer, as the SDK writes it."""
ANSWER_GRACE_S = SHUTDOWN_TIMEOUT_S - 0.3
"""Time for open requests after the client closed stdin. The client may still read the answers."""
FIRST_LINE_S = 0.1
"""How long the first line is waited for before the index is opened. Most clients have sent it by then."""
WRITTEN_S = 1.0
"""How long the answer to it may take to be written: a client that does not read must not hold up the start."""


def serve(
    running: Sequence[RunningToolset], reporter: ProgressReporter, pipe: StdioPipe, shutdown: ShutdownDeadline
) -> None:
    """Serve until the client goes away. ``initialize`` and first calls are answered before the SDK is loaded.

    The index is opened in the background after ``initialize`` is answered, so that this does not delay the answer. If
    the client is slow to begin, the index is opened before.
    """
    began = pipe.begins_within(FIRST_LINE_S)
    if not began:
        _start(running, reporter)
    line = pipe.at(0)
    if line is END_OF_INPUT:
        shutdown.begin()
        return
    answered = InitializeReply.for_toolsets([served.toolset for served in running]).answer(line)
    if answered:
        written = threading.Event()
        pipe.put(answered.line, written.set)
        written.wait(WRITTEN_S)
        event(logging.DEBUG, "answered initialize")
    if began:
        _start(running, reporter)
    streams = _Streams(pipe, shutdown, answered.request_id if answered else None)
    pipe.on_end_of_input(streams.on_end_of_input)
    try:
        if answered:
            with EarlyAnswers(running, pipe, streams.opened, streams.closed) as early:
                early.wait()
                importlib.import_module("anvil.server.mcp_app")  # and with it the SDK
        import asyncio

        asyncio.run(_serve(running, reporter, streams))
    finally:
        pipe.close()


def _start(running: Sequence[RunningToolset], reporter: ProgressReporter) -> None:
    for served in running:
        served.target.start(reporter)


async def _serve(running: Sequence[RunningToolset], reporter: ProgressReporter, streams: _Streams) -> None:
    from mcp.server.stdio import stdio_server

    from anvil.server.mcp_app import running_app
    from anvil.server.signals import stop_on_signal

    async with running_app(running, reporter) as app:

        async def talk() -> None:
            stdin, stdout = cast(Any, streams), cast(Any, streams)  # has the two methods of each that the SDK uses
            async with stdio_server(stdin, stdout) as (read, write):
                await app.server.run(read, write, app.options())

        async with stop_on_signal() as stop:
            await stop.run_until(talk())


class _Streams:
    """The pipe as the two streams that the SDK uses: iterated over for lines, and written to.

    A line that is no message of the protocol is answered here and goes no further. When ``initialize`` was answered
    already, the SDK's own answer to ``initialize_id`` is dropped.
    """

    def __init__(self, pipe: StdioPipe, shutdown: ShutdownDeadline, initialize_id: int | str | None) -> None:
        self._pipe, self._shutdown, self._initialize_id = pipe, shutdown, initialize_id
        self._open_requests: set[int | str] = set()
        self._answered: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def opened(self, request_id: int | str) -> None:
        """A request was taken from the pipe and is answered elsewhere. From any thread."""
        self._open_requests.add(request_id)

    def closed(self, request_id: int | str) -> None:
        """Its answer is written. From any thread."""
        self._open_requests.discard(request_id)
        if self._loop is not None and self._answered is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._answered.set)

    def on_end_of_input(self) -> None:
        """Limit the time to the end, even while the SDK is being loaded or an index is being built.

        Requests that were not read yet are read first; then :meth:`__anext__` starts the limit.
        """
        unread = self._pipe.unread()[1 if self._initialize_id is not None else 0 :]
        if not self._open_requests and not any(b'"id"' in line for line in unread):
            self._shutdown.begin()

    def __aiter__(self) -> _Streams:
        return self

    async def __anext__(self) -> str:
        import asyncio

        if self._answered is None:
            self._answered = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while True:
            line = await self._pipe.next()
            if line is END_OF_INPUT or self._pipe.broken:
                self._shutdown.begin()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._all_answered(self._answered), ANSWER_GRACE_S)
                raise StopAsyncIteration
            if line.strip() and self._is_message(line):
                return line.decode("utf-8", "replace")

    async def _all_answered(self, answered: asyncio.Event) -> None:
        while self._open_requests and not self._pipe.broken:
            answered.clear()
            await answered.wait()

    def _is_message(self, line: bytes) -> bool:
        from mcp.types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            if isinstance(message, JSONRPCNotification) and "id" in json.loads(line):
                raise ValueError("a request whose id is neither a string nor an integer")
        except ValueError:
            self._pipe.put(json.dumps(error_answer(line)).encode())
            return False
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._open_requests.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._open_requests.discard((message.params or {}).get("requestId", ""))
        return True

    async def write(self, text: str) -> None:
        """Write one message of the SDK as a line."""
        answer = _ANSWER.match(text)  # an answer may be megabytes long: it is not parsed for its id
        message = json.loads(f"{{{answer[1]}}}" if answer else text)
        if "method" not in message:
            self._open_requests.discard(message.get("id"))
            if self._answered is not None:
                self._answered.set()
            if self._initialize_id is not None and message.get("id") == self._initialize_id:
                self._initialize_id = None
                return
        await self._pipe.write(text.encode())

    async def flush(self) -> None:
        """Nothing is buffered here."""


def error_answer(line: bytes) -> dict[str, Any]:
    """The JSON-RPC error for a line that is no message of the protocol, with the line's id where it has one."""
    request_id = None
    if line == OVERLONG_LINE:
        code, reason = -32600, f"Request too large: a line may have {MAX_LINE_BYTES} bytes."
    else:
        try:
            message = json.loads(line)
            code, reason = -32600, "Invalid request: send one JSON-RPC 2.0 object a line, with id, method and params."
            given_id = message.get("id") if isinstance(message, dict) else None
            request_id = given_id if type(given_id) in (int, str) else None
            json.dumps(message, ensure_ascii=False).encode()  # raises for half a surrogate pair, which is no text
        except (ValueError, RecursionError):
            code, reason = -32700, "Parse error: the line is not JSON. Send one JSON-RPC 2.0 message a line."
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": reason}}
