"""Names the installed program in the Actions cache. Run by the action before Anvil is installed: standard library only.

The name holds all that the installation depends on: system, Python, mode, the package that is asked for, and the bytes
of the source that came with the action. A package without a fixed version has no name, so that it is not kept for ever.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path

PARTS = ("pyproject.toml", "anvil", "mkdocs_anvil")


def key(source: Path, mode: str, package: str) -> str:
    """The name; empty when the installation must not be kept."""
    if package and "==" not in package:
        return ""
    found = hashlib.sha256(f"{package}\n{sys.version}\n{platform.platform()}".encode())
    for part in PARTS:
        below = sorted((source / part).rglob("*")) if (source / part).is_dir() else [source / part]
        for file in below:
            if file.is_file() and file.suffix != ".pyc":
                found.update(f"{file.relative_to(source).as_posix()}\n".encode("utf-8", "surrogateescape"))
                found.update(hashlib.sha256(file.read_bytes()).digest())
    return f"anvil-program-{mode}-{found.hexdigest()[:32]}"


if __name__ == "__main__":
    made = key(Path(os.environ["GITHUB_ACTION_PATH"]), os.environ["MODE"], os.environ["PACKAGE"])
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"key={made}\n")
