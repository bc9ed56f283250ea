"""What a repository's context costs at 300 files and 5 MB: cold ingestion, a no-op, and each tool's answer.

    python benchmarks/context.py [--files 300] [--megabytes 5] [--rounds 5] [--calls 40]

The tree is generated, laid out as spec-kit lays out features, with decisions and runbooks next to them; a third of its
files hold check boxes. Ingestion is timed as a process, its start included, and by its own account, which is without
the start; tools are called over the pipe of a server, as a client does. Before every tenth call a file is edited, and
the call after it, which reads the file again, is counted with the others and shown by itself too.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import anvil, heading, milliseconds, percentile, run, table
from server import Server

WORDS = """\
alert artifact budget cache certificate chunk client database deploy document gateway index latency ledger migration
monitor passenger payment protocol queue replica retry rotation schema search section session stream ticket timeout
token transport vector vessel worker""".split()  # noqa: SIM905
SHAPES = (
    "specs/{0:03}-{1}/spec.md",
    "specs/{0:03}-{1}/plan.md",
    "specs/{0:03}-{1}/tasks.md",
    "specs/{0:03}-{1}/checklists/requirements.md",
    "architecture/adr/{0:04}-{1}.md",
    "operations/{1}-{0}.md",
)


def tree(root: Path, files: int, size: int) -> Path:
    """Write ``files`` files of about ``size`` characters under ``root``; the root."""
    chance = random.Random(11)

    def words(count: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(count)).capitalize()

    for number in range(files):
        feature, shape = divmod(number, len(SHAPES))
        path = root / SHAPES[shape].format(feature + 1, WORDS[feature % len(WORDS)])
        boxes = shape in (2, 3)
        parts, left = [f"# {words(4)}\n"], size
        while left > 0:
            tasks = "".join(
                f"- [{chance.choice(' x')}] T{place:03} [P] [US{place}] {words(12)} in `src/{words(1)}.py`\n"
                for place in range(8)
            )
            parts.append(f"\n## {words(4)}\n\n{words(90)}.\n\n{tasks if boxes else words(60) + '.'}\n")
            left -= len(parts[-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(parts), encoding="utf-8", newline="\n")
    return root


def ingestion(root: Path, rounds: int) -> list[list[str]]:
    """The rows about ingestion."""
    times: dict[str, list[float]] = {"cold": [], "cold, by itself": [], "no-op": [], "no-op, by itself": []}
    command = anvil("context", "ingest", "--root", str(root), "--json")
    for _ in range(rounds):
        shutil.rmtree(root / ".context", ignore_errors=True)
        for name in ("cold", "no-op"):
            done = run(command)
            times[name].append(done.seconds)
            times[f"{name}, by itself"].append(json.loads(done.output)["seconds"])
    counts = json.loads(run(command).output)
    told = f"{counts['artifacts']} files, {counts['chunks']:,} chunks, {counts['tasks']['open']:,} open tasks"
    return [[f"`anvil context ingest`, {name} ({told})", milliseconds(each)] for name, each in times.items()]


def answers(root: Path, calls: int) -> list[list[str]]:
    """The rows about the tools."""
    chance = random.Random(5)
    files = sorted(root.rglob("*.md"))
    server = Server(root, "--surface", "context", "--root", str(root))
    server.begin()
    ids = [each["id"] for each in server.call("artifacts.list")["result"]]
    questions: dict[str, Callable[[], dict[str, Any]]] = {
        "context.get": lambda: {},
        "artifacts.list": lambda: {},
        "artifacts.get": lambda: {"id": chance.choice(ids)},
        "search.query": lambda: {"query": " ".join(chance.sample(WORDS, 3))},
        "tasks.open": lambda: {},
        "tasks.open, the first 100": lambda: {"limit": 100},
        "tasks.open, one folder": lambda: {"path": "specs/001-alert"},
        "health.status": lambda: {},
    }
    rows, edited = [], []
    for name, arguments in questions.items():
        times = []
        for number in range(calls):
            if number % 10 == 9:
                with chance.choice(files).open("a", encoding="utf-8") as file:
                    file.write(f"\nEdit {number}.\n")
            began = time.perf_counter()
            server.call(name.partition(",")[0], **arguments())
            times.append(time.perf_counter() - began)
            if number % 10 == 9:
                edited.append(times[-1])
        rows.append([f"`{name}`, median", f"{statistics.median(times) * 1000:.1f} ms"])
        rows.append([f"`{name}`, 90th percentile", f"{percentile(times, 0.9) * 1000:.1f} ms"])
    server.end()
    return [*rows, ["the call after an edit, any tool", milliseconds(edited)]]


def main() -> None:
    """Make the tree, ingest, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--megabytes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = tree(Path(name, "tree"), chosen.files, int(chosen.megabytes * 1e6 / chosen.files))
        size = sum(path.stat().st_size for path in root.rglob("*.md"))
        if not 0.9 < size / (chosen.megabytes * 1e6) < 1.2:
            sys.exit(f"The tree has {size:,} bytes.")
        rows = [*ingestion(root, chosen.rounds), *answers(root, chosen.calls)]
    print(heading(chosen.rounds))
    print(table(["what", "measured"], rows))


if __name__ == "__main__":
    main()
