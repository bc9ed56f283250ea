"""The handbook of ``tests/data/sites/lighthouse``, built by the real generators that are Python packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import environment

LIGHTHOUSE = Path(__file__).parents[1] / "data" / "sites" / "lighthouse"
TIMEOUT_S = 300


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Run a generator to its end. Returns what it printed; AssertionError when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment(**variables), "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def program(name: str) -> str:
    """A program of this environment."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None and name == "zensical" and sys.version_info < (3, 11):
        pytest.skip("Zensical needs Python 3.11.")
    return found or name


def copied(folder: Path, name: str) -> Path:
    """A copy of one of the handbook's folders, with the module that its API page documents; the folder."""
    shutil.copytree(LIGHTHOUSE / "src", folder / "src", dirs_exist_ok=True)
    return Path(shutil.copytree(LIGHTHOUSE / name, folder / name, dirs_exist_ok=True))


def _mkdocs(folder: Path, theme: str) -> Path:
    root = copied(folder, "mkdocs")
    config = root / "mkdocs.yml"
    config.write_text(config.read_text("utf-8").replace("name: mkdocs", f"name: {theme}"), "utf-8")
    return root


def mkdocs(folder: Path, theme: str = "mkdocs", command: str = "mkdocs") -> tuple[Path, Path]:
    """By MkDocs, or by a program that takes its place; (site, sources)."""
    root = _mkdocs(folder, theme)
    run([sys.executable, "-m", command, "build", "--quiet", "-f", "mkdocs.yml"], root)
    return root / "site", root / "docs"


def zensical(folder: Path) -> tuple[Path, Path]:
    """By Zensical, with the look of Material; (site, sources)."""
    root = _mkdocs(folder, "material")
    run([program("zensical"), "build"], root)
    return root / "site", root / "docs"


def sphinx(folder: Path, theme: str, builder: str = "html") -> tuple[Path, Path]:
    """By Sphinx; (site, sources). Builds in one folder share what was read."""
    root = copied(folder, "sphinx")
    site = folder / f"{builder}-{theme}"
    options = ["-q", "-b", builder, "-d", str(folder / "doctrees"), "-D", f"html_theme={theme}"]
    run([sys.executable, "-m", "sphinx", *options, "docs", str(site)], root)
    return site, root / "docs"


GENERATORS: dict[str, Callable[[Path], tuple[Path, Path]]] = {
    "mkdocs": mkdocs,
    "mkdocs-material": lambda folder: mkdocs(folder, "material"),
    "properdocs": lambda folder: mkdocs(folder, command="properdocs"),
    "zensical": zensical,
    "sphinx-alabaster": lambda folder: sphinx(folder, "alabaster"),
    "sphinx-furo": lambda folder: sphinx(folder, "furo"),
    "sphinx-pydata": lambda folder: sphinx(folder, "pydata_sphinx_theme"),
    "sphinx-rtd": lambda folder: sphinx(folder, "sphinx_rtd_theme"),
    "sphinx-dirhtml": lambda folder: sphinx(folder, "furo", "dirhtml"),
}
"""Name -> the build of the handbook into a folder."""
