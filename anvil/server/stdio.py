"""The protocol over stdio: lines of JSON, the handshake, cancellation and notifications.

It works without the SDK, which takes over a second of processor time to load. Tests compare the answers with those of
the SDK. There is one client, which started this process. The server ends when the client closes stdin, or by a signal.
Daemon threads read and write with plain ``os.read`` and ``os.write``, so the process can end while one of them still
waits for the client.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from anvil.formats.data_formats import compact
from anvil.server import protocol
from anvil.server.logs import ProgressReporter, Send, event
from anvil.server.page_resources import MAX_STREAMS, Connection, Resources, Subscriptions, connection_methods
from anvil.server.protocol import Answers, ProtocolError, member, parsed_message, unexpected
from anvil.server.signals import SHUTDOWN_TIMEOUT_S, ShutdownDeadline
from anvil.server.tool_calls import Call, Workers
from anvil.server.toolset import RunningToolset
from anvil.values import Changes

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is dropped, and the answer is an error."""
OVERLONG_LINE = b"\0"
"""Stands for a line that was dropped."""
MAX_QUEUED_ANSWERS, MAX_QUEUED_NOTICES = 16, 1024
"""Lines that wait for a client that does not read. With more than the first number calls wait. With more than the
second notifications are dropped."""
ANSWER_GRACE_S = SHUTDOWN_TIMEOUT_S - 0.3
"""Time for open requests after the client closed stdin, because it may still read the answers. The rest of
:data:`SHUTDOWN_TIMEOUT_S` is for closing files."""
FIRST_LINE_TIMEOUT_S = 0.1
"""Time to wait for the first line before the index is opened. Most clients have sent it by then."""
FLUSH_TIMEOUT_S = 1.0
"""Time to wait for the client to read what was written. A client that does not read must not delay start and end."""
WAIT_STEP_S = 0.5
"""Longest single wait. On Windows a signal does not end a wait, so longer ones are repeated."""
UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"
"""Prefix of the protocol's own names in ``_meta``."""
NEWER_MEMBERS = ("resultType", "ttlMs", "cacheScope")
"""The members of a result that handshake revisions do not have."""

RequestId = int | str


class StdioPipe:
    """Lines from one file descriptor, and a queue of lines to another, which a thread writes."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._queued: deque[bytes] = deque()
        self._changed = threading.Condition()
        self.broken = False
        """Whether the client has closed the output."""
        threading.Thread(target=self._write, name="stdout", daemon=True).start()

    @classmethod
    def take_over_stdio(cls) -> StdioPipe:
        """The pipe on stdin and stdout (descriptors 0 and 1). From now on, for all other code stdin is empty and stdout
        is stderr, so that only messages of the protocol reach the client."""
        sys.stdout.flush()
        source, target = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        return cls(source, target)

    def lines(self) -> Iterator[bytes]:
        """Lines until the end of input, or until the client has closed the output."""
        line = bytearray()
        is_overlong = False
        while not self.broken:
            try:
                block = os.read(self._source, 65536)
            except OSError:
                block = b""
            if not block:
                break
            *complete, incomplete = block.split(b"\n")
            for part in complete:
                line += part
                yield OVERLONG_LINE if is_overlong else bytes(line)
                line.clear()
                is_overlong = False
            line += incomplete
            if len(line) > MAX_LINE_BYTES:
                line.clear()
                is_overlong = True
        if line and not is_overlong:
            yield bytes(line)

    def put(self, line: bytes) -> None:
        """Queue a line. Waits if the client does not read, so that the queue stays short."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._queued) < MAX_QUEUED_ANSWERS)
            self._append(line)

    def offer(self, line: bytes) -> None:
        """Queue a line without waiting, or drop it if :data:`MAX_QUEUED_NOTICES` are in the queue."""
        with self._changed:
            if len(self._queued) < MAX_QUEUED_NOTICES:
                self._append(line)

    def _append(self, line: bytes) -> None:
        self._queued.append(line)
        self._changed.notify_all()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._queued))
                line = memoryview(self._queued[0] + b"\n")
            try:
                while line and not self.broken:
                    line = line[os.write(self._target, line) :]  # a pipe may take only a part of it
            except OSError:
                self.broken = True
            with self._changed:
                self._queued.popleft()
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until the queued lines are written, for :data:`FLUSH_TIMEOUT_S` at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queued, FLUSH_TIMEOUT_S)


def serve(
    running: Sequence[RunningToolset], reporter: ProgressReporter, pipe: StdioPipe, shutdown: ShutdownDeadline
) -> None:
    """Serve until the client goes away.

    The index is opened in the background when the first line was answered, so that it does not delay the answer. If the
    client sends no line for :data:`FIRST_LINE_TIMEOUT_S`, the index is opened before.
    """
    conversation = Conversation(running, reporter, pipe)
    with contextlib.ExitStack() as listening:
        for served in running:
            if served.toolset.has_pages:
                listening.callback(served.target.on_change(conversation.changed))
        reporter.log_to_clients = conversation.connection.log
        threading.Thread(target=conversation.run, name="stdin", daemon=True).start()
        if conversation.begun.wait(FIRST_LINE_TIMEOUT_S):
            pipe.flush()
        if not conversation.ended.is_set():
            for served in running:
                served.target.start(reporter)
        try:
            while not conversation.ended.wait(WAIT_STEP_S):
                pass
            shutdown.begin()
            conversation.finish(ANSWER_GRACE_S)
        finally:
            pipe.flush()


class Conversation:
    """The messages of one client, and their answers.

    The client's first request decides whether the connection begins with the handshake of ``initialize``, or whether
    each request names a newer revision of the protocol in ``_meta``.
    """

    def __init__(self, running: Sequence[RunningToolset], reporter: ProgressReporter, pipe: StdioPipe) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.connection = Connection()
        self._resources = Resources.of(running)
        self._answers = Answers(running, self._resources.methods if self._resources else None)
        self._reporter, self._pipe = reporter, pipe
        self._connection_methods = connection_methods(self._resources)
        self._workers = Workers()
        self._open: dict[RequestId, Call] = {}
        self._closed = threading.Condition()
        self._is_modern: bool | None = None
        self._is_initialized = False
        self._streams: dict[RequestId, Subscriptions] = {}

    def run(self) -> None:
        """Answer all lines until the end of input."""
        try:
            for line in self._pipe.lines():
                if line.strip():
                    self._receive(line)
                self.begun.set()
                with self._closed:
                    while len(self._open) >= protocol.MAX_OPEN_REQUESTS and not self._pipe.broken:
                        self._closed.wait(WAIT_STEP_S)
        finally:
            self.ended.set()
            self.begun.set()

    def finish(self, timeout_s: float) -> None:
        """Wait until open requests are answered, for ``timeout_s`` at most."""
        with self._closed:
            self._closed.wait_for(lambda: not self._open or self._pipe.broken, timeout_s)

    def changed(self, changes: Changes) -> None:
        """Send notifications of changed pages to the client, if it asked for them."""
        assert self._resources is not None
        uris, is_listed = self._resources.changed_uris(changes), bool(changes.added or changes.removed)
        for subscriptions in (self.connection, *list(self._streams.values())):
            subscriptions.changed(uris, is_listed)

    def _receive(self, line: bytes) -> None:
        try:
            if line == OVERLONG_LINE:
                raise ProtocolError(
                    protocol.INVALID_REQUEST, f"Request too large: a line may have {MAX_LINE_BYTES} bytes."
                )
            message = parsed_message(line)
        except ProtocolError as error:
            self._pipe.offer(_error_line(error.request, error))
            return
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            return  # an answer, which is ignored: this server sends no requests
        if "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(params.get("requestId"))
            elif method == "notifications/initialized" and self._is_initialized:
                self.connection.send = self._notify
            return
        request: RequestId = message["id"]
        # This thread offers lines, and does not put them: it must not wait for a client that does not read, because it
        # also has to read the client's cancellations.
        try:
            result = self._immediate_result(request, method, params)
        except ProtocolError as error:
            self._pipe.offer(_error_line(request, error))
            return
        if result is None:
            self._start(request, method, params)
        else:
            self._pipe.offer(_line({"id": request, "result": result}))
            if method == "initialize":
                event(logging.DEBUG, "answered initialize")

    def _immediate_result(self, request: RequestId, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a request that needs no documents. None if it needs them, and for a stream of changes. Raises
        :class:`ProtocolError`."""
        meta = member(params, "_meta", dict, optional=True) or {}
        names_revision = f"{META}protocolVersion" in meta and method != "initialize"
        if self._is_modern is None:
            self._is_modern = names_revision
        if self._is_modern:
            _check_envelope(method, params, meta)
            if method == "server/discover":
                return self._in_revision(method, self._answers.discover())
            if method == "subscriptions/listen" and self._resources is not None:
                if len(self._streams) >= MAX_STREAMS:
                    raise ProtocolError(protocol.INTERNAL_ERROR, protocol.TOO_MANY_STREAMS)
                self._streams[request] = _stream(request, params, self._notify)
                return None
        elif names_revision:
            raise ProtocolError(
                protocol.INVALID_REQUEST,
                f"This connection began with initialize: revision {protocol.MODERN_VERSION} needs another one.",
            )
        elif method == "initialize":
            result = self._answers.initialize(params)
            self._is_initialized = True
            return result
        elif method == "ping":
            return {}
        is_of_connection = not self._is_modern and method in self._connection_methods
        if not is_of_connection and method not in self._answers.methods:
            raise self._answers.unknown(method)
        if not self._is_modern and not self._is_initialized:
            raise ProtocolError(protocol.INVALID_PARAMS, protocol.NOT_INITIALIZED)
        if is_of_connection:
            return self.connection.answer(method, params, self._resources)
        return None

    def _start(self, request: RequestId, method: str, params: dict[str, Any]) -> None:
        if request in self._streams:
            return  # a stream of changes has no answer, and goes on until it is cancelled

        def run() -> None:
            token = (params.get("_meta") or {}).get("progressToken")
            try:
                with contextlib.nullcontext() if token is None else self._reporter.sent(token, self._notify):
                    result = self._in_revision(method, self._answers.answer(method, params))
                line = _line({"id": request, "result": result})
            except ProtocolError as error:
                line = _error_line(request, error)
            except Exception as error:
                line = _error_line(request, unexpected(method, error))
            if call.wanted:
                self._pipe.put(line)
            self._close(request, call)

        call = Call(run)
        with self._closed:
            self._open[request] = call
        self._workers.submit(call)

    def _close(self, request: RequestId, call: Call) -> None:
        with self._closed:
            if self._open.get(request) is call:  # else the client has used the id again
                del self._open[request]
            self._closed.notify_all()

    def _cancel(self, request: Any) -> None:
        """Cancel a request: the client gets no answer."""
        if type(request) not in (int, str):  # no request has such an id, and a list could not be looked up
            return
        self._streams.pop(request, None)
        call = self._open.get(request)
        if call is not None:
            call.wanted = False
            self._close(request, call)

    def _in_revision(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """A result in the form of the connection's revision."""
        if self._is_modern:
            return {**result, "_meta": {f"{META}serverInfo": self._answers.server_info()}}
        if method.startswith("skills/"):  # an extension, which is the same in all revisions
            return result
        return {name: value for name, value in result.items() if name not in NEWER_MEMBERS}

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._pipe.offer(_line({"method": method, **({"params": params} if params else {})}))


def _stream(request: RequestId, params: dict[str, Any], send: Send) -> Subscriptions:
    """Begin a stream of changes, for ``subscriptions/listen``. Raises :class:`ProtocolError`."""
    wanted = member(params, "notifications", dict)
    uris = member(wanted, "resourceSubscriptions", list, optional=True) or []
    if not all(isinstance(uri, str) for uri in uris):
        raise ProtocolError(protocol.INVALID_PARAMS, "Invalid request parameters: resourceSubscriptions must be URIs.")
    flags = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    honoured: dict[str, Any] = {name: True for name in flags if wanted.get(name) is True}
    honoured |= {"resourceSubscriptions": uris} if uris else {}
    meta = {f"{META}subscriptionId": request}
    send("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": meta})
    return Subscriptions(send, uris, "resourcesListChanged" in honoured, _meta=meta)


def _check_envelope(method: str, params: dict[str, Any], meta: dict[str, Any]) -> None:
    """Check the members of ``_meta`` that each request of the newest revision has. Raises :class:`ProtocolError`."""
    if method == "initialize":
        version = params.get("protocolVersion")
        raise _unsupported(version, "This connection names its revision in each request: it takes no initialize.")
    missing = [name for name in ("protocolVersion", "clientCapabilities") if META + name not in meta]
    if missing:
        raise ProtocolError(protocol.INVALID_PARAMS, f"params._meta lacks {META}{missing[0]}.")
    version = member(meta, f"{META}protocolVersion", str)
    if version != protocol.MODERN_VERSION:
        raise _unsupported(version, "Unsupported protocol version")


def _unsupported(version: Any, message: str) -> ProtocolError:
    requested = {"requested": version} if isinstance(version, str) else {}
    return ProtocolError(UNSUPPORTED_VERSION, message, {"supported": [protocol.MODERN_VERSION], **requested})


def _error_line(request: RequestId | None, error: ProtocolError) -> bytes:
    return compact(error.answer(request)).encode()


def _line(message: dict[str, Any]) -> bytes:
    return compact({"jsonrpc": "2.0", **message}).encode()
