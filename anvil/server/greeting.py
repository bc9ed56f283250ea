"""``initialize`` answered at once: before the protocol's SDK is loaded, which takes over a second of processor time.

The answer is the one that the SDK gives (a test compares them); the SDK is handed the request all the same, to set up
its session, and its own answer is then left out.
"""

from __future__ import annotations

import json
from typing import Any

from anvil import __version__

NAME, TITLE = "anvil", "Anvil documentation"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with ``initialize``; another one is answered with the newest of these."""
CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": False},
}


def answer(line: bytes, instructions: str) -> tuple[int | str, bytes] | None:
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
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "title": TITLE, "version": __version__},
        "instructions": instructions,
    }
    return number, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}, ensure_ascii=False).encode()
