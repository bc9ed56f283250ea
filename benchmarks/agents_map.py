"""What ``anvil agents`` and its part of ``anvil check`` cost, and how much of its 8,192 bytes the map uses.

    python benchmarks/agents_map.py FOLDER ... [--rounds 3]

Each folder of documentation is copied into a temporary repository. ``anvil agents`` runs as a process of its own with
an empty cache: over the folder, and over 1,000 pages made of it. The part of ``anvil check`` is timed inside one
process, behind the scan that ``check`` makes anyway: with unchanged pages, and after an edit of one page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import corpus
from git_growth import git
from measuring import anvil, heading, run, table


def main() -> None:
    """Measure each folder, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for folder in given.folders:
            rows.append(measured(folder, Path(cache), given.rounds))
    print(heading(given.rounds))
    print(
        table(
            (
                "folder",
                "pages",
                "MB",
                "`anvil agents`, processor time",
                "1,000 of such pages",
                "in `anvil check`",
                "after an edit",
                "bytes of the map",
                "pages with a line",
            ),
            rows,
        )
    )


def measured(folder: Path, cache: Path, rounds: int) -> tuple[str, ...]:
    """The row of a folder."""
    pages = corpus.pages(folder)
    with tempfile.TemporaryDirectory() as root:
        for path, text in pages.items():
            file = Path(root, "docs", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        git(Path(root), "init", "--quiet")
        corpus.write(Path(root, "thousand", "docs"), pages, 1_000)
        git(Path(root, "thousand"), "init", "--quiet")
        times, thousand = [], []
        for _ in range(rounds):
            shutil.rmtree(cache / "anvil" / "maps", ignore_errors=True)
            times.append(run(anvil("agents", "--quiet"), folder=Path(root)).cpu)
            thousand.append(run(anvil("agents", "--quiet"), folder=Path(root, "thousand")).cpu)
        report = json.loads(run(anvil("agents", "--json"), folder=Path(root)).output)
        block = Path(root, "AGENTS.md").read_bytes()
        unchanged = statistics.median(part_of_check(root) for _ in range(rounds))

        def edit() -> None:
            with open(Path(root, "docs", min(pages)), "a", encoding="utf-8") as page:
                page.write("\nAn edit.\n")

        edited = statistics.median(part_of_check(root, edit) for _ in range(rounds))
    return (
        folder.parent.name + "/" + folder.name,
        f"{len(pages):,}",
        f"{sum(map(len, pages.values())) / 1e6:.1f}",
        f"{statistics.median(times):.2f} s",
        f"{statistics.median(thousand):.2f} s",
        f"{unchanged * 1000:.1f} ms",
        f"{edited * 1000:.0f} ms",
        f"{len(block):,}",
        f"{report['listed']:,}",
    )


def part_of_check(root: str, edit: Callable[[], None] | None = None) -> float:
    """Seconds of processor time that comparing the map takes."""
    import anvil
    from anvil.agents.agent_files import AgentFiles

    if edit is not None:
        edit()
    with anvil.open(f"{root}/docs") as opened:
        assert opened.tree is not None and opened.folder is not None
        opened.tree.scan()
        began = time.process_time()
        AgentFiles(opened.folder, opened.base).compare(opened.tree)
        return time.process_time() - began


if __name__ == "__main__":
    main()
