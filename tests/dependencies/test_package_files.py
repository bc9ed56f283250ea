"""Packages that are installed in a project: Python's environment and ``node_modules``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anvil.dependencies import package_files
from tests.support.dependency_servers import metadata


def test_a_python_environment_is_read_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert package_files.PythonEnvironment.of_project(tmp_path) is None
    site = tmp_path / ".venv/lib/python3.12/site-packages"
    info = site / "My_Lib-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / ".venv/pyvenv.cfg").touch()
    (site / "evil.pth").write_text("import sys; sys.exit('run')")
    (info / "METADATA").write_text(metadata("My_Lib", "1.0", {"Source": "https://github.com/acme/lib"}))
    (info / "RECORD").write_text("my_lib/docs/a.md,,\n../../../../outside,,\n")
    (site / "broken-0.dist-info").mkdir()
    found = package_files.PythonEnvironment.of_project(tmp_path)
    assert found is not None and [each.shown for each in found.packages()] == ["my-lib 1.0"]
    package = found.find("my-lib", "1.0")
    assert package is not None and package[0].repository == "https://github.com/acme/lib"
    assert list(package[1]) == ["my_lib/docs/a.md"]
    assert found.find("my-lib", "2.0") is None


def test_node_modules(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules/@acme/ui"
    (folder / "docs").mkdir(parents=True)
    (folder / "node_modules/inner/docs").mkdir(parents=True)
    package: dict[str, Any] = {"name": "@acme/ui", "version": "1.0.0", "homepage": "https://ui.dev"}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "docs/a.md").touch()
    (folder / "node_modules/inner/docs/b.md").touch()
    found = package_files.installed(tmp_path, None, "npm", "@acme/ui", "1.0.0")
    assert found is not None and set(found[1]) == {"package.json", "docs/a.md"}
    assert package_files.installed(tmp_path, None, "npm", "@acme/ui", "2.0.0") is None
    (folder / "package.json").write_text("[" * 100_000)
    assert package_files.installed(tmp_path, None, "npm", "@acme/ui", "1.0.0") is None
