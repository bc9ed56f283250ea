"""The key of the installed program in GitHub's Actions cache.

The action runs this file before Anvil is installed, so it imports the standard library only. The key depends on:

- the system, Python, the mode, and the requested package
- the contents of the files in ``PIP_CONSTRAINT``
- the source that came with the action
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path

PARTS = ("pyproject.toml", "anvil", "mkdocs_anvil")


def key(source: Path, mode: str, package: str, constraints: str = "") -> str:
    """The cache key; ``""`` if the installation must not be cached."""
    if package and "==" not in package:
        return ""  # without a fixed version, a cached installation would never be updated
    digest = hashlib.sha256(f"{package}\n{sys.version}\n{platform.platform()}".encode())
    for file in map(Path, constraints.split()):
        digest.update(file.read_bytes() if file.is_file() else str(file).encode("utf-8", "surrogateescape"))
    for part in PARTS:
        files = sorted((source / part).rglob("*")) if (source / part).is_dir() else [source / part]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(source).as_posix()}\n".encode("utf-8", "surrogateescape"))
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"anvil-program-{mode}-{digest.hexdigest()[:32]}"


if __name__ == "__main__":
    inputs = [os.environ["MODE"], os.environ["PACKAGE"], os.environ.get("PIP_CONSTRAINT", "")]
    cache_key = key(Path(os.environ["GITHUB_ACTION_PATH"]), *inputs)
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"key={cache_key}\n")
