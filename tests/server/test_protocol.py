"""Errors of the protocol, on each transport: a code of JSON-RPC, and a message that says what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import anvil
from anvil.server import protocol
from anvil.server.docs_toolset import TOOLSET
from anvil.server.http_options import HttpOptions
from anvil.server.http_transport import streamable
from anvil.server.logs import ProgressReporter
from anvil.server.mcp_app import running_app
from anvil.server.toolset import RunningToolset
from tests.conftest import PAGES, write
from tests.server.test_stdio import CLIENT, ENVELOPE, MODERN, PATHS, REQUESTS, client, of_the_sdk

CODES = {
    -32700: "the text is no JSON",
    -32600: "the JSON is no request",
    -32601: "no such method",
    -32602: "wrong parameters",
    -32603: "the server failed",
    -32022: "no such revision",
    -32020: "a header of HTTP that contradicts the body",
}
LEGACY = "2025-11-25"
GREETING = {"method": "initialize", "params": {"protocolVersion": LEGACY, **CLIENT}}
UNKNOWN = ["no/such", "prompts/list", "sampling/createMessage", "", "tools/List", "x" * 100_000]


class Broken:
    """Documents of which each method fails as a method does that has no memory left: without a message."""

    is_several = False
    members = ()

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise MemoryError

        return fail

    def on_change(self, callback: Any) -> Any:
        return lambda: None


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningToolset]]:
    docs = write(tmp_path_factory.mktemp("answers") / "docs", PAGES)
    with anvil.open(docs, provider="none") as opened:
        opened.index()
        yield [RunningToolset.of(TOOLSET, opened)]


def requests(version: str, asked: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Requests on one connection of a revision."""
    if version == MODERN:
        enveloped: list[dict[str, Any]] = [{"method": "server/discover", "params": {"_meta": ENVELOPE}}]
        return enveloped + [{"method": method, "params": {**params, "_meta": ENVELOPE}} for method, params in asked]
    return [GREETING, *({"method": method, "params": params} for method, params in asked)]


def over_stdio(running: list[RunningToolset], asked: list[dict[str, Any]]) -> list[Any]:
    with client(running) as found:
        return [found.ask(**each) for each in asked]


def over_http(running: list[RunningToolset], bodies: list[tuple[bytes, dict[str, str]]]) -> list[Any]:
    """The answers to bodies with these headers, each a request of its own."""

    async def ask() -> list[Any]:
        async with running_app(running, ProgressReporter(), standing=False) as app:
            application = streamable(app, HttpOptions("127.0.0.1"))
            async with application.router.lifespan_context(application):
                return [await post(application, *each) for each in bodies]

    return asyncio.run(ask())


async def post(application: Any, body: bytes, headers: dict[str, str]) -> Any:
    """The JSON that answers one request: the body, or the last event of a stream."""
    sent: list[dict[str, Any]] = []
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            await asyncio.sleep(60)
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    accepted = {"host": "127.0.0.1", "content-type": "application/json"}
    accepted |= {"accept": "application/json, text/event-stream", **headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in accepted.items()],
    }
    await application(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent).decode()
    assert dict(sent[0]["headers"]).get(b"content-length", str(len(text.encode())).encode()).decode() == str(
        len(text.encode())
    )
    return json.loads(text.rpartition("data: ")[2])


def as_http(version: str, asked: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """A request as a body and headers."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **asked}).encode()
    if version != MODERN:
        return body, {}
    name = asked["params"].get("name") or asked["params"].get("uri")
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": asked["method"]}
    return body, headers | ({"Mcp-Name": name} if isinstance(name, str) else {})


def assert_clear(request: Any, answer: Any) -> None:
    """An error has a code of the protocol, and more than a name for what went wrong."""
    if "error" in answer:
        error = answer["error"]
        assert error["code"] in CODES, (request, error)
        assert len(error["message"].split()) > 4 and len(error["message"]) < 1000, (request, error)


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_each_error_has_a_code_and_says_what_to_do(running: list[RunningToolset], version: str) -> None:
    asked = requests(version, [*REQUESTS, *((method, {}) for method in UNKNOWN)])
    for request, ours, theirs in zip(asked, over_stdio(running, asked), of_the_sdk(running, asked), strict=True):
        assert_clear(request, ours)
        assert_clear(request, theirs)
    bodies = [as_http(version, each) for each in asked if len(each["method"]) < 1000]
    for (body, _), answer in zip(bodies, over_http(running, bodies), strict=True):
        assert_clear(body, answer)


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_a_method_that_there_is_not_is_named_with_those_that_there_are(
    running: list[RunningToolset], version: str
) -> None:
    asked = requests(version, [("tools/List", {})])
    answers = [over_stdio(running, asked)[1], of_the_sdk(running, asked)[1]]
    answers += over_http(running, [as_http(version, asked[1])])
    for answer in answers:
        assert answer["error"]["code"] == -32601 and answer["error"]["data"] == "tools/List"
        assert "'tools/List'" in answer["error"]["message"] and " tools/list, " in answer["error"]["message"]


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_what_fails_inside_is_said_with_its_kind(version: str, caplog: pytest.LogCaptureFixture) -> None:
    running = [RunningToolset(replace(TOOLSET, topics=None), Broken())]
    page = {"uri": "anvil://page/index.md"}
    asked = requests(
        version,
        [
            ("skills/list", {}),
            ("skills/get", {"uri": "skill://a/SKILL.md"}),
            ("resources/list", {}),
            ("resources/read", page),
            ("completion/complete", PATHS),
        ],
    )
    answers = [over_stdio(running, asked)[1:], of_the_sdk(running, asked)[1:]]
    answers.append(over_http(running, [as_http(version, each) for each in asked[1:]]))
    for each in answers:
        for request, answer in zip(asked[1:], each, strict=True):
            assert answer["error"] == {
                "code": -32603,
                "message": f"{request['method']} failed inside the server (MemoryError). The server's log has the "
                "details.",
            }
    assert "MemoryError" in caplog.text


def test_a_parameter_that_is_wrong_is_named_over_http(running: list[RunningToolset]) -> None:
    asked = [("resources/read", {}), ("tools/list", {"cursor": 3}), ("skills/get", {})]
    bodies = [as_http(LEGACY, {"method": method, "params": params}) for method, params in asked]
    messages = [answer["error"]["message"] for answer in over_http(running, bodies)]
    assert "uri: Field required." in messages[0] and "cursor: Input should be a valid string." in messages[1]
    assert messages[2] == "Invalid request parameters: uri must be a string."


@pytest.mark.parametrize("headers", [{}, {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "ping"}])
def test_a_body_that_is_no_message_is_refused(running: list[RunningToolset], headers: dict[str, str]) -> None:
    broken, no_message = [b"", b"{", b"\xff", b"[" * 10_000], [b"[]", b"null", b'{"jsonrpc": "2.0", "id": 1}']
    for bodies, code in ((broken, -32700), (no_message, -32600)):
        for body, answer in zip(bodies, over_http(running, [(body, headers) for body in bodies]), strict=True):
            assert answer["id"] == (1 if b'"id": 1' in body else None) and answer["error"]["code"] == code, body
            assert "Send one JSON-RPC 2.0" in answer["error"]["message"].replace("send", "Send"), body


def test_an_error_is_a_text_or_a_value_as_the_toolset_says() -> None:
    assert protocol.error_result("gone", TOOLSET)["content"] == [{"type": "text", "text": "gone"}]
    as_value = protocol.error_result("gone", replace(TOOLSET, errors_as_values=True))
    assert (as_value["structuredContent"], as_value["isError"]) == ({"status": "error", "error": "gone"}, True)
