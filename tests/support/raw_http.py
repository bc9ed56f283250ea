"""MCP over HTTP by hand: single calls, incomplete requests, and calls without a reader."""

from __future__ import annotations

import json
import socket
import urllib.request
from typing import Any
from urllib.parse import urlsplit

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def body(method: str, **params: Any) -> bytes:
    """The body of a JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def request(url: str, method: str, token: str = "", timeout_s: float = 60, **params: Any) -> bytes:
    """The body of the response to one call."""
    headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(url, body(method, **params), headers), timeout=timeout_s) as it:
        response: bytes = it.read()
    return response


def tool(url: str, name: str, **arguments: Any) -> dict[str, Any] | None:
    """The structured content of a tool's result; None for a tool error."""
    text = request(url, "tools/call", name=name, arguments=arguments).decode()
    result = json.loads(text if text.startswith("{") else text.partition("data: ")[2].splitlines()[0])["result"]
    return None if result.get("isError") else result["structuredContent"]


def sent(url: str, data: bytes) -> socket.socket:
    """A connection on which ``data`` was sent, and nothing was read."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname or "", place.port or 0), timeout=10)
    connection.sendall(data)
    return connection


def head(length: int) -> bytes:
    """The head of a request with a body of so many bytes."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    return f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {length}\r\n\r\n".encode()
