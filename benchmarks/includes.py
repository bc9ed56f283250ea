"""The cost of pages that include files: freshness checks that find no change, with and without included files.

    git clone https://github.com/fastapi/fastapi && python benchmarks/includes.py fastapi/docs/en/docs

Prints the ratio of the medians for a working tree that was compared before, for a new process, for the staged tree and
for HEAD, and how many chunks hold included text.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from measuring import heading, table

import anvil
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.settings.schema import Config, SourceOptions
from anvil.values import Document

OPTIONS = {"without": SourceOptions(includes=False), "with": SourceOptions()}


def compare(what: str, runs: Mapping[str, Callable[[], object]], rounds: int) -> tuple[str, ...]:
    """A table row: the medians of the two runs, which take turns, and their ratio."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            taken[name].append((time.perf_counter() - began) * 1000)
    low, high = (statistics.median(taken[name]) for name in ("without", "with"))
    return what, f"{low:.2f} ms", f"{high:.2f} ms", f"{high / low:.2f} x"


def _working(docs: Path, options: SourceOptions, known: Mapping[str, str]) -> object:
    return WorkingTree(docs, options).scan(known)


def _staged(docs: Path, options: SourceOptions, known: Mapping[str, str]) -> object:
    return StagedTree(docs, options).scan(known)


def _head(docs: Path, options: SourceOptions, known: Mapping[str, str]) -> object:
    return CommitTree(docs, "HEAD", options).scan(known)


def main(docs: Path) -> None:
    """Measure the documents in a folder of a repository."""
    trees = {name: WorkingTree(docs, each) for name, each in OPTIONS.items()}
    known = {name: tree.scan().entries for name, tree in trees.items()}
    time.sleep(0.2)  # until what was read is old enough to be trusted
    for tree in trees.values():
        tree.scan()
    rows = [compare("nothing changed", {name: tree.scan for name, tree in trees.items()}, 100)]
    fresh = {n: partial(_working, docs, o, known[n]) for n, o in OPTIONS.items()}
    rows.append(compare("in a new process", fresh, 9))
    staged = {n: partial(_staged, docs, o, known[n]) for n, o in OPTIONS.items()}
    rows.append(compare("staged tree", staged, 9))
    commits = {n: partial(_head, docs, o, known[n]) for n, o in OPTIONS.items()}
    rows.append(compare("HEAD", commits, 9))
    read = [each for path in known["with"] if isinstance(each := trees["with"].read(path), Document)]
    count = sum(len(each.inserted) for each in read)
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for name, options in OPTIONS.items():
            config = Config(docs=str(docs.resolve()), index=f"{folder}/{name}.db", source=options)
            with anvil.open(config=config, provider="none") as opened:
                reports.append(opened.index())
    less, more = reports
    rows.append(("chunks", f"{less.chunks:,}", f"{more.chunks:,}", f"{more.chunks / less.chunks:.2f} x"))
    sizes = less.size_bytes, more.size_bytes
    rows.append(("bytes of the index", *(f"{size:,}" for size in sizes), f"{sizes[1] / sizes[0]:.2f} x"))
    print(heading())
    print(table(("what", "without included files", "with", "ratio"), rows))
    print(f"\n{sum(bool(each.inserted) for each in read)} of {len(read)} pages include {count} times.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
