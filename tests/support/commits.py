"""Real repositories whose commits go through the real pre-commit, with the hooks of this project."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs import ROOT, environment

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


def program_folder(folder: Path) -> Path:
    """A folder for PATH with an ``anvil`` that runs the package under test, installed or not."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "anvil"
    paths = shlex.quote(environment()["PYTHONPATH"])
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH={paths} PYTHONWARNINGS=error PYTHONSAFEPATH=1 "
        f'exec {shlex.quote(sys.executable)} -m anvil "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return folder


def configuration(*hooks: str, args: list[str] | None = None, **more: Any) -> str:
    """A ``.pre-commit-config.yaml`` with hooks of ours as they are, but for the environment that they are run in."""
    own = []
    for name in hooks:
        hook = {**HOOKS[name], "language": "system", **({"args": args} if args else {}), **more}
        del hook["minimum_pre_commit_version"]  # is for whole configurations where hooks are local
        own.append(hook)
    return yaml.safe_dump({"repos": [{"repo": "local", "hooks": own}]})


def call(where: Path, *command: str, code: int | None = 0, **more: str) -> str:
    """Run a program in a repository and check its exit code (None: anything but 0); what it printed."""
    done = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == code if code is not None else done.returncode, f"{command}: {done.returncode}\n{said}"
    return said


def pre_commit(where: Path, *arguments: str, code: int | None = 0, **more: str) -> str:
    return call(where, sys.executable, "-m", "pre_commit", *arguments, code=code, **more)
