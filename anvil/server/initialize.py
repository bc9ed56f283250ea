"""The answer to ``initialize``, made without the SDK, which takes over a second of processor time to load.

A test checks that it equals the SDK's answer. The SDK gets the request too, to set up its session. Its own answer is
dropped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from anvil._version import __version__
from anvil.server.toolset import Toolset

NAME = "anvil"
WEBSITE_URL = "https://anvil-docs.github.io/anvil/"
DESCRIPTION = "Search and read documentation, compared with its files before each answer."
_ICON = (Path(__file__).parent / "ui" / "anvil.svg").read_bytes()
ICONS = [
    {
        "src": f"data:image/svg+xml;base64,{base64.b64encode(_ICON).decode()}",
        "mimeType": "image/svg+xml",
        "sizes": ["any"],
    }
]
"""The icon, whole, because a server may have no network."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``. Any other revision is answered with the newest of these."""
CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": False},
}
PAGE_CAPABILITIES = ("completions", "resources")
"""The capabilities that only a server with pages as resources has."""


class Answer(NamedTuple):
    """The id of an ``initialize`` request, and the line that answers it."""

    request_id: int | str
    line: bytes


@dataclass(frozen=True, slots=True)
class InitializeReply:
    """The contents of the answer: the server's title, instructions for the model, and whether pages are resources."""

    title: str
    instructions: str
    has_pages: bool

    @classmethod
    def for_toolsets(cls, toolsets: Sequence[Toolset]) -> InitializeReply:
        """The reply of a server with these toolsets."""
        return cls(
            title=toolsets[0].title if len(toolsets) == 1 else "Anvil",
            instructions="\n\n".join(toolset.instructions for toolset in toolsets),
            has_pages=any(toolset.has_pages for toolset in toolsets),
        )

    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities, as in the protocol."""
        return {name: value for name, value in CAPABILITIES.items() if self.has_pages or name not in PAGE_CAPABILITIES}

    def answer(self, line: bytes) -> Answer | None:
        """The answer to ``line``; None unless it is a valid ``initialize`` request."""
        try:
            request = json.loads(line)
            request_id, params = request["id"], request["params"]
            client = params["clientInfo"]
            version = params["protocolVersion"]
            valid = (
                request["jsonrpc"] == "2.0"
                and request["method"] == "initialize"
                and type(request_id) in (int, str)
                and isinstance(version, str)
                and isinstance(params["capabilities"], dict)
                and isinstance(client["name"], str)
                and isinstance(client["version"], str)
                and "_meta" not in params
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not valid:
            return None
        result = {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": self.capabilities(),
            "serverInfo": {
                "name": NAME,
                "title": self.title,
                "version": __version__,
                "description": DESCRIPTION,
                "websiteUrl": WEBSITE_URL,
                "icons": ICONS,
            },
            "instructions": self.instructions,
        }
        message = {"jsonrpc": "2.0", "id": request_id, "result": result}
        return Answer(request_id, json.dumps(message, ensure_ascii=False).encode())
