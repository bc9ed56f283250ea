"""What ``anvil lint`` takes over many pages, with an index that has them as they are, and without one.

    python benchmarks/lint.py [--docs FOLDER] [--pages 1000] [--rounds 7] [--provider none]

Copies of the pages are in folders of their own, so that an index with vectors is built in the time of the pages alone:
text that was embedded before is not embedded again. Each run is a process of its own. Without ``--docs`` the pages are
those of the npm package ``next`` (needs npm). ``--provider none``: an index without vectors, so no near duplicates.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
from pathlib import Path

import corpus
from measuring import anvil, heading, in_turn, milliseconds, run, table

TARGET_S = 2
"""Seconds that 1,000 pages may take with an index."""


def main() -> None:
    """Make the pages and their index, time the command, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--provider", default="local", choices=["local", "none"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        pages = list(corpus.chosen(given.docs).items())
        for number in range(given.pages):
            turn, place = divmod(number, len(pages))
            file = work / "docs" / f"copy-{turn}" / pages[place][0]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(pages[place][1], encoding="utf-8")
        print("first build ...", file=sys.stderr)
        index = ["--index", "index.db"]
        run(anvil("build", *index, "--provider", given.provider, "--quiet"), folder=work)
        size = sum(file.stat().st_size for file in work.rglob("*.md*"))
        report = json.loads(run(anvil("lint", *index, "--json"), folder=work, codes=(0, 1)).output)
        tasks = {
            "with the index": anvil("lint", *index),
            "without an index": anvil("lint", "--index", "none.db"),
            "`anvil --version`": anvil("--version"),
        }
        cpu: dict[str, list[float]] = {name: [] for name in tasks}

        def seconds(name: str, _: int) -> float:
            done = run(tasks[name], folder=work, codes=(0, 1))
            cpu[name].append(done.cpu)
            return done.seconds

        times = in_turn(given.rounds, {name: functools.partial(seconds, name) for name in tasks})
    print(heading(given.rounds))
    print(
        f"{report['pages']:,} pages, {size / 1e6:.1f} MB, {len(report['findings']):,} findings. Target: {TARGET_S} s.\n"
    )
    rows = [(name, milliseconds(times[name]), milliseconds(cpu[name])) for name in tasks]
    print(table(("`anvil lint`", "time", "processor time"), rows))


if __name__ == "__main__":
    main()
