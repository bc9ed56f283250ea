"""The pipe itself: what is on it byte for byte, what is not JSON, how the server ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.server import protocol
from anvil.server.stdio import MAX_LINE_BYTES
from tests.conftest import PAGES, write
from tests.support import mcp_servers

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Pipe:
    """A server process, spoken to in raw lines."""

    def __init__(self, docs: Path, *flags: str, **variables: str) -> None:
        line = mcp_servers.command(docs, docs.parent / "index.db", "--provider", "none", *flags)
        self.log = docs.parent / f"stdio-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as stderr:
            self.process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=mcp_servers.environment(**variables),
                cwd=docs.parent,
            )
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def send(self, *messages: Any) -> None:
        for message in messages:
            raw = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.stdin.write(raw + b"\n")
        self.stdin.flush()

    def read(self) -> Any:
        """The next answer; notifications before it, such as of the first build, are left out."""
        while "method" in (message := json.loads(self.stdout.readline())):
            pass
        return message

    def answer(self, number: int) -> Any:
        """The next answer, which is the one to this request."""
        message = self.read()
        assert message["id"] == number, message
        return message

    def begin(self) -> None:
        self.send(INITIALIZE)
        self.answer(0)
        self.send(INITIALIZED)

    def end(self) -> None:
        """Leave like a client: the server must end."""
        self.stdin.close()
        assert self.process.wait(20) == 0
        self.stdout.close()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, tmp_path / "index.db", "none") as opened:
        opened.index()
    return docs


@pytest.fixture
def pipe(docs: Path) -> Iterator[Pipe]:
    pipe = Pipe(docs, "--log-level", "debug")
    yield pipe
    if pipe.process.poll() is None:
        pipe.process.kill()
    pipe.process.wait()
    pipe.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        pipe.stdin.close()


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    """A conversation that is used by all tests of malformed lines, which must not end it."""
    pipe = Pipe(write(tmp_path_factory.mktemp("chat") / "docs", PAGES))
    pipe.begin()
    yield pipe
    pipe.end()


def test_a_conversation_byte_for_byte(pipe: Pipe) -> None:
    pipe.send(INITIALIZE)
    first = pipe.read()
    assert first["id"] == 0 and first["result"]["protocolVersion"] == "2025-06-18"
    assert first["result"]["serverInfo"] == {
        "name": "anvil",
        "title": "Anvil documentation",
        "version": anvil.__version__,
        "description": protocol.DESCRIPTION,
        "websiteUrl": protocol.WEBSITE_URL,
        "icons": protocol.ICONS,
    }
    pipe.send(INITIALIZED, call(1, "search_docs", query="alert", top_k=1))
    assert pipe.answer(1)["result"]["structuredContent"]["results"]
    pipe.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert pipe.answer(2)["result"] == {}
    pipe.stdin.close()
    assert pipe.stdout.read() == b""
    assert pipe.process.wait(20) == 0
    log = pipe.log.read_text()
    assert "search_docs answered (tool=search_docs ms=" in log and "Traceback" not in log


def test_a_session_loads_neither_the_sdk_nor_asyncio(docs: Path) -> None:
    pipe = Pipe(docs, "--no-watch", PYTHONPROFILEIMPORTTIME="1")  # tells each import in the log; watchfiles has anyio
    pipe.begin()
    requests: list[dict[str, Any]] = [
        {"method": "ping"},
        {"method": "tools/list"},
        call(0, "search_docs", query="alert"),
        {"method": "resources/list"},
        {"method": "resources/read", "params": {"uri": "anvil://page/install.md"}},
        {"method": "resources/subscribe", "params": {"uri": "anvil://page/install.md"}},
        {"method": "skills/list"},
        {"method": "logging/setLevel", "params": {"level": "error"}},
    ]
    for number, request in enumerate(requests, 1):
        pipe.send({"jsonrpc": "2.0", **request, "id": number})
        assert "result" in pipe.answer(number)
    pipe.end()
    imported = {line.rpartition("|")[2].strip() for line in pipe.log.read_text().splitlines() if "import time" in line}
    assert "anvil.server.stdio" in imported
    assert not {"mcp", "mcp_types", "pydantic", "starlette", "anyio", "asyncio"} & imported


def test_a_client_that_does_not_read_fills_no_memory_and_can_leave(docs: Path) -> None:
    pipe = Pipe(docs)
    pipe.begin()
    asked = 0

    def ask() -> None:
        nonlocal asked
        with contextlib.suppress(OSError, ValueError):
            for number in range(1, 20_000):
                pipe.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
                asked = number

    asking = threading.Thread(target=ask)
    asking.start()
    before = -1
    while asking.is_alive() and asked != before:
        before = asked
        asking.join(0.5)
    assert asking.is_alive() and asked < 5000, asked  # the server reads no further lines
    pipe.stdout.close()
    assert pipe.process.wait(20) == 0
    asking.join()
    with contextlib.suppress(OSError):
        pipe.stdin.close()


def test_many_calls_at_once_are_each_answered_once(docs: Path) -> None:
    pipe = Pipe(docs)
    pipe.send(
        INITIALIZE, INITIALIZED, *[call(number, "search_docs", query=f"alert {number}") for number in range(1, 60)]
    )
    pipe.stdin.close()
    answers = [json.loads(line)["id"] for line in pipe.stdout]
    assert sorted(answers) == list(range(60))
    assert pipe.process.wait(20) == 0
    pipe.stdout.close()


def test_a_second_initialize_is_answered(chat: Pipe) -> None:
    chat.send(INITIALIZE | {"id": 77})
    assert chat.answer(77)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"not json", -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping"', -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b'"x"', -32600),
        (b"{}", -32600),
        (b'{"id": 5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "1.0", "id": 5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "\\ud800"}}', -32700),
    ],
)
def test_malformed_lines_are_answered_and_survived(chat: Pipe, line: bytes, code: int) -> None:
    chat.send(line, {"jsonrpc": "2.0", "id": 6, "method": "ping"})
    error = chat.read()
    assert error["error"]["code"] == code and error["id"] in (None, 5)
    assert "Traceback" not in error["error"]["message"]
    assert chat.answer(6)["result"] == {}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"method": "no/such"}, -32601),
        ({"method": "tools/call"}, -32602),
        ({"method": "tools/call", "params": {"name": 3}}, -32602),
        ({"method": "tools/call", "params": {"name": "search_docs", "arguments": "pump"}}, -32602),
        ({"method": "resources/read", "params": {}}, -32602),
        ({"method": "completion/complete", "params": {"ref": {"type": "x"}}}, -32602),
    ],
)
def test_unfit_requests_are_errors_of_the_protocol(chat: Pipe, request_: dict[str, Any], code: int) -> None:
    chat.send({"jsonrpc": "2.0", "id": 8, **request_})
    assert chat.answer(8)["error"]["code"] == code


def test_a_line_without_end_does_not_fill_the_memory(chat: Pipe) -> None:
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    sending = threading.Thread(target=chat.send, args=(b"x" * (MAX_LINE_BYTES * 2), ping))
    sending.start()
    error = chat.read()
    sending.join()
    assert error["error"]["code"] == -32600 and str(MAX_LINE_BYTES) in error["error"]["message"]
    assert chat.answer(9)["result"] == {}


def test_blank_lines_are_nothing(chat: Pipe) -> None:
    chat.send(b"", b"  ", b"\r", {"jsonrpc": "2.0", "id": 10, "method": "ping"})
    assert chat.read()["id"] == 10


def test_a_script_that_closes_stdin_gets_its_answers(pipe: Pipe) -> None:
    pipe.send(INITIALIZE, INITIALIZED, call(1, "search_docs", query="alert"), call(2, "get_status"))
    pipe.stdin.close()
    answers = {json.loads(line)["id"] for line in pipe.stdout}
    assert answers == {0, 1, 2}
    assert pipe.process.wait(20) == 0


def test_nothing_sent_at_all(pipe: Pipe) -> None:
    pipe.stdin.close()
    assert pipe.stdout.read() == b"" and pipe.process.wait(20) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("begun", [True, False])
def test_signals_end_it_in_order(pipe: Pipe, number: int, begun: bool) -> None:
    if begun:
        pipe.begin()
        pipe.send(call(1, "get_status"))
        pipe.answer(1)
    else:
        end = time.monotonic() + 20
        while not _waits(pipe) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.2)
    pipe.process.send_signal(number)
    assert pipe.process.wait(20) == 0
    assert "Traceback" not in pipe.log.read_text() and "ResourceWarning" not in pipe.log.read_text()


def _waits(pipe: Pipe) -> bool:
    """Whether the process has come as far as reading its input: its own stdin is the null device by then."""
    try:
        return os.readlink(f"/proc/{pipe.process.pid}/fd/0") == os.devnull
    except OSError:
        time.sleep(3)
        return True


def test_a_client_that_vanishes_mid_call(pipe: Pipe) -> None:
    pipe.begin()
    pipe.send(*[call(n, "search_docs", query="alert " * 5000) for n in range(1, 40)])
    pipe.stdout.close()
    pipe.stdin.close()
    assert pipe.process.wait(30) == 0
    assert "Traceback" not in pipe.log.read_text()


def test_prints_of_others_do_not_reach_the_protocol(docs: Path) -> None:
    code = (
        "import os, sys; from anvil.server.stdio import StdioPipe; "
        "pipe = StdioPipe.take_over_stdio(); print('a print'); "
        "os.write(1, b'a write\\n'); sys.stdout.flush(); pipe.put(b'protocol'); pipe.flush()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=mcp_servers.environment(),
        timeout=30,
    )
    assert done.stdout == b"protocol\n" and b"a print" in done.stderr and b"a write" in done.stderr


def test_anvil_alone_serves(docs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anvil"],
        input=json.dumps(INITIALIZE).encode() + b"\n",
        capture_output=True,
        env=mcp_servers.environment(ANVIL_EMBEDDING_PROVIDER="none"),
        cwd=docs.parent,
        timeout=60,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "anvil" and done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_a_person_is_told_what_it_waits_for(docs: Path) -> None:
    import pty

    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "anvil", "serve"],
        stdin=inner,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=mcp_servers.environment(ANVIL_EMBEDDING_PROVIDER="none"),
        cwd=docs.parent,
    )
    os.close(inner)
    assert process.stderr and process.stdout
    assert b"waiting for an MCP client" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert process.stdout.read() == b""
    process.stderr.close()
    process.stdout.close()
    os.close(outer)


def test_no_docs_is_an_error_for_people(tmp_path: Path) -> None:
    done = subprocess.run(
        mcp_servers.command(tmp_path / "none"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=mcp_servers.environment(),
        timeout=30,
    )
    assert done.returncode == 2 and done.stdout == b"" and b"There is no folder" in done.stderr


def test_json_logs(docs: Path) -> None:
    pipe = Pipe(docs, "--log-level", "debug", "--log-format", "json")
    pipe.begin()
    pipe.send(call(1, "search_docs", query="alert"))
    pipe.answer(1)
    pipe.stdin.close()
    assert pipe.process.wait(20) == 0
    pipe.stdout.close()
    lines = [json.loads(line) for line in pipe.log.read_text().splitlines()]
    (timed,) = [line for line in lines if line.get("tool") == "search_docs"]
    assert timed["level"] == "debug" and timed["ms"] > 0 and timed["time"].endswith("Z")


def test_silence(docs: Path) -> None:
    pipe = Pipe(docs, "--log-level", "silent")
    pipe.begin()
    pipe.stdin.close()
    assert pipe.process.wait(20) == 0
    pipe.stdout.close()
    assert pipe.log.read_text() == ""


LATE = {
    "anvil.status",
    "anvil.search.searcher",
    "anyio",
    "asyncio",
    "difflib",
    "mcp",
    "numpy",
    "pygit2",
    "ssl",
    "watchfiles",
    "yaml",
}
"""Modules that nobody needs until ``initialize`` is answered."""
MOST_MODULES = 85
"""Of Anvil, until then."""


def test_initialize_is_answered_before_the_rest_is_imported(docs: Path) -> None:
    index = docs.parent / "index.db"
    place = ["--docs", str(docs), "--index", str(index)]
    build = [sys.executable, "-m", "anvil", "build", *place, "--provider", "none", "--quiet"]
    subprocess.run(build, check=True, env=mcp_servers.environment())
    code = """
import os, sys
from anvil.cli.program import main
write, answered = os.write, []
def spy(target, data):
    if not answered:  # in the thread that writes, before the server goes on
        answered.append(sorted(sys.modules))
    return write(target, data)
os.write = spy
try:
    main()
finally:
    print("\\n".join(answered[0]), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", *place, "--log-level", "silent"],
        input=json.dumps(INITIALIZE).encode() + b"\n",
        capture_output=True,
        env=mcp_servers.environment(),
        timeout=60,
    )
    assert "These documents are about" in json.loads(done.stdout.splitlines()[0])["result"]["instructions"]
    modules = done.stderr.decode().splitlines()
    assert not LATE & set(modules)
    assert sum(name.startswith("anvil") for name in modules) <= MOST_MODULES


def test_answers_as_markdown_are_sent_once(docs: Path) -> None:
    pipe = Pipe(docs, "--text", "markdown")
    pipe.begin()
    pipe.send(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2, "search_docs", query="silence alerts at night")
    )
    assert all("outputSchema" not in tool for tool in pipe.answer(1)["result"]["tools"])
    result = pipe.answer(2)["result"]
    assert "structuredContent" not in result
    assert result["content"][0]["text"].startswith("guides/alerts.md#silence-at-night (lines ")
    pipe.end()
