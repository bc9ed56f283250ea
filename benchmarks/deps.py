"""``anvil deps``: documentation of a dependency from a local repository: first time, second project, and locked.

    python benchmarks/deps.py --docs FOLDER --pages 150

FOLDER's Markdown becomes the ``docs`` of a repository, next to 20 MB of other files that must not travel. ``add`` finds
the tag, fetches the pages over ``file://`` and builds. The yardsticks are ``anvil build`` of the same pages, and
``anvil --version``. Processor time is given too, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
ANVIL = [sys.executable, "-m", "anvil"]


def timed(command: list[str], where: Path, environment: dict[str, str]) -> tuple[float, float]:
    """(seconds, processor seconds) of a process."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, cwd=where, env=environment, check=True, capture_output=True)
    after, ended = os.times(), time.perf_counter()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return ended - began, cpu


def repository(folder: Path, docs: Path, pages: int) -> None:
    """A repository whose tag v1.0.0 has these pages."""
    for number, page in enumerate(sorted(docs.rglob("*.md"))[:pages]):
        target = folder / "docs" / f"{number:04}-{page.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    (folder / "data.bin").write_bytes(os.urandom(20_000_000))
    for command in (["init", "-q"], ["config", "uploadpack.allowFilter", "true"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, *command], cwd=folder, check=True)
    subprocess.run([*GIT, "tag", "v1.0.0"], cwd=folder, check=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--provider", default="local")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        upstream = root / "upstream"
        upstream.mkdir()
        repository(upstream, given.docs.resolve(), given.pages)
        for name in ("one", "two"):
            (root / name).mkdir()
            (root / name / "requirements.txt").write_text("lib==1.0.0\n", encoding="utf-8")
        cache = root / "cache"
        environment = {
            **os.environ,
            "ANVIL_DEPS_ALLOW_PRIVATE_URLS": "true",
            "ANVIL_EMBEDDING_PROVIDER": given.provider,
            "XDG_CACHE_HOME": str(cache),
        }
        add = [*ANVIL, "deps", "add", "-q", "lib", "--repository", upstream.as_uri()]
        build = [*ANVIL, "build", "-q", "--docs", str(upstream / "docs"), "--index", str(root / "built.db")]
        rows: dict[str, list[tuple[float, float]]] = {}
        for _ in range(given.rounds):
            for name, command, where in (
                ("anvil build of the same pages", build, root),
                ("anvil deps add, nothing in the cache", add, root / "one"),
                ("anvil deps add in a second project", add, root / "two"),
                ("anvil deps sync", [*ANVIL, "deps", "sync"], root / "two"),
                ("anvil --version", [*ANVIL, "--version"], root),
            ):
                if name in ("anvil build of the same pages", "anvil deps add, nothing in the cache"):
                    shutil.rmtree(cache, ignore_errors=True)
                    (root / "built.db").unlink(missing_ok=True)
                for lock in root.glob("*/anvil.lock"):
                    if "add" in name and lock.parent == where:
                        lock.unlink()
                rows.setdefault(name, []).append(timed(command, where, environment))
        print(f"| {given.pages} pages, provider {given.provider} | s | processor s |\n|---|---|---|")
        for name, values in rows.items():
            wall, cpu = (statistics.median(column) for column in zip(*values, strict=True))
            print(f"| {name} | {wall:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
