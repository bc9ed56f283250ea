"""Links of a web page that add an MCP server to a program, after it has asked its user.

The formats, read in November 2026:

- VS Code: https://code.visualstudio.com/api/extension-guides/ai/mcp#create-an-mcp-installation-url
- Cursor: https://cursor.com/docs/mcp/install-links
- LM Studio: https://lmstudio.ai/docs/app/mcp/deeplink
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote


def install_links(name: str, words: Sequence[str]) -> dict[str, str]:
    """Title of a program -> the link that adds the server ``name``. ``words``: the command that starts it."""
    server = {"command": words[0], "args": [*words[1:]]}
    config = base64.b64encode(_json(server).encode()).decode()
    query = f"name={quote(name, safe='')}&config={quote(config, safe='')}"
    return {
        "VS Code": f"vscode:mcp/install?{quote(_json({'name': name, 'type': 'stdio', **server}), safe='')}",
        "Cursor": f"cursor://anysphere.cursor-deeplink/mcp/install?{query}",
        "LM Studio": f"lmstudio://add_mcp?{query}",
    }


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
