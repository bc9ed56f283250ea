"""server.json, what the MCP registry lists: the package on PyPI, the container image and the bundle.

    python scripts/server_json.py                      write it (the bundle is added by a release, which has its digest)
    python scripts/server_json.py --check              exit with 1 when it is not what the project says

The format: https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json, and what the official
registry demands besides: docs/reference/server-json of github.com/modelcontextprotocol/registry.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.project import IMAGE, MCP_NAME, NAME, ROOT, URLS, download, version

FILE = ROOT / "server.json"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
DESCRIPTION = "Search your documentation folder: one local index, hybrid search, never an answer from stale text."
"""At most 100 characters."""
STDIO = {"type": "stdio"}
SERVE = {"type": "positional", "value": "serve"}
MARKDOWN = {"type": "named", "name": "--text", "value": "markdown"}
"""As in the entries that ``anvil init --client`` writes: agents read less."""

DOCS = {
    "type": "named",
    "name": "--docs",
    "description": "The folder of Markdown to answer from.",
    "format": "filepath",
    "isRequired": True,
}
INDEX = {
    "type": "named",
    "name": "--index",
    "description": "An index that is published: https://..., github:OWNER/REPO#artifact:NAME, or a file. "
    "Default: .anvil/index.db in the folder, built when it is not there.",
    "format": "string",
}
ENVIRONMENT: list[dict[str, Any]] = [
    {
        "name": "ANVIL_EMBEDDING_PROVIDER",
        "description": "What makes the vectors: the bundled model, OpenAI's API (with the extra 'openai'), or nothing.",
        "choices": ["local", "openai", "none"],
        "default": "local",
    },
    {
        "name": "OPENAI_API_KEY",
        "description": "Read only when ANVIL_EMBEDDING_PROVIDER is openai.",
        "isSecret": True,
    },
]
"""What a user may want to set; all keys: docs/reference/configuration.md."""


def listing(bundle: Path | None = None) -> dict[str, Any]:
    """The whole of server.json; with the bundle's entry when there is a bundle."""
    packages = [pypi(), image()]
    if bundle is not None:
        packages.append(desktop(bundle))
    return {
        "$schema": SCHEMA,
        "name": MCP_NAME,
        "title": "Anvil",
        "description": DESCRIPTION,
        "version": version(),
        "websiteUrl": URLS["Homepage"],
        "repository": {"url": URLS["Source"], "source": "github"},
        "packages": packages,
    }


def pypi() -> dict[str, Any]:
    """``uvx anvil-docs@VERSION serve --docs FOLDER``."""
    return {
        "registryType": "pypi",
        "registryBaseUrl": "https://pypi.org",
        "identifier": NAME,
        "version": version(),
        "runtimeHint": "uvx",
        "transport": STDIO,
        "packageArguments": [SERVE, DOCS, INDEX, MARKDOWN],
        "environmentVariables": ENVIRONMENT,
    }


def image() -> dict[str, Any]:
    """``docker run -i --rm -v FOLDER:/docs:ro IMAGE serve --docs /docs ...``; the index goes into memory."""
    folder = {"docs": {"description": DOCS["description"], "format": "filepath", "isRequired": True}}
    return {
        "registryType": "oci",
        "identifier": f"{IMAGE}:{version()}",
        "runtimeHint": "docker",
        "transport": STDIO,
        "runtimeArguments": [
            {"type": "named", "name": "--volume", "value": "{docs}:/docs:ro", "variables": folder},
        ],
        "packageArguments": [
            SERVE,
            {"type": "named", "name": "--docs", "value": "/docs"},
            {"type": "named", "name": "--index", "value": "/tmp/index.db"},
            MARKDOWN,
        ],
        "environmentVariables": ENVIRONMENT,
    }


def desktop(bundle: Path) -> dict[str, Any]:
    """The bundle for desktop clients, by the address that the release will give it."""
    return {
        "registryType": "mcpb",
        "identifier": download(bundle.name),
        "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        "transport": STDIO,
    }


def text(bundle: Path | None = None) -> str:
    """server.json as it is written."""
    return json.dumps(listing(bundle), indent=2) + "\n"


def is_current() -> bool:
    """Whether the file is what the project says."""
    return FILE.exists() and FILE.read_text(encoding="utf-8") == text()


def main() -> None:
    """Write the file, or say that it is not what it should be."""
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text(), encoding="utf-8", newline="\n")
    elif not is_current():
        sys.exit("server.json is not what the project says. Run 'python scripts/server_json.py'.")


if __name__ == "__main__":
    main()
