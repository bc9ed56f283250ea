"""Real repositories whose commits go through the real pre-commit, with the hooks of this project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.support import fork_server
from tests.support.programs import ROOT, environment, script

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


def program_folder(folder: Path) -> Path:
    """A folder for PATH with an ``anvil`` that runs the package under test, installed or not."""
    paths = shlex.quote(environment()["PYTHONPATH"])
    variables = f"PYTHONPATH={paths} PYTHONWARNINGS=error PYTHONSAFEPATH=1"
    script(folder / "anvil", f'{variables} exec {shlex.join(fork_server.command_line("anvil"))} "$@"')
    return folder


def configuration(*hooks: str, args: list[str] | None = None, **more: Any) -> str:
    """A ``.pre-commit-config.yaml`` with the project's hooks, which run in the environment of the tests."""
    own = []
    for name in hooks:
        hook = {**HOOKS[name], "language": "system", **({"args": args} if args else {}), **more}
        del hook["minimum_pre_commit_version"]  # is for whole configurations where hooks are local
        own.append(hook)
    return yaml.safe_dump({"repos": [{"repo": "local", "hooks": own}]})


def call(where: Path, *command: str, code: int | None = 0, **more: str) -> str:
    """Run a program in a repository and check its exit code (None: anything but 0). Returns its output."""
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


_installed: dict[tuple[str, ...], dict[str, str]] = {}
"""Kinds of hooks -> the text of each as ``pre-commit install`` wrote it into a repository without hooks."""


def install_hooks(where: Path, *types: str) -> None:
    """``pre-commit install``, which runs once for each choice of hooks; git then starts pre-commit as
    :mod:`fork_server` does."""
    names = types or ("pre-commit",)
    hooks = {name: where / ".git/hooks" / name for name in names}
    is_new = not any(hook.exists() for hook in hooks.values())
    if not is_new or types not in _installed:
        pre_commit(where, "install", *(word for each in types for word in ("-t", each)))
        texts = {name: hook.read_text(encoding="utf-8") for name, hook in hooks.items()}
        if is_new:
            _installed[types] = texts
    else:
        texts = _installed[types]
    python = where / ".git/python"  # called by the hooks with -mpre_commit and more
    script(python, f'shift; exec {shlex.join(fork_server.command_line("pre_commit"))} "$@"')
    for name, text in texts.items():
        forking = re.sub(r"^INSTALL_PYTHON=.*$", f"INSTALL_PYTHON={shlex.quote(str(python))}", text, flags=re.MULTILINE)
        assert forking != text
        hooks[name].parent.mkdir(exist_ok=True)
        hooks[name].write_text(forking, encoding="utf-8")
        hooks[name].chmod(0o755)
