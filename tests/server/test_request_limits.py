"""Requests that are too many, or whose bodies are too large together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from anvil.server.http_options import HttpOptions
from anvil.server.http_transport import MessageCheck
from anvil.server.request_limits import ConcurrencyMiddleware

SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")],
}


async def answers(application: ASGIApp, bodies: list[list[bytes]], open_gate: Callable[[], None]) -> list[list[int]]:
    """The statuses that each request gets, which sends these pieces of a body. The gate is opened when all wait."""

    async def request(pieces: list[bytes]) -> list[int]:
        statuses: list[int] = []
        left = list(pieces)

        async def receive() -> Any:
            await asyncio.sleep(0)
            if not left or statuses:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await application(dict(SCOPE), receive, send)
        return statuses

    running = [asyncio.ensure_future(request(pieces)) for pieces in bodies]
    await asyncio.sleep(0.2)
    open_gate()
    return list(await asyncio.gather(*running))


def waiting_application(gate: asyncio.Event) -> Starlette:
    """An application that reads the body, and answers when the gate is open."""

    async def endpoint(request: Request) -> Response:
        await request.body()
        await gate.wait()
        return Response()

    return Starlette(routes=[Route("/", endpoint, methods=["POST"])])


def test_a_request_over_the_limit_is_answered_once_when_its_body_is_complete() -> None:
    async def main() -> list[list[int]]:
        gate = asyncio.Event()
        guard = ConcurrencyMiddleware(waiting_application(gate), HttpOptions())
        return await answers(guard, [[b"{", b"}"]] * (256 + 3), gate.set)

    statuses = asyncio.run(main())
    assert statuses.count([200]) == 256 and statuses.count([503]) == 3


def test_an_answered_request_does_not_count() -> None:
    async def main() -> list[list[int]]:
        gate = asyncio.Event()

        async def slow_to_end(scope: Any, receive: Any, send: Any) -> None:
            await Request(scope, receive).body()
            await Response()(scope, receive, send)
            await gate.wait()

        return await answers(ConcurrencyMiddleware(slow_to_end, HttpOptions()), [[b"{}"]] * 300, gate.set)

    assert asyncio.run(main()) == [[200]] * 300


def test_large_bodies_together_have_a_limit_and_small_ones_pass() -> None:
    large = [b'{"jsonrpc": "2.0", "id": 1, "method": "ping"'.ljust(2 * 1024 * 1024), b" " * 2 * 1024 * 1024, b"}"]
    small = [b"", b'{"jsonrpc": "2.0", "id": 1, ', b'"method": "ping"}']  # counts when the large ones are held

    async def main() -> tuple[list[list[int]], list[list[int]]]:
        gate = asyncio.Event()
        check = MessageCheck(waiting_application(gate), HttpOptions())
        together = await answers(check, [large] * 40 + [small] * 5, gate.set)
        return together, await answers(check, [large] * 3, gate.set)

    together, later = asyncio.run(main())
    assert together.count([503]) == 8 and together.count([200]) == 32 + 5  # 32 are 128 MiB
    assert later == [[200]] * 3
