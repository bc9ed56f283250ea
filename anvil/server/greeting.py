"""``initialize`` answered at once: before the protocol's SDK is loaded, which takes over a second of processor time.

The answer is the one that the SDK gives (a test compares them); the SDK is handed the request all the same, to set up
its session, and its own answer is then left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anvil import __version__
from anvil.server.surface import Surface

NAME = "anvil"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``; another one is answered with the newest of these."""
CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": False},
}
OF_PAGES = ("completions", "resources")
"""The capabilities of a server that has pages."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a server says of itself: its title, words for the model, and whether there are pages."""

    title: str
    instructions: str
    pages: bool

    @classmethod
    def of(cls, surfaces: Sequence[Surface]) -> Introduction:
        """The introduction of surfaces that are served together."""
        title = surfaces[0].title if len(surfaces) == 1 else "Anvil"
        words = "\n\n".join(each.instructions for each in surfaces)
        return cls(title, words, any(each.pages for each in surfaces))

    def capabilities(self) -> dict[str, Any]:
        """What a client may ask for."""
        return {name: value for name, value in CAPABILITIES.items() if self.pages or name not in OF_PAGES}


def answer(line: bytes, introduction: Introduction) -> tuple[int | str, bytes] | None:
    """(request id, the answering line) when ``line`` is a sound ``initialize`` request, else None."""
    try:
        request = json.loads(line)
        number, params = request["id"], request["params"]
        client = params["clientInfo"]
        sound = (
            request["jsonrpc"] == "2.0"
            and request["method"] == "initialize"
            and type(number) in (int, str)
            and isinstance(params["protocolVersion"], str)
            and isinstance(params["capabilities"], dict)
            and isinstance(client["name"], str)
            and isinstance(client["version"], str)
            and "_meta" not in params
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not sound:
        return None
    wanted = params["protocolVersion"]
    result = {
        "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": introduction.capabilities(),
        "serverInfo": {"name": NAME, "title": introduction.title, "version": __version__},
        "instructions": introduction.instructions,
    }
    return number, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}, ensure_ascii=False).encode()
