"""Memory of a server for a client of a standing connection that does not read its answers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from anvil.server.mcp_app import Unread
from anvil.server.protocol import ProtocolError


def test_a_client_that_does_not_read_has_few_answers_made() -> None:
    async def main() -> tuple[int, int, int]:
        reads = asyncio.Event()
        made = refused = 0

        async def send(_: object) -> None:
            await reads.wait()

        client = Unread(SimpleNamespace(send=send))

        async def call() -> None:
            nonlocal made, refused
            try:
                async with client.request():
                    made += 1
                    await asyncio.sleep(0)
            except ProtocolError:
                refused += 1
            else:
                await client.send("an answer")

        calls = [asyncio.create_task(call()) for _ in range(256 + 10)]
        await asyncio.sleep(0.1)
        unread = made
        reads.set()
        await asyncio.gather(*calls)
        return unread, made, refused

    unread, made, refused = asyncio.run(main())
    assert 16 <= unread <= 32 and (made, refused) == (256, 10)
