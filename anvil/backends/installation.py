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


def typed() -> list[str]:
    """The words that start Anvil in the shell of those who read a message: ``anvil``, or this program's path.

    pre-commit runs a hook in an environment that it made for it, which that shell does not have.
    """
    if os.environ.get("PRE_COMMIT") != "1":
        return ["anvil"]
    own = os.path.realpath(sysconfig.get_path("scripts"))
    folders = [each for each in os.get_exec_path() if os.path.realpath(each) != own]
    if shutil.which("anvil", path=os.pathsep.join(folders)):
        return ["anvil"]
    found = script()
    return [str(found)] if found else [sys.executable, "-m", "anvil"]


def outside_environments(name: str) -> str | None:
    """The program that a shell without an active virtual environment would start: what other programs find, too."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    lasting = [each for each in folders if each and not Path(each).parent.joinpath("pyvenv.cfg").exists()]
    return shutil.which(name, path=os.pathsep.join(lasting))


def lasting(shared: bool) -> list[str]:
    """The words that start this Anvil from any program. ``shared``: they should do so on other machines, too."""
    temporary = {"archive-v0", "environments-v2"} & set(Path(sys.prefix).parts)  # where uvx keeps what it runs
    released = _origin() == DISTRIBUTION
    if (temporary or (shared and released)) and (uvx := outside_environments("uvx")):
        started = "uvx" if shared else uvx
        return [started, DISTRIBUTION] if released else [started, "--from", _origin(), "anvil"]
    own = script() or on_path()
    return [sys.executable, "-m", "anvil"] if own is None else [str(own)]


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
    root = Path(__file__).resolve().parents[2]
    return root if (root / ".git").exists() else None


def _origin() -> str:
    """Anvil as it was installed: from a registry, or from the folder, file or address that pip noted."""
    try:
        noted = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        noted = None
    if not noted:
        return DISTRIBUTION
    origin = json.loads(noted)
    if vcs := origin.get("vcs_info"):
        return f"{DISTRIBUTION} @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    return f"{DISTRIBUTION} @ {origin['url']}"
