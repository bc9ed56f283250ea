"""Real repositories for tests, made with the real git under a home and configuration of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def isolation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Hide this machine's settings from git and libgit2 (which searches its home once, when loaded)."""
    import pygit2
    from pygit2.enums import ConfigLevel

    for name in [name for name in os.environ if name.startswith("GIT_") and name != "GIT_CONFIG_SYSTEM"]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Writer")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "writer@example.com")
    levels = (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL)
    before = {level: pygit2.settings.search_path[level] for level in levels}
    for level in levels:
        pygit2.settings.search_path[level] = str(home)
    yield
    for level, path in before.items():
        pygit2.settings.search_path[level] = path


isolated = pytest.fixture(autouse=True)(isolation)
"""The fixture for every test of a module that imports it. ``pytest.fixture(isolation)`` is there where asked for."""


def run(where: Path, *arguments: str, at: int | None = None) -> str:
    """Run git in a folder, at a given second for commits; its output without the last line break."""
    environment = dict(os.environ)
    if at is not None:
        environment |= {"GIT_AUTHOR_DATE": f"{at} +0200", "GIT_COMMITTER_DATE": f"{at} +0200"}
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.rstrip("\n")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit: ``docs/a.md`` and ``src.py``."""
    root = tmp_path / "repo"
    root.mkdir()
    run(root, "init", "-q", "-b", "main")
    write(root / "docs/a.md", "# A\n")
    write(root / "src.py", "pass\n")
    commit(root, "first", at=1_700_000_000)
    return root


def commit(root: Path, message: str, *, at: int) -> str:
    run(root, "add", "-A")
    run(root, "commit", "-q", "--allow-empty", "-m", message, at=at)
    return head(root)


def head(root: Path) -> str:
    """The id of the commit that is checked out."""
    folder = root / ".git"
    try:
        _, _, branch = (folder / "HEAD").read_text().strip().partition("ref: ")
        return (folder / branch if branch else folder / "HEAD").read_text().strip()
    except OSError:  # in a linked working tree, or of a branch that is packed
        return run(root, "rev-parse", "HEAD")
