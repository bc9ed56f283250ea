"""This installation, as others have to call it: the ``anvil`` program, and what pip is told to mend it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

DISTRIBUTION = "anvil-docs"
"""The name under which package registries know Anvil."""
_SPECIAL = re.compile(r"[\s<>|&^()%!;,]")


def script() -> Path | None:
    """The ``anvil`` program of this installation; None when there is none, as in a checkout that was not installed."""
    name = "anvil.exe" if os.name == "nt" else "anvil"
    own = Path(sys.argv[0]).resolve()
    found = (own, Path(sysconfig.get_path("scripts"), name))
    return next((each for each in found if each.name == name and each.is_file()), None)


def on_path() -> Path | None:
    """The ``anvil`` program that a shell would start."""
    found = shutil.which("anvil")
    return Path(found) if found else None


def spelled() -> list[str]:
    """The words that start this very installation: ``anvil``, when a shell would find that one."""
    own, found = script(), on_path()
    if own is None:
        return [sys.executable, "-m", "anvil"]
    return ["anvil"] if found is not None and os.path.samefile(found, own) else [str(own)]


def line(words: Sequence[str], windows: bool = os.name == "nt") -> str:
    """Words as one types them into a shell; ``windows``: into ``cmd`` or PowerShell, which know other quotes."""
    if windows:
        return " ".join(f'"{word}"' if _SPECIAL.search(word) else word for word in words)
    return shlex.join(words)


def export(name: str, value: str, windows: bool = os.name == "nt") -> str:
    """The command that sets a variable for what follows in the same shell."""
    return f"set {name}={value}" if windows else f"export {name}={shlex.quote(value)}"


def install(wanted: Sequence[str], *options: str) -> list[str]:
    """The command that installs requirements beside this Anvil; ``uv`` stands in where there is no pip."""
    if importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable, *options, *wanted]
    return [sys.executable, "-m", "pip", "install", *options, *wanted]


def reinstall(distribution: str) -> list[str]:
    """The command that puts a package's files back."""
    wanted = _origin() if distribution == DISTRIBUTION else distribution
    return install([wanted], "--force-reinstall", "--no-deps")


def checkout() -> Path | None:
    """The repository that this very code lies in; None when it was installed as a package."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / ".git").exists() else None


def _origin() -> str:
    """Anvil as it was installed: from a registry, or from the folder, file or address that pip noted."""
    try:
        noted = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        noted = None
    return f"{DISTRIBUTION} @ {json.loads(noted)['url']}" if noted else DISTRIBUTION
