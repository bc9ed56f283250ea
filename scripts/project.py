"""What the files of a release say about the project, read from where it is decided.

``pyproject.toml`` names the package, its repository and its site; ``anvil/_version.py`` holds the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def table() -> dict[str, Any]:
    """``[project]`` of pyproject.toml."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(found, dict)
    return found


def version() -> str:
    """``anvil.__version__``, read from the source, because another version may be installed."""
    text = (ROOT / "anvil" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found, "anvil/_version.py says no __version__"
    return found[1]


NAME: str = table()["name"]
"""Of the package on PyPI."""
URLS: dict[str, str] = table()["urls"]
"""Homepage, Documentation, Source, Changelog, Issues, Security."""
OWNER, REPOSITORY = URLS["Source"].removeprefix("https://github.com/").split("/")
MCP_NAME = f"io.github.{OWNER}/{REPOSITORY}"
"""Of the server in the MCP registry, which compares it with the README on PyPI and the image's label."""
IMAGE = f"ghcr.io/{OWNER}/{REPOSITORY}"
"""The container image, without a tag."""


def download(file: str) -> str:
    """The address of a file of this version's release."""
    return f"{URLS['Source']}/releases/download/v{version()}/{file}"
