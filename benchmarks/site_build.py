"""Time and memory of ``anvil build --site``: the first build, one without changes, and hashing the files.

    python benchmarks/site_build.py SITE [--rounds 5]

SITE is a folder of HTML that a generator wrote. Its index is built without vectors into a temporary file, with an empty
cache. Files younger than 40 seconds are hashed at each build; of such a site the first rounds are slower. The memory is
that of the process that uses most. Processor seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring import Run, anvil, heading, run, table

HASHING = (
    "import hashlib, pathlib, sys\n"
    "for path in sorted(pathlib.Path(sys.argv[1]).rglob('*.html')):\n"
    "    hashlib.sha256(path.read_bytes()).hexdigest()\n"
)


def main() -> None:
    """Build, build again, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    files = list(given.site.rglob("*.html"))
    with tempfile.TemporaryDirectory() as folder:
        named = ("--site", str(given.site.resolve()), "--index", f"{folder}/index.db")
        environment = {"XDG_CACHE_HOME": folder}
        build = anvil("build", *named, "--provider", "none")
        first = run(build, environment, Path(folder))
        tasks = {
            "hashing the files": [sys.executable, "-I", "-c", HASHING, str(given.site.resolve())],
            "build without changes": build,
            "`anvil check`": anvil("check", *named),
            "`anvil --version`": anvil("--version"),
        }
        runs: dict[str, list[Run]] = {name: [] for name in tasks}
        for _ in range(given.rounds):
            for name, command in tasks.items():
                runs[name].append(run(command, environment, Path(folder)))
    print(heading(given.rounds))
    print(
        f"{len(files):,} files, {sum(file.stat().st_size for file in files) / len(files) / 1000:.0f} KB on average.\n"
    )
    rows = [row("first build", [first], None)]
    rows += [row(name, each, runs["hashing the files"]) for name, each in runs.items()]
    print(table(("what", "seconds", "processor seconds", "of hashing", "peak"), rows))


def row(name: str, runs: Sequence[Run], yardstick: Sequence[Run] | None) -> tuple[str, ...]:
    """The cells of a row: medians."""
    cpu = statistics.median(each.cpu for each in runs)
    share = f"{cpu / statistics.median(each.cpu for each in yardstick):.2f}" if yardstick else "-"
    return (
        name,
        f"{statistics.median(each.seconds for each in runs):.2f}",
        f"{cpu:.2f}",
        share,
        f"{max(each.peak for each in runs) / 1e6:.0f} MB",
    )


if __name__ == "__main__":
    main()
