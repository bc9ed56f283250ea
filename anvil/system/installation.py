"""This installation of Anvil: the commands that start it, and the commands that install or repair packages."""

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
"""The index of Anvil's own documentation. The released wheel contains it, as the wheel of each package can."""
OWN_DOCS = (Path(__file__).parents[1] / "own_docs", Path(__file__).parents[2] / "docs")
"""The folders with the pages of Anvil's own documentation: that of an installed package, and that of a checkout."""
_SPECIAL = re.compile(r"[\s<>|&^()%!;,]")


def script() -> Path | None:
    """The ``anvil`` program of this installation; None in a checkout that is not installed."""
    name = "anvil.exe" if os.name == "nt" else "anvil"
    own = Path(sys.argv[0]).resolve()
    candidates = (own, Path(sysconfig.get_path("scripts"), name))
    return next((candidate for candidate in candidates if candidate.name == name and candidate.is_file()), None)


def on_path() -> Path | None:
    """The ``anvil`` program that a shell starts; None if it finds none."""
    program = shutil.which("anvil")
    return Path(program) if program else None


def own_command() -> list[str]:
    """The command for this installation: ``anvil`` if a shell finds it, else its path."""
    own, in_shell = script(), on_path()
    if own is None:
        return [sys.executable, "-m", "anvil"]
    return ["anvil"] if in_shell is not None and os.path.samefile(in_shell, own) else [str(own)]


def user_command() -> list[str]:
    """The command for Anvil in the user's shell: ``anvil``, or the path of this program.

    pre-commit runs a hook in its own environment. The user's shell does not find the programs there.
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
    """The program that a shell without an active virtual environment finds; other programs find it, too."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    outside = [folder for folder in folders if folder and not Path(folder).parent.joinpath("pyvenv.cfg").exists()]
    return shutil.which(name, path=os.pathsep.join(outside))


def lasting_command(shared: bool) -> list[str]:
    """A command that starts this Anvil from other programs and later. ``shared``: also on other machines."""
    temporary = {"archive-v0", "environments-v2"} & set(Path(sys.prefix).parts)  # folders of uvx
    released = _origin() == DISTRIBUTION
    if (temporary or (shared and released)) and (uvx := outside_environments("uvx")):
        runner = "uvx" if shared else uvx
        return [runner, DISTRIBUTION] if released else [runner, "--from", _origin(), "anvil"]
    own = script() or on_path()
    return [sys.executable, "-m", "anvil"] if own is None else [str(own)]


def line(words: Sequence[str], windows: bool = os.name == "nt") -> str:
    """A command line for a shell. ``windows``: with the quotes of ``cmd`` and PowerShell."""
    if windows:
        return " ".join(f'"{word}"' if _SPECIAL.search(word) else word for word in words)
    return shlex.join(words)


def export(name: str, value: str, windows: bool = os.name == "nt") -> str:
    """The command that sets an environment variable in a shell."""
    return f"set {name}={value}" if windows else f"export {name}={shlex.quote(value)}"


def install(requirements: Sequence[str], *options: str) -> list[str]:
    """The command that installs requirements into the environment of this Anvil, with uv if there is no pip."""
    if importlib.util.find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable, *options, *requirements]
    return [sys.executable, "-m", "pip", "install", *options, *requirements]


def reinstall(distribution: str) -> list[str]:
    requirement = _origin() if distribution == DISTRIBUTION else distribution
    return install([requirement], "--force-reinstall", "--no-deps")


def install_extras(*names: str) -> str:
    """The command line that installs optional parts, such as ``attest``, from the origin of this Anvil: its registry,
    or the folder, file or URL that pip recorded."""
    name, at, address = _origin().partition(" @ ")
    if at and checkout() is not None and address.startswith("file:"):  # an editable installation stays editable
        return line(install(["--editable", f"{checkout()}[{','.join(names)}]"]))
    return line(install([f"{name}[{','.join(names)}]{at}{address}"]))


def install_tool() -> str:
    """The command line that installs this Anvil for the user, outside virtual environments."""
    return line(["uv", "tool", "install", _origin()])


def checkout() -> Path | None:
    """The repository of this code; None if it is installed as a package."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / ".git").exists() else None


def _origin() -> str:
    """The requirement by which Anvil was installed: its name, or the folder, file or URL that pip recorded."""
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
