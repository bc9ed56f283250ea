"""How this installation is called, seen from itself."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import anvil
from anvil.system import installation


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of the right name, which is running."""
    file = tmp_path / "bin" / ("anvil.exe" if sys.platform == "win32" else "anvil")
    file.parent.mkdir()
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(file)])
    return file


def test_the_program_on_the_path_is_called_by_its_name(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(own.parent))
    assert (installation.script(), installation.on_path()) == (own, own)
    assert installation.own_command() == ["anvil"]


def test_one_that_is_not_is_spelled_out(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installation.on_path() is None and installation.own_command() == [str(own)]


def test_without_a_program_python_runs_the_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    words = installation.own_command()
    assert words == [sys.executable, "-m", "anvil"]
    done = subprocess.run(
        [*words, "--version"], capture_output=True, text=True, check=True, cwd=installation.checkout()
    )
    assert anvil.__version__ in done.stdout


def test_each_shell_has_its_quotes() -> None:
    words = ["pip", "install", "a>=1", "C:\\My Files\\x", "C:\\x", "it's"]
    assert installation.line(words, windows=True) == 'pip install "a>=1" "C:\\My Files\\x" C:\\x it\'s'
    assert shlex.split(installation.line(words, windows=False)) == words
    assert installation.line(["a,b", "a;b", "a%b"], windows=True) == '"a,b" "a;b" "a%b"'
    assert installation.export("A", "b c", windows=True) == "set A=b c"
    assert installation.export("A", "b c", windows=False) == "export A='b c'"


def test_what_pip_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation.reinstall("apsw")[-3:] == ["--force-reinstall", "--no-deps", "apsw"]
    assert installation.install(["x"])[0] == sys.executable

    class Installed:
        noted: str | None = None

        def read_text(self, name: str) -> str | None:
            return self.noted if name == "direct_url.json" else None

    there = Installed()
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: there)
    assert installation.reinstall(installation.DISTRIBUTION)[-1] == "anvil-docs"
    assert shlex.split(installation.install_extras("ray", "attest"))[-1] == "anvil-docs[ray,attest]"
    there.noted = json.dumps({"url": "file:///src/anvil", "dir_info": {}})
    assert installation.reinstall(installation.DISTRIBUTION)[-1] == "anvil-docs @ file:///src/anvil"
    with monkeypatch.context() as installed:
        installed.setattr(installation, "checkout", lambda: None)
        words = shlex.split(installation.install_extras("mkdocs"))
        assert words[-1] == "anvil-docs[mkdocs] @ file:///src/anvil"
    here = installation.checkout()
    assert shlex.split(installation.install_extras("mkdocs"))[-2:] == ["--editable", f"{here}[mkdocs]"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert installation.install(["x"])[:3] == ["uv", "pip", "install"]
