"""The answers over stdio are those of the SDK: for each request, in each revision of the protocol."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import anvil
from anvil.server import protocol
from anvil.server.docs_toolset import TOOLSET
from anvil.server.logs import ProgressReporter
from anvil.server.mcp_app import running_app
from anvil.server.stdio import Conversation, StdioPipe
from anvil.server.toolset import RunningToolset
from tests.conftest import PAGES, write

MODERN = MODERN_PROTOCOL_VERSIONS[-1]
META = "io.modelcontextprotocol/"
ENVELOPE = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PAGE = {"uri": "anvil://page/install.md"}
PATHS = {"ref": {"type": "ref/resource", "uri": "anvil://page/{path}"}, "argument": {"name": "path", "value": "a"}}

REQUESTS: list[tuple[str, Any]] = [
    ("ping", {}),
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {"cursor": 3}),
    *(
        ("tools/call", {"name": name, "arguments": arguments})
        for name, arguments in [
            ("search_docs", {"query": "alert", "top_k": 2}),
            ("search_docs", {"query": 3}),
            ("search_docs", {}),
            ("search_docs", {"query": "alert", "more": 1}),
            ("get_page", {"file_path": "install.md"}),
            ("get_page", {"file_path": "no/such.md"}),
            ("grep_docs", {"pattern": "alert"}),
            ("list_pages", {}),
            ("list_pages", None),
            ("no_such_tool", {}),
            ("list_pages", []),
            ("list_pages", "x"),
            (3, {}),
        ]
    ),
    ("tools/call", {"name": "list_pages"}),
    ("tools/call", {}),
    ("resources/list", {}),
    ("resources/list", {"cursor": "install.md"}),
    ("resources/list", {"cursor": []}),
    ("resources/templates/list", {}),
    *(
        ("resources/read", {"uri": uri})
        for uri in ("anvil://page/install.md", "anvil://page/no.md", "anvil://collection/a/b.md", "file:///x", "", 3)
    ),
    ("resources/read", {"uri": "skill://docs-docs/SKILL.md"}),
    ("resources/read", {"uri": "skill://no/SKILL.md"}),
    ("resources/read", {}),
    ("resources/subscribe", PAGE),
    ("resources/subscribe", {"uri": "file:///x"}),
    ("resources/subscribe", {}),
    ("resources/unsubscribe", PAGE),
    ("logging/setLevel", {"level": "error"}),
    ("logging/setLevel", {"level": "loud"}),
    ("logging/setLevel", {}),
    ("completion/complete", PATHS),
    ("completion/complete", {**PATHS, "context": {"arguments": {"file_path": "install.md"}}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "x"},
            "argument": {"name": "heading_path", "value": ""},
            "context": {"arguments": {"file_path": "install.md"}},
        },
    ),
    ("completion/complete", {**PATHS, "context": {"arguments": {"file_path": 3}}}),
    ("completion/complete", {**PATHS, "argument": {"name": "path"}}),
    ("completion/complete", {**PATHS, "ref": {"type": "x"}}),
    ("completion/complete", {}),
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://docs-docs/SKILL.md"}),
    ("skills/get", {"uri": "skill://no/SKILL.md"}),
    ("skills/get", {}),
    ("prompts/list", {}),
    ("no/such", {}),
    ("initialize", {"protocolVersion": "1999-01-01", **CLIENT}),
    ("initialize", {"protocolVersion": 3, **CLIENT}),
    ("initialize", {}),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningToolset]]:
    docs = write(tmp_path_factory.mktemp("stdio") / "docs", PAGES)
    with anvil.open(docs, provider="none") as opened:
        opened.index()
        yield [RunningToolset.of(TOOLSET, opened)]


class Client:
    """A client of the loop, in this process."""

    def __init__(self, running: list[RunningToolset]) -> None:
        reading, self.sending = os.pipe()
        self.receiving, writing = os.pipe()
        self.reporter = ProgressReporter()
        self.conversation = Conversation(running, self.reporter, StdioPipe(reading, writing))
        self.thread = threading.Thread(target=self.conversation.run, daemon=True)
        self.thread.start()
        self._answers = os.fdopen(self.receiving, "rb", closefd=False)

    def send(self, *messages: Any) -> None:
        for message in messages:
            os.write(self.sending, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def read(self) -> Any:
        return json.loads(self._answers.readline())

    def ask(self, method: str, params: Any, number: int = 1) -> Any:
        self.send({"id": number, "method": method, "params": params})
        return self.read()


@contextmanager
def client(running: list[RunningToolset]) -> Iterator[Client]:
    found = Client(running)
    yield found
    os.close(found.sending)
    found.thread.join(10)
    assert not found.thread.is_alive()
    os.close(found.receiving)


def of_the_sdk(running: list[RunningToolset], requests: list[dict[str, Any]]) -> list[Any]:
    """The answers of the SDK's server to the same requests on one connection."""

    async def ask() -> list[Any]:
        found = []
        streams = create_client_server_memory_streams()
        async with (
            running_app(running, ProgressReporter()) as app,
            streams as ((read, write), (server_read, server_write)),
            anyio.create_task_group() as tasks,
        ):
            await app.describe()
            tasks.start_soon(app.serve, server_read, server_write)
            for request in requests:
                message = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": 1, **request})
                await write.send(SessionMessage(message))
                received = await read.receive()
                assert isinstance(received, SessionMessage)
                found.append(json.loads(received.message.model_dump_json(by_alias=True, exclude_unset=True)))
            tasks.cancel_scope.cancel()
        return found

    return anyio.run(ask)


SDK_WORDS = ("Invalid request parameters", "params._meta", "this connection", "connection is", "the protocol-version")
"""The beginnings of messages that the SDK words itself. Of such an error only the code must be the same."""


def assert_same(request: Any, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    if "error" in theirs and theirs["error"]["message"].startswith(SDK_WORDS):
        assert ours["error"]["code"] == theirs["error"]["code"], request
    else:
        assert _comparable(ours) == _comparable(theirs), request


def _comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what the time makes of it."""
    result = answer.get("result", {})
    if "structuredContent" in result:
        content = result["content"][0]
        content["text"] = _steady(json.loads(content["text"]))
        _steady(result["structuredContent"])
    result.get("capabilities", {}).pop("experimental", None)  # SDKs before 2.3 have it, empty
    return answer


def _steady(value: dict[str, Any]) -> dict[str, Any]:
    value.pop("query_ms", None)
    value.get("freshness", {}).pop("checked", None)
    return value


def test_the_revisions_are_those_of_the_sdk() -> None:
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == protocol.HANDSHAKE_VERSIONS
    assert tuple(MODERN_PROTOCOL_VERSIONS) == (protocol.MODERN_VERSION,)


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, MODERN])
def test_each_answer_is_that_of_the_sdk(running: list[RunningToolset], version: str) -> None:
    requests: list[dict[str, Any]]
    if version == MODERN:
        requests = [{"method": method, "params": {**params, "_meta": ENVELOPE}} for method, params in REQUESTS]
        requests.append({"method": "tools/list", "params": {}})
        for meta in ({f"{META}protocolVersion": MODERN}, {**ENVELOPE, f"{META}protocolVersion": "2099-01-01"}):
            requests.append({"method": "tools/list", "params": {"_meta": meta}})
        requests.append({"method": "tools/list", "params": {"_meta": {**ENVELOPE, f"{META}protocolVersion": 3}}})
        requests.insert(0, requests.pop(2))  # initialize would decide for the handshake
    else:
        greeting = {"method": "initialize", "params": {"protocolVersion": version, **CLIENT}}
        requests = [greeting, *({"method": method, "params": params} for method, params in REQUESTS)]
        requests.append({"method": "tools/list", "params": {"_meta": ENVELOPE}})
        requests.append({"method": "tools/list", "params": {"_meta": 3}})
    expected = of_the_sdk(running, requests)
    with client(running) as found:
        for request, answer in zip(requests, expected, strict=True):
            assert_same(request, found.ask(**request), answer)


def test_nothing_is_answered_before_initialize_but_ping(running: list[RunningToolset]) -> None:
    requests: list[dict[str, Any]] = [{"method": "ping", "params": {}}, {"method": "tools/list", "params": {}}]
    requests += [{"method": "server/discover", "params": {}}, {"method": "initialize", "params": {"capabilities": {}}}]
    expected = of_the_sdk(running, requests)
    with client(running) as found:
        for request, answer in zip(requests, expected, strict=True):
            assert_same(request, found.ask(**request), answer)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": NaN}}', -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "\\ud800"}}', -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": ' + b"[" * 10_000, -32700),
        (b"[" * 10_000 + b"]" * 10_000, -32700),
        (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
    ],
)
def test_a_malformed_line_is_an_error(running: list[RunningToolset], line: bytes, code: int) -> None:
    with contextlib.suppress(ValueError) if b"NaN" in line else pytest.raises(ValueError):  # the SDK takes NaN
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if b'"id"' in line and "id" not in message.model_fields_set:
            raise ValueError("the SDK takes it for a notification")
    with client(running) as found:
        os.write(found.sending, line + b"\n")
        assert found.read()["error"]["code"] == code
        assert found.ask("ping", {})["result"] == {}


def test_a_byte_order_mark_before_the_first_message_is_read(running: list[RunningToolset]) -> None:
    with client(running) as found:
        os.write(found.sending, b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 5, "method": "ping"}\n')
        assert found.read() == {"jsonrpc": "2.0", "id": 5, "result": {}}


def test_a_client_learns_which_of_its_requests_has_half_of_a_surrogate_pair(running: list[RunningToolset]) -> None:
    with client(running) as found:
        os.write(found.sending, b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "\\ud800"}}\n')
        answer = found.read()
        assert (answer["id"], answer["error"]["code"]) == (5, -32700) and "surrogate" in answer["error"]["message"]
        os.write(found.sending, b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}\n')
        assert found.read()["id"] is None


def begun(found: Client) -> None:
    found.ask("initialize", {"protocolVersion": "2025-06-18", **CLIENT}, 0)
    found.send({"method": "notifications/initialized"})


class Slow:
    """Documents whose list takes until it is let go."""

    def __init__(self) -> None:
        self.began, self.let_go = threading.Semaphore(0), threading.Event()
        self.calls = 0

    def list_pages(self, **_: Any) -> Any:
        self.calls += 1
        self.began.release()
        assert self.let_go.wait(20)
        raise anvil.AnvilError("let go")


def test_a_cancelled_call_has_no_answer_and_one_in_the_queue_does_not_run() -> None:
    slow = Slow()
    with client([RunningToolset(TOOLSET, slow)]) as found:
        begun(found)
        calls = [{"id": n, "method": "tools/call", "params": {"name": "list_pages"}} for n in range(1, 11)]
        found.send(*calls)
        for _ in range(8):
            assert slow.began.acquire(timeout=20)
        for number in (1, 9, 10, "2", [3]):  # "2" is another request than 2, and a list is none
            found.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        assert found.ask("ping", {}, 99)["id"] == 99
        slow.let_go.set()
        assert sorted(found.read()["id"] for _ in range(7)) == [2, 3, 4, 5, 6, 7, 8]
        assert found.ask("ping", {}, 100)["id"] == 100 and slow.calls == 8


def test_open_requests_are_answered_after_the_end_of_input() -> None:
    slow = Slow()
    found = Client([RunningToolset(TOOLSET, slow)])
    begun(found)
    found.send({"id": 1, "method": "tools/call", "params": {"name": "list_pages"}})
    os.close(found.sending)
    assert found.conversation.ended.wait(20)
    threading.Timer(0.2, slow.let_go.set).start()
    began = time.monotonic()
    found.conversation.finish(20)
    assert time.monotonic() - began < 10 and found.read()["id"] == 1
    os.close(found.receiving)


def test_progress_has_the_token_of_the_request_and_ends_with_it() -> None:
    slow = Slow()
    with client([RunningToolset(TOOLSET, slow)]) as found:
        begun(found)
        params = {"name": "list_pages", "_meta": {"progressToken": "mine"}}
        found.send({"id": 1, "method": "tools/call", "params": params})
        assert slow.began.acquire(timeout=20)
        found.reporter("reading", 1, 2)
        told = found.read()
        assert told["method"] == "notifications/progress"
        assert told["params"] == {"progressToken": "mine", "progress": 1, "total": 2, "message": "reading 1 of 2"}
        slow.let_go.set()
        assert found.read()["id"] == 1
        found.reporter("reading", 2, 2)
        assert found.ask("ping", {}, 2)["id"] == 2
