"""The HTTP transports on real loopback: who is let in, what is refused, health, replicas, and how it ends."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.server import http_transport
from anvil.server.http_options import HttpOptions, host_name
from anvil.server.request_limits import ConcurrencyMiddleware
from tests.conftest import PAGES, write
from tests.e2e.mcp.test_stdio import INITIALIZE, call
from tests.support import mcp_servers
from tests.support.mcp_servers import Process
from tests.support.programs import complaint

TOKEN = "s3cret-Token.of~the/server+=="
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("http")
    with anvil.open(write(place / "docs", PAGES), place / "index.db", "none") as opened:
        opened.index()
    return place / "docs"


def serve(docs: Path, *flags: str, transport: str = "http", **variables: str) -> Any:
    flags = ("--provider", "none", *flags)
    return mcp_servers.over_http(docs, docs.parent / "index.db", *flags, transport=transport, **variables)


@pytest.fixture(scope="module")
def server(docs: Path) -> Iterator[Process]:
    with serve(docs) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(docs: Path) -> Iterator[Process]:
    """A server with a token, which also knows another host name; its log says all."""
    with serve(docs, "--allowed-host", "docs.example.org", "--log-level", "debug", ANVIL_TOKEN=TOKEN) as server:
        yield server


def ask(server: Process, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Status and text of a raw request."""
    address = server.url.split("/")[2]
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in named, skip_accept_encoding=True)
        for name, value in named.items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in named:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def post(server: Process, message: Any, **headers: str) -> tuple[int, str]:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return ask(server, "POST", "/mcp", body, **{**JSON, **headers})


def result(text: str) -> Any:
    """The JSON-RPC message in a JSON or event-stream body."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(lines[-1] if lines else text)


# --- health ----------------------------------------------------------------------------------------------------


def test_health_counts(server: Process) -> None:
    status, text = ask(server, "GET", "/health")
    assert status == 200
    health = json.loads(text)
    assert health["status"] == "ok" and health["pages"] == len(PAGES) and health["version"] == anvil.__version__
    assert health["chunks"] > len(PAGES) and health["pending_vectors"] == 0
    assert ask(server, "POST", "/health", b"")[0] == 405
    assert ask(server, "GET", "/nothing")[0] == 404


# --- who is let in ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1", "127.0.0.1:80", "[::1]:80", "LOCALHOST", "localhost."]
)
def test_loopback_names_are_served(server: Process, host: str) -> None:
    assert post(server, INITIALIZE, Host=host)[0] == 200
    assert post(server, INITIALIZE, Host=host, Origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "evil.example.com:80",
        "",
        "a b",
        "localhost@evil.example.com",
        "evil.example.com#localhost",
        "localhost/x",
        "localhost#x",
        "local\thost",
        "10.0.0.1",
        "127.0.0.1:x",
        "[::1",
    ],
)
def test_rebound_names_are_refused(server: Process, host: str) -> None:
    for path, method in (("/mcp", "POST"), ("/health", "GET")):
        status, text = ask(server, method, path, json.dumps(INITIALIZE).encode(), **JSON, Host=host)
        assert status in (400, 403) and "serverInfo" not in text


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example.com", "null", "https://localhost.evil.example.com", "file://", "http://", "localhost"],
)
def test_foreign_origins_are_refused(server: Process, origin: str) -> None:
    status, text = post(server, INITIALIZE, Origin=origin)
    assert status == 403 and "serverInfo" not in text


def test_a_named_host_is_served(guarded: Process) -> None:
    bearer = f"Bearer {TOKEN}"
    assert post(guarded, INITIALIZE, Host="docs.example.org", Authorization=bearer)[0] == 200
    assert (
        post(
            guarded, INITIALIZE, Host="docs.example.org:8443", Origin="https://docs.example.org", Authorization=bearer
        )[0]
        == 200
    )
    assert post(guarded, INITIALIZE, Host="other.example.org", Authorization=bearer)[0] == 403


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN.lower()}",
        "Bearer \xff",
    ],
)
def test_without_the_token_nothing_is_told(guarded: Process, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    status, text = post(guarded, INITIALIZE, **headers)
    assert status == 401 and "serverInfo" not in text and TOKEN not in text
    is_other = (authorization or "")[:7] == "Bearer " and authorization != "Bearer "
    assert ("That is not the server's token." in text) == is_other


def test_the_token_opens(guarded: Process) -> None:
    for scheme in ("Bearer", "bearer"):
        assert result(post(guarded, INITIALIZE, Authorization=f"{scheme} {TOKEN}")[1])["result"]["serverInfo"]
    assert ask(guarded, "GET", "/health")[0] == 200  # balancers have no token
    assert ask(guarded, "GET", "/mcp")[0] == 401
    assert TOKEN not in guarded.log()


def test_a_refused_request_is_a_line_in_the_log(guarded: Process) -> None:
    invented = "203.0.113.9"  # no proxy is named that would have written it
    assert post(guarded, INITIALIZE, Authorization="Bearer wr0ng", X_Forwarded_For=invented)[0] == 401
    assert ask(guarded, "GET", "/a%0Ab?token=wr0ng", Host="evil.example.org")[0] == 403
    log = guarded.log()
    assert "info refused a request (status=401 path=/mcp client=127.0.0.1)" in log
    assert "info refused a request (status=403 path=/a%0Ab client=127.0.0.1)" in log
    assert "wr0ng" not in log


@pytest.mark.parametrize("sent", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_type_of_body_is_answered_with_the_right_one(server: Process, sent: str) -> None:
    status, text = ask(server, "POST", "/mcp", json.dumps(INITIALIZE).encode(), **{**JSON, "Content-Type": sent})
    assert status == 415
    assert result(text)["error"]["message"] == "The header Content-Type must be application/json."


def test_the_token_through_the_sdk(guarded: Process) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
    with mcp_servers.connected(streamable_http_client(guarded.url, http_client=client)) as speaker:
        assert speaker.ok("search_docs", query="alert")["results"]


def test_host_token_and_names_from_the_environment(docs: Path, tmp_path: Path) -> None:
    """A container has them in variables, and the token in a file, with a line end."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    variables = {"ANVIL_HOST": "0.0.0.0", "ANVIL_TOKEN_FILE": str(file), "ANVIL_ALLOWED_HOST": "docs.example.org docs "}
    with serve(docs, "--proxies", "1", **variables) as server:
        assert server.url.startswith("http://0.0.0.0:") and "token=required" in server.log()
        near = replace(server, url=server.url.replace("0.0.0.0", "127.0.0.1"))
        for name in ("docs.example.org", "docs", "127.0.0.1", "10.1.2.3"):
            assert post(near, INITIALIZE, Host=name, Authorization=f"Bearer {TOKEN}")[0] == 200
        assert post(near, INITIALIZE, Host="docs.example", Authorization=f"Bearer {TOKEN}")[0] == 403
        assert post(near, INITIALIZE, X_Forwarded_For="198.51.100.7, 203.0.113.9")[0] == 401
        assert "client=203.0.113.9)" in server.log(), "the address that the one proxy added"
        assert TOKEN not in server.log()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--token-file", "none"], "none cannot be read ("),
        (["--token-file", "empty"], "empty is empty"),
        (["--token-file", "bytes"], "it is not UTF-8 text"),
        (["--token-file", "two"], "printable ASCII without spaces"),
        (["--token-file", "two", "--token", "x"], "Give one of them"),
        (["--token", ""], "The token is empty"),
    ],
)
def test_a_token_that_cannot_be_meant_is_an_error(tmp_path: Path, flags: list[str], told: str) -> None:
    for name, content in {"empty": b" \n", "bytes": b"\xff\xfe", "two": b"one two\n"}.items():
        (tmp_path / name).write_bytes(content)
    message = complaint("serve", "--transport", "http", "--port", "0", *flags, cwd=tmp_path)
    assert told in message and "one two" not in message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "docs.example.org", ""])
def test_other_hosts_need_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="ANVIL_TOKEN"):
        HttpOptions(host)
    HttpOptions(host, token="x")
    HttpOptions(host, insecure=True)
    assert "x-secret-x" not in repr(HttpOptions("localhost", token="x-secret-x"))


def test_other_hosts_need_a_token_on_the_command_line(docs: Path) -> None:
    line = mcp_servers.command(docs, None, "--transport", "http", "--host", "0.0.0.0")
    done = subprocess.run(line, capture_output=True, env=mcp_servers.environment(), timeout=30)
    assert done.returncode == 2 and b"ANVIL_TOKEN" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("token", ["with space", "line\nbreak", "ümlaut"])
def test_a_token_that_no_header_can_carry(token: str) -> None:
    with pytest.raises(ConfigError, match="printable"):
        HttpOptions(token=token)


def test_all_addresses_are_served_by_address_not_by_name() -> None:
    access = HttpOptions("0.0.0.0", token="x", allowed_host=("Docs.Example.org",))
    assert access.knows("192.0.2.7") and access.knows("::1") and access.knows("docs.example.org")
    assert not access.knows("evil.example.com")
    assert HttpOptions("127.0.0.1", allowed_host=("*",)).knows("anything")
    assert HttpOptions("Docs.Example.org", token="x").knows("docs.example.org")
    for name in ("https://docs.example.org", "docs.example.org:8443", "*.example.org", ""):
        with pytest.raises(ConfigError, match="is not a host name"):
            HttpOptions("127.0.0.1", allowed_host=(name,))
    assert HttpOptions("127.0.0.1", allowed_host=("[2001:db8::1]",)).knows("2001:db8::1")
    assert HttpOptions("192.0.2.7", token="x").knows("192.0.2.7") and not HttpOptions("192.0.2.7", token="x").knows(
        "192.0.2.8"
    )
    assert host_name("[::1]:80") == "::1" and host_name("a:b") is None and host_name("user@a") is None
    assert host_name("[::1].evil.example") is None and host_name("[::1]evil:80") is None


# --- what is refused -------------------------------------------------------------------------------------------


def test_large_requests_are_refused_and_survived(server: Process) -> None:
    body = json.dumps(call(1, "search_docs", query="x" * 4 * 1024 * 1024)).encode()
    assert post(server, body)[0] == 413
    big = call(1, "search_docs", query="alert " * 170_000)
    status, text = post(server, big)
    assert status == 200 and result(text)["result"]["structuredContent"]["results"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b'{"jsonrpc": "1.0"}', b"\xff", b"[" * 100_000])
def test_malformed_bodies_are_errors(server: Process, body: bytes) -> None:
    status, text = post(server, body)
    assert 400 <= status < 500 and "Traceback" not in text
    assert ask(server, "GET", "/health")[0] == 200


def test_only_so_many_at_once() -> None:
    """The limit itself, with the guard alone: opening hundreds of sockets says nothing more."""

    async def main() -> list[int]:
        statuses: list[int] = []
        gate = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            await gate.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def receive() -> Any:
            return {"type": "http.request"}

        guard = ConcurrencyMiddleware(slow, HttpOptions())
        scope = {"type": "http", "path": "/mcp", "headers": [(b"host", b"localhost")]}
        running = [asyncio.create_task(guard(scope, receive, send)) for _ in range(256 + 3)]
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.gather(*running)
        await guard(scope, receive, send)
        return statuses

    statuses = asyncio.run(main())
    assert statuses.count(503) == 3 and statuses.count(200) == 256 + 1


def test_streams_leave_room_for_the_messages_to_them() -> None:
    async def main() -> list[int]:
        refused: list[int] = []
        left = asyncio.Event()

        @asynccontextmanager
        async def connect_sse(*_: Any) -> AsyncIterator[tuple[None, None]]:
            yield None, None

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                refused.append(message["status"])

        scope = {"type": "http", "path": "/sse", "headers": []}
        app = SimpleNamespace(serve=lambda *_: left.wait())
        streams = http_transport._Streams(cast(Any, app), HttpOptions())
        streams.transport = cast(Any, SimpleNamespace(connect_sse=connect_sse))
        running = [asyncio.create_task(streams(scope, None, send)) for _ in range(224 + 3)]
        await asyncio.sleep(0.05)
        left.set()
        await asyncio.gather(*running)
        await streams(scope, None, send)
        return refused

    assert asyncio.run(main()) == [503] * 3


# --- many clients ----------------------------------------------------------------------------------------------


def test_a_slash_at_the_end_of_the_address_is_no_redirect(server: Process) -> None:
    """It would name http, and behind a proxy for TLS a client would send its token in the clear."""
    status, text = ask(server, "POST", "/mcp/", json.dumps(INITIALIZE).encode(), **JSON)
    assert status == 200 and result(text)["result"]["serverInfo"]
    assert ask(server, "GET", "/health/")[0] == 200 and ask(server, "GET", "/sse/")[0] == 404


def test_requests_stand_alone(server: Process) -> None:
    """No session: a call without a handshake is answered, by any replica."""
    status, text = post(server, call(7, "search_docs", query="alert"))
    assert status == 200 and result(text)["result"]["structuredContent"]["results"]


def test_replicas_answer_alike(docs: Path, server: Process) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(serve(docs))
        client = stack.enter_context(mcp_servers.connected(server.url))
        expected = client.ok("search_docs", query="alert")["results"]
        for each in (server, other, server):
            found = result(post(each, call(1, "search_docs", query="alert"))[1])
            assert found["result"]["structuredContent"]["results"] == expected


def test_an_index_alone_is_served(docs: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "anvil", "serve", "--index", str(docs.parent / "index.db"), "--provider", "none"]
    message = "\n".join(json.dumps(each) for each in (INITIALIZE, call(1, "search_docs", query="alert")))
    done = subprocess.run(
        line,
        input=message.encode() + b"\n",
        capture_output=True,
        env=mcp_servers.environment(),
        cwd=tmp_path,
        timeout=60,
    )
    answer = json.loads(done.stdout.splitlines()[-1])["result"]["structuredContent"]
    assert answer["results"] and answer["freshness"]["checked"] is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_there_is_no_stream_without_a_session_nor_a_session_to_end(server: Process, method: str) -> None:
    """Clients open a stream by default; what nothing is ever sent on would only hold a place of the others."""
    address = server.url.split("/")[2]
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request(method, "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": "x"})
        response = connection.getresponse()
        assert (response.status, response.headers["Allow"]) == (405, "POST")
    finally:
        connection.close()


def test_many_streams_at_once(server: Process) -> None:
    with ThreadPoolExecutor(12) as pool:
        questions = [call(n, "search_docs", query=f"alert {n}") for n in range(36)]
        for number, (status, text) in enumerate(pool.map(lambda each: post(server, each), questions)):
            assert status == 200 and result(text)["id"] == number


def test_a_client_that_vanishes_mid_call(server: Process) -> None:
    host, _, port = server.url.split("/")[2].partition(":")
    body = json.dumps(call(1, "search_docs", query="alert " * 20_000)).encode()
    for cut in (len(body), len(body) // 2):
        for _ in range(5):
            with socket.create_connection((host, int(port))) as sock:
                head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                sock.sendall((head + "".join(f"{n}: {v}\r\n" for n, v in JSON.items()) + "\r\n").encode() + body[:cut])
    assert post(server, call(2, "search_docs", query="alert"))[0] == 200
    assert "Traceback" not in server.log()


# --- the end ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_in_order(docs: Path, transport: str, number: int) -> None:
    with serve(docs, transport=transport) as server, ExitStack() as stack:
        connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=30)
        connection.request("GET", server.url.removeprefix(server.base), headers={"Accept": "text/event-stream"})
        response = connection.getresponse()  # a stream that stands open; streamable HTTP has none
        if transport == "sse":
            assert ask(server, "POST", "/sse", b"{}")[0] == 405  # from which clients of both transports know the older
            assert response.status == 200 and b"endpoint" in response.readline()
        stack.callback(connection.close)
        stack.callback(response.close)
        assert server.stop(number) == 0
        assert "graceful shutdown exceeded" not in server.log(), "it waited for the stream"
        assert "Traceback" not in server.log() and "ResourceWarning" not in server.log()


def test_two_servers_that_start_at_once_do_not_share_a_port() -> None:
    """With SO_REUSEADDR both can bind it, until one of them listens."""
    with http_transport.listening(HttpOptions(port=0)) as first:
        taken = HttpOptions(port=first.getsockname()[1])
        with pytest.raises(ConfigError, match="cannot be used"), http_transport.listening(taken):
            pass


def test_a_port_that_is_taken(docs: Path, server: Process) -> None:
    port = server.url.split("/")[2].partition(":")[2]
    line = mcp_servers.command(docs, None, "--transport", "http", "--port", port, "--provider", "none")
    done = subprocess.run(line, capture_output=True, env=mcp_servers.environment(), timeout=30)
    assert done.returncode == 2 and b"--port" in done.stderr and b"Traceback" not in done.stderr
