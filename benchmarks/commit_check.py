"""What the hook ``anvil-check`` adds to each commit.

    python benchmarks/commit_check.py [--docs FOLDER] [--pages 1000] [--rounds 15] [--provider none]

A repository is made in a temporary folder, with the pages and their index staged and committed. Then the hook's
command, as in ``.pre-commit-hooks.yaml``, is run as a process of its own, compared with the same program asked for
its version, which reads nothing. Without ``--docs`` the pages are those of the npm package ``next``, multiplied (needs
npm).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import corpus
import yaml
from git_growth import git
from measuring import ROOT, anvil, heading, in_turn, milliseconds, run, table

INDEX = "docs.anvil.db"
BAR = 0.4
"""Seconds that the check of 1,000 pages may take."""


def seconds(command: list[str], folder: Path, _: int) -> float:
    """How long a command takes in a folder."""
    return run(command, folder=folder).seconds


def hook() -> list[str]:
    """The command of ``anvil-check``, as this checkout's ``anvil``."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    entry = next(each["entry"] for each in hooks if each["id"] == "anvil-check")
    return anvil(*entry.split()[1:], "--index", INDEX)


def main() -> None:
    """Make the repository, time the check, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--provider", default="none", choices=["local", "none"], help="local: the index is larger")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        corpus.write(work / "docs", corpus.chosen(given.docs), given.pages)
        git(work, "init", "--quiet")
        git(work, "add", "-A")
        print("first build ...", file=sys.stderr)
        run(anvil("build", "--staged", "--index", INDEX, "--provider", given.provider, "--quiet"), folder=work)
        git(work, "add", "-A")
        git(work, "commit", "--quiet", "-m", "pages and their index")
        size = (work / INDEX).stat().st_size
        page = sorted((work / "docs").rglob("*.md*"))[0]
        page.write_text(page.read_text(encoding="utf-8") + "\nNot staged.\n", encoding="utf-8")
        run(hook(), folder=work)  # an index is checked whole the first time that a machine sees it
        tasks = {"the check": hook(), "reading nothing": anvil("--version")}
        times = in_turn(
            given.rounds,
            {name: partial(seconds, command, work) for name, command in tasks.items()},
        )
    print(heading(given.rounds))
    checked = f"anvil check --staged --tracked, {given.pages:,} pages, {size / 1e6:.1f} MB"
    rows = [
        (checked, milliseconds(times["the check"]), f"{BAR * 1000:.0f} ms"),
        ("anvil --version", milliseconds(times["reading nothing"]), ""),
    ]
    print(table(("what", "measured", "bar"), rows))


if __name__ == "__main__":
    main()
