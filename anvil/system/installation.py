"""This installation: the commands that start it, and those that repair it."""

from __future__ import annotations

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
"""Anvil's name in package registries."""
OWN_INDEX = Path(__file__).parents[1] / "index.db"
"""The index of Anvil's own documentation, which the released wheel carries, as any package can."""
OWN_DOCS = (Path(__file__).parents[1] / "own_docs", Path(__file__).parents[2] / "docs")
"""Where the pages of Anvil's own documentation are: in an installed package, and in a checkout."""
_SPECIAL = re.compile(r"[\s<>|&^()%!;,]")


def script() -> Path | None:
    """The ``anvil`` program of this installation; None without one, as in a checkout that is not installed."""
    name = "anvil.exe" if os.name == "nt" else "anvil"
    own = Path(sys.argv[0]).resolve()
    candidates = (own, Path(sysconfig.get_path("scripts"), name))
    return next((candidate for candidate in candidates if candidate.name == name and candidate.is_file()), None)


def on_path() -> Path | None:
    """The ``anvil`` program that a shell starts."""
    program = shutil.which("anvil")
    return Path(program) if program else None


def spelled() -> list[str]:
    """The command for this installation: ``anvil`` if a shell finds it, else its path."""
    own, in_shell = script(), on_path()
    if own is None:
        return [sys.executable, "-m", "anvil"]
    return ["anvil"] if in_shell is not None and os.path.samefile(in_shell, own) else [str(own)]


def typed() -> list[str]:
    """The command for Anvil in the user's shell: ``anvil``, or this program's path.

    pre-commit runs a hook in its own environment, which the user's shell does not use.
    """
    if os.environ.get("PRE_COMMIT") != "1":
        return ["anvil"]
    own = os.path.realpath(sysconfig.get_path("scripts"))
    folders = [folder for folder in os.get_exec_path() if os.path.realpath(folder) != own]
    if shutil.which("anvil", path=os.pathsep.join(folders)):
        return ["anvil"]
    program = script()
    return [str(program)] if program else [sys.executable, "-m", "anvil"]


def outside_environments(name: str) -> str | None:
    """The program that other programs, and a shell without an active virtual environment, find."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    lasting = [folder for folder in folders if folder and not Path(folder).parent.joinpath("pyvenv.cfg").exists()]
    return shutil.which(name, path=os.pathsep.join(lasting))


def lasting(shared: bool) -> list[str]:
    """A command for this Anvil that works in any program. ``shared``: also on other machines."""
    temporary = {"archive-v0", "environments-v2"} & set(Path(sys.prefix).parts)  # folders of uvx
    released = _origin() == DISTRIBUTION
    if (temporary or (shared and released)) and (uvx := outside_environments("uvx")):
        started = "uvx" if shared else uvx
        return [started, DISTRIBUTION] if released else [started, "--from", _origin(), "anvil"]
    own = script() or on_path()
    return [sys.executable, "-m", "anvil"] if own is None else [str(own)]


def line(words: Sequence[str], windows: bool = os.name == "nt") -> str:
    """A command line for a shell; ``windows``: for ``cmd`` or PowerShell, which have other quotes."""
    if windows:
        return " ".join(f'"{word}"' if _SPECIAL.search(word) else word for word in words)
    return shlex.join(words)


def export(name: str, value: str, windows: bool = os.name == "nt") -> str:
    """The command that sets an environment variable in a shell."""
    return f"set {name}={value}" if windows else f"export {name}={shlex.quote(value)}"


def install(requirements: Sequence[str], *options: str) -> list[str]:
    """The command that installs requirements for this Anvil, with uv if there is no pip."""
    if importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable, *options, *requirements]
    return [sys.executable, "-m", "pip", "install", *options, *requirements]


def reinstall(distribution: str) -> list[str]:
    """The command that installs a package again."""
    requirement = _origin() if distribution == DISTRIBUTION else distribution
    return install([requirement], "--force-reinstall", "--no-deps")


def install_extras(*names: str) -> str:
    """The command line that installs optional parts, such as ``attest``, from where this Anvil came: its registry,
    or the folder, file or URL that pip recorded."""
    name, at, place = _origin().partition(" @ ")
    if at and checkout() is not None and place.startswith("file:"):  # an editable installation stays one
        return line(install(["--editable", f"{checkout()}[{','.join(names)}]"]))
    return line(install([f"{name}[{','.join(names)}]{at}{place}"]))


def install_tool() -> str:
    """The command line that installs this Anvil for the user, outside of virtual environments."""
    return line(["uv", "tool", "install", _origin()])


def checkout() -> Path | None:
    """The repository of this code; None when it is installed as a package."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / ".git").exists() else None


def _origin() -> str:
    """The requirement that installed Anvil: its name, or the folder, file or URL that pip recorded."""
    import importlib.metadata

    try:
        recorded = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        folder = checkout()
        return f"{DISTRIBUTION} @ {folder.as_uri()}" if folder else DISTRIBUTION
    if not recorded:
        return DISTRIBUTION
    origin = json.loads(recorded)
    if vcs := origin.get("vcs_info"):
        return f"{DISTRIBUTION} @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    return f"{DISTRIBUTION} @ {origin['url']}"
