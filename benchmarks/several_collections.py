"""How well one search over several collections does, on questions that people asked; and how fast it is.

    python benchmarks/several_collections.py EVAL [--work FOLDER] [--details]
    python benchmarks/several_collections.py EVAL --speed [--work FOLDER]

EVAL is as for ``retrieval.py``. Each question is asked of its own corpus, and of all corpora at once. "first": the
first result is from the right collection; "or family": or from one that may well answer it, such as the other linters.
"all, by confidence": the results of each, sorted by their confidence alone.

``--speed``: 20 copies of an index of about 2,000 chunks. A process of its own measures the time of a question after the
first one, and its memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from measuring import heading

import anvil
from anvil.settings.schema import Collection, Config

FAMILIES = ({"vite", "vitepress"}, {"hugo", "vitepress"}, {"eslint", "prettier", "ruff"})
"""As in ``scripts/fit_confidence.py``."""
RESULTS = 20
COLLECTIONS, SPEED_CORPUS = 20, "hugo"
"""For ``--speed``; the corpus has about 2,000 chunks."""
Place = tuple[str, str]


def main() -> None:
    """Index, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--details", action="store_true", help="print the questions whose first result is of another")
    parser.add_argument("--speed", action="store_true", help="measure time and memory instead")
    parser.add_argument("--questions-to", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    questions = [
        json.loads(line)
        for file in sorted(given.eval.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    if given.questions_to:
        print(json.dumps(asked_of(given.questions_to, [question["query"] for question in questions])))
        return
    with ExitStack() as stack:
        work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(heading())
        if given.speed:
            speed(given.eval, work)
        else:
            quality(given.eval, work, questions, given.details)


def quality(evaluation: Path, work: Path, questions: Sequence[dict[str, object]], details: bool) -> None:
    """Print the table of ranks."""
    corpora = sorted({str(question["corpus"]) for question in questions})
    for corpus in corpora:
        with anvil.open(evaluation / "corpora" / corpus, work / f"{corpus}.db") as opened:
            print(corpus, opened.index().outcome, file=sys.stderr)
    rows: dict[str, list[tuple[float, float, bool, bool]]] = defaultdict(list)
    with anvil.open(config=published(work, corpora), collections=corpora) as everything:
        for question in questions:
            corpus, query = str(question["corpus"]), str(question["query"])
            paths = question["paths"]
            assert isinstance(paths, list)
            right = {(corpus, path) for path in paths}
            alone = everything.search(query, RESULTS, collection=corpus)
            own = reciprocal_rank(places(alone.results), right)
            merged = everything.search(query, RESULTS)
            each = [hit for name in corpora for hit in everything.search(query, RESULTS, collection=name).results]
            by_confidence = sorted(each, key=lambda hit: -(hit.confidence or 0))[:RESULTS]
            for name, hits in {"all": merged.results, "all, by confidence": by_confidence}.items():
                first = hits[0].collection
                family = first == corpus or any({first, corpus} <= family for family in FAMILIES)
                row = (own, reciprocal_rank(places(hits), right), first == corpus, family)
                rows[name].append(row)
                rows[f"{name}: {corpus}"].append(row)
                if details and name == "all" and first != corpus:
                    print(f"{corpus} -> {first}: {query}", file=sys.stderr)
    print("| asked of | questions | MRR@10 of their own | of all | loss | first | or family |")
    print("|---|---|---|---|---|---|---|")
    for name, values in rows.items():
        if name.startswith("all, by confidence:"):
            continue
        own, of_all, first, family = (statistics.mean(column) for column in zip(*values, strict=True))
        cells = f"{own:.3f} | {of_all:.3f} | {own - of_all:.3f} | {first:.1%} | {family:.1%}"
        print(f"| {name} | {len(values)} | {cells} |")


def published(work: Path, names: Sequence[str]) -> Config:
    """The configuration of a project whose collections are these indexes."""
    return Config(collections=tuple(Collection(name, index=str(work.absolute() / f"{name}.db")) for name in names))


def places(hits: Sequence[anvil.Hit]) -> list[Place]:
    """Collection and path of each result."""
    return [(hit.collection or "", hit.metadata.file_path) for hit in hits]


def reciprocal_rank(found: Sequence[Place], right: set[Place]) -> float:
    """1 / the rank of the first right page, if that is at most 10."""
    pages = list(dict.fromkeys(found))[:10]
    return next((1 / rank for rank, page in enumerate(pages, 1) if page in right), 0.0)


def speed(evaluation: Path, work: Path) -> None:
    """Print time and memory for :data:`COLLECTIONS` collections and for one of them."""
    source = work / f"{SPEED_CORPUS}.db"
    with anvil.open(evaluation / "corpora" / SPEED_CORPUS, source) as opened:
        opened.index()
    names = [f"copy-{number:02}" for number in range(COLLECTIONS)]
    for name in names:
        shutil.copyfile(source, work / f"{name}.db")
    print(
        "| collections | chunks | first question | a question, median | 95th percentile | processor time | resident |"
    )
    print("|---|---|---|---|---|---|---|")
    for count in (1, COLLECTIONS):
        folder = work / f"of-{count}"
        folder.mkdir(exist_ok=True)
        files = ((name, json.dumps(str(work.absolute() / f"{name}.db"))) for name in names[:count])
        lines = [f"[collections.{name}]\nindex = {file}\n" for name, file in files]
        (folder / "anvil.toml").write_text("".join(lines), encoding="utf-8")
        line = [sys.executable, __file__, str(evaluation), "--questions-to", str(folder)]
        measured = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
        print(f"| {count} | {measured['chunks']:,} | {' | '.join(measured['cells'])} |")


def asked_of(folder: Path, questions: Sequence[str]) -> dict[str, object]:
    """The measures of a process that asks the collections of a project."""
    with anvil.open(config=folder / "anvil.toml", collections="all", background=True) as opened:
        times, processor_times = [], []
        for question in [questions[0], *questions]:
            started_at, used = time.perf_counter(), time.process_time()
            result = opened.search(question)
            times.append((time.perf_counter() - started_at) * 1000)
            processor_times.append((time.process_time() - used) * 1000)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        later = sorted(times[1:])
        cells = [f"{times[0]:.0f} ms", f"{statistics.median(later):.1f} ms", f"{later[len(later) * 95 // 100]:.1f} ms"]
        cells += [f"{statistics.median(processor_times[1:]):.1f} ms", f"{resident:.0f} MB"]
        return {"chunks": result.total_chunks, "cells": cells}


if __name__ == "__main__":
    main()
