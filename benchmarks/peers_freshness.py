"""A page is edited while a server runs, and the server is asked at once: who answers from the new text?

    python -m venv /tmp/peers && /tmp/peers/bin/pip install 'markdown-vault-mcp[file-watcher]' jdocmunch-mcp \\
        papermoon-mkdocs-mcp
    python benchmarks/peers_freshness.py --peers /tmp/peers/bin [--wait 20]

Four pages, no vectors, each server as its own documentation starts it, over a pipe. A sentence with a word that no page
had is added to a page; then the word is asked for, again and again, until an answer names the page or ``--wait`` is
over.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import heading, table

PAGES = {
    "index.md": "# Lighthouse\n\nIt watches your servers, and tells you when one is down.\n",
    "install.md": "# Install\n\nDownload the package and start it.\n\n## Linux\n\nIt is a service of systemd.\n",
    "alerts.md": "# Alerts\n\nAn alert is sent when a check fails.\n\n## Silence\n\nAlerts are held back at night.\n",
    "checks.md": "# Checks\n\nA check is a question to a server.\n\n## Disk\n\nA disk check looks at free space.\n",
}
WORD = "quokka"


@dataclass
class Peer:
    """How a tool is started over ``docs`` and asked; ``{}`` in a word is the folder around it."""

    name: str
    serve: list[str]
    tool: str
    query: dict[str, Any]
    before: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


PEERS = [
    Peer(
        "Anvil",
        [sys.executable, "-m", "anvil", "serve", "--docs", "{}/docs", "--provider", "none"],
        "search_docs",
        {},
    ),
    Peer(
        "markdown-vault-mcp",
        ["markdown-vault-mcp", "serve"],
        "search",
        {},
        settings={"MARKDOWN_VAULT_MCP_SOURCE_DIR": "{}/docs", "MARKDOWN_VAULT_MCP_INDEX_PATH": "{}/index.db"},
    ),
    Peer(
        "papermoon-mkdocs-mcp",
        ["papermoon-mkdocs-mcp", "--config", "{}/mkdocs.yml"],
        "search",
        {"search_type": "keyword"},
    ),
    Peer(
        "jdocmunch-mcp",
        ["jdocmunch-mcp"],
        "search_sections",
        {"repo": "local/docs"},
        before=["jdocmunch-mcp", "index-local", "--path", "{}/docs"],
        settings={"DOC_INDEX_PATH": "{}/store", "JDOCMUNCH_SHARE_SAVINGS": "0"},
    ),
]


async def trial(peer: Peer, folder: Path, programs: Path, wait: float) -> str:
    """When the new text was found."""
    from mcp import Client, StdioServerParameters, stdio_client

    def filled(words: list[str]) -> list[str]:
        first, *more = (word.replace("{}", str(folder)) for word in words)
        return [first if first == sys.executable else str(programs / first), *more]

    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    if peer.name != "Anvil":
        del environment["PYTHONPATH"]
    environment |= {name: value.replace("{}", str(folder)) for name, value in peer.settings.items()}
    if peer.before:
        subprocess.run(filled(peer.before), env=environment, cwd=folder, check=True, capture_output=True)
    line = filled(peer.serve)
    parameters = StdioServerParameters(command=line[0], args=line[1:], env=environment, cwd=folder)

    async def ask(client: Client, query: str) -> str:
        result = await client.call_tool(peer.tool, {"query": query, **peer.query})
        return " ".join(getattr(part, "text", "") for part in result.content)

    with open(os.devnull, "w") as nothing:
        async with Client(stdio_client(parameters, errlog=nothing), mode="legacy") as client:
            end = time.monotonic() + 60
            while "install.md" not in (said := await ask(client, "package")):
                assert time.monotonic() < end, f"{peer.name} finds nothing at all: {said[:300]}"
                await asyncio.sleep(0.2)
            await asyncio.sleep(2)  # what watches files has begun to
            page = folder / "docs" / "alerts.md"
            assert page.name not in await ask(client, WORD), f"{peer.name} finds what is not there"
            page.write_text(page.read_text() + f"\nA {WORD} is sent along.\n")
            start = time.monotonic()
            while page.name not in await ask(client, WORD):
                if time.monotonic() - start > wait:
                    return f"not within {wait:.0f} s"
                await asyncio.sleep(0.25)
            passed = time.monotonic() - start
            return "at once" if passed < 1 else f"after {passed:.0f} s"


def main() -> None:
    """Try each tool that is installed, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="folder of the peers' programs")
    parser.add_argument("--wait", type=float, default=20)
    given = parser.parse_args()
    rows = []
    for peer in PEERS:
        if peer.name != "Anvil" and not (given.peers / peer.serve[0]).exists():
            print(f"skipped: {peer.name} is not in {given.peers}.", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "docs").mkdir()
            (folder / "mkdocs.yml").write_text("site_name: Lighthouse\n")
            for path, text in PAGES.items():
                (folder / "docs" / path).write_text(text)
            rows.append((peer.name, asyncio.run(trial(peer, folder, given.peers, given.wait))))
    print(heading(1))
    print(table(("tool", "the new text is found"), rows))


if __name__ == "__main__":
    main()
