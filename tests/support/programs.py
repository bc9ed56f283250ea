"""The real program as users run it: another process, its exit code and its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anvil

ROOT = Path(anvil.__file__).resolve().parents[1]
Way = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    """This process's, by which the program finds the package under test, installed or not."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "error", "COLUMNS": "100", **more}


def program(
    *arguments: str | Path, cwd: Path | None = None, code: int = 0, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``anvil`` and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "anvil", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        **more,
    )
    assert done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    return done


def printed(*arguments: str | Path, cwd: Path | None = None, code: int = 0, by: Way = program) -> Any:
    """The output of ``anvil ... --json``, parsed."""
    return json.loads(by(*arguments, "--json", cwd=cwd, code=code).stdout)


def complaint(*arguments: str | Path, cwd: Path | None = None, code: int = 2, by: Way = program) -> str:
    """The one message of a command that fails: at most two sentences, and no traceback."""
    done = by(*arguments, cwd=cwd, code=code)
    assert "Traceback" not in done.stderr and done.stdout == ""
    return done.stderr.strip()


def script(file: Path, line: str) -> None:
    """Write a program of the shell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    file.chmod(0o755)
