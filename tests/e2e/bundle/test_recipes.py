"""The recipes of the guide: real packages with a bundle in them, which ``anvil deps`` finds without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.conftest import write
from tests.support.commits import program_folder
from tests.support.in_process import printed, program
from tests.support.programs import ROOT

PAGES = {
    "index.md": "# Acme\n\nSee [the lamp](guide/lamp.md).\n",
    "guide/lamp.md": "# Lamp\n\nSet `acme.lamp` to the colour of the light.\n",
}
NAMES = ["AGENTS.md", "docs/anvil-bundle.json", "docs/guide/lamp.md", "docs/index.md"]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keywords only, and registries that nobody reaches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    for name in ("ANVIL_DEPS_PYPI_URL", "ANVIL_DEPS_NPM_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


def recipe(heading: str) -> str:
    """The code block below a heading of the guide."""
    guide = (ROOT / "docs/guides/bundle.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {heading}\n.*?^```\w+\n(.*?)^```", guide, re.M | re.S)
    assert found is not None
    return found[1]


def built_wheel(project: Path) -> zipfile.ZipFile:
    """The wheel that the build backend makes of an sdist, with the packages of this environment."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "made", "."]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    return zipfile.ZipFile(next((project / "made").glob("*.whl")))


def ensure_found(user: Path, name: str, carried: str) -> None:
    """``anvil deps`` finds the bundle among what is installed in the folder ``user``."""
    (line, *_) = program("deps", cwd=user).stdout.splitlines()
    kind, version = ("pypi", "1.2") if name == "acme" else ("npm ", "1.2.0")
    assert line == f"{name} {version}  {kind}  {carried}"
    program("deps", "add", name, cwd=user)
    (hit,) = printed("search", "colour of the light", "--top-k", "1", "--json", cwd=user)["results"]
    assert hit["metadata"]["file_path"].endswith("docs/guide/lamp.md")


@pytest.mark.parametrize("backend", ["hatchling", "setuptools"])
def test_a_wheel(tmp_path: Path, backend: str) -> None:
    version = tuple(map(int, metadata.version(backend).split(".")[:2]))
    if backend == "setuptools" and version < (70, 1):
        pytest.skip("setuptools makes wheels by itself from 70.1 on")
    project = tmp_path / "acme-project"
    head = '[project]\nname = "acme"\nversion = "1.2"\n\n[build-system]\nrequires = ["BACKEND"]\n'
    module = {"hatchling": "hatchling.build", "setuptools": "setuptools.build_meta"}[backend]
    head = head.replace("BACKEND", backend) + f'build-backend = "{module}"\n\n'
    write(project / "documentation", PAGES)
    write(project, {"src/acme/__init__.py": "", "pyproject.toml": head + recipe(backend), ".gitignore": "build\n"})
    out = "build/bundle" if backend == "hatchling" else "src/acme"
    program("bundle", out, "--docs", "documentation", cwd=project)
    environment = tmp_path / "user/.venv"
    site = environment / "lib/python3.11/site-packages"
    with built_wheel(project) as wheel:
        inside = sorted(name for name in wheel.namelist() if name.startswith("acme/") and name != "acme/__init__.py")
        assert inside == [f"acme/{name}" for name in NAMES]
        wheel.extractall(site)
    write(
        tmp_path / "user",
        {".venv/pyvenv.cfg": "home = /usr\n", "pyproject.toml": '[project]\ndependencies = ["acme"]\n'},
    )
    ensure_found(tmp_path / "user", "acme", "carries 2 pages in acme/docs")


@pytest.mark.skipif(shutil.which("npm") is None or os.name == "nt", reason="npm is not installed")
def test_an_npm_package(tmp_path: Path) -> None:
    project = tmp_path / "beacon-project"
    package = {"name": "@acme/beacon", "version": "1.2.0", **json.loads(recipe("npm"))}
    package["scripts"]["prepack"] = package["scripts"]["prepack"].replace("--site site", "--docs docs")
    write(project / "docs", PAGES)
    write(project, {"package.json": json.dumps(package)})
    path = f"{program_folder(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}"
    quiet = {"npm_config_offline": "true", "npm_config_update_notifier": "false", "npm_config_cache": str(tmp_path)}
    subprocess.run(
        ["npm", "pack"],
        cwd=project,
        env={**os.environ, **quiet, "PATH": path},
        check=True,
        capture_output=True,
        timeout=120,
    )
    place = tmp_path / "user/node_modules/@acme/beacon"
    place.mkdir(parents=True)
    packed = next(project.glob("*.tgz"))
    subprocess.run(["tar", "xzf", str(packed), "-C", str(place), "--strip-components", "1"], check=True, timeout=60)
    assert (
        sorted(path.relative_to(place / "dist").as_posix() for path in place.glob("dist/**/*") if path.is_file())
        == NAMES
    )
    write(tmp_path / "user", {"package.json": '{"dependencies": {"@acme/beacon": "1"}}'})
    ensure_found(tmp_path / "user", "@acme/beacon", "carries 2 pages in dist/docs")
