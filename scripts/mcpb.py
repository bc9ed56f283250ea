"""The bundle for desktop clients: one file that they install with a double click.

    python scripts/mcpb.py WHEEL FOLDER      writes FOLDER/anvil-VERSION.mcpb

It holds the wheel and a manifest; the client's own uv makes the environment, with a Python if there is none, so that
one bundle serves every system. The same wheel gives the same bytes. The format: MANIFEST.md of
github.com/modelcontextprotocol/mcpb, version 0.4, server type ``uv``.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from anvil.server import docs_toolset
from scripts.project import NAME, OWNER, ROOT, URLS, table, version

SOURCE = ROOT / "mcpb"
"""The server's first lines, and the icon."""
PYTHON = ">=3.10,<3.14"
"""Those that are tested. On another, a wheel of a dependency may be missing; uv fetches one of these."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive, its earliest."""

LONG = """\
Choose a folder of Markdown, and ask. Anvil builds one index of it on your machine, compares it with the files before
each answer, and finds sections by words and by meaning. No service, no key: the embedding model comes with it. The
tools only read. Or name an index that is published on the web or on GitHub, and ask that.
"""

SETTINGS = {
    "docs": {
        "type": "directory",
        "title": "Documentation folder",
        "description": "The folder of Markdown to answer from. An index is kept in it, in .anvil.",
        "required": False,
        "default": "",
    },
    "index": {
        "type": "string",
        "title": "Published index",
        "description": "Instead of a folder: https://HOST/index.db, or github:OWNER/REPO#artifact:NAME.",
        "required": False,
        "default": "",
    },
}


def manifest() -> dict[str, Any]:
    """manifest.json. The tools are the server's own."""
    described = table()
    return {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": "Anvil: ask your documentation",
        "version": version(),
        "description": "Answers questions from a folder of Markdown, always as it is now. All on your machine.",
        "long_description": LONG,
        "author": {"name": described["authors"][0]["name"], "url": f"https://github.com/{OWNER}"},
        "repository": {"type": "git", "url": URLS["Source"]},
        "homepage": URLS["Homepage"],
        "documentation": URLS["Documentation"],
        "support": URLS["Issues"],
        "icon": "icon.png",
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": [
                    "run",
                    "--directory",
                    "${__dirname}",
                    "server.py",
                    *(f"--{name}=${{user_config.{name}}}" for name in SETTINGS),
                ],
            },
        },
        "tools": [{"name": tool.name, "description": tool.description} for tool in docs_toolset.TOOLSET.tools],
        "tools_generated": False,
        "keywords": ["documentation", "markdown", "search"],
        "license": described["license"],
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": PYTHON}},
        "user_config": SETTINGS,
    }


def environment(wheel: str) -> str:
    """pyproject.toml, from which uv makes the server's environment: the wheel next to it, and its dependencies."""
    return f"""\
[project]
name = "anvil-desktop"
version = "{version()}"
requires-python = "{PYTHON}"
dependencies = ["{NAME}"]

[tool.uv.sources]
{NAME} = {{ path = "{wheel}" }}
"""


def build(wheel: Path, folder: Path) -> Path:
    """Write the bundle into a folder; its path."""
    files = {
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "icon.png": (SOURCE / "icon.png").read_bytes(),
        "manifest.json": (json.dumps(manifest(), indent=2) + "\n").encode(),
        "pyproject.toml": environment(wheel.name).encode(),
        "server.py": (SOURCE / "server.py").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }
    path = folder / f"anvil-{version()}.mcpb"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, EPOCH)  # stored, not deflated: the same bytes with every zlib
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Usage: python scripts/mcpb.py WHEEL FOLDER")
    print(build(Path(sys.argv[1]), Path(sys.argv[2])))
