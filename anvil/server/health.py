"""``GET /health``: the state of each toolset of a server, and how much it holds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anvil._version import __version__
from anvil.errors import AnvilError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    from anvil.api import Anvil
    from anvil.server.threads import ThreadBridge
    from anvil.server.toolset import Toolset

HEALTH_CACHE_S = 1.0
"""Time for which ``/health`` repeats an answer, so that frequent requests cost little."""
STATUSES = ("ok", "degraded", "error")
"""From best to worst."""


def of_docs(opened: Anvil) -> dict[str, Any]:
    """Numbers of pages, chunks and missing vectors; of all collections together, where there are several."""
    status = opened.get_status()
    counted_in: Any = status.collections or [status.index]
    return {
        "status": "ok",
        "version": __version__,
        "pages": sum(each.total_pages or 0 for each in counted_in),
        "chunks": sum(each.total_chunks or 0 for each in counted_in),
        "pending_vectors": sum(each.pending_vectors or 0 for each in counted_in),
    }


class Health:
    def __init__(self, parts: Sequence[tuple[Toolset, ThreadBridge]]) -> None:
        import asyncio  # servers over stdio do without

        self._parts = parts
        self._known: Mapping[str, Any] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def answer(self, _: Request) -> JSONResponse:
        """200 with counts, or 503 with the reason. Several toolsets are each under their name, with the worst status on
        top."""
        from starlette.responses import JSONResponse

        async with self._asking:
            if time.monotonic() >= self._until:
                parts = {toolset.name: await self._part(toolset, bridge) for toolset, bridge in self._parts}
                worst = max((part["status"] for part in parts.values()), key=STATUSES.index)
                [self._known, *others] = parts.values()
                if others:
                    self._known = {"status": worst, "version": __version__, **parts}
                self._until = time.monotonic() + HEALTH_CACHE_S
        return JSONResponse(self._known, 503 if self._known["status"] == "error" else 200)

    async def _part(self, toolset: Toolset, bridge: ThreadBridge) -> Mapping[str, Any]:
        try:
            return await bridge.call("health", toolset.health)
        except AnvilError as error:
            return {"status": "error", "version": __version__, "error": str(error)}
