"""The answers over stdio until the SDK is loaded: the list of tools, and calls of tools.

To load the SDK takes as long as all else that the first answer needs. So it is loaded when a line needs it, or when the
client is quiet. Everything but plain requests of the two methods waits in the pipe for the SDK. A test checks that the
answers equal the SDK's.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from anvil.server.logs import timed
from anvil.server.schemas import text
from anvil.server.stdio_pipe import StdioPipe
from anvil.server.threads import MAX_THREADS
from anvil.server.tool_results import answer, described, failure
from anvil.server.toolset import RunningToolset, Tool

QUIET_S = 1.0
"""Time without a request or a running call after which the SDK is loaded. Requests are answered here meanwhile."""
LATEST_S = 5.0
"""Time after which it is loaded in any case: only the SDK sends notifications."""

RequestId = int | str


class _Request(NamedTuple):
    id: RequestId
    method: str
    params: dict[str, Any]


class EarlyAnswers:
    """Answers requests from a thread inside the ``with`` block; calls that run then are answered after it, too.

    ``initialize``, the first line in ``pipe``, is answered already. ``opened`` and ``closed`` get the id of a request
    before it leaves the pipe and after its answer is written, from any thread.
    """

    def __init__(
        self,
        running: Sequence[RunningToolset],
        pipe: StdioPipe,
        opened: Callable[[RequestId], None],
        closed: Callable[[RequestId], None],
    ) -> None:
        self._tools = {tool.name: (tool, served) for served in running for tool in served.toolset.tools}
        self._pipe, self._opened, self._closed = pipe, opened, closed
        self._lock = threading.Lock()
        self._calls = 0
        self._began_at = self._active_at = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anvil-early", daemon=True)

    def __enter__(self) -> EarlyAnswers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pipe.wake()
        self._thread.join()

    def wait(self) -> None:
        """Wait until the SDK is to be loaded: a line needs it, or there was no request for some time."""
        while not self._ended.is_set():
            with self._lock:
                latest = self._began_at + LATEST_S
                left = (latest if self._calls else min(self._active_at + QUIET_S, latest)) - time.monotonic()
            if left <= 0:
                return
            self._ended.wait(min(left, 0.5))  # in steps: on Windows a signal does not end a wait

    def _run(self) -> None:
        position = 1  # after initialize
        initialized = False
        while (line := self._pipe.at(position, self._ended)) is not None:
            if not initialized:
                if not is_initialized(line):
                    break
                initialized = True
                position += 1  # the SDK reads it, too
                continue
            request = plain_request(line)
            if request is None or not self._answer(request, position):
                break
        self._ended.set()

    def _answer(self, request: _Request, position: int) -> bool:
        """Take the request out of the pipe and answer it, a call in a thread of its own. False: it is the SDK's."""
        call: Callable[[], None]
        if request.method == "tools/list" and not request.params:
            call = lambda: self._send(request, {"tools": [described(tool) for tool, _ in self._tools.values()]})  # noqa: E731
        elif request.method == "tools/call" and is_call(request.params) and request.params["name"] in self._tools:
            tool, served = self._tools[request.params["name"]]
            arguments = request.params.get("arguments", {})
            call = lambda: self._send(request, _called(tool, served, arguments))  # noqa: E731
        else:
            return False
        with self._lock:
            if self._calls >= MAX_THREADS:
                return False
            self._calls += 1
            self._active_at = time.monotonic()
        self._opened(request.id)
        self._pipe.drop(position)
        threading.Thread(target=call, name="anvil-call", daemon=True).start()
        return True

    def _send(self, request: _Request, result: dict[str, Any]) -> None:
        """Queue an answer. The call ends when the client has it: one that does not read must not fill the memory."""

        def written() -> None:
            self._closed(request.id)
            with self._lock:
                self._calls -= 1
                self._active_at = time.monotonic()

        self._pipe.put(text({"jsonrpc": "2.0", "id": request.id, "result": result}).encode(), written)


def _called(tool: Tool, served: RunningToolset, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call, as handshake revisions of the protocol have it."""
    try:
        with timed(tool.name):
            result = answer(tool.bind(arguments)(served.target))
    except Exception as error:
        result = failure(error, tool, served.toolset)
    return {key: value for key, value in result.items() if key != "resultType"}


def plain_request(line: bytes) -> _Request | None:
    """The request on a line; None for anything else, and for a request that the SDK should see."""
    message = _message(line)
    if message is None or message.keys() - {"params"} != {"jsonrpc", "id", "method"}:
        return None
    params = message.get("params", {})
    if type(message["id"]) not in (int, str) or not isinstance(message["method"], str) or not isinstance(params, dict):
        return None
    return _Request(message["id"], message["method"], params)


def is_initialized(line: bytes) -> bool:
    """Whether a line is the notification that ends the handshake."""
    message = _message(line)
    return message is not None and message.get("method") == "notifications/initialized" and "id" not in message


def is_call(params: dict[str, Any]) -> bool:
    """Whether these are the name and the arguments of a tool and nothing more, such as a token for progress."""
    return (
        {"name"} <= params.keys() <= {"name", "arguments"}
        and isinstance(params["name"], str)
        and isinstance(params.get("arguments", {}), dict)
    )


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line.decode(), parse_constant=_refuse)
        json.dumps(message, ensure_ascii=False).encode()  # raises for half a surrogate pair, which is no text
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
