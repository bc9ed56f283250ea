"""Real servers for tests: processes over pipes and loopback, or in memory, and one way to talk to all of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.types import Implementation

from anvil.server.toolset import ServeRequest

ROOT = Path(__file__).resolve().parents[2]


def environment(**more: str) -> dict[str, str]:
    """The environment of a server process, without settings of this machine."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **more}


def command(docs: Path, index: Path | None = None, *flags: str) -> list[str]:
    """The command line of a server over a folder of documents."""
    return program("--docs", str(docs), *(["--index", str(index)] if index else []), *flags)


def program(*flags: str) -> list[str]:
    """The command line of any server."""
    return [sys.executable, "-W", "error::ResourceWarning", "-m", "anvil", "serve", *flags]


@dataclass
class Speaker:
    """A connected client, used as if it were synchronous."""

    portal: BlockingPortal
    client: Client
    heard: list[Any] = field(default_factory=list)
    reporter: Any = None
    """What tells of progress, of a server in memory."""

    @property
    def server_info(self) -> Implementation:
        """How the server named itself."""
        assert self.client.server_info is not None
        return self.client.server_info

    @property
    def instructions(self) -> str:
        """What the server told the model about itself."""
        assert self.client.instructions is not None
        return self.client.instructions

    def do(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the client and wait."""
        return self.portal.call(lambda: getattr(self.client, name)(*arguments, **named))

    def call(self, tool: str, **arguments: Any) -> Any:
        """A tool's result, whatever it is."""
        return self.do("call_tool", tool, arguments)

    def ok(self, tool: str, **arguments: Any) -> Any:
        """A tool's structured content; its text is the same JSON."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        said = json.loads(result.content[0].text)
        assert (said if isinstance(said, dict) else {"result": said}) == result.structured_content
        return said

    def wait_for_index(self, seconds: float = 60) -> None:
        """Ask until a published index is there: on a busy machine fetching it takes longer than a server waits."""
        end = time.monotonic() + seconds
        while (said := self.call("list_pages")).is_error:
            assert "Ask again in a moment" in said.content[0].text and time.monotonic() < end, said.content[0].text

    def refused(self, tool: str, **arguments: Any) -> str:
        """The message of a tool error: one or two sentences, no traceback."""
        result = self.call(tool, **arguments)
        assert result.is_error
        message: str = result.content[0].text
        assert message and "Traceback" not in message and "\n" not in message
        return message

    def until(self, wanted: type, seconds: float = 10) -> Any:
        """The first notification of a kind, waited for."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for message in list(self.heard):
                if isinstance(message, wanted):
                    return message
            time.sleep(0.02)
        raise AssertionError(f"no {wanted.__name__} came; heard {self.heard}")


@contextmanager
def connected(server: Any, mode: str = "legacy", **options: Any) -> Iterator[Speaker]:
    """A client of a transport, a URL, or a server object."""
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    with start_blocking_portal() as portal:
        client = Client(server, mode=mode, message_handler=hear, **options)
        with portal.wrap_async_context_manager(client):
            yield Speaker(portal, client, heard)


@contextmanager
def over_stdio(docs: Path, index: Path | None, *flags: str, mode: str = "legacy") -> Iterator[Speaker]:
    """A client of a server process over its pipes."""
    with piped(command(docs, index, *flags), docs.parent, mode) as speaker:
        yield speaker


@contextmanager
def piped(line: list[str], cwd: Path, mode: str = "legacy") -> Iterator[Speaker]:
    """A client of the server that a command line starts."""
    parameters = StdioServerParameters(command=line[0], args=line[1:], env=environment(), cwd=cwd)
    with open(os.devnull, "w") as nothing, connected(stdio_client(parameters, errlog=nothing), mode) as speaker:
        yield speaker


@contextmanager
def in_memory(docs: Path, index: Path | None, provider: str | None = None, mode: str = "legacy") -> Iterator[Speaker]:
    """A client of the server object in this process."""
    options = ServeRequest(str(docs), None if index is None else str(index), provider=provider, watch=False)
    with with_options(options, mode) as speaker:
        yield speaker


@contextmanager
def with_options(options: ServeRequest, mode: str = "legacy") -> Iterator[Speaker]:
    """A client of the server object in this process that has these options; its working folder is that of the test."""
    from anvil.server.logs import ProgressReporter
    from anvil.server.mcp_app import running_app
    from anvil.server.toolset import open_toolset

    reporter = ProgressReporter()
    with ExitStack() as stack:
        running = stack.enter_context(open_toolset("docs", options, reporter))
        running.target.start(reporter)
        portal = stack.enter_context(start_blocking_portal())
        app = stack.enter_context(portal.wrap_async_context_manager(running_app([running], reporter)))
        heard: list[Any] = []

        async def hear(message: Any) -> None:
            heard.append(message)

        client = Client(app.server, mode=mode, message_handler=hear)
        stack.enter_context(portal.wrap_async_context_manager(client))
        yield Speaker(portal, client, heard, reporter)


@dataclass
class Process:
    """A server process on a loopback port."""

    process: subprocess.Popen[bytes]
    stderr: Path
    url: str

    @property
    def base(self) -> str:
        """``http://host:port``"""
        return self.url.rsplit("/", 1)[0]

    def log(self) -> str:
        """Its output on stderr so far."""
        return self.stderr.read_text(encoding="utf-8")

    def stop(self, number: int = signal.SIGTERM, seconds: float = 20) -> int:
        """Send a signal. Returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)


@contextmanager
def over_http(
    docs: Path, index: Path | None, *flags: str, transport: str = "http", **variables: str
) -> Iterator[Process]:
    """A server process on a port of its own, ready to answer."""
    with listening(command(docs, index, *flags), docs.parent, transport, **variables) as process:
        yield process


@contextmanager
def listening(line: list[str], cwd: Path, transport: str = "http", **variables: str) -> Iterator[Process]:
    """The server that a command line starts, on a port of its own."""
    log = cwd / f"{transport}-{time.monotonic_ns()}.log"
    line = [*line, "--transport", transport, "--port", "0"]
    with open(log, "wb") as stderr:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment(**variables),
            cwd=cwd,
        )
    try:
        end = time.monotonic() + 60
        while not (found := re.search(r"Serving on (http://[^\s\"]+)", log.read_text(encoding="utf-8"))):
            assert process.poll() is None and time.monotonic() < end, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield Process(process, log, found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def over_sse(url: str) -> Any:
    """The SDK's transport for older servers."""
    return sse_client(url)
